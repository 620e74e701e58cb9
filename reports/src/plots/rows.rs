//! Shared parts of plots with a row per strategy: labels, groups, bars.

use std::collections::BTreeSet;

use crate::record::{RunRecord, Status};
use ctxbench_core::strategy::Standing;
use plotters::style::{RGBColor, WHITE};

use super::palette::{Styles, pale};
use super::sheet::{Anchor, Drawn, GREY, GRID, INK, Sheet, TEXT, text_width};
use crate::view::ReportBlock;
use crate::{fmt, front};

/// Height of a row, pixels.
pub(super) const ROW: i32 = 25;
/// Upper edge of the first row, pixels.
pub(super) const TOP: i32 = 96;
const LONGEST: usize = 36;

/// The rows of a block, from top to bottom.
pub(super) struct Rows<'a> {
    block: &'a ReportBlock<'a>,
    names: Names<'a>,
    /// Right edge of the labels, pixels.
    pub(super) left: i32,
}

impl<'a> Rows<'a> {
    pub(super) fn from_block(block: &'a ReportBlock<'a>) -> Rows<'a> {
        let names = Names::new(block);
        let width = |r: &&RunRecord| text_width(&names.marked(r), TEXT);
        let widest = block.runs.iter().map(width).max().unwrap_or(0);
        Rows { block, names, left: 44 + widest.max(80) + 8 }
    }

    /// Lower edge of the last row, pixels.
    pub(super) fn bottom(&self) -> i32 {
        TOP + self.block.runs.len() as i32 * ROW
    }

    /// Every run with the vertical centre of its row.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&'a RunRecord, i32)> {
        self.block.runs.iter().enumerate().map(|(i, r)| (*r, TOP + i as i32 * ROW + ROW / 2))
    }

    /// Draws colour keys and names, with a thin line between reference, products and controls up to
    /// `right`.
    pub(super) fn labels(&self, s: &Sheet<'_>, styles: &Styles, right: i32) -> Drawn {
        let mut group = None;
        for (run, y) in self.iter() {
            let now = run.strategy.standing;
            if group.is_some_and(|g| g != now) {
                s.line((20, y - ROW / 2), (right, y - ROW / 2), GRID, 1)?;
            }
            group = Some(now);
            s.fill((self.left - 18, y - 6), (self.left - 6, y + 6), styles.of_run(run).color)?;
            let ink = if now == Standing::Contender { INK } else { GREY };
            s.text(self.left - 24, y, Anchor::Right, TEXT, ink, &self.names.marked(run))?;
        }
        Ok(())
    }
}

/// Labels on the front of the block.
pub(super) struct Names<'a>(BTreeSet<&'a str>);

impl<'a> Names<'a> {
    pub(super) fn new(block: &'a ReportBlock<'a>) -> Names<'a> {
        let runs = block.runs.iter().zip(front::of_block(block));
        Names(runs.filter(|(_, on_it)| *on_it).map(|(r, _)| &*r.strategy.label).collect())
    }

    /// Returns the name, with the mark if the run is on the front.
    pub(super) fn marked(&self, run: &RunRecord) -> String {
        let on_front = self.0.contains(&*run.strategy.label);
        if on_front { format!("{} {}", label(run), front::MARK) } else { label(run) }
    }
}

/// Returns the name of a strategy; the middle of a very long name is cut.
pub(super) fn label(run: &RunRecord) -> String {
    fmt::elide(&fmt::one_line(&run.strategy.label), LONGEST)
}

/// A bar of one run, from left to right.
pub(super) struct Bar {
    /// Ends of the parts, pixels, each with its colour.
    pub(super) parts: Vec<(i32, RGBColor)>,
    /// Value after the bar.
    pub(super) value: String,
    /// Right edge of the room for the value and a remark on the end of the run, pixels.
    pub(super) room: i32,
    /// Right edge of the ground behind them, pixels.
    pub(super) ground: i32,
}

impl Rows<'_> {
    /// Draws a bar per run, from `left`; a run that does not apply has none. A bar is pale if the run
    /// did not finish, because such a run measures less work.
    pub(super) fn bars(&self, s: &Sheet<'_>, left: i32, bar: &dyn Fn(&RunRecord) -> Bar) -> Drawn {
        for (run, y) in self.iter() {
            if run.status == Status::NotApplicable {
                s.text(left + 6, y, Anchor::Left, 14, GREY, "n/a")?;
                continue;
            }
            let Bar { parts, value, room, ground } = bar(run);
            let finished = run.status == Status::Completed;
            let mut end = left;
            for (to, color) in parts {
                let color = if finished { color } else { pale(color, 0.4) };
                if to > end {
                    s.fill((end, y - ROW / 2 + 4), (to, y + ROW / 2 - 4), color)?;
                }
                end = to;
            }
            let summary = &run.summary;
            let died = format!(" (died at {}/{})", summary.steps_completed, summary.steps_total);
            let long = if finished { value.clone() } else { format!("{value}{died}") };
            let text = if end + 6 + text_width(&long, 14) < room { long } else { value };
            let behind = (end + 8 + text_width(&text, 14)).min(ground);
            s.fill((end + 2, y - 8), (behind, y + 8), WHITE)?;
            s.text(end + 6, y, Anchor::Left, 14, INK, &text)?;
        }
        Ok(())
    }
}
