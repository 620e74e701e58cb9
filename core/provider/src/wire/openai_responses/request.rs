//! OpenAI Responses: requests.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::prompt::{Content, Item, Prompt};
use crate::wire::WireError;
use crate::wire::json::{self, OneOrMany, Text, buffer, field, list, number, opt, or_empty, raw};
use crate::wire::openai::{output, result, texts};
use crate::wire::plan::{BlockForm, PDF, Slot, data_url};
use ctxbench_core::block::{Block, Media, Role};
use ctxbench_core::request::{Request, ServerEdit, Tools};

/// Encodes a request. The provider stores nothing, so reasoning is sent encrypted.
pub(crate) fn encode(request: &Request, slots: &[Slot]) -> Vec<u8> {
    let mut out = buffer(&request.blocks, request.tools.as_ref().map_or(0, |t| t.json.get().len()));
    let o = &mut out;
    let block = |s: &Slot| &*request.blocks[s.block];
    field(o, "{\"model\":", &request.model.name);
    if let Some(n) = request.max_tokens {
        raw(o, ",\"max_output_tokens\":");
        number(o, n);
    }
    let (instructions, input) = match slots.split_first() {
        Some((first, rest)) if first.role == Role::Instructions => (Some(block(first)), rest),
        _ => (None, slots),
    };
    if let Some(b) = instructions {
        raw(o, ",\"instructions\":");
        raw(o, b.json_text());
    }
    if let Some(t) = &request.tools {
        raw(o, ",\"tools\":");
        raw(o, t.json.get());
    }
    raw(o, ",\"store\":false,\"include\":[\"reasoning.encrypted_content\"],\"input\":[");
    list(o, input.chunk_by(|a, b| a.message == b.message), |o, group| {
        item(o, group, block(&group[0]), block)
    });
    o.push(b']');
    let threshold = request.server_edits.iter().find_map(|e| match e {
        ServerEdit::Compact { trigger, .. } => Some(*trigger),
        ServerEdit::ClearToolUses { .. }
        | ServerEdit::ClearThinking { .. }
        | ServerEdit::CacheEdits { .. } => None,
    });
    if let Some(n) = threshold {
        raw(o, ",\"context_management\":[{\"type\":\"compaction\",\"compact_threshold\":");
        number(o, n);
        raw(o, "}]");
    }
    o.push(b'}');
    out
}

fn item<'a>(o: &mut Vec<u8>, group: &[Slot], b: &Block, block: impl Fn(&Slot) -> &'a Block) {
    let (id, name) = b.call.as_ref().map_or(("", ""), |c| (&c.id, &c.name));
    match group[0].show {
        BlockForm::Text | BlockForm::Image => {
            let (role, text_kind) = match group[0].role {
                Role::Assistant => ("assistant", "output_text"),
                Role::System => ("system", "input_text"),
                Role::Developer | Role::Instructions => ("developer", "input_text"),
                Role::User | Role::Tool => ("user", "input_text"),
            };
            field(o, "{\"type\":\"message\",\"role\":", role);
            raw(o, ",\"content\":[");
            list(o, group, |o, s| match (s.show, &block(s).media) {
                (BlockForm::Image, Some(m)) => media(o, m),
                _ => texts(o, text_kind, block(s)),
            });
            o.push(b']');
        }
        BlockForm::Reasoning => {
            raw(o, "{\"type\":\"reasoning\",\"summary\":[");
            if !b.text.is_empty() {
                raw(o, "{\"type\":\"summary_text\",\"text\":");
                raw(o, b.json_text());
                o.push(b'}');
            }
            o.push(b']');
            if let Some(e) = &b.opaque {
                field(o, ",\"encrypted_content\":", e);
            }
        }
        BlockForm::Call => {
            field(o, "{\"type\":\"function_call\",\"call_id\":", id);
            field(o, ",\"name\":", name);
            raw(o, ",\"arguments\":");
            raw(o, b.json_text());
        }
        BlockForm::Output => {
            field(o, "{\"type\":\"function_call_output\",\"call_id\":", id);
            raw(o, ",\"output\":");
            output(o, "input_text", b, media);
        }
        BlockForm::Compaction => field(
            o,
            "{\"type\":\"compaction\",\"encrypted_content\":",
            b.opaque.as_deref().unwrap_or(""),
        ),
        BlockForm::Trigger => raw(o, "{\"type\":\"compaction_trigger\""),
    }
    o.push(b'}');
}

fn media(o: &mut Vec<u8>, m: &Media) {
    if m.media_type == PDF {
        let key = if data_url(&m.url).is_some() {
            "{\"type\":\"input_file\",\"file_data\":"
        } else {
            "{\"type\":\"input_file\",\"file_url\":"
        };
        field(o, key, &m.url);
        field(o, ",\"filename\":", m.name.as_deref().unwrap_or("document.pdf"));
    } else {
        field(o, "{\"type\":\"input_image\",\"image_url\":", &m.url);
    }
    o.push(b'}');
}

#[derive(Deserialize)]
struct ResponsesRequest<'a> {
    model: Text,
    max_output_tokens: Option<u64>,
    instructions: Option<Text>,
    #[serde(borrow)]
    tools: Option<&'a RawValue>,
    #[serde(borrow)]
    input: OneOrMany<InputItem<'a>>,
    context_management: Option<Vec<CompactionManagement>>,
}

#[derive(Deserialize)]
struct CompactionManagement {
    #[serde(rename = "type")]
    kind: String,
    compact_threshold: Option<u64>,
}

/// An input item, or an output item of a reply; its fields depend on its type.
#[derive(Deserialize)]
pub(crate) struct InputItem<'a> {
    #[serde(borrow, rename = "type", default)]
    pub(crate) kind: Cow<'a, str>,
    #[serde(borrow, default)]
    role: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(crate) content: Option<OneOrMany<ContentPart<'a>>>,
    pub(crate) call_id: Option<Text>,
    pub(crate) name: Option<Text>,
    pub(crate) arguments: Option<Text>,
    pub(crate) input: Option<Text>,
    #[serde(borrow, default)]
    output: Option<OneOrMany<ContentPart<'a>>>,
    #[serde(borrow, default)]
    pub(crate) summary: Vec<ContentPart<'a>>,
    pub(crate) encrypted_content: Option<Text>,
    #[serde(borrow)]
    tools: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(crate) struct ContentPart<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    text: Option<Text>,
    image_url: Option<Text>,
    file_data: Option<Text>,
    file_url: Option<Text>,
}

/// Decodes a request.
pub(crate) fn decode(bytes: &[u8]) -> Result<Prompt, WireError> {
    let body: ResponsesRequest<'_> = json::parse(bytes)?;
    let mut items = Vec::new();
    let mut tools: Vec<&RawValue> = body.tools.into_iter().collect();
    if let Some(t) = body.instructions {
        items.push(Item::new(Role::Instructions, Content::Text(t.0), 0, None));
    }
    match body.input {
        OneOrMany::One(t) => items.push(Item::new(Role::User, Content::Text(t.0), 1, None)),
        OneOrMany::Many(entries) => {
            items.reserve(entries.len());
            for (i, e) in entries.into_iter().enumerate() {
                // Codex sends some tools in an input item.
                match e.tools.filter(|_| e.kind == "additional_tools") {
                    Some(more) => tools.push(more),
                    None => e.push(&mut items, i + 1)?,
                }
            }
        }
    }
    let threshold =
        |m: &CompactionManagement| m.compact_threshold.filter(|_| m.kind == "compaction");
    let edit = |trigger| ServerEdit::Compact { trigger, instructions: None, pause: false };
    Ok(Prompt {
        max_tokens: body.max_output_tokens,
        tools: one_list(&tools)?.map(Tools::from_json),
        server_edits: body
            .context_management
            .unwrap_or_default()
            .iter()
            .filter_map(threshold)
            .map(edit)
            .collect(),
        ..Prompt::new(body.model.0, items)
    })
}

const KNOWN_ITEMS: &str = "message, reasoning, function_call, function_call_output, custom_tool_call, \
                           custom_tool_call_output, compaction, compaction_trigger, \
                           additional_tools";

/// Joins lists of tools.
fn one_list(lists: &[&RawValue]) -> Result<Option<Box<RawValue>>, WireError> {
    let [first, more @ ..] = lists else { return Ok(None) };
    if more.is_empty() {
        return Ok(Some((*first).to_owned()));
    }
    let mut all: Vec<&RawValue> = Vec::new();
    for list in lists {
        all.extend(serde_json::from_str::<Vec<&RawValue>>(list.get())?);
    }
    Ok(Some(serde_json::value::to_raw_value(&all)?))
}

impl InputItem<'_> {
    fn push(self, items: &mut Vec<Item>, message: usize) -> Result<(), WireError> {
        let missing = |field| WireError::Missing { field, in_what: "input item" };
        let (role, content) = match &*self.kind {
            "message" | "" => {
                let role = match &*self.role {
                    "user" => Role::User,
                    "assistant" => Role::Assistant,
                    "system" => Role::System,
                    "developer" => Role::Developer,
                    other => {
                        return Err(WireError::Unsupported {
                            what: "role",
                            value: other.into(),
                            known: "user, assistant, system, developer",
                        });
                    }
                };
                for c in contents(self.content)? {
                    items.push(Item::new(role, c, message, None));
                }
                return Ok(());
            }
            "reasoning" => (
                Role::Assistant,
                Content::Reasoning {
                    text: joined(self.summary),
                    encrypted: opt(self.encrypted_content),
                },
            ),
            "function_call" => {
                let (id, name) = (
                    self.call_id.ok_or(missing("call_id"))?.0,
                    self.name.ok_or(missing("name"))?.0,
                );
                (Role::Assistant, Content::Call { id, name, arguments: or_empty(self.arguments) })
            }
            // A tool with text as input instead of JSON.
            "custom_tool_call" => {
                let (id, name) = (
                    self.call_id.ok_or(missing("call_id"))?.0,
                    self.name.ok_or(missing("name"))?.0,
                );
                (Role::Assistant, Content::Call { id, name, arguments: or_empty(self.input) })
            }
            "function_call_output" | "custom_tool_call_output" => {
                let id = self.call_id.ok_or(missing("call_id"))?.0;
                (Role::Tool, result(id, contents(self.output)?))
            }
            "compaction" => (
                Role::Assistant,
                Content::Compaction { text: "".into(), opaque: opt(self.encrypted_content) },
            ),
            "compaction_trigger" => (Role::User, Content::CompactionTrigger("".into())),
            other => {
                return Err(WireError::Unsupported {
                    what: "input item",
                    value: other.into(),
                    known: KNOWN_ITEMS,
                });
            }
        };
        items.push(Item::new(role, content, message, None));
        Ok(())
    }
}

/// Returns texts and images of a message; neighbouring texts are parts of one.
pub(crate) fn contents(
    content: Option<OneOrMany<ContentPart<'_>>>,
) -> Result<Vec<Content>, WireError> {
    let parts = match content {
        None => return Ok(Vec::new()),
        Some(OneOrMany::One(t)) => return Ok(vec![Content::Text(t.0)]),
        Some(OneOrMany::Many(parts)) => parts,
    };
    let mut found: Vec<Content> = Vec::with_capacity(parts.len());
    for p in parts {
        let media = |media_type: Option<&str>, url: Arc<str>| {
            let media_type = media_type.or(data_url(&url).map(|(t, _)| t)).unwrap_or("").into();
            Content::Image { media_type, url }
        };
        let next = match (&*p.kind, p.text, p.image_url, p.file_data.or(p.file_url)) {
            ("input_text" | "output_text" | "text" | "refusal", Some(t), ..) => Content::Text(t.0),
            ("input_image", _, Some(u), _) => media(None, u.0),
            ("input_file", _, _, Some(u)) => media(Some(PDF), u.0),
            (other, ..) => {
                return Err(WireError::Unsupported {
                    what: "content part",
                    value: other.into(),
                    known: "input_text, output_text, input_image, input_file",
                });
            }
        };
        match (found.last_mut(), next) {
            (Some(Content::Text(a)), Content::Text(b)) => *a = format!("{a}{b}").into(),
            (_, next) => found.push(next),
        }
    }
    Ok(found)
}

/// Joins the texts of parts.
pub(crate) fn joined(parts: Vec<ContentPart<'_>>) -> Arc<str> {
    let mut texts = parts.into_iter().filter_map(|p| p.text.map(|t| t.0));
    match (texts.next(), texts.next()) {
        (None, _) => "".into(),
        (Some(only), None) => only,
        (Some(a), Some(b)) => texts.fold(format!("{a}{b}"), |all, t| all + &t).into(),
    }
}
