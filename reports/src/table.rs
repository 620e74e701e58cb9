//! The table for a terminal: one block per scenario and model, with a row per strategy.

mod differences;
mod layout;
mod line;

pub(crate) use line::wrap;

use std::collections::BTreeSet;

use crate::record::Results;
use ctxbench_core::strategy::Standing;

use crate::conclusion::Conclusion;
use crate::metrics::{self, Metric};
use crate::sections::{self, Section};
use crate::sheet::Sheet;
use crate::view::{self, ReportBlock};
use crate::{fmt, grid, seeds};
use layout::Layout;
use line::{Lines, Style};

/// Minimum and maximum width of a line, characters.
const NARROWEST: usize = 80;
const WIDEST: usize = 160;

/// Width of a report that is not for a terminal, characters.
pub const WIDTH: usize = 100;

/// Minimum width for all figures, characters; a narrower table has those of [`HEADLINE`].
const ROOM: usize = 100;
const HEADLINE: [&str; 6] =
    ["compactions", "saved_pct", "cost_usd", "cost_saved_pct", "blocked_ms", "recall_pct"];

/// Renders the whole report. Failures come before the scores of their block, and the conclusion
/// comes last, because a reader at the terminal sees the end first. `width` is clamped to 80 to 160
/// characters, and `color` adds ANSI colours.
pub fn table(results: &Results, width: usize, color: bool) -> String {
    let results = &*seeds::averaged(results);
    let width = width.clamp(NARROWEST, WIDEST);
    let mut columns = metrics::scores();
    columns.retain(|m| width >= ROOM || HEADLINE.contains(&m.column));
    if results.runs.is_empty() {
        return "no runs\n".into();
    }
    let mut all: Vec<Section<'_>> = sections::all(results).collect();
    all.sort_by_key(|s| match s {
        Section::Failures(_) | Section::Scores(..) => 0,
        Section::Differences(_) => 1,
        Section::Sheet(_) => 2,
        Section::Reading(_) => 3,
        Section::Conclusion(_) => 4,
    });
    let mut out = Lines { text: String::new(), width, color };
    for section in &all {
        match section {
            // Each block prints its own failures.
            Section::Failures(_) => {}
            Section::Scores(block) => scores(&mut out, block, &columns),
            Section::Differences(found) => differences::differences(&mut out, results, found),
            Section::Sheet(s) => sheet(&mut out, s),
            Section::Reading(_) => {
                out.wrap(Style::Faint, &view::modelled(results, false), "  ");
                out.wrap(Style::Faint, LEGEND, "");
            }
            Section::Conclusion(g) => conclusion(&mut out, g),
        }
    }
    out.text
}

fn conclusion(out: &mut Lines, g: &Conclusion) {
    const LABEL: usize = 17;
    out.add_blank();
    out.add(Style::Heading, &fmt::elide(&g.heading, out.width));
    for l in &g.lines {
        let (sign, style) = if l.alarm { ("!!", Style::Alarm) } else { ("  ", Style::Verdicts) };
        for (i, part) in wrap(&l.text, out.width - LABEL - 3, "").iter().enumerate() {
            let (sign, label) = if i == 0 { (sign, l.label) } else { ("  ", "") };
            out.add(style, &format!("{sign} {label:<LABEL$}{part}"));
        }
    }
    if !g.sentences.is_empty() {
        out.add_blank();
    }
    g.sentences.iter().for_each(|s| out.wrap(Style::Score, s, ""));
}

fn scores(out: &mut Lines, block: &ReportBlock<'_>, columns: &[&'static Metric]) {
    let (title, terms, width) = (block.title(), block.terms(), out.width);
    if title.chars().count() + terms.chars().count() + 4 <= width {
        out.add(Style::Heading, &format!("{title}  ({terms})"));
    } else {
        out.add(Style::Heading, &fmt::elide(&title, width));
        out.add(Style::Heading, &format!("  {}", fmt::elide(&terms, width - 2)));
    }
    for f in view::failures(block) {
        out.wrap(Style::Alarm, &format!("!! {f}"), "   ");
    }
    let layout = Layout::new(block, width, columns);
    let drawn = layout.draw(block);
    let rule =
        "─".repeat(drawn.iter().map(|l| l.chars().count()).max().unwrap_or(width).min(width));
    let (head, rows) = drawn.split_at(drawn.len().saturating_sub(block.runs.len()));
    for line in head {
        out.add(Style::Faint, if line.starts_with('─') { &rule } else { line });
    }
    let mut group = None;
    for (row, run) in rows.iter().zip(&block.runs) {
        let now = run.strategy.standing;
        if group.is_some_and(|g| g != now) {
            out.add(Style::Faint, &rule);
        }
        group = Some(now);
        let style = match now {
            _ if run.broken_rules() > 0 => Style::Alarm,
            Standing::Contender => Style::Score,
            _ => Style::Faint,
        };
        out.add(style, row);
    }
    layout.add_footnotes(out, block);
    out.add_blank();
}

/// Minimum width of a label in a small table, characters.
const LABEL: usize = 10;

/// A small table below the blocks. If there is too little room, the gaps between columns are
/// reduced first, then labels are cut. If even short labels do not fit, the last columns are left
/// out.
fn sheet(out: &mut Lines, s: &Sheet) {
    let width = out.width;
    let widest = |i| widest(s.rows().chain([&s.head]), i);
    let longest = widest(0);
    let least = longest.min(LABEL);
    let taken = |columns: usize, gap: usize| (1..columns).map(|i| widest(i) + gap).sum::<usize>();
    let fits = |columns: &usize| least + taken(*columns, 1) <= width;
    let columns = (1..=s.head.len()).rev().find(fits).unwrap_or(1);
    let others = |gap: usize| taken(columns, gap);
    let gap = if longest + others(2) <= width { 2 } else { 1 };
    let label = longest.min(width.saturating_sub(others(gap)).max(LABEL));
    let short = |c: &str| fmt::elide(&fmt::one_line(c), label);

    let shown = &s.head[..columns];
    let height = shown.iter().map(|h| h.lines().count()).max().unwrap_or(1);
    let head = shown.iter().map(|h| "\n".repeat(height - h.lines().count().max(1)) + h);
    let cell = |(i, c): (usize, &String)| if i == 0 { short(c) } else { fmt::one_line(c) };
    let rows = s.rows().map(|row| row.iter().take(columns).enumerate().map(cell).collect());
    let padding = |i| (if i > 0 { gap as u16 } else { 0 }, 0);
    let drawn = grid::draw(head.collect(), rows, |i| i > 0, padding);
    let (head, rows) = drawn.split_at(drawn.len().saturating_sub(s.rows().count()));

    out.wrap(Style::Heading, &s.title, "  ");
    head.iter().for_each(|line| out.add(Style::Faint, line));
    let mut rows = rows.iter();
    for g in &s.groups {
        if !g.name.is_empty() {
            out.wrap(Style::Heading, &format!("── {}", g.name), "   ");
        }
        rows.by_ref().take(g.rows.len()).for_each(|row| out.add(Style::Score, row));
    }
    let cut: BTreeSet<&String> =
        s.rows().map(|r| &r[0]).filter(|l| short(l) != fmt::one_line(l)).collect();
    for label in cut {
        let told = format!("  {} = {}", short(label), fmt::one_line(label));
        out.wrap(Style::Faint, &told, "  ");
    }
    let left_out: Vec<String> = s.head[columns..].iter().map(|h| fmt::one_line(h)).collect();
    if !left_out.is_empty() {
        let told = format!("  no room for: {}; index.html has them", left_out.join(", "));
        out.wrap(Style::Faint, &told, "  ");
    }
    out.wrap(Style::Faint, &format!("  {}", s.note), "  ");
    out.add_blank();
}

/// Width of the widest cell of a column.
fn widest<'a>(rows: impl Iterator<Item = &'a Vec<String>>, column: usize) -> usize {
    rows.flat_map(|row| row[column].lines()).map(|l| l.chars().count()).max().unwrap_or(0)
}

const LEGEND: &str = "◆ on the front of cost against recall: no other product is at least \
    as good in both and better in one. * best of the products that finished without a broken rule; full = \
    the window was full, quit = it gave up, loop = no progress; n/a = not applicable or \
    unknown. Saved: against the reference. \
    Prefix stable: share of a prompt that the next one repeats from its start (1 = only \
    appended to). Waited: for compaction, modelled. \
    Recall: of what later messages need, the share still in the context, an upper bound on use. At risk: \
    messages that need what a compaction took or changed, or that fetch it again.";

#[cfg(test)]
mod tests {
    use crate::record::Delegation;
    use crate::record::{CodeRewind, ResumeFile, ResumeRecord, RewindRecord};
    use ctxbench_core::host::RewindMode;

    use super::*;
    use crate::testing;

    fn text_at(results: &Results, width: usize) -> String {
        table(results, width, false)
    }

    fn at(width: usize) -> String {
        text_at(&testing::results(), width)
    }

    fn coloured(results: &Results) -> String {
        table(results, 120, true)
    }

    #[test]
    fn a_narrow_terminal_has_the_figures_that_decide() {
        let has = |width: usize| HEADLINE.len() + usize::from(at(width).contains("prefix"));
        assert_eq!((has(99), has(100)), (6, 7));
        let scored: Vec<&str> = metrics::scores().iter().map(|m| m.column).collect();
        assert!(HEADLINE.iter().all(|c| scored.contains(c)));
    }

    #[test]
    fn fits_the_width() {
        for width in [80, 90, 100, 120, 140, 160] {
            for line in at(width).lines() {
                let n = line.chars().count();
                assert!(n <= width, "{n} > {width}: {line}");
            }
        }
    }

    #[test]
    fn sheets_name_the_scenario_once_and_the_strategy_in_full() {
        let mut results = testing::results();
        results.runs.retain(|r| !r.strategy.label.contains(':'));
        results.runs.push(testing::run(
            "a-scenario-with-a-rather-long-name",
            "observation-masking",
            1,
        ));
        let mut resume =
            ResumeRecord { messages: 128, resume_blocked_ms: 98_765, ..ResumeRecord::default() };
        resume.file = Some(ResumeFile {
            format: "claude-code-jsonl".into(),
            bytes_read: 123_456,
            stored_bytes: 1_234_567,
            ..ResumeFile::default()
        });
        let mut rewind = RewindRecord {
            to: "0b7f9a52-5d0e-4a43-9a1c-7f2d9d3b6a11".into(),
            mode: RewindMode::SummarizeFrom,
            context_before: Some(123_456),
            context_after: Some(98_765),
            ..RewindRecord::default()
        };
        rewind.code = Some(CodeRewind {
            changed: 12,
            edit_tools_bytes: 123_456,
            shadow_git_bytes: Some(98_765),
            ..CodeRewind::default()
        });
        let delegation = Delegation { peak_context_tokens: 123_456, ..Delegation::default() };
        for r in &mut results.runs {
            (r.resume, r.rewinds) = (vec![resume.clone()], vec![rewind.clone()]);
            r.delegation = vec![delegation.clone()];
        }
        for width in [80, 100, 120, 160] {
            let text = text_at(&results, width);
            for title in ["Rewind:", "Resume:", "Delegation:"] {
                let from = &text[text.find(&format!("\n{title}")).unwrap()..];
                let part: Vec<&str> =
                    from.trim_start().lines().take_while(|l| !l.is_empty()).collect();
                let wide = part.iter().find(|l| l.chars().count() > width);
                assert_eq!(wide, None, "{width}");
                // Below this width, labels are shortened and explained in a note.
                if width < 100 {
                    continue;
                }
                let at = |begin: &str| {
                    let found = part.iter().position(|l| l.starts_with(begin));
                    found.unwrap_or_else(|| panic!("{begin}: {part:#?}"))
                };
                let second = at("── a-scenario-with-a-rather-long-name");
                assert!([at("── login-bug"), at("anthropic-sdk "), second].is_sorted());
                // Names of up to 19 characters are complete; at 100 columns, up to 16.
                let masking = if width < 120 && title != "Delegation:" {
                    "observat"
                } else {
                    "observation-masking "
                };
                assert!(at("── a-scenario") < at(masking), "{title} {width}");
            }
        }
    }

    #[test]
    fn differences_over_sessions_fit_and_are_short() {
        let mut results = testing::recordings(12);
        for width in [80, 100, 160] {
            let text = text_at(&results, width);
            let block =
                &text[text.find("Differences from reference, mean change per session").unwrap()..];
            assert!(block.lines().all(|l| l.chars().count() <= width), "{block}");
            let codex = block.lines().find(|l| l.starts_with("codex ")).unwrap();
            testing::assert_contains(codex, &[" 12/12 ", "BETTER", "WORSE"]);
        }
        assert!(coloured(&results).contains("\u{1b}[31mWORSE\u{1b}[0m"));
        results.runs.truncate(testing::LABELS.len() * 3);
        let few = table(&results, WIDTH, false);
        assert!(
            few.contains("3 sessions: differences only")
                && !few.contains("BETTER")
                && !few.contains("UNRESOLVED"),
            "{few}"
        );
        results.runs.retain(|r| r.strategy.name != "reference");
        assert!(table(&results, WIDTH, false).contains("taken from `reference`"));
        results.runs.iter_mut().for_each(|r| r.scenario.recorded = false);
        assert!(!table(&results, WIDTH, false).contains("mean change per session"));
    }

    #[test]
    fn failures_stand_before_scores_and_reference_first() {
        let text = at(140);
        let in_order =
            ["INTEGRITY FAILURE", "strategy", "\nreference", "\naider", "\nkeep-nothing"];
        assert!(in_order.map(|part| text.find(part).unwrap()).is_sorted());
        assert!(text.contains("modelled: latency"));
        assert!(text.contains("never triggered") && text.contains("died at step"));
    }

    #[test]
    fn broken_rows_never_win() {
        let mut results = testing::results();
        testing::labelled(&mut results, "x<&\"y").for_each(|r| r.summary.cost_usd = 0.000_1);
        assert!(!table(&results, WIDTH, false).contains("0.0001*"));
    }

    #[test]
    fn colour_only_when_asked() {
        assert!(!at(120).contains('\u{1b}'));
        assert!(coloured(&testing::results()).contains("\u{1b}[32m"));
        assert_eq!(table(&Results::default(), WIDTH, false), "no runs\n");
    }
}
