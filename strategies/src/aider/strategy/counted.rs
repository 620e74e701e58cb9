//! Token counts of prompts. A prompt is counted before every request, but most of it is unchanged.

use std::collections::HashMap;
use std::sync::Arc;

use ctxbench_core::block::{Block, Role};

use super::{groups, message};
use crate::aider::rules::{in_list, list_tokens};

/// Cache of token counts of the messages in a list, keyed by the role and the hashes of their
/// blocks.
#[derive(Default)]
pub(super) struct MessageTokens(HashMap<(bool, Vec<u64>), u64>);

impl MessageTokens {
    /// Returns the tokens of blocks as messages, as [`EXACT`](crate::aider::rules::EXACT) counts a list.
    pub(super) fn list(&mut self, blocks: &[Arc<Block>]) -> u64 {
        list_tokens(groups(blocks).map(|g| self.message(g)))
    }

    fn message(&mut self, blocks: &[Arc<Block>]) -> u64 {
        let shown = blocks.iter().map(|b| b.hash).collect();
        let key = (blocks[0].role == Role::Assistant, shown);
        *self.0.entry(key).or_insert_with(|| in_list(&message(blocks)))
    }
}

#[cfg(test)]
mod tests {
    use ctxbench_core::block::{BlockKind, Draft, MessageId};

    use super::super::messages;
    use super::*;

    #[test]
    fn known_messages_count_as_they_do_at_first() {
        let block = |role, text: &str, message| {
            Draft::text(BlockKind::User, role, text).build(MessageId(message), vec![])
        };
        let mut counted = MessageTokens::default();
        // The same text is a different message in the other role, or together with another text.
        let blocks = [
            block(Role::User, "a few words", 1),
            block(Role::Assistant, "a few words", 2),
            block(Role::Assistant, "and more", 2),
            block(Role::Assistant, "a few words", 3),
        ];
        for upto in [1, 2, 3, 4, 4] {
            let own = list_tokens(messages(&blocks[..upto]).iter().map(in_list));
            assert_eq!(counted.list(&blocks[..upto]), own, "{upto}");
        }
        assert_eq!(counted.0.len(), 3, "the last is the second as it was before it grew");
        assert_eq!(counted.list(&[]), 3);
    }
}
