//! Anthropic Messages: requests.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::edits;
use crate::prompt::{Content, Item, Prompt, PromptThread};
use crate::wire::WireError;
use crate::wire::json::{
    self, CacheControl, OneOrMany, Text, block_object, buffer, field, list, number, opt, or_empty,
    raw, string, unwrapped,
};
use crate::wire::plan::{BlockForm, PDF, Slot, data_url};
use ctxbench_core::block::{Block, Media, Role};
use ctxbench_core::request::{Request, ServerEdit, Thread, Tools, Ttl};

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

/// Encodes a request; `sampling` adds the reply limit, which the count endpoint refuses.
pub(crate) fn encode(request: &Request, slots: &[Slot], sampling: bool) -> Vec<u8> {
    let mut out = buffer(&request.blocks, request.tools.as_ref().map_or(0, |t| t.json.get().len()));
    let o = &mut out;
    let block = |s: &Slot| &*request.blocks[s.block];
    field(o, "{\"model\":", &request.model.name);
    if let Some(n) = Some(max_tokens(request)).filter(|_| sampling) {
        raw(o, ",\"max_tokens\":");
        number(o, n);
    }
    if let Some(t) = &request.tools {
        raw(o, ",\"tools\":");
        raw(o, t.json.get());
    }
    let head = slots.iter().take_while(|s| s.role == Role::System).count();
    if head > 0 {
        raw(o, ",\"system\":[");
        list(o, &slots[..head], |o, s| part(o, s, block(s)));
        o.push(b']');
    }
    raw(o, ",\"messages\":[");
    let (rest, trigger) = match slots[head..].split_last() {
        Some((last, rest)) if last.show == BlockForm::Trigger => (rest, Some(block(last))),
        _ => (&slots[head..], None),
    };
    list(o, rest.chunk_by(|a, b| a.message == b.message), |o, group| {
        raw(
            o,
            if group[0].is_assistant() {
                "{\"role\":\"assistant\",\"content\":["
            } else {
                "{\"role\":\"user\",\"content\":["
            },
        );
        list(o, group, |o, s| part(o, s, block(s)));
        raw(o, "]}");
    });
    o.push(b']');
    if !request.server_edits.is_empty() && !request.params.contains_key("context_management") {
        raw(o, ",\"context_management\":{\"edits\":[");
        list(o, &request.server_edits, edits::write);
        raw(o, "]}");
    }
    if let Some(t) = trigger {
        raw(o, ",\"compaction\":{\"type\":\"summarize\"");
        if !t.text.is_empty() {
            raw(o, ",\"instructions\":");
            raw(o, t.json_text());
        }
        o.push(b'}');
    }
    match &request.thread {
        Some(Thread::Create) => raw(o, ",\"thread\":{\"type\":\"create\"}"),
        Some(Thread::Continue { after, .. }) => {
            field(o, ",\"thread\":{\"type\":\"continue\",\"previous_message_id\":", after);
            o.push(b'}');
        }
        None => {}
    }
    for (name, value) in request.params.iter().filter(|_| sampling) {
        o.push(b',');
        raw(o, &serde_json::Value::from(name.as_str()).to_string());
        o.push(b':');
        raw(o, &value.to_string());
    }
    o.push(b'}');
    out
}

fn part(o: &mut Vec<u8>, s: &Slot, b: &Block) {
    let (id, name) = b.call.as_ref().map_or(("", ""), |c| (&c.id, &c.name));
    match s.show {
        BlockForm::Text | BlockForm::Trigger => text(o, b.json_text()),
        BlockForm::Image => {
            if let Some(m) = &b.media {
                image(o, m);
            }
        }
        BlockForm::Reasoning => {
            raw(o, "{\"type\":\"thinking\",\"thinking\":");
            raw(o, b.json_text());
            field(o, ",\"signature\":", b.opaque.as_deref().unwrap_or(""));
        }
        BlockForm::Call => {
            field(o, "{\"type\":\"tool_use\",\"id\":", id);
            field(o, ",\"name\":", name);
            raw(o, ",\"input\":");
            block_object(o, b);
        }
        BlockForm::Output => {
            field(o, "{\"type\":\"tool_result\",\"tool_use_id\":", id);
            raw(o, ",\"content\":");
            output(o, b);
            if b.is_error {
                raw(o, ",\"is_error\":true");
            }
        }
        BlockForm::Compaction => {
            raw(o, "{\"type\":\"compaction\",\"content\":");
            raw(o, if b.text.is_empty() { "null" } else { b.json_text() });
            if let Some(e) = &b.opaque {
                field(o, ",\"encrypted_content\":", e);
            }
        }
    }
    match s.cache {
        Some(Ttl::FiveMinutes) => raw(o, ",\"cache_control\":{\"type\":\"ephemeral\"}"),
        Some(Ttl::OneHour) => raw(o, ",\"cache_control\":{\"type\":\"ephemeral\",\"ttl\":\"1h\"}"),
        None => {}
    }
    o.push(b'}');
}

/// Writes a text part without its closing brace.
fn text(o: &mut Vec<u8>, json: &str) {
    raw(o, "{\"type\":\"text\",\"text\":");
    raw(o, json);
}

/// Writes an image or document part without its closing brace.
fn image(o: &mut Vec<u8>, m: &Media) {
    raw(
        o,
        if m.media_type == PDF {
            "{\"type\":\"document\",\"source\":"
        } else {
            "{\"type\":\"image\",\"source\":"
        },
    );
    match data_url(&m.url) {
        Some((media_type, data)) => {
            field(o, "{\"type\":\"base64\",\"media_type\":", media_type);
            field(o, ",\"data\":", data);
        }
        None => field(o, "{\"type\":\"url\",\"url\":", &m.url),
    }
    o.push(b'}');
}

fn output(o: &mut Vec<u8>, b: &Block) {
    if b.splits.is_empty() && b.media.is_none() {
        return raw(o, b.json_text());
    }
    o.push(b'[');
    list(o, b.parts(), |o, p| {
        raw(o, "{\"type\":\"text\",\"text\":");
        string(o, p);
        o.push(b'}');
    });
    if let Some(m) = &b.media {
        o.push(b',');
        image(o, m);
        o.push(b'}');
    }
    o.push(b']');
}

#[derive(Deserialize)]
struct AnthropicRequest<'a> {
    model: Text,
    max_tokens: Option<u64>,
    #[serde(borrow)]
    tools: Option<&'a RawValue>,
    #[serde(borrow)]
    system: Option<OneOrMany<ContentBlock<'a>>>,
    #[serde(borrow)]
    messages: Vec<AnthropicMessage<'a>>,
    cache_control: Option<CacheControl>,
    context_management: Option<edits::ContextManagement>,
    compaction: Option<Instructions>,
    thread: Option<ThreadParam>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ThreadParam {
    Create,
    Continue { previous_message_id: Text },
}

#[derive(Deserialize)]
struct Instructions {
    instructions: Option<Text>,
}

#[derive(Deserialize)]
struct AnthropicMessage<'a> {
    #[serde(borrow)]
    role: Cow<'a, str>,
    #[serde(borrow)]
    content: OneOrMany<ContentBlock<'a>>,
}

/// A content part of a request or reply; its fields depend on its type.
#[derive(Deserialize)]
pub(crate) struct ContentBlock<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: Cow<'a, str>,
    pub(crate) text: Option<Text>,
    pub(crate) thinking: Option<Text>,
    pub(crate) signature: Option<Text>,
    pub(crate) data: Option<Text>,
    pub(crate) id: Option<Text>,
    pub(crate) name: Option<Text>,
    #[serde(borrow)]
    pub(crate) input: Option<&'a RawValue>,
    tool_use_id: Option<Text>,
    #[serde(borrow, default)]
    pub(crate) content: Option<OneOrMany<ContentBlock<'a>>>,
    is_error: Option<bool>,
    source: Option<MediaSource>,
    pub(crate) encrypted_content: Option<Text>,
    cache_control: Option<CacheControl>,
}

#[derive(Deserialize)]
struct MediaSource {
    media_type: Option<Text>,
    data: Option<Text>,
    url: Option<Text>,
}

const KNOWN_PARTS: &str =
    "text, image, document, thinking, redacted_thinking, tool_use, tool_result, compaction";

/// Decodes a request.
pub(crate) fn decode(bytes: &[u8]) -> Result<Prompt, WireError> {
    let body: AnthropicRequest<'_> = json::parse(bytes)?;
    let mut items = Vec::with_capacity(body.messages.len() * 2 + 4);
    if let Some(system) = body.system {
        push(&mut items, Role::System, 0, system)?;
    }
    for (i, m) in body.messages.into_iter().enumerate() {
        let role = match &*m.role {
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "system" => Role::System,
            other => {
                return Err(WireError::Unsupported {
                    what: "role",
                    value: other.into(),
                    known: "user, assistant, system",
                });
            }
        };
        push(&mut items, role, i + 1, m.content)?;
    }
    if let (Some(c), Some(last)) = (body.cache_control, items.last_mut()) {
        last.cache.get_or_insert(c.ttl());
    }
    if let Some(c) = body.compaction {
        items.push(Item::new(
            Role::User,
            Content::CompactionTrigger(or_empty(c.instructions)),
            0,
            None,
        ));
    }
    Ok(Prompt {
        max_tokens: body.max_tokens,
        tools_cache: body.tools.and_then(|t| tools_breakpoint(t.get())),
        tools: body.tools.map(|t| Tools::from_json(t.to_owned())),
        server_edits: body
            .context_management
            .map_or(Ok(Vec::new()), edits::ContextManagement::edits)?,
        thread: body.thread.map(|t| match t {
            ThreadParam::Create => PromptThread::Create,
            ThreadParam::Continue { previous_message_id: id } => PromptThread::Continue(id.0),
        }),
        ..Prompt::new(body.model.0, items)
    })
}

fn push(
    items: &mut Vec<Item>,
    role: Role,
    message: usize,
    content: OneOrMany<ContentBlock<'_>>,
) -> Result<(), WireError> {
    match content {
        OneOrMany::One(t) => items.push(Item::new(role, Content::Text(t.0), message, None)),
        OneOrMany::Many(parts) => {
            for p in parts {
                let cache = p.cache_control.map(CacheControl::ttl);
                let role = if p.kind == "tool_result" { Role::Tool } else { role };
                items.push(Item::new(role, p.into_content()?, message, cache));
            }
        }
    }
    Ok(())
}

impl ContentBlock<'_> {
    fn into_content(self) -> Result<Content, WireError> {
        let missing = |field| WireError::Missing { field, in_what: "content part" };
        Ok(match &*self.kind {
            "text" => Content::Text(self.text.ok_or(missing("text"))?.0),
            "thinking" => {
                Content::Reasoning { text: or_empty(self.thinking), encrypted: opt(self.signature) }
            }
            "redacted_thinking" => {
                Content::Reasoning { text: "".into(), encrypted: opt(self.data) }
            }
            "tool_use" => Content::Call {
                id: self.id.ok_or(missing("id"))?.0,
                name: self.name.ok_or(missing("name"))?.0,
                arguments: unwrapped(self.input),
            },
            "tool_result" => {
                let (text, image) = output_of(self.content)?;
                let is_error = self.is_error.unwrap_or(false);
                Content::Output {
                    id: self.tool_use_id.ok_or(missing("tool_use_id"))?.0,
                    text,
                    is_error,
                    image,
                }
            }
            "image" | "document" => {
                let m = self.source.ok_or(missing("source"))?.media(&self.kind);
                Content::Image { media_type: m.media_type.into(), url: m.url.into() }
            }
            "compaction" => Content::Compaction {
                text: output_of(self.content)?.0,
                opaque: opt(self.encrypted_content.or(self.signature)),
            },
            other => {
                return Err(WireError::Unsupported {
                    what: "content part",
                    value: other.into(),
                    known: KNOWN_PARTS,
                });
            }
        })
    }
}

/// Returns text and first image of nested content.
pub(crate) fn output_of(
    content: Option<OneOrMany<ContentBlock<'_>>>,
) -> Result<(Arc<str>, Option<Box<Media>>), WireError> {
    let parts = match content {
        None => return Ok(("".into(), None)),
        Some(OneOrMany::One(t)) => return Ok((t.0, None)),
        Some(OneOrMany::Many(parts)) => parts,
    };
    let (mut text, mut image) = (String::new(), None);
    for p in parts {
        match (&*p.kind, p.text, p.source) {
            ("text", Some(t), _) => text.push_str(&t.0),
            ("image" | "document", _, Some(s)) => {
                image = image.or(Some(Box::new(s.media(&p.kind))))
            }
            (other, ..) => {
                return Err(WireError::Unsupported {
                    what: "part of a tool result",
                    value: other.into(),
                    known: "text, image, document",
                });
            }
        }
    }
    Ok((text.into(), image))
}

impl MediaSource {
    fn media(self, kind: &str) -> Media {
        let given = or_empty(self.media_type).to_string();
        let url = match (self.url, self.data) {
            (Some(u), _) => u.0.to_string(),
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
    tools.iter().rev().find_map(|t| t.cache_control).map(CacheControl::ttl)
}
