//! Requests with context management that Anthropic refuses (docs/sources/anthropic-sdk.md §3,
//! docs/sources/anthropic-api.md §2.3 and §2.4).
//!
//! Not modelled: codes that need the signature itself or changes of tools, since no client here
//! tampers with a block.

use ctxbench_core::context_editing::MIN_COMPACT_TRIGGER;
use ctxbench_core::prelude::*;
use ctxbench_core::tokens;
use ctxbench_provider::{Item, Prompt};
use ctxbench_util::lru_map::LruMap;

/// Signature by which the provider recognises a block that it made on demand.
pub(super) fn signature(summary: &str) -> u64 {
    tokens::content_hash(summary.as_bytes())
}

/// Refuses invalid requests as the provider does. `signed` = blocks made on demand, `scale` = the
/// scenario's, for the smallest trigger.
pub(super) fn check(
    prompt: &Prompt,
    signed: &LruMap<u64, ()>,
    scale: f64,
) -> Result<(), ModelError> {
    const INVALID: &str = "invalid_request_error";
    let least = scale_tokens(MIN_COMPACT_TRIGGER, scale);
    let too_low = format!(
        "context_management: the trigger of compact_20260112 must be at least {least} input tokens"
    );
    let (edits, asks) = (&prompt.server_edits, prompt.asks_for_compaction());
    let talk: Vec<&Item> = prompt.items.iter().filter(|i| i.message > 0).collect();
    let own =
        |i: &Item| i.kind == BlockKind::Compaction && signed.peek(&signature(i.text())).is_some();
    let blocks: Vec<usize> = (0..talk.len()).filter(|&i| own(talk[i])).collect();
    let is_low =
        |e: &ServerEdit| matches!(e, ServerEdit::Compact { trigger, .. } if *trigger < least);
    let is_thinking = |e: &ServerEdit| matches!(e, ServerEdit::ClearThinking { .. });
    let keeps_none = |e: &ServerEdit| matches!(e, ServerEdit::ClearThinking { keep: Some(0) });
    let compacts = edits.iter().any(|e| matches!(e, ServerEdit::Compact { .. }));
    let rules = [
        (edits.iter().any(is_low), INVALID, &*too_low),
        (
            edits.iter().skip(1).any(is_thinking),
            INVALID,
            "context_management: clear_thinking_20251015 must be the first edit",
        ),
        (
            edits.iter().any(keeps_none),
            INVALID,
            "context_management: clear_thinking_20251015 keeps at least one turn",
        ),
        (
            blocks.len() > 1,
            "compaction_block_ambiguous",
            "messages may contain one compaction block",
        ),
        (
            blocks.first().is_some_and(|&i| i > 0),
            "compaction_block_misplaced",
            "the compaction block must come first in messages",
        ),
        (
            !blocks.is_empty() && compacts,
            INVALID,
            "a compaction block made on demand cannot be combined with compact_20260112",
        ),
        (
            asks && !edits.is_empty(),
            INVALID,
            "compaction cannot be combined with context_management",
        ),
        (
            asks && talk.len() == blocks.len(),
            "compaction_nothing_to_summarize",
            "there is nothing to summarise",
        ),
        (
            asks && has_open_call(&talk),
            "compaction_incomplete_turn",
            "the last turn has a tool call without a result",
        ),
    ];
    match rules.into_iter().find(|(is_broken, ..)| *is_broken) {
        Some((_, code, message)) => {
            Err(ModelError { code: Some(code.into()), ..ModelError::invalid(message) })
        }
        None => Ok(()),
    }
}

/// Returns whether the model's last message has a call without a result.
fn has_open_call(talk: &[&Item]) -> bool {
    let last = talk.iter().rev().take_while(|i| i.role == Role::Assistant);
    let mut calls = last.filter(|i| i.kind == BlockKind::Call);
    let is_answer =
        |i: &Item, call: &Item| i.kind == BlockKind::Output && i.call_id() == call.call_id();
    calls.any(|call| !talk.iter().any(|i| is_answer(i, call)))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use ctxbench_core::block::Draft;
    use ctxbench_provider::plain;
    use std::sync::Arc;

    /// A prompt by letters: `u` is the user, `c` a call, `r` its result, `S` a block made on demand, `T`
    /// one of the threshold kind, and `?` asks for a compaction.
    pub fn prompt(talk: &str, server_edits: Vec<ServerEdit>) -> Prompt {
        let item = |(i, letter): (usize, char)| {
            let (id, text): (Arc<str>, Arc<str>) = ("a".into(), letter.to_string().into());
            let content = match letter {
                'u' => plain(text),
                'c' => Draft::call(id, "t".into(), "{}".into()),
                'r' => Draft::output(id, "".into(), text, false),
                '?' => Draft::text(BlockKind::CompactionTrigger, Role::User, ""),
                _ => Draft::text(BlockKind::Compaction, Role::Assistant, text),
            };
            Item::new(content.role, content, if letter == '?' { 0 } else { i + 1 }, None)
        };
        let items = talk.chars().enumerate().map(item).collect();
        Prompt { server_edits, ..Prompt::new("m", items) }
    }

    #[test]
    fn each_refusal_has_its_code() {
        const INVALID: Option<&str> = Some("invalid_request_error");
        let thinking = || ServerEdit::ClearThinking { keep: Some(1) };
        let compact = ServerEdit::compact;
        for (talk, edits, code) in [
            ("?", vec![], Some("compaction_nothing_to_summarize")),
            ("S?", vec![], Some("compaction_nothing_to_summarize")),
            ("uc?", vec![], Some("compaction_incomplete_turn")),
            ("ucr?", vec![], None),
            ("uSu", vec![], Some("compaction_block_misplaced")),
            ("SS", vec![], Some("compaction_block_ambiguous")),
            ("Su", vec![], None),
            // A block of the threshold kind may appear anywhere.
            ("uTu", vec![], None),
            ("u?", vec![thinking()], INVALID),
            ("u", vec![compact(49_999)], INVALID),
            ("u", vec![compact(50_000)], None),
            ("u", vec![compact(50_000), thinking()], INVALID),
            ("Su", vec![compact(50_000)], INVALID),
        ] {
            let mut signed = LruMap::new(2);
            signed.insert(signature("S"), ());
            let refused = check(&prompt(talk, edits), &signed, 1.0).err();
            let refused = refused.map(|e| e.code.unwrap_or_default());
            assert_eq!(refused.as_deref(), code, "{talk}");
        }
    }
}
