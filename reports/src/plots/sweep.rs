//! Effect of the values of a setting on cost, recall and waiting, in panels below each other.

use plotters::style::RGBColor;

use super::Marks;
use super::curve::{self, CurveLine, CurvePoint, CurveValue, Panel};
use crate::error::ReportError;
use crate::fmt;
use crate::metrics::Metric;
use crate::stats::{self, Figure};
use crate::sweep::{Curve, Sweeps, Swept, by_value};

/// Minimum width of a picture, pixels.
const WIDTH: i32 = 740;

pub(super) fn draw(
    sweeps: &Sweeps<'_>,
    swept: &Swept<'_>,
    terms: &str,
    marks: &Marks,
) -> Result<String, ReportError> {
    let d = &sweeps.pooled.differences;
    let values = values(swept);
    let how = match d.sessions {
        1 => "figures of one session".to_string(),
        _ => format!("mean change against {}, with its interval", fmt::one_line(&d.baseline)),
    };
    let (name, sessions) = (fmt::one_line(&swept.name), fmt::sessions(d.sessions));
    let panel = |(i, metric): (usize, &Metric)| {
        let unit = d.suffix(i, metric);
        let comma = if unit.is_empty() { "" } else { "," };
        let lines = swept.curves.iter().map(|c| line(sweeps, c, (i, metric), marks, &values));
        Panel { name: format!("{}{comma}{unit}", metric.name), lines: lines.collect() }
    };
    let named = swept.curves.iter().filter(|_| swept.curves.len() > 1);
    let picture = curve::Curve {
        heading: vec![
            format!("{name}: {}, {sessions}, {terms}", swept.setting),
            format!("{how}; diamonds = on the front of cost against recall"),
        ],
        foot: vec![],
        axis: swept.setting.to_string(),
        rows: &[""],
        values: values
            .iter()
            .map(|v| CurveValue { lines: vec![v.to_string()], is_today: false })
            .collect(),
        legend: named.map(|c| (color(c, marks), c.rest.clone())).collect(),
        panels: stats::judged().enumerate().filter(|(_, m)| m.headline).map(panel).collect(),
    };
    curve::draw(&picture, picture.min_width().max(WIDTH))
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
    (figure, metric): (usize, &Metric),
    marks: &Marks,
    values: &[&str],
) -> CurveLine {
    let one = sweeps.pooled.differences.sessions == 1;
    let point = |(value, label): &(&str, &str)| {
        let (row, is_marked) = sweeps.row(label);
        let f = &row?.figures[figure];
        let (mean, text) = match one {
            true => (metric.unit.converted(f.own_mean?), metric.unit.describe(f.own_mean?)),
            false => (axis_value(f, metric, f.mean?), stats::change(f, metric)),
        };
        let ends = f.interval.filter(|_| !one);
        let front = if is_marked { ", on the front" } else { "" };
        Some(CurvePoint {
            value: values.iter().position(|v| v == value)?,
            mean,
            interval: ends.map(|i| (axis_value(f, metric, i.low), axis_value(f, metric, i.high))),
            is_marked,
            tooltip: format!("{value}: {} {text}{front}", metric.name),
            sessions: vec![],
        })
    };
    CurveLine { color: color(curve, marks), points: curve.rows.iter().filter_map(point).collect() }
}

/// Converts a change to the displayed unit.
fn axis_value(f: &Figure, metric: &Metric, x: f64) -> f64 {
    if f.scale == stats::Scale::Ratio { x } else { metric.unit.converted(x) }
}
