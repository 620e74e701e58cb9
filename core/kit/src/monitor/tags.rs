//! Token budget in the context: a tag for models trained on it, and plain reminders for others.
//!
//! The provider adds the tags, so clients never send them; simulated providers and status lines use
//! them. Reminders do not change the cached prefix. The window size appears once, in the fixed part.
//! The remaining budget is the last block of a request, after every breakpoint, and is not part of
//! the conversation, so the next request does not repeat it.

use ctxbench_core::prelude::*;

/// Returns the tag after each tool result, with used and remaining tokens
/// (docs/sources/anthropic-api.md §2.5).
pub fn usage_tag(used: u64, window: u64) -> String {
    format!(
        "<system_warning>Token usage: {used}/{window}; {} remaining</system_warning>",
        window.saturating_sub(used)
    )
}

/// Reminder texts for models without tags. `{window}`, `{used}` and `{left}` are token counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reminders {
    /// Shown once, before the first user message.
    pub budget: Arc<str>,
    /// Shown after tool results.
    pub usage: Arc<str>,
}

impl Reminders {
    /// Returns the block with the window size, for the fixed part of the context.
    pub fn opening(&self, window: u64) -> Arc<Block> {
        let text = self.budget.replace("{window}", &window.to_string());
        ephemeral_block(BlockKind::Context, Role::System, text)
    }

    /// Appends the remaining budget if the request ends with a tool result. Returns whether the
    /// budget was appended.
    pub fn append_usage(&self, request: &mut Request, used: u64, window: u64) -> bool {
        if request.blocks.last().is_none_or(|b| b.kind != BlockKind::Output) {
            return false;
        }
        let used = used.min(window);
        let text = self
            .usage
            .replace("{used}", &used.to_string())
            .replace("{window}", &window.to_string());
        let text = text.replace("{left}", &(window - used).to_string());
        request.blocks.push(ephemeral_block(BlockKind::Reminder, Role::System, text));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_match_documentation() {
        // docs/sources/token-budgeting.md §5.3: 200,000 in total, 35,000 used, 165,000 left.
        assert_eq!(
            usage_tag(35_000, 200_000),
            "<system_warning>Token usage: 35000/200000; 165000 remaining</system_warning>"
        );
        assert_eq!(
            usage_tag(11, 10),
            "<system_warning>Token usage: 11/10; 0 remaining</system_warning>"
        );
    }

    #[test]
    fn append_usage_keeps_cached_prefix() {
        use crate::monitor::session::tests::{block, request};
        let reminders = Reminders {
            budget: "[context: {window} tokens in all]".into(),
            usage: "[context: {used} of {window} tokens used, {left} left]".into(),
        };
        let blocks = |n: usize| -> Vec<_> {
            use BlockKind::{Call, Output, User};
            let kinds = [User, Call, Output, Call, Output];
            kinds.iter().take(n).enumerate().map(|(i, k)| block(*k, &format!("part {i}"))).collect()
        };
        let [mut first, mut second] = [request(blocks(3)), request(blocks(5))];
        let breakpoints = first.breakpoints.clone();
        assert!(
            reminders.append_usage(&mut first, 600, 1_000)
                && reminders.append_usage(&mut second, 1_200, 1_000)
        );
        assert_eq!(first.breakpoints, breakpoints);
        assert!(first.breakpoints.iter().all(|b| *b < 3), "no breakpoint after the reminder");
        assert!(first.blocks[3].text.contains("600 of 1000 tokens used, 400 left"));
        assert!(
            second.blocks[5].text.contains("1000 of 1000 tokens used, 0 left"),
            "capped at the window"
        );
        let same =
            first.blocks.iter().zip(&second.blocks).take_while(|(a, b)| a.hash == b.hash).count();
        assert_eq!(same, 3, "the conversation is shared, the reminder is not");
        let mut talk = request(blocks(1));
        assert!(
            !reminders.append_usage(&mut talk, 1, 2),
            "the request does not end with a tool result"
        );
        assert_eq!(reminders.opening(1_000).text.as_ref(), "[context: 1000 tokens in all]");
    }
}
