//! Cost against recall over sessions: mean changes against one baseline, with the front.

use super::Marks;
use super::cloud::{self, Axis, Cloud, CloudPoint};
use super::sheet::{Fault, range};
use crate::fmt;
use crate::front::{self, Pooled};
use crate::metrics::Metric;
use crate::stats::{self, Figure, StrategyDifference};
use crate::terms::Terms;

/// Maximum length of a name in the list, characters.
const LONGEST: usize = 40;

/// Draws the plot; `None` with fewer than two sessions or rows.
pub(super) fn draw(terms: &Terms<'_, '_>, marks: &Marks) -> Option<Result<String, Fault>> {
    let pooled = Pooled::from_runs(&terms.evidence()).filter(|p| p.differences.sessions > 1)?;
    let d = &pooled.differences;
    let axes: Vec<(usize, &Metric)> = front::metrics().collect();
    let [(i, x), (j, y)] = axes[..] else { return None };
    let mut points = Vec::new();
    let mut without = Vec::new();
    for row in d.strategies.iter().filter(|s| pooled.products.contains(&*s.strategy)) {
        let name = fmt::elide(&stats::name(row), LONGEST);
        let (cost, kept) = (&row.figures[i], &row.figures[j]);
        let Some(at) = cost.mean.zip(kept.mean) else {
            without.push(name);
            continue;
        };
        points.push(CloudPoint {
            label: name,
            at,
            figures: [figure(row, cost, x, d), stats::change(kept, y)],
            color: marks[&row.strategy].color,
            whole: pooled.common.ranked.contains(&*row.strategy),
            on_front: pooled.is_on_front(&row.strategy),
            intervals: [ends(cost), ends(kept)],
        });
    }
    if points.len() < 2 {
        return None;
    }
    // The range is that of the points. A single wide interval would compress the plot.
    Some(cloud::draw(&Cloud {
        title: format!("Cost against recall, {}, {}", fmt::sessions(d.sessions), terms.name()),
        below: format!(
            "mean change against {} with its interval; further up and further left is better; \
             diamonds = on the front; hollow = finished fewer sessions",
            fmt::one_line(&d.baseline)
        ),
        x: Axis {
            name: if d.is_relative(i) { "change of cost, %" } else { "change of cost, US dollars" },
            head: "cost",
            range: range(points.iter().map(|p| p.at.0), 0.15, 0.1),
        },
        y: Axis {
            name: "change of recall, percentage points",
            head: "recall",
            range: range(points.iter().map(|p| p.at.1), 0.15, 0.1),
        },
        points,
        without,
    }))
}

/// Formats the change, with the number of sessions if there are fewer.
fn figure(
    row: &StrategyDifference,
    figure: &Figure,
    metric: &Metric,
    d: &stats::Differences,
) -> String {
    let told = stats::change(figure, metric);
    if row.sessions < d.sessions { format!("{told} ({})", row.sessions) } else { told }
}

fn ends(figure: &Figure) -> Option<(f64, f64)> {
    figure.interval.map(|i| (i.low, i.high))
}
