//! Differences between the strategies over all sessions.

use super::{Lines, Style};
use crate::record::Results;
use crate::stats::{self, Differences};
use crate::{fmt, grid};

/// Minimum width of a name, characters.
const SHORTEST: usize = 10;

/// A short block per model. If a model has several baselines, only the first is included.
pub(super) fn differences(out: &mut Lines, results: &Results, found: &[Differences]) {
    if let Some(why) = stats::missing(results, found) {
        out.wrap(Style::Faint, why, "  ");
        out.add_blank();
    }
    let several = found.iter().any(|d| d.model != found[0].model);
    for (i, d) in found.iter().enumerate() {
        if found[..i].iter().any(|before| before.model == d.model) {
            continue;
        }
        let caption = stats::caption(d);
        if !d.strategies.is_empty() {
            out.add(Style::Heading, &fmt::elide(&stats::heading(d), out.width));
            let seen = "compacted: in how many of those finished by both";
            let told = format!("{caption}; {seen}; intervals, medians in index.html");
            out.wrap(Style::Faint, &told, "  ");
            let drawn = difference_table(d, out.width);
            let (head, rows) = drawn.split_at(drawn.len() - d.strategies.len());
            head.iter().for_each(|line| out.add(Style::Faint, line));
            rows.iter().for_each(|row| out.add(Style::Verdicts, row));
        } else if several {
            out.wrap(Style::Faint, &format!("{}: {caption}", fmt::one_line(&d.model)), "  ");
        } else {
            out.wrap(Style::Faint, &caption, "  ");
        }
        out.add_blank();
    }
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
                cells.extend(with_verdicts.then(|| stats::word(f.verdict).into()));
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
