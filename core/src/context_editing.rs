//! Context editing on the provider's side: which thinking and which tool results go, asked for or
//! by the model's default. The server applies it to what it decoded; clients and measurements need
//! to know what it left of a request. Both are a [`Piece`] here, so it is decided once.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use rapidhash::{HashMapExt, RapidHashMap as HashMap};

use crate::block::{Block, BlockKind, Form, Role};
use crate::model::{Counting, Model};
use crate::request::{Applied, ClearInputs, ClearTrigger, Request, ServerEdit};
use crate::strategy::is_system;
use crate::tokens::Size;

/// What is shown in the place of a result that the provider cleared; its real words are not
/// published.
const CLEARED: &str = "(cleared by the provider)";
/// What is shown in the place of cleared call arguments: this wire takes nothing but an object.
const CLEARED_INPUT: &str = "{}";
/// Smallest trigger that `compact_20260112` takes, input tokens (docs/sources/anthropic-api.md
/// §2.3).
pub const LEAST_COMPACT_TRIGGER: u64 = 50_000;

/// What a piece of a prompt is to context editing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What<'a> {
    /// Stands beside the messages.
    System,
    /// What the user says; begins a turn unless tool results stand beside it.
    User,
    /// Thinking of the model.
    Thinking,
    /// A tool call: id and tool.
    Call(&'a str, &'a str),
    /// A tool result: id of its call.
    Result(&'a str),
    /// A compaction with content; a provider that edits contexts ignores everything before it.
    Compaction,
    /// Anything else.
    Other,
}

/// A piece of a prompt: a block of a request, or what a server decoded of one.
pub trait Piece: Sized {
    /// What it is; `head` = nothing but system text stands before it.
    fn what(&self, head: bool) -> What<'_>;
    /// Billed tokens.
    fn tokens(&self, by: &Counting) -> u64;
    /// A result or a call with other words in the place of its own.
    fn cleared(&self, words: &str) -> Self;
    /// The same where the cached prefix stays valid.
    fn deleted(&self, words: &str) -> Self;
}

impl Piece for Arc<Block> {
    /// System text behind the first message is a message on the wire.
    fn what(&self, head: bool) -> What<'_> {
        match (self.kind, self.call.as_deref()) {
            _ if head && is_system(self) => What::System,
            (BlockKind::Call, Some(c)) => What::Call(&c.id, &c.name),
            (BlockKind::Output, Some(c)) => What::Result(&c.id),
            (BlockKind::Reasoning, _) => What::Thinking,
            (BlockKind::Compaction, _) if !self.text.is_empty() || self.opaque.is_some() => {
                What::Compaction
            }
            (BlockKind::Compaction | BlockKind::CompactionTrigger, _) => What::Other,
            _ if self.role == Role::Assistant => What::Other,
            _ => What::User,
        }
    }
    fn tokens(&self, by: &Counting) -> u64 {
        Block::tokens(self, by)
    }
    fn cleared(&self, words: &str) -> Self {
        self.altered(Form::Cleared, words)
    }
    fn deleted(&self, words: &str) -> Self {
        self.cleared(words)
    }
}

/// A prompt as context editing reads it.
struct Reading<'a> {
    /// What each piece is, and its billed tokens.
    pieces: Vec<(What<'a>, u64)>,
    counting: Counting,
    /// Positions of messages before the last compaction.
    ignored: Vec<usize>,
}

impl<'a> Reading<'a> {
    /// A provider that edits contexts ignores what stands before a compaction.
    fn of<P: Piece>(prompt: &'a [P], model: &Model) -> Self {
        let (counting, drops) = (model.counting, model.capabilities.context_editing);
        let pieces: Vec<_> =
            kinds(prompt).zip(prompt).map(|(what, p)| (what, p.tokens(&counting))).collect();
        let compaction = pieces.iter().rposition(|p| p.0 == What::Compaction);
        let before = 0..compaction.filter(|_| drops).unwrap_or(0);
        let ignored = before.filter(|&i| pieces[i].0 != What::System).collect();
        Reading { pieces, counting, ignored }
    }

    /// The pieces that are not ignored, with their positions.
    fn rest(&self) -> impl Iterator<Item = (usize, What<'a>)> {
        let from = self.ignored.last().map_or(0, |i| i + 1);
        self.pieces.iter().map(|p| p.0).enumerate().skip(from)
    }

    fn tokens(&self, at: &[usize]) -> u64 {
        at.iter().map(|&i| self.pieces[i].1).sum()
    }

    /// Thinking by turn, oldest turn first. Earlier turns without any are left out; the newest
    /// counts before it has thought, so that keeping one turn is the default of the models that
    /// leave earlier thinking out.
    fn thinking_turns(&self) -> Vec<Vec<usize>> {
        let starts = turn_starts(self.rest());
        let mut turns = vec![Vec::new(); starts.len() + 1];
        for (i, _) in self.rest().filter(|(_, what)| *what == What::Thinking) {
            turns[starts.partition_point(|&start| start <= i)].push(i);
        }
        let newest = turns.pop();
        turns.retain(|t| !t.is_empty());
        turns.extend(newest);
        turns
    }

    /// Tool uses that may be cleared, the oldest first.
    fn tool_uses(&self, exclude: &[String], inputs: &ClearInputs) -> Vec<ToolUse> {
        let mut calls: HashMap<&str, (usize, &str)> = HashMap::new();
        let placeholder = self.counting.block(Size::text(CLEARED));
        let mut out = Vec::new();
        for (i, what) in self.rest() {
            match what {
                What::Call(id, name) => drop(calls.insert(id, (i, name))),
                What::Result(id) => {
                    let call = calls.get(id);
                    if call.is_some_and(|(_, name)| exclude.iter().any(|e| e == name)) {
                        continue;
                    }
                    let input = call.filter(|(_, name)| inputs.takes(name));
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

/// What each piece of a prompt is.
fn kinds<P: Piece>(prompt: &[P]) -> impl Iterator<Item = What<'_>> {
    let mut head = true;
    prompt.iter().map(move |p| {
        let what = p.what(head);
        head &= what == What::System;
        what
    })
}

/// Positions at which a turn begins. What stands between two pieces of the model is one message to
/// the provider; with a tool result in it, it goes on with the open tool cycle.
fn turn_starts<'a>(pieces: impl Iterator<Item = (usize, What<'a>)>) -> Vec<usize> {
    let mut starts = Vec::new();
    let (mut said, mut results) = (None, false);
    for (i, what) in pieces {
        match what {
            What::User => said = said.or(Some(i)),
            What::Result(_) => results = true,
            What::System => {}
            _ => {
                starts.extend(said.take().filter(|_| !results));
                results = false;
            }
        }
    }
    starts.extend(said.filter(|_| !results));
    starts
}

/// Positions of the thinking that a provider leaves out of a prompt unasked: that of all turns but
/// the newest, where the model does not keep it and no edit says what stays.
fn left_out<P: Piece>(model: &Model, edits: &[ServerEdit], prompt: &[P]) -> Vec<usize> {
    let told = || edits.iter().any(|e| matches!(e, ServerEdit::ClearThinking { .. }));
    if model.keeps_thinking || told() {
        return Vec::new();
    }
    if !kinds(prompt).any(|what| what == What::Thinking) {
        return Vec::new();
    }
    let pieces = || kinds(prompt).enumerate();
    let newest = turn_starts(pieces()).last().copied().unwrap_or(0);
    let thinking = pieces().take(newest).filter(|(_, what)| *what == What::Thinking);
    thinking.map(|(i, _)| i).collect()
}

/// Billed tokens of a prompt of these pieces before any edit that was asked for.
pub fn prompt_tokens<P: Piece>(model: &Model, edits: &[ServerEdit], prompt: &[P]) -> u64 {
    let by = &model.counting;
    let all: u64 = prompt.iter().map(|p| p.tokens(by)).sum();
    all - left_out(model, edits, prompt).iter().map(|&i| prompt[i].tokens(by)).sum::<u64>()
}

/// The pieces of a prompt that its provider does not leave out unasked.
pub fn arriving<P: Piece>(model: &Model, edits: &[ServerEdit], mut prompt: Vec<P>) -> Vec<P> {
    let gone = left_out(model, edits, &prompt);
    if !gone.is_empty() {
        without(&mut prompt, &gone);
    }
    prompt
}

fn without<P>(prompt: &mut Vec<P>, gone: &[usize]) {
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

/// What context editing does to a prompt, as positions of its pieces in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Decision {
    /// Pieces that the model does not see: ignored messages, and thinking that goes.
    gone: Vec<usize>,
    /// Results that become a placeholder.
    results: Vec<usize>,
    /// Calls whose arguments become empty.
    inputs: Vec<usize>,
    /// What the provider reports.
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

    /// What it leaves of a prompt.
    fn left<P: Piece>(&self, mut prompt: Vec<P>) -> Vec<P> {
        for (at, words) in [(&self.results, CLEARED), (&self.inputs, CLEARED_INPUT)] {
            at.iter().for_each(|&i| prompt[i] = prompt[i].cleared(words));
        }
        without(&mut prompt, &self.gone);
        prompt
    }
}

/// Decides what goes, by the rules of docs/sources/anthropic-sdk.md §3. `fixed` = tokens of the
/// tool definitions.
fn decide(edits: &[ServerEdit], fixed: u64, prompt: &Reading<'_>) -> Decision {
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
                let results = prompt.rest().filter(|(_, what)| matches!(what, What::Result(_)));
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

/// The decision behind what a provider reported: as many of the oldest as it says.
fn reported(edits: &[ServerEdit], applied: Applied, prompt: &Reading<'_>) -> Decision {
    let mut d = Decision { gone: prompt.ignored.clone(), applied, ..Decision::default() };
    d.clear_thinking(prompt.thinking_turns(), applied.cleared_thinking_turns);
    let uses = clearable(edits, prompt);
    d.clear_uses(&uses[..applied.cleared_tool_uses.min(uses.len())]);
    d
}

/// A prompt as the provider shows it to the model, and what it reports. `fixed` = tokens of the
/// tool definitions.
pub fn apply<P: Piece>(
    model: &Model,
    edits: &[ServerEdit],
    fixed: u64,
    prompt: Vec<P>,
) -> (Vec<P>, Applied) {
    let prompt = without_results(arriving(model, edits, prompt), edits);
    if edits.is_empty() && prompt.iter().all(|p| p.what(false) != What::Compaction) {
        return (prompt, Applied::default());
    }
    let d = decide(edits, fixed, &Reading::of(&prompt, model));
    (d.left(prompt), d.applied)
}

/// What the provider will clear of a request.
pub fn will_apply(request: &Request) -> Applied {
    if request.server_edits.is_empty() {
        return Applied::default();
    }
    let fixed = request.tools_tokens();
    let blocks = entering(request);
    decide(&request.server_edits, fixed, &Reading::of(&blocks, &request.model)).applied
}

/// Tokens of a request as the provider will show it to the model.
pub fn shown_tokens(request: &Request) -> u64 {
    let (model, fixed) = (&request.model, request.tools_tokens());
    let (shown, _) = apply(model, &request.server_edits, fixed, request.blocks.clone());
    fixed + shown.iter().map(|b| b.tokens(&model.counting)).sum::<u64>()
}

/// The first block that clearing further results would change, where some are cleared already: what
/// stands before it stays the same from request to request.
pub fn next_change(request: &Request) -> Option<usize> {
    let cleared = will_apply(request).cleared_tool_uses;
    (cleared > 0).then_some(())?;
    let prompt = Reading::of(&request.blocks, &request.model);
    change_behind(cleared, &request.server_edits, &prompt)
}

fn change_behind(cleared: usize, edits: &[ServerEdit], prompt: &Reading<'_>) -> Option<usize> {
    let uses = clearable(edits, prompt);
    uses.get(cleared..)?.iter().map(|u| u.input.unwrap_or(u.result)).min()
}

/// The tool uses that the edits of a request may clear, the oldest first.
fn clearable(edits: &[ServerEdit], prompt: &Reading<'_>) -> Vec<ToolUse> {
    let rule = edits.iter().find_map(|e| match e {
        ServerEdit::ClearToolUses { exclude, inputs, .. } => Some((&**exclude, inputs)),
        _ => None,
    });
    let (exclude, inputs) = rule.unwrap_or((&[], &ClearInputs::None));
    prompt.tool_uses(exclude, inputs)
}

/// What of a request editing begins with.
fn entering(request: &Request) -> Cow<'_, [Arc<Block>]> {
    let (model, edits) = (&request.model, &request.server_edits);
    let gone = left_out(model, edits, &request.blocks);
    if gone.is_empty() && edits.iter().all(|e| deleted_results(e).is_empty()) {
        return Cow::Borrowed(&request.blocks);
    }
    let mut blocks = request.blocks.clone();
    without(&mut blocks, &gone);
    Cow::Owned(without_results(blocks, edits))
}

/// A request as the provider showed it to the model after clearing as much as `applied` says:
/// thinking that the model does not keep and messages before the last compaction block are left out
/// where the provider ignores them, the oldest results and thinking are cleared, deleted results
/// are gone.
pub fn edited_view(request: &Request, applied: Applied) -> Cow<'_, [Arc<Block>]> {
    let blocks = entering(request);
    if applied == Applied::default() && blocks.iter().all(|b| b.kind != BlockKind::Compaction) {
        return blocks;
    }
    let d = reported(&request.server_edits, applied, &Reading::of(&blocks, &request.model));
    if d.changes_nothing() {
        return blocks;
    }
    Cow::Owned(d.left(blocks.into_owned()))
}

/// A prompt without the results that `cache_edits` takes out: the model does not see them and
/// nobody pays for them.
fn without_results<P: Piece>(mut prompt: Vec<P>, edits: &[ServerEdit]) -> Vec<P> {
    let gone: HashSet<&str> = edits.iter().flat_map(deleted_results).map(|id| &**id).collect();
    if gone.is_empty() {
        return prompt;
    }
    for piece in &mut prompt {
        if matches!(piece.what(false), What::Result(id) if gone.contains(id)) {
            *piece = piece.deleted(CLEARED);
        }
    }
    prompt
}

/// Calls whose results an edit takes out of the cached prefix.
pub fn deleted_results(edit: &ServerEdit) -> &[Arc<str>] {
    match edit {
        ServerEdit::CacheEdits { results } => results,
        _ => &[],
    }
}

#[cfg(test)]
#[path = "context_editing_tests.rs"]
mod tests;
