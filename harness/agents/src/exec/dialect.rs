//! Converts between blocks and messages in the dialect of a program.

use ctxbench_core::prelude::*;
use ctxbench_provider::Item;
use ctxbench_provider::wire::{self, Wire};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

pub(super) const NAMES: [&str; 3] = ["openai-chat", "openai-responses", "anthropic"];

pub(super) struct Dialect {
    wire: Wire,
    /// A request of this run without blocks.
    empty: Request,
    /// Whether messages contain thinking.
    shows_thinking: bool,
    /// Whether the results of parallel calls are one message.
    joins_results: bool,
}

/// A message in the dialect with its blocks, in the order of the context; some may be hidden.
type Encoded = (Arc<RawValue>, Vec<Arc<Block>>);

impl Dialect {
    /// Returns a dialect by name. `request` is any request of the run.
    pub(super) fn named(name: &str, request: Request, join_results: bool) -> Option<Dialect> {
        let at = NAMES.iter().position(|n| *n == name)?;
        let own = if name == NAMES[2] { "anthropic-messages" } else { NAMES[at] };
        let wire = wire::find(own)?;
        let empty = Request {
            blocks: vec![],
            breakpoints: vec![],
            tools: None,
            max_tokens: Some(1),
            params: Default::default(),
            server_edits: vec![],
            thread: None,
            ..request
        };
        // Not all providers read thinking in Chat Completions.
        let (shows_thinking, joins_results) = (name != NAMES[0], join_results && name == NAMES[2]);
        Some(Dialect { wire, empty, shows_thinking, joins_results })
    }

    /// Returns whether a block is part of one message with the results next to it.
    pub(super) fn joins(&self, b: &Block) -> bool {
        self.joins_results && b.kind == BlockKind::Output
    }

    /// Returns whether a program sees a block. Unrecorded text has no content to show.
    fn is_visible(&self, b: &Block) -> bool {
        match b.kind {
            BlockKind::Unrecorded => false,
            BlockKind::Reasoning => self.shows_thinking,
            _ => true,
        }
    }

    /// Converts the blocks of one message of the log. Hidden blocks belong to the next visible block,
    /// at the end to the previous one.
    pub(super) fn messages(&self, blocks: &[Arc<Block>]) -> Result<Vec<Encoded>, String> {
        let visible: Vec<Arc<Block>> =
            blocks.iter().filter(|b| self.is_visible(b)).cloned().collect();
        if visible.is_empty() {
            return self.blank(blocks);
        }
        let (list, places) = self.encode(&visible)?;
        let mut out: Vec<Encoded> = list.into_iter().map(|json| (json, vec![])).collect();
        let mut places = places.into_iter();
        let mut hidden = Vec::new();
        let mut last = 0;
        for b in blocks {
            hidden.push(b.clone());
            if self.is_visible(b) {
                last = places.next().and_then(|at| at.checked_sub(1)).unwrap_or(last);
                out[last].1.append(&mut hidden);
            }
        }
        out[last].1.append(&mut hidden);
        // A program could not leave out a message without blocks.
        out.retain(|(_, blocks)| !blocks.is_empty());
        Ok(out)
    }

    /// Returns an empty message for blocks that are all hidden.
    fn blank(&self, blocks: &[Arc<Block>]) -> Result<Vec<Encoded>, String> {
        let Some(first) = blocks.first() else { return Ok(vec![]) };
        let (kind, role) = match first.role {
            Role::Assistant => (BlockKind::Assistant, Role::Assistant),
            _ => (BlockKind::User, Role::User),
        };
        let empty = Draft::text(kind, role, "").build(first.message, vec![]);
        let (list, _) = self.encode(&[empty])?;
        let json = list.into_iter().next().ok_or("an empty message cannot be encoded")?;
        Ok(vec![(json, blocks.to_vec())])
    }

    /// Returns the encoded messages and the number, from 1, of the message of each block.
    fn encode(&self, blocks: &[Arc<Block>]) -> Result<(Vec<Arc<RawValue>>, Vec<usize>), String> {
        let request = Request { blocks: blocks.to_vec(), ..self.empty.clone() };
        let encoded = self.wire.encode(&request);
        let list = self.list(&encoded.body)?;
        if encoded.messages.iter().any(|at| *at > list.len()) {
            return Err("this dialect cannot represent a message of the session".into());
        }
        Ok((list, encoded.messages))
    }

    fn list(&self, body: &[u8]) -> Result<Vec<Arc<RawValue>>, String> {
        let mut body: std::collections::HashMap<&str, Box<RawValue>> =
            serde_json::from_slice(body).map_err(|e| e.to_string())?;
        let list =
            body.remove(self.wire.rules.conversation_field).ok_or("the request has no messages")?;
        let list: Vec<Box<RawValue>> =
            serde_json::from_str(list.get()).map_err(|e| e.to_string())?;
        Ok(list.into_iter().map(Arc::from).collect())
    }

    fn items(&self, message: &RawValue) -> Result<Vec<Item>, String> {
        let (field, model) = (self.wire.rules.conversation_field, &self.empty.model.name);
        let model = serde_json::to_string(&**model).map_err(|e| e.to_string())?;
        let body =
            format!("{{\"model\":{model},\"max_tokens\":1,\"{field}\":[{}]}}", message.get());
        let path = (self.wire.path)(&self.empty.model.name);
        let prompt = self.wire.decode(&path, body.as_bytes()).map_err(|e| {
            format!("{e}, in the message {}", super::protocol::clipped(message.get()))
        })?;
        Ok(prompt.items)
    }

    /// Returns the blocks of a message that the program has altered. Unchanged and hidden blocks stay.
    pub(super) fn with_text(
        &self,
        was: &[Arc<Block>],
        message: &RawValue,
    ) -> Result<Vec<Arc<Block>>, String> {
        let mut items = self.items(message)?;
        // Some programs send an empty text along with calls.
        if items.len() > 1 {
            items.retain(has_content);
        }
        let mut items: Vec<Option<Item>> = items.into_iter().map(Some).collect();
        let mut out = Vec::new();
        for b in was {
            if !self.is_visible(b) {
                out.push(b.clone());
                continue;
            }
            let found = items.iter_mut().find(|i| i.as_ref().is_some_and(|i| corresponds(i, b)));
            if let Some(item) = found.and_then(Option::take) {
                out.push(altered_block(b, item));
            }
        }
        let (id, origin) = match was.first() {
            Some(b) => (b.message, b.origin.clone()),
            None => (MessageId(u32::MAX), Origins::default()),
        };
        for item in items.into_iter().flatten() {
            out.push(draft(&item, BlockKind::User)?.build(id, origin.clone()));
        }
        Ok(out)
    }

    /// Returns drafts of new text. User text gets `kind`.
    pub(super) fn drafts(&self, message: &RawValue, kind: BlockKind) -> Result<Vec<Draft>, String> {
        let items = self.items(message)?;
        items.iter().filter(|i| has_content(i)).map(|i| draft(i, kind)).collect()
    }
}

/// Returns whether an item of an altered message corresponds to a block.
fn has_content(item: &Item) -> bool {
    !item.is_text() || !item.text().is_empty()
}

fn corresponds(item: &Item, b: &Block) -> bool {
    let is_own = |kind| matches!(kind, BlockKind::Call | BlockKind::Output | BlockKind::Reasoning);
    let url = |d: &Draft| d.media.as_ref().map(|m| m.url.clone());
    match item.kind {
        BlockKind::Call | BlockKind::Output => b.kind == item.kind && b.call_id() == item.call_id(),
        BlockKind::Reasoning => b.kind == BlockKind::Reasoning,
        BlockKind::Image => url(b) == url(item),
        _ => b.media.is_none() && !is_own(b.kind),
    }
}

/// Returns the block with the content of an altered message, or the same block if it is unchanged.
fn altered_block(b: &Arc<Block>, item: Item) -> Arc<Block> {
    let text = item.text();
    let same_call = || {
        let value = |t: &str| serde_json::from_str::<Value>(t).ok();
        b.kind == BlockKind::Call && value(text).is_some_and(|v| value(&b.text) == Some(v))
    };
    let lost_media = item.kind == BlockKind::Output && item.media.is_none() && b.media.is_some();
    if !lost_media && (text == &*b.text || b.kind == BlockKind::Image || same_call()) {
        return b.clone();
    }
    b.with_text(form(&b.text, text), text)
}

/// Truncated if at least half of the rest was there before, at the beginning or the end; else
/// cleared.
fn form(before: &str, after: &str) -> BlockForm {
    let same = |(a, b): &(u8, u8)| a == b;
    let head = before.bytes().zip(after.bytes()).take_while(same).count();
    let rest = after.len().min(before.len()) - head;
    let tail = before.bytes().rev().zip(after.bytes().rev()).take(rest).take_while(same).count();
    if after.len() < before.len() && 2 * (head + tail) >= after.len() && !after.is_empty() {
        BlockForm::Truncated
    } else {
        BlockForm::Cleared
    }
}

/// Returns the draft of a new block. Text that is not the model's gets `kind`.
fn draft(item: &Item, kind: BlockKind) -> Result<Draft, String> {
    if matches!(item.kind, BlockKind::Compaction | BlockKind::CompactionTrigger) {
        return Err("a program cannot request a compaction by the provider".into());
    }
    let is_text = item.is_text() && item.role != Role::Assistant;
    let kind = if is_text { kind } else { item.kind };
    Ok(Draft { kind, form: BlockForm::Synthetic, ..item.draft() })
}

/// Converts tool definitions of any API to those of a session.
pub(super) fn tools(json: &str) -> Vec<Value> {
    #[derive(Deserialize)]
    struct DialectTool {
        name: Option<String>,
        description: Option<String>,
        input_schema: Option<Value>,
        parameters: Option<Value>,
        function: Option<Box<DialectTool>>,
    }
    fn definition(t: DialectTool) -> Value {
        if let Some(function) = t.function {
            return definition(*function);
        }
        let schema = t.input_schema.or(t.parameters).unwrap_or_else(|| serde_json::json!({}));
        let (name, description) = (t.name.unwrap_or_default(), t.description.unwrap_or_default());
        serde_json::json!({"name": name, "description": description, "input_schema": schema})
    }
    let all: Vec<DialectTool> = serde_json::from_str(json).unwrap_or_default();
    all.into_iter().map(definition).collect()
}
