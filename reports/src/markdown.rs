//! Markdown for a pull request: failures, what decides and one table, details folded away.

use std::fmt::Write as _;

use crate::conclusion::{Conclusion, ConclusionLine};
use crate::record::Results;
use crate::sections::{self, Section};
use crate::sheet::Sheet;
use crate::{fmt, grid, seeds, stats, view};

/// Maximum length of a comment, bytes. GitHub allows 65,536 characters; details are left out rather
/// than cut.
const ROOM: usize = 60_000;

/// Renders the whole comment, without details if they would exceed the limit.
pub(crate) fn pull_request(results: &Results) -> String {
    let results = &*seeds::averaged(results);
    let full = compose(results, true);
    if full.len() <= ROOM { full } else { compose(results, false) }
}

fn compose(results: &Results, details: bool) -> String {
    let mut out = String::from("## Context compaction\n\n");
    if results.runs.is_empty() {
        out.push_str("No runs.\n");
        return out;
    }
    let _ = writeln!(out, "{}\n", text(&view::heading(results)));
    let mut folded = String::new();
    for section in sections::all(results) {
        match section {
            Section::Conclusion(c) => conclusion(&mut out, &c),
            Section::Differences(found) => {
                let missing = stats::missing(results, &found);
                missing.iter().for_each(|why| folded.push_str(&format!("{}\n\n", text(why))));
                let sheets = found.iter().filter(|d| !d.strategies.is_empty());
                sheets.for_each(|d| titled(&mut folded, &stats::sheet(d)));
            }
            Section::Scores(s) | Section::Sheet(s) => titled(&mut folded, &s),
            Section::Notes(all) => list(&mut folded, &all),
        }
    }
    let _ = write!(folded, "{}\n\n", text(&view::modelled(results)));
    out.push_str("<details><summary>Details</summary>\n\n");
    out.push_str(match details {
        true => &folded,
        false => "Left out because this comment would grow too long; they are in `index.html`.\n\n",
    });
    out.push_str("</details>\n");
    out
}

fn conclusion(out: &mut String, c: &Conclusion) {
    let _ = write!(out, "### {}\n\n", text(&c.heading));
    list(out, &c.failures);
    c.sentences.iter().for_each(|s| out.push_str(&format!("{}\n\n", text(s))));
    let line = |l: &ConclusionLine| format!("{}: {}", l.label, l.text);
    list(out, &c.lines.iter().map(line).collect::<Vec<_>>());
    if c.table.rows().next().is_some() {
        sheet(out, &c.table);
    }
}

fn list(out: &mut String, all: &[String]) {
    all.iter().for_each(|item| out.push_str(&format!("- {}\n", text(item))));
    out.push_str(if all.is_empty() { "" } else { "\n" });
}

fn titled(out: &mut String, s: &Sheet) {
    let _ = write!(out, "### {}\n\n", text(&s.title));
    sheet(out, s);
}

fn sheet(out: &mut String, s: &Sheet) {
    let row = |cells: &[String]| cells.iter().map(|c| text(c)).collect::<Vec<_>>();
    out.push_str(&grid::markdown(&row(&s.head), [], |i| i > 0));
    for g in &s.groups {
        if !g.name.is_empty() {
            let _ = writeln!(out, "| **{}** |{}", text(&g.name), " |".repeat(s.head.len() - 1));
        }
        g.rows.iter().for_each(|r| out.push_str(&format!("| {} |\n", row(r).join(" | "))));
    }
    let _ = write!(out, "\n{}\n\n", text(&s.note));
}

/// Escapes a text for Markdown and HTML, on one line.
pub(crate) fn text(raw: &str) -> String {
    let mut out = String::new();
    for c in fmt::one_line(raw).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            // A zero-width space prevents GitHub from notifying a user with this name.
            '@' => out.push_str("@\u{200b}"),
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' | '#' | '~' | '$' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn failures_first_and_text_escaped() {
        let mut results = testing::results();
        results.runs[0].note = Some("a|b\n<img src=x> @someone".into());
        let md = pull_request(&results);
        let in_order = ["sent a tool result", "Of ", "| cost | vs never |", "<details>"];
        assert!(in_order.map(|part| md.find(part).unwrap()).is_sorted(), "{md}");
        assert!(
            md.contains(r"a\|b &lt;img src=x&gt;")
                && !md.contains("<img")
                && !md.contains("@someone")
        );
        assert!(md.contains("x&lt;&amp;\"y"));
    }

    #[test]
    fn every_row_has_as_many_cells_as_the_head() {
        let cells = |line: &str| line.replace("\\|", "").matches('|').count();
        let mut results = testing::results();
        results.runs.extend(testing::LABELS.iter().map(|l| testing::run("second", l, 1)));
        results.runs.iter_mut().for_each(|r| r.resume = vec![Default::default()]);
        results.runs.iter_mut().for_each(|r| r.scenario.recorded = true);
        let md = pull_request(&results);
        assert_eq!(
            (md.matches("| **second** |").count(), md.matches("| **second: ").count()),
            (1, 1),
            "a line above its rows, per table"
        );
        testing::assert_contains(
            &md,
            &["### Differences from reference", "2 sessions: differences only"],
        );
        let mut width = None;
        for line in md.lines() {
            match (line.starts_with('|'), width) {
                (true, None) => width = Some(cells(line)),
                (true, Some(w)) => assert_eq!(cells(line), w, "{line}"),
                (false, _) => width = None,
            }
        }
    }

    #[test]
    fn stays_within_a_comment() {
        let mut results = testing::results();
        for i in 0..60 {
            results.runs.extend(
                testing::LABELS.iter().map(|l| testing::run(&format!("scenario-{i}"), l, 1)),
            );
        }
        assert!(compose(&results, true).len() > ROOM);
        assert!(pull_request(&results).contains("Left out because"));
    }
}
