//! OpenCode: a summary after a marker message replaces the head of the session; the newest steps
//! stay.
//!
//! `rules.rs` and `strategy.rs` follow the releases; `described.rs` follows two published accounts.

mod described;
#[cfg(test)]
mod hook_tests;
pub(crate) mod log;
pub(crate) mod persist;
pub(crate) mod persist_tables;
#[cfg(test)]
mod recorded_tests;
mod rules;
mod strategy;
#[cfg(test)]
mod tests;

use std::path::Path;

use ctxbench_kit::memory::{Base, Level, LoadRequest, Note, Row, load, parse_jsonc, read_settings};
use described::{Account, DescribedOpenCode};
use strategy::OpenCodeProgram;

use crate::descriptor::Known;

pub(crate) const OPENCODE: Known = Known {
    load_files: |_, mut request| {
        let mut notes = Vec::new();
        for name in instructions(&request, &mut notes) {
            let row = Row::new(Level::Settings, Base::Project, &[&name]);
            request.table.rows.push(Row { nearest_first: true, ..row });
        }
        load(&request, notes)
    },
    formats: &[persist_tables::FORMAT],
    ..Known::new(include_str!("about.toml"), |b| match b.version.name {
        "described-001" => Box::new(DescribedOpenCode::new(Account::Comparison, b)),
        "described-002" => Box::new(DescribedOpenCode::new(Account::Article, b)),
        name => Box::new(OpenCodeProgram::new(name == "1.3", b)),
    })
};

/// Files listed in the settings, the user's before the project's: paths, or patterns that apply in
/// every folder up to the root. URLs are not fetched.
fn instructions(request: &LoadRequest<'_>, notes: &mut Vec<Note>) -> Vec<String> {
    let config = request.folders.home.join(".config/opencode");
    let mut folders: Vec<&Path> = request.folders.up_to_root().chain([config.as_path()]).collect();
    folders.reverse();
    let mut out = Vec::new();
    for by in folders.iter().flat_map(|f| ["opencode.json", "opencode.jsonc"].map(|n| f.join(n))) {
        let Some(settings) = read_settings(&by, parse_jsonc, notes) else { continue };
        let listed = settings["instructions"].as_array().into_iter().flatten();
        for one in listed.filter_map(|one| one.as_str()) {
            if one.starts_with("https://") || one.starts_with("http://") {
                let fetched = "the product fetches it at the start, ctxbench does not";
                Note::add(notes, &by, format!("lists {one}; {fetched}"));
            } else {
                out.push(one.to_string());
            }
        }
    }
    out
}
