//! Tables of each session: every strategy, rewinds, restarts and subagents.

use std::iter;

use ctxbench_core::strategy::Standing;

use crate::record::{
    CodeRewind, Delegation, ResumeFile, ResumeRecord, RewindRecord, RunRecord, Status, wilson, word,
};
use crate::sheet::{ByBlock, Column, cells, heads};
use crate::{fmt, metrics, view};

/// Every strategy on each session.
pub(crate) const SCORES: ByBlock = ByBlock {
    title: "Every strategy on each session",
    note: "reference: never compacts. Saved: against that. Prefix stable: share of a prompt that the \
        next one repeats from its start. In brackets: 95 % interval over the messages at risk. n/a: \
        not applicable or unknown.",
    head: || iter::once("steps").chain(metrics::scores().iter().map(|m| m.score_head())).collect(),
    told: |b| Some(b.terms()),
    rows: |r| {
        let figures = metrics::scores().into_iter().map(|m| match m.column {
            "recall_at_risk_pct" => at_risk(r),
            _ => m.text(r),
        });
        vec![iter::once(view::steps(r)).chain(figures).collect()]
    },
};

fn at_risk(r: &RunRecord) -> String {
    let events = r.summary.at_risk.unwrap_or_default() as f64;
    fmt::known(r.summary.recall_at_risk_pct, |pct| {
        let [low, high] = wilson(pct / 100.0, events).map(|end| 100.0 * end);
        format!("{} ({low:.0}–{high:.0})", fmt::pct(pct))
    })
}

/// Restored files and conversation, and storage cost.
pub(crate) const REWIND: ByBlock = ByBlock {
    title: "Rewind: files restored, and whether the context is what it was at that message",
    note: "Files: how many of those that had changed since the prompt, by whatever means, are back \
        in their state at the prompt; what a shell command changed unseen is missing there. \
        Context in tokens, before → after; as then: the very context of that message. Bytes that \
        either way of keeping files needs for the session so far, before compression. n/a: the \
        product does not do this, or the session does not say what is on disk.",
    head: || heads(REWIND_COLUMNS),
    told: |_| None,
    // Controls only appear in rewind.csv.
    rows: |r| match r.strategy.standing {
        Standing::Contender => r.rewinds.iter().map(|w| cells(REWIND_COLUMNS, w)).collect(),
        _ => vec![],
    },
};

const REWIND_COLUMNS: &[Column<RewindRecord>] = &[
    // Ids of recordings are long; rewind.csv has them in full.
    ("to", |w| fmt::elide(&fmt::one_line(&w.to), 12)),
    ("mode", |w| word(&w.mode)),
    ("status", |w| word(&w.status)),
    ("files", |w| fmt::known(w.code.as_ref(), |c| format!("{} of {}", c.restored, c.changed))),
    ("success\n%", |w| code(w, |c| c.success_pct, fmt::pct)),
    ("context", |w| {
        let tokens = |n: u64| fmt::tokens(n as f64);
        let context = w.context_before.zip(w.context_after);
        fmt::known(context, |(a, b)| format!("{} → {}", tokens(a), tokens(b)))
    }),
    ("as\nthen", |w| fmt::known(w.context_equal, fmt::yes_or_no)),
    ("edit\ntools B", |w| code(w, |c| Some(c.edit_tools_bytes), |n| n.to_string())),
    ("shadow\ngit B", |w| code(w, |c| c.shadow_git_bytes, |n| n.to_string())),
];

/// A figure of the restored files.
fn code<T>(
    w: &RewindRecord,
    figure: fn(&CodeRewind) -> Option<T>,
    show: fn(T) -> String,
) -> String {
    fmt::known(w.code.as_ref().and_then(figure), show)
}

/// Data restored from the product's files, and the next steps of the product.
pub(crate) const RESUME: ByBlock = ByBlock {
    title: "Resume: the session written, closed and opened again, in the formats of each product",
    note: "Format: the last word of its name in resume.csv. Messages that the context showed \
        before: lost, garbled (other words or another speaker), surplus (came back though no \
        longer shown). File same: the file gives back exactly that context; shown same: the \
        product shows it, by its own rules. Summary calls and waiting: between the restart and the first \
        answer. In file: facts said before the restart that the file still holds.",
    head: || heads(RESUME_COLUMNS),
    told: |_| None,
    rows: |r| r.resume.iter().map(|s| cells(RESUME_COLUMNS, s)).collect(),
};

const RESUME_COLUMNS: &[Column<ResumeRecord>] = &[
    ("format", stored_format),
    ("read\nB", |s| stored(s, |f| fmt::tokens(f.bytes_read as f64))),
    ("of\nB", |s| stored(s, |f| fmt::tokens(f.stored_bytes as f64))),
    ("shown\nbefore", |s| s.messages.to_string()),
    ("lost", |s| stored(s, |f| f.lost.to_string())),
    ("garbled", |s| stored(s, |f| f.garbled.to_string())),
    ("surplus", |s| stored(s, |f| f.surplus.to_string())),
    ("file\nsame", |s| stored(s, |f| fmt::yes_or_no(f.context_equal))),
    ("shown\nsame", |s| after_restart(s, fmt::yes_or_no(s.shown_equal))),
    ("summary\ncalls", |s| after_restart(s, s.resume_summary_calls.to_string())),
    ("waited\ns", |s| after_restart(s, fmt::seconds(s.resume_blocked_ms as f64 / 1_000.0))),
    ("in\nfile %", |s| stored(s, |f| fmt::known(f.recoverable_pct, fmt::pct))),
];

fn stored_format(s: &ResumeRecord) -> String {
    match &s.file {
        // The row already has the product's name, so `claude-code-jsonl` becomes `jsonl`.
        Some(file) => file.format.rsplit('-').next().unwrap_or_default().into(),
        None => if s.keeps_nothing() { "none kept" } else { "failed" }.into(),
    }
}

/// A figure of the data restored from a file.
fn stored(s: &ResumeRecord, show: fn(&ResumeFile) -> String) -> String {
    fmt::known(s.file.as_ref(), show)
}

/// A figure after the restart, if the product keeps anything.
fn after_restart(s: &ResumeRecord, text: String) -> String {
    if s.keeps_nothing() { "n/a".into() } else { text }
}

/// Cost of subagents, and the facts that they returned and that were in the context when needed.
pub(crate) const DELEGATION: ByBlock = ByBlock {
    title: "Delegation: what subagents cost, and how much of what they found is there when needed",
    note: "Beside the scenario: what its recording decides for every strategy alike, namely the \
        facts that first appear in a subagent's window, the share of them that its result \
        returns, and how often one is needed in another window. Done: subagents that finished; \
        one that did not still gives its recorded result, and the run counts as not finished. \
        Cost: of all windows; in agents: the share spent in theirs. Kept: of the facts needed in \
        another window, those in the context there.",
    head: || heads(DELEGATION_COLUMNS),
    told: |b| delegated(&b.runs),
    rows: |r| if r.delegation.is_empty() { vec![] } else { vec![cells(DELEGATION_COLUMNS, r)] },
};

const DELEGATION_COLUMNS: &[Column<RunRecord>] = &[
    ("agents\ndone", |r| {
        let done = r.delegation.iter().filter(|d| d.status == Status::Completed).count();
        format!("{done}/{}", r.delegation.len())
    }),
    ("cost $", |r| fmt::usd(r.summary.cost_usd)),
    ("in\nagents %", |r| share(r.delegation.iter().map(|d| d.cost_usd).sum(), r.summary.cost_usd)),
    ("compactions\nthere", |r| sum(r, |d| d.compactions).to_string()),
    ("peak\nthere", |r| {
        let peak = r.delegation.iter().map(|d| d.peak_context_tokens).max();
        fmt::tokens(peak.unwrap_or(0) as f64)
    }),
    ("kept\n%", |r| share(sum(r, |d| d.kept_outside) as f64, sum(r, |d| d.needed_outside) as f64)),
];

fn sum(run: &RunRecord, of: fn(&Delegation) -> u64) -> u64 {
    run.delegation.iter().map(of).sum()
}

fn share(part: f64, whole: f64) -> String {
    fmt::known((whole > 0.0).then(|| 100.0 * part / whole), fmt::pct)
}

/// Part that does not depend on the strategy, taken from any run with these subagents.
fn delegated(runs: &[&RunRecord]) -> Option<String> {
    let run = runs.iter().find(|r| !r.delegation.is_empty())?;
    let (found, returned) = (sum(run, |d| d.delegated_facts), sum(run, |d| d.returned_facts));
    let agents = fmt::pluralize(run.delegation.len(), "subagent");
    if found == 0 {
        return Some(format!("{agents}; no facts are found there"));
    }
    let share = share(returned as f64, found as f64);
    let facts = fmt::pluralize(found, "fact");
    let needed = sum(run, |d| d.needed_outside);
    Some(format!(
        "{agents}; their results return {share} % of the {facts} found there; needed in \
         another window: {needed}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Results;
    use crate::testing;
    use ctxbench_core::host::RewindStatus;

    #[test]
    fn no_rewind_no_sheet_and_unknown_is_not_zero() {
        let mut results = testing::results();
        results.runs.retain(|r| r.strategy.standing == Standing::Contender);
        assert!(REWIND.groups(&results).is_empty());
        let code = CodeRewind {
            changed: 4,
            restored: 1,
            missed: vec!["a".into(); 3],
            success_pct: Some(25.0),
            ..CodeRewind::default()
        };
        let done = RewindRecord {
            status: RewindStatus::Done,
            context_before: Some(9),
            context_after: Some(4),
            ..RewindRecord::default()
        };
        let with = RewindRecord { code: Some(code), context_equal: Some(true), ..done };
        results.runs[0].rewinds = vec![with, RewindRecord::default()];
        let rows = &REWIND.groups(&results)[0].rows;
        assert_eq!(rows[0][3..].join(" | "), "done | 1 of 4 | 25.0 | 9 → 4 | yes | 0 | n/a");
        assert_eq!(rows[1][3..].join(" | "), "n/a | n/a | n/a | n/a | n/a | n/a | n/a");
        let csv = testing::csv_text("rewind.csv", &results);
        assert_eq!(csv.lines().count(), 3);
        assert!(csv.lines().nth(2).unwrap().contains("n/a,n/a,n/a"), "{csv}");
    }

    #[test]
    fn a_row_per_restart_and_format_and_none_without() {
        let mut results = testing::results();
        assert!(RESUME.groups(&results).is_empty());
        let file = ResumeFile {
            format: "codex-rollout".into(),
            bytes_read: 1_200,
            lost: 2,
            context_equal: false,
            ..ResumeFile::default()
        };
        let record = ResumeRecord {
            restart: 1,
            messages: 9,
            resume_blocked_ms: 1_500,
            file: Some(file),
            ..ResumeRecord::default()
        };
        let nothing = ResumeRecord { file: None, shown_equal: true, ..record.clone() };
        let failed =
            ResumeRecord { error: Some("codex-rollout: disk full".into()), ..nothing.clone() };
        results.runs[0].resume = vec![record, nothing, failed];
        let rows = &RESUME.groups(&results)[0].rows;
        assert_eq!((rows.len(), rows[0].len()), (3, RESUME_COLUMNS.len() + 1));
        assert_eq!(
            (rows[0][1].as_str(), rows[0][5].as_str(), rows[0][8].as_str()),
            ("rollout", "2", "no")
        );
        // A product without storage has an empty context after a restart. This is not a figure of
        // the product.
        assert_eq!(rows[1][1..].join(" "), "none kept n/a n/a 9 n/a n/a n/a n/a n/a n/a n/a n/a");
        assert_eq!(rows[2][1..].join(" "), "failed n/a n/a 9 n/a n/a n/a n/a yes 0 1.5 n/a");
        let csv = testing::csv_text("resume.csv", &results);
        let lines: Vec<&str> = csv.lines().collect();
        assert!(lines[0].starts_with("scenario,strategy,model,restart,format,messages,stored_bytes,bytes_read,lost,garbled,surplus"));
        assert_eq!(lines.len(), 4);
        testing::assert_contains(
            lines[1],
            &[",1,codex-rollout,9,0,1200,2,0,0,false,false,0,1500,n/a,"],
        );
        testing::assert_contains(lines[2], &[",1,n/a,9,n/a,n/a,n/a,n/a,n/a,n/a,n/a,n/a,n/a,n/a,,"]);
        testing::assert_contains(
            lines[3],
            &[",1,n/a,9,n/a,n/a,n/a,n/a,n/a,n/a,true,0,1500,n/a,codex-rollout: disk full,"],
        );
    }

    fn delegating() -> Results {
        let mut run = testing::run("s", "codex", 1);
        run.summary.cost_usd = 2.0;
        let agent = |agent: &str, cost_usd: f64, found: u64, returned: u64| Delegation {
            agent: agent.into(),
            call: Some("c1".into()),
            cost_usd,
            compactions: 1,
            peak_context_tokens: 1_000,
            delegated_facts: found,
            returned_facts: returned,
            needed_outside: found,
            kept_outside: 1,
            ..Delegation::default()
        };
        run.delegation = vec![agent("x", 0.3, 3, 2), agent("y", 0.2, 1, 1)];
        testing::of(vec![run])
    }

    #[test]
    fn shares_by_hand() {
        let all = DELEGATION.groups(&delegating());
        // 0.5 of 2 USD is a quarter; two of four pairs were kept.
        assert_eq!(
            all[0].rows[0][1..],
            ["2/2", &fmt::usd(2.0), &fmt::pct(25.0), "2", "1.0k", &fmt::pct(50.0)]
        );
        // The part from the recording is printed once: three of four facts were returned.
        assert_eq!(
            all[0].name,
            format!(
                "s: 2 subagents; their results return {} % of the 4 facts found there; needed in \
                 another window: 4",
                fmt::pct(75.0)
            )
        );
        assert!(DELEGATION.groups(&testing::of(vec![testing::run("s", "codex", 1)])).is_empty());
    }

    #[test]
    fn one_that_did_not_finish_is_counted_as_such() {
        let mut r = delegating();
        r.runs[0].delegation[1].status = Status::Overflow;
        r.runs[0].delegation[0].delegated_facts = 0;
        r.runs[0].delegation[1].delegated_facts = 0;
        let all = DELEGATION.groups(&r);
        assert_eq!(all[0].rows[0][1], "1/2");
        assert_eq!(all[0].name, "s: 2 subagents; no facts are found there");
        assert!(DELEGATION.note.contains("one that did not still gives its recorded result"));
    }

    #[test]
    fn one_that_never_began_has_no_figures() {
        let mut r = delegating();
        r.runs[0].delegation[1].status = Status::NotApplicable;
        let rows = testing::csv_rows("delegation.csv", &r);
        assert_eq!((&*rows[0]["cost_usd"], &*rows[0]["status"]), ("0.3", "completed"));
        assert_eq!((&*rows[1]["cost_usd"], &*rows[1]["status"]), ("n/a", "n/a"));
        assert_eq!(rows[1]["delegated_facts"], "1", "what the session holds is known");
        let text = testing::csv_text("delegation.csv", &r);
        assert!(text.lines().next().unwrap().ends_with(",summariser"));
    }
}
