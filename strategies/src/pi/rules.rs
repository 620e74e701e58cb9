//! pi's rules as pure functions (docs/sources/pi.md §1, §3 to §6): its two token estimators, the output
//! limit of its requests, the failures that it knows by the provider's messages, and the content of a
//! summary request.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use ctxbench_core::prelude::*;
use ctxbench_util::json::Json;
use serde::{Deserialize, Serialize};

/// Values of the settings in `about.toml`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PiSettings {
    pub(crate) auto: bool,
    pub(crate) reserve: u64,
    pub(crate) keep_recent: u64,
    pub(crate) retries: u64,
    pub(crate) base_estimate: Option<u64>,
}

/// Texts in `about.toml`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PiWords {
    pub(crate) summary_system: Arc<str>,
    pub(crate) open: Arc<str>,
    pub(crate) close: Arc<str>,
    pub(crate) prior_open: Arc<str>,
    pub(crate) prior_close: Arc<str>,
    pub(crate) initial: Arc<str>,
    pub(crate) update: Arc<str>,
    pub(crate) prefix_open: Arc<str>,
    pub(crate) prefix_close: Arc<str>,
    pub(crate) prefix: Arc<str>,
    pub(crate) focus: Arc<str>,
    pub(crate) no_history: Arc<str>,
    pub(crate) split_join: Arc<str>,
    pub(crate) summary_head: Arc<str>,
    pub(crate) summary_tail: Arc<str>,
    /// Words of the summary request of 0.14.
    pub(crate) prior: Arc<str>,
    pub(crate) checkpoint: Arc<str>,
}

/// Length to which the transcript cuts a tool result, in UTF-16 units (docs/sources/pi.md §3).
const RESULT_UNITS: usize = 2_000;

/// Parses the arguments of a call as the program does. Invalid JSON gives an empty object.
pub(super) fn arguments(call: &Block) -> Json {
    Json::read(&call.text).unwrap_or(Json::Object(Vec::new()))
}

/// Files named in the model's calls, sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FileLists {
    /// Files that were read but not modified.
    pub read: BTreeSet<String>,
    /// Files that were written or edited.
    pub modified: BTreeSet<String>,
}

const READ: (&str, &str) = ("\n\n<read-files>\n", "\n</read-files>");
const MODIFIED: (&str, &str) = ("\n\n<modified-files>\n", "\n</modified-files>");

impl FileLists {
    /// Adds the file of a call.
    pub(super) fn note(&mut self, b: &Block) {
        let Some(call) = b.call.as_ref().filter(|_| b.kind == BlockKind::Call) else { return };
        let json = arguments(b);
        let Some(path) = json.text("path").filter(|p| !p.is_empty()) else { return };
        match &*call.name {
            "read" => drop(self.read.insert(path.to_string())),
            "write" | "edit" => drop(self.modified.insert(path.to_string())),
            _ => {}
        }
    }

    /// Removes modified files from the list of read files.
    pub(super) fn settled(mut self) -> FileLists {
        self.read.retain(|f| !self.modified.contains(f));
        self
    }

    /// Formats the lists as they appear after a summary. Returns an empty string without files.
    pub fn render(&self) -> String {
        let list = |(open, close): (&str, &str), files: &BTreeSet<String>| {
            let lines = Vec::from_iter(files.iter().map(String::as_str)).join("\n");
            if files.is_empty() { lines } else { format!("{open}{lines}{close}") }
        };
        list(READ, &self.read) + &list(MODIFIED, &self.modified)
    }

    /// Parses the lists that follow a summary.
    pub fn found_in(summary: &str) -> FileLists {
        let list = |(open, close): (&str, &str)| -> BTreeSet<String> {
            let found = summary.rsplit_once(open).and_then(|(_, rest)| rest.split_once(close));
            found.map_or_else(BTreeSet::new, |(l, _)| l.lines().map(str::to_string).collect())
        };
        FileLists { read: list(READ), modified: list(MODIFIED) }
    }
}

/// Formats messages as labelled blocks, separated by blank lines.
pub(super) fn transcript<'a>(
    messages: impl Iterator<Item = (Role, &'a [Arc<Block>])>,
) -> Transcript {
    let mut out = Transcript::default();
    for (role, blocks) in messages {
        let blocks = blocks.iter().map(|b| &**b);
        match role {
            Role::User => prose(&mut out, "[User]: ", "", blocks.filter(|b| is_text(b))),
            Role::Assistant => {
                let texts = blocks.clone().filter(|b| b.kind == BlockKind::Assistant);
                prose(&mut out, "[Assistant]: ", "\n", texts);
                calls(&mut out, blocks.filter(|b| b.kind == BlockKind::Call));
            }
            _ => {
                for b in blocks.filter(|b| b.kind == BlockKind::Output && !b.text.is_empty()) {
                    label(&mut out, "[Tool result]: ");
                    out.quote(b, &result(&b.text));
                }
            }
        }
    }
    out
}

fn is_text(b: &Block) -> bool {
    b.role == Role::User && b.kind != BlockKind::Image
}

fn label(out: &mut Transcript, words: &str) {
    out.separate("\n\n");
    out.push(words);
}

fn prose<'a>(
    out: &mut Transcript,
    words: &str,
    between: &str,
    blocks: impl Iterator<Item = &'a Block>,
) {
    for (i, b) in blocks.filter(|b| !b.text.is_empty()).enumerate() {
        match i {
            0 => label(out, words),
            _ => out.push(between),
        }
        out.quote(b, &b.text);
    }
}

fn calls<'a>(out: &mut Transcript, blocks: impl Iterator<Item = &'a Block>) {
    for (i, b) in blocks.enumerate() {
        match i {
            0 => label(out, "[Assistant tool calls]: "),
            _ => out.push("; "),
        }
        let json = arguments(b);
        let members: Vec<String> =
            json.members().iter().map(|(k, v)| format!("{k}={}", v.write())).collect();
        let name = b.call.as_ref().map_or("", |c| &*c.name);
        out.push(name);
        out.push("(");
        out.quote(b, &members.join(", "));
        out.push(")");
    }
}

/// Cuts a result to its beginning and states how much is missing.
fn result(text: &str) -> String {
    match head_cut(text, RESULT_UNITS) {
        None => text.to_string(),
        Some(head) => {
            let missing = utf16_len(text) - RESULT_UNITS as u64;
            format!("{head}\n\n[... {missing} more characters truncated]")
        }
    }
}

/// Builds the prompt for whole turns, sent as a single user message. If there is a previous summary,
/// the prompt asks to update it. `focus` = topic that the user wants the summary to focus on.
pub(super) fn history_prompt(
    w: &PiWords,
    transcript: &Transcript,
    prior: Option<&str>,
    focus: Option<&str>,
) -> Draft {
    let mut out = Transcript::default();
    out.instruct(&w.open);
    out.append(transcript);
    out.instruct(&w.close);
    match prior.filter(|p| !p.is_empty()) {
        None => out.instruct(&w.initial),
        Some(p) => {
            out.instruct(&w.prior_open);
            out.recall(&Transcript::quoted(BlockKind::Summary, p));
            out.instruct(&w.prior_close);
            out.instruct(&w.update);
        }
    }
    focused(w, out, focus)
}

/// Builds the prompt for the beginning of a turn.
pub(super) fn turn_prompt(w: &PiWords, transcript: &Transcript, focus: Option<&str>) -> Draft {
    let mut out = Transcript::default();
    out.instruct(&w.prefix_open);
    out.append(transcript);
    out.instruct(&w.prefix_close);
    out.instruct(&w.prefix);
    focused(w, out, focus)
}

pub(super) fn focused(w: &PiWords, mut out: Transcript, focus: Option<&str>) -> Draft {
    if let Some(focus) = focus.filter(|f| !f.is_empty()) {
        out.instruct(&w.focus);
        out.instruct(focus);
    }
    out.draft(BlockKind::SummaryPrompt, Role::User)
}

/// Minimum number of tokens that stay free in addition to input and reply (docs/sources/pi.md §4).
const MARGIN: u64 = 4_096;
/// Share of the input that is kept free if the reply still has room (docs/sources/pi.md §4).
const MARGIN_PERCENT: u64 = 15;
/// Minimum room for the reply at which that share is kept free (docs/sources/pi.md §4).
const ROOM: u64 = 32_768;

/// Estimates tokens for compaction decisions: a quarter of the characters, rounded up.
pub(super) fn quarter(chars: u64) -> u64 {
    chars.div_ceil(4)
}

/// Estimates tokens for the output limit of a request: 3.5 characters per token, rounded up.
pub(super) fn by_three_and_a_half(chars: u64) -> u64 {
    (2 * chars).div_ceil(7)
}

/// Returns the characters of the fixed part of the context: of the texts, and of the tools as JSON.
pub(super) fn base_chars(s: &Engine) -> [u64; 2] {
    [
        s.fixed.blocks().map(|b| utf16_len(&b.text)).sum(),
        s.fixed.tools.as_ref().map_or(0, |t| utf16_len(t.json.get())),
    ]
}

/// Returns the output limit of a request in tokens, given the estimated `input` tokens.
pub(super) fn largest_reply(window: u64, most: u64, input: u64, scale: f64) -> u64 {
    let (margin, room) = (scale_tokens(MARGIN, scale), scale_tokens(ROOM, scale));
    if window == 0 {
        return most.max(1);
    }
    let left = window.saturating_sub(input);
    let share = (input * MARGIN_PERCENT).div_ceil(100);
    let wide = left.saturating_sub(margin.max(share));
    let free = if wide < room { room.min(left.saturating_sub(margin)) } else { wide };
    most.min(free.max(1))
}

/// How failures are told by the text of the provider's answer, in lower case.
#[derive(Deserialize)]
struct Failures {
    too_large: Vec<[String; 2]>,
    not_too_large: Vec<String>,
    lasting: Vec<String>,
    passing: Vec<String>,
    passing_status: Vec<u16>,
}

static FAILURES: LazyLock<Failures> = LazyLock::new(|| {
    toml::from_str(include_str!("failures.toml")).expect("a test reads failures.toml")
});

/// Returns true if the prompt was too large for the provider.
pub(super) fn is_overflow(e: &ModelError) -> bool {
    let text = e.message.to_lowercase();
    if FAILURES.not_too_large.iter().any(|w| text.contains(w)) {
        return false;
    }
    let says = |[first, then]: &[String; 2]| {
        text.split_once(first).is_some_and(|(_, rest)| rest.contains(then))
    };
    e.status == 413 || e.is_overflow() || FAILURES.too_large.iter().any(says)
}

/// Returns true if a retry of the same request may succeed.
pub(super) fn is_retryable(e: &ModelError) -> bool {
    let text = e.message.to_lowercase();
    if is_overflow(e) || FAILURES.lasting.iter().any(|w| text.contains(w)) {
        return false;
    }
    e.kind == ErrorKind::Stream
        || FAILURES.passing_status.contains(&e.status)
        || FAILURES.passing.iter().any(|w| text.contains(w))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_cut_to_their_beginning() {
        assert_eq!(result(&"x".repeat(2_000)), "x".repeat(2_000));
        let cut = result(&"x".repeat(4_251));
        assert_eq!(cut, format!("{}\n\n[... 2251 more characters truncated]", "x".repeat(2_000)));
        // A character is never split; the dropped half counts as missing.
        let cut = result(&("x".repeat(1_999) + &"😀".repeat(2)));
        assert_eq!(cut, format!("{}\n\n[... 3 more characters truncated]", "x".repeat(1_999)));
    }

    #[test]
    fn file_lists_are_found_again() {
        let set = |names: &[&str]| names.iter().map(|n| n.to_string()).collect();
        let files = FileLists { read: set(&["b", "a"]), modified: set(&["c"]) };
        let text = format!("words{}", files.render());
        assert!(text.starts_with("words\n\n<read-files>\na\nb\n</read-files>\n\n<modified-files>"));
        assert_eq!(FileLists::found_in(&text), files);
        assert_eq!(FileLists::default().render(), "");
        let files = FileLists { read: set(&["c", "a"]), modified: set(&["c"]) }.settled();
        assert_eq!(files.read, set(&["a"]));
    }

    #[test]
    fn both_estimators_round_up() {
        assert_eq!((quarter(0), quarter(1), quarter(4), quarter(5)), (0, 1, 1, 2));
        let by = by_three_and_a_half;
        assert_eq!((by(0), by(1), by(7), by(8)), (0, 1, 2, 3));
    }

    #[test]
    fn the_reply_fits_beside_the_input() {
        // docs/sources/pi.md §4: a window of 20,000 with 16,000 tokens in it leaves less than the
        // margin.
        assert_eq!(largest_reply(20_000, 2_000, 16_000, 1.0), 1);
        assert_eq!(largest_reply(20_000, 2_000, 15_903, 1.0), 1);
        assert_eq!(largest_reply(20_000, 2_000, 15_000, 1.0), 904);
        assert_eq!(largest_reply(20_000, 2_000, 5_000, 1.0), 2_000);
        // A window of 200,000 with 100,000 tokens of input: 85,000 remain after the margin of 15 %,
        // which is more than the limit of 64,000.
        assert_eq!(largest_reply(200_000, 64_000, 100_000, 1.0), 64_000);
        // With 140,000, the margin is 21,000, which leaves 39,000.
        assert_eq!(largest_reply(200_000, 64_000, 140_000, 1.0), 39_000);
        // With 150,000 the margin of 15 % would leave 27,500, so only the fixed margin is kept and
        // the limit is 32,768.
        assert_eq!(largest_reply(200_000, 64_000, 150_000, 1.0), 32_768);
        assert_eq!(largest_reply(200_000, 64_000, 190_000, 1.0), 5_904);
        assert_eq!(largest_reply(0, 64_000, 190_000, 1.0), 64_000);
    }

    fn error(status: u16, message: &str) -> ModelError {
        ModelError { kind: ErrorKind::Invalid, status, code: None, message: message.into() }
    }

    #[test]
    fn refusals_for_length_are_known_by_their_words() {
        for (status, text) in [
            (400, "This model's maximum context length is 20000 tokens. However, …"),
            (400, "prompt is too long: 213462 tokens > 200000 maximum"),
            (400, "The input token count (1196265) exceeds the maximum number of tokens"),
            (413, "anything"),
            (400, "Requested token count exceeds the model's maximum context length of 9 tokens"),
        ] {
            assert!(is_overflow(&error(status, text)), "{text}");
            assert!(!is_retryable(&error(status, text)), "{text}");
        }
        assert!(!is_overflow(&error(429, "Too many tokens, rate limit reached")));
        assert!(!is_overflow(&error(400, "bad request")));
    }

    #[test]
    fn some_failures_pass() {
        assert!(is_retryable(&error(500, "mock internal error")));
        assert!(is_retryable(&error(529, "Overloaded")));
        assert!(is_retryable(&error(0, "fetch failed")));
        assert!(!is_retryable(&error(429, "insufficient_quota")));
        assert!(!is_retryable(&error(400, "bad request")));
        assert!(!is_retryable(&error(501, "not implemented")));
    }
}
