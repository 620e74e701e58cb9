//! Tokens and dollars per strategy: two bar charts with shared rows.

use crate::record::{RunRecord, Status};
use ctxbench_core::strategy::Standing;

use super::palette::Styles;
use super::rows::{ROW, Rows, TOP, bar_color, remark};
use super::sheet::{Anchor, Drawn, Fault, GREY, INK, Scale, Sheet, axis_x, sheet, text_width};
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
            let style = super::palette::Style { color: GREY, dash: super::palette::Dash::Dashed };
            let x = scale.at(value(reference));
            s.path(&[(x, TOP), (x, rows.bottom())], style, 1)?;
        }
        for (run, y) in rows.iter() {
            if run.status == Status::NotApplicable {
                s.text(left + 6, y, Anchor::Left, 14, GREY, "n/a")?;
                continue;
            }
            let end = scale.at(value(run)).max(left + 1);
            s.fill((left, y - ROW / 2 + 4), (end, y + ROW / 2 - 4), bar_color(run, styles))?;
            let text = format!("{}{}", show(value(run)), remark(run));
            let fits = end + 6 + text_width(&text, 14) < left + PANEL + GAP - 6;
            let text = if fits { text } else { show(value(run)) };
            let room = text_width(&text, 14) + 8;
            s.fill(
                (end + 2, y - 8),
                ((end + room).min(left + PANEL + GAP - 6), y + 8),
                plotters::style::WHITE,
            )?;
            s.text(end + 6, y, Anchor::Left, 14, INK, &text)?;
        }
        Ok(())
    }
}
