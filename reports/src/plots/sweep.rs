//! Effect of the values of a setting on cost, recall and waiting, in panels below each other.

use super::palette::{Colors, HUES};
use super::sheet::{Fault, GREY, GRID, HPos, Heading, INK, Scale, TEXT, axis_y, range, sheet};
use crate::fmt;
use crate::metrics::Metric;
use crate::stats::{self, Figure};
use crate::sweep::{Curve, DEFAULT, Sweeps, Swept, by_value};

const LEFT_MARGIN: i32 = 66;
const RIGHT_MARGIN: i32 = 16;
const HEIGHT: i32 = 150;
/// Gap between two panels, pixels.
const GAP: i32 = 26;
/// Distance of lines of text, pixels.
const LINE: i32 = 20;

/// The value of a row without a given one.
const TODAY: &str = "today";

/// Position and figure of a value.
struct Dot {
    x: i32,
    y: f64,
    interval: Option<(f64, f64)>,
    on_front: bool,
    is_today: bool,
    /// True if a line may join it with its neighbours.
    is_number: bool,
    tooltip: String,
}

/// Draws the panels as a picture of this width, pixels.
pub(super) fn draw(
    sweeps: &Sweeps<'_>,
    swept: &Swept<'_>,
    terms: &str,
    colors: &Colors,
    width: i32,
) -> Result<String, Fault> {
    let d = &sweeps.pooled.differences;
    let curves = &swept.curves;
    let mut ticks: Vec<&str> = curves.iter().flat_map(|c| &c.rows).map(|row| row.0).collect();
    ticks.sort_by(|a, b| by_value(a, b));
    ticks.dedup();
    // A single curve has the colour of its strategy; a curve is never empty.
    let color = |i: usize| match &curves[..] {
        [only] => colors[only.rows[0].1],
        _ => HUES[i % HUES.len()],
    };
    let right = width - RIGHT_MARGIN;
    let step = (right - LEFT_MARGIN) / ticks.len().max(1) as i32;
    let x = |value: &str| {
        let i = ticks.iter().position(|text| *text == value).unwrap_or(0) as i32;
        LEFT_MARGIN + step / 2 + i * step
    };
    let panels: Vec<(String, Vec<Vec<Dot>>)> = stats::judged()
        .enumerate()
        .filter(|(_, m)| m.headline)
        .map(|(i, m)| {
            let lines = curves.iter().map(|c| dots(sweeps, c, (i, m), &x)).collect();
            let unit = d.suffix(i, m);
            (format!("{}{}{unit}", m.name, if unit.is_empty() { "" } else { "," }), lines)
        })
        .collect();
    let all = || panels.iter().flat_map(|(_, lines)| lines.iter().flatten());
    let mut below = match d.sessions {
        1 => "Figures of one session".to_string(),
        _ => format!("Mean change per session against {}", fmt::one_line(&d.baseline)),
    };
    if all().any(|dot| dot.interval.is_some()) {
        below += ", with 95 % intervals";
    }
    below += "; diamonds: on the front of cost against recall";
    if all().any(|dot| dot.is_today) {
        below += "; grey line: the setting of today";
    }
    let name = fmt::one_line(&swept.name);
    let title = format!("{name}: {}, {}, {terms}", swept.setting, fmt::sessions(d.sessions));
    let heading = Heading::new(&title, &below, width);
    let listed = if curves.len() > 1 { curves.len() as i32 * LINE } else { 0 };
    let top = heading.height() + listed + 16;
    let bottom = |i: usize| top + HEIGHT + i as i32 * (HEIGHT + GAP);
    let foot = bottom(panels.len().saturating_sub(1));

    sheet(width, foot + 46, |s| {
        s.heading(&heading)?;
        for (i, c) in swept.curves.iter().enumerate().filter(|_| listed > 0) {
            let row = heading.height() + 10 + i as i32 * LINE;
            s.disc((LEFT_MARGIN, row), 5, color(i), true)?;
            s.text(LEFT_MARGIN + 14, row, HPos::Left, TEXT, INK, &c.rest)?;
        }
        for (k, (name, lines)) in panels.iter().enumerate() {
            let shown = lines.iter().flatten().flat_map(|d| {
                let (low, high) = d.interval.unwrap_or((d.y, d.y));
                [d.y, low, high, 0.0]
            });
            let (min, max) = range(shown, 0.1, 1e-3);
            // Amounts start at 0; only changes have two directions.
            let min = if d.sessions == 1 { min.max(0.0) } else { min };
            let y = Scale { min, max, start: bottom(k), length: -HEIGHT };
            for value in &ticks {
                s.path(&[(x(value), bottom(k)), (x(value), bottom(k) - HEIGHT)], GRID, 1)?;
            }
            axis_y(s, y, LEFT_MARGIN, right, fmt::exact, name)?;
            for (i, dots) in lines.iter().enumerate() {
                let at = |dot: &Dot| (dot.x, y.at(dot.y));
                let path: Vec<_> = dots.iter().filter(|d| d.is_number).map(at).collect();
                s.path(&path, color(i), 2)?;
                for dot in dots {
                    if dot.is_today {
                        s.path(&[(dot.x, y.at(dot.y)), (right, y.at(dot.y))], GREY, 1)?;
                    }
                    if let Some((low, high)) = dot.interval {
                        s.path(&[(dot.x, y.at(low)), (dot.x, y.at(high))], color(i), 1)?;
                    }
                    if dot.on_front {
                        s.diamond(at(dot), 9, color(i))?;
                    }
                    s.disc(at(dot), 4, color(i), !dot.is_today)?;
                    s.add_tooltip(at(dot), 8, &dot.tooltip);
                }
            }
        }
        for value in &ticks {
            s.text(x(value), foot + 13, HPos::Center, 14, GREY, label_of(value))?;
        }
        s.text((LEFT_MARGIN + right) / 2, foot + 34, HPos::Center, TEXT, GREY, swept.setting)
    })
}

/// Text of a value.
fn label_of(value: &str) -> &str {
    if value == DEFAULT { TODAY } else { value }
}

fn dots(
    sweeps: &Sweeps<'_>,
    curve: &Curve<'_>,
    (figure, metric): (usize, &Metric),
    x: &dyn Fn(&str) -> i32,
) -> Vec<Dot> {
    let one = sweeps.pooled.differences.sessions == 1;
    let dot = |(value, label): &(&str, &str)| {
        let (row, on_front) = sweeps.row(label);
        let f = &row?.figures[figure];
        let (y, told) = match one {
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
            is_today: *value == DEFAULT,
            is_number: value.trim_end_matches('%').parse::<f64>().is_ok(),
            tooltip: format!("{}: {} {told}{front}", label_of(value), metric.name),
        })
    };
    curve.rows.iter().filter_map(dot).collect()
}

/// Converts a change to the displayed unit.
fn axis_value(f: &Figure, metric: &Metric, x: f64) -> f64 {
    if f.scale == stats::Scale::Ratio { x } else { metric.unit.converted(x) }
}
