//! Time and memory of every strategy on sessions of 1, 4 and 16 times the length. They should be
//! proportional: the slope is that of a line through the logarithms of lengths and times, 1 if they
//! are in proportion and 2 if the time is quadratic.
//!
//! Token counts are cached per text in a process, so the times are those of the engine, the strategy,
//! the provider model and the measurements.

#![allow(missing_docs)]

use std::time::Instant;

use ctxbench_core::content::ToolCall;
use ctxbench_core::model::{self, DEFAULT_MODEL};
use ctxbench_replay::{Options, replay};
use ctxbench_reports::text_table;
use ctxbench_scenarios::Scenario;
use ctxbench_session::fact::{Fact, FactKind};
use ctxbench_session::{AssistantEntry, Entry, Header, Session, ToolEntry, UserEntry};
use ctxbench_strategies::Spec;
use ctxbench_util::rng::SplitMix64;
use peak_alloc::PeakAlloc;

/// Counts allocations, for the memory of a replay.
#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

/// Number of turns of the shortest session.
const TURNS: usize = 24;
const TIMES: [usize; 3] = [1, 4, 16];
/// Gives a window of 20k tokens, so that each length has compactions.
const SCALE: f64 = 0.1;
const ROUNDS: usize = 3;

/// Number of turns between the turn in which a fact arises and the turn that needs it.
const LATER: usize = 8;

const WORDS: [&str; 12] = [
    "session", "token", "expires", "before", "clock", "server", "limit", "cookie", "login",
    "retry", "page", "older",
];

/// Generates a text of `bytes` bytes or a little more. Numbers in it make every line another one.
fn text(random: &mut SplitMix64, bytes: usize) -> String {
    let mut out = String::new();
    while out.len() < bytes {
        let words: Vec<&str> = (0..8).map(|_| WORDS[random.below(12) as usize]).collect();
        out += &format!("{} {}.\n", words.join(" "), random.below(100_000));
    }
    out
}

/// Generates a session with a question, a call with its result, and an answer in each turn. A fact
/// arises in each turn and is needed eight turns later, so the number of facts grows with the length.
fn session(turns: usize) -> Scenario {
    let random = &mut SplitMix64::new(11);
    let mut entries = vec![Entry::System { text: text(random, 4_000), agent: None }];
    let mut facts = Vec::new();
    for n in 0..turns {
        let said = |id: String, calls, text: String| {
            Entry::Assistant(AssistantEntry {
                id,
                calls,
                text: Some(text.into()),
                ..Default::default()
            })
        };
        let row = format!("ROW-{n}");
        let question = format!("{} It is about {row}.", text(random, 300)).into();
        entries.push(Entry::User(UserEntry {
            id: format!("u{n}"),
            text: Some(question),
            ..Default::default()
        }));
        let path = format!(r#"{{"path":"src/file_{n}.ts"}}"#);
        let call = ToolCall::new(format!("c{n}"), "read_file", path);
        entries.push(said(format!("a{n}"), vec![call], text(random, 200)));
        entries.push(Entry::Tool(ToolEntry {
            call_id: format!("c{n}"),
            output: Some(text(random, 2_400).into()),
            ..Default::default()
        }));
        entries.push(said(format!("b{n}"), vec![], text(random, 500)));
        let needs = vec![format!("b{}", (n + LATER).min(turns - 1))];
        let fact = Fact::new(format!("row{n}"), FactKind::Value, row, format!("u{n}"));
        facts.push(Fact { needs, ..fact });
    }
    let id = format!("{turns}-turns");
    let header = Header { version: 1, id: id.clone(), ..Default::default() };
    let session = Session { header, entries, facts };
    Scenario { id, scale: SCALE, session, ..Default::default() }
}

/// Replays a session. Returns the time in ms and the additional peak memory in MiB.
fn measured(scenario: &Scenario, spec: &Spec) -> (f64, f64) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let before = ALLOCATED.current_usage();
    ALLOCATED.reset_peak_usage();
    let begin = Instant::now();
    let options = Options::default();
    let model = model::find(DEFAULT_MODEL).expect("the default model is in the catalogue");
    let one = replay(scenario, spec, model, &options);
    std::hint::black_box(runtime.expect("a runtime of one thread needs nothing").block_on(one));
    let ms = begin.elapsed().as_secs_f64() * 1e3;
    (ms, ALLOCATED.peak_usage().saturating_sub(before) as f64 / (1 << 20) as f64)
}

/// Returns the slope of the line through the logarithms of lengths and times, by least squares.
fn slope(times: &[usize], ms: &[f64]) -> f64 {
    let x: Vec<f64> = times.iter().map(|t| (*t as f64).ln()).collect();
    let y: Vec<f64> = ms.iter().map(|ms| ms.ln()).collect();
    let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
    let (mean_x, mean_y) = (mean(&x), mean(&y));
    let both: f64 = x.iter().zip(&y).map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    both / x.iter().map(|x| (x - mean_x).powi(2)).sum::<f64>()
}

fn main() {
    let has = |name: &str| std::env::args().any(|a| a == name);
    if has("--list") {
        return;
    }
    let (times, rounds) = if has("--test") { (&TIMES[..2], 1) } else { (&TIMES[..], ROUNDS) };
    let sessions: Vec<Scenario> = times.iter().map(|n| session(n * TURNS)).collect();
    let specs = Spec::defaults();
    // Counts every text before the first measurement.
    for session in &sessions {
        measured(session, &specs[0]);
    }
    let row = |spec: &Spec| -> Vec<String> {
        let best = |s: &Scenario| {
            let all = (0..rounds).map(|_| measured(s, spec));
            all.fold((f64::MAX, f64::MAX), |a, b| (a.0.min(b.0), a.1.min(b.1)))
        };
        let (ms, memory): (Vec<f64>, Vec<f64>) = sessions.iter().map(best).unzip();
        let figures = ms.iter().chain(memory.last()).map(|v| format!("{v:.1}"));
        let slope = format!("{:.2}", slope(times, &ms));
        [spec.label()].into_iter().chain(figures).chain([slope]).collect()
    };
    let lengths = times.iter().map(|n| format!("ms {n}×"));
    let head = ["strategy".to_string()].into_iter().chain(lengths);
    let head: Vec<String> = head.chain(["MiB".into(), "slope".into()]).collect();
    let rows: Vec<Vec<String>> = specs.iter().map(row).collect();
    let lines = text_table(head, rows, |i| i > 0, |_| (2, 0));
    println!("{TURNS} turns of about 900 tokens = 1×, a window of 20k\n{}", lines.join("\n"));
}
