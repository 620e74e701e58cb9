//! The page: one HTML file for a design review that fetches nothing. What was compared, what failed,
//! the conclusion and its plots come first; then sessions × strategies, then one session with the
//! texts of its compactions. Tables over sessions are at the end.
//!
//! Rust writes the static parts ([`parts`]), the plots over sessions ([`crate::plots`]) and the
//! data: the common data of all views ([`overview`]), and per session a compressed chunk that is
//! opened on demand ([`chunk`]), within a budget of bytes ([`budget`]). The scripts in this folder
//! draw the table of sessions × strategies and what is inside a session.

mod budget;
mod chunk;
mod overview;
mod parts;
#[cfg(test)]
mod tests;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};

use crate::error::ReportError;
use crate::plots::{self, Hues};
use crate::record::Results;
use crate::sections::{self, Section};
use crate::seeds;
use crate::stored::{Files, StoredResults};
use crate::terms::terms;
use crate::view::{self, ReportBlock, Several};
use budget::{MAX_BYTES, Packed};
use overview::Overview;

const STYLE: &str = include_str!("page.css");

/// The script, concatenated from several files that share one scope.
const SCRIPT: &str = concat!(
    include_str!("dom.js"),
    include_str!("state.js"),
    include_str!("charts.js"),
    include_str!("front.js"),
    include_str!("heat.js"),
    include_str!("chunk.js"),
    include_str!("timeline.js"),
    include_str!("compaction.js"),
    include_str!("session.js"),
    include_str!("main.js"),
);

/// Writes the page. `matrix` has the features of the systems as rows, the head first, or is empty.
pub(crate) fn write(
    stored: &StoredResults<'_>,
    hues: &Hues,
    matrix: &[Vec<String>],
    files: &mut dyn Files,
) -> Result<(), ReportError> {
    files.put("index.html", &page(stored, hues, matrix)?)
}

fn page(
    stored: &StoredResults<'_>,
    hues: &Hues,
    matrix: &[Vec<String>],
) -> Result<String, ReportError> {
    let results = &*seeds::averaged(&stored.figures);
    if results.runs.is_empty() {
        return Ok(document("no runs", &html! { main { p { "These results hold no runs." } } }));
    }
    let blocks = view::blocks(results);
    let overview = Overview::new(results, &blocks);
    let data = overview.json();
    let sections: Vec<Section> = sections::all(results).collect();
    let (title, provenance) = (parts::title(results), parts::provenance(results));
    let first = parts::first_screen(&sections, &pictures(results, &blocks, hues)?);
    let below = html! {
        h2 { "Details" }
        @for s in &sections { (parts::section(s, results)) }
        (parts::reading(&results.assumptions))
        @if !matrix.is_empty() { (parts::systems(matrix)) }
    };
    let frame = |packed: &Packed| {
        document(
            &title,
            &html! {
                main {
                    (provenance)
                    noscript { p.alarm { "Charts and sessions need the script of this page, which \
                        your viewer does not run. The tables below do not." } }
                    div #missing role="status" {}
                    div #overview { (first) (sessions(&packed.note())) (below) }
                    div #session hidden {}
                }
                script #data type="application/json" { (PreEscaped(&data)) }
                @for (i, chunk) in packed.chunks.iter().enumerate() {
                    @if let Some((chunk, _)) = chunk {
                        script id=(format!("d{i}")) type="application/octet-stream" {
                            (PreEscaped(chunk))
                        }
                    }
                }
                script type="module" { (PreEscaped(SCRIPT)) }
            },
        )
    };
    let room = MAX_BYTES.saturating_sub(frame(&Packed::default()).len());
    let mut packed = Packed::new(room);
    let mut left = blocks.len();
    let several = Several::from_results(results);
    stored.sessions(&mut |session| {
        for block in several.blocks(&seeds::as_one(session)) {
            packed.add(&block, &overview, left);
            left -= 1;
        }
        Ok(())
    })?;
    Ok(frame(&packed))
}

/// Width of a picture on a narrow screen, pixels.
const NARROW: i32 = 360;

/// The plots over sessions, each for wide and for narrow screens.
fn pictures(
    results: &Results,
    blocks: &[ReportBlock<'_>],
    hues: &Hues,
) -> Result<Markup, ReportError> {
    let colors = plots::colors(results, hues);
    let mut all = Vec::new();
    for terms in &terms(blocks) {
        for (class, width) in [("plot broad", plots::WIDTH), ("plot narrow", NARROW)] {
            let sweeps = plots::sweeps(terms, &colors, width)?.into_iter().map(|sweep| sweep.text);
            let drawn = plots::over_sessions(terms, &colors, width)?.into_iter().chain(sweeps);
            all.extend(drawn.map(|svg| (class, svg.replace(NAMESPACE, ""))));
        }
    }
    Ok(html! { @for (class, svg) in &all { figure class=(class) { (PreEscaped(svg)) } } })
}

/// Attribute that an SVG inside HTML does not need.
const NAMESPACE: &str = " xmlns=\"http://www.w3.org/2000/svg\"";

/// Composes a page with these styles; `title` is also its heading.
pub(crate) fn document(title: &str, body: &Markup) -> String {
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(policy());
                title { "ctxbench: " (title) }
                link rel="icon" href="data:,";
                style { (PreEscaped(STYLE)) }
            }
            body {
                header { h1 { (title) } }
                (body)
            }
        }
    };
    markup.into_string() + "\n"
}

/// Element in which the script draws the table of sessions × strategies.
fn sessions(left_out: &str) -> Markup {
    html! {
        section aria-labelledby="sessions" {
            h2 #sessions tabindex="-1" { "Sessions × strategies" }
            div #controls {}
            div #map {}
            @if !left_out.is_empty() { p.terms { (left_out) } }
        }
    }
}

/// Content security policy: the page fetches no resources and runs only this script and these
/// styles.
fn policy() -> String {
    let hash = |text: &str| BASE64_STANDARD.encode(Sha256::digest(text));
    format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; img-src data:; \
         base-uri 'none'; form-action 'none'",
        hash(SCRIPT),
        hash(STYLE)
    )
}
