//! Time and memory of every strategy on sessions of 1, 4 and 16 times the length. They should be
//! proportional: the slope is that of a line through the logarithms of lengths and times, 1 if they
//! are in proportion and 2 if the time is quadratic.
//!
//! Token counts are cached per text in a process, so the times are those of the engine, the strategy,
//! the provider model and the measurements.

use std::time::Instant;

use ctxbench_benches::{model, session};
use ctxbench_replay::{Options, replay};
use ctxbench_reports::text_table;
use ctxbench_scenarios::Scenario;
use ctxbench_strategies::Spec;
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
    let sessions: Vec<Scenario> =
        times.iter().map(|n| Scenario { scale: SCALE, ..session(n * TURNS, 11) }).collect();
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
