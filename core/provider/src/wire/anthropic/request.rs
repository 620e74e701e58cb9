//! Anthropic Messages: requests.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use serde_with::skip_serializing_none;

use crate::prompt::{Item, Prompt, plain};
use crate::wire::format::WireError;
use crate::wire::json::{self, OneOrMany, Text, object_of, opt, or_empty, unwrapped};
use crate::wire::plan::{output, turns};
use crate::wire::slot::{BlockForm, PDF, Slot, data_url};
use ctxbench_core::prelude::*;
use ctxbench_core::request::{Thread, Tools};
use ctxbench_core::usage::Ttl;

/// Returns the version and beta headers of a request.
pub(crate) fn headers(request: &Request, slots: &[Slot]) -> Vec<(&'static str, String)> {
    let has = |compact: bool| {
        request.server_edits.iter().any(|e| matches!(e, ServerEdit::Compact { .. }) == compact)
    };
    let shows = |show: BlockForm| slots.iter().any(|s| s.show == show);
    let betas = [
        (has(false), "context-management-2025-06-27"),
        (has(true), "compact-2026-01-12"),
        (
            shows(BlockForm::Trigger) || (shows(BlockForm::Compaction) && !has(true)),
            "compact-2026-09-04",
        ),
        (request.thread.is_some(), "message-threads-2026-08-12"),
        (
            request.ttl == Ttl::OneHour && !request.breakpoints.is_empty(),
            "extended-cache-ttl-2025-04-11",
        ),
    ];
    let betas: Vec<&str> =
        betas.iter().filter(|(needed, _)| *needed).map(|(_, name)| *name).collect();
    // Threads require a newer version of the API (docs/sources/anthropic-sdk.md §2.4).
    let version = if request.thread.is_some() { "2026-10-21" } else { "2023-06-01" };
    let mut headers = vec![("anthropic-version", version.to_string())];
    if !betas.is_empty() {
        headers.push(("anthropic-beta", betas.join(",")));
    }
    headers
}

/// The wire requires a limit; the default is the model's maximum.
pub(super) fn max_tokens(request: &Request) -> u64 {
    request.max_tokens.unwrap_or(request.model.published_output)
}

#[skip_serializing_none]
#[derive(Deserialize, Serialize)]
struct AnthropicRequest<'a> {
    model: Text<'a>,
    max_tokens: Option<u64>,
    #[serde(borrow)]
    tools: Option<&'a RawValue>,
    #[serde(borrow)]
    system: Option<OneOrMany<'a, ContentBlock<'a>>>,
    #[serde(borrow)]
    messages: Vec<AnthropicMessage<'a>>,
    #[serde(skip_serializing)]
    cache_control: Option<CacheControl>,
    context_management: Option<ContextManagement<'a>>,
    compaction: Option<Instructions<'a>>,
    thread: Option<Cow<'a, Thread>>,
}

/// A request and parameters that are sent unchanged.
#[derive(Serialize)]
struct WithParams<'a> {
    #[serde(flatten)]
    request: AnthropicRequest<'a>,
    #[serde(flatten)]
    params: Option<&'a Map<String, Value>>,
}

/// `context_management` of a request.
#[derive(Deserialize, Serialize)]
struct ContextManagement<'a> {
    #[serde(default)]
    edits: Cow<'a, [ServerEdit]>,
}

/// Decodes the edits in raw parameters; none if they are invalid.
pub(super) fn edits_among(params: &Map<String, Value>) -> Vec<ServerEdit> {
    let given = params.get("context_management").map(ContextManagement::deserialize);
    given.and_then(Result::ok).map(|m| m.edits.into_owned()).unwrap_or_default()
}

#[derive(Deserialize, Serialize)]
struct Instructions<'a> {
    #[serde(skip_deserializing, rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<Text<'a>>,
}

#[derive(Deserialize, Serialize)]
struct AnthropicMessage<'a> {
    role: Role,
    #[serde(borrow)]
    content: OneOrMany<'a, ContentBlock<'a>>,
}

/// A content part of a request or reply; its fields depend on its type. A null is encoded, an absent
/// field is not.
#[skip_serializing_none]
#[derive(Default, Deserialize, Serialize)]
pub(crate) struct ContentBlock<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: Cow<'a, str>,
    pub(crate) text: Option<Text<'a>>,
    pub(crate) thinking: Option<Text<'a>>,
    pub(crate) signature: Option<Text<'a>>,
    #[serde(skip_serializing)]
    pub(crate) data: Option<Text<'a>>,
    pub(crate) id: Option<Text<'a>>,
    pub(crate) name: Option<Text<'a>>,
    pub(crate) input: Option<Cow<'a, RawValue>>,
    pub(crate) tool_use_id: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(crate) content: Option<Option<OneOrMany<'a, ContentBlock<'a>>>>,
    pub(crate) is_error: Option<bool>,
    pub(crate) source: Option<MediaSource<'a>>,
    #[serde(default)]
    pub(crate) encrypted_content: Option<Option<Text<'a>>>,
    pub(crate) cache_control: Option<CacheControl>,
}

#[skip_serializing_none]
#[derive(Default, Deserialize, Serialize)]
pub(crate) struct MediaSource<'a> {
    #[serde(skip_deserializing, rename = "type")]
    kind: &'static str,
    media_type: Option<Text<'a>>,
    data: Option<Text<'a>>,
    url: Option<Text<'a>>,
}

#[derive(Clone, Copy, Deserialize, Serialize)]
pub(crate) struct CacheControl {
    #[serde(skip_deserializing, rename = "type")]
    kind: &'static str,
    #[serde(default, skip_serializing_if = "is_default")]
    ttl: Ttl,
}

fn is_default(ttl: &Ttl) -> bool {
    *ttl == Ttl::default()
}

/// Lays out the blocks.
///
/// System and developer text is `system` before the first user or assistant block and user text
/// after it. Tool results come first in their user message. A breakpoint on thinking, where it is not
/// allowed, moves to the block before it.
pub(super) fn assign(slots: &mut [Slot], request: &Request) {
    for &at in &request.breakpoints {
        let takes = |s: &&mut Slot| {
            s.block <= at && !matches!(s.show, BlockForm::Reasoning | BlockForm::Trigger)
        };
        if let Some(s) = slots.iter_mut().rev().find(takes) {
            s.cache = Some(request.ttl);
        }
    }
    turns(slots, request);
}

/// Encodes a request; `sampling` adds the reply limit, which the count endpoint refuses.
pub(crate) fn encode(request: &Request, slots: &[Slot], sampling: bool) -> Vec<u8> {
    let parts = |slots: &[Slot]| {
        OneOrMany::Many(slots.iter().map(|s| part(s, &request.blocks[s.block])).collect())
    };
    let (head, rest) = slots.split_at(slots.iter().take_while(|s| s.role == Role::System).count());
    let (rest, trigger) = match rest.split_last() {
        Some((last, rest)) if last.show == BlockForm::Trigger => {
            (rest, Some(&*request.blocks[last.block]))
        }
        _ => (rest, None),
    };
    let message = |group: &[Slot]| {
        let role = if group[0].is_assistant() { Role::Assistant } else { Role::User };
        AnthropicMessage { role, content: parts(group) }
    };
    let edits = Some(&request.server_edits)
        .filter(|e| !e.is_empty() && !request.params.contains_key("context_management"));
    json::bytes(&WithParams {
        request: AnthropicRequest {
            model: Text::Plain(&request.model.name),
            max_tokens: sampling.then(|| max_tokens(request)),
            tools: request.tools.as_ref().map(|t| &*t.json),
            system: (!head.is_empty()).then(|| parts(head)),
            messages: rest.chunk_by(|a, b| a.message == b.message).map(message).collect(),
            cache_control: None,
            context_management: edits.map(|e| ContextManagement { edits: e.into() }),
            compaction: trigger.map(|t| Instructions {
                kind: "summarize",
                instructions: (!t.text.is_empty()).then_some(Text::Block(t)),
            }),
            thread: request.thread.as_ref().map(Cow::Borrowed),
        },
        params: sampling.then_some(&request.params),
    })
}

fn part<'a>(s: &Slot, b: &'a Block) -> ContentBlock<'a> {
    let (id, name) = b.call.as_ref().map_or(("", ""), |c| (&c.id, &c.name));
    let block = match (s.show, &b.media) {
        (BlockForm::Image, Some(m)) => ContentBlock::media(m),
        (BlockForm::Text | BlockForm::Trigger | BlockForm::Image, _) => {
            ContentBlock::text(Text::Block(b))
        }
        (BlockForm::Reasoning, _) => ContentBlock::thinking(Text::Block(b), b.opaque.as_deref()),
        (BlockForm::Call, _) => ContentBlock::call(id, name, object_of(b)),
        (BlockForm::Output, _) => ContentBlock {
            tool_use_id: Some(id.into()),
            content: Some(Some(output(b, ContentBlock::text, ContentBlock::media))),
            is_error: b.is_error.then_some(true),
            ..ContentBlock::with_kind("tool_result")
        },
        (BlockForm::Compaction, _) => ContentBlock {
            encrypted_content: b.opaque.as_deref().map(|o| Some(Text::Plain(o))),
            ..ContentBlock::compaction((!b.text.is_empty()).then_some(Text::Block(b)))
        },
    };
    let cache_control = s.cache.map(|ttl| CacheControl { kind: "ephemeral", ttl });
    ContentBlock { cache_control, ..block }
}

impl<'a> ContentBlock<'a> {
    fn with_kind(kind: &'static str) -> Self {
        ContentBlock { kind: kind.into(), ..ContentBlock::default() }
    }

    pub(crate) fn text(text: Text<'a>) -> Self {
        ContentBlock { text: Some(text), ..ContentBlock::with_kind("text") }
    }

    pub(crate) fn thinking(text: Text<'a>, signature: Option<&'a str>) -> Self {
        ContentBlock {
            thinking: Some(text),
            signature: Some(signature.unwrap_or("").into()),
            ..ContentBlock::with_kind("thinking")
        }
    }

    pub(crate) fn call(id: &'a str, name: &'a str, input: Cow<'a, RawValue>) -> Self {
        ContentBlock {
            id: Some(id.into()),
            name: Some(name.into()),
            input: Some(input),
            ..ContentBlock::with_kind("tool_use")
        }
    }

    /// Creates a compaction; `None` if it failed or exists in the opaque form only.
    pub(crate) fn compaction(text: Option<Text<'a>>) -> Self {
        ContentBlock {
            content: Some(text.map(OneOrMany::One)),
            ..ContentBlock::with_kind("compaction")
        }
    }

    fn media(m: &'a Media) -> Self {
        let source = match data_url(&m.url) {
            Some((media_type, data)) => MediaSource {
                kind: "base64",
                media_type: Some(media_type.into()),
                data: Some(data.into()),
                url: None,
            },
            None => MediaSource {
                kind: "url",
                url: Some(Text::Plain(&m.url)),
                ..MediaSource::default()
            },
        };
        let kind = if m.media_type == PDF { "document" } else { "image" };
        ContentBlock { source: Some(source), ..ContentBlock::with_kind(kind) }
    }
}

pub(crate) fn decode(bytes: &[u8]) -> Result<Prompt, WireError> {
    let body: AnthropicRequest<'_> = json::parse(bytes)?;
    let mut items = Vec::with_capacity(body.messages.len() * 2 + 4);
    if let Some(system) = body.system {
        push(&mut items, Role::System, 0, system)?;
    }
    for (i, m) in body.messages.into_iter().enumerate() {
        push(&mut items, m.role, i + 1, m.content)?;
    }
    if let (Some(c), Some(last)) = (body.cache_control, items.last_mut()) {
        last.cache.get_or_insert(c.ttl);
    }
    if let Some(c) = body.compaction {
        let text = or_empty(c.instructions);
        let trigger = Draft::text(BlockKind::CompactionTrigger, Role::User, text);
        items.push(Item::new(Role::User, trigger, 0, None));
    }
    Ok(Prompt {
        max_tokens: body.max_tokens,
        tools_cache: body.tools.and_then(|t| tools_breakpoint(t.get())),
        tools: body.tools.map(|t| Tools::from_json(t.to_owned())),
        server_edits: body.context_management.map(|m| m.edits.into_owned()).unwrap_or_default(),
        thread: body.thread.map(Cow::into_owned),
        ..Prompt::new(body.model.into_shared(), items)
    })
}

fn push(
    items: &mut Vec<Item>,
    role: Role,
    message: usize,
    content: OneOrMany<'_, ContentBlock<'_>>,
) -> Result<(), WireError> {
    match content {
        OneOrMany::One(t) => items.push(Item::new(role, plain(t.into_shared()), message, None)),
        OneOrMany::Many(parts) => {
            for p in parts {
                let cache = p.cache_control.map(|c| c.ttl);
                let role = if p.kind == "tool_result" { Role::Tool } else { role };
                items.push(Item::new(role, p.into_content()?, message, cache));
            }
        }
    }
    Ok(())
}

impl ContentBlock<'_> {
    pub(crate) fn into_content(self) -> Result<Draft, WireError> {
        let missing = |field| WireError::Missing { field, in_what: "content part" };
        Ok(match &*self.kind {
            "text" => plain(self.text.ok_or(missing("text"))?.into_shared()),
            "thinking" => Draft::reasoning(or_empty(self.thinking), opt(self.signature)),
            "redacted_thinking" => Draft::reasoning("", opt(self.data)),
            "tool_use" => Draft::call(
                self.id.ok_or(missing("id"))?.into_shared(),
                self.name.ok_or(missing("name"))?.into_shared(),
                unwrapped(self.input.as_deref()),
            ),
            "tool_result" => {
                let (text, media) = output_of(self.content.flatten())?;
                let id = self.tool_use_id.ok_or(missing("tool_use_id"))?.into_shared();
                let is_error = self.is_error.unwrap_or(false);
                Draft { media, ..Draft::output(id, "".into(), text, is_error) }
            }
            "image" | "document" => {
                Draft::image(self.source.ok_or(missing("source"))?.media(&self.kind))
            }
            "compaction" => {
                let (text, _) = output_of(self.content.flatten())?;
                let opaque = opt(self.encrypted_content.flatten().or(self.signature));
                Draft { opaque, ..Draft::text(BlockKind::Compaction, Role::Assistant, text) }
            }
            other => return Err(WireError::unsupported("content part", other)),
        })
    }
}

/// Returns text and first image of nested content.
pub(crate) fn output_of(
    content: Option<OneOrMany<'_, ContentBlock<'_>>>,
) -> Result<(Arc<str>, Option<Arc<Media>>), WireError> {
    let parts = match content {
        None => return Ok(("".into(), None)),
        Some(OneOrMany::One(t)) => return Ok((t.into_shared(), None)),
        Some(OneOrMany::Many(parts)) => parts,
    };
    let (mut text, mut image) = (String::new(), None);
    for p in parts {
        match (&*p.kind, p.text, p.source) {
            ("text", Some(t), _) => text.push_str(t.as_str()),
            ("image" | "document", _, Some(s)) => {
                image = image.or(Some(Arc::new(s.media(&p.kind))))
            }
            (other, ..) => {
                return Err(WireError::unsupported("part of a tool result", other));
            }
        }
    }
    Ok((text.into(), image))
}

impl MediaSource<'_> {
    fn media(self, kind: &str) -> Media {
        let given = or_empty(self.media_type).to_string();
        let url = match (self.url, self.data) {
            (Some(u), _) => u.as_str().to_string(),
            (None, data) => format!("data:{given};base64,{}", or_empty(data)),
        };
        Media { media_type: if kind == "document" { PDF.into() } else { given }, url, name: None }
    }
}

/// Returns a breakpoint in the tool definitions. Searches the text before parsing, since few clients set
/// one.
fn tools_breakpoint(tools: &str) -> Option<Ttl> {
    #[derive(Deserialize)]
    struct AnthropicTool {
        cache_control: Option<CacheControl>,
    }
    memchr::memmem::find(tools.as_bytes(), b"\"cache_control\"")?;
    let tools: Vec<AnthropicTool> = serde_json::from_str(tools).ok()?;
    tools.iter().rev().find_map(|t| t.cache_control).map(|c| c.ttl)
}
