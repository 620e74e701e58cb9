//! Items of a request as a case counts them: content parts, grouped by message.

use ctxbench_conform::record::CasePiece;
use ctxbench_core::block::{BlockKind, Role};
use ctxbench_provider::{Content, Item, Prompt};

use crate::drive::plan::{Delivery, DriveStep};

/// Minimum length of a message that is searched for in a longer text, bytes. Shorter ones match by
/// chance.
const MIN_WITHIN_BYTES: usize = 16;
/// Length of the beginning by which a truncated message is recognised, bytes.
const BEGINNING: usize = 200;

/// An item of a case.
pub(super) struct RecordedItem<'a> {
    pub(super) kind: BlockKind,
    pub(super) role: Role,
    pub(super) items: Vec<&'a Item>,
}

impl<'a> RecordedItem<'a> {
    pub(super) fn texts(&self) -> Vec<&'a str> {
        self.items.iter().map(|i| i.text()).collect()
    }

    pub(super) fn piece(&self, said: &UserTexts<'_>) -> CasePiece<'a> {
        let of_user = self.kind == BlockKind::User && self.role == Role::User;
        let said = !of_user || self.items.iter().any(|i| said.holds(i.text()));
        CasePiece { role: self.role, kind: self.kind, texts: self.texts(), said }
    }
}

/// Returns the rows of a request. With `apart` every text of a message is a separate row.
pub(super) fn split(prompt: &Prompt, apart: bool) -> Vec<RecordedItem<'_>> {
    let text = |i: &Item| matches!(*i.content, Content::Text(_));
    let together = |a: &Item, b: &Item| {
        let one = a.message == b.message && a.role == b.role && a.role != Role::Assistant;
        !apart && one && text(a) && text(b)
    };
    // Some APIs send an empty text along with calls.
    let silent = |g: &&[Item]| matches!(g, [one] if one.text().is_empty() && text(one));
    let groups = prompt.items.chunk_by(together).filter(|g| !silent(g));
    groups
        .map(|g| RecordedItem { kind: kind(&g[0]), role: role(&g[0]), items: g.iter().collect() })
        .collect()
}

/// Returns the kind in a case, where all texts that are not the model's are the user's.
fn kind(item: &Item) -> BlockKind {
    match item.block_kind() {
        BlockKind::Base | BlockKind::Context => BlockKind::User,
        kind => kind,
    }
}

/// Returns the speaker in a case. Some APIs send results of tools in the role of the user.
fn role(item: &Item) -> Role {
    match *item.content {
        Content::Output { .. } => Role::Tool,
        _ => item.role,
    }
}

/// Messages of the user.
pub(super) struct UserTexts<'a>(Vec<&'a str>);

impl<'a> UserTexts<'a> {
    pub(super) fn new(moves: &'a [DriveStep]) -> UserTexts<'a> {
        let words = |m: &'a DriveStep| match &m.what {
            Delivery::Say(words) => Some(words.trim()),
            _ => None,
        };
        UserTexts(moves.iter().filter_map(words).filter(|w| !w.is_empty()).collect())
    }

    /// Returns whether a text is a message of the user, or contains or truncates one.
    fn holds(&self, text: &str) -> bool {
        self.0.iter().any(|words| {
            text.trim() == *words
                || (words.len() >= MIN_WITHIN_BYTES && text.contains(words))
                || (words.len() > BEGINNING
                    && text.contains(&words[..words.floor_char_boundary(BEGINNING)]))
        })
    }
}
