//! Tokens and dollars per strategy: two bar charts with shared rows.

use crate::record::RunRecord;
use ctxbench_core::strategy::Standing;

use super::palette::{Dash, Style, Styles};
use super::rows::{Bar, Rows, TOP};
use super::sheet::{Drawn, Fault, GREY, Scale, Sheet, axis_x, sheet};
use crate::fmt;
use crate::view::ReportBlock;

const PANEL: i32 = 330;
const GAP: i32 = 40;

pub(super) fn draw(block: &ReportBlock<'_>, styles: &Styles) -> Result<String, Fault> {
    let rows = Rows::from_block(block);
    let width = rows.left + 2 * PANEL + GAP + 30;
    sheet(width, rows.bottom() + 56, &|s| {
        let below = format!(
            "{}; pale = did not finish, so not comparable; dashed line = the reference",
            block.terms()
        );
        s.title(&format!("{} – tokens and dollars", block.title()), &below)?;
        let (left, right) = (rows.left, rows.left + PANEL + GAP);
        let tokens = Panel {
            left,
            value: |r| r.summary.input_tokens as f64,
            show: fmt::tokens,
            tick: fmt::tick,
            name: "input tokens of all requests",
        };
        let dollars = Panel {
            left: right,
            value: |r| r.summary.cost_usd,
            show: fmt::usd,
            tick: fmt::exact,
            name: "cost, US dollars",
        };
        tokens.draw(s, &rows, styles)?;
        dollars.draw(s, &rows, styles)?;
        rows.labels(s, styles, width - 20)
    })
}

/// A panel with one quantity of every row.
struct Panel {
    left: i32,
    value: fn(&RunRecord) -> f64,
    show: fn(f64) -> String,
    tick: fn(f64) -> String,
    name: &'static str,
}

impl Panel {
    fn draw(&self, s: &Sheet<'_>, rows: &Rows<'_>, styles: &Styles) -> Drawn {
        let Panel { left, value, show, tick, name } = *self;
        let max = rows.iter().map(|(r, _)| value(r)).fold(0.0, f64::max);
        // Leave room for the value after the longest bar.
        let scale = Scale { min: 0.0, max: max * 1.22, start: left, length: PANEL };
        axis_x(s, scale, TOP, rows.bottom(), tick, name)?;
        if let Some((reference, _)) =
            rows.iter().find(|(r, _)| r.strategy.standing == Standing::Hypothetical)
        {
            let style = Style { color: GREY, dash: Dash::Dashed };
            let x = scale.at(value(reference));
            s.path(&[(x, TOP), (x, rows.bottom())], style, 1)?;
        }
        let room = left + PANEL + GAP - 6;
        rows.bars(s, left, &|run| Bar {
            parts: vec![(scale.at(value(run)).max(left + 1), styles.of_run(run).color)],
            value: show(value(run)),
            room,
            ground: room,
        })
    }
}
