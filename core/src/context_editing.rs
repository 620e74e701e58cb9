//! Context editing by the provider: clears thinking and tool results, on request or by the model's
//! default. The server applies it to decoded prompts, clients and measurements to requests; both are
//! lists of [`PromptItem`]s.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use rapidhash::{HashMapExt, RapidHashMap as HashMap};

use crate::block::{Block, BlockForm, BlockKind, Draft, Role, is_system};
use crate::model::{Counting, Model};
use crate::request::{Applied, ClearInputs, ClearTrigger, Request, ServerEdit};
use crate::tokens::Size;

/// Replaces a cleared result. The provider's own text is not published.
const CLEARED: &str = "(cleared by the provider)";
/// Replaces cleared call arguments: the wire requires an object.
const CLEARED_INPUT: &str = "{}";
/// Minimum trigger of `compact_20260112`, input tokens (docs/sources/anthropic-api.md
/// §2.3).
pub const MIN_COMPACT_TRIGGER: u64 = 50_000;

/// The kind of a prompt item, as context editing sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemKind<'a> {
    /// Text outside the messages.
    System,
    /// A user message; begins a turn unless it is next to tool results.
    User,
    Thinking,
    /// A tool call: id and tool name.
    Call(&'a str, &'a str),
    /// A tool result: id of the call.
    Result(&'a str),
    /// A compaction with content. A provider with context editing ignores everything before it.
    Compaction,
    Other,
}

impl ItemKind<'_> {
    /// Returns the kind of a content.
    pub fn of(content: &Draft, is_outside_messages: bool) -> ItemKind<'_> {
        match (content.kind, content.call.as_deref()) {
            _ if is_outside_messages => ItemKind::System,
            (BlockKind::Call, Some(c)) => ItemKind::Call(&c.id, &c.name),
            (BlockKind::Output, Some(c)) => ItemKind::Result(&c.id),
            (BlockKind::Reasoning, _) => ItemKind::Thinking,
            (BlockKind::Compaction, _) if !content.text.is_empty() || content.opaque.is_some() => {
                ItemKind::Compaction
            }
            (BlockKind::Compaction | BlockKind::CompactionTrigger, _) => ItemKind::Other,
            _ if content.role == Role::Assistant => ItemKind::Other,
            _ => ItemKind::User,
        }
    }
}

/// An item of a prompt: a block of a request, or an item that a server decoded.
pub trait PromptItem: Sized {
    /// Returns the kind; `head` is true while only system text precedes the item.
    fn kind(&self, head: bool) -> ItemKind<'_>;
    /// Returns the billed tokens.
    fn tokens(&self, by: &Counting) -> u64;
    /// Returns a result or call with `text` as content.
    fn cleared(&self, text: &str) -> Self;
    /// Clears the item like [`PromptItem::cleared`], but keeps the cached prefix valid.
    fn deleted(&self, text: &str) -> Self {
        self.cleared(text)
    }
}

impl PromptItem for Arc<Block> {
    /// System text after the first message is a message on the wire.
    fn kind(&self, head: bool) -> ItemKind<'_> {
        ItemKind::of(self, head && is_system(self))
    }
    fn tokens(&self, by: &Counting) -> u64 {
        Block::tokens(self, by)
    }
    fn cleared(&self, text: &str) -> Self {
        self.with_text(BlockForm::Cleared, text)
    }
}

/// An analysed prompt.
struct Analysis<'a> {
    /// Kind and billed tokens of each item.
    pieces: Vec<(ItemKind<'a>, u64)>,
    counting: Counting,
    /// Positions of messages before the last compaction.
    ignored: Vec<usize>,
}

impl<'a> Analysis<'a> {
    /// Analyses a prompt. A provider with context editing ignores everything before a compaction.
    fn new<P: PromptItem>(prompt: &'a [P], model: &Model) -> Self {
        let (counting, drops) = (model.counting, model.capabilities.context_editing);
        let pieces: Vec<_> =
            kinds(prompt).zip(prompt).map(|(what, p)| (what, p.tokens(&counting))).collect();
        let compaction = pieces.iter().rposition(|p| p.0 == ItemKind::Compaction);
        let before = 0..compaction.filter(|_| drops).unwrap_or(0);
        let ignored = before.filter(|&i| pieces[i].0 != ItemKind::System).collect();
        Analysis { pieces, counting, ignored }
    }

    /// Returns the items that are not ignored, with their positions.
    fn rest(&self) -> impl Iterator<Item = (usize, ItemKind<'a>)> {
        let from = self.ignored.last().map_or(0, |i| i + 1);
        self.pieces.iter().map(|p| p.0).enumerate().skip(from)
    }

    fn tokens(&self, at: &[usize]) -> u64 {
        at.iter().map(|&i| self.pieces[i].1).sum()
    }

    /// Returns positions of thinking by turn, oldest first. Earlier turns without thinking are left
    /// out; the newest counts even without thinking, so that keeping one turn equals the default of
    /// models that leave out earlier thinking.
    fn thinking_turns(&self) -> Vec<Vec<usize>> {
        let starts = turn_starts(self.rest());
        let mut turns = vec![Vec::new(); starts.len() + 1];
        for (i, _) in self.rest().filter(|(_, what)| *what == ItemKind::Thinking) {
            turns[starts.partition_point(|&start| start <= i)].push(i);
        }
        let newest = turns.pop();
        turns.retain(|t| !t.is_empty());
        turns.extend(newest);
        turns
    }

    /// Returns the tool uses that may be cleared, oldest first.
    fn tool_uses(&self, exclude: &[String], inputs: &ClearInputs) -> Vec<ToolUse> {
        let mut calls: HashMap<&str, (usize, &str)> = HashMap::new();
        let placeholder = self.counting.block(Size::text(CLEARED));
        let mut out = Vec::new();
        for (i, what) in self.rest() {
            match what {
                ItemKind::Call(id, name) => drop(calls.insert(id, (i, name))),
                ItemKind::Result(id) => {
                    let call = calls.get(id);
                    if call.is_some_and(|(_, name)| exclude.iter().any(|e| e == name)) {
                        continue;
                    }
                    let input = call.filter(|(_, name)| inputs.includes(name));
                    let of_input = input.map_or(0, |&(at, name)| {
                        let left = self.counting.block(Size::call(name, CLEARED_INPUT));
                        self.pieces[at].1.saturating_sub(left)
                    });
                    let freed = self.pieces[i].1.saturating_sub(placeholder) + of_input;
                    out.push(ToolUse { result: i, input: input.map(|c| c.0), freed });
                }
                _ => {}
            }
        }
        out
    }
}

fn kinds<P: PromptItem>(prompt: &[P]) -> impl Iterator<Item = ItemKind<'_>> {
    let mut head = true;
    prompt.iter().map(move |p| {
        let what = p.kind(head);
        head &= what == ItemKind::System;
        what
    })
}

/// Returns the positions at which turns begin. Items between two items of the model form one message;
/// if it contains a tool result, it continues the open tool cycle.
fn turn_starts<'a>(pieces: impl Iterator<Item = (usize, ItemKind<'a>)>) -> Vec<usize> {
    let mut starts = Vec::new();
    let (mut said, mut results) = (None, false);
    for (i, what) in pieces {
        match what {
            ItemKind::User => said = said.or(Some(i)),
            ItemKind::Result(_) => results = true,
            ItemKind::System => {}
            _ => {
                starts.extend(said.take().filter(|_| !results));
                results = false;
            }
        }
    }
    starts.extend(said.filter(|_| !results));
    starts
}

/// Returns the positions of thinking that the provider leaves out by default: that of all turns but
/// the newest, unless the model keeps it or an edit says otherwise.
fn left_out<P: PromptItem>(model: &Model, edits: &[ServerEdit], prompt: &[P]) -> Vec<usize> {
    let has_rule = || edits.iter().any(|e| matches!(e, ServerEdit::ClearThinking { .. }));
    if model.keeps_thinking || has_rule() {
        return Vec::new();
    }
    if !kinds(prompt).any(|what| what == ItemKind::Thinking) {
        return Vec::new();
    }
    let pieces = || kinds(prompt).enumerate();
    let newest = turn_starts(pieces()).last().copied().unwrap_or(0);
    let thinking = pieces().take(newest).filter(|(_, what)| *what == ItemKind::Thinking);
    thinking.map(|(i, _)| i).collect()
}

/// Returns the billed tokens of a prompt before requested edits.
pub fn prompt_tokens<P: PromptItem>(model: &Model, edits: &[ServerEdit], prompt: &[P]) -> u64 {
    let by = &model.counting;
    let all: u64 = prompt.iter().map(|p| p.tokens(by)).sum();
    all - left_out(model, edits, prompt).iter().map(|&i| prompt[i].tokens(by)).sum::<u64>()
}

/// Removes the items that the provider leaves out by default.
pub fn visible<P: PromptItem>(model: &Model, edits: &[ServerEdit], mut prompt: Vec<P>) -> Vec<P> {
    let gone = left_out(model, edits, &prompt);
    if !gone.is_empty() {
        remove_indices(&mut prompt, &gone);
    }
    prompt
}

fn remove_indices<P>(prompt: &mut Vec<P>, gone: &[usize]) {
    let mut shown = vec![true; prompt.len()];
    gone.iter().for_each(|&i| shown[i] = false);
    let mut shown = shown.into_iter();
    prompt.retain(|_| shown.next().unwrap_or(true));
}

struct ToolUse {
    result: usize,
    input: Option<usize>,
    freed: u64,
}

/// The edits of a prompt, as positions of items in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Decision {
    /// Items that the model does not see: ignored messages and cleared thinking.
    gone: Vec<usize>,
    /// Results that become a placeholder.
    results: Vec<usize>,
    /// Calls with arguments that are emptied.
    inputs: Vec<usize>,
    applied: Applied,
}

impl Decision {
    fn clear_thinking(&mut self, turns: Vec<Vec<usize>>, old: usize) {
        self.gone.extend(turns.into_iter().take(old).flatten());
    }

    fn clear_uses(&mut self, old: &[ToolUse]) {
        self.results = old.iter().map(|u| u.result).collect();
        self.inputs = old.iter().filter_map(|u| u.input).collect();
    }

    fn changes_nothing(&self) -> bool {
        self.gone.is_empty() && self.results.is_empty() && self.inputs.is_empty()
    }

    fn apply<P: PromptItem>(&self, mut prompt: Vec<P>) -> Vec<P> {
        for (at, text) in [(&self.results, CLEARED), (&self.inputs, CLEARED_INPUT)] {
            at.iter().for_each(|&i| prompt[i] = prompt[i].cleared(text));
        }
        remove_indices(&mut prompt, &self.gone);
        prompt
    }
}

/// Decides the edits by the rules of docs/sources/anthropic-sdk.md §3. `fixed` is the size of the
/// tool definitions, tokens.
fn decide(edits: &[ServerEdit], fixed: u64, prompt: &Analysis<'_>) -> Decision {
    let mut d = Decision { gone: prompt.ignored.clone(), ..Decision::default() };
    let all = prompt.pieces.iter().map(|p| p.1).sum::<u64>();
    let mut total = fixed + all - prompt.tokens(&prompt.ignored);
    for edit in edits {
        match edit {
            ServerEdit::ClearThinking { keep: Some(keep) } => {
                let turns = prompt.thinking_turns();
                let old = turns.len().saturating_sub(*keep);
                d.clear_thinking(turns, old);
                d.applied.cleared_thinking_turns = old;
                d.applied.thinking_tokens = prompt.tokens(&d.gone[prompt.ignored.len()..]);
                total -= d.applied.thinking_tokens;
            }
            ServerEdit::ClearToolUses { trigger, keep, clear_at_least, exclude, inputs } => {
                let uses = prompt.tool_uses(exclude, inputs);
                let results = prompt.rest().filter(|(_, what)| matches!(what, ItemKind::Result(_)));
                let reached = match *trigger {
                    ClearTrigger::InputTokens(n) => total >= n,
                    ClearTrigger::ToolUses(n) => results.count() as u64 >= n,
                };
                let old = &uses[..uses.len().saturating_sub(*keep)];
                let freed: u64 = old.iter().map(|u| u.freed).sum();
                if !reached || old.is_empty() || freed < *clear_at_least {
                    continue;
                }
                d.clear_uses(old);
                (d.applied.cleared_tool_uses, d.applied.cleared_tokens) = (old.len(), freed);
                total -= freed;
            }
            ServerEdit::ClearThinking { keep: None }
            | ServerEdit::Compact { .. }
            | ServerEdit::CacheEdits { .. } => {}
        }
    }
    d
}

/// Reconstructs the edits that a provider reported: it clears the oldest first.
fn reported(edits: &[ServerEdit], applied: Applied, prompt: &Analysis<'_>) -> Decision {
    let mut d = Decision { gone: prompt.ignored.clone(), applied, ..Decision::default() };
    d.clear_thinking(prompt.thinking_turns(), applied.cleared_thinking_turns);
    let uses = clearable(edits, prompt);
    d.clear_uses(&uses[..applied.cleared_tool_uses.min(uses.len())]);
    d
}

/// Returns a prompt as the provider edits it for the model, and the provider's report. `fixed` is the
/// size of the tool definitions, tokens.
pub fn apply<P: PromptItem>(
    model: &Model,
    edits: &[ServerEdit],
    fixed: u64,
    prompt: Vec<P>,
) -> (Vec<P>, Applied) {
    let prompt = without_results(visible(model, edits, prompt), edits);
    if edits.is_empty() && prompt.iter().all(|p| p.kind(false) != ItemKind::Compaction) {
        return (prompt, Applied::default());
    }
    let d = decide(edits, fixed, &Analysis::new(&prompt, model));
    (d.apply(prompt), d.applied)
}

impl Request {
    /// Returns the billed tokens of tools and blocks, before requested edits.
    pub fn tokens(&self) -> u64 {
        self.tools_tokens() + prompt_tokens(&self.model, &self.server_edits, &self.blocks)
    }
}

/// Predicts the provider's edits of a request.
pub fn will_apply(request: &Request) -> Applied {
    if request.server_edits.is_empty() {
        return Applied::default();
    }
    let fixed = request.tools_tokens();
    let blocks = after_deletions(request);
    decide(&request.server_edits, fixed, &Analysis::new(&blocks, &request.model)).applied
}

/// Returns the tokens of a request after the provider's edits.
pub fn shown_tokens(request: &Request) -> u64 {
    let (model, fixed) = (&request.model, request.tools_tokens());
    let (shown, _) = apply(model, &request.server_edits, fixed, request.blocks.clone());
    fixed + shown.iter().map(|b| b.tokens(&model.counting)).sum::<u64>()
}

/// Returns the first block that clearing more results would change, if some are already cleared.
/// Everything before it is the same in the next request.
pub fn next_change(request: &Request) -> Option<usize> {
    let cleared = will_apply(request).cleared_tool_uses;
    (cleared > 0).then_some(())?;
    let prompt = Analysis::new(&request.blocks, &request.model);
    change_after(cleared, &request.server_edits, &prompt)
}

fn change_after(cleared: usize, edits: &[ServerEdit], prompt: &Analysis<'_>) -> Option<usize> {
    let uses = clearable(edits, prompt);
    uses.get(cleared..)?.iter().map(|u| u.input.unwrap_or(u.result)).min()
}

/// Returns the tool uses that the edits of a request may clear, oldest first.
fn clearable(edits: &[ServerEdit], prompt: &Analysis<'_>) -> Vec<ToolUse> {
    let rule = edits.iter().find_map(|e| match e {
        ServerEdit::ClearToolUses { exclude, inputs, .. } => Some((&**exclude, inputs)),
        _ => None,
    });
    let (exclude, inputs) = rule.unwrap_or((&[], &ClearInputs::None));
    prompt.tool_uses(exclude, inputs)
}

/// Returns the blocks of a request without thinking left out by default and without deleted results.
fn after_deletions(request: &Request) -> Cow<'_, [Arc<Block>]> {
    let (model, edits) = (&request.model, &request.server_edits);
    let gone = left_out(model, edits, &request.blocks);
    if gone.is_empty() && edits.iter().all(|e| deleted_results(e).is_empty()) {
        return Cow::Borrowed(&request.blocks);
    }
    let mut blocks = request.blocks.clone();
    remove_indices(&mut blocks, &gone);
    Cow::Owned(without_results(blocks, edits))
}

/// Returns a request as the provider edited it, with the amounts of `applied`: without thinking that
/// the model does not keep, deleted results, and ignored messages before the last compaction; with
/// the oldest results and thinking cleared.
pub fn edited_view(request: &Request, applied: Applied) -> Cow<'_, [Arc<Block>]> {
    let blocks = after_deletions(request);
    if applied == Applied::default() && blocks.iter().all(|b| b.kind != BlockKind::Compaction) {
        return blocks;
    }
    let d = reported(&request.server_edits, applied, &Analysis::new(&blocks, &request.model));
    if d.changes_nothing() {
        return blocks;
    }
    Cow::Owned(d.apply(blocks.into_owned()))
}

/// Removes the results that `cache_edits` deletes: the model does not see them, and they are not
/// billed.
fn without_results<P: PromptItem>(mut prompt: Vec<P>, edits: &[ServerEdit]) -> Vec<P> {
    let gone: HashSet<&str> = edits.iter().flat_map(deleted_results).map(|id| &**id).collect();
    if gone.is_empty() {
        return prompt;
    }
    for piece in &mut prompt {
        if matches!(piece.kind(false), ItemKind::Result(id) if gone.contains(id)) {
            *piece = piece.deleted(CLEARED);
        }
    }
    prompt
}

/// Returns the calls with results that an edit deletes from the cached prefix.
pub fn deleted_results(edit: &ServerEdit) -> &[Arc<str>] {
    match edit {
        ServerEdit::CacheEdits { results } => results,
        _ => &[],
    }
}

#[cfg(test)]
#[path = "context_editing_tests.rs"]
mod tests;
