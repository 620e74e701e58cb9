//! A page that needs nothing beside it: tables, inline plots, a few lines of script for sorting.

use std::collections::BTreeMap;

use crate::record::{CompactionRecord, Results, RunRecord};
use ctxbench_core::strategy::Standing;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::formats::{Artifact, Format, ReportError};
use crate::lost;
use crate::plots::{self, Looks, Plot};
use crate::sections::{self, Section};
use crate::sheet::Sheet;
use crate::stats::{self, Differences, Verdict};
use crate::view::{self, Block};
use crate::{fmt, front, metrics, seeds};

/// The format for `report --format html`.
pub(crate) const FORMAT: Format = Format { name: "html", render };

/// More compactions of one run than this are counted, not listed; all of them stand in
/// `compactions.csv`.
const LISTED: usize = 60;

/// The same for lost needs, which stand in `facts.csv`.
const NEEDS_LISTED: usize = 20;

const STYLE: &str = "body{font:15px/1.45 \
    system-ui,sans-serif;color:#222;background:#fff;margin:1.5rem auto;max-width:1240px;padding:0 \
    1rem}\
h1{font-size:1.5rem}h2{font-size:1.2rem;margin-top:2.2rem;border-top:1px solid \
#ddd;padding-top:1rem}.terms,.help{color:#666}\
.wide{overflow-x:auto}table{border-collapse:collapse;font-size:13.5px;font-variant-numeric:tabular-nums}\
th,td{padding:.25rem .55rem;text-align:right;border-bottom:1px solid \
#eee;white-space:nowrap}th{cursor:pointer;vertical-align:bottom;border-bottom:2px solid #999}\
.l{text-align:left}.note{white-space:normal;min-width:16rem}.best{font-weight:700;color:#00603e}.worse{font-weight:700;color:#b2182b}.aside td{color:#777;font-style:italic}\
.alarm{background:#fdecea;border-left:4px solid #b2182b;padding:.5rem 1rem;margin:1rem 0}.broken \
td{background:#fdecea}\
figure{margin:1.2rem 0;overflow-x:auto}svg{max-width:100%;height:auto}details{margin:.6rem \
0}summary{cursor:pointer;color:#0b5394}";

const SCRIPT: &str = "document.querySelectorAll('table.sort \
    th').forEach(function(h){h.addEventListener('click',function(){\
var t=h.closest('table'),i=h.cellIndex,b=t.tBodies[0],d=h.dataset.d==='1'?-1:1;h.dataset.d=d===1?'1':'0';\
Array.from(b.rows).sort(function(x,y){var p=x.cells[i].dataset.v,q=y.cells[i].dataset.v;\
if(p===undefined)return d*x.cells[i].textContent.localeCompare(y.cells[i].textContent);\
if(p===''||q==='')return (p==='')-(q==='');return \
d*(p-q)}).forEach(function(r){b.appendChild(r)})})});";

fn render(results: &Results, looks: &Looks) -> Result<Vec<Artifact>, ReportError> {
    let drawn = plots::plots(results, looks)?;
    Ok(vec![Artifact { file: "index.html".into(), text: page(results, &drawn, "") }])
}

/// The page. `matrix_md` is a Markdown table of what the systems do, or empty.
pub(crate) fn page(results: &Results, drawn: &[Plot], matrix_md: &str) -> String {
    let results = &*seeds::averaged(results);
    let policy =
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(policy);
                title { "ctxbench: context compaction compared" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { "Context compaction compared" }
                p.terms { (clean(&results.generator)) ", " (results.runs.len()) " runs" }
                @for s in sections::all(results) { (section(&s, results, drawn)) }
                @if !matrix_md.trim().is_empty() { h2 { "What the systems \
                    do" } (tables(matrix_md)) }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    markup.into_string()
}

fn section(section: &Section<'_>, results: &Results, drawn: &[Plot]) -> Markup {
    match section {
        Section::Failures(all) => html! {
            div.alarm { strong { "Failures" } ul { @for f in all { li { (clean(f)) } } } }
        },
        Section::Glance(g) => html! {
            h2 { (clean(&g.heading)) }
            @for s in &g.sentences { p { (clean(s)) } }
            table { tbody { @for l in &g.lines { tr.broken[l.alarm] { td.l { strong { (l.what) } } td.l.note { (clean(&l.text)) } } } } }
        },
        Section::Contents(blocks) => html! {
            ul { @for (i, (title, terms)) in blocks.iter().enumerate() { li { a href=(format!("#b{i}")) { (title) } " " span.terms { (terms) } } } }
        },
        Section::Differences(found) => differences(results, found),
        Section::Scores(i, block) => scores(*i, block, drawn),
        Section::Sheet(s) => sheet(s),
        Section::Reading(assumptions) => html! { h2 { "How to read this" } (help(assumptions)) },
    }
}

fn clean(text: &str) -> String {
    fmt::one_line(text)
}

fn scores(i: usize, block: &Block<'_>, drawn: &[Plot]) -> Markup {
    let run = block.first();
    html! {
        h2 id=(format!("b{i}")) { (block.title()) }
        p.terms { (block.terms()) }
        @if !run.scenario.why.is_empty() { p { (clean(&run.scenario.why)) } }
        @for w in &run.scenario.warnings { p.terms { "Note: " (clean(w)) } }
        (score_table(block))
        @for p in drawn.iter().filter(|p| p.block == Some(i)) {
            figure { figcaption.terms { (p.title) } (PreEscaped(&p.svg)) }
        }
        details { summary { "Settings and \
            versions" } div.wide { table { tbody { @for r in &block.runs { (settings(r)) } } } } }
        details { summary { "Needs lost" } @for r in &block.runs { (lost_needs(r)) } }
        details { summary { "Every compaction" } @for r in &block.runs { (compactions(r)) } }
    }
}

fn sheet(s: &Sheet) -> Markup {
    html! {
        h2 { (clean(&s.title)) }
        p.terms { (clean(&s.note)) }
        div.wide { table {
            thead { tr { @for (i, h) in s.head.iter().enumerate() { @if i == 0 { th.l { (clean(h)) } } @else { th { (clean(h)) } } } } }
            tbody { @for g in &s.groups {
                @if !g.name.is_empty() { tr { th.l colspan=(s.head.len()) { (clean(&g.name)) } } }
                @for row in &g.rows { tr { @for (i, c) in row.iter().enumerate() { @if i == 0 { td.l { (clean(c)) } } @else { td { (clean(c)) } } } } }
            } }
        } }
    }
}

fn score_table(block: &Block<'_>) -> Markup {
    html! {
        div.wide { table.sort {
            thead { tr {
                th.l { "strategy" } th { "steps" }
                @for (_, s) in metrics::scores() { th title=(s.help) { (s.title()) } }
                th.l { "notes" }
            } }
            tbody { @for ((r, figures), front) in block.runs.iter().zip(block.scored()).zip(front::of_block(block)) { tr.aside[r.strategy.standing != Standing::Contender].broken[r.broken_rules() > 0] {
                td.l { @if front { span title=(front::HELP) { (front::MARK) } " " } (clean(&r.strategy.label)) }
                td data-v=(r.summary.steps_completed) { (view::steps(r)) }
                @for f in figures {
                    td.best[f.best] data-v=(f.value.map_or(String::new(), |x| fmt::exact(f.metric.unit.converted(x)))) { (f.text) }
                }
                td.l.note { (view::notes(r).join("; ")) }
            } } }
        } }
    }
}

/// What the strategies differ by over all sessions, with intervals. With one session a line.
fn differences(results: &Results, found: &[Differences]) -> Markup {
    html! { @if !results.runs.is_empty() {
        h2 { "Differences between strategies" }
        @if let Some(why) = stats::missing(results, found) { p.terms { (why) } }
        @for d in found {
            @if d.strategies.is_empty() { p.terms { (clean(&d.model)) ": " (stats::caption(d)) } }
            @else { h3 { (stats::heading(d)) } p.terms { (stats::caption(d)) } (difference_table(d)) }
        }
    } }
}

fn difference_table(d: &Differences) -> Markup {
    html! {
        div.wide { table.sort {
            thead { tr {
                th.l { "strategy" } th { "compacted" }
                @for m in stats::judged() { th { (m.name) } th.l { "95 % \
                    interval" } th { "median" } th { "bill" } th.l { "verdict" } }
            } }
            tbody { @for row in &d.strategies { tr {
                td.l { (stats::name(row)) }
                td data-v=(row.compacted) { (stats::seen(row)) }
                @for (f, m) in row.figures.iter().zip(stats::judged()) {
                    @let p = f.p.zip(f.p_holm).map(|(p, holm)| format!("p = {}, after Holm {}; {} \
                        sessions", fmt::exact(p), fmt::exact(holm), f.sessions));
                    td data-v=(f.mean.map_or(String::new(), fmt::exact)) { (stats::change(f, m)) }
                    td.l { (stats::interval(f, m).unwrap_or_default()) }
                    td data-v=(f.median.map_or(String::new(), fmt::exact)) { (stats::median(f, m)) }
                    td { (stats::bill(f).unwrap_or_default()) }
                    td.l.best[f.verdict == Verdict::Better].worse[f.verdict == Verdict::Worse] title=[p] { (stats::word(f.verdict)) }
                }
            } } }
        } }
    }
}

fn settings(run: &RunRecord) -> Markup {
    let settings: Vec<String> =
        run.strategy.settings.iter().map(|(k, v)| format!("{} = {}", clean(k), clean(v))).collect();
    html! { tr { td.l { (clean(&run.strategy.label)) } td.l { (clean(&run.strategy.version)) } td.l.note { (settings.join(", ")) } } }
}

type CompactionColumn = (&'static str, fn(&CompactionRecord) -> String);

/// The table of compactions behind the mechanism: heading and cell.
const COMPACTIONS: [CompactionColumn; 11] = [
    ("before request", |c| c.before_request.to_string()),
    ("before", |c| fmt::tokens(c.before_tokens as f64)),
    ("after", |c| fmt::tokens(c.after_tokens as f64)),
    ("invalidated", |c| fmt::tokens(c.invalidated_tokens as f64)),
    ("waited s", |c| fmt::seconds(c.blocked_ms as f64 / 1000.0)),
    ("cost $", |c| fmt::usd(c.cost_usd)),
    ("facts lost", |c| c.facts_lost_verbatim.to_string()),
    ("carried", |c| c.facts_carried.to_string()),
    ("pays off after calls", |c| c.break_even_calls.map_or("never".into(), fmt::pct)),
    ("calls made", |c| c.calls_after.to_string()),
    ("paid off", |c| c.paid_off.map_or("n/a", |p| if p { "yes" } else { "no" }).into()),
];

fn compactions(run: &RunRecord) -> Markup {
    html! { @if !run.compactions.is_empty() {
        h4 { (clean(&run.strategy.label)) }
        div.wide { table {
            thead { tr { th.l { "mechanism" } @for (head, _) in COMPACTIONS { th { (head) } } } }
            tbody { @for c in run.compactions.iter().take(LISTED) { tr {
                td.l { (clean(&c.mechanism)) } @for (_, cell) in COMPACTIONS { td { (cell(c)) } }
            } } }
        } }
        @if run.compactions.len() > LISTED { p.terms { (run.compactions.len() - LISTED) " more in \
            compactions.csv" } }
    } }
}

fn lost_needs(run: &RunRecord) -> Markup {
    let lost = lost::of_run(run);
    html! { @if !lost.lost.is_empty() {
        h4 { (clean(&run.strategy.label)) ": " (lost.lost.len()) " of " (lost.needs) }
        ul { @for need in lost.lost.iter().take(NEEDS_LISTED) { li {
            (need.what())
            @for (what, words) in need.words() { br; span.terms { (what) ": “" (words) "”" } }
        } } }
        @if lost.lost.len() > NEEDS_LISTED { p.terms { (lost.lost.len() - NEEDS_LISTED) " more in \
            facts.csv" } }
    } }
}

fn help(assumptions: &BTreeMap<String, String>) -> Markup {
    html! {
        ul.help {
            li { "Green: best of the products that compacted, finished and broke no rule. Italic: \
                hypothetical and control rows. n/a: not applicable or unknown, never 0. A click on \
                a heading sorts." }
            @for (_, s) in metrics::scores() { li { strong { (s.title()) } ": " (s.help) } }
            li { strong { "Differences between strategies" } ": " (stats::HELP) }
        }
        p { "Modelled, not measured:" }
        ul { @for (k, v) in assumptions { li { strong { (clean(k)) } ": " (clean(v)) } } @if assumptions.is_empty() { li { "not stated in these results" } } }
    }
}

/// The little of Markdown that the matrix needs: tables, headings, paragraphs.
fn tables(md: &str) -> Markup {
    let mut parts: Vec<(bool, Vec<&str>)> = Vec::new();
    for line in md.lines().map(str::trim).filter(|l| !l.is_empty()) {
        let is_row = line.starts_with('|');
        match parts.last_mut() {
            Some((true, rows)) if is_row => rows.push(line),
            _ => parts.push((is_row, vec![line])),
        }
    }
    let rule = |l: &str| l.chars().all(|c| matches!(c, '|' | '-' | ':' | ' '));
    html! { @for (is_table, lines) in &parts {
        @if *is_table {
            div.wide { table {
                @for (i, line) in lines.iter().filter(|l| !rule(l)).enumerate() {
                    tr { @for cell in cells(line) { @if i == 0 { th.l { (cell) } } @else { td.l.note { (cell) } } } }
                }
            } }
        } @else {
            @for line in lines { @if line.starts_with('#') { h3 { (line.trim_start_matches('#').trim()) } } @else { p { (line) } } }
        }
    } }
}

/// The cells of a Markdown row; `\|` is a bar in the text.
fn cells(line: &str) -> Vec<String> {
    let inner = line.trim_start_matches('|');
    let inner = inner.strip_suffix('|').unwrap_or(inner).replace("\\|", "\u{1}");
    inner.split('|').map(|c| c.trim().replace('\u{1}', "|").replace(['`', '*'], "")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn sample_page() -> String {
        let mut results = sample::results();
        results.runs.iter_mut().for_each(|r| r.scenario.title = "<script>alert(1)</script>".into());
        results.runs[1].note = Some("\"><img src=x onerror=alert(2)>".into());
        results.generator = "<b>&".into();
        results.assumptions.insert("<i>".into(), "&\"".into());
        page(
            &results,
            &plots::plots(&results, &Looks::default()).unwrap(),
            "# Title <x>\n\n| a | b |\n|---|---|\n| `c` | <u>d \\| e |\n",
        )
    }

    #[test]
    fn everything_is_escaped() {
        let page = sample_page();
        assert!(
            page.contains("&lt;u&gt;d | e"),
            "{}",
            &page[page.find("What the systems do").unwrap()..]
        );
        for bad in ["<script>alert", "<img", "<b>&", "<i>", "<u>", "<x>"] {
            assert!(!page.contains(bad), "{bad}");
        }
        assert!(page.contains("&lt;script&gt;alert(1)") && page.contains("x&lt;&amp;&quot;y"));
    }

    #[test]
    fn sheets_name_the_scenario_once_above_its_rows() {
        let mut results = sample::results();
        results.runs.iter_mut().for_each(|r| r.resume = vec![Default::default()]);
        let page = page(&results, &[], "");
        let line = "<th class=\"l\" colspan=\"13\">login-bug</th>";
        assert_eq!(page.matches(line).count(), 1);
        assert!(page[page.find(line).unwrap()..].contains("<tr><td class=\"l\">reference</td>"));
    }

    #[test]
    fn nothing_is_fetched() {
        let page = sample_page();
        let outside = page.replace("http://www.w3.org/2000/svg", "").replace("http-equiv", "");
        assert!(
            !outside.contains("http")
                && !page.contains("src=\"")
                && !page.contains("url(")
                && !page.contains("@import")
        );
        assert_eq!(page.matches("<svg").count(), 5);
    }

    #[test]
    fn failures_come_before_scores() {
        let page = sample_page();
        assert!(page.find("INTEGRITY FAILURE").unwrap() < page.find("<table").unwrap());
    }
}
