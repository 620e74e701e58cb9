//! Cost against recall in one session.

use crate::record::{RunRecord, Status};

use super::Marks;
use super::cloud::{self, Axis, Cloud, CloudPoint};
use super::sheet::{Fault, extent};
use crate::view::ReportBlock;
use crate::{fmt, front};

/// Maximum length of a name in the list, characters.
const LONGEST: usize = 36;

pub(super) fn draw(block: &ReportBlock<'_>, marks: &Marks) -> Result<String, Fault> {
    let front = front::of_block(block);
    let mut points = Vec::new();
    let mut without = Vec::new();
    for (run, on_front) in block.runs.iter().zip(front) {
        let label = fmt::elide(&fmt::one_line(&run.strategy.label), LONGEST);
        let Some((cost, kept)) = position(run) else {
            without.push(label);
            continue;
        };
        points.push(CloudPoint {
            label,
            at: (cost, kept),
            figures: [fmt::usd(cost), fmt::pct(kept)],
            color: marks[&run.strategy.label].color,
            whole: run.status == Status::Completed,
            on_front,
            intervals: [None, None],
        });
    }
    let (x_min, x_max) = range(points.iter().map(|p| p.at.0));
    let (y_min, y_max) = range(points.iter().map(|p| p.at.1));
    cloud::draw(&Cloud {
        title: format!("{} – cost against recall", block.title()),
        below: format!(
            "{}; further up and further left is better; diamonds = on the front; hollow = did not \
             finish",
            block.terms()
        ),
        x: Axis {
            name: if x_min > 0.0 {
                "cost, US dollars (does not begin at 0)"
            } else {
                "cost, US dollars"
            },
            head: "cost $",
            range: (x_min, x_max),
        },
        y: Axis {
            name: if y_min > 0.0 { "recall, % (does not begin at 0)" } else { "recall, %" },
            head: "kept %",
            range: (y_min, y_max.min(103.0)),
        },
        points,
        without,
    })
}

fn position(run: &RunRecord) -> Option<(f64, f64)> {
    let kept = run.summary.recall_pct.filter(|k| k.is_finite())?;
    (run.status != Status::NotApplicable && run.summary.cost_usd.is_finite())
        .then_some((run.summary.cost_usd, kept))
}

/// Range from 0, unless all values are close together and far from 0.
fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = extent(values);
    let spread = high - low;
    if high <= 0.0 || !spread.is_finite() {
        (0.0, 1.0)
    } else if spread > 0.0 && spread < high * 0.25 {
        ((low - spread * 0.3).max(0.0), high + spread * 0.15)
    } else {
        (0.0, high * 1.08)
    }
}
