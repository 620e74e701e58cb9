//! Effect of the values of a setting on cost, recall and waiting, in panels below each other.

use super::curve::{self, CurveLine, CurvePoint, CurveValue, Panel};
use super::palette::{Colors, HUES};
use crate::comparison::TODAY;
use crate::error::ReportError;
use crate::fmt;
use crate::metrics::Metric;
use crate::stats::{self, Figure};
use crate::sweep::{Curve, DEFAULT, Sweeps, Swept, by_value};

/// Draws the panels as a picture of this width, pixels.
pub(super) fn draw(
    sweeps: &Sweeps<'_>,
    swept: &Swept<'_>,
    terms: &str,
    colors: &Colors,
    width: i32,
) -> Result<String, ReportError> {
    let d = &sweeps.pooled.differences;
    let curves = &swept.curves;
    let mut values: Vec<&str> = curves.iter().flat_map(|c| &c.rows).map(|row| row.0).collect();
    values.sort_by(|a, b| by_value(a, b));
    values.dedup();
    // A single curve has the colour of its strategy; a curve is never empty.
    let color = |i: usize| match &curves[..] {
        [only] => colors[only.rows[0].1],
        _ => HUES[i % HUES.len()],
    };
    let panel = |(figure, metric): (usize, &Metric)| {
        let unit = d.suffix(figure, metric);
        let line = |(i, c)| CurveLine {
            color: color(i),
            points: points(sweeps, c, (figure, metric), &values),
        };
        Panel {
            name: format!("{}{}{unit}", metric.name, if unit.is_empty() { "" } else { "," }),
            is_amount: d.sessions == 1,
            lines: curves.iter().enumerate().map(line).collect(),
        }
    };
    let panels: Vec<Panel> =
        stats::judged().enumerate().filter(|(_, m)| m.headline).map(panel).collect();
    let mut below = match d.sessions {
        1 => "Figures of one session".to_string(),
        _ => format!("Mean change per session against {}", fmt::one_line(&d.baseline)),
    };
    let mut all = panels.iter().flat_map(|p| &p.lines).flat_map(|line| &line.points);
    if all.any(|point| point.interval.is_some()) {
        below += ", with 95 % intervals";
    }
    below += "; diamonds: on the front of cost against recall";
    if values.contains(&DEFAULT) {
        below += "; grey line: the setting of today";
    }
    let value = |value: &&str| CurveValue {
        lines: vec![label_of(value).into()],
        is_today: *value == DEFAULT,
        is_number: value.trim_end_matches('%').parse::<f64>().is_ok(),
    };
    let several = curves.iter().enumerate().filter(|_| curves.len() > 1);
    let (name, sessions) = (fmt::one_line(&swept.name), fmt::sessions(d.sessions));
    let picture = curve::Curve {
        title: format!("{name}: {}, {sessions}, {terms}", swept.setting),
        below,
        foot: vec![],
        axis: swept.setting.to_string(),
        rows: &[""],
        values: values.iter().map(value).collect(),
        legend: several.map(|(i, c)| (color(i), c.rest.clone())).collect(),
        panels,
    };
    curve::draw(&picture, width)
}

/// Text of a value.
fn label_of(value: &str) -> &str {
    if value == DEFAULT { TODAY } else { value }
}

fn points(
    sweeps: &Sweeps<'_>,
    curve: &Curve<'_>,
    (figure, metric): (usize, &Metric),
    values: &[&str],
) -> Vec<CurvePoint> {
    let one = sweeps.pooled.differences.sessions == 1;
    let point = |(value, label): &(&str, &str)| {
        let (row, on_front) = sweeps.row(label);
        let f = &row?.figures[figure];
        let (mean, told) = match one {
            true => (metric.unit.converted(f.own_mean?), metric.unit.describe(f.own_mean?)),
            false => (axis_value(f, metric, f.mean?), stats::change(f, metric)),
        };
        let ends = f.interval.filter(|_| !one);
        let front = if on_front { ", on the front" } else { "" };
        Some(CurvePoint {
            value: values.iter().position(|v| v == value)?,
            mean,
            interval: ends.map(|i| (axis_value(f, metric, i.low), axis_value(f, metric, i.high))),
            is_marked: on_front,
            tooltip: format!("{}: {} {told}{front}", label_of(value), metric.name),
            sessions: vec![],
        })
    };
    curve.rows.iter().filter_map(point).collect()
}

/// Converts a change to the displayed unit.
fn axis_value(f: &Figure, metric: &Metric, x: f64) -> f64 {
    if f.scale == stats::Scale::Ratio { x } else { metric.unit.converted(x) }
}
