//! Kinds of compaction.

use serde::{Deserialize, Serialize};

/// The effect of a compaction on blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompactionKind {
    /// Contents are replaced by placeholders.
    Clear,
    /// Contents are cut.
    Truncate,
    /// Blocks are removed.
    Drop,
    /// Blocks are replaced by a summary.
    #[default]
    Summarise,
}
