//! The journal's lines: how messages become lines, and which lines stay when there are too many.

use std::collections::{HashMap, HashSet};

use ctxbench_core::prelude::*;
use ctxbench_core::tokens::content_hash;
use serde_json::Value;

/// Maximum length of a line of a result or of an argument, bytes. Longer ones are mostly data.
const LONGEST: usize = 200;

/// An exact line of an earlier message.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) text: String,
    /// Hash of the text without the blanks around it.
    pub(super) hash: u64,
    /// Size in o200k tokens, with the line break.
    pub(super) tokens: u64,
}

impl Line {
    fn new(text: &str) -> Line {
        let (hash, tokens) = (content_hash(text.trim().as_bytes()), o200k(text) + 1);
        Line { text: text.to_string(), hash, tokens }
    }
}

/// Lines of all messages seen so far.
#[derive(Default)]
pub(super) struct Journal {
    lines: HashMap<MessageId, Vec<Arc<Line>>>,
}

impl Journal {
    /// Reads the messages of a view that were not read before.
    pub(super) fn read(&mut self, blocks: &[Arc<Block>]) {
        for message in blocks.chunk_by(|a, b| a.message == b.message) {
            let id = message[0].message;
            if self.lines.contains_key(&id) {
                continue;
            }
            let lines: Vec<Arc<Line>> =
                message.iter().flat_map(|b| lines_of(b)).map(|l| Arc::new(Line::new(&l))).collect();
            self.lines.insert(id, lines);
        }
    }

    /// Returns the lines of a message that was read, or written with [`Journal::write`].
    pub(super) fn lines(&self, message: MessageId) -> &[Arc<Line>] {
        self.lines.get(&message).map_or(&[], Vec::as_slice)
    }

    /// Remembers that a message of the strategy consists of these lines.
    pub(super) fn write(&mut self, message: MessageId, lines: Vec<Arc<Line>>) {
        self.lines.insert(message, lines);
    }
}

/// Returns the hashes of the newest lines, of at most `budget` o200k tokens.
pub(super) fn newest<'a>(
    lines: impl DoubleEndedIterator<Item = &'a Arc<Line>>,
    budget: u64,
) -> HashSet<u64> {
    let mut used = 0;
    let fits = |l: &&Arc<Line>| {
        used += l.tokens;
        used <= budget
    };
    lines.rev().take_while(fits).map(|l| l.hash).collect()
}

/// Returns the lines of a block: text as it is, calls in short form, results without line numbers.
fn lines_of(b: &Block) -> Vec<String> {
    let is_short = |l: &&str| l.len() <= LONGEST;
    let mut lines: Vec<String> = match b.kind {
        BlockKind::User | BlockKind::Assistant => b.text.lines().map(str::to_string).collect(),
        BlockKind::Output => {
            b.text.lines().map(unnumbered).filter(is_short).map(str::to_string).collect()
        }
        BlockKind::Call => {
            let name = b.call.as_ref().map_or("", |c| &*c.name);
            let is_line = |v: &str| !v.contains('\n') && v.len() <= LONGEST;
            let (short, long): (Vec<_>, Vec<_>) =
                arguments(&b.text).into_iter().partition(|(_, value)| is_line(value));
            let short: String = short.iter().map(|(k, v)| format!(" {k}={v}")).collect();
            let long = long.iter().flat_map(|(_, v)| v.lines()).filter(is_short);
            [format!("> {name}{short}")].into_iter().chain(long.map(str::to_string)).collect()
        }
        _ => Vec::new(),
    };
    lines.iter_mut().for_each(|l| l.truncate(l.trim_end().len()));
    lines.retain(|l| !l.is_empty());
    lines
}

/// Returns a line without the number that a tool wrote before it.
fn unnumbered(line: &str) -> &str {
    let text = line.trim_start();
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    match rest.strip_prefix(['→', '\t', '|']).or_else(|| rest.strip_prefix(": ")) {
        Some(content) if rest.len() < text.len() => content,
        _ => line,
    }
}

/// Returns the arguments of a call with their names.
fn arguments(text: &str) -> Vec<(String, String)> {
    let plain = |v: Value| v.as_str().map_or_else(|| v.to_string(), str::to_string);
    match serde_json::from_str(text) {
        Ok(Value::Object(all)) => all.into_iter().map(|(k, v)| (k, plain(v))).collect(),
        _ => vec![("input".to_string(), text.to_string())],
    }
}
