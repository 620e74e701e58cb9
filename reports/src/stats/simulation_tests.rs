//! Tests intervals and verdicts on synthetic sessions with a known truth: coverage of a 95 %
//! interval, and rate of verdicts without a difference. Seeded. Runs the code of the reports with
//! fewer draws.

use std::f64::consts::TAU;

use ctxbench_util::rng::SplitMix64;

use super::bootstrap::interval;
use super::verdict::{self, Sample, Verdict, judge};
use super::{PLAN, Sampling};
use crate::metrics::Better;

const TRIALS: usize = 2_000;

/// Three standard deviations of a share of 5 % in [`TRIALS`] trials.
const SLACK: f64 = 0.015;

pub(crate) struct SampleSource(pub(crate) SplitMix64);

impl SampleSource {
    fn uniform(&mut self) -> f64 {
        ((self.0.bits() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    pub(crate) fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (TAU * self.uniform()).cos()
    }
}

type Draw = fn(&mut SampleSource) -> f64;

/// Name, distribution of a difference, and its true mean.
const SHAPES: [(&str, Draw, f64); 4] = [
    ("normal", |s| 0.3 + s.normal(), 0.3),
    ("exponential", |s| -s.uniform().ln(), 1.0),
    // Half of the sessions never approach a compaction.
    ("half zero", |s| if s.uniform() < 0.5 { 0.0 } else { -s.uniform().ln() }, 0.5),
    // e^z: mean √e. As skewed as session sizes: the largest of ten is a third of their sum.
    ("log-normal", |s| s.normal().exp(), 1.648_721_270_700_128),
];

/// Share of the intervals that contain the true mean, and share of the trials with an interval.
fn coverage(draw: Draw, truth: f64, n: usize) -> (f64, f64) {
    let plan = Sampling { resamples: 399, ..PLAN };
    let mut source = SampleSource(SplitMix64::named("coverage"));
    let (mut shown, mut covered) = (0, 0);
    for _ in 0..TRIALS {
        let differences: Vec<f64> = (0..n).map(|_| draw(&mut source)).collect();
        if let Some(found) = interval(&differences, &plan) {
            shown += 1;
            covered += usize::from(found.low <= truth && truth <= found.high);
        }
    }
    (covered as f64 / shown.max(1) as f64, shown as f64 / TRIALS as f64)
}

#[test]
#[ignore = "nightly: slow"]
fn shown_intervals_cover_what_they_promise() {
    // Minimum coverage for (n, shape); results of 2,000 trials vary by 1.5 points. The deficit
    // comes from tails that eight sessions lack.
    let floors: [(usize, [f64; 4]); 3] = [
        (8, [0.93, 0.915, 0.91, 0.87]),
        (10, [0.935, 0.92, 0.93, 0.885]),
        (30, [0.935, 0.935, 0.935, 0.905]),
    ];
    for (n, floors) in floors {
        for ((name, draw, truth), floor) in SHAPES.into_iter().zip(floors) {
            let (covered, shown) = coverage(draw, truth, n);
            println!(
                "n = {n}, {name}: {:.1} % covered, {:.1} % shown",
                covered * 100.0,
                shown * 100.0
            );
            assert!((floor..=0.985).contains(&covered), "n = {n}, {name}: {covered} covered");
            assert!(shown > 0.99, "n = {n}, {name}: {shown} shown");
        }
    }
}

/// Share of trials in which any of eight strategies gets a verdict, and share for the first one.
///
/// A common part of each session moves all strategies; `one` draws the own part of a difference;
/// `effect` is added to the first strategy.
fn verdicts(one: Draw, effect: f64, n: usize) -> (f64, f64) {
    let plan = Sampling { draws: 999, resamples: 399, ..PLAN };
    let mut source = SampleSource(SplitMix64::named("verdicts"));
    let (mut any, mut first) = (0, 0);
    for _ in 0..TRIALS {
        let shared: Vec<f64> = (0..n).map(|_| one(&mut source)).collect();
        let strategies: Vec<Sample> = (0..8)
            .map(|k| {
                let own = |s: &f64| 0.5 * s + one(&mut source) + if k == 0 { effect } else { 0.0 };
                Sample::exposed(shared.iter().map(own).collect(), &plan)
            })
            .collect();
        let said: Vec<bool> = judge(&strategies, Better::Lower, 0, &plan)
            .iter()
            .map(|j| matches!(j.verdict, Verdict::Better | Verdict::Worse))
            .collect();
        any += usize::from(said.contains(&true));
        first += usize::from(said[0]);
    }
    (any as f64 / TRIALS as f64, first as f64 / TRIALS as f64)
}

#[test]
#[ignore = "nightly: slow"]
fn false_verdicts_stay_below_five_per_cent_of_families() {
    for n in [3, 5, 10, 30] {
        // Symmetric, as the test assumes. Heavy tails (a normal times a log-normal size) are
        // symmetric too.
        for (name, one) in
            [("normal", (|s| s.normal()) as Draw), ("heavy", |s| s.normal() * s.normal().exp())]
        {
            let (any, _) = verdicts(one, 0.0, n);
            println!("n = {n}, {name}: false verdicts in {:.1} % of families", any * 100.0);
            let most = if n < verdict::MIN_SESSIONS { 0.0 } else { verdict::ALPHA + SLACK };
            assert!(any <= most, "n = {n}, {name}: {any}");
        }
    }
}

#[test]
#[ignore = "nightly: slow"]
fn skew_about_a_mean_of_zero_costs_what_the_method_page_says() {
    // Not a null hypothesis of the test: rare large differences make the mean 0 and are often
    // missing. One in eight families at ten sessions.
    for (n, most) in [(10, 0.15), (30, 0.12)] {
        let (any, _) = verdicts(|s| -s.uniform().ln() - 1.0, 0.0, n);
        println!("n = {n}, exponential − 1: false verdicts in {:.1} % of families", any * 100.0);
        assert!(any <= most, "n = {n}: {any}");
    }
}

#[test]
#[ignore = "nightly: slow"]
fn real_differences_are_found() {
    // Effects of 2 and 1 if the difference of a session varies by √1.25 = 1.12.
    for (n, effect, least) in [(10, -2.0, 0.8), (30, -1.0, 0.8)] {
        let (_, first) = verdicts(|s| s.normal(), effect, n);
        println!("n = {n}, effect {effect}: found in {:.1} %", first * 100.0);
        assert!(first > least, "n = {n}: {first}");
    }
    assert_eq!(verdicts(|s| s.normal(), -5.0, 9).1, 0.0, "nine sessions decide nothing");
}
