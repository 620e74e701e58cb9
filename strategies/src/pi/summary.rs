//! The content of a summary request and the processing of its answer (docs/sources/pi.md §3).

use std::collections::BTreeSet;

use ctxbench_core::block::{Block, BlockKind, Draft, Role};
use ctxbench_core::compaction::{Transcript, head_cut};
use ctxbench_core::tokens::utf16_len;

use super::log::{PiMessage, arguments};
use super::settings::PiWords;

/// Length to which the transcript cuts a tool result, in UTF-16 units (docs/sources/pi.md §3).
const RESULT_UNITS: usize = 2_000;

/// Files named in the model's calls, sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
pub(super) fn transcript<'a>(messages: impl Iterator<Item = &'a PiMessage>) -> Transcript {
    let mut out = Transcript::default();
    for m in messages {
        let blocks = m.blocks.iter().map(|b| &**b);
        match m.role {
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

fn focused(w: &PiWords, mut out: Transcript, focus: Option<&str>) -> Draft {
    if let Some(focus) = focus.filter(|f| !f.is_empty()) {
        out.instruct(&w.focus);
        out.instruct(focus);
    }
    out.draft(BlockKind::SummaryPrompt, Role::User)
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
}
