//! OpenAI Chat Completions: requests. There are no breakpoints, no error flag on tool results, and no
//! edits by the provider.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_with::skip_serializing_none;

use crate::prompt::{Item, Prompt, plain};
use crate::wire::format::WireError;
use crate::wire::json::{self, OneOrMany, Text, opt, or_empty};
use crate::wire::openai::{self, result};
use crate::wire::plan::{joins, number, output, texts};
use crate::wire::slot::{BlockForm, PDF, Slot, image_at, pdf_at};
use ctxbench_core::block::{Block, Draft, Media, Role};
use ctxbench_core::request::{Request, Tools};

#[derive(Deserialize, Serialize)]
struct ChatRequest<'a> {
    model: Text<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    #[serde(skip_serializing)]
    max_tokens: Option<u64>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    tools: Option<&'a RawValue>,
    #[serde(borrow)]
    messages: Vec<ChatMessage<'a>>,
}

#[derive(Default, Deserialize, Serialize)]
pub(crate) struct ChatMessage<'a> {
    #[serde(default)]
    role: Role,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<Text<'a>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    reasoning_details: Vec<Details<'a>>,
    #[serde(borrow)]
    content: Option<OneOrMany<'a, ContentPart<'a>>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ChatCall<'a>>,
}

#[derive(Deserialize, Serialize)]
struct Details<'a> {
    #[serde(skip_deserializing, rename = "type")]
    kind: &'static str,
    data: Option<Text<'a>>,
}

#[derive(Deserialize, Serialize)]
pub(crate) struct ChatCall<'a> {
    id: Text<'a>,
    #[serde(skip_deserializing, rename = "type")]
    kind: &'static str,
    function: Function<'a>,
}

#[derive(Deserialize, Serialize)]
struct Function<'a> {
    name: Text<'a>,
    arguments: Text<'a>,
}

#[skip_serializing_none]
#[derive(Default, Deserialize, Serialize)]
pub(crate) struct ContentPart<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    text: Option<Text<'a>>,
    image_url: Option<Url<'a>>,
    file: Option<ChatFile<'a>>,
}

#[derive(Deserialize, Serialize)]
struct Url<'a> {
    url: Text<'a>,
}

#[derive(Deserialize, Serialize)]
struct ChatFile<'a> {
    filename: Option<Text<'a>>,
    file_data: Text<'a>,
}

/// Lays out the blocks. `Instructions` is a system message; a provider's compaction is user text.
pub(super) fn assign(slots: &mut [Slot], request: &Request) {
    let owner = |s: &Slot| request.blocks[s.block].message;
    // An assistant message has at most one thinking, then text, then calls; any other order begins a
    // new message.
    let rank = |s: &Slot| match s.show {
        BlockForm::Reasoning => 0,
        BlockForm::Call => 2,
        _ => 1,
    };
    for s in slots.iter_mut().filter(|s| s.role == Role::Instructions) {
        s.role = Role::System;
    }
    number(slots, |a, b| match a.is_assistant() && b.is_assistant() {
        true => owner(a) == owner(b) && rank(a) <= rank(b) && rank(b) > 0,
        false => joins(a, b, owner),
    });
}

pub(crate) fn encode(request: &Request, slots: &[Slot]) -> Vec<u8> {
    let block = |s: &Slot| &*request.blocks[s.block];
    let message = |group: &[Slot]| match group[0].role {
        Role::Assistant => assistant(group, block),
        Role::Tool => tool(block(&group[0])),
        role => plain_message(role, group, block),
    };
    json::bytes(&ChatRequest {
        model: Text::Plain(&request.model.name),
        max_completion_tokens: request.max_tokens,
        max_tokens: None,
        tools: request.tools.as_ref().map(|t| &*t.json),
        messages: slots.chunk_by(|a, b| a.message == b.message).map(message).collect(),
    })
}

fn plain_message<'a>(role: Role, all: &[Slot], of: impl Fn(&Slot) -> &'a Block) -> ChatMessage<'a> {
    let parts = |s: &Slot| match (s.show, &of(s).media) {
        (BlockForm::Image, Some(m)) => vec![media(m)],
        _ => texts(of(s), text),
    };
    let content = match all {
        [one] if one.show != BlockForm::Image && of(one).splits.is_empty() => {
            OneOrMany::One(Text::Block(of(one)))
        }
        _ => OneOrMany::Many(all.iter().flat_map(parts).collect()),
    };
    ChatMessage { role, content: Some(content), ..ChatMessage::default() }
}

/// Returns thinking, texts and calls of one reply as one message, with one part per text.
fn assistant<'a>(group: &[Slot], block: impl Fn(&Slot) -> &'a Block) -> ChatMessage<'a> {
    let of = |wanted: fn(BlockForm) -> bool| {
        group.iter().filter(move |s| wanted(s.show)).map(&block).collect::<Vec<_>>()
    };
    let thinking = of(|s| s == BlockForm::Reasoning).first().copied();
    let content = match of(|s| !matches!(s, BlockForm::Reasoning | BlockForm::Call)).as_slice() {
        [] => None,
        [one] => Some(OneOrMany::One(Text::Block(one))),
        many => Some(OneOrMany::Many(many.iter().map(|b| text(Text::Block(b))).collect())),
    };
    let call = |b: &'a Block| {
        let (id, name) = b.call.as_ref().map_or(("", ""), |c| (&c.id, &c.name));
        ChatCall::new(id, name, Text::Block(b))
    };
    let calls = of(|s| s == BlockForm::Call).into_iter().map(call).collect();
    let thinking = thinking.map(|b| (Text::Block(b), b.opaque.as_deref()));
    ChatMessage::of_reply(thinking, content, calls)
}

fn tool(b: &Block) -> ChatMessage<'_> {
    ChatMessage {
        role: Role::Tool,
        tool_call_id: Some(b.call_id().unwrap_or("").into()),
        content: Some(output(b, text, media)),
        ..ChatMessage::default()
    }
}

fn text(text: Text<'_>) -> ContentPart<'_> {
    ContentPart { kind: "text".into(), text: Some(text), ..ContentPart::default() }
}

fn media(m: &Media) -> ContentPart<'_> {
    if m.media_type == PDF {
        let name = m.name.as_deref().unwrap_or("document.pdf");
        let file = ChatFile { filename: Some(name.into()), file_data: Text::Plain(&m.url) };
        ContentPart { kind: "file".into(), file: Some(file), ..ContentPart::default() }
    } else {
        let image_url = Some(Url { url: Text::Plain(&m.url) });
        ContentPart { kind: "image_url".into(), image_url, ..ContentPart::default() }
    }
}

impl<'a> ChatCall<'a> {
    pub(crate) fn new(id: &'a str, name: &'a str, arguments: Text<'a>) -> Self {
        let function = Function { name: name.into(), arguments };
        ChatCall { id: id.into(), kind: "function", function }
    }
}

impl ContentPart<'_> {
    fn into_content(self) -> Result<Draft, WireError> {
        Ok(match (&*self.kind, self.text, self.image_url, self.file) {
            ("text", Some(t), ..) => plain(t.into_shared()),
            ("image_url", _, Some(u), _) => Draft::image(image_at(u.url.as_str())),
            ("file", _, _, Some(f)) => Draft::image(pdf_at(f.file_data.as_str())),
            (other, ..) => {
                return Err(WireError::unsupported("content part", other));
            }
        })
    }
}

pub(crate) fn decode(bytes: &[u8]) -> Result<Prompt, WireError> {
    let body: ChatRequest<'_> = json::parse(bytes)?;
    let mut items = Vec::with_capacity(body.messages.len() + 16);
    for (i, m) in body.messages.into_iter().enumerate() {
        let role = m.role;
        items.extend(m.contents(role)?.into_iter().map(|c| Item::new(role, c, i + 1, None)));
    }
    Ok(Prompt {
        max_tokens: body.max_completion_tokens.or(body.max_tokens),
        tools: body.tools.map(|t| Tools::from_json(t.to_owned())),
        ..Prompt::new(body.model.into_shared(), items)
    })
}

impl<'a> ChatMessage<'a> {
    /// Creates a message of the model; a thinking has a text and the provider's payload.
    pub(crate) fn of_reply(
        thinking: Option<(Text<'a>, Option<&'a str>)>,
        content: Option<OneOrMany<'a, ContentPart<'a>>>,
        tool_calls: Vec<ChatCall<'a>>,
    ) -> Self {
        let (text, data) = thinking.map_or((None, None), |(text, data)| (Some(text), data));
        let details = |data| Details { kind: "reasoning.encrypted", data: Some(Text::Plain(data)) };
        ChatMessage {
            role: Role::Assistant,
            tool_call_id: None,
            reasoning_content: text,
            reasoning_details: data.map(details).into_iter().collect(),
            content,
            tool_calls,
        }
    }

    pub(crate) fn contents(self, role: Role) -> Result<Vec<Draft>, WireError> {
        let mut found = Vec::with_capacity(2 + self.tool_calls.len());
        let encrypted = opt(self.reasoning_details.into_iter().find_map(|d| d.data));
        if self.reasoning_content.is_some() || encrypted.is_some() {
            found.push(Draft::reasoning(or_empty(self.reasoning_content), encrypted));
        }
        let parts = match self.content {
            None => None,
            Some(OneOrMany::One(t)) => Some(vec![plain(t.into_shared())]),
            Some(OneOrMany::Many(parts)) => {
                let parts = parts.into_iter().map(ContentPart::into_content);
                Some(parts.collect::<Result<_, _>>()?)
            }
        };
        match parts {
            Some(parts) if role == Role::Tool => {
                found.push(result(or_empty(self.tool_call_id), parts));
            }
            // Every text of a reply is separate (see `assistant`).
            Some(parts) if role == Role::Assistant => found.extend(parts),
            Some(parts) => found.extend(openai::joined(parts)),
            None => {}
        }
        found.extend(self.tool_calls.into_iter().map(|ChatCall { id, function: f, .. }| {
            Draft::call(id.into_shared(), f.name.into_shared(), f.arguments.into_shared())
        }));
        Ok(found)
    }
}
