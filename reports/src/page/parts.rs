//! Parts of the page that need no script: the compared sessions, the failures, the conclusion, and
//! the tables over sessions.

use std::collections::{BTreeMap, BTreeSet};

use ctxbench_core::strategy::Standing;
use maud::{Markup, html};
use sha2::{Digest, Sha256};

use crate::front::MARK;
use crate::record::{Results, RunRecord};
use crate::sections::Section;
use crate::sheet::Sheet;
use crate::stats::{self, Differences, Figure, Verdict};
use crate::{fmt, metrics, view};

/// Title of the page: how many strategies ran on which sessions.
pub(super) fn title(results: &Results) -> String {
    let sessions: BTreeSet<&str> = results.runs.iter().map(|r| &*r.scenario.id).collect();
    let models: Vec<String> = view::models(results).into_iter().map(fmt::one_line).collect();
    let on = match sessions.first() {
        Some(only) if sessions.len() == 1 => fmt::one_line(only),
        _ => fmt::sessions(sessions.len()),
    };
    format!("{} on {on}, {}", view::strategies(&results.runs), models.join(", "))
}

/// What the page was made from: the program, a hash of the sessions, and on request their names, the
/// versions of the strategies, and a command that runs all of it again.
pub(super) fn provenance(results: &Results) -> Markup {
    let runs = || results.runs.iter();
    let sessions: BTreeMap<&str, &RunRecord> = runs().map(|r| (&*r.scenario.id, r)).collect();
    let strategies: BTreeMap<&str, &str> =
        runs().map(|r| (&*r.strategy.label, &*r.strategy.version)).collect();
    let contents = sessions.values().map(|r| format!("{} {}\n", r.scenario.id, r.scenario.content));
    let hash = Sha256::digest(contents.collect::<String>());
    let hash: String = hash.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    html! {
        p.terms { (view::heading(results)) " · " (fmt::pluralize(results.runs.len(), "run")) " · sessions " code { (hash) } }
        details.provenance {
            summary { "Sessions, versions and command" }
            p { "To run it again, with the further options that you used:" }
            pre { (command(results)) }
            p { "Sessions, with a hash of each: " @for (i, (id, r)) in sessions.iter().enumerate() {
                @if i > 0 { ", " } (fmt::one_line(id)) " " code { (r.scenario.content) }
            } }
            p { "Strategies, with the version that each follows: " (strategies.iter()
                .map(|(label, version)| format!("{} {}", fmt::one_line(label), fmt::one_line(version)))
                .collect::<Vec<_>>().join(", ")) }
        }
    }
}

/// A command with these sessions, models and strategies. Recordings are named by a placeholder,
/// because results do not contain their paths.
fn command(results: &Results) -> String {
    let runs = || results.runs.iter();
    let session = |r: &RunRecord| match r.scenario.recorded {
        true => "RECORDINGS".into(),
        false => fmt::one_line(&r.scenario.id),
    };
    let sessions: BTreeSet<String> = runs().map(session).collect();
    let is_run = |r: &&RunRecord| r.strategy.standing != Standing::Recorded;
    let labels: BTreeSet<&str> = runs().filter(is_run).map(|r| &*r.strategy.label).collect();
    let summarizers: BTreeSet<&str> = runs().filter_map(|r| r.summariser.as_deref()).collect();
    let windows: BTreeSet<u64> = runs().filter(|r| r.is_contender()).map(|r| r.window).collect();
    let windows: Vec<String> = windows.iter().map(u64::to_string).collect();
    // Several are those of the sessions.
    let window = <&[String; 1]>::try_from(&windows[..]).ok().map(|[only]| ("window", &**only));
    let options = (view::models(results).into_iter().map(|m| ("model", m)))
        .chain(window)
        .chain(summarizers.into_iter().map(|s| ("summarizer", s)))
        .chain(labels.into_iter().map(|l| ("strategy", l)))
        .map(|(option, value)| format!("--{option} '{}'", fmt::one_line(value)));
    let words: Vec<String> = sessions.into_iter().chain(options).collect();
    format!("ctxbench run {}", words.join(" "))
}

/// Failures, conclusion and table, next to the plots.
pub(super) fn first_screen(sections: &[Section], pictures: &Markup) -> Markup {
    html! {
        div.first {
            section aria-label="The conclusion" {
                @for s in sections { @if let Section::Conclusion(c) = s {
                    h2 { (fmt::one_line(&c.heading)) }
                    @if !c.failures.is_empty() { div.alarm {
                        ul { @for f in &c.failures { li { (fmt::one_line(f)) } } }
                    } }
                    @for s in &c.sentences { p.sentences { (fmt::one_line(s)) } }
                    @if c.table.rows().next().is_some() {
                        (rows("The compared sessions", &c.table))
                        p.help { (fmt::one_line(&c.table.note)) }
                    }
                    @for l in &c.lines { p.help { (l.label) ": " (fmt::one_line(&l.text)) } }
                } }
                div #lose-control {}
                div #answers role="status" {}
            }
            section aria-label="Plots" {
                (pictures)
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
    let title = fmt::one_line(&s.title);
    html! { details {
        summary { (title) }
        p.terms { (fmt::one_line(&s.note)) }
        (rows(&title, s))
    } }
}

/// The rows of a table, with its name for screen readers.
fn rows(name: &str, s: &Sheet) -> Markup {
    let is_word = |c: &str| c.starts_with(char::is_alphabetic);
    let table = html! { table.sheet {
        thead { tr { @for h in &s.head {
            @if h.is_empty() { td {} } @else { th scope="col" { (fmt::one_line(h)) } }
        } } }
        tbody { @for g in &s.groups {
            @if !g.name.is_empty() {
                tr { th.l scope="rowgroup" colspan=(s.head.len()) { (fmt::one_line(&g.name)) } }
            }
            @for row in &g.rows { tr { @for (i, c) in row.iter().enumerate() {
                @if i == 0 { th scope="row" { (fmt::one_line(c)) } }
                @else if c == MARK { td.mark { (MARK) } }
                @else if c.chars().count() > LONG { td.note { (fmt::one_line(c)) } }
                @else { td.word[is_word(c)] { (fmt::one_line(c)) } }
            } } }
        } }
    } };
    wide(name, &table)
}

/// Differences between the strategies over all sessions, with intervals; a single line if there is
/// only one session.
fn differences(results: &Results, found: &[Differences]) -> Markup {
    let missing = stats::missing(results, found);
    html! { @if missing.is_some() || !found.is_empty() { details {
        summary { "Differences between strategies" }
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
    } } }
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
    html! { details {
        summary { "How to read this" }
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
    } }
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
    html! { details { summary { (name) } (wide(name, &table)) } }
}
