//! Parts of the page that need no script: the compared sessions, the failures, the conclusion, and
//! the tables over sessions.

use std::collections::BTreeMap;

use maud::{Markup, html};

use crate::record::Results;
use crate::sections::Section;
use crate::sheet::Sheet;
use crate::stats::{self, Differences, Figure, Verdict};
use crate::{fmt, metrics};

/// Failures, conclusion and table, displayed next to the chart.
pub(super) fn first_screen(sections: &[Section]) -> Markup {
    html! {
        div.first {
            section aria-label="The conclusion" {
                @for s in sections { @if let Section::Conclusion(c) = s {
                    h2 { (fmt::one_line(&c.heading)) }
                    @if !c.failures.is_empty() { div.alarm {
                        ul { @for f in &c.failures { li { (fmt::one_line(f)) } } }
                    } }
                    @for s in &c.sentences { p.sentences { (fmt::one_line(s)) } }
                    @for l in &c.lines { p.terms { (l.label) ": " (fmt::one_line(&l.text)) } }
                    @if c.table.rows().next().is_some() { (body(&c.table)) }
                } }
            }
            section aria-labelledby="front-title" {
                h2 #front-title { "Cost against recall" }
                div #front {}
            }
        }
    }
}

/// A table over sessions, at the end of the page.
pub(super) fn section(section: &Section, results: &Results) -> Markup {
    match section {
        Section::Differences(found) => differences(results, found),
        Section::Sheet(s) => sheet(s),
        // The first screen has it, and the script draws each session.
        Section::Conclusion(_) | Section::Scores(_) | Section::Notes(_) => html! {},
    }
}

/// Maximum length of a cell without line breaks, characters.
const LONG: usize = 32;

/// Wraps wide content in a box with its own scroll bar.
fn wide(name: &str, table: &Markup) -> Markup {
    html! { div.wide tabindex="0" role="region" aria-label=(name) { (table) } }
}

fn sheet(s: &Sheet) -> Markup {
    html! { h2 { (fmt::one_line(&s.title)) } (body(s)) }
}

/// A table with its note.
fn body(s: &Sheet) -> Markup {
    let is_word = |c: &str| c.starts_with(char::is_alphabetic);
    let table = html! { table.sheet {
        thead { tr { @for h in &s.head { th scope="col" { (fmt::one_line(h)) } } } }
        tbody { @for g in &s.groups {
            @if !g.name.is_empty() {
                tr { th.l scope="rowgroup" colspan=(s.head.len()) { (fmt::one_line(&g.name)) } }
            }
            @for row in &g.rows { tr { @for (i, c) in row.iter().enumerate() {
                @if i == 0 { th scope="row" { (fmt::one_line(c)) } }
                @else if c.chars().count() > LONG { td.note { (fmt::one_line(c)) } }
                @else { td.word[is_word(c)] { (fmt::one_line(c)) } }
            } } }
        } }
    } };
    let name = if s.title.is_empty() { "The compared sessions" } else { &s.title };
    html! { p.terms { (fmt::one_line(&s.note)) } (wide(&fmt::one_line(name), &table)) }
}

/// Differences between the strategies over all sessions, with intervals; a single line if there is
/// only one session.
fn differences(results: &Results, found: &[Differences]) -> Markup {
    let missing = stats::missing(results, found);
    html! { @if missing.is_some() || !found.is_empty() {
        h2 { "Differences between strategies" }
        @if let Some(why) = missing { p.terms { (why) } }
        @for d in found {
            @if d.strategies.is_empty() {
                p.terms { (fmt::one_line(&d.model)) ": " (stats::caption(d)) }
            } @else {
                h3 { (stats::heading(d)) }
                p.terms { (stats::caption(d)) }
                (wide(&stats::heading(d), &difference_table(d)))
            }
        }
    } }
}

fn difference_table(d: &Differences) -> Markup {
    let number = |x: Option<f64>| x.map_or(String::new(), fmt::exact);
    let p = |f: &Figure| {
        let (p, holm) = (fmt::exact(f.p?), fmt::exact(f.p_holm?));
        Some(format!("p = {p}, after Holm {holm}; {}", fmt::sessions(f.sessions)))
    };
    html! { table.sort {
        thead { tr {
            th scope="col" { "strategy" } th scope="col" { "compacted" }
            @for m in stats::judged() { th.l scope="col" title=(m.help) { (m.name) } }
        } }
        tbody { @for row in &d.strategies { tr {
            th scope="row" { (stats::name(row)) }
            td data-v=(row.compacted) { (stats::describe_exposure(row)) }
            @for (f, m) in row.figures.iter().zip(stats::judged()) {
                td.l.better[f.verdict == Verdict::Better].worse[f.verdict == Verdict::Worse]
                    data-v=(number(f.mean)) title=[p(f)] { (stats::cell(f, m)) }
            }
        } } }
    } }
}

/// Explanation of the figures, and the assumptions of the models.
pub(super) fn reading(assumptions: &BTreeMap<String, String>) -> Markup {
    html! {
        h2 { "How to read this" }
        ul.help {
            li { "◆: " (crate::front::HELP) ". n/a: not applicable or unknown, never 0. Hypothetical \
                and control rows are compared with and never best." }
            @for m in metrics::scores() { li { strong { (m.score_title()) } ": " (code(m.help)) } }
            li { strong { "Differences between strategies" } ": " (code(stats::HELP)) }
        }
        p { "Modelled, not measured:" }
        ul {
            @for (k, v) in assumptions { li { strong { (fmt::one_line(k)) } ": " (code(&fmt::one_line(v))) } }
            @if assumptions.is_empty() { li { "not stated in these results" } }
        }
    }
}

/// Renders text between backticks as code.
fn code(text: &str) -> Markup {
    html! { @for (i, part) in text.split('`').enumerate() {
        @if i % 2 == 0 { (part) } @else { code { (part) } }
    } }
}

/// Renders the features of the systems, without the marks of code and emphasis of Markdown.
pub(super) fn systems(matrix: &[Vec<String>]) -> Markup {
    let name = "What the systems do";
    let table = html! { table {
        @for (i, row) in matrix.iter().enumerate() {
            tr { @for cell in row.iter().map(|c| c.trim().replace(['`', '*'], "")) {
                @if i == 0 && !cell.is_empty() { th.l scope="col" { (cell) } } @else { td.note { (cell) } }
            } }
        }
    } };
    html! { h2 { (name) } (wide(name, &table)) }
}
