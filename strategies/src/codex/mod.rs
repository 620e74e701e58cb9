//! Codex CLI: the user's messages and one handoff summary replace the whole history.
//!
//! `rules.rs` and `strategy.rs` follow the releases, `described.rs` follows two published descriptions.

mod described;
mod items;
pub(crate) mod persist;
#[cfg(test)]
mod recorded_tests;
mod rules;
mod strategy;
#[cfg(test)]
mod tests;

use ctxbench_kit::memory::{Level, Note, load, read_settings};
use described::DescribedCodex;
use rules::{CodexSettings, Release};
use serde::Deserialize;
use strategy::CodexProgram;

use crate::descriptor::{Known, Requirement};

pub(crate) const CODEX: Known = Known {
    // Remote compaction is an item of the Responses API; compaction blocks of other providers
    // differ.
    needs: |b| {
        let remote = b.settings::<CodexSettings>().remote && !b.version.is_description();
        remote.then_some(Requirement {
            is_met: |c| c.compaction_items,
            reason: "remote compaction exists on the OpenAI Responses API only",
        })
    },
    load_files: |_, mut request| {
        let mut notes = Vec::new();
        let parse = |text: &str| -> Result<FileSettings, String> {
            toml::from_str(text).map_err(|e| format!("invalid TOML: {}", e.message()))
        };
        let config = request.folders.home.join(".codex/config.toml");
        let settings = read_settings(&config, parse, &mut notes).unwrap_or_default();
        let more = settings.project_doc_fallback_filenames.into_iter().filter(|n| !n.is_empty());
        request.table.rows.last_mut().into_iter().for_each(|row| row.names.extend(more.clone()));
        let mut out = load(&request, notes);
        out.files.retain(|f| !f.text.trim().is_empty());
        // The user's own file does not count towards the limit.
        let max = settings.project_doc_max_bytes.unwrap_or(32 * 1024);
        let max = usize::try_from(max).unwrap_or(0);
        let mut left = max;
        for f in out.files.iter_mut().filter(|f| f.level == Level::Project) {
            f.rest = f.text.split_off(f.text.floor_char_boundary(left));
            left -= f.text.len();
            if let Some(lost) = f.cut_off() {
                let text = format!(
                    "the last {lost} are not loaded, because all files of a project may have {max} \
                     bytes in total; shorten them or raise project_doc_max_bytes"
                );
                Note::add(&mut out.notes, &f.path, text);
            }
        }
        out
    },
    formats: &[persist::FORMAT],
    ..Known::new(include_str!("about.toml"), |b| match b.version.name {
        "0.104" => Box::new(CodexProgram::new(Release::V104, b)),
        "0.63" => Box::new(CodexProgram::new(Release::V063, b)),
        // Trims the oldest items.
        "described-000" => Box::new(DescribedCodex::new(false, b)),
        // Replaces the history with a note as a message of the assistant.
        "described-002" => Box::new(DescribedCodex::new(true, b)),
        _ => Box::new(CodexProgram::new(Release::V169, b)),
    })
};

/// The settings that concern memory files.
#[derive(Default, Deserialize)]
#[serde(default)]
struct FileSettings {
    /// Maximum bytes of all files of a project.
    project_doc_max_bytes: Option<i64>,
    project_doc_fallback_filenames: Vec<String>,
}
