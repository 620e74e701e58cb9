//! Comparison of a context with the result of reading it back.

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
    let mut used = vec![false; is.len()];
    // Exact matches come first, with each part of the file used once.
    let mut found: Vec<Vec<Option<bool>>> =
        before.iter().map(|s| vec![None; s.parts.len()]).collect();
    let mut take = |role: Role, same: &dyn Fn(&Part) -> bool| {
        let at =
            is.iter().enumerate().position(|(i, p)| !used[i] && p.role == role && same(p.part))?;
        used[at] = true;
        Some(at)
    };
    for p in &was {
        let text = part_texts(p.part);
        found[p.message][p.at] = take(p.role, &|q| part_texts(q) == text).map(|_| true);
    }
    // For the remaining parts, a line that came back anywhere makes the part garbled and not lost.
    let lines: std::collections::HashSet<String> =
        is.iter().flat_map(|p| lines_of(p.part)).collect();
    for p in &was {
        let slot = &mut found[p.message][p.at];
        if slot.is_none() && lines_of(p.part).any(|l| lines.contains(&l)) {
            *slot = Some(false);
        }
    }
    let mut out = Losses {
        equal: was.iter().map(Flat::key).eq(is.iter().map(Flat::key)),
        ..Losses::default()
    };
    for m in &found {
        out.lost += usize::from(m.iter().all(Option::is_none) && !m.is_empty());
        out.garbled +=
            usize::from(m.iter().any(Option::is_some) && m.iter().any(|p| *p != Some(true)));
    }
    let mut touched = vec![false; after.len()];
    is.iter().zip(&used).filter(|(_, u)| **u).for_each(|(p, _)| touched[p.message] = true);
    out.surplus = touched.iter().filter(|t| !**t).count();
    out
}

struct Flat<'a> {
    message: usize,
    at: usize,
    role: Role,
    part: &'a Part,
}

impl Flat<'_> {
    fn key(&self) -> (Role, Vec<String>) {
        (self.role, exact(self.part))
    }
}

fn flat(all: &[StoredMessage]) -> Vec<Flat<'_>> {
    let of = |(message, s): (usize, &'_ StoredMessage)| -> Vec<(usize, usize)> {
        (0..s.parts.len()).map(|at| (message, at)).collect()
    };
    all.iter()
        .enumerate()
        .flat_map(of)
        .map(|(message, at)| Flat {
            message,
            at,
            role: all[message].role,
            part: &all[message].parts[at],
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

/// Returns the texts of a part without white space at line ends and around each text.
fn part_texts(p: &Part) -> Vec<String> {
    exact(p)
        .iter()
        .map(|t| t.trim().lines().map(str::trim_end).collect::<Vec<_>>().join("\n"))
        .collect()
}

fn lines_of(p: &Part) -> impl Iterator<Item = String> {
    let text = exact(p).pop().unwrap_or_default();
    text.lines()
        .map(|l| l.trim().to_string())
        .filter(|l| !l.is_empty())
        .collect::<Vec<_>>()
        .into_iter()
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
