//! Items of a request as a case counts them: content parts, grouped by message.

use ctxbench_conform::record::CasePiece;
use ctxbench_core::block::{BlockKind, Role};
use ctxbench_provider::{Item, Prompt};

/// Minimum length of a message that is searched for in a longer text, bytes. Shorter ones match by
/// chance.
const MIN_WITHIN_BYTES: usize = 16;
/// Length of the beginning by which a truncated message is recognised, bytes.
const BEGINNING: usize = 200;

/// Returns the pieces of a request. With `apart` every text of a message is a separate piece. `said`
/// are the messages of the user.
pub(super) fn pieces<'a>(prompt: &'a Prompt, apart: bool, said: &[&str]) -> Vec<CasePiece<'a>> {
    let text = |i: &Item| i.is_text();
    let together = |a: &Item, b: &Item| {
        let one = a.message == b.message && a.role == b.role && a.role != Role::Assistant;
        !apart && one && text(a) && text(b)
    };
    // Some APIs send an empty text along with calls.
    let silent = |g: &&[Item]| matches!(g, [one] if one.text().is_empty() && text(one));
    let groups = prompt.items.chunk_by(together).filter(|g| !silent(g));
    let piece = |items: &'a [Item]| {
        let first = &items[0];
        // All texts that are not the model's are the user's in a case.
        let kind = match first.kind {
            BlockKind::Base | BlockKind::Context => BlockKind::User,
            kind => kind,
        };
        // Some APIs send results of tools in the role of the user.
        let role = if kind == BlockKind::Output { Role::Tool } else { first.role };
        let texts: Vec<&str> = items.iter().map(Item::text).collect();
        let of_user = kind == BlockKind::User && role == Role::User;
        let said = !of_user || texts.iter().any(|text| contains_message(text, said));
        CasePiece { role, kind, texts, items, said }
    };
    groups.map(piece).collect()
}

/// Returns whether a text is a message of the user, or contains or truncates one.
fn contains_message(text: &str, said: &[&str]) -> bool {
    said.iter().any(|words| {
        text.trim() == *words
            || (words.len() >= MIN_WITHIN_BYTES && text.contains(words))
            || (words.len() > BEGINNING
                && text.contains(&words[..words.floor_char_boundary(BEGINNING)]))
    })
}
