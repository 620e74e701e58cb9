//! Errors that the Anthropic SDK's tool runner raises by itself; those of the API go through
//! unchanged.

use thiserror::Error;

/// What the runner refuses.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Raised {
    /// The summary does not begin with a text (docs/sources/anthropic-sdk.md §2.2, step 5:
    /// ValueError; TypeScript raises its own, for a summary without content too).
    #[error("the summary does not begin with a text block")]
    SummaryNotText,
    /// The summary has no content (§2.2, step 5: IndexError).
    #[error("the summary is empty")]
    SummaryEmpty,
    /// A compaction was asked for beside an edit that compacts (§2.4: ValueError).
    #[error("a compaction cannot be asked for while context_management compacts")]
    CompactionBesideEdit,
    /// The parameters of the runner ask for a compaction with every request (§2.4: ValueError).
    #[error("every request would compact: ask for a compaction before the next turn instead")]
    CompactionOfEveryRequest,
    /// The caller appended to the history while it was compacted (2.12: ValueError).
    #[error("messages cannot be changed while the conversation is compacted")]
    ChangedWhileCompacted,
}

impl Raised {
    const ALL: [Raised; 5] = [
        Raised::SummaryNotText,
        Raised::SummaryEmpty,
        Raised::CompactionBesideEdit,
        Raised::CompactionOfEveryRequest,
        Raised::ChangedWhileCompacted,
    ];

    /// The error that has these words.
    pub fn of(reason: &str) -> Option<Raised> {
        Raised::ALL.into_iter().find(|r| r.to_string() == reason)
    }

    /// Names of its class: first what is wrong, then the exception, as cases and as the languages
    /// write it.
    pub fn class_names(self) -> &'static [&'static str] {
        match self {
            Raised::SummaryNotText => {
                &["unexpected_summary_content", "value_error", "ValueError", "AnthropicError"]
            }
            Raised::SummaryEmpty => {
                &["empty_summary", "empty_summary_content", "index_error", "IndexError"]
            }
            Raised::CompactionBesideEdit
            | Raised::CompactionOfEveryRequest
            | Raised::ChangedWhileCompacted => &["value_error", "ValueError"],
        }
    }
}
