//! Prompt sizes compared with the provider's counters, on sessions without a gateway.

use crate::common::CommandFolder;
use crate::common::recordings::{DIRECT, session};
use ctxbench_core::model::Counting;
use ctxbench_core::request::Purpose;
use ctxbench_reports::record::{RequestRecord, RunRecord};
use ctxbench_session::calibration::{self, CalibrationStep};
use ctxbench_session::{Entry, Session};

fn steps<'a>(session: &'a Session, by: &Counting) -> Vec<CalibrationStep<'a>> {
    let own = session.entries.iter().filter(|e| e.agent().is_none());
    calibration::steps(own, by, session.header.model.as_deref())
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

/// Returns the errors of the sizes of all prompts except the first of each segment, in percent.
fn errors(session: &Session, by: &Counting) -> Vec<f64> {
    steps(session, by).iter().filter(|s| s.grown.is_some()).map(off).map(f64::abs).collect()
}

/// Returns the error of the expected prompt size in percent; positive = too large.
fn off(step: &CalibrationStep<'_>) -> f64 {
    100.0 * (step.expected as f64 - step.prompt as f64) / step.prompt as f64
}

/// Returns the factor on o200k tokens that fits most of a session's growth at 34 tokens per block:
/// the growth of all prompts over the added tokens.
fn fitted(session: &Session) -> f64 {
    let at = |per_token: f64| Counting { per_token, ..Counting::CLAUDE };
    let sum = |by: &Counting| -> f64 {
        steps(session, by).iter().filter_map(|s| s.grown.map(|_| s.explained as f64)).sum()
    };
    let (one, two) = (sum(&at(1.0)), sum(&at(2.0)));
    let grown: f64 = steps(session, &at(1.0)).iter().filter_map(|s| s.grown).sum::<i64>() as f64;
    1.0 + (grown - one) / (two - one)
}

#[test]
fn calibration_of_one_session_predicts_prompts_of_another() {
    let mut all = Vec::new();
    for (held, other) in [(0, 1), (1, 0)] {
        let per_token = fitted(&session(DIRECT[other]));
        let by = Counting { per_token, ..Counting::CLAUDE };
        let fitted = errors(&session(DIRECT[held]), &by);
        let own = median(errors(&session(DIRECT[held]), &Counting::CLAUDE));
        println!(
            "{}: {per_token:.3} of the other session, median error {:.1} %; the built-in \
             coefficients {own:.1} %",
            DIRECT[held],
            median(fitted.clone())
        );
        all.extend(fitted);
    }
    let error = median(all);
    println!("both sessions: median error {error:.1} %");
    assert!(error <= 4.0, "{error}");
}

/// Claude Code 2.0.76 on Sonnet 4.5, which omits the reasoning of earlier turns. Twelve turns, each
/// with reasoning, and no compaction, so a single segment.
const OLDER: &str = "codemie-session";

/// Returns a session in which one model gave every reply.
fn answered_by(model: &str) -> Session {
    let mut session = session(OLDER);
    session.header.model = Some(model.into());
    for entry in &mut session.entries {
        if let Entry::Assistant(a) = entry {
            a.model = None;
        }
    }
    session
}

#[test]
fn older_model_prompts_omit_earlier_thinking() {
    assert_eq!(session(OLDER).header.model.as_deref(), Some("claude-sonnet-4-5-20250929"));
    let by = Counting::CLAUDE.for_visible_text();
    let (older, newer) = (answered_by("claude-sonnet-4-5"), answered_by("claude-opus-4-6"));
    let errors = |s: &Session| replayed(s).iter().map(|e| e.abs()).collect();
    let (left_out, kept) = (median(errors(&older)), median(errors(&newer)));
    // Only the first steps of turns are explained differently.
    let (at, as_if) = (steps(&older, &by), steps(&newer, &by));
    let turns = || at.iter().zip(&as_if).filter(|(a, b)| a.explained != b.explained);
    let wrong = |s: &CalibrationStep<'_>| s.grown.unwrap().abs_diff(s.explained) as f64;
    let by_step = median(turns().map(|(a, _)| wrong(a)).collect());
    let by_step_kept = median(turns().map(|(_, b)| wrong(b)).collect());
    println!(
        "{OLDER}: median error {left_out:.2} %, with all thinking {kept:.2} %; of what {} turns \
         begin with {by_step} tokens, with all thinking {by_step_kept}",
        turns().count()
    );
    assert_eq!(turns().count(), 12);
    assert!(left_out <= 0.5 && kept > 4.0 * left_out, "{left_out} {kept}");
    assert!(by_step <= 300.0 && by_step < by_step_kept, "{by_step} {by_step_kept}");
}

/// Returns the error of each prompt in percent if unseen content is added.
fn replayed(session: &Session) -> Vec<f64> {
    let by = Counting::CLAUDE.for_visible_text();
    let own = session.entries.iter().filter(|e: &&Entry| e.agent().is_none());
    let residuals = calibration::residuals(own, &by, session.header.model.as_deref());
    let mut unseen = 0;
    let mut all = Vec::new();
    for step in steps(session, &by) {
        if step.grown.is_none() {
            unseen = 0;
        }
        unseen += residuals.iter().find(|(reply, _)| *reply == step.reply).map_or(0, |r| r.1);
        let said = CalibrationStep { expected: step.expected + unseen, ..step };
        all.push(off(&said));
    }
    all
}

#[test]
fn prompts_with_residuals_have_recorded_sizes() {
    for name in DIRECT.into_iter().chain([OLDER]) {
        let all: Vec<f64> = replayed(&session(name)).iter().map(|e| e.abs()).collect();
        let error = median(all.clone());
        assert!(error <= 0.5, "{name}: {error}");
        assert!(all.iter().all(|e| *e < 5.0), "{name}: {all:?}");
    }
}

#[test]
fn our_claude_code_compacts_and_costs_like_the_recorded_one() {
    let folder = CommandFolder::new();
    for name in DIRECT {
        folder.write(&format!("in/{name}.jsonl"), session(name).to_jsonl().unwrap());
    }
    let run = "run in --transport direct --no-rereads --strategy claude-code --strategy reference";
    folder.run(&format!("{run} --out out")).ok().prints(&["as recorded: ", "at least"]);
    let results = ctxbench_reports::read_results(&folder.path("out")).unwrap();
    // Counters × prices, computed by a separate script: Opus 4.6 at 5, 6.25, 10, 0.50 and 25 USD
    // per million tokens of input, short and long writes, reads and output; a subagent on Sonnet
    // 4.5 in the first session and on Haiku 4.5 in the second; the requests for summaries.
    for (name, usd) in [(DIRECT[0], 10.1137), (DIRECT[1], 11.6644)] {
        let row = |label: &str| {
            let of = |r: &&RunRecord| r.scenario.id.starts_with(name) && r.strategy.label == label;
            results.runs.iter().find(of).unwrap_or_else(|| panic!("no row {label} of {name}"))
        };
        let (real, ours) = (row("as-recorded"), row("claude-code"));
        assert_eq!((real.trust(), ours.trust()), ("recorded", "model"));
        assert!((real.summary.cost_usd - usd).abs() < 0.005, "{name}: {}", real.summary.cost_usd);
        let estimate = real.summary.cost_estimate_usd.unwrap();
        assert!(estimate > usd && real.note.as_ref().unwrap().contains("lower bound"));
        assert_eq!((real.compactions.len(), ours.compactions.len()), (1, 1), "{name}");
        let before = |r: &RunRecord| {
            let at = r.compactions[0].before_request as usize;
            let main = |q: &&RequestRecord| q.agent.is_none() && q.purpose == Purpose::Sample;
            let own: Vec<&RequestRecord> = r.requests[..at].iter().filter(main).collect();
            (own.len(), own[own.len() - 1].input_tokens as f64)
        };
        let (real_at, ours_at) = (before(real), before(ours));
        println!("{name}: compacts after {real_at:?}, ours after {ours_at:?}");
        assert!((ours_at.1 / real_at.1 - 1.0).abs() <= 0.05, "{name}");
        assert!((ours_at.0 as f64 / real_at.0 as f64 - 1.0).abs() <= 0.05, "{name}");
        let dollars = ours.summary.cost_usd / estimate - 1.0;
        assert!(dollars.abs() <= 0.1, "{name}: {dollars}");
    }
}
