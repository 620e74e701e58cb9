//! What a model is told of its budget: in tags that some models were trained on, and in plain
//! reminders where nobody tells it.
//!
//! The provider writes the tags itself, so a client never sends them; they are here for who plays
//! the provider or shows what the model knows. A reminder is put where it changes no cached prefix:
//! the window's size once, among what is shown first and never changes; what is left behind
//! everything else, in the request only. It is not part of the conversation, so the next request
//! neither repeats nor moves it, and no breakpoint stands behind it.

use std::sync::Arc;

use ctxbench_core::block::{Block, BlockKind, Draft, MessageId, Role};
use ctxbench_core::model::Model;
use ctxbench_core::request::Request;

/// Who tells a model what it may still use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Teller {
    /// The provider, in tags (docs/sources/anthropic-api.md §2.5: Sonnet 5, 4.6, 4.5 and Haiku
    /// 4.5).
    Provider,
    /// Nobody, unless the agent does.
    Agent,
}

impl Teller {
    /// Who tells this model.
    pub fn of_model(model: &Model) -> Self {
        if model.capabilities.awareness { Teller::Provider } else { Teller::Agent }
    }
}

/// The tag at the start of a session: the size of the window in tokens
/// (docs/sources/anthropic-api.md §2.5).
pub fn budget_tag(window: u64) -> String {
    format!("<budget:token_budget>{window}</budget:token_budget>")
}

/// The tag after each tool result, tokens; nothing remains when more is used than there is
/// (docs/sources/anthropic-api.md §2.5).
pub fn usage_tag(used: u64, window: u64) -> String {
    format!(
        "<system_warning>Token usage: {used}/{window}; {} remaining</system_warning>",
        window.saturating_sub(used)
    )
}

/// What a tag says, tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// The whole window.
    Budget(u64),
    /// Used, of how many, and what remains.
    Usage {
        /// Used.
        used: u64,
        /// The whole window.
        window: u64,
        /// What remains.
        remaining: u64,
    },
}

/// Reads one tag; `None` for anything else.
pub fn read_tag(text: &str) -> Option<Told> {
    let inside = |open: &str, close: &str| {
        text.trim().strip_prefix(open)?.strip_suffix(close).map(str::to_string)
    };
    if let Some(n) = inside("<budget:token_budget>", "</budget:token_budget>") {
        return n.parse().ok().map(Told::Budget);
    }
    let usage = inside("<system_warning>Token usage: ", " remaining</system_warning>")?;
    let (share, remaining) = usage.split_once("; ")?;
    let (used, window) = share.split_once('/')?;
    Some(Told::Usage {
        used: used.parse().ok()?,
        window: window.parse().ok()?,
        remaining: remaining.parse().ok()?,
    })
}

/// The words for a model that nobody tells; `{window}`, `{used}` and `{left}` stand for tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reminders {
    /// Said once, before the first user message.
    pub budget: Arc<str>,
    /// Said after tool results.
    pub usage: Arc<str>,
}

impl Default for Reminders {
    fn default() -> Self {
        Reminders {
            budget: "[context: {window} tokens in all]".into(),
            usage: "[context: {used} of {window} tokens used, {left} left; plan the rest of the \
                work to fit]"
                .into(),
        }
    }
}

impl Reminders {
    /// The block that names the window, to be shown with what never changes.
    pub fn opening(&self, window: u64) -> Arc<Block> {
        let text = self.budget.replace("{window}", &window.to_string());
        Draft::synthetic(BlockKind::Context, Role::System, text).build(MessageId(u32::MAX), vec![])
    }

    /// Says behind everything else what is left, if the request ends in a tool result. Returns
    /// whether it did.
    pub fn tell(&self, request: &mut Request, used: u64, window: u64) -> bool {
        if request.blocks.last().is_none_or(|b| b.kind != BlockKind::Output) {
            return false;
        }
        let used = used.min(window);
        let text = self
            .usage
            .replace("{used}", &used.to_string())
            .replace("{window}", &window.to_string());
        let text = text.replace("{left}", &(window - used).to_string());
        request.blocks.push(
            Draft::synthetic(BlockKind::Reminder, Role::System, text)
                .build(MessageId(u32::MAX), vec![]),
        );
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctxbench_core::model;

    #[test]
    fn the_tags_are_those_that_are_documented() {
        // docs/sources/token-budgeting.md §5.3: 200,000 in all, 35,000 used, 165,000 left.
        assert_eq!(budget_tag(200_000), "<budget:token_budget>200000</budget:token_budget>");
        assert_eq!(
            usage_tag(35_000, 200_000),
            "<system_warning>Token usage: 35000/200000; 165000 remaining</system_warning>"
        );
        assert_eq!(
            usage_tag(11, 10),
            "<system_warning>Token usage: 11/10; 0 remaining</system_warning>"
        );
        assert_eq!(read_tag(&budget_tag(7)), Some(Told::Budget(7)));
        assert_eq!(
            read_tag(&usage_tag(3, 10)),
            Some(Told::Usage { used: 3, window: 10, remaining: 7 })
        );
        for no in [
            "",
            "<budget:token_budget>many</budget:token_budget>",
            "<system_warning>Token usage: 1; 2 remaining</system_warning>",
        ] {
            assert_eq!(read_tag(no), None, "{no}");
        }
    }

    #[test]
    fn only_the_documented_models_are_told_by_their_provider() {
        let told: Vec<&str> = model::catalogue()
            .iter()
            .filter(|m| Teller::of_model(m) == Teller::Provider)
            .map(|m| &*m.name)
            .collect();
        let mut sorted = told.clone();
        sorted.sort_unstable();
        // docs/sources/anthropic-api.md §2.5.
        assert_eq!(
            sorted,
            ["claude-haiku-4-5", "claude-sonnet-4-5", "claude-sonnet-4-6", "claude-sonnet-5"]
        );
    }

    #[test]
    fn a_reminder_stands_behind_everything_and_leaves_what_was_cached() {
        use crate::monitor::session::tests::{block, request};
        let words = Reminders::default();
        let said = |n: usize| -> Vec<_> {
            let kinds = [
                BlockKind::User,
                BlockKind::Call,
                BlockKind::Output,
                BlockKind::Call,
                BlockKind::Output,
            ];
            kinds.iter().take(n).enumerate().map(|(i, k)| block(*k, &format!("part {i}"))).collect()
        };
        let [mut first, mut second] = [request(said(3)), request(said(5))];
        let breakpoints = first.breakpoints.clone();
        assert!(words.tell(&mut first, 600, 1_000) && words.tell(&mut second, 1_200, 1_000));
        assert_eq!(first.breakpoints, breakpoints);
        assert!(first.breakpoints.iter().all(|b| *b < 3), "no breakpoint behind the reminder");
        assert!(first.blocks[3].text.contains("600 of 1000 tokens used, 400 left"));
        assert!(
            second.blocks[5].text.contains("1000 of 1000 tokens used, 0 left"),
            "never more than all"
        );
        let same =
            first.blocks.iter().zip(&second.blocks).take_while(|(a, b)| a.hash == b.hash).count();
        assert_eq!(same, 3, "all that was said is shared, only the reminder is not");
        let mut talk = request(said(1));
        assert!(!words.tell(&mut talk, 1, 2), "nothing is said where no tool has run");
        assert_eq!(words.opening(1_000).text.as_ref(), "[context: 1000 tokens in all]");
    }
}
