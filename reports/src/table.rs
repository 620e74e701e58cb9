//! The table for a terminal: one block per scenario and model, with a row per strategy.

mod differences;
mod layout;
mod line;

pub(crate) use line::wrap;

use crate::record::Results;
use ctxbench_core::strategy::Standing;

use crate::conclusion::Conclusion;
use crate::metrics::{self, Metric};
use crate::sections::{self, Section};
use crate::sheet::Sheet;
use crate::view::{self, ReportBlock};
use crate::{fmt, grid, seeds};
use layout::Layout;
use line::{TableLine, push};

/// Minimum and maximum width of a line, characters.
const NARROWEST: usize = 80;
const WIDEST: usize = 160;

/// Width of a report that is not for a terminal, characters.
pub const WIDTH: usize = 100;

/// Minimum width for all figures, characters; a narrower table has those of [`HEADLINE`].
const ROOM: usize = 100;
const HEADLINE: [&str; 6] =
    ["compactions", "saved_pct", "cost_usd", "cost_saved_pct", "blocked_ms", "needs_kept_pct"];

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
    let mut out = String::new();
    for line in all.iter().flat_map(|s| lines(s, results, width, &columns)) {
        push(&mut out, &line, color);
    }
    out
}

fn lines(
    section: &Section<'_>,
    results: &Results,
    width: usize,
    columns: &[&'static Metric],
) -> Vec<TableLine> {
    match section {
        // Each block prints its own failures.
        Section::Failures(_) => vec![],
        Section::Scores(block) => block_lines(block, width, columns),
        Section::Differences(found) => differences::differences(results, found, width),
        Section::Sheet(s) => sheet(s, width),
        Section::Reading(_) => {
            let told = wrap(&view::modelled(results, false), width, "  ");
            told.into_iter().chain(legend(width)).map(TableLine::Faint).collect()
        }
        Section::Conclusion(g) => conclusion_lines(g, width),
    }
}

fn conclusion_lines(g: &Conclusion, width: usize) -> Vec<TableLine> {
    const LABEL: usize = 17;
    let mut lines =
        vec![TableLine::Score(String::new()), TableLine::Heading(fmt::elide(&g.heading, width))];
    for l in &g.lines {
        let mark = if l.alarm { "!!" } else { "  " };
        let text = wrap(&l.text, width - LABEL - 3, "");
        for (i, part) in text.iter().enumerate() {
            let (mark, what) = if i == 0 { (mark, l.label) } else { ("  ", "") };
            let line = format!("{mark} {what:<LABEL$}{part}");
            lines.push(if l.alarm { TableLine::Alarm(line) } else { TableLine::Verdicts(line) });
        }
    }
    for (i, s) in g.sentences.iter().enumerate() {
        lines.extend((i == 0).then(|| TableLine::Score(String::new())));
        lines.extend(wrap(s, width, "").into_iter().map(TableLine::Score));
    }
    lines
}

fn block_lines(
    block: &ReportBlock<'_>,
    width: usize,
    columns: &[&'static Metric],
) -> Vec<TableLine> {
    let (title, terms) = (block.title(), block.terms());
    let mut lines = vec![];
    if title.chars().count() + terms.chars().count() + 4 <= width {
        lines.push(TableLine::Heading(format!("{title}  ({terms})")));
    } else {
        lines.push(TableLine::Heading(fmt::elide(&title, width)));
        lines.push(TableLine::Heading(format!("  {}", fmt::elide(&terms, width - 2))));
    }
    for f in view::failures(block) {
        lines.extend(wrap(&format!("!! {f}"), width, "   ").into_iter().map(TableLine::Alarm));
    }
    let layout = Layout::new(block, width, columns);
    let drawn = layout.draw(block);
    let rule =
        "─".repeat(drawn.iter().map(|l| l.chars().count()).max().unwrap_or(width).min(width));
    let (head, rows) = drawn.split_at(drawn.len().saturating_sub(block.runs.len()));
    lines
        .extend(head.iter().map(|l| {
            TableLine::Faint(if l.starts_with('─') { rule.clone() } else { l.clone() })
        }));
    let mut group = None;
    for (row, run) in rows.iter().zip(&block.runs) {
        let now = run.strategy.standing;
        if group.is_some_and(|g| g != now) {
            lines.push(TableLine::Faint(rule.clone()));
        }
        group = Some(now);
        lines.push(match now {
            _ if run.broken_rules() > 0 => TableLine::Alarm(row.clone()),
            Standing::Contender => TableLine::Score(row.clone()),
            _ => TableLine::Faint(row.clone()),
        });
    }
    lines.extend(layout.footnotes(block, width));
    lines.push(TableLine::Score(String::new()));
    lines
}

/// Minimum width of a label in a small table, characters.
const LABEL: usize = 10;

/// A small table below the blocks. If there is too little room, the gaps between columns are
/// reduced first, then labels are cut. If even short labels do not fit, the last columns are left
/// out.
fn sheet(s: &Sheet, width: usize) -> Vec<TableLine> {
    let chars = |t: &str| t.lines().map(|l| l.chars().count()).max().unwrap_or(0);
    let widest = |i: usize| s.rows().chain([&s.head]).map(|r| chars(&r[i])).max().unwrap_or(0);
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

    let mut lines: Vec<TableLine> =
        wrap(&s.title, width, "  ").into_iter().map(TableLine::Heading).collect();
    lines.extend(head.iter().cloned().map(TableLine::Faint));
    let mut rows = rows.iter();
    for g in &s.groups {
        if !g.name.is_empty() {
            lines.extend(
                wrap(&format!("── {}", g.name), width, "   ").into_iter().map(TableLine::Heading),
            );
        }
        lines.extend(rows.by_ref().take(g.rows.len()).cloned().map(TableLine::Score));
    }
    let mut cut: Vec<&String> =
        s.rows().map(|r| &r[0]).filter(|l| short(l) != fmt::one_line(l)).collect();
    cut.sort_unstable();
    cut.dedup();
    let left_out: Vec<String> = s.head[columns..].iter().map(|h| fmt::one_line(h)).collect();
    let more = (!left_out.is_empty())
        .then(|| format!("  no room for: {}; index.html has them", left_out.join(", ")));
    let told = cut
        .into_iter()
        .map(|l| format!("  {} = {}", short(l), fmt::one_line(l)))
        .chain(more)
        .chain([format!("  {}", s.note)]);
    lines.extend(told.flat_map(|t| wrap(&t, width, "  ")).map(TableLine::Faint));
    lines.push(TableLine::Score(String::new()));
    lines
}

fn legend(width: usize) -> Vec<String> {
    let text = "◆ on the front of cost against needs kept: no other product is at least \
        as good in both and better in one. * best of the products that compacted and finished without a broken rule; full = \
        the window was full, quit = it gave up, loop = no progress; n/a = not applicable or \
        unknown. Saved: against the reference. \
        Prefix stable: share of a prompt that the next one repeats from its start (1 = only \
        appended to). Waited: for compaction, modelled. \
        Needs kept: whose fact is in the context then, an upper bound on use. In summary: of the facts \
        compacted away, those the summary carries.";
    wrap(text, width, "")
}

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
        for r in &mut results.runs {
            let file = ResumeFile {
                format: "claude-code-jsonl".into(),
                bytes_read: 123_456,
                stored_bytes: 1_234_567,
                ..ResumeFile::default()
            };
            r.resume = vec![ResumeRecord {
                messages: 128,
                resume_blocked_ms: 98_765,
                file: Some(file),
                ..ResumeRecord::default()
            }];
            r.delegation =
                vec![Delegation { peak_context_tokens: 123_456, ..Delegation::default() }];
            let code = CodeRewind {
                changed: 12,
                edit_tools_bytes: 123_456,
                shadow_git_bytes: Some(98_765),
                ..CodeRewind::default()
            };
            r.rewinds = vec![RewindRecord {
                to: "0b7f9a52-5d0e-4a43-9a1c-7f2d9d3b6a11".into(),
                mode: RewindMode::SummarizeFrom,
                context_before: Some(123_456),
                context_after: Some(98_765),
                code: Some(code),
                ..RewindRecord::default()
            }];
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
                    part.iter()
                        .position(|l| l.starts_with(begin))
                        .unwrap_or_else(|| panic!("{begin}: {part:#?}"))
                };
                assert!(
                    at("── login-bug") < at("anthropic-sdk ")
                        && at("anthropic-sdk ") < at("── a-scenario-with-a-rather-long-name")
                );
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
        assert!(at(100).contains("1 session: nothing to average, no intervals, no verdicts\n"));
    }

    #[test]
    fn failures_stand_before_scores_and_reference_first() {
        let text = at(140);
        let alarm = text.find("INTEGRITY FAILURE").unwrap();
        let head = text.find("strategy").unwrap();
        let reference = text.find("\nreference").unwrap();
        let aider = text.find("\naider").unwrap();
        let control = text.find("\nkeep-nothing").unwrap();
        assert!(alarm < head && head < reference && reference < aider && aider < control);
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
