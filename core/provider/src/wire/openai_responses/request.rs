//! OpenAI Responses: requests. There are no breakpoints, no error flag on tool results, and of the
//! provider's edits only the compaction threshold.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_with::skip_serializing_none;

use crate::prompt::{Item, Prompt, plain};
use crate::wire::format::WireError;
use crate::wire::json::{self, OneOrMany, Text, opt, or_empty};
use crate::wire::openai::{self, result};
use crate::wire::plan::{joins, number, output, texts};
use crate::wire::slot::{BlockForm, PDF, Slot, data_url, image_at, pdf_at};
use ctxbench_core::block::{Block, BlockKind, Draft, Media, Role};
use ctxbench_core::request::{Request, ServerEdit, Tools};

#[skip_serializing_none]
#[derive(Deserialize, Serialize)]
struct ResponsesRequest<'a> {
    model: Text<'a>,
    max_output_tokens: Option<u64>,
    instructions: Option<Text<'a>>,
    #[serde(borrow)]
    tools: Option<&'a RawValue>,
    #[serde(skip_deserializing)]
    store: bool,
    #[serde(skip_deserializing)]
    include: [&'static str; 1],
    #[serde(borrow)]
    input: OneOrMany<'a, InputItem<'a>>,
    context_management: Option<Vec<CompactionManagement>>,
}

#[derive(Deserialize, Serialize)]
struct CompactionManagement {
    #[serde(rename = "type")]
    kind: String,
    compact_threshold: Option<u64>,
}

/// An input item, or an output item of a reply; its fields depend on its type.
#[skip_serializing_none]
#[derive(Default, Deserialize, Serialize)]
pub(crate) struct InputItem<'a> {
    #[serde(skip_deserializing)]
    pub(crate) id: Option<String>,
    #[serde(borrow, rename = "type", default)]
    pub(crate) kind: Cow<'a, str>,
    #[serde(skip_deserializing)]
    pub(crate) status: Option<&'static str>,
    pub(crate) role: Option<Role>,
    #[serde(borrow)]
    pub(crate) content: Option<OneOrMany<'a, ContentPart<'a>>>,
    pub(crate) call_id: Option<Text<'a>>,
    pub(crate) name: Option<Text<'a>>,
    pub(crate) arguments: Option<Text<'a>>,
    #[serde(skip_serializing)]
    pub(crate) input: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) output: Option<OneOrMany<'a, ContentPart<'a>>>,
    #[serde(borrow)]
    pub(crate) summary: Option<Vec<ContentPart<'a>>>,
    pub(crate) encrypted_content: Option<Text<'a>>,
    #[serde(borrow, skip_serializing)]
    pub(crate) tools: Option<&'a RawValue>,
}

#[skip_serializing_none]
#[derive(Default, Deserialize, Serialize)]
pub(crate) struct ContentPart<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: Cow<'a, str>,
    #[serde(skip_deserializing)]
    pub(crate) detail: Option<&'static str>,
    #[serde(skip_deserializing)]
    pub(crate) annotations: Option<[(); 0]>,
    pub(crate) text: Option<Text<'a>>,
    pub(crate) image_url: Option<Text<'a>>,
    pub(crate) file_data: Option<Text<'a>>,
    pub(crate) file_url: Option<Text<'a>>,
    #[serde(skip_deserializing)]
    pub(crate) filename: Option<&'a str>,
}

/// Lays out the blocks. Only an opening block of role `Instructions` becomes `instructions`, a later one
/// is a developer message.
pub(super) fn assign(slots: &mut [Slot], request: &Request) {
    let owner = |s: &Slot| request.blocks[s.block].message;
    let opening = slots.first().is_some_and(|s| s.role == Role::Instructions);
    let slots = &mut slots[usize::from(opening)..];
    for s in slots.iter_mut().filter(|s| s.role == Role::Instructions) {
        s.role = Role::Developer;
    }
    number(slots, |a, b| joins(a, b, owner));
}

/// Encodes a request. The provider stores nothing, so reasoning is sent encrypted.
pub(crate) fn encode(request: &Request, slots: &[Slot]) -> Vec<u8> {
    let block = |s: &Slot| &*request.blocks[s.block];
    let (instructions, input) = match slots.split_first() {
        Some((first, rest)) if first.role == Role::Instructions => (Some(block(first)), rest),
        _ => (None, slots),
    };
    let input = input.chunk_by(|a, b| a.message == b.message).map(|group| item(group, block));
    let threshold = request.server_edits.iter().find_map(|e| match e {
        ServerEdit::Compact { trigger, .. } => Some(*trigger),
        _ => None,
    });
    let compaction =
        |n| vec![CompactionManagement { kind: "compaction".into(), compact_threshold: Some(n) }];
    json::bytes(&ResponsesRequest {
        model: Text::Plain(&request.model.name),
        max_output_tokens: request.max_tokens,
        instructions: instructions.map(Text::Block),
        tools: request.tools.as_ref().map(|t| &*t.json),
        store: false,
        include: ["reasoning.encrypted_content"],
        input: OneOrMany::Many(input.collect()),
        context_management: threshold.map(compaction),
    })
}

fn item<'a>(group: &[Slot], block: impl Fn(&Slot) -> &'a Block) -> InputItem<'a> {
    let b = block(&group[0]);
    let opaque = b.opaque.as_deref();
    match group[0].show {
        BlockForm::Text | BlockForm::Image => {
            let role = group[0].role;
            let kind = if role == Role::Assistant { "output_text" } else { "input_text" };
            let parts = |s: &Slot| match (s.show, &block(s).media) {
                (BlockForm::Image, Some(m)) => vec![media(m)],
                _ => texts(block(s), |t| ContentPart::text(kind, t)),
            };
            InputItem::message(role, group.iter().flat_map(parts).collect())
        }
        BlockForm::Reasoning => InputItem::reasoning(Text::Block(b), opaque),
        BlockForm::Call => {
            let (id, name) = b.call.as_ref().map_or(("", ""), |c| (&c.id, &c.name));
            InputItem::call(id, name, Text::Block(b))
        }
        BlockForm::Output => InputItem {
            call_id: Some(b.call_id().unwrap_or("").into()),
            output: Some(output(b, |t| ContentPart::text("input_text", t), media)),
            ..InputItem::with_kind("function_call_output")
        },
        BlockForm::Compaction => InputItem::compaction(opaque.unwrap_or("")),
        BlockForm::Trigger => InputItem::with_kind("compaction_trigger"),
    }
}

fn media(m: &Media) -> ContentPart<'_> {
    let url = Text::Plain(&m.url);
    if m.media_type != PDF {
        return ContentPart::image(url);
    }
    let (file_data, file_url) =
        if data_url(&m.url).is_some() { (Some(url), None) } else { (None, Some(url)) };
    let filename = Some(m.name.as_deref().unwrap_or("document.pdf"));
    ContentPart { kind: "input_file".into(), file_data, file_url, filename, ..Default::default() }
}

impl<'a> ContentPart<'a> {
    pub(crate) fn text(kind: &'static str, text: Text<'a>) -> Self {
        ContentPart { kind: kind.into(), text: Some(text), ..ContentPart::default() }
    }

    pub(crate) fn image(url: Text<'a>) -> Self {
        ContentPart { kind: "input_image".into(), image_url: Some(url), ..ContentPart::default() }
    }
}

impl<'a> InputItem<'a> {
    fn with_kind(kind: &'static str) -> Self {
        InputItem { kind: kind.into(), ..InputItem::default() }
    }

    pub(crate) fn message(role: Role, parts: Vec<ContentPart<'a>>) -> Self {
        let content = Some(OneOrMany::Many(parts));
        InputItem { role: Some(role), content, ..InputItem::with_kind("message") }
    }

    pub(crate) fn reasoning(text: Text<'a>, encrypted: Option<&'a str>) -> Self {
        let summary = Some(text).filter(|t| !t.as_str().is_empty());
        let summary = summary.map(|t| ContentPart::text("summary_text", t)).into_iter().collect();
        InputItem {
            summary: Some(summary),
            encrypted_content: encrypted.map(Text::Plain),
            ..InputItem::with_kind("reasoning")
        }
    }

    pub(crate) fn call(id: &'a str, name: &'a str, arguments: Text<'a>) -> Self {
        InputItem {
            call_id: Some(id.into()),
            name: Some(name.into()),
            arguments: Some(arguments),
            ..InputItem::with_kind("function_call")
        }
    }

    pub(crate) fn compaction(payload: &'a str) -> Self {
        InputItem { encrypted_content: Some(payload.into()), ..InputItem::with_kind("compaction") }
    }
}

pub(crate) fn decode(bytes: &[u8]) -> Result<Prompt, WireError> {
    let body: ResponsesRequest<'_> = json::parse(bytes)?;
    let mut items = Vec::new();
    let mut tools: Vec<&RawValue> = body.tools.into_iter().collect();
    if let Some(t) = body.instructions {
        items.push(Item::new(Role::Instructions, plain(t.into_shared()), 0, None));
    }
    match body.input {
        OneOrMany::One(t) => items.push(Item::new(Role::User, plain(t.into_shared()), 1, None)),
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
    let edits = body.context_management.unwrap_or_default();
    let edits = edits.iter().filter(|m| m.kind == "compaction").filter_map(|m| m.compact_threshold);
    Ok(Prompt {
        max_tokens: body.max_output_tokens,
        tools: one_list(&tools)?.map(Tools::from_json),
        server_edits: edits.map(ServerEdit::compact).collect(),
        ..Prompt::new(body.model.into_shared(), items)
    })
}

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
        if matches!(&*self.kind, "message" | "") {
            let role = self.role.ok_or(missing("role"))?;
            let contents = contents(self.content)?.into_iter();
            items.extend(contents.map(|c| Item::new(role, c, message, None)));
            return Ok(());
        }
        let (role, content) = match &*self.kind {
            "function_call_output" | "custom_tool_call_output" => {
                let id = self.call_id.ok_or(missing("call_id"))?.into_shared();
                (Role::Tool, result(id, contents(self.output)?))
            }
            "compaction_trigger" => {
                (Role::User, Draft::text(BlockKind::CompactionTrigger, Role::User, ""))
            }
            _ => (Role::Assistant, self.into_content()?),
        };
        items.push(Item::new(role, content, message, None));
        Ok(())
    }

    /// Returns the content of an item that the model made, except a message.
    pub(crate) fn into_content(self) -> Result<Draft, WireError> {
        Ok(match &*self.kind {
            "reasoning" => {
                let parts = self.summary.into_iter().flatten().filter_map(|p| p.text);
                let text: String = parts.map(|t| t.as_str().to_string()).collect();
                Draft::reasoning(text, opt(self.encrypted_content))
            }
            // A custom tool has text as input instead of JSON.
            "function_call" | "custom_tool_call" => {
                let custom = self.kind == "custom_tool_call";
                Draft::call(
                    self.call_id.ok_or(missing("call_id"))?.into_shared(),
                    self.name.ok_or(missing("name"))?.into_shared(),
                    or_empty(if custom { self.input } else { self.arguments }),
                )
            }
            "compaction" => Draft {
                opaque: opt(self.encrypted_content),
                ..Draft::text(BlockKind::Compaction, Role::Assistant, "")
            },
            other => return Err(WireError::unsupported("conversation item", other)),
        })
    }
}

fn missing(field: &'static str) -> WireError {
    WireError::Missing { field, in_what: "conversation item" }
}

/// Returns texts and images of a message; neighbouring texts are parts of one.
pub(crate) fn contents(
    content: Option<OneOrMany<'_, ContentPart<'_>>>,
) -> Result<Vec<Draft>, WireError> {
    let parts = match content {
        None => return Ok(Vec::new()),
        Some(OneOrMany::One(t)) => return Ok(vec![plain(t.into_shared())]),
        Some(OneOrMany::Many(parts)) => parts,
    };
    let parts = parts.into_iter().map(ContentPart::into_content);
    Ok(openai::joined(parts.collect::<Result<_, _>>()?))
}

impl ContentPart<'_> {
    fn into_content(self) -> Result<Draft, WireError> {
        Ok(match (&*self.kind, self.text, self.image_url, self.file_data.or(self.file_url)) {
            ("input_text" | "output_text" | "text" | "refusal", Some(t), ..) => {
                plain(t.into_shared())
            }
            ("input_image", _, Some(u), _) => Draft::image(image_at(u.as_str())),
            ("input_file", _, _, Some(u)) => Draft::image(pdf_at(u.as_str())),
            (other, ..) => {
                return Err(WireError::unsupported("content part", other));
            }
        })
    }
}
