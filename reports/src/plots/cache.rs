//! Sources of the input tokens, stacked per strategy: cache reads, cache writes and uncached
//! tokens.

use crate::record::{RunRecord, Status};
use plotters::style::{RGBColor, WHITE};

use super::palette::{Styles, pale};
use super::rows::{ROW, Rows, TOP, remark};
use super::sheet::{Anchor, Fault, GREY, INK, Scale, axis_x, sheet, text_width};
use crate::fmt;
use crate::view::ReportBlock;

const PANEL: i32 = 620;
const PARTS: [(&str, RGBColor); 3] = [
    ("read from the cache", RGBColor(86, 180, 233)),
    ("written to the cache", RGBColor(230, 159, 0)),
    ("uncached", RGBColor(136, 34, 85)),
];

pub(super) fn draw(block: &ReportBlock<'_>, styles: &Styles) -> Result<String, Fault> {
    let rows = Rows::from_block(block);
    let width = rows.left + PANEL + 40;
    sheet(width, rows.bottom() + 56, &|s| {
        s.title(
            &format!("{} – prompt cache", block.title()),
            &format!("{}; pale = did not finish", block.terms()),
        )?;
        let max = rows.iter().map(|(r, _)| r.summary.input_tokens as f64).fold(0.0, f64::max);
        let scale = Scale { min: 0.0, max: max * 1.18, start: rows.left, length: PANEL };
        axis_x(s, scale, TOP, rows.bottom(), fmt::tick, "input tokens of all requests")?;
        let mut x = rows.left;
        for (name, color) in PARTS {
            s.fill((x, TOP - 26), (x + 14, TOP - 13), color)?;
            s.text(x + 20, TOP - 19, Anchor::Left, 15, INK, name)?;
            x += 44 + text_width(name, 15);
        }
        for (run, y) in rows.iter() {
            if run.status == Status::NotApplicable {
                s.text(rows.left + 6, y, Anchor::Left, 14, GREY, "n/a")?;
                continue;
            }
            let mut sum = 0.0;
            for (part, (_, color)) in parts(run).into_iter().zip(PARTS) {
                let (from, to) = (scale.at(sum), scale.at(sum + part));
                sum += part;
                let color = if run.status == Status::Completed { color } else { pale(color, 0.4) };
                if to > from {
                    s.fill((from, y - ROW / 2 + 4), (to, y + ROW / 2 - 4), color)?;
                }
            }
            let share = run
                .summary
                .cache_read_ratio
                .filter(|x| x.is_finite())
                .map_or("n/a".into(), |x| format!("{:.0} %", x * 100.0));
            let end = scale.at(sum);
            let long = format!("{share} read{}", remark(run));
            let short = format!("{share} read");
            let text = if end + 6 + text_width(&long, 14) < width - 6 { long } else { short };
            s.fill(
                (end + 2, y - 8),
                ((end + 8 + text_width(&text, 14)).min(width - 4), y + 8),
                WHITE,
            )?;
            s.text(end + 6, y, Anchor::Left, 14, INK, &text)?;
        }
        rows.labels(s, styles, width - 20)
    })
}

/// Tokens read from the cache, written to it, and uncached.
fn parts(run: &RunRecord) -> [f64; 3] {
    let s = &run.summary;
    let uncached =
        s.input_tokens.saturating_sub(s.cache_read_tokens).saturating_sub(s.cache_write_tokens);
    [s.cache_read_tokens as f64, s.cache_write_tokens as f64, uncached as f64]
}
