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

use ctxbench_core::strategy::Strategy;
use ctxbench_kit::memory::{Level, LoadRequest, LoadedFiles, Note, load, read_settings};
use described::DescribedCodex;
use rules::{CodexSettings, Release};
use serde::Deserialize;
use strategy::CodexProgram;

use crate::descriptor::{About, BuildRequest, Product, Requirement, Version};
use crate::persist::PersistFormat;

pub(crate) struct Codex;

impl Product for Codex {
    fn about(&self) -> About {
        About::read(include_str!("about.toml"))
    }

    /// Remote compaction is an item of the Responses API; compaction blocks of other providers
    /// differ.
    fn needs(&self, b: &BuildRequest<'_>) -> Option<Requirement> {
        let remote = b.settings::<CodexSettings>().remote && !b.version.is_description();
        remote.then_some(Requirement {
            is_met: |c| c.compaction_items,
            reason: "remote compaction exists on the OpenAI Responses API only",
        })
    }

    fn build(&self, b: &BuildRequest<'_>) -> Box<dyn Strategy> {
        match b.version.name {
            "0.104" => Box::new(CodexProgram::new(Release::V104, b)),
            "0.63" => Box::new(CodexProgram::new(Release::V063, b)),
            // Trims the oldest items.
            "described-000" => Box::new(DescribedCodex::new(false, b)),
            // Replaces the history with a note as a message of the assistant.
            "described-002" => Box::new(DescribedCodex::new(true, b)),
            _ => Box::new(CodexProgram::new(Release::V169, b)),
        }
    }

    fn load_files(&self, _version: Version, mut request: LoadRequest<'_>) -> LoadedFiles {
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
    }

    fn formats(&self) -> &'static [PersistFormat] {
        &[persist::FORMAT]
    }
}

/// The settings that concern memory files.
#[derive(Default, Deserialize)]
#[serde(default)]
struct FileSettings {
    /// Maximum bytes of all files of a project.
    project_doc_max_bytes: Option<i64>,
    project_doc_fallback_filenames: Vec<String>,
}
