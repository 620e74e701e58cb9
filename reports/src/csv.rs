//! The CSV files: a row per run, per request, per compaction, per (fact, need) pair, per rewind, per restart and format; per
//! subagent in `delegation.rs`.

use ctxbench_core::record::{Cell, Results, ResumeFile, RunRecord};
use serde::Serialize;

use crate::formats::{Artifact, Format, ReportError};
use crate::resume::keeps_nothing;
use crate::{delegation, fmt, seeds};

/// The format for `report --format csv`.
pub(crate) const FORMAT: Format =
    Format { name: "csv", about: "summary.csv, requests.csv, compactions.csv, facts.csv, rewind.csv, resume.csv, delegation.csv", render };

fn render(results: &Results) -> Result<Vec<Artifact>, ReportError> {
    let file = |name: &str, text: String| Artifact { file: name.into(), text };
    Ok(vec![
        file("summary.csv", summary(results)),
        file("requests.csv", requests(results)),
        file("compactions.csv", compactions(results)),
        file("facts.csv", facts(results)),
        file("rewind.csv", rewinds(results)),
        file("resume.csv", resume(results)),
        file("delegation.csv", delegation::delegation(results)),
    ])
}

/// `summary.csv`: the columns of the contract, a row per run. Reals have at most six decimals; unknown is `n/a`.
pub fn summary(results: &Results) -> String {
    let several = seeds::several(results);
    let head: Vec<String> = RunRecord::default().columns().into_iter().map(|(name, _)| name).chain(seed_head(several)).collect();
    let rows = results.runs.iter().map(|r| r.columns().into_iter().map(|(_, cell)| text(&cell)).chain(seed(r, several)).collect());
    write(&head, rows)
}

/// A cell as it stands in CSV files.
pub(crate) fn text(cell: &Cell) -> String {
    match cell {
        Cell::Int(n) => n.to_string(),
        Cell::Real(x) => fmt::exact(*x),
        Cell::Word(w) => w.clone(),
        Cell::Na => "n/a".into(),
    }
}

const REQUESTS: [&str; 20] = [
    "seq",
    "purpose",
    "phase",
    "request_model",
    "step",
    "extra",
    "input_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "output_tokens",
    "context_tokens",
    "cost_usd",
    "at_ms",
    "latency_ms",
    "common_prefix_tokens",
    "invalidated_tokens",
    "status",
    "invalidated_expired_tokens",
    "invalidated_changed_tokens",
    "agent",
];

/// `requests.csv`: every request in order; tokens, USD, ms; `agent` is `n/a` in the main conversation.
pub fn requests(results: &Results) -> String {
    let several = seeds::several(results);
    let rows = results.runs.iter().flat_map(|r| {
        r.requests.iter().map(move |q| {
            let mut row = key(r);
            row.extend([
                q.seq.to_string(),
                word(&q.purpose),
                q.phase.map_or("n/a".into(), |p| word(&p)),
                q.model.clone(),
                q.step.to_string(),
            ]);
            row.push(q.extra.to_string());
            row.extend([q.input_tokens, q.cache_read, q.cache_write, q.output_tokens, q.context_tokens].map(|n| n.to_string()));
            row.push(fmt::exact(q.cost_usd));
            row.extend([q.at_ms, q.latency_ms, q.common_prefix_tokens, q.invalidated_tokens].map(|n| n.to_string()));
            row.push(q.status.clone());
            row.extend([q.invalidated_expired_tokens, q.invalidated_changed_tokens].map(|n| n.to_string()));
            row.push(q.agent.clone().unwrap_or_else(|| "n/a".into()));
            row.extend(writer(r, several));
            row
        })
    });
    write(&keyed(&REQUESTS, several), rows)
}

const COMPACTIONS: [&str; 20] = [
    "seq",
    "kind",
    "mechanism",
    "phase",
    "before_request",
    "at_ms",
    "before_tokens",
    "after_tokens",
    "invalidated_tokens",
    "summary_tokens",
    "blocked_ms",
    "cost_usd",
    "facts_lost_verbatim",
    "facts_carried",
    "break_even_calls",
    "calls_after",
    "paid_off",
    "facts_needed_later",
    "retained_pct",
    "goal_kept",
];

/// `compactions.csv`: every compaction in order; tokens, USD, ms; `retained_pct` is the drift curve. `break_even_calls` is `never` when it cannot pay for itself.
pub fn compactions(results: &Results) -> String {
    let several = seeds::several(results);
    let rows = results.runs.iter().flat_map(|r| {
        r.compactions.iter().map(move |c| {
            let mut row = key(r);
            row.extend([c.seq.to_string(), word(&c.kind), c.mechanism.clone(), word(&c.phase), c.before_request.to_string()]);
            row.extend(
                [c.at_ms, c.before_tokens, c.after_tokens, c.invalidated_tokens, c.summary_tokens, c.blocked_ms].map(|n| n.to_string()),
            );
            row.push(fmt::exact(c.cost_usd));
            row.extend([c.facts_lost_verbatim.to_string(), c.facts_carried.to_string()]);
            row.push(c.break_even_calls.map_or("never".into(), fmt::exact));
            row.push(c.calls_after.to_string());
            row.push(c.paid_off.map_or("n/a".into(), |p| p.to_string()));
            row.push(c.facts_needed_later.to_string());
            row.push(c.retained_pct.map_or("n/a".into(), fmt::exact));
            row.push(c.goal_kept.map_or("n/a".into(), |k| k.to_string()));
            row.extend(writer(r, several));
            row
        })
    });
    write(&keyed(&COMPACTIONS, several), rows)
}

const FACTS: [&str; 13] = [
    "fact",
    "kind",
    "need",
    "request",
    "found",
    "place",
    "stale",
    "compactions_before",
    "both",
    "contradicted",
    "drifted",
    "recoverable",
    "undelivered",
];

/// `facts.csv`: every (fact, need) pair; `request` is `n/a` when the run did not get there, `recoverable` when nothing was lost.
pub fn facts(results: &Results) -> String {
    let several = seeds::several(results);
    let rows = results.runs.iter().flat_map(|r| {
        r.facts.iter().map(move |f| {
            let mut row = key(r);
            row.extend([f.fact.clone(), f.kind.name().into(), f.need.clone(), f.request.map_or("n/a".into(), |n| n.to_string())]);
            row.extend([word(&f.found), f.place.clone(), f.stale.to_string(), f.compactions_before.to_string()]);
            row.extend([f.both, f.contradicted, f.drifted].map(|b| b.to_string()));
            row.push(f.recoverable.map_or("n/a".into(), |k| k.to_string()));
            row.push(f.undelivered.to_string());
            row.extend(writer(r, several));
            row
        })
    });
    write(&keyed(&FACTS, several), rows)
}

const REWINDS: [&str; 19] = [
    "seq",
    "to",
    "mode",
    "rewind_status",
    "before_request",
    "at_ms",
    "context_before_tokens",
    "context_after_tokens",
    "context_then_tokens",
    "context_equal",
    "way",
    "files_tracked",
    "files_changed",
    "files_restored",
    "files_missed",
    "files_refused",
    "restore_success_pct",
    "edit_tools_bytes",
    "shadow_git_bytes",
];

/// `rewind.csv`: every rewind in order; tokens, ms, bytes. `files_missed` are paths, `;` between them.
pub fn rewinds(results: &Results) -> String {
    let int = |n: Option<u64>| n.map_or("n/a".to_string(), |n| n.to_string());
    let several = seeds::several(results);
    let rows = results.runs.iter().flat_map(|r| {
        r.rewinds.iter().map(move |w| {
            let code = w.code.as_ref();
            let mut row = key(r);
            row.extend([w.seq.to_string(), w.to.clone(), w.mode.clone(), w.status.clone(), w.before_request.to_string()]);
            row.push(w.at_ms.to_string());
            row.extend([w.context_before, w.context_after, w.context_then].map(int));
            row.push(w.context_equal.map_or("n/a".into(), |e| e.to_string()));
            row.push(code.map_or("n/a".into(), |c| c.way.clone()));
            row.extend([code.map(|c| c.tracked), code.map(|c| c.changed), code.map(|c| c.restored)].map(int));
            row.push(code.map_or("n/a".into(), |c| c.missed.join(";")));
            row.push(int(code.map(|c| c.refused)));
            row.push(code.and_then(|c| c.success_pct).map_or("n/a".into(), fmt::exact));
            row.extend([code.map(|c| c.edit_tools_bytes), code.and_then(|c| c.shadow_git_bytes)].map(int));
            row.extend(writer(r, several));
            row
        })
    });
    write(&keyed(&REWINDS, several), rows)
}

const RESUME: [&str; 14] = [
    "restart",
    "format",
    "messages",
    "stored_bytes",
    "bytes_read",
    "lost",
    "garbled",
    "surplus",
    "context_equal",
    "shown_equal",
    "resume_summary_calls",
    "resume_blocked_ms",
    "recoverable_pct",
    "notes",
];

/// `resume.csv`: every restart in every format of the product; bytes, ms, per cent. `n/a` where a product keeps nothing.
pub fn resume(results: &Results) -> String {
    let several = seeds::several(results);
    let rows = results.runs.iter().flat_map(|r| {
        r.resume.iter().map(move |s| {
            let mut row = key(r);
            let figure = |of: &dyn Fn(&ResumeFile) -> String| s.file.as_ref().map_or_else(|| "n/a".to_string(), of);
            row.extend([s.restart.to_string(), figure(&|f| f.format.clone()), s.messages.to_string()]);
            row.extend([figure(&|f| f.stored_bytes.to_string()), figure(&|f| f.bytes_read.to_string())]);
            row.extend([figure(&|f| f.lost.to_string()), figure(&|f| f.garbled.to_string()), figure(&|f| f.surplus.to_string())]);
            // What a product that keeps nothing shows after a restart is the replay's, not the product's.
            let shown = |text: String| if keeps_nothing(s) { "n/a".to_string() } else { text };
            row.extend([figure(&|f| f.context_equal.to_string()), shown(s.shown_equal.to_string())]);
            row.extend([s.resume_summary_calls, s.resume_blocked_ms].map(|n| shown(n.to_string())));
            row.push(figure(&|f| f.recoverable_pct.map_or("n/a".into(), fmt::exact)));
            row.push(s.error.clone().unwrap_or_else(|| s.file.as_ref().map_or(String::new(), |f| f.notes.join("; "))));
            row.extend(writer(r, several));
            row
        })
    });
    write(&keyed(&RESUME, several), rows)
}

pub(crate) fn key(r: &RunRecord) -> Vec<String> {
    vec![r.scenario.id.clone(), r.strategy.label.clone(), r.model.clone()]
}

pub(crate) fn keyed(columns: &[&str], several_seeds: bool) -> Vec<String> {
    let names = ["scenario", "strategy", "model"].iter().chain(columns).chain(&["summariser"]);
    names.map(|s| (*s).to_string()).chain(seed_head(several_seeds)).collect()
}

/// The last columns: rows of runs that differ in nothing else are told apart by them.
pub(crate) fn writer(r: &RunRecord, several_seeds: bool) -> impl Iterator<Item = String> {
    std::iter::once(r.summariser.clone().unwrap_or_else(|| "n/a".into())).chain(seed(r, several_seeds))
}

/// The column `seed` is there where runs were repeated with several.
fn seed_head(several_seeds: bool) -> Option<String> {
    several_seeds.then(|| "seed".to_string())
}

fn seed(r: &RunRecord, several_seeds: bool) -> Option<String> {
    several_seeds.then(|| r.seed.map_or("n/a".into(), |s| s.to_string()))
}

/// The name of a unit variant in files.
pub(crate) fn word<T: Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(s)) => s,
        _ => "n/a".into(),
    }
}

pub(crate) fn write(head: &[String], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut out = csv::Writer::from_writer(Vec::new());
    for record in std::iter::once(head.to_vec()).chain(rows) {
        out.write_record(&record).expect("writing to memory, rows as long as the head");
    }
    let bytes = out.into_inner().expect("writing to memory");
    String::from_utf8(bytes).expect("made of strings")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    const CONTRACT: &str = "scenario,strategy,model,status,steps_completed,steps_total,requests,compactions,summary_calls,input_tokens,\
        cache_read_tokens,cache_write_tokens,output_tokens,task_tokens,peak_context_tokens,saved_pct,cost_usd,cost_saved_pct,\
        prefix_stability,invalidated_tokens,cache_read_ratio,blocked_ms,total_ms,step_p50_ms,step_p95_ms,compaction_p50_ms,\
        compaction_p95_ms,retention_pct,summary_retention_pct,retention_goal_pct,retention_constraint_pct,retention_artifact_pct,\
        retention_decision_pct,retention_error_pct,retention_value_pct,retention_todo_pct,retention_superseded_pct,reread_tokens,\
        extra_requests,provider_overflows,user_interventions,trigger_error_tokens,integrity_failures";

    #[test]
    fn columns_begin_as_the_contract_says() {
        assert!(summary(&sample::results()).lines().next().unwrap().starts_with(CONTRACT));
        assert!(summary(&Results::default()).starts_with(CONTRACT));
    }

    #[test]
    fn unknown_is_never_zero_and_hostile_labels_survive() {
        let results = sample::results();
        let text = summary(&results);
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let head = reader.headers().unwrap().clone();
        let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        assert_eq!(rows.len(), results.runs.len());
        let column = |name: &str| head.iter().position(|h| h == name).unwrap();
        let none = rows.iter().find(|r| &r[1] == "none").unwrap();
        assert_eq!(&none[column("saved_pct")], "n/a");
        assert_eq!(&none[column("status")], "overflow");
        assert!(rows.iter().any(|r| &r[1] == "x<&\"y"));
    }

    #[test]
    fn a_pair_that_cannot_exist_has_no_figures() {
        let mut results = sample::results();
        results.runs.truncate(1);
        results.runs[0].status = ctxbench_core::record::Status::NotApplicable;
        let text = summary(&results);
        let row = text.lines().nth(1).unwrap();
        assert!(row.split(',').skip(3).all(|c| c == "n/a"), "{row}");
    }

    #[test]
    fn the_other_files_have_a_row_each() {
        let results = sample::results();
        let count = |text: String| csv::Reader::from_reader(text.as_bytes()).records().map(Result::unwrap).count();
        assert_eq!(count(requests(&results)), results.runs.iter().map(|r| r.requests.len()).sum::<usize>());
        assert_eq!(count(compactions(&results)), results.runs.iter().map(|r| r.compactions.len()).sum::<usize>());
        assert_eq!(count(facts(&results)), results.runs.len());
        assert!(compactions(&results).contains(",summarise,summary,mid_turn,"));
    }
}
