//! Context editing on the provider's side: which tool results go. The server applies it; clients and measurements need to know what it left.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::block::{Block, BlockKind, Form};
use crate::request::{Request, ServerEdit};

/// What is shown in the place of a result that the provider cleared; its real words are not published.
pub const CLEARED: &str = "(cleared by the provider)";

/// How `clear_tool_uses_20250919` decides (facts/aider-and-anthropic-sdk.md §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClearRule {
    /// Input tokens from which it acts.
    pub trigger: u64,
    /// Newest tool uses that stay.
    pub keep: usize,
    /// Tokens that must go for it to act at all.
    pub at_least: u64,
}

/// Which of the clearable results go, oldest first, as indexes into `freed` (tokens that clearing each of them frees), and the tokens freed.
pub fn clear_tool_uses(prompt_tokens: u64, freed: &[u64], rule: ClearRule) -> (usize, u64) {
    let old = freed.len().saturating_sub(rule.keep);
    let tokens = freed[..old].iter().sum();
    if prompt_tokens < rule.trigger || old == 0 || tokens < rule.at_least { (0, 0) } else { (old, tokens) }
}

/// How many of the oldest results of a request the provider will clear.
pub fn will_clear(request: &Request) -> usize {
    let mut cleared = 0;
    for edit in &request.server_edits {
        let ServerEdit::ClearToolUses { trigger, keep, clear_at_least, exclude } = edit else { continue };
        let names: HashMap<&str, &str> = request
            .blocks
            .iter()
            .filter(|b| b.kind == BlockKind::Call)
            .filter_map(|b| b.call.as_ref().map(|c| (c.id.as_str(), c.name.as_str())))
            .collect();
        let excluded = |b: &Block| b.call_id().and_then(|id| names.get(id)).is_some_and(|n| exclude.iter().any(|e| e == n));
        let placeholder = super::billed_tokens(CLEARED, None, None, false);
        let freed: Vec<u64> = request
            .blocks
            .iter()
            .filter(|b| b.kind == BlockKind::Output && !excluded(b))
            .map(|b| b.tokens().saturating_sub(placeholder))
            .collect();
        let rule = ClearRule { trigger: *trigger, keep: *keep, at_least: *clear_at_least };
        cleared = clear_tool_uses(request.tokens(), &freed, rule).0;
    }
    cleared
}

/// A view with the oldest `count` tool results cleared, as the provider showed it to the model.
pub fn cleared_view(blocks: &[Arc<Block>], count: usize) -> Vec<Arc<Block>> {
    let mut left = count;
    blocks
        .iter()
        .map(|b| {
            if left > 0 && b.kind == BlockKind::Output {
                left -= 1;
                b.altered(Form::Cleared, CLEARED)
            } else {
                b.clone()
            }
        })
        .collect()
}

/// A view without the results that `cache_edits` takes out, as the provider shows it to the model.
pub fn without_results(blocks: Vec<Arc<Block>>, edits: &[ServerEdit]) -> Vec<Arc<Block>> {
    let gone: HashSet<&str> = edits.iter().flat_map(deleted_results).map(|id| &**id).collect();
    if gone.is_empty() {
        return blocks;
    }
    let deleted = |b: &Block| b.kind == BlockKind::Output && b.call_id().is_some_and(|id| gone.contains(id));
    blocks.into_iter().map(|b| if deleted(&b) { b.altered(Form::Cleared, CLEARED) } else { b }).collect()
}

/// Calls whose results an edit takes out of the cached prefix.
pub fn deleted_results(edit: &ServerEdit) -> &[Arc<str>] {
    match edit {
        ServerEdit::CacheEdits { results } => results,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{CallRef, Draft, MessageId, Role};

    #[test]
    fn keeps_the_newest_and_needs_enough() {
        let rule = ClearRule { trigger: 100, keep: 3, at_least: 0 };
        assert_eq!(clear_tool_uses(99, &[10; 5], rule), (0, 0));
        assert_eq!(clear_tool_uses(100, &[10; 5], rule), (2, 20));
        assert_eq!(clear_tool_uses(100, &[10; 3], rule), (0, 0));
        assert_eq!(clear_tool_uses(100, &[10; 5], ClearRule { at_least: 21, ..rule }), (0, 0));
    }
    #[test]
    fn deleted_results_are_the_named_ones_only() {
        let output = |id: &str| {
            let mut d = Draft::text(BlockKind::Output, Role::Tool, id);
            d.call = Some(Arc::new(CallRef { id: id.into(), name: "t".into() }));
            d.build(MessageId(0), vec![])
        };
        let edits = [ServerEdit::CacheEdits { results: vec!["b".into()] }];
        let shown: Vec<String> = without_results(vec![output("a"), output("b")], &edits).iter().map(|b| b.text.to_string()).collect();
        assert_eq!(shown, ["a", CLEARED]);
    }
}
