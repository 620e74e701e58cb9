//! The items of a request as a case counts them: content parts of one message together.

use ctxbench_core::block::{BlockKind, Role};
use ctxbench_provider::{Content, Item, Prompt};
use ctxbench_strategies::conform::record::Piece;

use crate::drive::plan::{Step, What};

/// The shortest words that are looked for within a longer text, bytes: shorter ones stand in every
/// prompt.
const LEAST_WITHIN: usize = 16;
/// Of longer words so many bytes of the beginning tell that a text was cut from them.
const BEGINNING: usize = 200;

/// An item of a case.
pub(super) struct Row<'a> {
    pub(super) kind: BlockKind,
    pub(super) role: Role,
    pub(super) items: Vec<&'a Item>,
}

impl<'a> Row<'a> {
    pub(super) fn texts(&self) -> Vec<&'a str> {
        self.items.iter().map(|i| i.text()).collect()
    }

    pub(super) fn piece(&self, said: &Said<'_>) -> Piece<'a> {
        let of_user = self.kind == BlockKind::User && self.role == Role::User;
        let said = !of_user || self.items.iter().any(|i| said.holds(i.text()));
        Piece { role: self.role, kind: self.kind, texts: self.texts(), said }
    }
}

/// The rows of a request. `apart` = the texts of a message are rows of their own.
pub(super) fn of(prompt: &Prompt, apart: bool) -> Vec<Row<'_>> {
    let text = |i: &Item| matches!(*i.content, Content::Text(_));
    let together = |a: &Item, b: &Item| {
        let one = a.message == b.message && a.role == b.role && a.role != Role::Assistant;
        !apart && one && text(a) && text(b)
    };
    // On some wires a reply of calls alone has an empty text beside them.
    let silent = |g: &&[Item]| matches!(g, [one] if one.text().is_empty() && text(one));
    let groups = prompt.items.chunk_by(together).filter(|g| !silent(g));
    groups
        .map(|g| Row { kind: kind(&g[0]), role: role(&g[0]), items: g.iter().collect() })
        .collect()
}

fn kind(item: &Item) -> BlockKind {
    match *item.content {
        Content::Text(_) if item.role == Role::Assistant => BlockKind::Assistant,
        Content::Text(_) => BlockKind::User,
        Content::Reasoning { .. } => BlockKind::Reasoning,
        Content::Call { .. } => BlockKind::Call,
        Content::Output { .. } => BlockKind::Output,
        Content::Image { .. } => BlockKind::Image,
        Content::Compaction { .. } => BlockKind::Compaction,
        Content::CompactionTrigger(_) => BlockKind::CompactionTrigger,
    }
}

/// Who speaks, as cases tell it: on some wires what tools returned stands in the user's place.
fn role(item: &Item) -> Role {
    match *item.content {
        Content::Output { .. } => Role::Tool,
        _ => item.role,
    }
}

/// What the user said in a session.
pub(super) struct Said<'a>(Vec<&'a str>);

impl<'a> Said<'a> {
    pub(super) fn of(moves: &'a [Step]) -> Said<'a> {
        let words = |m: &'a Step| match &m.what {
            What::Say(words) => Some(words.trim()),
            _ => None,
        };
        Said(moves.iter().filter_map(words).filter(|w| !w.is_empty()).collect())
    }

    /// Whether a text is something that the user said, or holds or was cut from it.
    fn holds(&self, text: &str) -> bool {
        self.0.iter().any(|words| {
            text.trim() == *words
                || (words.len() >= LEAST_WITHIN && text.contains(words))
                || (words.len() > BEGINNING
                    && text.contains(&words[..words.floor_char_boundary(BEGINNING)]))
        })
    }
}
