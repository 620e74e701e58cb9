//! Cost against needs kept: who is cheap and remembers. Points carry numbers, the list beside them
//! the names.

use crate::record::{RunRecord, Status};

use super::palette::Styles;
use super::rows::label;
use super::sheet::{At, Fault, GREY, INK, Scale, TEXT, axis_x, axis_y, sheet, text_width};
use crate::fmt;
use crate::view::Block;

const LEFT: i32 = 84;
const TOP: i32 = 84;
const WIDTH: i32 = 520;
const LINE: i32 = 22;

pub(super) fn draw(block: &Block<'_>, styles: &Styles) -> Result<String, Fault> {
    let (points, without): (Vec<&RunRecord>, Vec<&RunRecord>) =
        block.runs.iter().partition(|r| place(r).is_some());
    let entry = |i: usize, r: &RunRecord| format!("{}  {}", i + 1, label(r));
    let names = points
        .iter()
        .enumerate()
        .map(|(i, r)| text_width(&entry(i, r), TEXT))
        .max()
        .unwrap_or(0)
        .max(120);
    let bottom = TOP + ((points.len() + without.len().min(6)) as i32 * LINE + 80).max(360);
    let places: Vec<(f64, f64)> = points.iter().filter_map(|r| place(r)).collect();
    let (x_min, x_max) = range(places.iter().map(|p| p.0));
    let (y_min, y_max) = range(places.iter().map(|p| p.1));
    let x = Scale { min: x_min, max: x_max, start: LEFT, length: WIDTH };
    let y = Scale { min: y_min, max: y_max.min(103.0), start: bottom, length: TOP - bottom };
    let cut = |min: f64| if min > 0.0 { " (does not begin at 0)" } else { "" };
    let list = LEFT + WIDTH + 34;

    sheet(list + names + 140, bottom + 54, &|s| {
        let below = format!(
            "{}; further up and further left is better; hollow = did not finish",
            block.terms()
        );
        s.title(&format!("{} – cost against needs kept", block.title()), &below)?;
        axis_x(s, x, TOP, bottom, fmt::exact, &format!("cost, US dollars{}", cut(x_min)))?;
        axis_y(s, y, LEFT, LEFT + WIDTH, fmt::exact, &format!("needs kept, %{}", cut(y_min)))?;
        let true_places: Vec<(i32, i32)> =
            places.iter().map(|&(c, k)| (x.at(c), y.at(k))).collect();
        let flags = spread(&true_places, (LEFT, TOP, LEFT + WIDTH, bottom));
        for ((run, at), flag) in points.iter().zip(&true_places).zip(&flags) {
            let color = styles.of_run(run).color;
            if (at.0 - flag.0).abs().max((at.1 - flag.1).abs()) > 20 {
                s.line(*at, *flag, color, 1)?;
            }
            s.disc(*at, 6, color, run.status == Status::Completed)?;
        }
        for (i, flag) in flags.iter().enumerate() {
            s.text(flag.0, flag.1, At::Middle, TEXT, INK, &(i + 1).to_string())?;
        }
        s.text(list + names + 16 + 60, TOP - 16, At::Right, 14, GREY, "cost $")?;
        s.text(list + names + 16 + 110, TOP - 16, At::Right, 14, GREY, "kept %")?;
        for (i, run) in points.iter().enumerate() {
            let row = TOP + 6 + i as i32 * LINE;
            s.disc((list, row), 6, styles.of_run(run).color, run.status == Status::Completed)?;
            s.text(list + 30, row, At::Right, TEXT, INK, &(i + 1).to_string())?;
            s.text(list + 38, row, At::Left, TEXT, INK, &label(run))?;
            s.text(
                list + names + 16 + 60,
                row,
                At::Right,
                14,
                INK,
                &fmt::usd(run.summary.cost_usd),
            )?;
            s.text(
                list + names + 16 + 110,
                row,
                At::Right,
                14,
                INK,
                &run.summary.needs_kept_pct.map_or("n/a".into(), fmt::pct),
            )?;
        }
        for (i, run) in without.iter().take(6).enumerate() {
            let row = TOP + 18 + (points.len() + i) as i32 * LINE;
            s.text(list + 38, row, At::Left, 14, GREY, &format!("{}: n/a", label(run)))?;
        }
        Ok(())
    })
}

fn place(run: &RunRecord) -> Option<(f64, f64)> {
    let kept = run.summary.needs_kept_pct.filter(|k| k.is_finite())?;
    (run.status != Status::NotApplicable && run.summary.cost_usd.is_finite())
        .then_some((run.summary.cost_usd, kept))
}

/// From 0, unless everything lies close together far from 0.
fn range(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let (low, high) = (values.clone().fold(f64::INFINITY, f64::min), values.fold(0.0, f64::max));
    let spread = high - low;
    if high <= 0.0 || !spread.is_finite() {
        (0.0, 1.0)
    } else if spread > 0.0 && spread < high * 0.25 {
        ((low - spread * 0.3).max(0.0), high + spread * 0.15)
    } else {
        (0.0, high * 1.08)
    }
}

/// A place for each number: the nearest one around its point that touches no point and no other
/// number.
fn spread(
    points: &[(i32, i32)],
    (left, top, right, bottom): (i32, i32, i32, i32),
) -> Vec<(i32, i32)> {
    const AROUND: [(i32, i32); 8] =
        [(10, -10), (10, 10), (-10, -10), (-10, 10), (14, 0), (-14, 0), (0, -14), (0, 14)];
    let mut taken: Vec<(i32, i32)> = Vec::new();
    for p in points {
        let near = (1..=8).flat_map(|ring| {
            AROUND
                .iter()
                .map(move |(dx, dy)| (p.0 + dx * (ring + 1) * 2 / 3, p.1 + dy * (ring + 1) * 2 / 3))
        });
        let free = |q: &(i32, i32)| {
            let inside = q.0 > left + 8 && q.0 < right - 4 && q.1 > top - 4 && q.1 < bottom - 6;
            inside
                && points.iter().all(|o| (o.0 - q.0).abs() > 12 || (o.1 - q.1).abs() > 12)
                && taken.iter().all(|o| (o.0 - q.0).abs() > 18 || (o.1 - q.1).abs() > 14)
        };
        let fallback = (p.0 + 14, p.1 - 12);
        taken.push(near.into_iter().find(free).unwrap_or(fallback));
    }
    taken
}
