//! A drawing surface in pixels with text, lines, boxes and axes, based on the SVG backend of
//! plotters.

use plotters::coord::Shift;
use plotters::drawing::DrawingAreaErrorKind;
use plotters::prelude::*;
pub(super) use plotters::style::text_anchor::HPos;
use plotters::style::text_anchor::{Pos, VPos};

use crate::fmt;
use crate::table::wrap;

/// Error while drawing.
pub(super) type Fault = DrawingAreaErrorKind<std::io::Error>;
/// The result of a drawing step.
pub(super) type Drawn = Result<(), Fault>;

/// Text colour.
pub(super) const INK: RGBColor = RGBColor(34, 34, 34);
/// Colour of secondary text and axes.
pub(super) const GREY: RGBColor = RGBColor(105, 105, 105);
/// Colour of grid lines.
pub(super) const GRID: RGBColor = RGBColor(224, 224, 224);
/// Size of normal text, pixels; plotters draws glyphs of about 0.8 of it.
pub(super) const TEXT: i32 = 15;

/// Size of a title and of the lines below it, pixels.
const TITLE: i32 = 19;
const BELOW: i32 = 14;

/// Title of a picture and the lines below it.
pub(super) struct Heading {
    title: String,
    /// Lines with the size of their text.
    lines: Vec<(String, i32)>,
}

impl Heading {
    /// Wraps the title and the paragraphs below it, a line each, to the width of a picture.
    pub(super) fn new(title: &str, below: &str, width: i32) -> Heading {
        let fit = |text: &str, size: i32| {
            let most = (f64::from(width - 32) / (0.51 * f64::from(size))) as usize;
            let words: Vec<String> =
                fmt::one_line(text).split(' ').map(|word| fmt::elide(word, most)).collect();
            wrap(&words.join(" "), most, "").into_iter().map(move |line| (line, size))
        };
        let below = below.lines().flat_map(|text| fit(text, BELOW));
        Heading { title: title.into(), lines: fit(title, TITLE).chain(below).collect() }
    }

    pub(super) fn height(&self) -> i32 {
        6 + self.lines.iter().map(|(_, size)| size + 4).sum::<i32>()
    }
}

pub(super) struct Sheet<'a> {
    area: DrawingArea<SVGBackend<'a>, Shift>,
    /// Title of the picture, for screen readers.
    title: String,
    /// SVG elements with the tooltips of marks, which plotters does not support.
    tooltips: String,
}

/// Draws on a new white sheet and returns the SVG document.
pub(super) fn sheet(
    width: i32,
    height: i32,
    paint: impl FnOnce(&mut Sheet<'_>) -> Drawn,
) -> Result<String, Fault> {
    let mut svg = String::new();
    let (title, tooltips) = {
        let area =
            SVGBackend::with_string(&mut svg, (width as u32, height as u32)).into_drawing_area();
        area.fill(&WHITE)?;
        let mut sheet = Sheet { area, title: String::new(), tooltips: String::new() };
        paint(&mut sheet)?;
        sheet.area.present()?;
        (sheet.title, sheet.tooltips)
    };
    // The title comes first, and the tooltips are on top of the drawing.
    let (begin, rest) = svg.split_at(svg.find('>').map_or(0, |at| at + 1));
    let (drawn, end) = rest.split_at(rest.rfind("</svg>").unwrap_or(rest.len()));
    let begin = begin.replacen("<svg ", "<svg role=\"img\" ", 1);
    Ok(format!("{begin}\n<title>{}</title>{drawn}{tooltips}{end}", fmt::xml(&title)))
}

/// Approximate width of a text in pixels; the fonts are unknown when the SVG is drawn.
pub(super) fn text_width(text: &str, size: i32) -> i32 {
    let units: f64 = text
        .chars()
        .map(|c| if c > '\u{10ff}' && !('\u{2000}'..'\u{2c00}').contains(&c) { 0.85 } else { 0.51 })
        .sum();
    (units * f64::from(size)).ceil() as i32
}

impl Sheet<'_> {
    /// Draws the heading, whose title is also that of the picture.
    pub(super) fn heading(&mut self, heading: &Heading) -> Drawn {
        self.title = fmt::one_line(&heading.title);
        let mut y = 6;
        for (line, size) in &heading.lines {
            let color = if *size == TITLE { INK } else { GREY };
            self.text(16, y + size / 2, HPos::Left, *size, color, line)?;
            y += size + 4;
        }
        Ok(())
    }

    pub(super) fn add_tooltip(&mut self, (x, y): (i32, i32), radius: i32, text: &str) {
        let text = fmt::xml(&fmt::one_line(text));
        let circle = format!("<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\" fill-opacity=\"0\">");
        self.tooltips += &format!("{circle}<title>{text}</title></circle>\n");
    }

    /// Draws one line of text, vertically centred on `y`.
    pub(super) fn text(
        &self,
        x: i32,
        y: i32,
        at: HPos,
        size: i32,
        color: RGBColor,
        text: &str,
    ) -> Drawn {
        let clean = fmt::one_line(text);
        self.area.draw(&Text::new(clean, (x, y), style(at, size, color)))
    }

    /// Draws vertical text, centred on the point.
    pub(super) fn text_up(&self, x: i32, y: i32, text: &str) -> Drawn {
        let up = style(HPos::Center, TEXT, GREY).transform(FontTransform::Rotate270);
        self.area.draw(&Text::new(fmt::one_line(text), (x, y), up))
    }

    /// Draws a line through points.
    pub(super) fn path(&self, points: &[(i32, i32)], color: RGBColor, width: u32) -> Drawn {
        self.area.draw(&PathElement::new(points.to_vec(), color.stroke_width(width)))
    }

    /// Draws a disc, filled or hollow.
    pub(super) fn disc(&self, at: (i32, i32), radius: i32, color: RGBColor, filled: bool) -> Drawn {
        if filled {
            self.area.draw(&Circle::new(at, radius, color.filled()))
        } else {
            self.area.draw(&Circle::new(at, radius, WHITE.filled()))?;
            self.area.draw(&Circle::new(at, radius, color.stroke_width(2)))
        }
    }

    /// Draws the outline of a square on its corner, the mark of a row on the front.
    pub(super) fn diamond(&self, (x, y): (i32, i32), radius: i32, color: RGBColor) -> Drawn {
        let (left, right) = ((x - radius, y), (x + radius, y));
        self.path(&[left, (x, y - radius), right, (x, y + radius), left], color, 2)
    }
}

fn style(at: HPos, size: i32, color: RGBColor) -> TextStyle<'static> {
    let mut style = TextStyle::from(("sans-serif", size).into_font());
    style.color = color.to_backend_color();
    style.pos = Pos::new(at, VPos::Center);
    style
}

/// A scale from `min` to `max` over `length` pixels from `start`. A negative length runs upwards or
/// to the left.
#[derive(Clone, Copy)]
pub(super) struct Scale {
    pub(super) min: f64,
    pub(super) max: f64,
    pub(super) start: i32,
    pub(super) length: i32,
}

impl Scale {
    /// Pixel position of a value; values outside the scale are clamped to its ends.
    pub(super) fn at(&self, value: f64) -> i32 {
        let range = self.max - self.min;
        let share = if range > 0.0 { ((value - self.min) / range).clamp(0.0, 1.0) } else { 0.0 };
        self.start + (share * f64::from(self.length)).round() as i32
    }

    /// Round values, about one for every `every` pixels and at least three.
    pub(super) fn ticks(&self, every: i32) -> Vec<f64> {
        let wanted = (self.length.abs() / every).max(2);
        let range = self.max - self.min;
        if range <= 0.0 || !range.is_finite() {
            return vec![self.min];
        }
        let about = |count: i32| {
            let raw = range / f64::from(count);
            let power = 10_f64.powf(raw.log10().floor());
            let round = [1.0, 2.0, 2.5, 5.0, 10.0].map(|m| m * power);
            let step = round.into_iter().find(|s| *s >= raw * 0.999).unwrap_or(raw);
            let first = (self.min / step - 1e-9).ceil();
            let n = ((self.max / step + 1e-9).floor() - first).max(0.0) as usize;
            (0..=n).map(|i| (first + i as f64) * step).collect::<Vec<f64>>()
        };
        (wanted..4 * wanted).map(about).find(|ticks| ticks.len() > 2).unwrap_or_default()
    }

    /// Returns true if the scale does not reach 0.
    pub(super) fn is_broken(&self) -> bool {
        self.min > 0.0 || self.max < 0.0
    }
}

/// Range of values with a margin: a share of the range, of the largest value, or `least`.
pub(super) fn range(values: impl Iterator<Item = f64>, share: f64, least: f64) -> (f64, f64) {
    let (low, high) = extent(values);
    if !low.is_finite() {
        return (0.0, 1.0);
    }
    let margin = ((high - low) * share).max(high.abs().max(low.abs()) * 0.02).max(least);
    (low - margin, high + margin)
}

/// Smallest and largest value; infinite without values.
pub(super) fn extent(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)))
}

/// Draws vertical grid lines, their values below `bottom`, and the name of the axis below them. Two
/// strokes mark an axis that does not reach 0.
pub(super) fn axis_x(
    s: &Sheet<'_>,
    scale: Scale,
    top: i32,
    bottom: i32,
    show: fn(f64) -> String,
    name: &str,
) -> Drawn {
    for t in scale.ticks(75) {
        let x = scale.at(t);
        s.path(&[(x, top), (x, bottom)], GRID, 1)?;
        s.text(x, bottom + 13, HPos::Center, 14, GREY, &show(t))?;
    }
    s.path(&[(scale.start, bottom), (scale.start + scale.length, bottom)], GREY, 1)?;
    for x in [10, 15].into_iter().filter(|_| scale.is_broken()) {
        let x = scale.start + x;
        s.path(&[(x - 3, bottom + 5), (x + 3, bottom - 5)], GREY, 2)?;
    }
    s.text(scale.start + scale.length / 2, bottom + 34, HPos::Center, TEXT, GREY, name)
}

/// Draws horizontal grid lines, their values to the left of them, and the name of the axis, with the
/// same mark.
pub(super) fn axis_y(
    s: &Sheet<'_>,
    scale: Scale,
    left: i32,
    right: i32,
    show: fn(f64) -> String,
    name: &str,
) -> Drawn {
    for t in scale.ticks(50) {
        let y = scale.at(t);
        s.path(&[(left, y), (right, y)], GRID, 1)?;
        s.text(left - 7, y, HPos::Right, 14, GREY, &show(t))?;
    }
    s.path(&[(left, scale.start), (left, scale.start + scale.length)], GREY, 1)?;
    for y in [10, 15].into_iter().filter(|_| scale.is_broken()) {
        let y = scale.start - y;
        s.path(&[(left - 5, y + 3), (left + 5, y - 3)], GREY, 2)?;
    }
    s.text_up(left - 50, scale.start + scale.length / 2, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_has_three_values_at_least() {
        for (min, max) in [(0.0, 1.9), (-33.1, -10.4), (0.0, 0.004), (12.0, 61.0), (78.0, 83.0)] {
            let ticks = Scale { min, max, start: 0, length: 110 }.ticks(50);
            assert!(ticks.len() > 2 && ticks.iter().all(|t| (min..=max).contains(t)), "{ticks:?}");
        }
        assert_eq!(Scale { min: 1.0, max: 1.0, start: 0, length: 110 }.ticks(50), [1.0]);
    }

    #[test]
    fn headings_are_wrapped_and_not_cut() {
        let below = "mean change against the reference; up and left is better; the line joins the \
                     front; hollow: finished fewer sessions";
        let heading = Heading::new("Cost against recall", below, 360);
        let lines: Vec<&str> = heading.lines.iter().skip(1).map(|(line, _)| &**line).collect();
        assert_eq!(lines.join(" "), below);
        assert!(lines.iter().all(|line| text_width(line, BELOW) <= 360 - 32), "{lines:?}");
    }
}
