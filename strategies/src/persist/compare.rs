//! Comparison of a context with the result of reading it back.

use std::collections::HashSet;
use std::sync::Arc;

use ctxbench_core::block::Role;
use ctxbench_core::content::{Part, ToolCall};

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
    let (was, is) = (flat(before), flat(after));
    // Exact matches come first, with each part of the file used once.
    let mut used = vec![false; is.len()];
    let found: Vec<bool> = was
        .iter()
        .map(|p| {
            let same = |q: &FlatPart<'_>| q.role == p.role && q.texts == p.texts;
            let at = (0..is.len()).find(|&i| !used[i] && same(&is[i]));
            at.inspect(|&i| used[i] = true).is_some()
        })
        .collect();
    // For the remaining parts, a line that came back anywhere makes the part garbled and not lost.
    let lines: HashSet<&str> = is.iter().flat_map(FlatPart::lines).collect();
    let exact = |p: &FlatPart<'_>| (p.role, exact(p.part));
    let equal = was.iter().map(exact).eq(is.iter().map(exact));
    let mut out = Losses { equal, ..Losses::default() };
    let parts: Vec<_> = was.iter().zip(found).collect();
    for message in parts.chunk_by(|(a, _), (b, _)| a.message == b.message) {
        let back = |(p, found): &(&FlatPart<'_>, bool)| {
            *found || p.lines().any(|line| lines.contains(line))
        };
        let some = message.iter().any(back);
        out.lost += usize::from(!some);
        out.garbled += usize::from(some && !message.iter().all(|(_, found)| *found));
    }
    let touched: HashSet<usize> =
        is.iter().zip(used).filter(|(_, used)| *used).map(|(p, _)| p.message).collect();
    out.surplus = after.len() - touched.len();
    out
}

struct FlatPart<'a> {
    /// Index of its message.
    message: usize,
    role: Role,
    part: &'a Part,
    /// Texts without white space at line ends and around each text.
    texts: Vec<String>,
}

impl FlatPart<'_> {
    /// Returns the lines of the main text.
    fn lines(&self) -> impl Iterator<Item = &str> {
        self.texts
            .last()
            .into_iter()
            .flat_map(|t| t.lines())
            .map(str::trim)
            .filter(|l| !l.is_empty())
    }
}

fn flat(all: &[StoredMessage]) -> Vec<FlatPart<'_>> {
    let trimmed = |t: &String| t.trim().lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    let parts =
        all.iter().enumerate().flat_map(|(i, s)| s.parts.iter().map(move |p| (i, s.role, p)));
    parts
        .map(|(message, role, part)| {
            let texts = exact(part).iter().map(trimmed).collect();
            FlatPart { message, role, part, texts }
        })
        .collect()
}

/// Returns the texts of a part that a model sees.
fn exact(p: &Part) -> Vec<String> {
    let texts = |all: &[&Arc<str>]| all.iter().map(|t| t.to_string()).collect();
    match p {
        Part::Text(t) | Part::Summary(t) | Part::Unrecorded(t) => texts(&[t]),
        Part::Reasoning { text, encrypted } => {
            [text].into_iter().chain(encrypted).map(|t| t.to_string()).collect()
        }
        Part::Call(ToolCall { id, name, arguments }) => texts(&[id, name, arguments]),
        Part::Result { id, output, .. } => texts(&[id, output]),
        Part::Image(m) => vec![m.url.clone()],
        Part::Compaction(t) => t.iter().map(|t| t.to_string()).collect(),
    }
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
