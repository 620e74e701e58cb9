//! Errors for prompts that do not fit.

use thiserror::Error;

/// A part of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BudgetPart {
    /// System prompt, memory and tool definitions.
    System,
    /// Overview of the code base.
    RepoMap,
    /// Files for reference.
    ReadOnlyFiles,
    /// Finished turns, or their summary.
    ChatHistory,
    /// Files being worked on.
    ChatFiles,
    /// The turn under way.
    Current,
    /// The reminder at the end.
    Reminder,
}

impl BudgetPart {
    /// Returns the name for users.
    pub fn name(self) -> &'static str {
        match self {
            BudgetPart::System => "system prompt and tools",
            BudgetPart::RepoMap => "repository map",
            BudgetPart::ReadOnlyFiles => "read-only files",
            BudgetPart::ChatHistory => "chat history",
            BudgetPart::ChatFiles => "files in the chat",
            BudgetPart::Current => "current turn",
            BudgetPart::Reminder => "reminder",
        }
    }

    /// Returns advice to make the part smaller.
    fn advice(self) -> &'static str {
        match self {
            BudgetPart::System => "offer fewer tools or shorten the memory files",
            BudgetPart::RepoMap => "give the repository map less room",
            BudgetPart::ReadOnlyFiles => "drop read-only files",
            BudgetPart::ChatHistory => "clear or compact the chat history",
            BudgetPart::ChatFiles => "drop files from the chat",
            BudgetPart::Current => {
                "start a new turn with a smaller request or with less tool output"
            }
            BudgetPart::Reminder => "shorten the reminder",
        }
    }
}

/// A prompt that cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BudgetError {
    /// The prompt is larger than its limit.
    #[error("{}", overflow(*total, *limit, parts))]
    Overflow {
        /// Size of the prompt in tokens.
        total: u64,
        limit: u64,
        /// Parts of the prompt with their sizes in tokens, largest first. Empty parts are left out.
        parts: Vec<(BudgetPart, u64)>,
    },
    /// The output reserve uses the whole window.
    #[error(
        "the window of {window} tokens has no room for a prompt next to an output reserve of {reserve}; \
         choose a smaller reserve or a model with a larger window"
    )]
    NoRoom { window: u64, reserve: u64 },
}

impl BudgetError {
    /// Creates an overflow error with sorted parts.
    pub fn overflow(
        total: u64,
        limit: u64,
        parts: impl IntoIterator<Item = (BudgetPart, u64)>,
    ) -> Self {
        let mut parts: Vec<(BudgetPart, u64)> = parts.into_iter().filter(|(_, n)| *n > 0).collect();
        parts.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        BudgetError::Overflow { total, limit, parts }
    }

    /// Returns the number of tokens beyond the limit.
    pub fn over(&self) -> u64 {
        match self {
            BudgetError::Overflow { total, limit, .. } => total.saturating_sub(*limit),
            BudgetError::NoRoom { window, reserve } => reserve.saturating_sub(*window),
        }
    }
}

/// Maximum number of parts named in an error.
const MAX_NAMED: usize = 3;

fn overflow(total: u64, limit: u64, parts: &[(BudgetPart, u64)]) -> String {
    let over = total.saturating_sub(limit);
    let mut out = format!("the prompt of {total} tokens is {over} over its limit of {limit}");
    let named: Vec<String> =
        parts.iter().take(MAX_NAMED).map(|(p, n)| format!("{} {n}", p.name())).collect();
    if !named.is_empty() {
        out.push_str(&format!("; its largest parts: {}", named.join(", ")));
    }
    if let Some((part, _)) = parts.first() {
        out.push_str(&format!("; {}", part.advice()));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overflow_names_excess_parts_and_advice() {
        let e = BudgetError::overflow(
            170_000,
            159_600,
            [
                (BudgetPart::System, 9_000),
                (BudgetPart::ChatHistory, 8_000),
                (BudgetPart::ChatFiles, 120_000),
                (BudgetPart::Current, 33_000),
                (BudgetPart::Reminder, 0),
            ],
        );
        assert_eq!(e.over(), 10_400);
        let text = e.to_string();
        assert!(text.contains("10400 over its limit of 159600"), "{text}");
        assert!(
            text.contains(
                "files in the chat 120000, current turn 33000, system prompt and tools 9000"
            ),
            "{text}"
        );
        assert!(text.ends_with("drop files from the chat"), "{text}");
    }

    #[test]
    fn no_room_advises_a_smaller_reserve() {
        let e = BudgetError::NoRoom { window: 20_000, reserve: 32_000 };
        assert!(e.to_string().contains("smaller reserve"));
        assert_eq!(e.over(), 12_000);
    }
}
