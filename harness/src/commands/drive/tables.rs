//! Tables of a drive: differences between the real agent and its model, and requests other than the
//! work.

use std::fmt::Write;

use ctxbench_agents::drive::{DriveOutcome, Repeat};
use ctxbench_core::request::Purpose;
use ctxbench_reports::agreement::{COST, INPUT, PEAK, numbers};
use ctxbench_reports::record::{
    Agreement, RequestRecord, RequestStatus, RunRecord, Status, TwoFigures,
};
use ctxbench_reports::{Artifact, printable};
use ctxbench_util::plural::pluralize;
use serde_json::{Value, json};

/// Tables as text, and as files for the results folder.
pub(super) struct Pages {
    pub(super) text: String,
    pub(super) files: Vec<Artifact>,
}

pub(super) fn pages(outcomes: &[DriveOutcome], faults: &[String]) -> anyhow::Result<Pages> {
    let mut markdown = String::from("# Real agents and their models\n\n");
    markdown.push_str(&match faults {
        [] => harmless(&overview(outcomes)),
        faults => harmless(&under_faults(outcomes, faults)),
    });
    let text: String = outcomes.iter().map(|o| harmless(&lines(o))).collect();
    let all: Vec<Value> = outcomes.iter().map(data).collect();
    let json = serde_json::to_string_pretty(&all)? + "\n";
    let file = |name: &str, text: String| Artifact { file: name.into(), text };
    Ok(Pages { text, files: vec![file("drive.json", json), file("drive.md", markdown)] })
}

/// Formats one row per drive with the differences between model and agent.
fn overview(outcomes: &[DriveOutcome]) -> String {
    let mut out = String::from(
        "| session | program | window | requests | summaries at request | ours at | largest prompt \
         | input | cost | recall, real / ours |\n|---|---|--:|--:|---|---|--:|--:|--:|--:|\n",
    );
    for o in outcomes {
        let (session, program) = (&o.real.scenario.id, program(&o.real));
        let _ = write!(out, "| {session} | {program} | {} | ", o.real.window);
        let _ = write!(out, "{} | ", o.real.summary.requests);
        let Some(b) = o.agreement() else {
            let why = match &o.ours {
                _ if o.real.status != Status::Completed => o.real.status.word(),
                None => "no implementation",
                Some(ours) => ours.status.word(),
            };
            let asked = &o.real.requests;
            let asked = asked.iter().filter(|r| r.purpose == Purpose::Summary).map(|r| r.seq + 1);
            let _ = writeln!(out, "{} | {why} | | | | |", numbers(&asked.collect::<Vec<_>>()));
            continue;
        };
        let same = b.our_summaries();
        let [peak, input, cost] = [PEAK, INPUT, COST].map(|what| b.format(what));
        let kept =
            |r: &RunRecord| r.summary.recall_pct.map_or("n/a".to_string(), |k| format!("{k:.1} %"));
        let kept = match &o.ours {
            Some(ours) => format!("{} / {}", kept(&o.real), kept(ours)),
            None => String::new(),
        };
        let real = numbers(&b.summary_requests.real);
        let _ = writeln!(out, "{real} | {same} | {peak} | {input} | {cost} | {kept} |");
    }
    out
}

/// Formats one row per drive with the reactions of agent and model to faults.
fn under_faults(outcomes: &[DriveOutcome], faults: &[String]) -> String {
    let faults: Vec<String> = faults.iter().map(|f| format!("`{f}`")).collect();
    let faults = faults.join(", ");
    let mut out =
        String::from("| fault | session | program | real | ours |\n|---|---|---|---|---|\n");
    for o in outcomes {
        let mut real = became(&o.real, o.refused.len());
        if o.failed > 0 {
            let _ = write!(real, ", {} of the user's turns failed", o.failed);
        }
        let failed =
            |r: &RunRecord| r.requests.iter().filter(|q| q.status != RequestStatus::Ok).count();
        let ours = o.ours.as_ref();
        let ours = ours.map_or("n/a".to_string(), |r| became(r, failed(r)));
        let (session, program) = (&o.real.scenario.id, program(&o.real));
        let _ = writeln!(out, "| {faults} | {session} | {program} | {real} | {ours} |");
    }
    out
}

fn became(r: &RunRecord, refused: usize) -> String {
    let s = &r.summary;
    let written =
        |q: &&RequestRecord| q.purpose == Purpose::Summary && q.status == RequestStatus::Ok;
    let mut out = format!(
        "{}, {}, {refused} refused or broken off, {}, {}",
        r.status.word(),
        pluralize(s.steps_completed, "step"),
        pluralize(r.requests.iter().filter(written).count(), "summary"),
        pluralize(s.compactions, "compaction")
    );
    if s.user_interventions > 0 {
        let _ = write!(out, ", asked to continue {}", pluralize(s.user_interventions, "time"));
    }
    out
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
