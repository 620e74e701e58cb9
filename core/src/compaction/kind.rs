//! The kinds of compaction.

use serde::{Deserialize, Serialize};

/// What a compaction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompactionKind {
    /// Contents replaced by placeholders.
    Clear,
    /// Contents cut.
    Truncate,
    /// Blocks removed.
    Drop,
    /// Blocks replaced by a summary.
    Summarise,
}
