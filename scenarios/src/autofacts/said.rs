//! Pieces of a reply: prose, new code, and text that must match existing text. Leaves out arguments
//! that the program filled in.

use std::collections::{HashMap, HashSet};

use super::events::{FactEvent, FactReply, leaves};
use super::lists;

/// Kind of a piece of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplyPart {
    /// Sentences, in a text or in an argument that describes a call.
    Prose,
    /// New code or text: the contents of a file, inserted text of an edit, a fenced block.
    New,
    /// Text that must match the file exactly: the old text of an edit, the context of a patch.
    Old,
    /// A task in the agent's own task list.
    Task,
    /// Any other argument: a command, a path, a pattern.
    Argument,
}

/// Members of edit tools with inserted text.
const NEW: &str = "code content file_text insert_text newString newText new_source new_str new_string \
    new_text plan replacement text";

/// Members of edit tools with the text to replace.
const OLD: &[&str] = &["oldString", "oldText", "old_str", "old_string", "old_text", "search"];

/// Minimum length of an argument, bytes, that counts as filled in by the program if it repeats an
/// argument of another tool, such as a plan that is shown for approval.
const FILLED_IN: usize = 1000;

/// Minimum number of uses of an argument for deciding whether it has a fixed set of values.
const OFTEN: usize = 3;

/// Arguments of tools, learned from the session.
pub(super) struct ArgumentValues {
    /// Arguments, by tool and member, with few different values, which look like `in_progress`.
    /// Their values come from the tool, not from the session.
    fixed: HashSet<(String, String)>,
}

impl ArgumentValues {
    pub(super) fn new<'a>(replies: impl Iterator<Item = &'a FactReply<'a>>) -> ArgumentValues {
        #[derive(Default)]
        struct Uses {
            all: usize,
            words: usize,
            different: HashSet<String>,
        }
        let mut uses: HashMap<(String, String), Uses> = HashMap::new();
        for call in replies.flat_map(|r| &r.calls) {
            for (name, value) in leaves(&call.arguments) {
                let u = uses.entry((call.tool.to_string(), name.to_string())).or_default();
                u.all += 1;
                if is_keyword(&value) {
                    u.words += 1;
                    u.different.insert(value);
                }
            }
        }
        let fixed = |u: &Uses| {
            u.words >= OFTEN && u.words * 10 >= u.all * 9 && u.different.len() * 2 <= u.all
        };
        ArgumentValues {
            fixed: uses.into_iter().filter(|(_, u)| fixed(u)).map(|(k, _)| k).collect(),
        }
    }

    fn fixes(&self, tool: &str, name: &str, value: &str) -> bool {
        is_keyword(value) && self.fixed.contains(&(tool.to_string(), name.to_string()))
    }
}

fn is_keyword(value: &str) -> bool {
    (1..40).contains(&value.len()) && value.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
}

/// Long arguments so far, each with the first tool that it was written for.
#[derive(Default)]
pub(super) struct LongArguments(HashMap<String, String>);

impl LongArguments {
    pub(super) fn note(&mut self, reply: &FactReply<'_>) {
        for call in &reply.calls {
            for (_, value) in leaves(&call.arguments) {
                if value.len() >= FILLED_IN {
                    self.0.entry(value.trim().to_string()).or_insert_with(|| call.tool.to_string());
                }
            }
        }
    }

    fn filled_in(&self, tool: &str, value: &str) -> bool {
        value.len() >= FILLED_IN && self.0.get(value.trim()).is_some_and(|t| t != tool)
    }
}

pub(super) fn pieces(
    reply: &FactReply<'_>,
    tools: &ArgumentValues,
    written: &LongArguments,
) -> Vec<(ReplyPart, String)> {
    let mut out = Vec::new();
    for text in &reply.texts {
        let mut fenced = false;
        for part in text.split("```") {
            let piece = if fenced { ReplyPart::New } else { ReplyPart::Prose };
            out.push((piece, part.to_string()));
            fenced = !fenced;
        }
    }
    for call in &reply.calls {
        let tasks = lists::tasks(&call.arguments);
        out.extend(tasks.iter().map(|t| (ReplyPart::Task, t.to_string())));
        for (name, value) in leaves(&call.arguments) {
            if !tasks.is_empty() && call.arguments[name] != *value {
                // Other members of a task: its state, or its text again.
            } else if OLD.contains(&name) {
                out.push((ReplyPart::Old, value));
            } else if written.filled_in(&call.tool, &value) || tools.fixes(&call.tool, name, &value)
            {
                // Filled in by the program.
            } else if NEW.split(' ').any(|n| n == name) {
                out.push((ReplyPart::New, value));
            } else if is_patch(&value) {
                for line in value.lines() {
                    let added = line.starts_with('+') && !line.starts_with("+++");
                    let piece = if added { ReplyPart::New } else { ReplyPart::Old };
                    out.push((piece, line.to_string()));
                }
            } else {
                let piece = if is_prose(&value) { ReplyPart::Prose } else { ReplyPart::Argument };
                out.push((piece, value));
            }
        }
    }
    out
}

/// Returns whether an argument of this name is text for a file.
pub(super) fn is_written(name: &str, value: &str) -> bool {
    OLD.contains(&name) || NEW.split(' ').any(|n| n == name) || is_patch(value)
}

fn is_patch(text: &str) -> bool {
    text.starts_with("*** Begin Patch") || text.lines().any(|l| l.starts_with("@@ "))
}

/// Returns whether a text consists mostly of plain prose, without symbols and identifiers.
fn is_prose(text: &str) -> bool {
    let plain = |w: &&str| {
        let w = w.trim_end_matches(['.', ',', ':', ';', '?', '!', ')']);
        w.starts_with(char::is_alphabetic)
            && w.chars().all(|c| c.is_alphabetic() || matches!(c, '\'' | '’' | '-'))
    };
    let all = text.split_whitespace().count();
    all >= 3 && text.split_whitespace().filter(plain).count() * 3 >= all * 2
}

pub(super) fn replies<'a, A>(
    events: &'a [(A, FactEvent<'a>)],
) -> impl Iterator<Item = &'a FactReply<'a>> {
    events.iter().filter_map(|(_, e)| match e {
        FactEvent::Reply(_, r) => Some(r),
        _ => None,
    })
}
