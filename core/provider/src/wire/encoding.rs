//! Encoding of requests, and the prompt that a server decodes from them.

use std::sync::Arc;

use ctxbench_core::tokens::Size;
use ctxbench_core::{Block, BlockKind, Draft, Model, Reply, Request, Role};
use serde_json::Value;

use super::format::{Encoded, WireError, WireFormat};
use super::plan;
use super::slot::{BlockForm, Slot};
use crate::cache::{Prefix, prefixes};
use crate::prompt::{Item, Prompt, in_role, plain};

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

    /// Returns the prefixes of [`prompt_of`](Self::prompt_of), without building the prompt.
    pub fn prefixes_of(&'static self, request: &Request) -> Vec<Prefix> {
        let request = &*request.sent();
        let by = &request.model.counting;
        let tools = request.tools.iter().map(|t| (t.hash(), t.tokens(by), None, None));
        let slots = plan::plan(self, request);
        let item = |s: &Slot| {
            let (hash, size) = self.hash_and_size(s, &request.blocks[s.block]);
            (hash, by.block(size), s.cache, Some(s.role))
        };
        prefixes(&request.model.name, tools.chain(slots.iter().map(item)))
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
