//! A scatter plot of cost against recall. Points have numbers, and a list next to the plot
//! gives their names. A line joins the points on the front.

use plotters::style::RGBColor;

use super::palette::pale;
use super::sheet::{Fault, GREY, HPos, INK, Scale, Sheet, TEXT, axis_x, axis_y, sheet, text_width};
use crate::fmt;

const LEFT_MARGIN: i32 = 84;
const TOP: i32 = 84;
const WIDTH: i32 = 520;
const LINE: i32 = 22;

/// Maximum number of listed names without a point.
const WITHOUT: usize = 6;

pub(super) struct Cloud {
    pub(super) title: String,
    pub(super) below: String,
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) points: Vec<CloudPoint>,
    /// Labels of rows that have no point.
    pub(super) without: Vec<String>,
}

pub(super) struct Axis {
    pub(super) name: &'static str,
    /// Heading over the column of the list.
    pub(super) head: &'static str,
    /// Minimum and maximum.
    pub(super) range: (f64, f64),
}

pub(super) struct CloudPoint {
    pub(super) label: String,
    pub(super) at: (f64, f64),
    pub(super) figures: [String; 2],
    pub(super) color: RGBColor,
    /// True if the row finished all compared sessions.
    pub(super) whole: bool,
    pub(super) on_front: bool,
    /// The interval of each figure.
    pub(super) intervals: [Option<(f64, f64)>; 2],
}

pub(super) fn draw(cloud: &Cloud) -> Result<String, Fault> {
    let points = &cloud.points;
    let entry = |i: usize, p: &CloudPoint| format!("{}  {}", i + 1, p.label);
    let names = points.iter().enumerate().map(|(i, p)| text_width(&entry(i, p), TEXT)).max();
    let names = names.unwrap_or(0).max(120);
    let wide = points.iter().flat_map(|p| &p.figures).map(|f| text_width(f, 14)).max();
    let column = wide.unwrap_or(0).max(44) + 14;
    let without = cloud.without.len().min(WITHOUT);
    let bottom = TOP + ((points.len() + without) as i32 * LINE + 80).max(360);
    let (x_min, x_max) = cloud.x.range;
    let (y_min, y_max) = cloud.y.range;
    let x = Scale { min: x_min, max: x_max, start: LEFT_MARGIN, length: WIDTH };
    let y = Scale { min: y_min, max: y_max, start: bottom, length: TOP - bottom };
    let list = LEFT_MARGIN + WIDTH + 34;
    let columns = [1, 2].map(|i| list + names + 16 + column * i);

    sheet(columns[1] + 30, bottom + 54, |s| {
        s.title(&cloud.title, &cloud.below)?;
        axis_x(s, x, TOP, bottom, fmt::exact, cloud.x.name)?;
        axis_y(s, y, LEFT_MARGIN, LEFT_MARGIN + WIDTH, fmt::exact, cloud.y.name)?;
        front_line(s, points, x, y)?;
        let places: Vec<(i32, i32)> = points.iter().map(|p| (x.at(p.at.0), y.at(p.at.1))).collect();
        for (p, at) in points.iter().zip(&places) {
            let color = pale(p.color, 0.45);
            if let Some((low, high)) = p.intervals[0] {
                s.path(&[(x.at(low), at.1), (x.at(high), at.1)], color, 1)?;
            }
            if let Some((low, high)) = p.intervals[1] {
                s.path(&[(at.0, y.at(low)), (at.0, y.at(high))], color, 1)?;
            }
        }
        let flags = spread(&places, (LEFT_MARGIN, TOP, LEFT_MARGIN + WIDTH, bottom));
        for ((p, at), flag) in points.iter().zip(&places).zip(&flags) {
            if (at.0 - flag.0).abs().max((at.1 - flag.1).abs()) > 20 {
                s.path(&[*at, *flag], p.color, 1)?;
            }
            mark(s, p, *at)?;
            s.add_tooltip(*at, 8, &tooltip(cloud, p));
        }
        for (i, flag) in flags.iter().enumerate() {
            s.text(flag.0, flag.1, HPos::Center, TEXT, INK, &(i + 1).to_string())?;
        }
        for (at, head) in columns.iter().zip([cloud.x.head, cloud.y.head]) {
            s.text(*at, TOP - 16, HPos::Right, 14, GREY, head)?;
        }
        for (i, p) in points.iter().enumerate() {
            let row = TOP + 6 + i as i32 * LINE;
            mark(s, p, (list, row))?;
            s.text(list + 30, row, HPos::Right, TEXT, INK, &(i + 1).to_string())?;
            s.text(list + 38, row, HPos::Left, TEXT, INK, &p.label)?;
            for (at, figure) in columns.iter().zip(&p.figures) {
                s.text(*at, row, HPos::Right, 14, INK, figure)?;
            }
        }
        for (i, name) in cloud.without.iter().take(WITHOUT).enumerate() {
            let row = TOP + 18 + (points.len() + i) as i32 * LINE;
            s.text(list + 38, row, HPos::Left, 14, GREY, &format!("{name}: n/a"))?;
        }
        Ok(())
    })
}

fn tooltip(cloud: &Cloud, p: &CloudPoint) -> String {
    let front = if p.on_front { ", on the front" } else { "" };
    let [x, y] = &p.figures;
    format!("{}: {} {x}, {} {y}{front}", p.label, cloud.x.head, cloud.y.head)
}

fn mark(s: &Sheet<'_>, p: &CloudPoint, at: (i32, i32)) -> super::sheet::Drawn {
    if p.on_front {
        s.diamond(at, 10, p.color)?;
    }
    s.disc(at, 6, p.color, p.whole)
}

/// Draws the front as steps from row to row; no row is above them.
fn front_line(s: &Sheet<'_>, points: &[CloudPoint], x: Scale, y: Scale) -> super::sheet::Drawn {
    let mut front: Vec<(f64, f64)> = points.iter().filter(|p| p.on_front).map(|p| p.at).collect();
    front.sort_by(|a, b| a.0.total_cmp(&b.0));
    for pair in front.windows(2) {
        let (from, to) = (pair[0], pair[1]);
        let corner = (x.at(to.0), y.at(from.1));
        s.path(&[(x.at(from.0), y.at(from.1)), corner], GREY, 1)?;
        s.path(&[corner, (x.at(to.0), y.at(to.1))], GREY, 1)?;
    }
    Ok(())
}

/// Positions of the numbers: each is the nearest to its point that touches no point and no other
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
