//! Context size over the session: a line per strategy, compactions marked, the window as a line.

use crate::record::{RequestRecord, RunRecord, Status};
use ctxbench_core::request::Purpose;
use ctxbench_core::strategy::Standing;
use plotters::style::RGBColor;

use super::palette::Styles;
use super::rows::Names;
use super::sheet::{
    Anchor, Drawn, Fault, GREY, INK, Scale, Sheet, TEXT, axis_x, axis_y, sheet, text_width,
};
use crate::fmt;
use crate::view::ReportBlock;

const ALARM: RGBColor = RGBColor(178, 24, 43);
const LEFT_MARGIN: i32 = 84;
const TOP: i32 = 72;
const WIDTH: i32 = 640;
const LINE: i32 = 22;
/// Minimum average distance between the marks of one strategy, pixels. Closer marks would hide the
/// lines and are left out.
const APART: usize = 12;

pub(super) fn draw(block: &ReportBlock<'_>, styles: &Styles) -> Result<String, Fault> {
    let shown: Vec<&RunRecord> =
        block.runs.iter().copied().filter(|r| r.status != Status::NotApplicable).collect();
    let names = Names::new(block);
    let width = |r: &&RunRecord| text_width(&names.marked(r), TEXT);
    let legend = shown.iter().map(width).max().unwrap_or(0).max(150) + 60;
    let height = (shown.len() as i32 + 5) * LINE;
    let bottom = TOP + height.max(340);
    let real = shown
        .iter()
        .filter(|r| r.strategy.standing != Standing::Hypothetical)
        .flat_map(|r| sizes(r))
        .max()
        .unwrap_or(0) as f64;
    let all = shown.iter().flat_map(|r| sizes(r)).max().unwrap_or(0) as f64;
    let window = block.window().map(|w| w as f64);
    let line = window.filter(|w| *w <= 2.5 * all.max(1.0));
    // A reference many times larger than the window would flatten all other lines.
    let max = line
        .unwrap_or(0.0)
        .max(real)
        .max(if real > 0.0 { all.min(1.5 * real.max(line.unwrap_or(0.0))) } else { all })
        .max(1.0)
        * 1.06;
    let steps = shown.iter().map(|r| r.summary.steps_total).max().unwrap_or(1).max(1) as f64;
    let x = Scale { min: 0.0, max: steps, start: LEFT_MARGIN, length: WIDTH };
    let y = Scale { min: 0.0, max, start: bottom, length: TOP - bottom };

    sheet(LEFT_MARGIN + WIDTH + 20 + legend, bottom + 54, &|s| {
        let cut = if all > max {
            format!("; the reference continues to {}", fmt::tokens(all))
        } else {
            String::new()
        };
        let beyond = if line.is_none() && window.is_some() {
            "; the window lies above the plot"
        } else {
            ""
        };
        s.title(
            &format!("{} – context size", block.title()),
            &format!("{}{beyond}{cut}", block.terms()),
        )?;
        axis_x(s, x, TOP, bottom, fmt::exact, "step of the session")?;
        axis_y(s, y, LEFT_MARGIN, LEFT_MARGIN + WIDTH, fmt::tick, "tokens in the prompt")?;
        if let Some(w) = line {
            s.line((LEFT_MARGIN, y.at(w)), (LEFT_MARGIN + WIDTH, y.at(w)), ALARM, 2)?;
            s.text(
                LEFT_MARGIN + 6,
                y.at(w) - 10,
                Anchor::Left,
                14,
                ALARM,
                &format!("window {}", fmt::tokens(w)),
            )?;
        }
        for run in &shown {
            curve(s, run, styles, x, y)?;
        }
        for run in &shown {
            marks(s, run, styles, x, y)?;
        }
        key(s, &shown, &names, styles)
    })
}

fn sizes(run: &RunRecord) -> impl Iterator<Item = u64> {
    samples(run).map(|q| q.context_tokens)
}

/// Normal requests of the main conversation; subagents have their own windows.
fn samples(run: &RunRecord) -> impl Iterator<Item = &RequestRecord> {
    run.requests.iter().filter(|q| q.purpose == Purpose::Sample && q.agent.is_none())
}

fn curve(s: &Sheet<'_>, run: &RunRecord, styles: &Styles, x: Scale, y: Scale) -> Drawn {
    let points = samples(run).map(|q| (x.at(q.step as f64), y.at(q.context_tokens as f64)));
    let mut thin = thin_out(points);
    // A curve that leaves the plot ends at the top edge.
    let top = y.start + y.length;
    if let Some(end) = thin.iter().position(|p| p.1 <= top) {
        thin.truncate(end + 1);
    }
    if let Some(last) = thin.last().copied() {
        s.path(&thin, styles.of_run(run), 2)?;
        if run.status != Status::Completed {
            s.cross(last, 5, styles.of_run(run).color)?;
        }
    }
    Ok(())
}

/// Reduces a curve to at most the first, the extreme and the last points of every pixel column.
fn thin_out(points: impl Iterator<Item = (i32, i32)>) -> Vec<(i32, i32)> {
    let mut out: Vec<(i32, i32)> = Vec::new();
    for p in points {
        let n = out.len();
        let inside = n >= 4 && out[n - 4..].iter().all(|q| q.0 == p.0) && {
            let ys = out[n - 4..].iter().map(|q| q.1);
            ys.clone().min() <= Some(p.1) && Some(p.1) <= ys.max()
        };
        if inside {
            out[n - 1] = p;
        } else if out.last() != Some(&p) {
            out.push(p);
        }
    }
    out
}

fn too_dense(run: &RunRecord) -> bool {
    run.compactions.len() * APART > WIDTH as usize
}

fn marks(s: &Sheet<'_>, run: &RunRecord, styles: &Styles, x: Scale, y: Scale) -> Drawn {
    if too_dense(run) {
        return Ok(());
    }
    for c in &run.compactions {
        let next = samples(run)
            .find(|q| q.seq >= c.before_request)
            .or_else(|| run.requests.iter().rfind(|q| q.agent.is_none()));
        let (px, py) = (x.at(next.map_or(0.0, |q| q.step as f64)), y.at(c.before_tokens as f64));
        s.polygon(&[(px - 5, py - 9), (px + 5, py - 9), (px, py - 1)], styles.of_run(run).color)?;
    }
    Ok(())
}

fn key(s: &Sheet<'_>, shown: &[&RunRecord], names: &Names<'_>, styles: &Styles) -> Drawn {
    let left = LEFT_MARGIN + WIDTH + 20;
    for (i, run) in shown.iter().enumerate() {
        let y = TOP + 8 + i as i32 * LINE;
        s.path(&[(left, y), (left + 30, y)], styles.of_run(run), 3)?;
        s.text(left + 38, y, Anchor::Left, TEXT, INK, &names.marked(run))?;
    }
    let y = TOP + 8 + shown.len() as i32 * LINE + 12;
    s.polygon(&[(left + 10, y - 4), (left + 20, y - 4), (left + 15, y + 4)], GREY)?;
    s.text(left + 38, y, Anchor::Left, 14, GREY, "compaction")?;
    s.cross((left + 15, y + LINE), 5, GREY)?;
    s.text(left + 38, y + LINE, Anchor::Left, 14, GREY, "died here")?;
    if shown.iter().any(|r| too_dense(r)) {
        s.text(left, y + 2 * LINE, Anchor::Left, 14, GREY, "very frequent ones not marked")?;
    }
    Ok(())
}
