//! Mechanisms that several products share, parameterised. A strategy file holds only what makes
//! that system itself.

mod cut;
mod fill;
mod kind;
mod prune;
mod replace;
mod restore;
mod split;
pub mod tools;
mod transcript;

pub use cut::{MiddleCut, head_cut, middle_cut};
pub use fill::{Kept, newest_first};
pub use kind::CompactionKind;
pub use prune::{PruneRule, PruneStep, clear_outputs, prune_walk};
pub use replace::{Replaced, behind_compaction, origins, passing};
pub use restore::{RecentFile, file_path, recent_files, text_argument};
pub use split::{
    group_starts, made_by_model, step_starts, suffix_reaching, suffix_within, turn_starts,
    unanswered,
};
pub use transcript::Transcript;
