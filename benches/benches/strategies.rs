//! A whole replay per scenario and strategy, with what came out of it.
//!
//! Token counts are remembered per text in a process, so after the first round the timings are
//! those of the engine, the strategy, the provider model and the measurements. `growth` has both.

#![allow(missing_docs)]

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, SamplingMode, criterion_group, criterion_main};
use ctxbench_benches::{Mode, cut, replay, table};
use ctxbench_harness::replay::with_savings;
use ctxbench_scenarios::{Scenario, builtin};
use ctxbench_strategies::Spec;

/// User messages of the marathon that are replayed.
const MARATHON_TURNS: usize = 40;

fn scenarios() -> Vec<Scenario> {
    let by_id = |id| builtin::by_id(id).expect("a built-in scenario loads");
    vec![
        by_id("login-bug"),
        by_id("login-bug-tight"),
        cut(by_id("login-bug-marathon"), MARATHON_TURNS),
    ]
}

/// Savings, stability and retention of every strategy.
fn print_outcomes(scenario: &Scenario, specs: &[Spec]) {
    let records = with_savings(specs.iter().map(|s| replay(scenario, s, None)).collect());
    let per_cent = |v: Option<f64>| v.map_or("n/a".to_string(), |v| format!("{v:.1}"));
    let rows: Vec<Vec<String>> = records
        .iter()
        .map(|r| {
            let s = &r.summary;
            vec![
                r.strategy.label.clone(),
                format!("{:?}", r.status).to_lowercase(),
                s.requests.to_string(),
                s.compactions.to_string(),
                per_cent(s.saved_pct),
                s.prefix_stability.map_or("n/a".to_string(), |v| format!("{v:.3}")),
                per_cent(s.retention_pct),
            ]
        })
        .collect();
    let head = [
        "strategy",
        "status",
        "requests",
        "compactions",
        "saved %",
        "prefix stability",
        "retention %",
    ];
    print!("{}", table(&format!("{}: what the replays below measure", scenario.id), &head, &rows));
}

fn strategies(c: &mut Criterion) {
    let specs = Spec::defaults();
    for scenario in scenarios() {
        if Mode::of_args() != Mode::List {
            print_outcomes(&scenario, &specs);
            println!();
        }
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
