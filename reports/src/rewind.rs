//! Rewinds: restored files and conversation, and storage cost.

use crate::fmt;
use crate::record::{RewindRecord, word};
use crate::sheet::ByBlock;
use ctxbench_core::strategy::Standing;

pub(crate) const SHEET: ByBlock = ByBlock {
    title: "Rewind: files restored, and whether the context is what it was at that message",
    note: "Files: how many of those that had changed since the prompt, by whatever means, are back \
        in their state at the prompt; what a shell command changed unseen is missing there. \
        Context in tokens, before → after; as then: the very context of that message. Bytes that \
        either way of keeping files needs for the session so far, before compression. n/a: the \
        product does not do this, or the session does not say what is on disk.",
    head: &[
        "to",
        "mode",
        "status",
        "files",
        "success\n%",
        "context",
        "as\nthen",
        "edit\ntools B",
        "shadow\ngit B",
    ],
    told: |_| None,
    // Controls only appear in rewind.csv.
    rows: |r| match r.strategy.standing {
        Standing::Contender => r.rewinds.iter().map(row).collect(),
        _ => vec![],
    },
};

fn row(w: &RewindRecord) -> Vec<String> {
    let code = w.code.as_ref();
    let int = |n: Option<u64>| fmt::known(n, |n| n.to_string());
    let tokens = |n: u64| fmt::tokens(n as f64);
    let context = w.context_before.zip(w.context_after);
    vec![
        // Ids of recordings are long; rewind.csv has them in full.
        fmt::elide(&fmt::one_line(&w.to), 12),
        word(&w.mode),
        word(&w.status),
        fmt::known(code, |c| format!("{} of {}", c.restored, c.changed)),
        fmt::known(code.and_then(|c| c.success_pct), fmt::pct),
        fmt::known(context, |(a, b)| format!("{} → {}", tokens(a), tokens(b))),
        fmt::known(w.context_equal, fmt::yes_or_no),
        int(code.map(|c| c.edit_tools_bytes)),
        int(code.and_then(|c| c.shadow_git_bytes)),
    ]
}

#[cfg(test)]
mod tests {
    use crate::record::CodeRewind;
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
