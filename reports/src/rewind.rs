//! Rewinds: restored files and conversation, and storage cost.

use crate::fmt;
use crate::record::{CodeRewind, RewindRecord, word};
use crate::sheet::{ByBlock, Column, cells, heads};
use ctxbench_core::strategy::Standing;

pub(crate) const SHEET: ByBlock = ByBlock {
    title: "Rewind: files restored, and whether the context is what it was at that message",
    note: "Files: how many of those that had changed since the prompt, by whatever means, are back \
        in their state at the prompt; what a shell command changed unseen is missing there. \
        Context in tokens, before → after; as then: the very context of that message. Bytes that \
        either way of keeping files needs for the session so far, before compression. n/a: the \
        product does not do this, or the session does not say what is on disk.",
    head: || heads(COLUMNS),
    told: |_| None,
    // Controls only appear in rewind.csv.
    rows: |r| match r.strategy.standing {
        Standing::Contender => r.rewinds.iter().map(|w| cells(COLUMNS, w)).collect(),
        _ => vec![],
    },
};

const COLUMNS: &[Column<RewindRecord>] = &[
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

#[cfg(test)]
mod tests {
    use ctxbench_core::host::RewindStatus;

    use super::*;
    use crate::testing;

    #[test]
    fn no_rewind_no_sheet_and_unknown_is_not_zero() {
        let mut results = testing::results();
        results.runs.retain(|r| r.strategy.standing == Standing::Contender);
        assert!(SHEET.groups(&results).is_empty());
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
        let rows = &SHEET.groups(&results)[0].rows;
        assert_eq!(rows[0][3..].join(" | "), "done | 1 of 4 | 25.0 | 9 → 4 | yes | 0 | n/a");
        assert_eq!(rows[1][3..].join(" | "), "n/a | n/a | n/a | n/a | n/a | n/a | n/a");
        let csv = crate::csv::csv_text("rewind.csv", &results);
        assert_eq!(csv.lines().count(), 3);
        assert!(csv.lines().nth(2).unwrap().contains("n/a,n/a,n/a"), "{csv}");
    }
}
