//! Encoding of requests, and the prompt that a server decodes from them.

use std::sync::Arc;

use ctxbench_core::model::Counting;
use ctxbench_core::tokens::Size;
use ctxbench_core::usage::Ttl;
use ctxbench_core::{Block, BlockKind, Draft, Model, Reply, Request, Role};
use serde_json::Value;

use super::format::{Encoded, WireError, WireFormat};
use super::plan;
use super::slot::{BlockForm, Slot};
use crate::cache::{Prefix, add_prefixes};
use crate::prompt::{Item, Prompt, in_role, plain};

/// The layout and the prefixes of the last request on a wire. The next one usually begins like it, so
/// only its new blocks are laid out.
#[derive(Default)]
pub struct LastPrompt {
    terms: Option<Terms>,
    blocks: Vec<Arc<Block>>,
    breakpoints: Vec<usize>,
    slots: Vec<Slot>,
    prefixes: Vec<Prefix>,
}

/// All that decides the layout and the prefixes, without blocks and breakpoints: model, hash of the
/// tools, lifetime, and whether messages stay separate.
type Terms = (Arc<str>, Counting, Option<u64>, Ttl, bool);

fn terms_of(request: &Request) -> Terms {
    let (model, tools) = (&request.model, request.tools.as_ref().map(|t| t.hash()));
    (model.name.clone(), model.counting, tools, request.ttl, request.keep_messages)
}

impl LastPrompt {
    /// Returns the number of leading blocks that a request on the same terms shares.
    pub fn common(&self, request: &Request) -> usize {
        if self.terms.as_ref() != Some(&terms_of(request)) {
            return 0;
        }
        let pairs = self.blocks.iter().zip(&request.blocks);
        pairs.take_while(|(before, now)| Arc::ptr_eq(before, now)).count()
    }

    /// Returns the number of leading slots that a request shares. They end before a message of the
    /// model, where a layout can begin, and no breakpoint after them marks one of them.
    fn shared_slots(&self, request: &Request) -> usize {
        let common = self.common(request);
        let takes_mark = |s: &&Slot| !matches!(s.show, BlockForm::Reasoning | BlockForm::Trigger);
        let all = || request.breakpoints.iter().chain(&self.breakpoints);
        let is_end = |&at: &usize| {
            let from = self.slots[at].block;
            let before = |breakpoints: &[usize]| -> Vec<usize> {
                breakpoints.iter().copied().filter(|b| *b < from).collect()
            };
            let first = self.slots[at..].iter().find(takes_mark).map(|s| s.block);
            let marks_none = |first: usize| all().all(|b| *b < from || *b >= first);
            self.slots[at].is_assistant()
                && !self.slots[at - 1].is_assistant()
                && first.is_some_and(|first| first < common && marks_none(first))
                && before(&self.breakpoints) == before(&request.breakpoints)
        };
        (1..self.slots.len()).rev().find(is_end).unwrap_or(0)
    }
}

impl WireFormat {
    pub fn encode(&'static self, request: &Request) -> Encoded {
        let request = &*request.sent();
        let slots = plan::plan(self, request);
        let body = (self.body)(request, &slots);
        self.encoded(request, (self.path)(&request.model.name), body, &slots)
    }

    fn encoded(&self, request: &Request, path: String, body: Vec<u8>, slots: &[Slot]) -> Encoded {
        let mut messages = vec![0; request.blocks.len()];
        for s in slots {
            messages[s.block] = s.message;
        }
        let shows = slots.iter().map(|s| request.blocks[s.block].clone()).collect();
        Encoded { body, path, headers: (self.rules.headers)(request, slots), messages, shows }
    }

    /// Decodes the body of a request to a path.
    pub fn decode(&self, path: &str, body: &[u8]) -> Result<Prompt, WireError> {
        (self.decode)(path, body)
    }

    /// Encodes a request to the count endpoint, including the messages of its thread; `None` without
    /// such an endpoint.
    pub fn encode_count(&'static self, request: &Request) -> Option<Encoded> {
        let count = self.count.as_ref()?;
        let request = &Request { thread: None, ..request.clone() };
        let slots = plan::plan(self, request);
        let body = (count.body)(request, &slots);
        Some(self.encoded(request, (count.path)(&request.model.name), body, &slots))
    }

    /// Encodes a count; `original` is the number of tokens before the provider's edits, if any.
    pub fn encode_count_reply(&self, tokens: u64, original: Option<u64>) -> Vec<u8> {
        let reply = self.count.as_ref().map(|count| (count.reply)(tokens, original));
        reply.map_or_else(Vec::new, |reply| reply.to_string().into_bytes())
    }

    pub fn decode_count_reply(&self, body: &[u8]) -> Result<u64, WireError> {
        let field = self.count.as_ref().map_or("", |count| count.field);
        let reply: Value = super::json::parse(body)?;
        reply[field].as_u64().ok_or(WireError::Missing { field, in_what: "reply" })
    }

    /// Encodes the response of the compaction endpoint.
    pub fn encode_compacted(&self, prompt: &Prompt, reply: &Reply, model: &Model) -> Vec<u8> {
        match self.rules.encode_compacted {
            Some(encode) => encode(prompt, reply, model),
            None => (self.encode_reply)(reply, model),
        }
    }

    /// Converts the definitions of a session (`name`, `description`, `input_schema`) to the wire. Other
    /// values are unchanged. Build [`ctxbench_core::request::Tools`] from them once per run.
    pub fn tool_definitions(&self, definitions: &[Value]) -> Vec<Value> {
        let translate = |d: &Value| {
            let (name, schema) = (d.get("name")?, d.get("input_schema")?);
            let description = d.get("description").cloned().unwrap_or_else(|| "".into());
            (self.tool)(name, description, schema)
        };
        definitions.iter().map(|d| translate(d).unwrap_or_else(|| d.clone())).collect()
    }

    /// Builds the prompt that a server decodes from a request, without encoding: equals
    /// `decode(encode(request))`.
    pub fn prompt_of(&'static self, request: &Request) -> Prompt {
        let request = &*request.sent();
        let slots = plan::plan(self, request);
        let items = slots.iter().map(|s| self.item(s, &request.blocks[s.block])).collect();
        let edits = request.server_edits.iter();
        Prompt {
            max_tokens: (self.rules.max_tokens)(request),
            tools: request.tools.clone(),
            server_edits: edits.filter_map(|e| (self.rules.carried_edit)(e)).collect(),
            thread: request.thread.clone().filter(|_| self.rules.carries_threads),
            ..Prompt::new(request.model.name.clone(), items)
        }
    }

    /// Returns the prefixes of [`prompt_of`](Self::prompt_of), without building the prompt. `last` is of
    /// the same wire, and becomes that of the request.
    pub fn prefixes_of<'a>(
        &'static self,
        request: &Request,
        last: &'a mut LastPrompt,
    ) -> &'a [Prefix] {
        let request = &*request.sent();
        let (model, by) = (request.model.clone(), request.model.counting);
        let shared = last.shared_slots(request);
        let from = if shared == 0 { 0 } else { last.slots[shared].block };
        let rest = Request {
            breakpoints: request.breakpoints.iter().filter_map(|b| b.checked_sub(from)).collect(),
            ttl: request.ttl,
            keep_messages: request.keep_messages,
            ..Request::new(model.clone(), request.blocks[from..].to_vec())
        };
        let slots = plan::plan(self, &rest);
        let tools = request.tools.as_ref();
        let of_tools = tools.filter(|_| from == 0).map(|t| (t.hash(), t.tokens(&by), None, None));
        let item = |s: &Slot| {
            let (hash, size) = self.hash_and_size(s, &rest.blocks[s.block]);
            (hash, by.block(size), s.cache, Some(s.role))
        };
        let kept = if shared == 0 { 0 } else { shared + usize::from(tools.is_some()) };
        last.prefixes.truncate(kept);
        let steps = of_tools.into_iter().chain(slots.iter().map(item));
        add_prefixes(&mut last.prefixes, &model.name, steps);
        last.slots.truncate(shared);
        last.slots.extend(slots.iter().map(|s| Slot { block: s.block + from, ..*s }));
        last.blocks.truncate(from);
        last.blocks.extend(rest.blocks);
        last.breakpoints.clone_from(&request.breakpoints);
        last.terms = Some(terms_of(request));
        &last.prefixes
    }

    fn item(&self, slot: &Slot, block: &Arc<Block>) -> Item {
        let (hash, size) = self.hash_and_size(slot, block);
        let (content, shows) = (self.content(slot, block).into(), Some(block.clone()));
        let Slot { message, cache, .. } = *slot;
        Item { content, message, cache, hash, shows, size: size.into() }
    }

    /// Returns hash and size of the content of a block.
    fn hash_and_size(&self, slot: &Slot, block: &Block) -> (u64, Size) {
        let form = 64 * slot.show as u64 + slot.role as u64;
        block.wire_form((std::ptr::from_ref(self).addr() as u64, form), || {
            let content = self.content(slot, block);
            (content.content_hash(), content.size())
        })
    }

    fn content(&self, slot: &Slot, b: &Block) -> Draft {
        let (rules, text) = (&self.rules, b.text.clone());
        let media = || b.media.as_ref().map(|m| (rules.carried_media)(m));
        let (id, name) =
            b.call.as_ref().map(|c| (c.id.clone(), c.name.clone())).unwrap_or_default();
        let opaque = b.opaque.clone().filter(|o| !o.is_empty());
        let content = match slot.show {
            BlockForm::Text => plain(text),
            BlockForm::Image => Draft::image(media().unwrap_or_default()),
            BlockForm::Reasoning => Draft::reasoning(text, opaque),
            BlockForm::Call => Draft::call(id, name, text),
            BlockForm::Output => {
                let is_error = rules.has_tool_errors && b.is_error;
                let media = media().map(Arc::new);
                Draft { media, ..Draft::output(id, "".into(), text, is_error) }
            }
            BlockForm::Compaction => {
                let text = if rules.shows_summaries { text } else { "".into() };
                Draft { opaque, ..Draft::text(BlockKind::Compaction, Role::Assistant, text) }
            }
            BlockForm::Trigger => Draft::text(BlockKind::CompactionTrigger, Role::User, text),
        };
        in_role(content, slot.role)
    }
}
