//! Sources of the input tokens, stacked per strategy: cache reads, cache writes and uncached
//! tokens.

use crate::record::RunRecord;
use plotters::style::RGBColor;

use super::palette::Styles;
use super::rows::{Bar, Rows, TOP};
use super::sheet::{Anchor, Fault, INK, Scale, axis_x, sheet, text_width};
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
        rows.bars(s, rows.left, &|run| {
            let ends = parts(run).into_iter().scan(0.0, |sum, part| {
                *sum += part;
                Some(scale.at(*sum))
            });
            let share = run.summary.cache_read_ratio.filter(|x| x.is_finite());
            let share = fmt::known(share, |x| format!("{:.0} %", x * 100.0));
            Bar {
                parts: ends.zip(PARTS).map(|(end, (_, color))| (end, color)).collect(),
                value: format!("{share} read"),
                room: width - 6,
                ground: width - 4,
            }
        })?;
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
