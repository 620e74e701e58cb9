//! Compaction mechanisms that several products share.

mod cut;
mod kind;
mod prune;
mod replace;
mod split;
pub mod tools;
mod transcript;

pub use cut::{MiddleCut, head_cut, middle_cut};
pub use kind::CompactionKind;
pub use prune::{PruneRule, clear_outputs, prune_walk};
pub use replace::{UndoStack, ephemeral_block, kept, origins, view_after_compaction};
pub use split::{
    group_starts, is_reply, step_starts, suffix_reaching, suffix_within, turn_starts, unanswered,
};
pub use tools::{file_path, text_argument};
pub use transcript::Transcript;
