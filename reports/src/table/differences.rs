//! Differences between the strategies over all sessions.

use super::{TableLine, wrap};
use crate::record::Results;
use crate::stats::{self, Differences};
use crate::{fmt, grid};

/// Minimum width of a name, characters.
const SHORTEST: usize = 10;

/// A short block per model. If a model has several baselines, only the first is included.
pub(super) fn differences(
    results: &Results,
    found: &[Differences],
    width: usize,
) -> Vec<TableLine> {
    let mut out = Vec::new();
    let tell = |out: &mut Vec<TableLine>, text: &str| {
        out.extend(wrap(text, width, "  ").into_iter().map(TableLine::Faint));
    };
    if let Some(why) = stats::missing(results, found) {
        tell(&mut out, why);
        out.push(TableLine::Score(String::new()));
    }
    let several = found.iter().any(|d| d.model != found[0].model);
    for (i, d) in found.iter().enumerate() {
        if found[..i].iter().any(|before| before.model == d.model) {
            continue;
        }
        let caption = stats::caption(d);
        if !d.strategies.is_empty() {
            out.push(TableLine::Heading(fmt::elide(&stats::heading(d), width)));
            let seen = "compacted: in how many of those finished by both";
            tell(&mut out, &format!("{caption}; {seen}; intervals, medians in index.html"));
            let mut head = difference_table(d, width);
            let rows = head.split_off(head.len() - d.strategies.len());
            out.extend(head.into_iter().map(TableLine::Faint));
            out.extend(rows.into_iter().map(TableLine::Verdicts));
        } else if several {
            tell(&mut out, &format!("{}: {caption}", fmt::one_line(&d.model)));
        } else {
            tell(&mut out, &caption);
        }
        out.push(TableLine::Score(String::new()));
    }
    out
}

/// Table with the mean change and the verdict per figure; the page has the intervals as well. On a
/// narrow terminal, it is limited to the headline figures.
fn difference_table(d: &Differences, width: usize) -> Vec<String> {
    let with_verdicts = d.has_verdicts();
    let draw = |room: usize, all: bool| {
        let shown = || stats::judged().enumerate().filter(move |(_, m)| all || m.headline);
        let mut head = vec!["strategy".to_string(), "compacted".into()];
        for (_, m) in shown() {
            head.push(m.name.into());
            head.extend(with_verdicts.then(String::new));
        }
        let rows = d.strategies.iter().map(|row| {
            let name = fmt::elide(&stats::name(row), room);
            let mut cells = vec![name, stats::describe_exposure(row)];
            for (i, m) in shown() {
                let f = &row.figures[i];
                cells.push(stats::change(f, m));
                cells.extend(with_verdicts.then(|| stats::verdict(f).into()));
            }
            cells
        });
        let is_verdict = |i: usize| with_verdicts && i > 1 && i % 2 == 1;
        let left = |i| match i {
            0 => 0,
            _ if i == 1 || is_verdict(i) => 1,
            _ => 2,
        };
        grid::draw(head, rows, |i| i > 0 && !is_verdict(i), |i| (left(i), 0))
    };
    // The width of the other columns is known only after they are drawn.
    let wide = |lines: Vec<String>| lines.iter().map(|l| l.chars().count()).max().unwrap_or(0);
    let all = wide(draw(SHORTEST, true)) <= width;
    let longest = d.strategies.iter().map(|r| stats::name(r).chars().count()).max().unwrap_or(0);
    let widest = wide(draw(longest, all));
    draw(longest.saturating_sub(widest.saturating_sub(width)).max(SHORTEST), all)
}
