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
    /// Of messages that were read, and of the blocks that the strategy wrote.
    pub(super) lines: HashMap<MessageId, Vec<Arc<Line>>>,
    /// Hashes of the lines of text by the user or the model, and of the short forms of calls.
    said: HashSet<u64>,
}

impl Journal {
    /// Reads the messages of a view that were not read before.
    pub(super) fn read(&mut self, blocks: &[Arc<Block>]) {
        for message in blocks.chunk_by(|a, b| a.message == b.message) {
            let id = message[0].message;
            if self.lines.contains_key(&id) {
                continue;
            }
            let lines = self.lines.entry(id).or_default();
            for b in message {
                let first = lines.len();
                lines.extend(lines_of(b).iter().map(|l| Arc::new(Line::new(l))));
                let said = if b.kind == BlockKind::Call { first + 1 } else { lines.len() };
                if b.kind != BlockKind::Output {
                    self.said.extend(lines[first..said].iter().map(|l| l.hash));
                }
            }
        }
    }

    /// Returns the hashes of the lines that stay, of at most `budget` o200k tokens: in half of it the
    /// newest text and calls, in the rest the newest of all others.
    pub(super) fn lines_to_keep(&self, lines: &[&Arc<Line>], budget: u64) -> HashSet<u64> {
        let (mut kept, mut used) = (HashSet::new(), 0);
        for (limit, any) in [(budget / 2, false), (budget, true)] {
            for l in lines.iter().rev().filter(|l| any || self.said.contains(&l.hash)) {
                let more = if kept.contains(&l.hash) { 0 } else { l.tokens };
                if used + more > limit {
                    break;
                }
                used += more;
                kept.insert(l.hash);
            }
        }
        kept
    }
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
