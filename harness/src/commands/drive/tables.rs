//! Figures that only a drive has: faults, further runs, and requests other than the work.

use std::fmt::Write;

use ctxbench_agents::drive::{DriveOutcome, Repeat};
use ctxbench_reports::record::{Agreement, RunRecord, Status, TwoFigures};
use ctxbench_reports::{Artifact, printable};
use serde_json::{Value, json};

/// Formats the notes on all drives.
pub(super) fn notes(outcomes: &[DriveOutcome]) -> String {
    outcomes.iter().map(|o| harmless(&lines(o))).collect()
}

/// Returns `drive.json`.
pub(super) fn file(outcomes: &[DriveOutcome]) -> anyhow::Result<Artifact> {
    let all: Vec<Value> = outcomes.iter().map(data).collect();
    let text = serde_json::to_string_pretty(&all)? + "\n";
    Ok(Artifact { file: "drive.json".into(), text })
}

/// Returns the program and its label, because two agents may run the same program.
fn program(r: &RunRecord) -> String {
    let program = r.strategy.program.as_deref().unwrap_or(&r.strategy.name);
    format!("{program} ({})", r.strategy.label)
}

/// Escapes lines of text that comes from sessions and agents.
fn harmless(text: &str) -> String {
    text.split('\n').map(printable).collect::<Vec<_>>().join("\n")
}

/// Formats additional notes on a drive.
fn lines(o: &DriveOutcome) -> String {
    let mut out = String::new();
    let mut line = |text: &str| {
        let _ = writeln!(out, "  {text}");
    };
    if let Some(error) = &o.real.error {
        line(&format!("{}: {error}", o.real.status.word()));
    }
    match &o.ours {
        Some(ours) if ours.status != Status::Completed => {
            let why = ours.error.as_deref().unwrap_or("no reason was given");
            line(&format!("ours, {}: {}: {why}", ours.strategy.label, ours.status.word()));
        }
        None if o.real.summary.requests > 0 => {
            line("there is no strategy here to compare it with");
        }
        _ => {}
    }
    if !o.repeats.is_empty() {
        line(&spread(o));
    }
    o.unused_faults.iter().for_each(|told| line(told));
    for a in &o.asides {
        line(&format!(
            "outside the work: {} × {}, {} tokens in, ${:.4}",
            a.requests,
            a.purpose.word(),
            a.input_tokens,
            a.usd
        ));
    }
    if out.is_empty() {
        return out;
    }
    let RunRecord { scenario, model, window, .. } = &o.real;
    let program = program(&o.real);
    format!("{program} through {}, {model}, window {window}\n{out}", scenario.id)
}

/// Describes how far the runs of an agent differ.
fn spread(o: &DriveOutcome) -> String {
    let all: Vec<Repeat> =
        std::iter::once(Repeat::from(&o.real)).chain(o.repeats.iter().copied()).collect();
    let range = |of: fn(&Repeat) -> f64, decimals: usize| {
        let least = all.iter().map(of).fold(f64::INFINITY, f64::min);
        let most = all.iter().map(of).fold(0.0, f64::max);
        format!("{least:.decimals$} to {most:.decimals$}")
    };
    let completed = all.iter().filter(|r| r.completed).count();
    format!(
        "{} runs, {completed} completed: ${}, {} input tokens, {} requests; the row is the first",
        all.len(),
        range(|r| r.usd, 4),
        range(|r| r.input_tokens as f64, 0),
        range(|r| r.requests as f64, 0)
    )
}

fn data(o: &DriveOutcome) -> Value {
    let figures = |b: &Agreement| -> Value {
        let one = |f: &TwoFigures| {
            json!({
                "what": f.what, "real": f.real, "ours": f.ours,
                "difference_pct": f.difference_pct(),
            })
        };
        b.figures.iter().map(one).collect()
    };
    let beside = o.agreement().map(|b| {
        json!({
            "figures": figures(b),
            "summary_requests": b.summary_requests,
            "first_difference": b.first_difference,
        })
    });
    json!({
        "session": o.real.scenario.id,
        "program": o.real.strategy.program,
        "row": o.real.strategy.label,
        "model": o.real.model,
        "window": o.real.window,
        "status": o.real.status.word(),
        "error": o.real.error,
        "ours": o.ours.as_ref().map(|r| &r.strategy.label),
        "beside": beside,
        "refused": o.refused,
        "failed_moves": o.failed,
        "faults_that_never_struck": o.unused_faults,
        "side_requests": o.asides,
        "further_runs": o.repeats,
    })
}
