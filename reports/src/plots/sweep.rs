//! Effect of the values of a setting on cost, recall and waiting, in panels below each other.

use plotters::style::RGBColor;

use super::Marks;
use super::sheet::{Fault, GREY, GRID, HPos, INK, Scale, TEXT, axis_y, range, sheet, text_width};
use crate::fmt;
use crate::metrics::Metric;
use crate::stats::{self, Figure};
use crate::sweep::{Curve, Sweeps, Swept, by_value};

const LEFT_MARGIN: i32 = 96;
const TOP: i32 = 92;
const HEIGHT: i32 = 170;
/// Gap between two panels, pixels.
const GAP: i32 = 34;
/// Maximum width of a panel, and minimum width of a value, pixels.
const WIDTH: i32 = 640;
const STEP: i32 = 46;

/// Position and figure of a value.
struct Dot {
    x: i32,
    y: f64,
    interval: Option<(f64, f64)>,
    on_front: bool,
    told: String,
}

/// Dots of a curve in one panel.
struct SweepLine {
    color: RGBColor,
    dots: Vec<Dot>,
}

pub(super) fn draw(
    sweeps: &Sweeps<'_>,
    swept: &Swept<'_>,
    terms: &str,
    marks: &Marks,
) -> Result<String, Fault> {
    let d = &sweeps.pooled.differences;
    let values = values(swept);
    let panels: Vec<(usize, &Metric)> =
        stats::judged().enumerate().filter(|(_, m)| m.headline).collect();
    let width = (values.len() as i32 * STEP).max(WIDTH);
    let step = width / values.len().max(1) as i32;
    let x = |value: &str| {
        let i = values.iter().position(|v| *v == value).unwrap_or(0) as i32;
        LEFT_MARGIN + step / 2 + i * step
    };
    let several = swept.curves.len() > 1;
    let names = swept.curves.iter().map(|c| text_width(&c.rest, TEXT)).max().unwrap_or(0);
    let list = LEFT_MARGIN + width + 30;
    let right = if several { list + 24 + names } else { LEFT_MARGIN + width };
    let bottom = |i: usize| TOP + HEIGHT + i as i32 * (HEIGHT + GAP);
    let foot = bottom(panels.len().saturating_sub(1));

    sheet(right + 30, foot + 60, |s| {
        let how = match d.sessions {
            1 => "figures of one session".to_string(),
            _ => format!("mean change against {}, with its interval", fmt::one_line(&d.baseline)),
        };
        s.title(
            &format!(
                "{}: {}, {}, {terms}",
                fmt::one_line(&swept.name),
                swept.setting,
                fmt::sessions(d.sessions)
            ),
            &format!("{how}; diamonds = on the front of cost against recall"),
        )?;
        for (k, (i, metric)) in panels.iter().enumerate() {
            let lines: Vec<SweepLine> =
                swept.curves.iter().map(|c| line(sweeps, c, *i, metric, marks, &x)).collect();
            let shown = lines.iter().flat_map(|l| &l.dots).flat_map(|d| {
                let (low, high) = d.interval.unwrap_or((d.y, d.y));
                [d.y, low, high]
            });
            let (min, max) = range(shown, 0.12, 1e-3);
            let y = Scale { min, max, start: bottom(k), length: -HEIGHT };
            let unit = d.suffix(*i, metric);
            let comma = if unit.is_empty() { "" } else { "," };
            let name = format!("{}{comma}{unit}", metric.name);
            axis_y(s, y, LEFT_MARGIN, LEFT_MARGIN + width, fmt::exact, &name)?;
            for value in &values {
                s.path(&[(x(value), bottom(k)), (x(value), bottom(k) - HEIGHT)], GRID, 1)?;
            }
            for l in &lines {
                let path: Vec<(i32, i32)> = l.dots.iter().map(|d| (d.x, y.at(d.y))).collect();
                s.path(&path, l.color, 2)?;
                for (dot, at) in l.dots.iter().zip(path) {
                    if let Some((low, high)) = dot.interval {
                        s.path(&[(at.0, y.at(low)), (at.0, y.at(high))], l.color, 1)?;
                    }
                    if dot.on_front {
                        s.diamond(at, 9, l.color)?;
                    }
                    s.disc(at, 4, l.color, true)?;
                    s.add_tooltip(at, 8, &dot.told);
                }
            }
        }
        for value in &values {
            s.text(x(value), foot + 14, HPos::Center, 14, GREY, value)?;
        }
        s.text(LEFT_MARGIN + width / 2, foot + 38, HPos::Center, TEXT, GREY, swept.setting)?;
        for (i, c) in swept.curves.iter().enumerate().filter(|_| several) {
            let row = TOP + 10 + i as i32 * 22;
            s.disc((list, row), 5, color(c, marks), true)?;
            s.text(list + 14, row, HPos::Left, TEXT, INK, &c.rest)?;
        }
        Ok(())
    })
}

/// Distinct values of all curves, sorted.
fn values<'a>(swept: &Swept<'a>) -> Vec<&'a str> {
    let mut out: Vec<&str> =
        swept.curves.iter().flat_map(|c| c.rows.iter().map(|(v, _)| *v)).collect();
    out.sort_by(|a, b| by_value(a, b));
    out.dedup();
    out
}

/// The colour of the first row; a curve is never empty.
fn color(c: &Curve<'_>, marks: &Marks) -> RGBColor {
    marks[c.rows[0].1].color
}

fn line(
    sweeps: &Sweeps<'_>,
    curve: &Curve<'_>,
    figure: usize,
    metric: &Metric,
    marks: &Marks,
    x: &dyn Fn(&str) -> i32,
) -> SweepLine {
    let one = sweeps.pooled.differences.sessions == 1;
    let dot = |(value, label): &(&str, &str)| {
        let (row, on_front) = sweeps.row(label);
        let f = &row?.figures[figure];
        let (y, said) = match one {
            true => (metric.unit.converted(f.own_mean?), metric.unit.describe(f.own_mean?)),
            false => (axis_value(f, metric, f.mean?), stats::change(f, metric)),
        };
        let ends = f.interval.filter(|_| !one);
        let front = if on_front { ", on the front" } else { "" };
        Some(Dot {
            x: x(value),
            y,
            interval: ends.map(|i| (axis_value(f, metric, i.low), axis_value(f, metric, i.high))),
            on_front,
            told: format!("{value}: {} {said}{front}", metric.name),
        })
    };
    SweepLine { color: color(curve, marks), dots: curve.rows.iter().filter_map(dot).collect() }
}

/// Converts a change to the displayed unit.
fn axis_value(f: &Figure, metric: &Metric, x: f64) -> f64 {
    if f.scale == stats::Scale::Ratio { x } else { metric.unit.converted(x) }
}
