//! Gemini: requests.

use std::borrow::Cow;

use ctxbench_core::block::{Block, BlockKind, Role};
use ctxbench_core::request::{Request, Tools};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use super::calls::OpenCalls;
use super::part::{GeminiPart, Parts, Returned};
use crate::prompt::{Item, Prompt};
use crate::wire::format::WireError;
use crate::wire::json::{self, Text, object_of};
use crate::wire::slot::{BlockForm, Slot};

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GeminiRequest<'a> {
    /// In count requests.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(borrow, alias = "system_instruction", skip_serializing_if = "Option::is_none")]
    system_instruction: Option<GeminiTurn<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Vec<Cow<'a, RawValue>>>,
    #[serde(borrow, default)]
    contents: Vec<GeminiTurn<'a>>,
    #[serde(alias = "generation_config", skip_serializing_if = "Option::is_none")]
    generation_config: Option<Config>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct GeminiTool<'a> {
    #[serde(borrow, alias = "function_declarations")]
    function_declarations: Option<&'a RawValue>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Config {
    #[serde(alias = "max_output_tokens")]
    max_output_tokens: Option<u64>,
}

/// The content of one role in a request.
#[derive(Deserialize, Serialize)]
struct GeminiTurn<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    role: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    parts: Parts<'a>,
}

/// A count request. The Gemini API takes `contents` or a whole request with its model.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct CountRequest<'a> {
    #[serde(borrow, alias = "generate_content_request")]
    generate_content_request: Option<GeminiRequest<'a>>,
}

pub(super) fn encode(request: &Request, slots: &[Slot]) -> Vec<u8> {
    let config = |n| Config { max_output_tokens: Some(n) };
    json::bytes(&GeminiRequest {
        generation_config: request.max_tokens.map(config),
        ..conversation(request, slots)
    })
}

pub(super) fn encode_count(request: &Request, slots: &[Slot]) -> Vec<u8> {
    let model = Some(format!("models/{}", request.model.name));
    json::bytes(&CountRequest {
        generate_content_request: Some(GeminiRequest { model, ..conversation(request, slots) }),
    })
}

/// Returns a request with its prompt only.
fn conversation<'a>(request: &'a Request, slots: &[Slot]) -> GeminiRequest<'a> {
    let parts =
        |slots: &[Slot]| Parts::signed(slots.iter().map(|s| part(s, &request.blocks[s.block])));
    let (head, rest) = slots.split_at(slots.iter().take_while(|s| s.message == 0).count());
    let turn = |turn: &[Slot]| {
        let role = if turn[0].is_assistant() { "model" } else { "user" };
        GeminiTurn { role: Some(role.into()), parts: parts(turn) }
    };
    let tools = request.tools.as_ref().map(|t| {
        let declared = to_raw_value(&GeminiTool { function_declarations: Some(&t.json) });
        vec![Cow::Owned(declared.expect("raw JSON always serialises"))]
    });
    GeminiRequest {
        model: None,
        system_instruction: (!head.is_empty())
            .then(|| GeminiTurn { role: None, parts: parts(head) }),
        tools,
        contents: rest.chunk_by(|a, b| a.message == b.message).map(turn).collect(),
        generation_config: None,
    }
}

fn part<'a>(s: &Slot, b: &'a Block) -> GeminiPart<'a> {
    let (id, name) = b.call.as_ref().map_or(("", ""), |c| (&c.id, &c.name));
    let text = Text::Block(b);
    match (s.show, &b.media) {
        (BlockForm::Call, _) => GeminiPart::call(id, name, object_of(b)),
        (BlockForm::Output, media) => {
            let given = if b.is_error { Returned::Error(text) } else { Returned::Output(text) };
            GeminiPart::result(id, name, given, media.as_deref())
        }
        (BlockForm::Image, Some(m)) => GeminiPart::file(m),
        (BlockForm::Reasoning, _) => GeminiPart::thought(text, b.opaque.as_ref()),
        _ => GeminiPart::text(text),
    }
}

pub(super) fn decode(model: &str, bytes: &[u8]) -> Result<Prompt, WireError> {
    prompt(model, json::parse(bytes)?)
}

/// Decodes a count request: the request in a field, or directly for Vertex and for contents alone.
pub(super) fn decode_count(model: &str, bytes: &[u8]) -> Result<Prompt, WireError> {
    match json::parse::<CountRequest<'_>>(bytes)?.generate_content_request {
        Some(body) => prompt(model, body),
        None => decode(model, bytes),
    }
}

pub(super) fn prompt(model: &str, body: GeminiRequest<'_>) -> Result<Prompt, WireError> {
    let mut calls = OpenCalls::default();
    let mut items = Vec::with_capacity(2 * body.contents.len() + 4);
    if let Some(system) = body.system_instruction {
        let said = system.parts.contents(&mut calls)?;
        items.extend(said.into_iter().map(|c| Item::new(Role::System, c, 0, None)));
    }
    for (i, turn) in body.contents.into_iter().enumerate() {
        let role = role(turn.role.as_deref())?;
        for content in turn.parts.contents(&mut calls)? {
            let role = if content.kind == BlockKind::Output { Role::Tool } else { role };
            items.push(Item::new(role, content, i + 1, None));
        }
    }
    Ok(Prompt {
        max_tokens: body.generation_config.and_then(|c| c.max_output_tokens),
        tools: body.tools.map(|t| declarations(&t).map(Tools::from_json)).transpose()?,
        ..Prompt::new(model, items)
    })
}

/// Returns the role; older clients use `function` for results.
fn role(given: Option<&str>) -> Result<Role, WireError> {
    match given.unwrap_or("user") {
        "user" | "function" => Ok(Role::User),
        "model" => Ok(Role::Assistant),
        other => Err(WireError::unsupported("role", other)),
    }
}

/// Joins all function declarations unchanged, followed by the provider's own tools.
fn declarations(tools: &[Cow<'_, RawValue>]) -> Result<Box<RawValue>, WireError> {
    let mut lists: Vec<&RawValue> = Vec::new();
    for tool in tools {
        let declared: GeminiTool<'_> = serde_json::from_str(tool.get())?;
        match declared.function_declarations {
            Some(list) if tools.len() == 1 => return Ok(list.to_owned()),
            Some(list) => lists.extend(serde_json::from_str::<Vec<&RawValue>>(list.get())?),
            None => lists.push(tool),
        }
    }
    Ok(to_raw_value(&lists)?)
}
