//! Estimates text that a recording lacks from the provider's counters.
//!
//! A provider counts whole prompts. Tokens beyond the visible content, by the recorded model's
//! counting model, are text that the file lacks: system prompt and tools before the first call
//! ([`prefix`]), reminders and hooks between two calls ([`residuals`]).

use crate::{Entry, RecordedUsage};
use ctxbench_core::content::Part;
use ctxbench_core::model::{self, Counting};
use ctxbench_core::tokens::Size;

/// The token count of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Calibrate {
    /// o200k and four tokens per block, for every model.
    Off,
    /// The counting model of the model's family.
    Family,
    /// Like `Family`. If a recording has counters and the run's model is of the recorded family, tokens
    /// beyond the visible content become part of the session.
    #[default]
    Recording,
}

impl Calibrate {
    /// All values, in the order of `--help`.
    pub const ALL: [Calibrate; 3] = [Calibrate::Off, Calibrate::Family, Calibrate::Recording];

    /// Returns the name on the command line and in files.
    pub fn word(self) -> &'static str {
        match self {
            Calibrate::Off => "off",
            Calibrate::Family => "family",
            Calibrate::Recording => "recording",
        }
    }
}

/// Returns the counting model of a recorded model; o200k if the provider is unknown.
pub fn counting_of(recorded: Option<&str>) -> Counting {
    recorded.and_then(model::priced_as).map_or(Counting::O200K, |m| m.counting)
}

/// Tokens of the visible content of a recorded conversation.
#[derive(Default)]
struct Visible {
    all: u64,
    /// Thinking before the last user message.
    earlier: u64,
    /// Thinking since the last user message.
    newest: u64,
    /// Whether the last entry is a tool result. A user message right after a result does not begin
    /// a turn.
    in_cycle: bool,
}

impl Visible {
    fn add(&mut self, entry: &Entry, by: &Counting) {
        match entry {
            Entry::User(_) if !self.in_cycle => self.earlier += std::mem::take(&mut self.newest),
            Entry::Assistant(_) => self.in_cycle = false,
            Entry::Tool(_) => self.in_cycle = true,
            _ => {}
        }
        let definitions = match entry {
            Entry::Tools { definitions, .. } => definitions.as_slice(),
            _ => &[],
        };
        let definitions = definitions.iter().map(|d| Size::text(&d.to_string()));
        let standing = entry.standing_text().map(Size::text).into_iter().chain(definitions);
        self.all += standing.map(|s| by.block(s)).sum::<u64>();
        for part in entry.content() {
            let tokens = by.block(part.size());
            self.all += tokens;
            self.newest += if matches!(part, Part::Reasoning { .. }) { tokens } else { 0 };
        }
    }

    /// Returns the tokens that a prompt for a model contains.
    fn shown_to(&self, model: Option<&str>) -> u64 {
        let keeps = model.is_none_or(model::keeps_thinking);
        self.all - if keeps { 0 } else { self.earlier }
    }
}

/// Returns the tokens of the visible content of all conversations of a session.
pub fn content<'a>(entries: impl IntoIterator<Item = &'a Entry>, by: &Counting) -> u64 {
    let mut all = Visible::default();
    entries.into_iter().for_each(|entry| all.add(entry, by));
    all.all
}

/// Returns the tokens of the largest prompt of a conversation, by its visible content. A compaction
/// leaves its summary. `recorded` is the model of replies without a model.
pub fn largest_prompt<'a>(
    entries: impl IntoIterator<Item = &'a Entry>,
    by: &Counting,
    recorded: Option<&str>,
) -> u64 {
    let (mut visible, mut largest) = (Visible::default(), 0);
    for entry in entries {
        match entry {
            Entry::Assistant(a) => {
                largest = largest.max(visible.shown_to(a.model.as_deref().or(recorded)));
            }
            Entry::Clear | Entry::NewSession => visible = Visible::default(),
            Entry::RecordedCompaction(c) => {
                let summary = c.summary.as_deref().map_or(0, |text| by.block(Size::text(text)));
                visible = Visible { all: summary, ..Visible::default() };
            }
            _ => {}
        }
        visible.add(entry, by);
    }
    largest
}

/// Returns the counters and the model of a reply; `recorded` is the default model.
fn counted<'a>(
    entry: &'a Entry,
    recorded: Option<&'a str>,
) -> Option<(&'a RecordedUsage, Option<&'a str>)> {
    let reply = entry.as_reply()?;
    Some((reply.usage.as_ref()?, reply.model.as_deref().or(recorded)))
}

/// Returns the tokens of the first counted request beyond the visible content: system prompt and tools
/// that the recording lacks. `entries` are those of one conversation, `recorded` is the model of
/// replies without a model.
pub fn prefix<'a>(
    entries: impl IntoIterator<Item = &'a Entry>,
    by: &Counting,
    recorded: Option<&'a str>,
) -> Option<u64> {
    let mut known = Visible::default();
    for entry in entries {
        if let Some((usage, model)) = counted(entry, recorded) {
            return Some(usage.prompt().saturating_sub(known.shown_to(model)));
        }
        known.add(entry, by);
    }
    None
}

/// A request of a recording, compared with the request before it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CalibrationStep<'a> {
    /// Id of the reply.
    pub reply: &'a str,
    /// Tokens of the prompt, by the provider's count.
    pub prompt: u64,
    /// Expected tokens: the first prompt of the segment and the visible content since. A segment ends
    /// where the program rewrote its context.
    pub expected: u64,
    /// Growth of the prompt in tokens; `None` for the first request of a segment.
    pub grown: Option<i64>,
    /// Growth explained by visible content, tokens: new content less thinking that the provider left
    /// out.
    pub explained: i64,
}

/// Returns the counted requests of a conversation in order. `recorded` is the model of replies without
/// a model.
pub fn steps<'a>(
    entries: impl IntoIterator<Item = &'a Entry>,
    by: &Counting,
    recorded: Option<&'a str>,
) -> Vec<CalibrationStep<'a>> {
    let mut out: Vec<CalibrationStep<'a>> = Vec::new();
    let mut visible = Visible::default();
    // Counted, expected and visible tokens of the last counted prompt of the segment.
    let mut last: Option<(u64, u64, u64)> = None;
    for entry in entries {
        if let (Some((usage, model)), Some(reply)) = (counted(entry, recorded), entry.key()) {
            let (prompt, shown) = (usage.prompt(), visible.shown_to(model));
            let explained = last.map_or(0, |(.., before)| shown as i64 - before as i64);
            let expected =
                last.map_or(prompt, |(_, expected, _)| expected.saturating_add_signed(explained));
            let grown = last.map(|(before, ..)| prompt as i64 - before as i64);
            out.push(CalibrationStep { reply, prompt, expected, grown, explained });
            last = Some((prompt, expected, shown));
        }
        match entry {
            Entry::RecordedCompaction(_)
            | Entry::Clear
            | Entry::NewSession
            | Entry::Rewind { .. } => {
                (visible, last) = (Visible::default(), None);
            }
            _ => visible.add(entry, by),
        }
    }
    out
}

/// Returns the factor by which a provider counts the visible content higher or lower than `by` does, or
/// 1 if neither is certain.
///
/// In proportion, as after a change of its vocabulary: the median of growth over explained growth,
/// weighted by the latter, if half of the content is within 15 % of each other, and three quarters differ
/// from `by` by a tenth or more. Hidden text of one size per step is no part of it: steps are compared
/// with steps twice as large, if there are. Otherwise lower: all growth over all explained growth, if that
/// is below 99.5 %, since nothing hidden can be negative. A prompt that shrinks by a tenth was shortened
/// and does not count.
pub fn counted_factor<'a>(
    entries: impl IntoIterator<Item = &'a Entry>,
    by: &Counting,
    recorded: Option<&'a str>,
) -> f64 {
    const MIN_STEPS: usize = 8;
    const MIN_EXPLAINED: i64 = 200;
    const MIN_EXCESS: f64 = 1.1;
    const MAX_LESS: f64 = 0.9;
    const MAX_SPREAD: f64 = 1.15;
    const MAX_DEFICIT: f64 = 0.995;
    const MIN_FACTOR: f64 = 0.8;
    let steps = steps(entries, by, recorded);
    let explained = steps.iter().filter(|s| s.explained >= MIN_EXPLAINED);
    let mut points: Vec<(i64, i64)> =
        explained.filter_map(|s| Some((s.explained, s.grown?))).collect();
    points.sort_unstable();
    let larger = &points[points.len() / 2..];
    let pairs = points.iter().zip(larger).map(|(a, b)| (b.0 - a.0, b.1 - a.1));
    let pairs: Vec<(i64, i64)> = pairs.filter(|(explained, _)| *explained > 0).collect();
    let total = |of: &[(i64, i64)]| of.iter().map(|(explained, _)| explained).sum::<i64>();
    let compared = if 2 * total(&pairs) >= total(larger) { &pairs } else { &points };
    let ratio = |(explained, grown): &(i64, i64)| (*grown as f64 / *explained as f64, *explained);
    let mut ratios: Vec<(f64, i64)> = compared.iter().map(ratio).collect();
    ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
    let all: i64 = ratios.iter().map(|(_, weight)| weight).sum();
    let quantile = |share: f64| {
        let mut before = 0;
        let reached = |(_, weight): &&(f64, i64)| {
            before += weight;
            before as f64 >= share * all as f64
        };
        ratios.iter().find(reached).map_or(1.0, |(ratio, _)| *ratio)
    };
    let (low, high) = (quantile(0.25), quantile(0.75));
    let differs = low >= MIN_EXCESS || high <= MAX_LESS;
    if points.len() >= MIN_STEPS && differs && high < MAX_SPREAD * low {
        return quantile(0.5);
    }
    let whole = |s: &&CalibrationStep<'_>| s.grown.is_some_and(|g| g > -(s.prompt as i64 / 10));
    let sum = |of: fn(&CalibrationStep<'_>) -> i64| steps.iter().filter(whole).map(of).sum::<i64>();
    let factor = sum(|s| s.grown.unwrap_or_default()) as f64 / sum(|s| s.explained).max(1) as f64;
    let is_lower = points.len() >= MIN_STEPS && factor < MAX_DEFICIT;
    if is_lower { factor.max(MIN_FACTOR) } else { 1.0 }
}

/// Returns the invisible tokens before each reply, by the reply's id, in order. If the counting model
/// expects more than the provider counted, the excess is subtracted from later steps.
pub fn residuals<'a>(
    entries: impl IntoIterator<Item = &'a Entry>,
    by: &Counting,
    recorded: Option<&'a str>,
) -> Vec<(&'a str, u64)> {
    let mut open: i64 = 0;
    let mut out = Vec::new();
    for step in steps(entries, by, recorded) {
        let Some(grown) = step.grown else {
            open = 0;
            continue;
        };
        open += grown - step.explained;
        if open > by.per_block as i64 {
            out.push((step.reply, open as u64));
            open = 0;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{AssistantEntry, RecordedCompaction, ToolEntry, UserEntry};

    /// Returns a text of `n` o200k tokens.
    fn words(n: usize) -> Option<Arc<str>> {
        Some(vec!["and"; n].join(" ").into())
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

    /// Returns a conversation with twelve results of 1,000 tokens, after each of which the prompt grows
    /// by `grown(step)` tokens.
    fn growing(grown: impl Fn(u64) -> u64) -> Vec<Entry> {
        let mut entries = vec![user(5)];
        let mut prompt = 20_000;
        for step in 0..12 {
            entries.extend([reply(&format!("a{step}"), 1, prompt), result(1_000)]);
            prompt += grown(step);
        }
        entries
    }

    #[test]
    fn excess_in_proportion_to_the_content_is_a_factor() {
        // A result and a reply of one token: 1,001 tokens of o200k in two blocks.
        let size = |text| Size { text, ..Size::default() };
        let explained = BY.block(size(1_000)) + BY.block(size(1));
        let factor = |grown: &dyn Fn(u64) -> u64| {
            counted_factor(&growing(grown), &BY, Some("claude-opus-4-6"))
        };
        assert!((factor(&|_| explained * 3 / 2) - 1.5).abs() < 0.01);
        assert_eq!(factor(&|_| explained), 1.0);
        assert_eq!(factor(&|step| explained + if step % 4 == 0 { 5_000 } else { 0 }), 1.0);
        assert_eq!(factor(&|step| explained + step * 200), 1.0, "not in proportion");
        let lower = factor(&|step| if step % 2 == 0 { explained } else { explained * 9 / 10 });
        assert!((lower - 0.95).abs() < 0.01, "{lower}");
        assert_eq!(factor(&|_| 0), 0.8, "a prompt of one size tells no factor, least of all 0");
    }

    #[test]
    fn hidden_text_of_one_size_is_no_part_of_the_factor() {
        let size = |text| Size { text, ..Size::default() };
        let factor = |per_token: f64, hidden: f64| {
            let mut entries = vec![user(5)];
            let mut prompt = 20_000.0;
            for step in 0..12 {
                let n = 200 * (1 + step * 5 % 12);
                entries.extend([reply(&format!("a{step}"), 1, prompt as u64), result(n as usize)]);
                prompt += per_token * (BY.block(size(n)) + BY.block(size(1))) as f64 + hidden;
            }
            counted_factor(&entries, &BY, Some("claude-opus-4-6"))
        };
        for (per_token, hidden) in [(1.0, 1_500.0), (1.46, 800.0), (1.46, 0.0), (0.68, 0.0)] {
            let found = factor(per_token, hidden);
            assert!((found - per_token).abs() < 0.01, "{found} of {per_token} and {hidden}");
        }
    }

    #[test]
    fn what_the_first_prompt_holds_beyond_the_visible_is_the_prefix() {
        // 117 + 34 of the user's.
        assert_eq!(prefix(&[user(100), reply("a", 1, 20_000)], &BY, None), Some(20_000 - 151));
        assert_eq!(prefix(&[user(100), reply("a", 1, 100)], &BY, None), Some(0));
        assert_eq!(prefix(&[user(100)], &BY, None), None);
    }

    #[test]
    fn what_a_step_does_not_explain_came_unseen() {
        // Reply 117 + 34, result 1,170 + 34: 1,355 of 1,855.
        let entries = [user(1), reply("a", 100, 10_000), result(1_000), reply("b", 1, 11_855)];
        assert_eq!(residuals(&entries, &BY, None), [("b", 500)]);
        let steps = steps(&entries, &BY, None);
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
        assert_eq!(residuals(&entries, &BY, None), [("c", 1_740 - 1_239 - 100)]);
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
        assert_eq!(residuals(&entries, &BY, None), [("c", 2_000 - 35 - 1_204)]);
    }

    /// Returns a reply with thinking. Its two parts count as 117 + 34 tokens each.
    fn thought(id: &str, model: &str, prompt: u64) -> Entry {
        let Entry::Assistant(a) = reply(id, 100, prompt) else { unreachable!() };
        let (reasoning, model) = (words(100), Some(model.to_string()));
        Entry::Assistant(AssistantEntry { reasoning, model, ..a })
    }

    #[test]
    fn an_older_model_lacks_the_thinking_of_earlier_turns() {
        let talk = |model: &str| {
            [
                user(100),
                thought("a", model, 10_151),
                result(1_000),
                thought("b", model, 11_657),
                user(100),
                thought("c", model, 11_808),
                user(100),
                thought("d", model, 11_959),
            ]
        };
        // Prompt 2 adds a reply of 2 · 151 and a result of 1,204. Prompts 3 and 4 add a reply and a
        // user message of 3 · 151; from prompt 3 the first two thoughts are removed, from prompt 4
        // the next thought.
        let explained = |model: &str, recorded: Option<&str>| -> Vec<i64> {
            steps(&talk(model), &BY, recorded).iter().map(|s| s.explained).collect()
        };
        let all = [0, 1_506, 453, 453];
        assert_eq!(explained("claude-opus-4-6", None), all);
        assert_eq!(explained("claude-sonnet-4-5-20250929", None), [0, 1_506, 151, 302]);
        assert_eq!(
            explained("claude-opus-4-6", Some("claude-sonnet-4-5")),
            all,
            "the recorded model"
        );
        let talk = talk("claude-sonnet-4-5");
        let steps = steps(&talk, &BY, None);
        assert_eq!((steps[2].grown, steps[3].expected), (Some(151), 10_151 + 1_506 + 151 + 302));
        // The third prompt is as large as it should be, the last one 151 too small.
        assert_eq!(residuals(&talk, &BY, None), []);
        assert_eq!(prefix(&talk, &BY, None), Some(10_000));
        // The first replies of a conversation are not counted.
        assert_eq!(prefix(&talk[..5], &BY, None), Some(10_000));
        let uncounted: Vec<Entry> = talk
            .iter()
            .cloned()
            .enumerate()
            .map(|(i, e)| match e {
                Entry::Assistant(a) if i < 5 => {
                    Entry::Assistant(AssistantEntry { usage: None, ..a })
                }
                e => e,
            })
            .collect();
        assert_eq!(prefix(&uncounted, &BY, None), Some(11_808 - 4 * 151 - 1_204));
    }

    #[test]
    fn a_prompt_can_shrink_where_a_turn_begins() {
        let model = "claude-haiku-4-5";
        let talk = [user(1), thought("a", model, 1_000), thought("b", model, 1_302), user(1)];
        let end = thought("c", model, 1_186);
        let all: Vec<&Entry> = talk.iter().chain([&end]).collect();
        let steps = steps(all.iter().copied(), &BY, None);
        // 302 + 35 come and 2 · 151 go; the reply before was there already.
        assert_eq!((steps[2].grown, steps[2].explained), (Some(-116), 35));
        // One that grows by less than is explained leaves nothing unseen.
        assert_eq!(residuals(all, &BY, None), []);
    }
}
