//! The Anthropic SDK's tool runner: above a threshold, a summary replaces the whole conversation,
//! and the turn that crossed the threshold is lost.
//!
//! `old_runner.rs` follows Python 0.125 and TypeScript 0.124, and the published description of them;
//! `runner.rs` follows Python 2.12.

mod old_runner;
mod runner;
#[cfg(test)]
mod tests;

use ctxbench_core::prelude::*;
use serde::Deserialize;
use thiserror::Error;

use crate::descriptor::{Known, Requirement};
use old_runner::Old;
use runner::Runner;

pub(crate) const ANTHROPIC_SDK: Known = Known {
    // The client of 0.125 compacts by itself and works with any wire. Threads and compaction on
    // demand need the Anthropic API.
    needs: |b| {
        (b.version.name == "2.12").then_some(Requirement {
            is_met: |c| c.message_threads,
            reason: "threads and compaction on demand exist on the Anthropic API only",
        })
    },
    // The program that embeds the SDK stores sessions.
    formats: &[],
    ..Known::new(include_str!("about.toml"), |b| match b.version.name {
        "2.12" => Box::new(Runner::new(b)),
        _ => Box::new(Old::new(b)),
    })
};

/// Values of the settings in `about.toml`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SdkSettings {
    pub(crate) language: Language,
    pub(crate) enabled: bool,
    pub(crate) threshold: u64,
    pub(crate) model: Option<Arc<str>>,
    pub(crate) summary_prompt: Option<Arc<str>>,
    pub(crate) max_tokens: Option<u64>,
    pub(crate) max_iterations: Option<u64>,
    pub(crate) compact_at: u64,
    pub(crate) threads: bool,
    pub(crate) edits: Edits,
}

impl SdkSettings {
    /// Returns whether a turn has reached the caller's limit of replies.
    pub(crate) fn is_over(&self, replies: u64) -> bool {
        self.max_iterations.is_some_and(|most| replies >= most)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Language {
    #[default]
    Python,
    Typescript,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Edits {
    #[default]
    None,
    ClearToolUses,
    Compact,
}

/// Texts in `about.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SdkWords {
    pub(crate) summary_prompt: Arc<str>,
}

/// Number of retries of the SDK's client after a temporary failure. This is the default of its
/// `max_retries`, taken from the client's documentation; docs/sources does not mention it.
pub(crate) const CLIENT_RETRIES: u32 = 2;

/// Moves results to user messages, as this API requires.
pub(crate) fn admit(mut raw: Draft) -> Draft {
    if raw.kind == BlockKind::Output {
        raw.role = Role::User;
    }
    raw
}

/// Returns the view after a summary of the whole conversation: the system prompt, and the summary
/// block that replaces the rest.
pub(crate) fn only(s: &mut Engine, text: Arc<str>) -> (Vec<Arc<Block>>, Arc<Block>) {
    let origin = origins(s.context.blocks());
    let shown = s.context.blocks().iter().filter(|b| b.kind == BlockKind::Base).cloned().collect();
    (shown, s.synthetic(BlockKind::Summary, Role::User, text, origin))
}

/// Error raised by the runner.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Raised {
    /// The summary does not begin with a text (docs/sources/anthropic-sdk.md §2.2, step 5:
    /// ValueError; TypeScript raises its own, for a summary without content too).
    #[error("the summary does not begin with a text block")]
    SummaryNotText,
    /// The summary has no content (§2.2, step 5: IndexError).
    #[error("the summary is empty")]
    SummaryEmpty,
    /// The caller asked for a compaction while an edit in `context_management` compacts (§2.4:
    /// ValueError).
    #[error("a compaction cannot be asked for while context_management compacts")]
    CompactionBesideEdit,
    /// The parameters of the runner ask for a compaction with every request (§2.4: ValueError).
    #[error("every request would compact: ask for a compaction before the next turn instead")]
    CompactionOfEveryRequest,
    /// The caller appended to the history while it was compacted (2.12: ValueError).
    #[error("messages cannot be changed while the conversation is compacted")]
    ChangedWhileCompacted,
}
