//! Errors that the Anthropic SDK's tool runner raises itself. Errors of the API are passed on
//! unchanged.

use thiserror::Error;

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
