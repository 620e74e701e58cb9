//! Effort and effect of every strategy: the cost of its replays, and the tokens and facts that it
//! saved and kept in the same sessions; then a whole replay per scenario and strategy.
//!
//! Token counts are cached per text in a process, so after the first round the timings are those of
//! the engine, the strategy, the provider model and the measurements. `growth` measures both.

#![allow(missing_docs)]

use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, SamplingMode, criterion_group, criterion_main};
use ctxbench_benches::{Mode, busy_session, per_second, replay, table};
use ctxbench_replay::with_savings;
use ctxbench_reports::record::RunRecord;
use ctxbench_scenarios::{Scenario, builtin};
use ctxbench_strategies::Spec;
use peak_alloc::PeakAlloc;

/// Counts allocations, for the memory of a replay.
#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

/// Number of turns of the shortest session of the table.
const TURNS: usize = 24;
const TIMES: [usize; 3] = [1, 4, 16];
/// Scale of its sessions. It gives a window of 20k tokens, so that each length has compactions.
const SCALE: f64 = 0.1;
/// Seed of their texts, the same for every strategy.
const SEED: u64 = 11;

fn scenarios() -> [Scenario; 2] {
    let by_id = |id| builtin::by_id(id).expect("a built-in scenario loads");
    ["login-bug", "login-bug-tight"].map(by_id)
}

/// A replay with its time and memory.
struct MeasuredRun {
    record: RunRecord,
    took: Duration,
    /// Peak memory of the replay in bytes, in addition to the memory used before.
    memory: usize,
}

fn measured(scenario: &Scenario, spec: &Spec, rounds: usize) -> MeasuredRun {
    let mut best: Option<MeasuredRun> = None;
    for _ in 0..rounds {
        let before = ALLOCATED.current_usage();
        ALLOCATED.reset_peak_usage();
        let begin = Instant::now();
        let record = replay(scenario, spec, None);
        let took = begin.elapsed();
        let memory = ALLOCATED.peak_usage().saturating_sub(before);
        best = Some(match best {
            Some(b) if b.took <= took => MeasuredRun { memory: b.memory.min(memory), ..b },
            _ => MeasuredRun { record, took, memory },
        });
    }
    best.expect("at least one round")
}

/// Prints a comparison of all strategies on sessions of growing length: effort on the left and
/// effect on the right, from the same replays. The effect is that on the longest session.
fn print_comparison(specs: &[Spec], mode: Mode) {
    let (times, rounds) = if mode == Mode::Smoke { (&TIMES[..2], 1) } else { (&TIMES[..], 3) };
    let sessions: Vec<Scenario> =
        times.iter().map(|n| Scenario { scale: SCALE, ..busy_session(n * TURNS, SEED) }).collect();
    // Counts every text before the first measurement.
    sessions.iter().for_each(|s| drop(replay(s, &specs[0], None)));
    let runs: Vec<Vec<MeasuredRun>> = sessions
        .iter()
        .map(|s| specs.iter().map(|spec| measured(s, spec, rounds)).collect())
        .collect();
    let longest = runs.last().expect("there are lengths");
    let effects = with_savings(longest.iter().map(|r| r.record.clone()).collect());
    let rows: Vec<Vec<String>> = specs
        .iter()
        .enumerate()
        .map(|(i, spec)| {
            let mut row = vec![spec.label()];
            let last = &longest[i];
            row.push(per_second(last.record.summary.input_tokens, last.took));
            row.extend(runs.iter().map(|of_length| per_step(&of_length[i])));
            row.push(format!("{:.1}", last.memory as f64 / (1 << 20) as f64));
            row.extend(effect(&effects[i]));
            row
        })
        .collect();
    let lengths: Vec<String> = times.iter().map(|n| format!("µs/step {n}×")).collect();
    let mut head = vec!["strategy", "M tokens/s"];
    head.extend(lengths.iter().map(String::as_str));
    head.push("MiB");
    head.extend(EFFECTS);
    let title = format!(
        "effort and effect: {TURNS} turns of about 900 tokens = 1×, a window of 20k; tokens per \
         second, memory and effect at {}×",
        times[times.len() - 1]
    );
    println!("{}", table(&title, &head, &rows));
}

/// Formats the time per completed step.
fn per_step(run: &MeasuredRun) -> String {
    let steps = run.record.summary.steps_completed.max(1);
    format!("{:.0}", run.took.as_secs_f64() * 1e6 / steps as f64)
}

const EFFECTS: [&str; 7] =
    ["status", "requests", "compactions", "saved %", "$", "prefix stability", "needs kept %"];

/// Formats savings, stability and retention.
fn effect(r: &RunRecord) -> Vec<String> {
    let s = &r.summary;
    let per_cent = |v: Option<f64>| v.map_or("n/a".to_string(), |v| format!("{v:.1}"));
    vec![
        r.status.word().to_string(),
        s.requests.to_string(),
        s.compactions.to_string(),
        per_cent(s.saved_pct),
        format!("{:.3}", s.cost_usd),
        s.prefix_stability.map_or("n/a".to_string(), |v| format!("{v:.3}")),
        per_cent(s.needs_kept_pct),
    ]
}

fn strategies(c: &mut Criterion) {
    let specs = Spec::defaults();
    match Mode::of_args() {
        Mode::List => {}
        mode => print_comparison(&specs, mode),
    }
    for scenario in scenarios() {
        let mut group = c.benchmark_group(&scenario.id);
        group.sampling_mode(SamplingMode::Flat);
        for spec in &specs {
            group.bench_function(BenchmarkId::from_parameter(spec.label()), |b| {
                b.iter(|| replay(&scenario, spec, None))
            });
        }
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(500))
        .nresamples(2_000);
    targets = strategies
}
criterion_main!(benches);
