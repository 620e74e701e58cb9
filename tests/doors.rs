// Every place where bytes of others come in, each as a function that must not panic. `tests/tests/parsers.rs` and `fuzz/` go through them.

use std::path::Path;

use ctxbench_core::memory::{Durable, Scope, front_matter, merge};
use ctxbench_core::provider::{Wire, decode, decode_count_reply, decode_error, decode_reply};
use ctxbench_core::request::Ttl;
use ctxbench_core::rollout::{Rollout, records};
use ctxbench_harness::conform::Case;
use ctxbench_harness::validate::{Calibration, Options, validate};
use ctxbench_scenarios::{import, parse};
use ctxbench_strategies::aider_markdown::split_chat_history_markdown;

const WIRES: [Wire; 3] = [Wire::AnthropicMessages, Wire::OpenaiResponses, Wire::OpenaiChat];

/// A name and what it does with bytes.
pub type Door = (&'static str, fn(&[u8]));

/// All of them.
pub const DOORS: [Door; 14] = [
    ("session", |b| drop(parse(b, "x.jsonl"))),
    ("scenario", |b| drop(parse(b, "x.toml"))),
    ("claude-code", |b| recording("claude-code", b)),
    ("codex", |b| recording("codex", b)),
    ("pi", |b| recording("pi", b)),
    ("validate", |b| {
        if let Ok(r) = ctxbench_harness::validate::read(&lossy(b), "x.jsonl") {
            validate(&r, "x.jsonl", Options { lifetimes: true, ttl: Ttl::FiveMinutes }, Calibration::Auto);
        }
    }),
    ("request", |b| WIRES.iter().for_each(|w| drop(decode(*w, b)))),
    ("reply", |b| {
        WIRES.iter().for_each(|w| drop((decode_reply(*w, b), decode_error(*w, 400, b))));
        drop(decode_count_reply(b));
    }),
    ("rollout", |b| {
        let rollout = Rollout::parse(&lossy(b));
        records(&rollout.lines);
        rollout.resume(|kept, _| kept.to_vec());
    }),
    ("markdown", |b| [true, false].iter().for_each(|t| drop(split_chat_history_markdown(&lossy(b), *t)))),
    ("strategy", |b| drop(ctxbench_strategies::Spec::parse(&lossy(b)))),
    ("case", |b| drop(Case::parse(&lossy(b), "x.json"))),
    ("results", |b| drop(ctxbench_reports::parse_results(&lossy(b), Path::new("x.json")))),
    ("memory", |b| {
        let text = lossy(b);
        let (body, patterns) = front_matter(&text);
        if let Ok(scope) = Scope::new(patterns) {
            scope.holds_somewhere(body);
        }
        let items = text.lines().map(String::from).collect();
        merge(body, &[Durable { heading: "Notes".into(), items }]);
    }),
];

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn recording(format: &str, bytes: &[u8]) {
    if let Ok(importer) = import::by_name(format) {
        drop(import::import(importer, &lossy(bytes), "x.jsonl"));
    }
}
