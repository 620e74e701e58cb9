//! Comparison of a context with the result of reading it back.

use std::collections::HashSet;
use std::sync::Arc;

use ctxbench_core::{Part, Role, ToolCall};

use super::StoredMessage;

/// Losses of a context that was written and read back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// True if the context is the same in every part and byte.
    pub equal: bool,
    /// Number of messages without any part that came back.
    pub lost: usize,
    /// Number of messages that came back with changed text, in part, or with another role. White
    /// space at line ends and around a text is ignored.
    pub garbled: usize,
    /// Number of messages that came back although they were not in the context.
    pub surplus: usize,
}

/// Compares a context with the messages that were read. Ignores how parts are distributed over
/// neighbouring messages of one role, whether a text is a summary, and whether a tool failed, which
/// not every wire reports.
pub fn losses(before: &[StoredMessage], after: &[StoredMessage]) -> Losses {
    let (mut was, mut is) = (flat(before), flat(after));
    let exact = |p: &FlatPart| (p.role, p.exact.clone());
    let equal = was.iter().map(exact).eq(is.iter().map(exact));
    // Exact matches come first, with each part of the file used once.
    for p in &mut was {
        let same = |q: &&mut FlatPart| !q.found && q.role == p.role && q.trimmed == p.trimmed;
        if let Some(q) = is.iter_mut().find(same) {
            (p.found, q.found) = (true, true);
        }
    }
    // For the remaining parts, a line that came back anywhere makes the part garbled and not lost.
    let lines: HashSet<&str> = is.iter().flat_map(FlatPart::lines).collect();
    let mut out = Losses { equal, ..Losses::default() };
    for message in was.chunk_by(|a, b| a.message == b.message) {
        let back = |p: &FlatPart| p.found || p.lines().any(|line| lines.contains(line));
        let some = message.iter().any(back);
        out.lost += usize::from(!some);
        out.garbled += usize::from(some && !message.iter().all(|p| p.found));
    }
    let touched: HashSet<usize> = is.iter().filter(|p| p.found).map(|p| p.message).collect();
    out.surplus = after.len() - touched.len();
    out
}

struct FlatPart {
    /// Index of its message.
    message: usize,
    role: Role,
    /// Texts that a model sees.
    exact: Vec<String>,
    /// The texts without white space at line ends and around each text.
    trimmed: Vec<String>,
    /// True if the part is in both contexts.
    found: bool,
}

impl FlatPart {
    /// Returns the lines of the main text.
    fn lines(&self) -> impl Iterator<Item = &str> {
        let lines = self.trimmed.last().into_iter().flat_map(|t| t.lines());
        lines.map(str::trim).filter(|l| !l.is_empty())
    }
}

fn flat(all: &[StoredMessage]) -> Vec<FlatPart> {
    let trim = |t: &String| t.trim().lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    let parts =
        all.iter().enumerate().flat_map(|(i, m)| m.parts.iter().map(move |p| (i, m.role, p)));
    let flat = |(message, role, part)| {
        let exact = texts(part);
        let trimmed = exact.iter().map(trim).collect();
        FlatPart { message, role, exact, trimmed, found: false }
    };
    parts.map(flat).collect()
}

fn texts(p: &Part) -> Vec<String> {
    let texts: Vec<&Arc<str>> = match p {
        Part::Text(t) | Part::Summary(t) | Part::Unrecorded(t) => vec![t],
        Part::Reasoning { text, encrypted } => [text].into_iter().chain(encrypted).collect(),
        Part::Call(ToolCall { id, name, arguments }) => vec![id, name, arguments],
        Part::Result { id, output, .. } => vec![id, output],
        Part::Image(m) => return vec![m.url.clone()],
        Part::Compaction(t) => t.iter().collect(),
    };
    texts.into_iter().map(|t| t.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds messages of the user and the assistant in turn.
    fn talk(texts: [&str; 3]) -> Vec<StoredMessage> {
        let roles = [Role::User, Role::Assistant, Role::User];
        roles.into_iter().zip(texts).map(|(role, text)| StoredMessage::text(role, text)).collect()
    }

    #[test]
    fn counts_what_is_lost_garbled_and_too_much() {
        let before = talk(["one", "# head\nbody", "three"]);
        assert_eq!(losses(&before, &before), Losses { equal: true, ..Losses::default() });
        let spaces = talk(["one  \n", "\n# head\nbody\n\n", "three"]);
        assert_eq!(losses(&before, &spaces), Losses::default());
        let damaged = losses(&before, &talk(["one", "body", "never said"]));
        assert_eq!(damaged, Losses { equal: false, lost: 1, garbled: 1, surplus: 2 });
        // The role differs.
        assert_eq!(losses(&before[..1], &[StoredMessage::text(Role::Assistant, "one")]).garbled, 1);
        assert_eq!(losses(&before, &[]).lost, 3);
    }
}
