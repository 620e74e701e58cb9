use super::splits::{Field, SPLITS, splits};
use super::*;
use crate::sample;
use crate::stats::simulation::Source;
use ctxbench_core::rng::SplitMix64;

fn run(session: usize, label: &str, cost: f64, kept: f64) -> RunRecord {
    let mut r = RunRecord { model: "m".into(), status: Status::Completed, ..RunRecord::default() };
    r.scenario.id = format!("s{session:02}");
    r.scenario.recorded = true;
    r.strategy.label = label.into();
    r.strategy.name = label.into();
    r.summary.compactions = 1;
    (r.summary.cost_usd, r.summary.needs_kept_pct) = (cost, Some(kept));
    r
}

fn results(runs: Vec<RunRecord>) -> Results {
    Results { runs, ..Results::default() }
}

fn ask(results: &Results, by: &str, min: &[&str], max: &[&str]) -> Answer {
    let question = Question::new(by, min, max).unwrap();
    let mut all = best(results, &question);
    assert_eq!(all.len(), 1);
    all.remove(0)
}

/// Cheap keeps 80 %, good 95 %, and dear keeps the same for more.
fn clear(sessions: usize) -> Results {
    let rows = |i| {
        // Sizes differ by far more than the rows do.
        let size = f64::from(1 << (i % 6));
        [
            run(i, "cheap", size, 80.0),
            run(i, "dear", 4.0 * size, 95.0),
            run(i, "good", 2.0 * size, 95.0),
        ]
    };
    results((0..sessions).flat_map(rows).collect())
}

#[test]
fn the_cheapest_wins_and_under_a_condition_the_cheapest_that_meets_it() {
    let found = ask(&clear(12), "cost_usd", &[], &[]);
    assert_eq!((&found.verdict, &*found.rows[0].strategy), (&Verdict::Decided, "cheap"));
    let found = ask(&clear(12), "cost_usd", &["needs_kept_pct=90"], &[]);
    assert_eq!((&found.verdict, &*found.rows[0].strategy), (&Verdict::Decided, "good"));
    assert_eq!((found.sessions, found.recordings, found.halves), (12, 12, SPLITS));
    assert_eq!((found.rows[0].chosen_pct, found.rows[0].fits), (100.0, true));
    // Twelve sessions: two of each size, 1 to 32 $, doubled. Mean exponent 2.5 + 1.
    assert!((found.rows[0].by - 3.5_f64.exp2()).abs() < 1e-9);
    let other = found.elsewhere.unwrap();
    assert_eq!(
        (other.held_pct, other.regret_mean, other.regret_p95),
        (100.0, Some(0.0), Some(0.0))
    );
    let found = ask(&clear(12), "needs_kept_pct", &[], &["cost_usd=13"]);
    // Mean per session: 63 × 2 ÷ 12 = 10.5 $, doubled 21 $.
    assert_eq!(found.rows[0].strategy, "cheap");
    assert_eq!(found.rows[0].values, [Some(10.5)]);
}

#[test]
fn nobody_meets_a_condition_that_is_too_high() {
    let found = ask(&clear(12), "cost_usd", &["needs_kept_pct=99"], &[]);
    assert_eq!(found.verdict, Verdict::NoneFits);
    assert!(
        text(&[found]).contains("No row meets that over all sessions. good has the most"),
        "the nearest is told"
    );
}

#[test]
fn nine_recordings_decide_nothing_and_scripted_sessions_add_none() {
    let why = |results: &Results| match ask(results, "cost_usd", &[], &[]).verdict {
        Verdict::Undecided { why } => why,
        other => panic!("{other:?}"),
    };
    assert_eq!(why(&clear(9)), "9 recordings in which one of these compacted; a choice takes 10");
    let mut scripted = clear(12);
    scripted.runs.iter_mut().filter(|r| &*r.scenario.id < "s05").for_each(|r| {
        r.scenario.recorded = false;
    });
    assert!(why(&scripted).starts_with("7 recordings"));
    let mut idle = clear(12);
    idle.runs.iter_mut().filter(|r| &*r.scenario.id < "s05").for_each(|r| {
        r.summary.compactions = 0;
    });
    assert!(why(&idle).starts_with("7 recordings"));
    let mut alone = clear(12);
    alone.runs.retain(|r| r.strategy.label == "good");
    assert_eq!(why(&alone), "there is one row alone");
}

#[test]
fn who_left_sessions_out_is_set_aside_with_the_reason() {
    let mut all = clear(12);
    all.runs[0].status = Status::Overflow;
    let mut idle: Vec<RunRecord> = (0..12).map(|i| run(i, "idle", 0.1, 100.0)).collect();
    idle.iter_mut().for_each(|r| r.summary.compactions = 0);
    all.runs.extend(idle);
    let found = ask(&all, "cost_usd", &[], &[]);
    assert_eq!(found.rows[0].strategy, "good");
    let told: Vec<(&str, &str)> = found.set_aside.iter().map(|s| (&*s.strategy, &*s.why)).collect();
    assert_eq!(
        told,
        [
            ("idle", "compacted in no session that it finished"),
            ("cheap", "did not finish 1 of 12 sessions (s00: window full)"),
        ]
    );
}

#[test]
fn who_compacted_only_where_a_figure_is_unknown_is_set_aside_by_it() {
    let mut all = clear(12);
    // Needs are known in the first half, and good compacted in the other.
    for r in &mut all.runs {
        if &*r.scenario.id >= "s06" {
            r.summary.needs_kept_pct = None;
        } else if r.strategy.label == "good" {
            r.summary.compactions = 0;
        }
    }
    let why = "its needs kept is known in no session in which it compacted".to_string();
    let aside = |found: Answer| {
        let told = found.set_aside.into_iter().map(|s| (s.strategy, s.why));
        told.collect::<Vec<_>>()
    };
    let of_good = [("good".to_string(), why)];
    assert_eq!(aside(ask(&all, "needs_kept_pct", &[], &[])), of_good);
    assert_eq!(aside(ask(&all, "cost_usd", &["needs_kept_pct=90"], &[])), of_good);
    assert_eq!(aside(ask(&all, "cost_usd", &[], &[])), []);
}

#[test]
fn rows_with_the_same_figures_are_one() {
    let mut all = clear(12);
    let twins: Vec<RunRecord> = all
        .runs
        .iter()
        .filter(|r| r.strategy.label == "cheap")
        .map(|r| {
            let mut twin = r.clone();
            twin.strategy.label = "cheap:limit=9".into();
            twin
        })
        .collect();
    all.runs.extend(twins);
    let found = ask(&all, "cost_usd", &[], &[]);
    assert_eq!((found.verdict, found.rows.len()), (Verdict::Decided, 3));
    assert_eq!(found.rows[0].same, ["cheap:limit=9"]);
}

#[test]
fn a_figure_that_is_zero_is_compared_by_its_difference() {
    let rows = |i| {
        let mut all = [run(i, "a", 1.0, 90.0), run(i, "b", 1.0, 90.0)];
        all[0].summary.blocked_ms = 2_000;
        all
    };
    let found = ask(&results((0..12).flat_map(rows).collect()), "blocked_ms", &[], &[]);
    assert_eq!((&*found.rows[0].strategy, found.rows[0].by, found.rows[1].by), ("b", 0.0, 2_000.0));
    assert!(!found.elsewhere.unwrap().relative);
}

#[test]
fn questions_without_an_answer_are_refused() {
    let error = |by: &str, min: &[&str]| Question::new(by, min, &[]).err().unwrap().to_string();
    assert!(error("cost", &[]).contains("there is no metric `cost`; did you mean cost_"));
    assert!(error("requests", &[]).contains("neither more nor less of it"));
    assert!(error("cost_usd", &["needs_kept_pct"]).contains("METRIC=NUMBER"));
}

#[test]
fn every_model_has_its_answer_and_empty_results_none() {
    let question = Question::new::<&str>("cost_usd", &[], &[]).unwrap();
    assert!(best(&Results::default(), &question).is_empty());
    let mut two = clear(12);
    two.runs.iter_mut().filter(|r| &*r.scenario.id < "s05").for_each(|r| r.model = "n".into());
    let about: Vec<String> = best(&two, &question).into_iter().map(|a| a.about).collect();
    assert_eq!(about, ["n", "m"]);
    // Whatever stands in results, a text comes of it.
    assert!(!text(&best(&sample::results(), &question)).is_empty());
}

/// Share of trials in which some row is chosen by 199 of 200 halves, and in which the first is.
/// `effect` is taken off the first row's scores; `shape` makes a session's own part of a score out
/// of a normal number.
fn decided(rows: usize, sessions: usize, effect: f64, shape: fn(f64) -> f64) -> (f64, f64) {
    const TRIALS: usize = 400;
    let mut noise = Source(SplitMix64::named("choices"));
    let (mut any, mut first) = (0, 0);
    for _ in 0..TRIALS {
        // What all rows share in a session decides nothing.
        let shared: Vec<f64> = (0..sessions).map(|_| 3.0 * noise.normal()).collect();
        let mut row = |less: f64| -> Vec<f64> {
            shared.iter().map(|s| s + shape(noise.normal()) - less).collect()
        };
        let scores = (0..rows).map(|i| row(if i == 0 { effect } else { 0.0 })).collect();
        let found = splits(&Field { scores, conditions: vec![] }).unwrap();
        let enough = |n: usize| n as f64 / SPLITS as f64 >= DECIDED;
        any += usize::from(found.chosen.iter().any(|n| enough(*n)));
        first += usize::from(enough(found.chosen[0]));
    }
    (any as f64 / TRIALS as f64, first as f64 / TRIALS as f64)
}

#[test]
fn a_choice_made_on_noise_is_undecided() {
    // About 5 % at ten sessions; 400 trials vary by one point.
    for (name, shape) in [("normal", (|x| x) as fn(f64) -> f64), ("log-normal", f64::exp)] {
        for (rows, sessions) in [(2, 10), (2, 30), (6, 12)] {
            let (any, _) = decided(rows, sessions, 0.0, shape);
            println!("{rows} rows alike, {sessions} sessions, {name}: {:.1} %", any * 100.0);
            assert!(any <= 0.075, "{rows} rows, {sessions} sessions, {name}: {any}");
        }
    }
}

#[test]
fn a_real_difference_is_found() {
    // A difference of 2 where two scores of a session differ by √2 = 1.41 by chance.
    let (any, first) = decided(6, 12, 2.0, |x| x);
    println!("six rows, one better by 2: found in {:.1} %", first * 100.0);
    assert!(first > 0.8 && any == first, "{first} {any}");
}

#[test]
fn one_session_decides_nothing() {
    let found = ask(&clear(1), "cost_usd", &[], &[]);
    assert!(matches!(&found.verdict, Verdict::Undecided { why } if why.contains("one session")));
    let told = super::text::text(&[found]);
    assert!(told.contains("Undecided: one session can be told by no other"), "{told}");
    assert!(!told.contains("0 random halves"), "{told}");
}
