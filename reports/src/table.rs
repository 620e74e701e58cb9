//! The report for a terminal: failures, what decides, one table, and on request the details.

mod line;

pub(crate) use line::wrap;

use std::time::Duration;

use crate::conclusion::Conclusion;
use crate::record::Results;
use crate::sections::{self, Section};
use crate::sheet::Sheet;
use crate::{fmt, grid, seeds, stats, view};
use line::{Lines, Style};

/// Minimum and maximum width of a line, characters.
const NARROWEST: usize = 40;
const WIDEST: usize = 160;

/// Width without a terminal, characters: of a report, and of one with details.
const WIDTH: usize = 80;
const WIDE: usize = 140;

/// Form of a report for a terminal.
#[derive(Clone, Copy, Debug, Default)]
pub struct TableOptions {
    /// Width in characters, clamped to 40 to 160; `None` without a terminal.
    pub width: Option<usize>,
    /// True for ANSI colours.
    pub color: bool,
    /// True for all tables, and not only that of the compared sessions.
    pub details: bool,
    /// Time that the run took, for the first line.
    pub elapsed: Option<Duration>,
}

/// Renders the report.
pub fn table(results: &Results, options: &TableOptions) -> String {
    let results = &*seeds::averaged(results);
    if results.runs.is_empty() {
        return "no runs\n".into();
    }
    let without_terminal = if options.details { WIDE } else { WIDTH };
    let width = options.width.unwrap_or(without_terminal).clamp(NARROWEST, WIDEST);
    let mut out = Lines { text: String::new(), width, color: options.color };
    let elapsed = options.elapsed.map(|t| format!(" · {:.1} s", t.as_secs_f64()));
    out.wrap(Style::Heading, &(view::heading(results) + &elapsed.unwrap_or_default()), "  ");
    for section in sections::all(results) {
        match section {
            Section::Conclusion(c) => conclusion(&mut out, &c),
            _ if !options.details => {}
            Section::Differences(found) => {
                let sheets = found.iter().filter(|d| !d.strategies.is_empty());
                sheets.for_each(|d| titled(&mut out, &stats::sheet(d)));
                let missing = stats::missing(results, &found);
                missing.iter().for_each(|why| out.wrap(Style::Faint, why, "  "));
            }
            Section::Scores(s) | Section::Sheet(s) => titled(&mut out, &s),
            Section::Notes(all) => {
                out.add_blank();
                all.iter().for_each(|note| out.wrap(Style::Faint, note, "  "));
                out.wrap(Style::Faint, &view::modelled(results), "  ");
            }
        }
    }
    out.text
}

fn conclusion(out: &mut Lines, c: &Conclusion) {
    out.add_blank();
    out.wrap(Style::Heading, &c.heading, "  ");
    c.failures.iter().for_each(|f| out.wrap(Style::Alarm, &format!("! {f}"), "  "));
    if !c.failures.is_empty() && !c.sentences.is_empty() {
        out.add_blank();
    }
    c.sentences.iter().for_each(|s| out.wrap(Style::Score, s, "  "));
    for l in &c.lines {
        out.wrap(Style::Faint, &format!("{}: {}", l.label, l.text), "  ");
    }
    if c.table.rows().next().is_some() {
        out.add_blank();
        sheet(out, &c.table);
    }
}

fn titled(out: &mut Lines, s: &Sheet) {
    out.add_blank();
    out.wrap(Style::Heading, &s.title, "  ");
    sheet(out, s);
}

/// Maximum width of a label, characters, and at most half of the line; a longer one is continued in
/// the next line.
const LABEL: usize = 34;

/// A table. If there is too little room, the gaps between columns are reduced first, then the last
/// columns are left out and named below.
fn sheet(out: &mut Lines, s: &Sheet) {
    let longest = LABEL.min(out.width / 2);
    let label = |text: &str| -> Vec<String> {
        let chars: Vec<char> = fmt::one_line(text).chars().collect();
        chars.chunks(longest).map(|part| part.iter().collect()).collect()
    };
    let widest = |i: usize| {
        let cells = s.rows().map(|row| &row[i]);
        let lines = cells.flat_map(|c| if i == 0 { label(c) } else { vec![fmt::one_line(c)] });
        let head = s.head[i].lines().map(String::from);
        lines.chain(head).map(|l| l.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..s.head.len()).map(widest).collect();
    let taken = |shown: &[usize], gap: usize| {
        shown.iter().map(|i| widths[*i]).sum::<usize>() + gap * (shown.len() - 1)
    };
    let mut shown: Vec<usize> = (0..s.head.len()).collect();
    let mut left_out = vec![];
    while shown.len() > 1 && taken(&shown, 1) > out.width {
        // The mark of a row has no head.
        let last = shown.iter().rposition(|i| !s.head[*i].is_empty()).filter(|at| *at > 0);
        left_out.insert(0, fmt::one_line(&s.head[shown.remove(last.unwrap_or(1))]));
    }
    let gap = if taken(&shown, 2) <= out.width { 2 } else { 1 };

    let height = shown.iter().map(|i| s.head[*i].lines().count().max(1)).max().unwrap_or(1);
    let head = shown.iter().map(|i| &s.head[*i]);
    let head = head.map(|h| "\n".repeat(height - h.lines().count().max(1)) + h).collect();
    let cell = |row: &[String], i: usize| match i {
        0 => label(&row[0]).join("\n"),
        _ => fmt::one_line(&row[i]),
    };
    let rows = s.rows().map(|row| shown.iter().map(|i| cell(row, *i)).collect());
    let is_figure = |at: usize| at > 0 && !s.head[shown[at]].is_empty();
    let drawn = grid::draw(head, rows, is_figure, |i| (if i > 0 { gap } else { 0 }, 0));
    let (head, rows) = drawn.split_at(drawn.len().min(height + 1));

    head.iter().take(height).for_each(|line| out.add(Style::Faint, line));
    let mut rows = rows.iter();
    for g in &s.groups {
        if !g.name.is_empty() {
            out.wrap(Style::Heading, &format!("── {}", fmt::one_line(&g.name)), "   ");
        }
        let lines = g.rows.iter().map(|row| label(&row[0]).len().max(1)).sum();
        rows.by_ref().take(lines).for_each(|row| out.add(Style::Score, row));
    }
    if !left_out.is_empty() {
        let text = format!("No room for: {}; widen the terminal.", left_out.join(", "));
        out.wrap(Style::Faint, &text, "  ");
    }
    out.wrap(Style::Faint, &s.note, "  ");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{CodeRewind, Delegation, ResumeFile, ResumeRecord, RewindRecord};
    use crate::testing;

    fn at(results: &Results, width: usize, details: bool) -> String {
        table(results, &TableOptions { width: Some(width), details, ..TableOptions::default() })
    }

    fn line<'a>(text: &'a str, begin: &str) -> &'a str {
        let found = text.lines().find(|l| l.starts_with(begin));
        found.unwrap_or_else(|| panic!("{begin}: {text}"))
    }

    #[test]
    fn fits_the_width_and_never_cuts_a_name_or_a_figure() {
        let mut results = testing::recordings(3);
        for (details, width) in [(false, 40), (false, 60), (false, 80), (true, 60), (true, 140)] {
            let text = at(&results, width, details);
            let wide = text.lines().find(|l| l.chars().count() > width);
            assert_eq!(wide, None, "{width}");
            assert!(!text.contains('…'), "{text}");
        }
        testing::assert_contains(&at(&results, 60, false), &["No room for: ", "compactions;"]);
        assert!(!at(&results, 120, false).contains("No room"));
        // Recall decides, so other columns of the details go first.
        let narrow = at(&results, 70, true);
        let scores = &narrow[narrow.find("Every strategy on each session").unwrap()..];
        let scores = scores.split("\n\n").next().unwrap();
        assert!(scores.contains(" recall "), "{scores}");
        testing::assert_contains(scores, &["No room for: ", "waited s"]);
        let long = "a".repeat(70);
        testing::labelled(&mut results, "codex").for_each(|r| r.strategy.label = long.clone());
        let text = at(&results, 80, false);
        assert_eq!(text.lines().filter(|l| l.starts_with(&long[..LABEL])).count(), 2, "{text}");
    }

    #[test]
    fn failures_come_first_then_what_decides_then_the_table() {
        let text = at(&testing::results(), 80, false);
        let in_order =
            ["ctxbench 0.1.0", "login-bug: ", "! ", "Of ", "Caution:", " never ", "\n◆ "];
        assert!(in_order.map(|part| text.find(part).unwrap()).is_sorted(), "{text}");
        assert!(text.lines().count() <= 40);
        let want = "! x<&\"y sent a tool result without its call once, first at request 12: call";
        assert!(text.contains(want), "{text}");
        // It finished, so its row is the last one, with its own mark.
        let table = text.split("\n\n").last().unwrap();
        let rows: Vec<&str> = table
            .lines()
            .take_while(|l| !l.starts_with("No room") && !l.starts_with('◆'))
            .collect();
        let last = rows.last().unwrap();
        assert!(last.starts_with("x<&\"y ") && last.ends_with('✗'), "{text}");
    }

    #[test]
    fn a_failed_row_is_a_line_and_told_once() {
        let mut results = testing::results();
        let codex = testing::labelled(&mut results, "codex").next().unwrap();
        codex.status = crate::record::Status::Overflow;
        codex.summary.steps_completed = 69;
        codex.integrity.push(crate::record::IntegrityFailure {
            rule: crate::record::Rule::OverTheWindow,
            request: 70,
            detail: "201990 tokens in a window of 200000".into(),
        });
        let text = at(&results, 80, false);
        let told = "! codex failed at reply 69 of 120: prompt too long for the window\n";
        assert!(text.contains(told) && text.matches("too long").count() == 1, "{text}");
    }

    #[test]
    fn details_have_every_session_and_name_it_once() {
        let mut results = testing::recordings(2);
        let resume = ResumeRecord {
            file: Some(ResumeFile { format: "claude-code-jsonl".into(), ..ResumeFile::default() }),
            ..ResumeRecord::default()
        };
        let code = Some(CodeRewind { changed: 12, ..CodeRewind::default() });
        let rewind = RewindRecord { code, ..RewindRecord::default() };
        for r in &mut results.runs {
            (r.resume, r.rewinds) = (vec![resume.clone()], vec![rewind.clone()]);
            r.delegation = vec![Delegation::default()];
        }
        let text = at(&results, 140, true);
        for title in ["Every strategy on each", "Rewind:", "Resume:", "Delegation:"] {
            let part = &text[text.find(&format!("\n{title}")).unwrap()..];
            let part = part.trim_start().split("\n\n").next().unwrap();
            assert_eq!(part.matches("── s01").count(), 1, "{part}");
            assert!(part.find("── s01") < part.find("── s02"), "{part}");
        }
        assert!(!at(&results, 140, false).contains("── s01"));
    }

    #[test]
    fn differences_over_sessions_have_verdicts_from_ten_on() {
        let mut results = testing::recordings(12);
        let text = at(&results, 140, true);
        let from = text.find("Differences from reference, mean change per session").unwrap();
        let codex = line(&text[from..], "codex ");
        testing::assert_contains(codex, &[" 12/12 ", "BETTER", "WORSE"]);
        let colored = TableOptions { color: true, details: true, ..TableOptions::default() };
        assert!(table(&results, &colored).contains("\u{1b}[31mWORSE\u{1b}[0m"));
        results.runs.truncate(testing::LABELS.len() * 3);
        let few = at(&results, 140, true);
        assert!(few.contains("3 sessions: differences only") && !few.contains("BETTER"), "{few}");
        results.runs.retain(|r| r.strategy.name != "reference");
        assert!(at(&results, 80, true).contains("taken from `reference`"));
    }

    #[test]
    fn colour_only_when_asked() {
        let results = testing::results();
        assert!(!at(&results, 80, true).contains('\u{1b}'));
        let colored = TableOptions { color: true, ..TableOptions::default() };
        assert!(table(&results, &colored).contains("\u{1b}[32m◆"));
        assert_eq!(at(&Results::default(), 80, false), "no runs\n");
    }
}
