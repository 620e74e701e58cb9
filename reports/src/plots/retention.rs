//! Facts kept by kind: a grid of strategies and kinds, darker = more kept.

use crate::record::{RunRecord, Status};
use ctxbench_core::fact::FactKind;
use plotters::style::{RGBColor, WHITE};

use super::palette::Styles;
use super::rows::{ROW, Rows, TOP};
use super::sheet::{At, Fault, GREY, INK, sheet};
use crate::fmt;
use crate::view::Block;

const CELL: i32 = 84;
/// Ends of the scale: light for nothing kept, dark for all kept; the order survives in grey.
const NOTHING: RGBColor = RGBColor(253, 231, 204);
const HALF: RGBColor = RGBColor(120, 170, 180);
const ALL: RGBColor = RGBColor(16, 58, 110);

pub(super) fn draw(block: &Block<'_>, styles: &Styles) -> Result<String, Fault> {
    let rows = Rows::of(block);
    let kinds: Vec<FactKind> = FactKind::ALL
        .into_iter()
        .filter(|k| block.runs.iter().any(|r| r.summary.retention_by_kind.contains_key(k)))
        .collect();
    let columns = kinds.len() as i32 + 2;
    let width = (rows.left + columns * CELL + 40).max(640);
    sheet(width, rows.bottom() + 30, &|s| {
        let below = format!(
            "{}; % of needed facts in the context when needed; hatched = n/a",
            block.terms()
        );
        s.title(&format!("{} – facts kept, by kind", block.title()), &below)?;
        let left = |i: usize| rows.left + i as i32 * CELL + if i >= kinds.len() { 14 } else { 0 };
        let heads = kinds.iter().map(|k| k.name()).chain(["all kinds", "in summary"]);
        for (i, head) in heads.enumerate() {
            s.text(left(i) + CELL / 2, TOP - 14, At::Middle, 15, INK, head)?;
        }
        for (run, y) in rows.iter() {
            let by_kind = kinds.iter().map(|k| run.summary.retention_by_kind.get(k).copied());
            let values =
                by_kind.chain([run.summary.retention_pct, run.summary.summary_retention_pct]);
            for (i, value) in values.enumerate() {
                let (from, to) =
                    ((left(i) + 1, y - ROW / 2 + 1), (left(i) + CELL - 1, y + ROW / 2 - 1));
                match known(run, value) {
                    Some(v) => {
                        let shade = shade(v);
                        s.fill(from, to, shade)?;
                        s.text(
                            left(i) + CELL / 2,
                            y,
                            At::Middle,
                            15,
                            if dark(shade) { WHITE } else { INK },
                            &fmt::count(v),
                        )?;
                    }
                    None => {
                        s.hatched(from, to)?;
                        s.text(left(i) + CELL / 2, y, At::Middle, 14, GREY, "n/a")?;
                    }
                }
            }
        }
        rows.labels(s, styles, rows.left)
    })
}

fn known(run: &RunRecord, value: Option<f64>) -> Option<f64> {
    if run.status == Status::NotApplicable { None } else { value.filter(|v| v.is_finite()) }
}

fn shade(pct: f64) -> RGBColor {
    let share = (pct / 100.0).clamp(0.0, 1.0);
    if share < 0.5 { mix(NOTHING, HALF, share * 2.0) } else { mix(HALF, ALL, share * 2.0 - 1.0) }
}

fn mix(a: RGBColor, b: RGBColor, share: f64) -> RGBColor {
    let mix = |x: u8, y: u8| (f64::from(x) + (f64::from(y) - f64::from(x)) * share).round() as u8;
    RGBColor(mix(a.0, b.0), mix(a.1, b.1), mix(a.2, b.2))
}

/// Whether white text reads better on it.
fn dark(c: RGBColor) -> bool {
    0.299 * f64::from(c.0) + 0.587 * f64::from(c.1) + 0.114 * f64::from(c.2) < 125.0
}
