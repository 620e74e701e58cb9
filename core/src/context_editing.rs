//! Context editing on the provider's side: which thinking and which tool results go. The server
//! applies it; clients and measurements need to know what it left. Both ask [`decide`], the server
//! with its items, the others with their blocks.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::block::{Block, BlockKind, Form, Role};
use crate::model::{Wire, find};
use crate::request::{Applied, ClearInputs, ClearTrigger, Request, ServerEdit};
use crate::strategy::is_system;
use crate::tokens::billed_tokens;

/// What is shown in the place of a result that the provider cleared; its real words are not
/// published.
pub const CLEARED: &str = "(cleared by the provider)";
/// What is shown in the place of cleared call arguments: this wire takes nothing but an object.
pub const CLEARED_INPUT: &str = "{}";
/// Smallest trigger that `compact_20260112` takes, input tokens (docs/sources/anthropic-api.md
/// §2.3).
pub const LEAST_COMPACT_TRIGGER: u64 = 50_000;

/// What a piece of a prompt is to context editing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What<'a> {
    /// Stands beside the messages.
    System,
    /// What the user says; begins a turn.
    User,
    /// Thinking of the model.
    Thinking,
    /// A tool call: id and tool.
    Call(&'a str, &'a str),
    /// A tool result: id of its call.
    Result(&'a str),
    /// A compaction with content; everything before it is ignored.
    Compaction,
    /// Anything else.
    Other,
}

/// A piece of a prompt.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    /// What it is.
    pub what: What<'a>,
    /// Billed tokens.
    pub tokens: u64,
}

/// What context editing does to a prompt, as positions of its pieces in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Ignored: messages before the last compaction block.
    pub ignored: Vec<usize>,
    /// Thinking that goes.
    pub thinking: Vec<usize>,
    /// Results that become a placeholder.
    pub results: Vec<usize>,
    /// Calls whose arguments become empty.
    pub inputs: Vec<usize>,
    /// What the provider reports.
    pub applied: Applied,
}

/// Decides what goes, by the rules of docs/sources/anthropic-sdk.md §3. `fixed` = tokens of the
/// tool definitions.
pub fn decide(edits: &[ServerEdit], fixed: u64, pieces: &[Piece<'_>]) -> Decision {
    let mut d = Decision { ignored: before_compaction(pieces), ..Decision::default() };
    let ignored: u64 = d.ignored.iter().map(|&i| pieces[i].tokens).sum();
    let mut total = fixed + pieces.iter().map(|p| p.tokens).sum::<u64>() - ignored;
    let from = d.ignored.last().map_or(0, |i| i + 1);
    for edit in edits {
        match edit {
            ServerEdit::ClearThinking { keep: Some(keep) } => {
                let turns = thinking_turns(pieces, from);
                let old = turns.len().saturating_sub(*keep);
                d.thinking = turns.into_iter().take(old).flatten().collect();
                d.applied.cleared_thinking_turns = old;
                d.applied.thinking_tokens = d.thinking.iter().map(|&i| pieces[i].tokens).sum();
                total -= d.applied.thinking_tokens;
            }
            ServerEdit::ClearToolUses { trigger, keep, clear_at_least, exclude, inputs } => {
                let uses = tool_uses(pieces, from, exclude, inputs);
                let count =
                    pieces[from..].iter().filter(|p| matches!(p.what, What::Result(_))).count()
                        as u64;
                let reached = match *trigger {
                    ClearTrigger::InputTokens(n) => total >= n,
                    ClearTrigger::ToolUses(n) => count >= n,
                };
                let old = uses.len().saturating_sub(*keep);
                let freed: u64 = uses[..old].iter().map(|u| u.freed).sum();
                if !reached || old == 0 || freed < *clear_at_least {
                    continue;
                }
                d.results = uses[..old].iter().map(|u| u.result).collect();
                d.inputs = uses[..old].iter().filter_map(|u| u.input).collect();
                (d.applied.cleared_tool_uses, d.applied.cleared_tokens) = (old, freed);
                total -= freed;
            }
            ServerEdit::ClearThinking { keep: None }
            | ServerEdit::Compact { .. }
            | ServerEdit::CacheEdits { .. } => {}
        }
    }
    d
}

fn before_compaction(pieces: &[Piece<'_>]) -> Vec<usize> {
    let at = pieces.iter().rposition(|p| p.what == What::Compaction).unwrap_or(0);
    (0..at).filter(|&i| pieces[i].what != What::System).collect()
}

/// Thinking by turn, oldest turn first, turns without any left out. A turn reaches from what the
/// user says to what the user says next, so an unfinished tool cycle is part of the newest one.
fn thinking_turns(pieces: &[Piece<'_>], from: usize) -> Vec<Vec<usize>> {
    let mut turns = vec![Vec::new()];
    for (i, p) in pieces.iter().enumerate().skip(from) {
        match p.what {
            What::User => turns.push(Vec::new()),
            What::Thinking => turns.last_mut().expect("begins with one turn").push(i),
            _ => {}
        }
    }
    turns.retain(|t| !t.is_empty());
    turns
}

struct ToolUse {
    result: usize,
    input: Option<usize>,
    freed: u64,
}

fn tool_uses(
    pieces: &[Piece<'_>],
    from: usize,
    exclude: &[String],
    inputs: &ClearInputs,
) -> Vec<ToolUse> {
    let mut calls: HashMap<&str, (usize, &str)> = HashMap::new();
    let placeholder = billed_tokens(CLEARED, None, None, false);
    let mut out = Vec::new();
    for (i, p) in pieces.iter().enumerate().skip(from) {
        match p.what {
            What::Call(id, name) => drop(calls.insert(id, (i, name))),
            What::Result(id) => {
                let call = calls.get(id);
                if call.is_some_and(|(_, name)| exclude.iter().any(|e| e == name)) {
                    continue;
                }
                let input = call.filter(|(_, name)| inputs.takes(name));
                let of_input = input.map_or(0, |&(at, name)| {
                    pieces[at].tokens.saturating_sub(billed_tokens(
                        CLEARED_INPUT,
                        Some(name),
                        None,
                        false,
                    ))
                });
                let freed = p.tokens.saturating_sub(placeholder) + of_input;
                out.push(ToolUse { result: i, input: input.map(|c| c.0), freed });
            }
            _ => {}
        }
    }
    out
}

fn pieces(blocks: &[Arc<Block>]) -> Vec<Piece<'_>> {
    // System text behind the first message is a message on this wire.
    let head = blocks.iter().take_while(|b| is_system(b)).count();
    blocks
        .iter()
        .enumerate()
        .map(|(i, b)| Piece {
            what: if i < head { What::System } else { what(b) },
            tokens: b.tokens(),
        })
        .collect()
}

fn what(b: &Block) -> What<'_> {
    match (b.kind, b.call.as_deref()) {
        (BlockKind::Call, Some(c)) => What::Call(&c.id, &c.name),
        (BlockKind::Output, Some(c)) => What::Result(&c.id),
        (BlockKind::Reasoning, _) => What::Thinking,
        (BlockKind::Compaction, _) if !b.text.is_empty() || b.opaque.is_some() => What::Compaction,
        (BlockKind::Compaction | BlockKind::CompactionTrigger | BlockKind::Image, _) => What::Other,
        _ if b.role == Role::Assistant => What::Other,
        _ => What::User,
    }
}

/// What the provider will clear of a request.
pub fn will_apply(request: &Request) -> Applied {
    if request.server_edits.is_empty() {
        return Applied::default();
    }
    let fixed = request.tools.as_ref().map_or(0, |t| t.tokens);
    decide(&request.server_edits, fixed, &pieces(&request.blocks)).applied
}

/// A request as the provider showed it to the model after clearing as much as `applied` says:
/// messages before the last compaction block are left out where the provider ignores them
/// (Anthropic), the oldest results and thinking are cleared, deleted results are gone.
pub fn edited_view(request: &Request, applied: Applied) -> Vec<Arc<Block>> {
    without_results(cleared_view(request, applied), &request.server_edits)
}

fn cleared_view(request: &Request, applied: Applied) -> Vec<Arc<Block>> {
    let compacted = request.blocks.iter().any(|b| b.kind == BlockKind::Compaction);
    if applied == Applied::default() && !compacted {
        return request.blocks.clone();
    }
    let pieces = pieces(&request.blocks);
    let anthropic = find(&request.model).is_ok_and(|m| m.wire == Wire::AnthropicMessages);
    let ignored = if anthropic { before_compaction(&pieces) } else { Vec::new() };
    let from = ignored.last().map_or(0, |i| i + 1);
    let mut shown: Vec<Option<Arc<Block>>> = request.blocks.iter().cloned().map(Some).collect();
    let thinking =
        thinking_turns(&pieces, from).into_iter().take(applied.cleared_thinking_turns).flatten();
    for i in ignored.into_iter().chain(thinking) {
        shown[i] = None;
    }
    let rule = request.server_edits.iter().find_map(|e| match e {
        ServerEdit::ClearToolUses { exclude, inputs, .. } => {
            Some((exclude.clone(), inputs.clone()))
        }
        _ => None,
    });
    let (exclude, inputs) = rule.unwrap_or_default();
    for u in tool_uses(&pieces, from, &exclude, &inputs).into_iter().take(applied.cleared_tool_uses)
    {
        shown[u.result] = Some(request.blocks[u.result].altered(Form::Cleared, CLEARED));
        if let Some(i) = u.input {
            shown[i] = Some(request.blocks[i].altered(Form::Cleared, CLEARED_INPUT));
        }
    }
    shown.into_iter().flatten().collect()
}

/// A view without the results that `cache_edits` takes out, as the provider shows it to the model.
fn without_results(blocks: Vec<Arc<Block>>, edits: &[ServerEdit]) -> Vec<Arc<Block>> {
    let gone: HashSet<&str> = edits.iter().flat_map(deleted_results).map(|id| &**id).collect();
    if gone.is_empty() {
        return blocks;
    }
    let deleted =
        |b: &Block| b.kind == BlockKind::Output && b.call_id().is_some_and(|id| gone.contains(id));
    blocks
        .into_iter()
        .map(|b| if deleted(&b) { b.altered(Form::Cleared, CLEARED) } else { b })
        .collect()
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
    use What::{Call, Compaction, Other, Result, System, Thinking, User};

    fn pieces(all: &[(What<'static>, u64)]) -> Vec<Piece<'static>> {
        all.iter().map(|&(what, tokens)| Piece { what, tokens }).collect()
    }

    fn clear(trigger: ClearTrigger, keep: usize, clear_at_least: u64) -> ServerEdit {
        ServerEdit::ClearToolUses {
            trigger,
            keep,
            clear_at_least,
            exclude: vec!["web".into()],
            inputs: ClearInputs::None,
        }
    }

    /// The placeholder: o200k of its words and the 4 tokens of any block.
    fn placeholder() -> u64 {
        billed_tokens(CLEARED, None, None, false)
    }

    #[test]
    fn keeps_the_newest_and_needs_enough() {
        // 10 system + 5 × (call 10 + result 100) = 560 tokens; web results never go.
        let mut all = vec![(System, 10)];
        for id in ["a", "b", "w", "c", "d"] {
            all.extend([(Call(id, if id == "w" { "web" } else { "read" }), 10), (Result(id), 100)]);
        }
        let p = pieces(&all);
        let freed = 100 - placeholder();
        let run = |e: ServerEdit| decide(&[e], 0, &p);
        assert_eq!(run(clear(ClearTrigger::InputTokens(561), 1, 0)), Decision::default());
        let d = run(clear(ClearTrigger::InputTokens(560), 1, 0));
        assert_eq!((d.results, d.inputs, d.applied.cleared_tool_uses), (vec![2, 4, 8], vec![], 3));
        assert_eq!(d.applied.cleared_tokens, 3 * freed);
        assert_eq!(
            run(clear(ClearTrigger::InputTokens(560), 1, 3 * freed + 1)),
            Decision::default()
        );
        assert_eq!(run(clear(ClearTrigger::InputTokens(560), 4, 0)), Decision::default());
        assert_eq!(run(clear(ClearTrigger::ToolUses(6), 1, 0)), Decision::default());
        assert_eq!(run(clear(ClearTrigger::ToolUses(5), 1, 0)).results, [2, 4, 8]);
    }

    #[test]
    fn arguments_go_where_asked() {
        let p = pieces(&[
            (Call("a", "read"), 50),
            (Result("a"), 100),
            (Call("b", "edit"), 50),
            (Result("b"), 100),
        ]);
        let edit = |inputs| ServerEdit::ClearToolUses {
            trigger: ClearTrigger::ToolUses(1),
            keep: 0,
            clear_at_least: 0,
            exclude: vec![],
            inputs,
        };
        assert_eq!(decide(&[edit(ClearInputs::All)], 0, &p).inputs, [0, 2]);
        assert_eq!(decide(&[edit(ClearInputs::Of(vec!["edit".into()]))], 0, &p).inputs, [2]);
    }

    #[test]
    fn thinking_stays_for_the_newest_turns_and_within_a_tool_cycle() {
        let p = pieces(&[
            (User, 5),
            (Thinking, 7),
            (Other, 5),
            (User, 5),
            (Other, 5),
            (User, 5),
            (Thinking, 11),
            (Call("a", "read"), 5),
            (Result("a"), 5),
            (Thinking, 13),
            (Call("b", "read"), 5),
            (Result("b"), 5),
        ]);
        let run = |keep| decide(&[ServerEdit::ClearThinking { keep }], 0, &p);
        // The open cycle is one turn: both of its thinkings stay, although a result stands between
        // them.
        assert_eq!((run(Some(1)).thinking, run(Some(1)).applied.thinking_tokens), (vec![1], 7));
        // A turn without thinking does not count.
        assert_eq!(run(Some(2)).thinking, [] as [usize; 0]);
        assert_eq!(run(None), Decision::default());
    }

    #[test]
    fn what_stands_before_the_last_compaction_is_ignored_and_not_counted() {
        let p = pieces(&[
            (System, 10),
            (User, 90),
            (Call("a", "t"), 10),
            (Result("a"), 90),
            (Compaction, 20),
            (Call("b", "t"), 10),
            (Result("b"), 60),
        ]);
        let d = decide(&[clear(ClearTrigger::InputTokens(101), 0, 0)], 0, &p);
        assert_eq!((d.ignored, d.results), (vec![1, 2, 3], vec![]));
        let d = decide(&[clear(ClearTrigger::InputTokens(100), 0, 0)], 0, &p);
        assert_eq!(d.results, [6]);
    }
    #[test]
    fn deleted_results_are_the_named_ones_only() {
        let output = |id: &str| {
            let mut d = Draft::text(BlockKind::Output, Role::Tool, id);
            d.call = Some(Arc::new(CallRef { id: id.into(), name: "t".into() }));
            d.build(MessageId(0), vec![])
        };
        let edits = [ServerEdit::CacheEdits { results: vec!["b".into()] }];
        let shown: Vec<String> = without_results(vec![output("a"), output("b")], &edits)
            .iter()
            .map(|b| b.text.to_string())
            .collect();
        assert_eq!(shown, ["a", CLEARED]);
    }
}
