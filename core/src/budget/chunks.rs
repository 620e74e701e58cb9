//! What a prompt is made of, in the order in which it is sent, and the check before sending.

use std::sync::Arc;

use super::allocate::Demand;
use super::error::{BudgetError, BudgetPart};
use crate::block::{Block, BlockKind, total_tokens};
use crate::model::Counting;
use crate::strategy::is_system;
use crate::tokens::bytes_div4_down;

/// The parts of a prompt (docs/sources/openoxide.md §2.3). Stable parts come first, so that a
/// prompt cache can keep them.
#[derive(Clone, Debug, Default)]
pub struct PromptChunks {
    /// System prompt and what belongs to it.
    pub system: Vec<Arc<Block>>,
    /// Overview of the code base.
    pub repo_map: Vec<Arc<Block>>,
    /// Files for reference, memory that is sent in the user's place.
    pub read_only_files: Vec<Arc<Block>>,
    /// Finished turns, perhaps summarised.
    pub chat_history: Vec<Arc<Block>>,
    /// Files being worked on.
    pub chat_files: Vec<Arc<Block>>,
    /// The turn under way.
    pub current: Vec<Arc<Block>>,
    /// What is repeated at the end.
    pub reminder: Vec<Arc<Block>>,
}

impl PromptChunks {
    /// Sorts a view into parts; the conversation keeps its order. `current_from` is the position at
    /// which the turn under way begins; the length of the view says that there is none.
    pub fn of(blocks: &[Arc<Block>], current_from: usize) -> Self {
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

    /// The parts in the order in which they are sent.
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

    /// The whole prompt.
    pub fn all_messages(&self) -> Vec<Arc<Block>> {
        self.parts().into_iter().flat_map(|(_, blocks)| blocks.iter().cloned()).collect()
    }

    /// What each part asks for, by the fast estimate. The system prompt is measured apart.
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

/// The first tier of counting: `bytes / 4` of every text (docs/sources/openoxide.md §2.1,
/// `estimate_fast`), tokens.
pub fn estimate(blocks: &[Arc<Block>]) -> u64 {
    blocks.iter().map(|b| bytes_div4_down(&b.text)).sum()
}

/// The last gate: a prompt counted as `total` tokens against `limit`. Sizes in the error are exact;
/// what the parts do not explain of the total (tool definitions, the provider's own additions)
/// counts as system.
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
    fn assembly_order() {
        let texts: Vec<String> = PromptChunks::of(&view(), 6)
            .all_messages()
            .iter()
            .map(|b| b.text.to_string())
            .collect();
        assert_eq!(texts, ["base", "map", "memory", "old", "file", "new", "remember"]);
        assert_eq!(PromptChunks::of(&view(), 7).chat_history.len(), 2);
    }

    #[test]
    fn the_gate_names_the_largest_part() {
        let mut v = view();
        v.push(block(BlockKind::User, Role::User, &"word ".repeat(400)));
        let chunks = PromptChunks::of(&v, 6);
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
    fn the_estimate_is_bytes_by_four() {
        assert_eq!(
            estimate(&[
                block(BlockKind::User, Role::User, "abcdefg"),
                block(BlockKind::User, Role::User, "abc")
            ]),
            1
        );
        assert_eq!(PromptChunks::of(&view(), 6).demand().reminder, 2);
    }
}
