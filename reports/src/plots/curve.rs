//! Figures over the values of a setting, in panels below each other.

use plotters::style::RGBColor;

use super::palette::{HUES, pale};
use super::sheet::{
    Drawn, GREY, GRID, HPos, Heading, INK, Scale, Sheet, TEXT, axis_y, range, sheet,
};
use crate::error::ReportError;
use crate::fmt;
use crate::table::wrap;

pub(crate) struct Curve {
    pub(crate) title: String,
    /// Paragraphs below the title, a line each.
    pub(crate) below: String,
    /// Paragraphs below the panels.
    pub(crate) foot: Vec<String>,
    /// Name of the horizontal axis.
    pub(crate) axis: String,
    /// Names of the lines of the values.
    pub(crate) rows: &'static [&'static str],
    pub(crate) values: Vec<CurveValue>,
    /// Names of the lines, if there are several.
    pub(crate) legend: Vec<(RGBColor, String)>,
    pub(crate) panels: Vec<Panel>,
}

pub(crate) struct CurveValue {
    /// Lines below the value.
    pub(crate) lines: Vec<String>,
    pub(crate) is_today: bool,
    /// True if a line joins it with its neighbours.
    pub(crate) is_number: bool,
}

pub(crate) struct Panel {
    pub(crate) name: String,
    /// True for an axis from 0; changes have two directions.
    pub(crate) is_amount: bool,
    pub(crate) lines: Vec<CurveLine>,
}

pub(crate) struct CurveLine {
    pub(crate) color: RGBColor,
    pub(crate) points: Vec<CurvePoint>,
}

pub(crate) struct CurvePoint {
    /// Index of the value.
    pub(crate) value: usize,
    pub(crate) mean: f64,
    pub(crate) interval: Option<(f64, f64)>,
    pub(crate) is_marked: bool,
    pub(crate) tooltip: String,
    /// Name and figure of each session.
    pub(crate) sessions: Vec<(String, f64)>,
}

const LEFT_MARGIN: i32 = 80;
const RIGHT_MARGIN: i32 = 14;
const HEIGHT: i32 = 170;
/// Gap between two panels, with the name of the lower one, pixels.
const GAP: i32 = 48;
/// Distance of two lines of text, pixels.
const LINE: i32 = 20;

/// Returns a colour of the palette.
pub(crate) fn hue(index: usize) -> RGBColor {
    HUES[index]
}

/// Draws the panels as a picture of this width, pixels.
pub(crate) fn draw(curve: &Curve, width: i32) -> Result<String, ReportError> {
    let heading = Heading::new(&curve.title, &curve.below, width);
    let most = (f64::from(width - 36) / (0.51 * 13.0)) as usize;
    let foot: Vec<String> = curve.foot.iter().flat_map(|text| wrap(text, most, "")).collect();
    let count = |n: usize| n as i32 * LINE;
    let head = heading.height() + 12;
    let top = head + count(curve.legend.len()) + 26;
    let below = top + curve.panels.len() as i32 * (HEIGHT + GAP) - GAP + 18;
    let axis = below + count(curve.rows.len()) + 2;
    let picture = sheet(width, axis + count(foot.len() + 1) + 4, |s| {
        s.heading(&heading)?;
        for (i, (color, name)) in curve.legend.iter().enumerate() {
            s.disc((24, head + count(i)), 5, *color, true)?;
            s.text(36, head + count(i), HPos::Left, TEXT, INK, name)?;
        }
        for (i, panel) in curve.panels.iter().enumerate() {
            draw_panel(s, curve, panel, (width, top + HEIGHT + i as i32 * (HEIGHT + GAP)))?;
        }
        for (i, name) in curve.rows.iter().enumerate() {
            s.text(LEFT_MARGIN - 8, below + count(i), HPos::Right, 14, GREY, name)?;
            for (k, value) in curve.values.iter().enumerate() {
                s.text(
                    curve.x(k, width),
                    below + count(i),
                    HPos::Center,
                    14,
                    INK,
                    &value.lines[i],
                )?;
            }
        }
        let middle = (LEFT_MARGIN + width - RIGHT_MARGIN) / 2;
        s.text(middle, axis, HPos::Center, TEXT, GREY, &curve.axis)?;
        for (i, line) in foot.iter().enumerate() {
            s.text(18, axis + count(i + 1) + 6, HPos::Left, 13, GREY, line)?;
        }
        Ok(())
    });
    picture.map_err(super::failed)
}

impl Curve {
    /// Horizontal position of a value.
    fn x(&self, value: usize, width: i32) -> i32 {
        LEFT_MARGIN + self.step(width) / 2 + value as i32 * self.step(width)
    }

    fn step(&self, width: i32) -> i32 {
        (width - LEFT_MARGIN - RIGHT_MARGIN) / self.values.len().max(1) as i32
    }
}

fn draw_panel(
    s: &mut Sheet<'_>,
    curve: &Curve,
    panel: &Panel,
    (width, bottom): (i32, i32),
) -> Drawn {
    let points = || panel.lines.iter().flat_map(|l| l.points.iter().map(|p| (l.color, p)));
    let drawn = points().flat_map(|(_, p)| {
        let (low, high) = p.interval.unwrap_or((p.mean, p.mean));
        p.sessions.iter().map(|(_, y)| *y).chain([low, high, p.mean, 0.0])
    });
    let (min, max) = range(drawn, 0.1, 1e-3);
    let min = if panel.is_amount { min.max(0.0) } else { min };
    let y = Scale { min, max, start: bottom, length: -HEIGHT };
    let right = width - RIGHT_MARGIN;
    let color = if curve.legend.is_empty() { panel.lines.first().map(|l| l.color) } else { None };
    s.text(18, bottom - HEIGHT - 16, HPos::Left, TEXT, color.unwrap_or(INK), &panel.name)?;
    axis_y(s, y, LEFT_MARGIN, right, fmt::exact, "")?;
    s.path(&[(LEFT_MARGIN, y.at(0.0)), (right, y.at(0.0))], GREY, 1)?;
    for (k, value) in curve.values.iter().enumerate() {
        let x = curve.x(k, width);
        let line = if value.is_today { GREY } else { GRID };
        s.path(&[(x, bottom), (x, bottom - HEIGHT)], line, 1)?;
    }
    let spread = (curve.step(width) / 5).min(18);
    let at = |p: &CurvePoint| (curve.x(p.value, width), y.at(p.mean));
    for (color, p) in points() {
        let last = p.sessions.len().saturating_sub(1).max(1) as i32;
        for (i, (session, change)) in p.sessions.iter().enumerate() {
            let at = (at(p).0 - spread + 2 * spread * i as i32 / last, y.at(*change));
            s.disc(at, 3, pale(color, 0.5), true)?;
            s.add_tooltip(at, 6, &format!("{session}: {}", fmt::signed(*change, fmt::pct)));
        }
    }
    for line in &panel.lines {
        let joined = line.points.iter().filter(|p| curve.values[p.value].is_number);
        s.path(&joined.map(at).collect::<Vec<_>>(), line.color, 2)?;
    }
    let is_apart = |v: &CurveValue| v.is_today && !v.is_number;
    for (_, p) in points().filter(|(_, p)| is_apart(&curve.values[p.value])) {
        s.path(&[at(p), (right, at(p).1)], GREY, 1)?;
    }
    for (color, p) in points() {
        let (x, mean) = at(p);
        if let Some((low, high)) = p.interval {
            s.path(&[(x, y.at(low)), (x, y.at(high))], color, 3)?;
        }
        if p.is_marked {
            s.diamond((x, mean), 11, color)?;
        }
        s.disc((x, mean), 5, color, !curve.values[p.value].is_today)?;
        s.add_tooltip((x, mean), 8, &p.tooltip);
    }
    Ok(())
}
