//! Default summariser: copies the sentences of the conversation with the highest weight.
//!
//! The weight depends on the author, the position, and the literals of a sentence (paths, names,
//! numbers), and on words that it shares with the instruction. No word has a meaning here, so all
//! languages are alike; only the choice of a heading depends on words.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::hash_map::Entry;
use std::rc::Rc;

use ctxbench_core::tokens::{content_hash, o200k};
use ctxbench_provider::Prompt;
use ctxbench_util::lru_map::LruMap;
use rapidhash::RapidHashMap as HashMap;
use serde_json::Value;

use super::headings::{heading_of, headings};
use super::request::{Author, Segment, SummaryRequest};
use super::sentences::{clip, literals, on_one_line, sentences};

/// Maximum length of a summary if the request allows more, tokens. Measured with Claude Code: 4,413
/// and 4,438 tokens from 187,000 and 222,000 (docs/sources/claude-code.md §1.3), a median of 4,382
/// over 873 compactions (docs/sources/peers-and-metrics.md §1b).
pub const MAX_TOKENS: u64 = 4_400;
const MIN_TOKENS: u64 = 300;
/// Tokens of conversation per token of summary. This lies between the 2 % of the long sessions in
/// [`MAX_TOKENS`] and the 9 % of the shortest one measured (61,895 to 5,706, same source).
const RATIO: u64 = 20;

/// Weight of the rarest word that a sentence shares with the instruction.
const SHARED_WORD: f32 = 1.0;

const NOTHING: &str = "Nothing has been said so far.";
/// Prefix of the user's text in a summary.
const USER: &str = "User: ";

/// Number of lines of a tool result that may appear in a summary.
const LINES_OF_OUTPUT: usize = 3;
/// Number of sentences of a user message that may appear. A longer message contains pasted text.
const SENTENCES_OF_USER: usize = 12;
/// Minimum weight. Lighter sentences are left out even if there is room.
const MIN_WEIGHT: f32 = 0.7;

/// Returns the tokens of a summary: a twentieth of the conversation, at least 300 and at most
/// 4,400, and never more than the request allows.
///
/// The size of the conversation is its bytes / 4, because an exact count of a megabyte takes longer
/// than the rest of the summary.
pub fn budget(conversation_bytes: usize, max_tokens: Option<u64>) -> u64 {
    let own = (conversation_bytes as u64 / 4 / RATIO).clamp(MIN_TOKENS, MAX_TOKENS);
    max_tokens.map_or(own, |m| m.min(own))
}

pub(super) fn write(prompt: &Prompt, max_tokens: Option<u64>) -> String {
    let request = SummaryRequest::read(prompt);
    let mut ranker = Ranker::default();
    let last = request.segments.len().saturating_sub(1).max(1) as f32;
    for (n, segment) in request.segments.iter().enumerate() {
        ranker.add(segment, n, n as f32 / last);
    }
    ranker.weigh(&request);
    let mut found = ranker.sentences;
    found.retain(|s| s.weight >= MIN_WEIGHT);
    let rank = |s: &Sentence<'_>| s.weight / (1.0 + s.text.len() as f32 / 600.0);
    found.sort_by(|a, b| rank(b).total_cmp(&rank(a)).then(a.order.cmp(&b.order)));
    let headings = headings(&request.instruction);
    let lower: Vec<String> = headings.iter().map(|h| h.to_lowercase()).collect();
    let heading = |s: &Sentence<'_>| {
        let same = headings.iter().position(|h| h == s.under);
        same.unwrap_or_else(|| heading_of(&lower, s.who, &s.text))
    };
    let lines = found.iter().map(|s| ((heading(s), s.order), s.line()));
    let limit = budget(request.segments.iter().map(|s| s.text.len()).sum(), max_tokens);
    request.answer(limit, &headings, lines)
}

impl SummaryRequest<'_> {
    /// Answers with those of the lines, best first, that fit. Each has the number of its heading
    /// and its position there. The answer is between `<summary>` tags if the instruction names them.
    pub(super) fn answer(
        &self,
        limit: u64,
        headings: &[String],
        ranked: impl Iterator<Item = ((usize, usize), String)>,
    ) -> String {
        let (mut open, mut close) = ("", "");
        if self.instruction.contains("<summary>") {
            (open, close) = ("<summary>\n", "</summary>");
        }
        // Under a tight limit, content matters more than the requested form.
        let titles = headings.iter().enumerate().map(|(n, h)| ((n, 0), format!("{h}\n")));
        let mut chosen: Vec<((usize, usize), String)> = titles.collect();
        let frame = chosen.iter().map(|(_, title)| o200k(title)).sum::<u64>();
        let mut left = limit.saturating_sub(o200k(open) + o200k(close) + frame);
        if 2 * left < limit {
            (open, close, left) = ("", "", limit);
            chosen.clear();
        }
        let mut too_long = 0;
        for (place, line) in ranked {
            let line = format!("- {line}\n");
            let tokens = o200k(&line);
            if tokens <= left {
                left -= tokens;
                chosen.push((place, line));
            } else {
                too_long += 1;
            }
            if too_long == 50 {
                break;
            }
        }
        chosen.sort_by_key(|(place, _)| *place);
        let mut lines: String = chosen.into_iter().map(|(_, line)| line).collect();
        if self.segments.is_empty() {
            lines = format!("{NOTHING}\n");
        }
        let text = format!("{open}{lines}{close}");
        cut(text.trim_end(), limit)
    }
}

/// Returns the beginning of a text with at most `limit` tokens.
fn cut(text: &str, limit: u64) -> String {
    let mut head = text;
    loop {
        let n = o200k(head);
        if n <= limit {
            return head.trim_end().to_string();
        }
        let shorter = (head.len() as u64 * limit / n) as usize;
        head = &head[..head.floor_char_boundary(shorter.min(head.len() - 1))];
    }
}

struct Sentence<'a> {
    text: Cow<'a, str>,
    who: Author,
    /// Heading of the earlier summary that contains it, or nothing.
    under: &'a str,
    words: Rc<[u64]>,
    weight: f32,
    order: usize,
}

impl Sentence<'_> {
    fn line(&self) -> String {
        let user = if self.who == Author::User { USER } else { "" };
        let short = clip(&self.text);
        let rest = if short.len() < self.text.len() { "…" } else { "" };
        format!("{user}{}{rest}", on_one_line(short))
    }
}

#[derive(Default)]
struct Ranker<'a> {
    sentences: Vec<Sentence<'a>>,
    /// Sentences by the hash of their text, to avoid repetition.
    seen: HashMap<u64, usize>,
    /// Current heading of an earlier summary.
    under: &'a str,
}

impl<'a> Ranker<'a> {
    /// Adds the sentences of segment number `n`. `age` is 0 for the oldest segment and 1 for the
    /// newest.
    fn add(&mut self, segment: &Segment<'a>, n: usize, age: f32) {
        let who = segment.who;
        match who {
            Author::User => {
                let all: Vec<&str> = sentences(segment.text).collect();
                let own = all.iter().take(SENTENCES_OF_USER);
                let end = all.iter().skip(SENTENCES_OF_USER.max(all.len().saturating_sub(4)));
                let is_first = self.sentences.iter().all(|s| s.who != Author::User);
                let bonus = if is_first { 1.5 } else { 0.0 };
                for text in own.chain(end) {
                    self.push(who, Cow::Borrowed(text), 3.0 + bonus + 0.8 * age, n);
                }
            }
            Author::Assistant => sentences(segment.text)
                .for_each(|s| self.push(who, Cow::Borrowed(s), 0.9 + 0.8 * age, n)),
            // A text that is summarised repeatedly weighs less than a new one of the user.
            Author::Summary => {
                let text = segment.text.rsplit("</analysis>").next().unwrap_or("");
                let is_tag = |l: &&str| l.starts_with('<') && l.ends_with('>');
                for line in text.lines().map(str::trim).filter(|l| !is_tag(l)) {
                    if line.starts_with('#') || line.ends_with(':') {
                        self.under = line;
                        continue;
                    }
                    for sentence in sentences(line) {
                        let (who, sentence, weight) = match sentence.strip_prefix(USER) {
                            Some(sentence) => (Author::User, sentence, 2.9),
                            None => (who, sentence, 2.4),
                        };
                        self.push(who, Cow::Borrowed(sentence), weight, n);
                    }
                }
                self.under = "";
            }
            Author::Call => self.call(segment.text, n, age),
            Author::Output => {
                let lines = segment.text.lines().map(str::trim).filter(|l| is_prose(l));
                let mut best: Vec<&str> = lines.collect();
                best.sort_by_key(|l| std::cmp::Reverse(literals(l)));
                for line in best.into_iter().take(LINES_OF_OUTPUT) {
                    self.push(who, Cow::Borrowed(line), 0.2 + 0.5 * age, n);
                }
            }
            Author::Product => {}
        }
    }

    /// Adds the short arguments of a call, such as a path or a command. They weigh more beside a
    /// long one, which is content that the call writes.
    fn call(&mut self, arguments: &'a str, n: usize, age: f32) {
        let mut values = Vec::new();
        match serde_json::from_str(arguments) {
            Ok(value) => strings(&value, &mut values),
            Err(_) => values.push(arguments.to_string()),
        }
        let is_short = |v: &String| v.len() <= 200 && !v.contains('\n');
        let weight = if values.iter().all(is_short) { 0.6 } else { 2.0 };
        for value in values {
            let text = match is_short(&value) {
                true => value,
                false => value.lines().take(3).find(|l| literals(l) > 0).unwrap_or("").to_string(),
            };
            if literals(&text) > 0 {
                self.push(Author::Call, Cow::Owned(text), weight + 0.7 * age, n);
            }
        }
    }

    /// Adds a sentence, or raises the weight of an equal one.
    fn push(&mut self, who: Author, text: Cow<'a, str>, weight: f32, order: usize) {
        let (Some(letters), literals, words) = traits(&text) else { return };
        let weight = weight + 0.35 * literals;
        match self.seen.entry(letters) {
            Entry::Occupied(old) => {
                let old = &mut self.sentences[*old.get()];
                old.weight = old.weight.max(weight) + 0.1;
            }
            Entry::Vacant(new) => {
                new.insert(self.sentences.len());
                let under = self.under;
                self.sentences.push(Sentence { text, who, under, words, weight, order });
            }
        }
    }

    /// Adds the weight of words that a sentence shares with the instruction: a word that few
    /// sentences contain adds most.
    fn weigh(&mut self, request: &SummaryRequest<'_>) {
        let asked = words(&request.instruction);
        let mut uses: HashMap<u64, usize> = HashMap::default();
        let shared = |s: &Sentence<'_>| -> Vec<u64> {
            s.words.iter().filter(|w| asked.binary_search(w).is_ok()).copied().collect()
        };
        let shared: Vec<Vec<u64>> = self.sentences.iter().map(shared).collect();
        for word in shared.iter().flatten() {
            *uses.entry(*word).or_default() += 1;
        }
        let all = (self.sentences.len() as f32 + 1.0).ln();
        for (sentence, words) in self.sentences.iter_mut().zip(&shared) {
            let rare = |w: &u64| 1.0 - (uses[w] as f32).ln() / all;
            sentence.weight += SHARED_WORD * words.iter().map(rare).fold(0.0, f32::max);
        }
    }
}

fn strings(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::String(s) => out.push(s.clone()),
        Value::Array(all) => all.iter().for_each(|v| strings(v, out)),
        Value::Object(all) => all.values().for_each(|v| strings(v, out)),
        _ => {}
    }
}

/// Returns whether a line of a tool result is a statement, and not source code, a number alone or
/// a rule.
fn is_prose(line: &str) -> bool {
    let letters = line.chars().filter(|c| c.is_alphabetic()).count();
    (6..=400).contains(&line.len())
        && !line.ends_with(['{', '}', ';', '(', ',', '['])
        && 2 * letters >= line.chars().count()
}

/// Traits of a sentence wherever it appears: the hash of its letters, unless there are fewer than four,
/// the kinds of literals, and its [`words`].
type Traits = (Option<u64>, f32, Rc<[u64]>);

/// Maximum number of sentences per thread with known traits.
const MAX_TRAITS: usize = 1 << 15;

thread_local! {
    static TRAITS: RefCell<LruMap<u64, Traits>> = RefCell::new(LruMap::new(MAX_TRAITS));
}

/// Returns the traits of a sentence. They are cached, because compactions read most of a
/// conversation again.
fn traits(text: &str) -> Traits {
    let key = content_hash(text.as_bytes());
    if let Some(cached) = TRAITS.with_borrow_mut(|all| all.get(&key).cloned()) {
        return cached;
    }
    let letters = text.chars().filter(|c| c.is_alphanumeric());
    let letters: String = letters.flat_map(char::to_lowercase).collect();
    let letters = (letters.len() >= 4).then(|| content_hash(letters.as_bytes()));
    let found: Traits = (letters, literals(text) as f32, words(text).into());
    TRAITS.with_borrow_mut(|all| all.insert(key, found.clone()));
    found
}

/// Returns the sorted hashes of the different words of at least four letters, in lower case.
fn words(text: &str) -> Vec<u64> {
    let text = text.to_lowercase();
    let words = text.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '/' | '.')));
    let words = words.map(|w| w.trim_matches('.')).filter(|w| w.len() >= 4);
    let mut hashes: Vec<u64> = words.map(|w| content_hash(w.as_bytes())).collect();
    hashes.sort_unstable();
    hashes.dedup();
    hashes
}
