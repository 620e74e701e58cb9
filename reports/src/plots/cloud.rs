//! A scatter plot of cost against recall. Points have their names next to them, and a line joins
//! those on the front.

use plotters::style::RGBColor;

use super::palette::pale;
use super::sheet::{
    Fault, GREY, HPos, Heading, INK, Scale, TEXT, axis_x, axis_y, sheet, text_width,
};
use crate::fmt;

const LEFT_MARGIN: i32 = 66;
const RIGHT_MARGIN: i32 = 16;

/// Half the height of a name and the radius of a mark, pixels.
const HALF_LINE: i32 = 7;
const MARK: i32 = 10;

/// Distances at which a name looks for room, in lines.
const RINGS: i32 = 7;

pub(super) struct Cloud {
    pub(super) title: String,
    pub(super) below: String,
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) points: Vec<CloudPoint>,
}

pub(super) struct Axis {
    pub(super) title: String,
    /// Name of a figure of a point.
    pub(super) name: &'static str,
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

/// Draws the plot as a picture of this width, pixels.
pub(super) fn draw(cloud: &Cloud, width: i32) -> Result<String, Fault> {
    let points = &cloud.points;
    let heading = Heading::new(&cloud.title, &cloud.below, width);
    let (top, right) = (heading.height() + 16, width - RIGHT_MARGIN);
    let bottom = top + (width * 5 / 8).clamp(300, 400);
    let ((x_min, x_max), (y_min, y_max)) = (cloud.x.range, cloud.y.range);
    let x = Scale { min: x_min, max: x_max, start: LEFT_MARGIN, length: right - LEFT_MARGIN };
    let y = Scale { min: y_min, max: y_max, start: bottom, length: top - bottom };

    sheet(width, bottom + 54, |s| {
        s.heading(&heading)?;
        axis_x(s, x, top, bottom, fmt::exact, &cloud.x.title)?;
        axis_y(s, y, LEFT_MARGIN, right, fmt::exact, &cloud.y.title)?;
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
        let line = front_line(points, x, y);
        line.windows(2).try_for_each(|ends| s.path(ends, GREY, 1))?;
        let names = name_positions(points, &places, &line, [LEFT_MARGIN, top, right, bottom]);
        for ((p, at), name) in points.iter().zip(&places).zip(names) {
            if let Some((left, middle)) = name {
                let end = (at.0.clamp(left, left + text_width(&p.label, TEXT)), middle);
                if (end.0 - at.0).abs().max((end.1 - at.1).abs()) > 2 * MARK {
                    let from = if end.1 < at.1 { end.1 + HALF_LINE } else { end.1 - HALF_LINE };
                    s.path(&[*at, (end.0, from)], pale(p.color, 0.6), 1)?;
                }
                let ink = if p.on_front { INK } else { GREY };
                s.text(left, middle, HPos::Left, TEXT, ink, &p.label)?;
            }
            if p.on_front {
                s.diamond(*at, MARK, p.color)?;
            }
            s.disc(*at, 6, p.color, p.whole)?;
            s.add_tooltip(*at, 8, &tooltip(cloud, p));
        }
        Ok(())
    })
}

fn tooltip(cloud: &Cloud, p: &CloudPoint) -> String {
    let front = if p.on_front { ", on the front" } else { "" };
    let [x, y] = &p.figures;
    format!("{}: {} {x}, {} {y}{front}", p.label, cloud.x.name, cloud.y.name)
}

/// Corners of the front, which goes in steps from row to row; no row is above them.
fn front_line(points: &[CloudPoint], x: Scale, y: Scale) -> Vec<(i32, i32)> {
    let at = |p: &CloudPoint| (x.at(p.at.0), y.at(p.at.1));
    let mut front: Vec<(i32, i32)> = points.iter().filter(|p| p.on_front).map(at).collect();
    front.sort_unstable();
    let steps = front.windows(2).flat_map(|pair| [(pair[1].0, pair[0].1), pair[1]]);
    front.first().copied().into_iter().chain(steps).collect()
}

/// Left end and middle of each name: the nearest place to its point that covers no mark, no part of
/// the front line and no other name. Names on the front choose first. `None` if there is no room.
fn name_positions(
    points: &[CloudPoint],
    places: &[(i32, i32)],
    line: &[(i32, i32)],
    [left, top, right, bottom]: [i32; 4],
) -> Vec<Option<(i32, i32)>> {
    let mut order: Vec<usize> = (0..points.len()).collect();
    order.sort_by_key(|i| !points[*i].on_front);
    let mut out = vec![None; points.len()];
    // Left and right end and middle of what is drawn.
    let mut taken: Vec<[i32; 3]> =
        places.iter().map(|(x, y)| [x - MARK, x + MARK, y - 1]).collect();
    for step in line.windows(2) {
        let ((from, low), (to, high)) = (step[0], step[1]);
        taken.extend((high..=low).step_by(HALF_LINE as usize).map(|y| [from, to + 1, y]));
    }
    for i in order {
        let ((x, y), long) = (places[i], text_width(&points[i].label, TEXT));
        let around = (0..RINGS).flat_map(|ring| {
            let (aside, far) = (MARK + 2 + 4 * ring, (ring + 1) * (2 * HALF_LINE + 2));
            let (after, before) = (x + aside, x - aside - long);
            let level = [(after, y), (before, y)].into_iter().filter(move |_| ring == 0);
            level.chain([
                (after, y - far),
                (after, y + far),
                (before, y - far),
                (before, y + far),
                (x - long / 2, y - far),
                (x - long / 2, y + far),
            ])
        });
        let is_free = |(from, middle): &(i32, i32)| {
            let (from, to) = (*from, from + long);
            let covers = |[start, end, at]: &[i32; 3]| {
                *start < to && from < *end && (at - middle).abs() < 2 * HALF_LINE + 2
            };
            from > left
                && to < right
                && middle - HALF_LINE > top
                && middle + HALF_LINE < bottom
                && !taken.iter().any(covers)
        };
        out[i] = around.into_iter().find(is_free);
        taken.extend(out[i].map(|(from, middle): (i32, i32)| [from, from + long, middle]));
    }
    out
}
