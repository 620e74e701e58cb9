//! Invariants of every strategy in random sessions.

use crate::common::replayed::run_with;
use crate::random;

use ctxbench_core::content::Part;
use ctxbench_core::model::{self, Model};
use ctxbench_core::request::Tools;
use ctxbench_core::settings::SettingKind;
use ctxbench_mock::summarise::Summariser;
use ctxbench_provider::wire;
use ctxbench_replay::{FullReplay, Options, replay_in_full};
use ctxbench_reports::record::{FactPlace, Rule, Status};
use ctxbench_scenarios::Scenario;
use ctxbench_session::Entry;
use ctxbench_strategies::{Spec, built_in};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde_json::Value;

/// Returns every strategy, every version, and the settings that change its behaviour.
fn specs() -> Vec<Spec> {
    let mut names: Vec<String> = Vec::new();
    for d in built_in() {
        names.extend(d.versions.iter().map(|v| format!("{}@{}", d.name, v.name)));
        for s in &d.settings {
            let words: &[&str] = match s.kind {
                SettingKind::Choice(words) => words,
                SettingKind::Flag => &["true", "false"],
                _ => &[],
            };
            let reads = d.versions.iter().find(|v| s.is_read_by(v.name)).unwrap();
            let name = |w: &&str| format!("{}@{}:{}={w}", d.name, reads.name, s.name);
            names.extend(words.iter().map(name));
        }
    }
    names.iter().map(|n| Spec::parse(n).unwrap()).collect()
}

fn run(scenario: &Scenario, spec: &Spec, model: &Model) -> FullReplay {
    let options = Options { trace: true, ..Options::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(replay_in_full(scenario, spec, model, &options))
}

/// Integrity rules that a product breaks by design, with the reason. Every other violation is a
/// bug.
const BREAKS: &[(&str, Rule, &str)] = &[
    (
        "openoxide",
        Rule::RequestDropped,
        "the blueprint's window keeps a number of turns and of tokens, whatever is in them \
         (docs/sources/token-budgeting.md §3.4)",
    ),
    (
        "pi@0.14",
        Rule::RequestDropped,
        "what a compaction kept is neither summarised nor kept by the next one, and a turn may be long \
         (docs/sources/pi.md §10)",
    ),
    (
        "codex@described-002",
        Rule::Roles,
        "the note is a message of the model (docs/sources/login-bug.md §2), and where no user \
         message is left it comes first",
    ),
    (
        "codex@described-000",
        Rule::ReasoningRemoved,
        "the oldest items go one by one, reasoning before the calls it led to \
         (docs/sources/token-budgeting.md §3.4)",
    ),
    (
        "opencode",
        Rule::DanglingMarker,
        "a summary that fails leaves its marker in place (docs/sources/opencode.md §3.4)",
    ),
    (
        "opencode",
        Rule::HistoryUncut,
        "nothing shrinks the request after a failure (docs/sources/opencode.md §3.4)",
    ),
];

/// Effects of a small window. They are results and not bugs.
const RESULTS: [Rule; 3] = [Rule::OverTheWindow, Rule::CompactionLoop, Rule::LargerSummary];

/// Strategies that let the provider edit or compact the prompt, so that the billed amount differs
/// from the sent one.
const EDITED_BY_PROVIDER: [&str; 5] = [
    "openoxide@provider-side",
    "claude-code-api",
    "claude-code:microcompact=cache-edits",
    "anthropic-sdk@2.12:edits=clear_tool_uses",
    "anthropic-sdk@2.12:edits=compact",
];

/// Strategies that offer their own tool.
const OWN_TOOL: [&str; 1] = ["claude-code-api:memory=true"];

const MODELS: [&str; 3] = ["claude-sonnet-4-6", "gpt-5.1", "gpt-4.1"];

fn texts(whole: &FullReplay) -> String {
    let part = |p: &Part| match p {
        Part::Text(t) => t.to_string(),
        Part::Result { output, .. } => output.to_string(),
        _ => String::new(),
    };
    whole.history.messages().iter().flat_map(|m| m.parts.iter()).map(part).collect()
}

/// Returns the answered requests as (billed input tokens, tokens of the shown items, those of the
/// reasoning of earlier turns among them, offered tools).
fn billed(whole: &FullReplay) -> Vec<(u64, u64, u64, bool)> {
    let mut before: Vec<Value> = Vec::new();
    let lines = whole.replayed.trace.iter().map(|l| {
        let mut line: Value = serde_json::from_str(l).unwrap();
        before.truncate(line["same"].as_u64().unwrap_or_default() as usize);
        before.extend(line["items"].as_array().unwrap().iter().cloned());
        line["items"] = before.clone().into();
        line
    });
    let tokens = |i: &Value| i["tokens"].as_u64().unwrap();
    let shown = |v: &Value| v["items"].as_array().unwrap().iter().map(tokens).sum();
    let reasoning = |v: &Value| {
        let items = v["items"].as_array().unwrap();
        // A turn begins where the user writes without a result of a tool next to it.
        let (mut at, mut newest) = (0, 0);
        for run in items.chunk_by(|a, b| (a["role"] == "assistant") == (b["role"] == "assistant")) {
            let by_user = run.iter().any(|i| i["role"] == "user");
            if by_user && run.iter().all(|i| i["kind"] != "output") {
                newest = at;
            }
            at += run.len();
        }
        items[..newest].iter().filter(|i| i["kind"] == "reasoning").map(tokens).sum()
    };
    lines
        .filter(|v| v["status"] == "ok")
        .map(|v| {
            let offers = v["tools_tokens"] != 0;
            (v["input_tokens"].as_u64().unwrap(), shown(&v), reasoning(&v), offers)
        })
        .collect()
}

fn holds(scenario: &Scenario, spec: &Spec, model: &Model) -> Result<(), TestCaseError> {
    if spec.unfit(model).is_some() {
        return Ok(());
    }
    let label = spec.label();
    let whole = run(scenario, spec, model);
    let record = &whole.replayed.record;
    prop_assert!(record.status != Status::Error, "{label}: {:?}", record.error);
    for f in &record.integrity {
        let known = BREAKS.iter().any(|(who, rule, _)| {
            *rule == f.rule && (label == *who || spec.descriptor.name == *who)
        });
        prop_assert!(known || RESULTS.contains(&f.rule), "{label} on {}: {f:?}", model.name);
    }
    // Recorded messages are kept, regardless of the view.
    if record.status == Status::Completed {
        let said = texts(&whole);
        for f in &scenario.session.facts {
            prop_assert!(
                f.tokens.iter().all(|t| said.contains(t)),
                "{label}: {} is not in the history",
                f.id
            );
        }
    }
    // Billed tokens equal the shown ones.
    let definitions = scenario.session.entries.iter().find_map(|e| match e {
        Entry::Tools { definitions, .. } => Some(definitions),
        _ => None,
    });
    let tools = Tools::new(&wire::for_model(model).tool_definitions(definitions.unwrap()))
        .unwrap()
        .tokens(&model.counting);
    let edited = EDITED_BY_PROVIDER.iter().any(|who| label == *who || spec.descriptor.name == *who);
    for (at, (input, items, reasoning, offers)) in billed(&whole).into_iter().enumerate() {
        // Some models leave out the reasoning of earlier turns.
        let left_out = if model.keeps_thinking { 0 } else { reasoning };
        let sent = items + if offers { tools } else { 0 } - left_out;
        // An agent with its own tool sends more than the session's tools.
        let fits = input == sent || (OWN_TOOL.contains(&&*label) && input > sent) || edited;
        prop_assert!(fits, "{label}: request {at} shows {sent} tokens and bills {input}");
    }
    Ok(())
}

/// Number of random sessions per property. The nightly job sets `CTXBENCH_CASES`.
fn cases() -> u32 {
    std::env::var("CTXBENCH_CASES").map_or(3, |n| n.parse().expect("CTXBENCH_CASES is a number"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, rng_seed: RngSeed::Fixed(20_260_101), ..ProptestConfig::default() })]

    #[test]
    fn every_strategy_keeps_pairs_roles_history_and_accounts(plan in random::plan(9), model in 0..MODELS.len()) {
        let scenario = plan.scenario();
        let model = model::find(MODELS[model]).unwrap();
        for spec in specs() {
            holds(&scenario, &spec, model)?;
        }
    }

    #[test]
    fn a_restated_fact_that_was_not_visible_never_counts(plan in random::plan(6), ideal in any::<bool>()) {
        let scenario = plan.scenario_of_ghosts();
        let summariser = if ideal { Summariser::Ideal } else { Summariser::Extractive };
        for d in built_in() {
            let options = Options { summariser: summariser.clone(), ..Options::default() };
            for f in &run_with(MODELS[0], &scenario, d.name, &options).facts {
                prop_assert!(f.place == FactPlace::Nowhere, "{}: {f:?} was never visible and \
                    counts", d.name);
            }
        }
    }

    /// After any sequence of messages, pruning, compactions, clears and rewinds, and any number of
    /// restarts, our store returns the context that the engine shows.
    #[test]
    fn a_reopened_store_shows_what_the_engine_shows(plan in random::plan(9)) {
        let mut scenario = plan.scenario();
        scenario.session.entries.push(Entry::Restart);
        let is_restart = |e: &&Entry| matches!(e, Entry::Restart);
        let restarts = scenario.session.entries.iter().filter(is_restart).count();
        let model = model::find(MODELS[0]).unwrap();
        for name in ["reference", "none", "keep-nothing", "sliding-window", "observation-masking", "openoxide"] {
            let record = run(&scenario, &Spec::parse(name).unwrap(), model).replayed.record;
            let stored: Vec<_> = record.resume.iter().filter_map(|r| r.file.as_ref()).filter(|f| f.format == "ctxbench-store").collect();
            // A run that stops early has fewer restarts.
            let all = stored.len() == restarts;
            prop_assert_eq!(all, record.status == Status::Completed, "{}: \
                {:?}", name, record.resume);
            for f in stored {
                prop_assert!(f.context_equal && f.lost + f.garbled + f.surplus == 0, "{name}: \
                    {f:?}");
            }
        }
    }

    #[test]
    fn the_same_session_gives_the_same_bytes(plan in random::plan(6), which in any::<prop::sample::Index>()) {
        let scenario = plan.scenario();
        let specs = specs();
        let spec = which.get(&specs);
        let model = model::find(MODELS[0]).unwrap();
        let (a, b) = (run(&scenario, spec, model), run(&scenario, spec, model));
        prop_assert_eq!(a.replayed.trace, b.replayed.trace);
        prop_assert_eq!(serde_json::to_string(&a.replayed.record).unwrap(), serde_json::to_string(&b.replayed.record).unwrap());
    }
}

#[test]
fn every_exception_names_a_strategy() {
    for (who, _, why) in BREAKS {
        assert!(Spec::parse(who).is_ok() && !why.is_empty(), "{who}");
    }
}
