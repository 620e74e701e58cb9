//! Reopened sessions: data restored from the product's files, and the next steps of the product.

use crate::fmt;
use crate::record::{ResumeFile, ResumeRecord};
use crate::sheet::{ByBlock, Column, cells, heads};

pub(crate) const SHEET: ByBlock = ByBlock {
    title: "Resume: the session written, closed and opened again, in the formats of each product",
    note: "Format: the last word of its name in resume.csv. Messages that the context showed \
        before: lost, garbled (other words or another speaker), surplus (came back though no \
        longer shown). File same: the file gives back exactly that context; shown same: the \
        product shows it, by its own rules. Summary calls and waiting: between the restart and the first \
        answer. In file: facts said before the restart that the file still holds.",
    head: || heads(COLUMNS),
    told: |_| None,
    rows: |r| r.resume.iter().map(|s| cells(COLUMNS, s)).collect(),
};

const COLUMNS: &[Column<ResumeRecord>] = &[
    ("format", format),
    ("read\nB", |s| file(s, |f| fmt::tokens(f.bytes_read as f64))),
    ("of\nB", |s| file(s, |f| fmt::tokens(f.stored_bytes as f64))),
    ("shown\nbefore", |s| s.messages.to_string()),
    ("lost", |s| file(s, |f| f.lost.to_string())),
    ("garbled", |s| file(s, |f| f.garbled.to_string())),
    ("surplus", |s| file(s, |f| f.surplus.to_string())),
    ("file\nsame", |s| file(s, |f| fmt::yes_or_no(f.context_equal))),
    ("shown\nsame", |s| shown(s, fmt::yes_or_no(s.shown_equal))),
    ("summary\ncalls", |s| shown(s, s.resume_summary_calls.to_string())),
    ("waited\ns", |s| shown(s, fmt::seconds(s.resume_blocked_ms as f64 / 1_000.0))),
    ("in\nfile %", |s| file(s, |f| fmt::known(f.recoverable_pct, fmt::pct))),
];

fn format(s: &ResumeRecord) -> String {
    match &s.file {
        // The row already has the product's name, so `claude-code-jsonl` becomes `jsonl`.
        Some(file) => file.format.rsplit('-').next().unwrap_or_default().into(),
        None => if s.keeps_nothing() { "none kept" } else { "failed" }.into(),
    }
}

/// A figure of the data restored from a file.
fn file(s: &ResumeRecord, show: fn(&ResumeFile) -> String) -> String {
    fmt::known(s.file.as_ref(), show)
}

/// A figure after the restart, if the product keeps anything.
fn shown(s: &ResumeRecord, text: String) -> String {
    if s.keeps_nothing() { "n/a".into() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn a_row_per_restart_and_format_and_none_without() {
        let mut results = testing::results();
        assert!(SHEET.groups(&results).is_empty());
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
        let rows = &SHEET.groups(&results)[0].rows;
        assert_eq!((rows.len(), rows[0].len()), (3, COLUMNS.len() + 1));
        assert_eq!(
            (rows[0][1].as_str(), rows[0][5].as_str(), rows[0][8].as_str()),
            ("rollout", "2", "no")
        );
        // A product without storage has an empty context after a restart. This is not a figure of
        // the product.
        assert_eq!(rows[1][1..].join(" "), "none kept n/a n/a 9 n/a n/a n/a n/a n/a n/a n/a n/a");
        assert_eq!(rows[2][1..].join(" "), "failed n/a n/a 9 n/a n/a n/a n/a yes 0 1.5 n/a");
        let csv = crate::csv::csv_text("resume.csv", &results);
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
}
