//! Context editing on decoded prompts: what the provider shows to the model instead of what was
//! sent.

use std::collections::HashSet;
use std::sync::Arc;

use ctxbench_core::block::Role;
use ctxbench_core::context_editing::{
    CLEARED, CLEARED_INPUT, Piece, What, decide, deleted_results,
};
use ctxbench_core::model::Wire;
use ctxbench_core::request::Applied;
use ctxbench_provider::{Content, Item, Prompt, format};

/// A prompt as the model sees it: what lies before the last compaction block goes, thinking and
/// tool uses as the request asks. Only Anthropic drops what lies before a compaction; on the
/// Responses API the items around it stay.
pub(super) fn apply(wire: Wire, mut prompt: Prompt) -> (Prompt, Applied) {
    for edit in prompt.server_edits.clone() {
        delete_results(&mut prompt, deleted_results(&edit));
    }
    let drops = format(wire).edits_context();
    let kind = |i| match what(i) {
        What::Compaction if !drops => What::Other,
        other => other,
    };
    let pieces: Vec<Piece<'_>> =
        prompt.items.iter().map(|i| Piece { what: kind(i), tokens: i.tokens() }).collect();
    let decision = decide(&prompt.server_edits, prompt.tools_tokens(), &pieces);
    for i in decision.results {
        prompt.items[i] = cleared(&prompt.items[i]);
    }
    for i in decision.inputs {
        let item = &prompt.items[i];
        if let Content::Call { id, name, .. } = &item.content {
            let content = Content::Call {
                id: id.clone(),
                name: name.clone(),
                arguments: CLEARED_INPUT.into(),
            };
            prompt.items[i] = item.with(content);
        }
    }
    let mut shown = vec![true; prompt.items.len()];
    for i in decision.ignored.into_iter().chain(decision.thinking) {
        shown[i] = false;
    }
    let mut shown = shown.into_iter();
    prompt.items.retain(|_| shown.next().unwrap_or(true));
    (prompt, decision.applied)
}

/// `cache_edits`: the model does not see these results and nobody pays for them, yet the prefix
/// hashes as before and is read from the cache.
fn delete_results(prompt: &mut Prompt, calls: &[Arc<str>]) {
    let gone: HashSet<&Arc<str>> = calls.iter().collect();
    for item in &mut prompt.items {
        if let Content::Output { id, .. } = &item.content
            && gone.contains(id)
        {
            let hash = item.hash;
            *item = cleared(item);
            item.hash = hash;
        }
    }
}

/// A result with the placeholder in its place; anything else as it is.
fn cleared(item: &Item) -> Item {
    let Content::Output { id, is_error, .. } = &item.content else { return item.clone() };
    let (id, is_error) = (id.clone(), *is_error);
    item.with(Content::Output { id, text: CLEARED.into(), is_error, image: None })
}

fn what(item: &Item) -> What<'_> {
    match &item.content {
        _ if item.role == Role::System && item.message == 0 => What::System,
        Content::Call { id, name, .. } => What::Call(id, name),
        Content::Output { id, .. } => What::Result(id),
        Content::Reasoning { .. } => What::Thinking,
        Content::Compaction { text, opaque } if !text.is_empty() || opaque.is_some() => {
            What::Compaction
        }
        Content::Compaction { .. } | Content::CompactionTrigger(_) | Content::Image { .. } => {
            What::Other
        }
        Content::Text(_) if item.role == Role::Assistant => What::Other,
        Content::Text(_) => What::User,
    }
}
