//! Time and memory of every strategy on sessions of 1, 4 and 16 times the length, and of two strategies
//! on sessions that repeat something else than turns. They should be proportional: the slope is that
//! of a line through the logarithms of lengths and times, 1 if they are in proportion and 2 if the
//! time is quadratic.
//!
//! Token counts are cached per text in a process, so the times are those of the engine, the strategy,
//! the provider model and the measurements.

use std::time::Instant;

use ctxbench_benches::{Repeated, model, session};
use ctxbench_replay::{Options, replay};
use ctxbench_reports::text_table;
use ctxbench_scenarios::Scenario;
use ctxbench_strategies::Spec;
use peak_alloc::PeakAlloc;

/// Counts allocations, for the memory of a replay.
#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

/// Number of turns of the shortest session, and of what other sessions repeat.
const TURNS: usize = 24;
const REPEATED: usize = 60;
const TIMES: [usize; 3] = [1, 4, 16];
/// Gives a window of 20k tokens, so that each length has compactions.
const SCALE: f64 = 0.1;
const ROUNDS: usize = 3;

/// Replays a session. Returns the time in ms and the additional peak memory in MiB.
fn measured(scenario: &Scenario, spec: &Spec) -> (f64, f64) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let before = ALLOCATED.current_usage();
    ALLOCATED.reset_peak_usage();
    let begin = Instant::now();
    let options = Options::default();
    let one = replay(scenario, spec, model(), &options);
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
    let specs = Spec::defaults();
    let of_turns = |n: &usize| Scenario { scale: SCALE, ..session(n * TURNS, 11) };
    let turns: Vec<Scenario> = times.iter().map(of_turns).collect();
    let mut all: Vec<(&str, &Spec, &[Scenario])> =
        specs.iter().map(|spec| ("turns", spec, &turns[..])).collect();
    let repeated = Repeated::ALL.map(|r| {
        let sessions: Vec<Scenario> = times.iter().map(|n| r.session(n * REPEATED)).collect();
        (format!("{r:?}").to_lowercase(), sessions)
    });
    for (what, sessions) in &repeated {
        let chosen = specs.iter().filter(|s| ["reference", "codex"].contains(&&*s.label()));
        all.extend(chosen.map(|spec| (&**what, spec, &sessions[..])));
    }
    // Counts every text before the first measurement.
    for session in turns.iter().chain(repeated.iter().flat_map(|(_, sessions)| sessions)) {
        measured(session, &specs[0]);
    }
    let row = |(what, spec, sessions): (&str, &Spec, &[Scenario])| -> Vec<String> {
        let best = |s: &Scenario| {
            let all = (0..rounds).map(|_| measured(s, spec));
            all.fold((f64::MAX, f64::MAX), |a, b| (a.0.min(b.0), a.1.min(b.1)))
        };
        let (ms, memory): (Vec<f64>, Vec<f64>) = sessions.iter().map(best).unzip();
        let figures = ms.iter().chain(memory.last()).map(|v| format!("{v:.1}"));
        let slope = format!("{:.2}", slope(times, &ms));
        [what.to_string(), spec.label()].into_iter().chain(figures).chain([slope]).collect()
    };
    let lengths = times.iter().map(|n| format!("ms {n}×"));
    let head = ["session", "strategy"].map(String::from).into_iter().chain(lengths);
    let head: Vec<String> = head.chain(["MiB".into(), "slope".into()]).collect();
    let rows: Vec<Vec<String>> = all.into_iter().map(row).collect();
    let lines = text_table(head, rows, |i| i > 1, |_| (2, 0));
    println!(
        "{TURNS} turns of about 900 tokens, a window of 20k, or {REPEATED} of the others = 1×\n{}",
        lines.join("\n")
    );
}
