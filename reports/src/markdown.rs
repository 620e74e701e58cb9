//! Markdown for a pull request: failures first, a table per scenario, details folded away.

use std::fmt::Write as _;

use crate::record::Results;
use ctxbench_core::strategy::Standing;

use crate::sections::{self, Section};
use crate::sheet::Sheet;
use crate::stats::{self, Differences};
use crate::view::{self, ReportBlock};
use crate::{fmt, front, grid, metrics, seeds};

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
    }
    for section in sections::all(results) {
        match section {
            Section::Failures(all) => {
                out.push_str("**Failures**\n\n");
                all.iter().for_each(|f| out.push_str(&format!("- {}\n", text(f))));
                out.push('\n');
            }
            Section::Conclusion(g) => {
                let _ = write!(out, "**{}**\n\n", text(&g.heading));
                if !g.sentences.is_empty() {
                    let _ = write!(out, "{}\n\n", text(&g.sentences.join(" ")));
                }
                for l in &g.lines {
                    let _ = writeln!(out, "- {}: {}", l.label, text(&l.text));
                }
                out.push('\n');
            }
            Section::Differences(found) => {
                if let Some(why) = stats::missing(results, &found) {
                    let _ = writeln!(out, "{}\n", text(why));
                }
                differences(&mut out, &found);
            }
            Section::Scores(block) => {
                heading(&mut out, &block.title(), &block.terms());
                scores(&mut out, &block);
                if details {
                    folded(&mut out, &block);
                }
            }
            Section::Sheet(s) => sheet(&mut out, &s),
            Section::Reading(_) => reading(&mut out, results, details),
        }
    }
    out
}

fn heading(out: &mut String, title: &str, terms: &str) {
    let _ = write!(out, "### {}\n\n{}\n\n", text(title), text(terms));
}

fn sheet(out: &mut String, s: &Sheet) {
    heading(out, &s.title, &s.note);
    out.push_str(&grid::markdown(&row(&s.head), [], |i| i > 0));
    for g in &s.groups {
        if !g.name.is_empty() {
            let _ = writeln!(out, "| **{}** |{}", text(&g.name), " |".repeat(s.head.len() - 1));
        }
        g.rows.iter().for_each(|r| out.push_str(&format!("| {} |\n", row(r).join(" | "))));
    }
    out.push('\n');
}

fn reading(out: &mut String, results: &Results, details: bool) {
    let _ = write!(out, "<sub>{}</sub>\n\n", text(&view::modelled(results, true)));
    out.push_str("<details><summary>How to read this</summary>\n\n");
    out.push_str(
        "**Bold**: best of the products that finished. *Italic*: hypothetical and control rows. \
         n/a: not applicable or unknown.\n\n",
    );
    let _ = writeln!(out, "- {}: {}", front::MARK, text(front::HELP));
    for m in metrics::scores() {
        let _ = writeln!(out, "- {}: {}", text(&m.score_title()), text(m.help));
    }
    let _ = writeln!(out, "- Differences between strategies: {}", text(stats::HELP));
    if !details {
        out.push_str(
            "\nDetails are left out here because the comment would grow too long; they \
            are in `index.html`.\n",
        );
    }
    out.push_str("\n</details>\n");
}

/// Differences between the strategies over all sessions; a single line if there is only one
/// session.
fn differences(out: &mut String, found: &[Differences]) {
    if found.iter().any(|d| !d.strategies.is_empty()) {
        out.push_str("### Differences between strategies\n\n");
    }
    for d in found {
        if d.strategies.is_empty() {
            let _ = writeln!(out, "{}: {}\n", text(&d.model), text(&stats::caption(d)));
            continue;
        }
        let _ = writeln!(out, "{}. {}.\n", text(&stats::heading(d)), text(&stats::caption(d)));
        let mut head = vec!["strategy".to_string(), "compacted".into()];
        head.extend(stats::judged().map(|m| text(m.name)));
        let rows = d.strategies.iter().map(|row| {
            let figures = row.figures.iter().zip(stats::judged());
            [text(&stats::name(row)), stats::describe_exposure(row)]
                .into_iter()
                .chain(figures.map(|(f, m)| text(&stats::cell(f, m))))
                .collect()
        });
        out.push_str(&grid::markdown(&head, rows, |i| i > 0));
        out.push('\n');
    }
}

fn row(cells: &[String]) -> Vec<String> {
    cells.iter().map(|c| text(c)).collect()
}

fn scores(out: &mut String, block: &ReportBlock<'_>) {
    let mut head = vec!["strategy".to_string(), "steps".into()];
    head.extend(metrics::scores().iter().map(|m| text(&m.score_title())));
    head.push("notes".into());
    let marks = front::of_block(block);
    let rows = block.runs.iter().zip(block.figures(&metrics::scores())).zip(&marks).map(
        |((run, figures), front)| {
            let mark = if *front { format!("{} ", front::MARK) } else { String::new() };
            let name = mark + &text(&run.strategy.label);
            let aside = run.strategy.standing != Standing::Contender;
            let mut row =
                vec![if aside { format!("*{name}*") } else { name }, text(&view::steps(run))];
            row.extend(figures.into_iter().map(|f| match f.best {
                true => format!("**{}**", f.text),
                false => f.text,
            }));
            row.push(text(&view::notes(run).join("; ")));
            row
        },
    );
    let _ = writeln!(out, "{}", grid::markdown(&head, rows, |i| (2..head.len() - 1).contains(&i)));
}

/// Collapsed details with more columns; columns without a number in any row are left out.
fn folded(out: &mut String, block: &ReportBlock<'_>) {
    let mut columns = metrics::sorted_columns(|m| &m.detail);
    columns.retain(|(m, _)| block.runs.iter().any(|r| m.value(r).is_some()));
    out.push_str("<details><summary>Waiting, tokens</summary>\n\n");
    let heads = columns.iter().map(|(_, head)| (*head).to_string());
    let head: Vec<String> = std::iter::once("strategy".to_string()).chain(heads).collect();
    let rows = block.runs.iter().map(|run| {
        let figures = columns.iter().map(|(m, _)| m.text(run));
        std::iter::once(text(&run.strategy.label)).chain(figures).collect()
    });
    out.push_str(&grid::markdown(&head, rows, |i| i > 0));
    out.push_str("\n</details>\n\n");
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
        assert!(md.find("INTEGRITY").unwrap() < md.find("| strategy |").unwrap());
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
            (md.matches("| **login-bug** |").count(), md.matches("| **second** |").count()),
            (1, 1),
            "a line above its rows"
        );
        testing::assert_contains(
            &md,
            &["### Differences between strategies", "2 sessions: differences only"],
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
        for i in 0..24 {
            results.runs.extend(
                testing::LABELS.iter().map(|l| testing::run(&format!("scenario-{i}"), l, 1)),
            );
        }
        assert!(compose(&results, true).len() > ROOM);
        assert!(pull_request(&results).contains("Details are left out"));
    }
}
