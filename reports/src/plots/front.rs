//! Cost against recall: of one session, or as mean changes over several, with the front.

use super::cloud::{self, Axis, Cloud, CloudPoint};
use super::palette::Colors;
use super::sheet::{Fault, GREY, extent, range};
use crate::comparison::Names;
use crate::fmt;
use crate::front::{self, Pooled};
use crate::metrics::Metric;
use crate::record::RunRecord;
use crate::stats::{self, Figure};

/// Maximum length of a name, characters.
const LONGEST: usize = 36;

/// Maximum number of listed names without a point.
const WITHOUT: usize = 6;

/// Draws the products of these runs as a picture of this width, pixels. `None` without
/// any point.
pub(super) fn draw(
    title: &str,
    runs: &[&RunRecord],
    colors: &Colors,
    width: i32,
) -> Option<Result<String, Fault>> {
    let pooled = Pooled::from_runs(runs)?;
    let d = &pooled.differences;
    let is_one = d.sessions == 1;
    let names = Names::new(runs);
    let [(i, x), (j, y)] = front::metrics().collect::<Vec<(usize, &Metric)>>()[..] else {
        return None;
    };
    let (mut points, mut without) = (Vec::new(), Vec::new());
    for row in d.strategies.iter().filter(|s| pooled.products.contains(&*s.strategy)) {
        let label = fmt::elide(&names.of_row(row), LONGEST);
        let (cost, kept) = (&row.figures[i], &row.figures[j]);
        let Some(at) = d.position(cost).zip(d.position(kept)) else {
            without.push(label);
            continue;
        };
        points.push(CloudPoint {
            label,
            at,
            figures: [stats::position(d, cost, x), stats::position(d, kept, y)],
            color: colors[&row.strategy],
            whole: pooled.common.ranked.contains(&*row.strategy),
            on_front: pooled.is_on_front(&row.strategy),
            intervals: [ends(cost), ends(kept)].map(|ends| ends.filter(|_| !is_one)),
        });
    }
    if points.is_empty() {
        return None;
    }
    let base = |i: usize| {
        let mut rows = d.strategies.iter().filter_map(|s| s.figures[i].base_mean);
        if is_one { rows.next() } else { Some(0.0) }
    };
    if let Some(at) = base(i).zip(base(j)).filter(|_| d.row(&d.baseline).is_none()) {
        points.push(CloudPoint {
            label: names.by_label(&d.baseline).into(),
            at,
            figures: match is_one {
                true => [(at.0, x), (at.1, y)].map(|(value, metric)| metric.unit.describe(value)),
                false => ["±0", "±0"].map(str::to_string),
            },
            color: GREY,
            whole: true,
            on_front: false,
            intervals: [None, None],
        });
    }
    let how = match is_one {
        true => "Up and left is better".into(),
        false => {
            format!("Mean change against {}; up and left is better", names.by_label(&d.baseline))
        }
    };
    let intervals = points.iter().any(|p| p.intervals[0].is_some());
    let fewer = points.iter().any(|p| !p.whole);
    let listed = without.iter().take(WITHOUT).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = if without.len() > WITHOUT { ", …" } else { "" };
    let notes = [
        Some(how),
        intervals.then(|| "95 % intervals".into()),
        Some("the line joins the front".into()),
        fewer.then(|| "hollow: finished fewer sessions".into()),
        (!without.is_empty()).then(|| format!("failed: {listed}{more}")),
    ];
    // A single wide interval would compress the plot, so the range is that of the points.
    let reach = |of: fn(&CloudPoint) -> f64| match is_one {
        true => amounts(points.iter().map(of)),
        false => range(points.iter().map(of).chain([0.0]), 0.08, 0.1),
    };
    let (across, up) = (reach(|p| p.at.0), reach(|p| p.at.1));
    let change = if is_one { "" } else { "change of " };
    let axis = |i: usize, m: &Metric, range| {
        let unit = d.suffix(i, m).trim();
        let unit = if unit.is_empty() { "US dollars" } else { unit };
        Axis { title: format!("{change}{}, {unit}", m.name), name: m.name, range }
    };
    let cloud = Cloud {
        title: title.into(),
        below: notes.into_iter().flatten().collect::<Vec<_>>().join("; "),
        x: axis(i, x, across),
        y: axis(j, y, up),
        points,
    };
    Some(cloud::draw(&cloud, width))
}

fn ends(figure: &Figure) -> Option<(f64, f64)> {
    figure.interval.map(|i| (i.low, i.high))
}

/// Range from 0, unless all values are close together and far from 0.
fn amounts(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = extent(values);
    let spread = high - low;
    if high <= 0.0 || !spread.is_finite() {
        (0.0, 1.0)
    } else if spread > 0.0 && spread < high * 0.25 {
        ((low - spread * 0.3).max(0.0), high + spread * 0.15)
    } else {
        (0.0, high * 1.05)
    }
}
