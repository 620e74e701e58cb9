//! The parts of a prompt in the order of sending, and the check before sending.

use std::sync::Arc;

use super::allocate::Demand;
use super::error::{BudgetError, BudgetPart};
use crate::block::is_system;
use crate::block::{Block, BlockKind, total_tokens};
use crate::model::Counting;
use crate::tokens::bytes_div4_down;

/// The parts of a prompt (docs/sources/openoxide.md §2.3). Stable parts come first, so that a
/// prompt cache can keep them.
#[derive(Clone, Debug, Default)]
pub struct PromptChunks {
    /// System prompt and other system text.
    pub system: Vec<Arc<Block>>,
    /// Overview of the code base.
    pub repo_map: Vec<Arc<Block>>,
    /// Files for reference, and memory that is sent as the user.
    pub read_only_files: Vec<Arc<Block>>,
    /// Finished turns, perhaps summarised.
    pub chat_history: Vec<Arc<Block>>,
    /// Files being worked on.
    pub chat_files: Vec<Arc<Block>>,
    /// The turn under way.
    pub current: Vec<Arc<Block>>,
    /// The reminder at the end.
    pub reminder: Vec<Arc<Block>>,
}

impl PromptChunks {
    /// Splits a view into parts; the conversation keeps its order. The current turn begins at position
    /// `current_from`, which is the length of the view if there is none.
    pub fn split(blocks: &[Arc<Block>], current_from: usize) -> Self {
        let mut out = PromptChunks::default();
        for (i, b) in blocks.iter().enumerate() {
            let part = match b.kind {
                _ if is_system(b) => &mut out.system,
                BlockKind::Context => &mut out.read_only_files,
                BlockKind::RepoMap => &mut out.repo_map,
                BlockKind::File => &mut out.chat_files,
                BlockKind::Reminder => &mut out.reminder,
                _ if i >= current_from => &mut out.current,
                _ => &mut out.chat_history,
            };
            part.push(b.clone());
        }
        out
    }

    /// Returns the parts in the order of sending.
    pub fn parts(&self) -> [(BudgetPart, &[Arc<Block>]); 7] {
        [
            (BudgetPart::System, &self.system),
            (BudgetPart::RepoMap, &self.repo_map),
            (BudgetPart::ReadOnlyFiles, &self.read_only_files),
            (BudgetPart::ChatHistory, &self.chat_history),
            (BudgetPart::ChatFiles, &self.chat_files),
            (BudgetPart::Current, &self.current),
            (BudgetPart::Reminder, &self.reminder),
        ]
    }

    /// Returns the whole prompt.
    pub fn all_messages(&self) -> Vec<Arc<Block>> {
        self.parts().into_iter().flat_map(|(_, blocks)| blocks.iter().cloned()).collect()
    }

    /// Returns the estimated demand of each part. The system prompt is measured separately.
    pub fn demand(&self) -> Demand {
        Demand {
            repo_map: estimate(&self.repo_map),
            read_only_files: estimate(&self.read_only_files),
            chat_files: estimate(&self.chat_files),
            chat_history: estimate(&self.chat_history),
            current: estimate(&self.current),
            reminder: estimate(&self.reminder),
        }
    }
}

/// Estimates tokens as `bytes / 4` of every text (`estimate_fast`, docs/sources/openoxide.md §2.1).
pub fn estimate(blocks: &[Arc<Block>]) -> u64 {
    blocks.iter().map(|b| bytes_div4_down(&b.text)).sum()
}

/// Checks a prompt of `total` tokens against `limit`. Sizes in the error are exact; tokens outside the
/// parts (tool definitions, the provider's additions) count as system.
pub fn validate(
    chunks: &PromptChunks,
    by: &Counting,
    total: u64,
    limit: u64,
) -> Result<(), BudgetError> {
    if total <= limit {
        return Ok(());
    }
    let mut parts: Vec<(BudgetPart, u64)> =
        chunks.parts().into_iter().map(|(p, b)| (p, total_tokens(by, b))).collect();
    let known: u64 = parts.iter().map(|(_, n)| n).sum();
    parts[0].1 += total.saturating_sub(known);
    Err(BudgetError::overflow(total, limit, parts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{Draft, MessageId, Role};

    fn block(kind: BlockKind, role: Role, text: &str) -> Arc<Block> {
        Draft::text(kind, role, text).build(MessageId(0), vec![])
    }

    fn view() -> Vec<Arc<Block>> {
        vec![
            block(BlockKind::Base, Role::System, "base"),
            block(BlockKind::Context, Role::User, "memory"),
            block(BlockKind::File, Role::User, "file"),
            block(BlockKind::User, Role::User, "old"),
            block(BlockKind::Reminder, Role::User, "remember"),
            block(BlockKind::RepoMap, Role::User, "map"),
            block(BlockKind::User, Role::User, "new"),
        ]
    }

    #[test]
    fn all_messages_are_in_order_of_sending() {
        let texts: Vec<String> = PromptChunks::split(&view(), 6)
            .all_messages()
            .iter()
            .map(|b| b.text.to_string())
            .collect();
        assert_eq!(texts, ["base", "map", "memory", "old", "file", "new", "remember"]);
        assert_eq!(PromptChunks::split(&view(), 7).chat_history.len(), 2);
    }

    #[test]
    fn validate_names_the_largest_part() {
        let mut v = view();
        v.push(block(BlockKind::User, Role::User, &"word ".repeat(400)));
        let chunks = PromptChunks::split(&v, 6);
        let by = &Counting::O200K;
        let total = total_tokens(by, &v) + 50;
        assert_eq!(validate(&chunks, by, total, total), Ok(()));
        let Err(BudgetError::Overflow { parts, .. }) = validate(&chunks, by, total, 100) else {
            panic!("must overflow")
        };
        assert_eq!(parts[0].0, BudgetPart::Current);
        assert_eq!(parts.iter().map(|(_, n)| n).sum::<u64>(), total);
        assert_eq!(parts[1], (BudgetPart::System, 50 + v[0].tokens(by)));
    }

    #[test]
    fn estimate_is_bytes_by_four() {
        assert_eq!(
            estimate(&[
                block(BlockKind::User, Role::User, "abcdefg"),
                block(BlockKind::User, Role::User, "abc")
            ]),
            1
        );
        assert_eq!(PromptChunks::split(&view(), 6).demand().reminder, 2);
    }
}
