//! Advice as files for a design review: a page, a Markdown file, and a picture for each product.

use maud::{Markup, PreEscaped, html};

use super::text::{self, Part};
use super::{Advice, COST, ChangeOutcome, KEPT, SessionFigures};
use crate::error::ReportError;
use crate::plots::curve::{self, Curve, CurveLine, CurvePoint, CurveValue, Panel};
use crate::stats::Scale;
use crate::stored::Files;
use crate::{fmt, grid, markdown, page};

/// Widths of the picture on a slide, next to a table, and on a narrow screen, pixels.
const SLIDE: i32 = 800;
const BROAD: i32 = 620;
const NARROW: i32 = 360;

const TITLE: &str = "Compaction settings for your sessions";

/// Writes `advice.html`, `advice.md` and `advice-PRODUCT.svg`. `program` has the name and version of
/// ctxbench, and `command` is the command line.
pub fn write(
    all: &[Advice],
    program: &str,
    command: &str,
    files: &mut dyn Files,
) -> Result<(), ReportError> {
    let (mut md, mut sections) = (format!("# {TITLE}\n"), Vec::new());
    for a in all {
        let newest = a.newest.as_ref().map(|day| format!(", newest of {}", fmt::one_line(day)));
        let newest = newest.unwrap_or_default();
        let scope = text::scope(a);
        let origin = format!("{program}: {scope}{newest}, hash of the sessions {}", a.hash);
        let decision = text::decision(a);
        let mut evidence = text::evidence(a, true);
        evidence.push(Part::Text(origin.clone()));
        md += &format!("\n## {}\n{}", markdown::text(&a.product), markdown(&decision));
        let mut pictures = Vec::new();
        if let Some(mut curve) = curve(a, origin) {
            let file = format!("advice-{}.svg", fmt::slug(&a.product));
            files.put(&file, &curve::draw(&curve, SLIDE)?)?;
            md += &format!("\n![{}]({file})\n", markdown::text(&a.sentence));
            // The page has the decision as text.
            curve.title = "Change from today".into();
            curve.below = curve.below.lines().next_back().unwrap_or_default().into();
            curve.foot.clear();
            pictures = vec![curve::draw(&curve, NARROW)?, curve::draw(&curve, BROAD)?];
        }
        md += &markdown(&evidence);
        sections.push(html! { section {
            h2.decision { (fmt::one_line(&a.product)) }
            (markup(&decision))
            div.first {
                div { @for (class, svg) in ["plot narrow", "plot broad"].iter().zip(&pictures) {
                    figure class=(class) { (PreEscaped(svg)) }
                } }
                div { (markup(&evidence)) }
            }
        } });
    }
    md += &format!("\nMade by `{}`.\n", markdown::text(command));
    files.put("advice.md", &md)?;
    let made_by = html! { p.terms { "Made by " code { (fmt::one_line(command)) } "." } };
    let body = html! { main { @for s in &sections { (s) } (made_by) } };
    files.put("advice.html", &page::document(TITLE, &body))
}

fn markdown(parts: &[Part]) -> String {
    let format = |part: &Part| match part {
        Part::Heading(text) => format!("\n### {}\n", markdown::text(text)),
        Part::Text(text) => format!("\n{}\n", markdown::text(text)),
        Part::Code(text) => format!("\n    {}\n", fmt::one_line(text)),
        Part::Table(head, rows) => {
            let cells = rows.iter().map(|row| row.iter().map(|c| markdown::text(c)).collect());
            format!("\n{}\n", grid::markdown(head, cells, |i| i > 0).trim_end())
        }
        Part::List(all) => {
            let items = all.iter().map(|text| format!("\n- {}", markdown::text(text)));
            items.collect::<String>() + "\n"
        }
    };
    parts.iter().map(format).collect()
}

fn markup(parts: &[Part]) -> Markup {
    let cell = |(i, cell): (usize, &String)| match i {
        0 => html! { th scope="row" { (cell) } },
        _ => html! { td { (cell) } },
    };
    html! { @for part in parts { @match part {
        Part::Heading(text) => h3 { (text) },
        Part::Text(text) => p { (fmt::one_line(text)) },
        Part::Code(text) => pre.wide { (fmt::one_line(text)) },
        Part::Table(head, rows) => div.wide tabindex="0" role="region" aria-label="Figures" { table {
            thead { tr { @for h in *head { th scope="col" { (h) } } } }
            tbody { @for row in rows { tr { @for c in row.iter().enumerate() { (cell(c)) } } } }
        } },
        Part::List(all) => ul.help { @for text in all { li { (fmt::one_line(text).replace('`', "")) } } },
    } } }
}

/// Change of a session; `None` if it is unknown.
type Change = fn(&SessionFigures, &SessionFigures) -> Option<f64>;

/// The curve over the values of the setting that [`Advice::focus`] changes. `None` if there is none.
fn curve(a: &Advice, origin: String) -> Option<Curve> {
    let setting = &a.focus()?.change.settings[0];
    let advised = a.advised().map(|o| o.change.extends.as_ref().unwrap_or(&o.change.label));
    // Words such as `auto` come last.
    let number = |value: &str| value.parse().unwrap_or(f64::INFINITY);
    let of_setting = |o: &&ChangeOutcome| {
        let is_alone =
            o.change.extends.is_none() && o.change.settings[0].setting == setting.setting;
        is_alone && o.then.is_some() && o.figures[COST].scale == Scale::Ratio
    };
    let mut shown: Vec<(f64, Option<&ChangeOutcome>)> = (a.changes.iter().filter(of_setting))
        .map(|o| (number(&o.change.settings[0].value), Some(o)))
        .chain([(number(&setting.today), None)])
        .collect();
    shown.sort_by(|a, b| a.0.total_cmp(&b.0));
    let sums =
        |o: Option<&'_ ChangeOutcome>| o.and_then(|o| o.then.clone()).unwrap_or(a.now.clone());
    let value = |(place, o): &(f64, Option<&ChangeOutcome>)| {
        let sums = sums(*o);
        CurveValue {
            lines: vec![
                o.map_or("today".into(), |o| text::short(&o.change.settings[0].value)),
                text::compacts_at(&sums),
                format!("${}", fmt::usd(sums.cost_usd)),
                fmt::known(sums.recall.pct, |pct| fmt::pct(pct) + " %"),
            ],
            is_today: o.is_none(),
            is_number: place.is_finite(),
        }
    };
    let panel = |name: &str, figure: usize, hue: usize, change: Change| {
        let point = |(i, (_, o)): (usize, &(f64, Option<&ChangeOutcome>))| {
            let figure = o.map(|o| &o.figures[figure]);
            let then = sums(*o).per_session;
            let both = a.now.per_session.iter().zip(&then).filter(|_| o.is_some());
            let changes =
                both.filter_map(|(now, then)| Some((now.session.clone(), change(now, then)?)));
            let mean = figure.map_or(Some(0.0), |f| f.mean)?;
            Some(CurvePoint {
                value: i,
                mean,
                interval: figure.and_then(|f| f.interval).map(|i| (i.low, i.high)),
                is_marked: o.is_some_and(|o| Some(&o.change.label) == advised),
                tooltip: format!("mean {}", fmt::signed(mean, fmt::pct)),
                sessions: changes.collect(),
            })
        };
        let points = shown.iter().enumerate().filter_map(point).collect();
        Panel {
            name: name.into(),
            is_amount: false,
            lines: vec![CurveLine { color: curve::hue(hue), points }],
        }
    };
    let panels = vec![
        panel("cost of a session, change in %", COST, 0, |now, then| {
            (now.cost_usd > 0.0).then(|| (then.cost_usd / now.cost_usd - 1.0) * 100.0)
        }),
        panel("recall in a session, change in points", KEPT, 3, |now, then| {
            Some(then.recall_pct? - now.recall_pct?)
        }),
    ];
    let points = || panels.iter().flat_map(|p| &p.lines[0].points);
    let bars = if points().any(|p| p.interval.is_some()) { ", with its 95 % interval" } else { "" };
    let diamond = if advised.is_some() { " Diamond: advised." } else { "" };
    let legend = format!("Dot: a session. Line: mean change from today{bars}.{diamond}");
    let lines = a.advised().into_iter().flat_map(|o| &o.change.settings).map(|s| s.line.clone());
    Some(Curve {
        title: a.sentence.clone(),
        below: lines.chain([legend]).collect::<Vec<_>>().join("\n"),
        foot: vec![super::LIMIT.into(), origin],
        axis: format!("{} (today: {})", setting.setting, text::short(&setting.today)),
        rows: &["", "compacts at", "cost", "recall"],
        values: shown.iter().map(value).collect(),
        legend: vec![],
        panels,
    })
}
