//! OpenAI Chat Completions: requests.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::prompt::{Content, Item, Prompt};
use crate::wire::WireError;
use crate::wire::json::{self, OneOrMany, Text, buffer, field, list, number, opt, or_empty, raw};
use crate::wire::openai::{output, result, texts};
use crate::wire::plan::{BlockForm, PDF, Slot, data_url};
use ctxbench_core::block::{Block, Media, Role};
use ctxbench_core::request::{Request, Tools};

/// Encodes a request.
pub(crate) fn encode(request: &Request, slots: &[Slot]) -> Vec<u8> {
    let mut out = buffer(&request.blocks, request.tools.as_ref().map_or(0, |t| t.json.get().len()));
    let o = &mut out;
    field(o, "{\"model\":", &request.model.name);
    if let Some(n) = request.max_tokens {
        raw(o, ",\"max_completion_tokens\":");
        number(o, n);
    }
    if let Some(t) = &request.tools {
        raw(o, ",\"tools\":");
        raw(o, t.json.get());
    }
    raw(o, ",\"messages\":[");
    let block = |s: &Slot| &*request.blocks[s.block];
    list(o, slots.chunk_by(|a, b| a.message == b.message), |o, group| match group[0].role {
        Role::Assistant => assistant(o, group, block),
        Role::Tool => tool(o, block(&group[0])),
        role => plain(o, role, group, block),
    });
    raw(o, "]}");
    out
}

fn plain<'a>(o: &mut Vec<u8>, role: Role, group: &[Slot], block: impl Fn(&Slot) -> &'a Block) {
    let role = match role {
        Role::System | Role::Instructions => "system",
        Role::Developer => "developer",
        _ => "user",
    };
    field(o, "{\"role\":", role);
    raw(o, ",\"content\":");
    match group {
        [one] if one.show != BlockForm::Image && block(one).splits.is_empty() => {
            raw(o, block(one).json_text())
        }
        _ => {
            o.push(b'[');
            list(o, group, |o, s| match (s.show, &block(s).media) {
                (BlockForm::Image, Some(m)) => media(o, m),
                _ => texts(o, "text", block(s)),
            });
            o.push(b']');
        }
    }
    o.push(b'}');
}

/// Writes thinking, texts and calls of one reply as one message, with one part per text.
fn assistant<'a>(o: &mut Vec<u8>, group: &[Slot], block: impl Fn(&Slot) -> &'a Block) {
    raw(o, "{\"role\":\"assistant\"");
    let of = |wanted: fn(BlockForm) -> bool| {
        group.iter().filter(move |s| wanted(s.show)).map(&block).collect::<Vec<_>>()
    };
    if let Some(b) = of(|s| s == BlockForm::Reasoning).first() {
        raw(o, ",\"reasoning_content\":");
        raw(o, b.json_text());
        if let Some(e) = &b.opaque {
            field(o, ",\"reasoning_details\":[{\"type\":\"reasoning.encrypted\",\"data\":", e);
            raw(o, "}]");
        }
    }
    raw(o, ",\"content\":");
    match of(|s| !matches!(s, BlockForm::Reasoning | BlockForm::Call)).as_slice() {
        [] => raw(o, "null"),
        [one] => raw(o, one.json_text()),
        many => {
            o.push(b'[');
            list(o, many, |o, b| {
                raw(o, "{\"type\":\"text\",\"text\":");
                raw(o, b.json_text());
                o.push(b'}');
            });
            o.push(b']');
        }
    }
    let calls = of(|s| s == BlockForm::Call);
    if !calls.is_empty() {
        raw(o, ",\"tool_calls\":[");
        list(o, calls, |o, b| {
            let (id, name) = b.call.as_ref().map_or(("", ""), |c| (&c.id, &c.name));
            field(o, "{\"id\":", id);
            field(o, ",\"type\":\"function\",\"function\":{\"name\":", name);
            raw(o, ",\"arguments\":");
            raw(o, b.json_text());
            raw(o, "}}");
        });
        o.push(b']');
    }
    o.push(b'}');
}

fn tool(o: &mut Vec<u8>, b: &Block) {
    field(o, "{\"role\":\"tool\",\"tool_call_id\":", b.call_id().unwrap_or(""));
    raw(o, ",\"content\":");
    output(o, "text", b, media);
    o.push(b'}');
}

fn media(o: &mut Vec<u8>, m: &Media) {
    if m.media_type == PDF {
        field(
            o,
            "{\"type\":\"file\",\"file\":{\"filename\":",
            m.name.as_deref().unwrap_or("document.pdf"),
        );
        field(o, ",\"file_data\":", &m.url);
    } else {
        field(o, "{\"type\":\"image_url\",\"image_url\":{\"url\":", &m.url);
    }
    raw(o, "}}");
}

#[derive(Deserialize)]
struct ChatRequest<'a> {
    model: Text,
    max_completion_tokens: Option<u64>,
    max_tokens: Option<u64>,
    #[serde(borrow)]
    tools: Option<&'a RawValue>,
    #[serde(borrow)]
    messages: Vec<ChatMessage<'a>>,
}

/// A message of a request or reply.
#[derive(Deserialize)]
pub(crate) struct ChatMessage<'a> {
    #[serde(borrow, default)]
    role: Cow<'a, str>,
    #[serde(borrow, default)]
    content: Option<OneOrMany<ContentPart<'a>>>,
    reasoning_content: Option<Text>,
    #[serde(default)]
    reasoning_details: Vec<Details>,
    #[serde(default)]
    tool_calls: Vec<ChatCall>,
    tool_call_id: Option<Text>,
}

#[derive(Deserialize)]
struct Details {
    data: Option<Text>,
}

#[derive(Deserialize)]
struct ChatCall {
    id: Text,
    function: Function,
}

#[derive(Deserialize)]
struct Function {
    name: Text,
    arguments: Text,
}

#[derive(Deserialize)]
struct ContentPart<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    text: Option<Text>,
    image_url: Option<Url>,
    file: Option<ChatFile>,
}

#[derive(Deserialize)]
struct Url {
    url: Text,
}

#[derive(Deserialize)]
struct ChatFile {
    file_data: Text,
}

impl ContentPart<'_> {
    fn into_content(self) -> Result<Content, WireError> {
        Ok(match (&*self.kind, self.text, self.image_url, self.file) {
            ("text", Some(t), ..) => Content::Text(t.0),
            ("image_url", _, Some(u), _) => Content::Image {
                media_type: data_url(&u.url.0).map_or("", |(t, _)| t).into(),
                url: u.url.0,
            },
            ("file", _, _, Some(f)) => {
                Content::Image { media_type: PDF.into(), url: f.file_data.0 }
            }
            (other, ..) => {
                return Err(WireError::Unsupported {
                    what: "content part",
                    value: other.into(),
                    known: "text, image_url, file",
                });
            }
        })
    }
}

/// Decodes a request.
pub(crate) fn decode(bytes: &[u8]) -> Result<Prompt, WireError> {
    let body: ChatRequest<'_> = json::parse(bytes)?;
    let mut items = Vec::with_capacity(body.messages.len() + 16);
    for (i, m) in body.messages.into_iter().enumerate() {
        let role = match &*m.role {
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "system" => Role::System,
            "developer" => Role::Developer,
            "tool" => Role::Tool,
            other => {
                return Err(WireError::Unsupported {
                    what: "role",
                    value: other.into(),
                    known: "user, assistant, system, developer, tool",
                });
            }
        };
        items.extend(m.contents(role)?.into_iter().map(|c| Item::new(role, c, i + 1, None)));
    }
    Ok(Prompt {
        max_tokens: body.max_completion_tokens.or(body.max_tokens),
        tools: body.tools.map(|t| Tools::from_json(t.to_owned())),
        ..Prompt::new(body.model.0, items)
    })
}

impl ChatMessage<'_> {
    /// Returns the content in order.
    pub(crate) fn contents(self, role: Role) -> Result<Vec<Content>, WireError> {
        let mut found = Vec::with_capacity(2 + self.tool_calls.len());
        let encrypted = opt(self.reasoning_details.into_iter().find_map(|d| d.data));
        if self.reasoning_content.is_some() || encrypted.is_some() {
            found.push(Content::Reasoning { text: or_empty(self.reasoning_content), encrypted });
        }
        match self.content {
            None => {}
            Some(OneOrMany::One(t)) if role != Role::Tool => found.push(Content::Text(t.0)),
            Some(OneOrMany::One(t)) => found.push(Content::Output {
                id: or_empty(self.tool_call_id),
                text: t.0,
                is_error: false,
                image: None,
            }),
            Some(OneOrMany::Many(parts)) if role == Role::Tool => {
                let parts = parts.into_iter().map(ContentPart::into_content);
                found.push(result(or_empty(self.tool_call_id), parts.collect::<Result<_, _>>()?))
            }
            Some(OneOrMany::Many(parts)) => {
                for p in parts {
                    match (found.last_mut(), p.into_content()?) {
                        // Neighbouring texts are parts of one, except in replies (see `assistant`).
                        (Some(Content::Text(a)), Content::Text(b)) if role != Role::Assistant => {
                            *a = format!("{a}{b}").into()
                        }
                        (_, next) => found.push(next),
                    }
                }
            }
        }
        let call = |c: ChatCall| Content::Call {
            id: c.id.0,
            name: c.function.name.0,
            arguments: c.function.arguments.0,
        };
        found.extend(self.tool_calls.into_iter().map(call));
        Ok(found)
    }
}
