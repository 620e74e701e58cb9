//! The prefixes of a request's prompt, for the cache, without building the prompt.
//!
//! A conversation grows at its end, so an outline is updated from one request to the next, from the
//! first message that differs.

use std::sync::Arc;

use ctxbench_core::block::Block;
use ctxbench_core::model::Counting;
use ctxbench_core::request::{Request, Tools};
use ctxbench_core::usage::Ttl;

use crate::cache::Prefix;
use crate::wire::Wire;
use crate::wire::plan::{self};
use crate::wire::slot::BlockForm;

/// The prefixes of the newest prompt of a conversation, equal to those of
/// [`prompt_of`](crate::wire::WireFormat::prompt_of).
#[derive(Debug)]
pub struct Outline {
    wire: Wire,
    setting: Option<Setting>,
    blocks: Vec<Arc<Block>>,
    /// Number of items before each block.
    items_before: Vec<usize>,
    /// Prefix before the first item, including tool definitions.
    base: Prefix,
    /// Prefix of the tool definitions, if any, and prefixes of the items.
    prefixes: Vec<Prefix>,
    items: Vec<Counts>,
}

/// Counts of all items up to one.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// Number of thinking items.
    thinking: usize,
    /// Number of compactions and compaction triggers.
    compactions: usize,
}

/// Parameters of a request that affect the layout, except its blocks.
#[derive(Clone, Debug)]
struct Setting {
    model: Arc<str>,
    counting: Counting,
    tools: Option<Arc<Tools>>,
    breakpoints: Vec<usize>,
    ttl: Ttl,
    keep_messages: bool,
}

impl Setting {
    fn new(request: &Request) -> Setting {
        Setting {
            model: request.model.name.clone(),
            counting: request.model.counting,
            tools: request.tools.clone(),
            breakpoints: request.breakpoints.clone(),
            ttl: request.ttl,
            keep_messages: request.keep_messages,
        }
    }

    /// Returns whether both have the same layout except breakpoints.
    fn is_like(&self, o: &Setting) -> bool {
        let tools = match (&self.tools, &o.tools) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (a, b) => a.is_none() && b.is_none(),
        };
        tools
            && self.counting == o.counting
            && (&self.model, self.ttl, self.keep_messages) == (&o.model, o.ttl, o.keep_messages)
    }

    /// Returns the first breakpoint that only one of the two settings has.
    fn first_difference(&self, o: &Setting) -> usize {
        let only = |a: &Setting, b: &Setting| {
            a.breakpoints.iter().copied().filter(|at| !b.breakpoints.contains(at)).min()
        };
        only(self, o).into_iter().chain(only(o, self)).min().unwrap_or(usize::MAX)
    }
}

impl Outline {
    /// Creates an empty outline.
    pub fn new(wire: Wire) -> Outline {
        Outline {
            wire,
            setting: None,
            blocks: Vec::new(),
            items_before: Vec::new(),
            base: Prefix::empty(""),
            prefixes: Vec::new(),
            items: Vec::new(),
        }
    }

    /// Returns whether a request begins with the same block as the last one, so that an update may be
    /// cheap.
    pub fn begins_like(&self, request: &Request) -> bool {
        matches!((self.blocks.first(), request.blocks.first()), (Some(a), Some(b)) if Arc::ptr_eq(a, b))
    }

    /// Updates the outline to a request that sends all of its blocks.
    pub fn follow(&mut self, request: &Request) {
        let setting = Setting::new(request);
        let by = &request.model.counting;
        let from = self.unchanged(&setting, &request.blocks);
        if from == 0 {
            self.base = Prefix::empty(&request.model.name);
            self.prefixes.clear();
            if let Some(t) = &request.tools {
                self.base = self.base.with_tools(t.hash(), t.tokens(by), None);
                self.prefixes.push(self.base);
            }
        }
        let tools = usize::from(request.tools.is_some());
        let items = self.items_before.get(from).copied().unwrap_or(0);
        self.prefixes.truncate(tools + items);
        self.items.truncate(items);
        self.items_before.truncate(from);
        self.blocks.truncate(from);
        self.blocks.extend_from_slice(&request.blocks[from..]);
        let slots = plan::plan_from(self.wire, request, from);
        let mut each = vec![0; request.blocks.len() - from];
        slots.iter().for_each(|s| each[s.block - from] += 1);
        let mut before = items;
        for n in each {
            self.items_before.push(before);
            before += n;
        }
        let mut counts = self.items.last().copied().unwrap_or_default();
        for slot in &slots {
            let item = self.wire.item(slot, &request.blocks[slot.block]);
            let last = self.prefixes.last().copied().unwrap_or(self.base);
            self.prefixes.push(last.with(&item, by));
            counts.thinking += usize::from(slot.show == BlockForm::Reasoning);
            let compaction = matches!(slot.show, BlockForm::Compaction | BlockForm::Trigger);
            counts.compactions += usize::from(compaction);
            self.items.push(counts);
        }
        self.setting = Some(setting);
    }

    /// Returns the number of leading blocks with an unchanged layout.
    fn unchanged(&self, setting: &Setting, blocks: &[Arc<Block>]) -> usize {
        let Some(old) = self.setting.as_ref().filter(|old| old.is_like(setting)) else { return 0 };
        let same = self.blocks.iter().zip(blocks).take_while(|(a, b)| Arc::ptr_eq(a, b)).count();
        // The last block may have another layout because it is the last.
        let max = same
            .min(self.blocks.len().saturating_sub(1))
            .min(blocks.len().saturating_sub(1))
            .min(old.first_difference(setting));
        (1..=max).rev().find(|&at| plan::begins_message(self.wire, blocks, at)).unwrap_or(0)
    }

    /// Returns the prefixes in order.
    pub fn prefixes(&self) -> &[Prefix] {
        &self.prefixes
    }

    /// Returns the billed tokens of the prompt.
    pub fn tokens(&self) -> u64 {
        self.prefixes.last().map_or(0, |p| p.tokens)
    }

    /// Returns whether the prompt contains thinking.
    pub fn has_thinking(&self) -> bool {
        self.items.last().is_some_and(|n| n.thinking > 0)
    }

    /// Returns whether the prompt contains a compaction of the provider, or a trigger.
    pub fn has_compaction(&self) -> bool {
        self.items.last().is_some_and(|n| n.compactions > 0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use ctxbench_core::block::{BlockKind, Draft, MessageId, Role};

    use super::*;
    use crate::cache::prefixes;
    use crate::prompt::Content;
    use crate::wire::ALL;
    use crate::wire::properties::{any_wire, model, request};

    /// Computes the prefixes of a request from its prompt.
    fn by_prompt(wire: Wire, request: &Request) -> (Vec<Prefix>, bool, bool) {
        let prompt = wire.prompt_of(request);
        let all = prefixes(&prompt, &request.model.counting);
        let any = |of: fn(&Content) -> bool| prompt.items.iter().any(|i| of(&i.content));
        let thinking = any(|c| matches!(c, Content::Reasoning { .. }));
        let compaction =
            any(|c| matches!(c, Content::Compaction { .. } | Content::CompactionTrigger(_)));
        (all, thinking, compaction)
    }

    /// A breakpoint on an item that allows none moves to an earlier one. Tests every short conversation
    /// with at most one breakpoint at each position, then a shorter or longer one.
    #[test]
    fn a_breakpoint_that_moves_is_followed() {
        let kinds = [
            (BlockKind::User, Role::User, "words"),
            (BlockKind::User, Role::User, ""),
            (BlockKind::Assistant, Role::Assistant, "words"),
            (BlockKind::Reasoning, Role::Assistant, "words"),
            (BlockKind::CompactionTrigger, Role::User, ""),
        ];
        let conversations = (0..kinds.len().pow(4)).map(|code| -> Vec<Arc<Block>> {
            let kind = |at: usize| kinds[code / kinds.len().pow(at as u32) % kinds.len()];
            let block = |at: usize| {
                let (kind, role, text) = kind(at);
                Draft::text(kind, role, text).build(MessageId(at as u32), vec![])
            };
            (0..4).map(block).collect()
        });
        let of = |blocks: &[Arc<Block>], breakpoints: Vec<usize>| Request {
            breakpoints,
            ..Request::new(model(), blocks.to_vec())
        };
        for blocks in conversations {
            for &wire in ALL {
                // Number of blocks, and position of the breakpoint; the last means none.
                let shown = || (1..=4).flat_map(|end| (0..=end).map(move |at| (end, at)));
                for (from, to) in shown().flat_map(|from| shown().map(move |to| (from, to))) {
                    let request = |(end, at): (usize, usize)| {
                        of(&blocks[..end], (at < end).then_some(at).into_iter().collect())
                    };
                    let mut outline = Outline::new(wire);
                    outline.follow(&request(from));
                    outline.follow(&request(to));
                    let (all, ..) = by_prompt(wire, &request(to));
                    let kinds: Vec<BlockKind> = blocks.iter().map(|b| b.kind).collect();
                    let case = || format!("{} {kinds:?} {from:?} {to:?}", wire.name);
                    assert_eq!(outline.prefixes(), &all[..], "{}", case());
                }
            }
        }
    }

    proptest! {
        #[test]
        fn outline_equals_prefixes_of_each_prompt(
            (wire, requests) in any_wire(|w| (request(w), request(w)).boxed()),
            keep_messages in any::<bool>(),
            cuts in prop::collection::vec((0..40_usize, 0..40_usize, any::<bool>()), 1..12),
        ) {
            let mut outline = Outline::new(wire);
            for request in [&requests.0, &requests.1] {
                // The same conversation grown, cut and with other breakpoints.
                for &(end, at, second) in &cuts {
                    let end = end.min(request.blocks.len());
                    let mut breakpoints = request.breakpoints.clone();
                    breakpoints.retain(|b| *b < end && (second || *b != at));
                    breakpoints.extend((at < end).then_some(at));
                    let blocks = request.blocks[..end].to_vec();
                    let request = Request { blocks, breakpoints, keep_messages, ..request.clone() };
                    outline.follow(&request);
                    let (all, thinking, compaction) = by_prompt(wire, &request);
                    prop_assert_eq!(outline.prefixes(), &all[..]);
                    prop_assert_eq!(outline.tokens(), all.last().map_or(0, |p| p.tokens));
                    prop_assert_eq!(outline.has_thinking(), thinking);
                    prop_assert_eq!(outline.has_compaction(), compaction);
                }
            }
        }
    }
}
