//! Cost of sessions of 1, 4, 16 and 64 times the length. It should be proportional: four times the
//! turns should take four times as long. The slope is that of a line through the logarithms of
//! lengths and times: 1 is proportional, 2 is quadratic.

#![allow(missing_docs)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use ctxbench_benches::{HUGE_WINDOW, Mode, blocks, busy_session, replay, session, spec, table};
use ctxbench_core::context::Context;
use ctxbench_scenarios::Scenario;

/// Number of turns of the shortest session.
const TURNS: usize = 24;
const TIMES: [usize; 4] = [1, 4, 16, 64];
/// Scale for the products. It gives a window of 20k tokens, so that each length has compactions.
const SCALE: f64 = 0.1;

/// A strategy and the kind of session that it runs.
struct Contestant {
    name: &'static str,
    window: Option<u64>,
    scale: f64,
    /// Whether each turn adds a fact. Otherwise the session has eight facts.
    busy: bool,
}

const MEMBERS: [Contestant; 5] = [
    Contestant { name: "none", window: Some(HUGE_WINDOW), scale: 1.0, busy: false },
    Contestant { name: "codex", window: None, scale: SCALE, busy: false },
    Contestant { name: "opencode", window: None, scale: SCALE, busy: false },
    Contestant { name: "claude-code", window: None, scale: SCALE, busy: false },
    Contestant { name: "claude-code", window: None, scale: SCALE, busy: true },
];

impl Contestant {
    fn title(&self) -> String {
        format!("{}{}", self.name, if self.busy { ", a fact per turn" } else { "" })
    }
}

/// Creates a session with new texts.
fn fresh(turns: usize, member: &Contestant) -> Scenario {
    static SEED: AtomicU64 = AtomicU64::new(1);
    let seed = SEED.fetch_add(1, Ordering::Relaxed);
    let made = if member.busy { busy_session(turns, seed) } else { session(turns, seed) };
    Scenario { scale: member.scale, ..made }
}

fn time(scenario: &Scenario, member: &Contestant) -> Duration {
    let spec = spec(member.name);
    let begin = Instant::now();
    std::hint::black_box(replay(scenario, &spec, member.window));
    begin.elapsed()
}

/// Returns the fastest of some rounds, with new texts and once more with all counts cached.
fn fastest(turns: usize, member: &Contestant, rounds: usize) -> (Duration, Duration) {
    let mut best = (Duration::MAX, Duration::MAX);
    for _ in 0..rounds {
        let scenario = fresh(turns, member);
        best.0 = best.0.min(time(&scenario, member));
        best.1 = best.1.min(time(&scenario, member));
    }
    best
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

fn print_ratios(mode: Mode) {
    let (times, rounds) = if mode == Mode::Smoke { (&TIMES[..2], 1) } else { (&TIMES[..], 3) };
    // Loads the vocabulary, so that the first row does not include the time for it.
    time(&fresh(1, &MEMBERS[0]), &MEMBERS[0]);
    let mut rows = Vec::new();
    for member in &MEMBERS {
        let took: Vec<_> = times.iter().map(|n| fastest(n * TURNS, member, rounds)).collect();
        let compactions: Vec<String> = times
            .iter()
            .map(|n| {
                replay(&fresh(n * TURNS, member), &spec(member.name), member.window)
                    .summary
                    .compactions
                    .to_string()
            })
            .collect();
        let new: Vec<f64> = took.iter().map(|t| t.0.as_secs_f64() * 1e3).collect();
        let known: Vec<f64> = took.iter().map(|t| t.1.as_secs_f64() * 1e3).collect();
        for (texts, ms) in [("new", new), ("known", known)] {
            let mut row = vec![member.title(), texts.to_string(), compactions.join("/")];
            row.extend(ms.iter().map(|v| format!("{v:.1}")));
            row.extend(ms.windows(2).map(|w| format!("{:.2}", w[1] / w[0])));
            row.push(format!("{:.2}", slope(times, &ms)));
            rows.push(row);
        }
    }
    let mut head = vec!["strategy".to_string(), "texts".to_string(), "compactions".to_string()];
    head.extend(times.iter().map(|n| format!("{n}× ms")));
    head.extend(times.windows(2).map(|w| format!("{}×/{}×", w[1], w[0])));
    head.push("slope".into());
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let title =
        format!("growth of a replay, {TURNS} turns of about 900 tokens = 1×; 4.00 = in proportion");
    println!("{}", table(&title, &head, &rows));
}

fn sessions(_: &mut Criterion) {
    match Mode::of_args() {
        Mode::List => {}
        mode => print_ratios(mode),
    }
}

/// Measures appending one turn of new texts to a context of some length, and counting the tokens.
fn append(c: &mut Criterion) {
    let mut group = c.benchmark_group("append-a-turn");
    for times in TIMES[..3].iter().copied() {
        let mut context = Context::default();
        blocks(0, times * TURNS, 0).into_iter().for_each(|b| context.push(b));
        let mut seed = 0;
        group.bench_function(BenchmarkId::from_parameter(format!("{times}x")), |b| {
            b.iter_batched(
                || {
                    seed += 1;
                    // A copy has no spare capacity. Add one block first, so that copying the list
                    // is not measured.
                    let mut copy = context.clone();
                    blocks(999, 1_000, 0).into_iter().take(1).for_each(|b| copy.push(b));
                    (copy, blocks(1_000, 1_001, seed << 8 | times as u64))
                },
                |(mut context, turn)| {
                    turn.into_iter().for_each(|b| context.push(b));
                    let tokens = context.tokens();
                    (context, tokens)
                },
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(500))
        .nresamples(2_000);
    targets = sessions, append
}
criterion_main!(benches);
