//! What a recording's counters tell of text that the recording lacks.
//!
//! A provider counts whole prompts. What the visible content does not explain of one, by the
//! counting model of the recorded model, is text that the file lacks: system prompt and tools
//! before the first call ([`prefix`]), reminders and hooks between two calls ([`residuals`]).

use crate::model::{self, Counting};
use crate::session::{AssistantEntry, Entry, RecordedUsage};

/// How tokens are counted in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Calibrate {
    /// o200k and four tokens per block, whatever the model.
    Off,
    /// By the counting model of the model's family.
    Family,
    /// The same; and where a recording has counters and the run's model is of the recorded family,
    /// what they count beyond the visible content is part of the session.
    #[default]
    Recording,
}

impl Calibrate {
    /// In the order of the help.
    pub const ALL: [Calibrate; 3] = [Calibrate::Off, Calibrate::Family, Calibrate::Recording];

    /// The word on the command line and in files.
    pub fn word(self) -> &'static str {
        match self {
            Calibrate::Off => "off",
            Calibrate::Family => "family",
            Calibrate::Recording => "recording",
        }
    }
}

/// The counting model of a recorded model; o200k where nobody knows whose it is.
pub fn counting_of(recorded: Option<&str>) -> Counting {
    let Some(name) = recorded else { return Counting::O200K };
    let known = model::find_recorded(name).map(|m| m.counting);
    known.or_else(|| model::provider_of(name).map(Counting::of)).unwrap_or(Counting::O200K)
}

/// Tokens of an entry's visible content.
pub fn visible(entry: &Entry, by: &Counting) -> u64 {
    let standing = entry.standing_text().map(crate::tokens::Size::text);
    let parts = entry.content();
    parts.iter().map(|p| p.size()).chain(standing).map(|s| by.block(s)).sum()
}

fn usage(entry: &Entry) -> Option<&RecordedUsage> {
    match entry {
        Entry::Assistant(AssistantEntry { usage, .. }) => usage.as_ref(),
        _ => None,
    }
}

/// Tokens that the first counted request held before the visible content: system prompt and tools,
/// as far as the recording lacks their text. `entries` = those of one conversation.
pub fn prefix<'a>(entries: impl IntoIterator<Item = &'a Entry>, by: &Counting) -> Option<u64> {
    let mut known = 0;
    for entry in entries {
        if let Some(usage) = usage(entry) {
            return Some(usage.prompt().saturating_sub(known));
        }
        known += visible(entry, by);
    }
    None
}

/// A request of a recording held against the one before it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step<'a> {
    /// Id of the reply.
    pub reply: &'a str,
    /// The prompt as the provider counted it, tokens.
    pub prompt: u64,
    /// What the counting model expects of it, tokens: the first prompt of the segment and the
    /// visible content since. A segment ends where the program rewrote its context.
    pub expected: u64,
    /// How much the prompt grew by, tokens; `None` = the first of its segment.
    pub grown: Option<i64>,
    /// What the visible content in between explains of that, tokens.
    pub explained: u64,
}

/// The counted requests of a conversation in order.
pub fn steps<'a>(entries: impl IntoIterator<Item = &'a Entry>, by: &Counting) -> Vec<Step<'a>> {
    let mut out: Vec<Step<'a>> = Vec::new();
    // What came since the last counted request; `None` = it cannot be compared with.
    let mut since: Option<u64> = None;
    for entry in entries {
        if let (Some(usage), Some(reply)) = (usage(entry), entry.key()) {
            let prompt = usage.prompt();
            let before = out.last().copied().zip(since);
            let step = match before {
                Some((last, explained)) => Step {
                    reply,
                    prompt,
                    expected: last.expected + explained,
                    grown: Some(prompt as i64 - last.prompt as i64),
                    explained,
                },
                None => Step { reply, prompt, expected: prompt, grown: None, explained: 0 },
            };
            out.push(step);
            since = Some(0);
        }
        match entry {
            Entry::RecordedCompaction(_) | Entry::Clear { .. } | Entry::Rewind { .. } => {
                since = None;
            }
            _ => since = since.map(|n| n + visible(entry, by)),
        }
    }
    out
}

/// What came unseen before each reply, tokens of one block: by the reply's id, in order. Where the
/// counting model expects more than the provider counted, what is too much is taken off what
/// follows, so that sizes stay right and no step is paid twice.
pub fn residuals<'a>(
    entries: impl IntoIterator<Item = &'a Entry>,
    by: &Counting,
) -> Vec<(&'a str, u64)> {
    let mut open: i64 = 0;
    let mut out = Vec::new();
    for step in steps(entries, by) {
        let Some(grown) = step.grown else {
            open = 0;
            continue;
        };
        open += grown - step.explained as i64;
        if open > by.per_block as i64 {
            out.push((step.reply, open as u64));
            open = 0;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{RecordedCompaction, ToolEntry, UserEntry};

    /// Text of `n` o200k tokens.
    fn words(n: usize) -> Option<String> {
        Some(vec!["and"; n].join(" "))
    }

    fn user(n: usize) -> Entry {
        Entry::User(UserEntry { id: "u".into(), text: words(n), ..UserEntry::default() })
    }

    fn result(n: usize) -> Entry {
        Entry::Tool(ToolEntry { call_id: "c".into(), output: words(n), ..ToolEntry::default() })
    }

    fn reply(id: &str, n: usize, prompt: u64) -> Entry {
        let usage = RecordedUsage { cache_read: prompt, ..RecordedUsage::default() };
        let (id, text) = (id.to_string(), words(n));
        Entry::Assistant(AssistantEntry { id, text, usage: Some(usage), ..Default::default() })
    }

    const BY: Counting = Counting::CLAUDE;

    #[test]
    fn what_the_first_prompt_holds_beyond_the_visible_is_the_prefix() {
        // 117 + 34 of the user's.
        assert_eq!(prefix(&[user(100), reply("a", 1, 20_000)], &BY), Some(20_000 - 151));
        assert_eq!(prefix(&[user(100), reply("a", 1, 100)], &BY), Some(0));
        assert_eq!(prefix(&[user(100)], &BY), None);
    }

    #[test]
    fn what_a_step_does_not_explain_came_unseen() {
        // Reply 117 + 34, result 1,170 + 34: 1,355 of 1,855.
        let entries = [user(1), reply("a", 100, 10_000), result(1_000), reply("b", 1, 11_855)];
        assert_eq!(residuals(&entries, &BY), [("b", 500)]);
        let steps = steps(&entries, &BY);
        assert_eq!((steps[1].expected, steps[1].grown), (11_355, Some(1_855)));
    }

    #[test]
    fn what_is_too_much_is_taken_off_what_follows() {
        // 1,355 explained of 1,255; then 36 + 1,204 of 1,740, of which 100 are paid already.
        let entries = [
            reply("a", 100, 10_000),
            result(1_000),
            reply("b", 1, 11_255),
            result(1_000),
            reply("c", 1, 12_995),
        ];
        assert_eq!(residuals(&entries, &BY), [("c", 1_740 - 1_239 - 100)]);
    }

    #[test]
    fn a_rewritten_context_begins_anew() {
        let entries = [
            reply("a", 1, 150_000),
            Entry::RecordedCompaction(RecordedCompaction::default()),
            user(10),
            reply("b", 1, 40_000),
            result(1_000),
            reply("c", 1, 42_000),
        ];
        assert_eq!(residuals(&entries, &BY), [("c", 2_000 - 35 - 1_204)]);
    }
}
