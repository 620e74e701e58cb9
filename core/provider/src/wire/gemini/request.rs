//! Gemini: requests.

use ctxbench_core::block::{Block, Role};
use ctxbench_core::request::{Request, Tools};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::calls::OpenCalls;
use super::part::{self, GeminiTurn, PartForm, PartKind, TEXT, THOUGHT};
use crate::prompt::{Item, Prompt};
use crate::wire::WireError;
use crate::wire::json::{self, Text, block_object, buffer, field, list, number, opt, raw};
use crate::wire::plan::{BlockForm, Slot};

/// Encodes a request.
pub(super) fn encode(request: &Request, slots: &[Slot]) -> Vec<u8> {
    let mut o = buffer(&request.blocks, request.tools.as_ref().map_or(0, |t| t.json.get().len()));
    o.push(b'{');
    write_conversation(&mut o, request, slots);
    if let Some(n) = request.max_tokens {
        raw(&mut o, ",\"generationConfig\":{\"maxOutputTokens\":");
        number(&mut o, n);
        o.push(b'}');
    }
    o.push(b'}');
    o
}

/// Encodes a count request: the Gemini API takes `contents` or a whole request with its model.
pub(super) fn encode_count(request: &Request, slots: &[Slot]) -> Vec<u8> {
    let mut o = buffer(&request.blocks, 0);
    let model = format!("models/{}", request.model.name);
    field(&mut o, "{\"generateContentRequest\":{\"model\":", &model);
    o.push(b',');
    write_conversation(&mut o, request, slots);
    raw(&mut o, "}}");
    o
}

/// Encodes the prompt without surrounding braces.
fn write_conversation(o: &mut Vec<u8>, request: &Request, slots: &[Slot]) {
    let block = |s: &Slot| &*request.blocks[s.block];
    let head = slots.iter().take_while(|s| s.message == 0).count();
    if head > 0 {
        raw(o, "\"systemInstruction\":{\"parts\":[");
        list(o, &slots[..head], |o, s| {
            raw(o, TEXT);
            raw(o, block(s).json_text());
            o.push(b'}');
        });
        raw(o, "]},");
    }
    if let Some(t) = &request.tools {
        raw(o, "\"tools\":[{\"functionDeclarations\":");
        raw(o, t.json.get());
        raw(o, "}],");
    }
    raw(o, "\"contents\":[");
    list(o, slots[head..].chunk_by(|a, b| a.message == b.message), |o, turn| {
        let role = if turn[0].is_assistant() { "model" } else { "user" };
        field(o, "{\"role\":", role);
        raw(o, ",\"parts\":[");
        let shown: Vec<(&Slot, &Block)> = turn.iter().map(|s| (s, block(s))).collect();
        let kinds: Vec<PartKind> = shown.iter().map(|(s, b)| kind(s, b)).collect();
        let forms = part::forms(&kinds).into_iter().enumerate();
        list(o, forms.filter(|(_, f)| *f != PartForm::Left), |o, (i, form)| {
            let signature = match form {
                PartForm::Signed(at) => shown[at].1.opaque.as_deref(),
                _ => None,
            };
            open(o, shown[i].0, shown[i].1);
            part::close(o, signature);
        });
        raw(o, "]}");
    });
    o.push(b']');
}

fn kind(s: &Slot, b: &Block) -> PartKind {
    match s.show {
        BlockForm::Reasoning => PartKind::Thought {
            empty: b.text.is_empty(),
            sealed: b.opaque.as_ref().is_some_and(|o| !o.is_empty()),
        },
        BlockForm::Call | BlockForm::Text if s.is_assistant() => PartKind::Carrier,
        _ => PartKind::Other,
    }
}

/// A part without its closing brace.
fn open(o: &mut Vec<u8>, s: &Slot, b: &Block) {
    let (id, name) = b.call.as_ref().map_or(("", ""), |c| (&c.id, &c.name));
    match (s.show, &b.media) {
        (BlockForm::Call, _) => {
            part::call(o, id, name, |o| block_object(o, b));
        }
        (BlockForm::Output, media) => {
            field(o, "{\"functionResponse\":{\"id\":", id);
            field(o, ",\"name\":", name);
            raw(
                o,
                if b.is_error { ",\"response\":{\"error\":" } else { ",\"response\":{\"output\":" },
            );
            raw(o, b.json_text());
            o.push(b'}');
            if let Some(m) = media {
                raw(o, ",\"parts\":[");
                part::file(o, m);
                raw(o, "}]");
            }
            o.push(b'}');
        }
        (BlockForm::Image, Some(m)) => part::file(o, m),
        (show, _) => {
            raw(o, if show == BlockForm::Reasoning { THOUGHT } else { TEXT });
            raw(o, b.json_text());
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GeminiRequest<'a> {
    #[serde(alias = "cached_content")]
    cached_content: Option<Text>,
    #[serde(borrow, alias = "system_instruction")]
    system_instruction: Option<GeminiTurn<'a>>,
    #[serde(borrow)]
    tools: Option<Vec<&'a RawValue>>,
    #[serde(borrow, default)]
    contents: Vec<GeminiTurn<'a>>,
    #[serde(alias = "generation_config")]
    generation_config: Option<Config>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Config {
    #[serde(alias = "max_output_tokens")]
    max_output_tokens: Option<u64>,
}

/// Decodes a request.
pub(super) fn decode(model: &str, bytes: &[u8], calls: OpenCalls) -> Result<Prompt, WireError> {
    prompt(model, json::parse(bytes)?, calls)
}

/// Decodes a count request: the request in a field, or directly for Vertex and for contents alone.
pub(super) fn decode_count(model: &str, bytes: &[u8]) -> Result<Prompt, WireError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct CountRequest<'a> {
        #[serde(borrow, alias = "generate_content_request")]
        generate_content_request: Option<GeminiRequest<'a>>,
    }
    match json::parse::<CountRequest<'_>>(bytes)?.generate_content_request {
        Some(body) => prompt(model, body, OpenCalls::default()),
        None => decode(model, bytes, OpenCalls::default()),
    }
}

/// Decodes the prompt; `calls` are those of earlier messages outside the body.
pub(super) fn prompt(
    model: &str,
    body: GeminiRequest<'_>,
    mut calls: OpenCalls,
) -> Result<Prompt, WireError> {
    let mut items = Vec::with_capacity(2 * body.contents.len() + 4);
    if let Some(system) = body.system_instruction {
        let said = system.contents(&mut calls)?;
        items.extend(said.into_iter().map(|c| Item::new(Role::System, c, 0, None)));
    }
    for (i, turn) in body.contents.into_iter().enumerate() {
        let role = role(turn.role.as_deref())?;
        for content in turn.contents(&mut calls)? {
            let role = match content {
                crate::prompt::Content::Output { .. } => Role::Tool,
                _ => role,
            };
            items.push(Item::new(role, content, i + 1, None));
        }
    }
    Ok(Prompt {
        max_tokens: body.generation_config.and_then(|c| c.max_output_tokens),
        tools: body.tools.map(|t| declarations(&t).map(Tools::from_json)).transpose()?,
        stored: opt(body.cached_content),
        ..Prompt::new(model, items)
    })
}

/// Returns the role; older clients use `function` for results.
fn role(given: Option<&str>) -> Result<Role, WireError> {
    match given.unwrap_or("user") {
        "user" | "function" => Ok(Role::User),
        "model" => Ok(Role::Assistant),
        other => {
            let (what, known) = ("role", "user, model");
            Err(WireError::Unsupported { what, value: other.into(), known })
        }
    }
}

/// Joins all function declarations unchanged, followed by the provider's own tools.
fn declarations(tools: &[&RawValue]) -> Result<Box<RawValue>, WireError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct GeminiTool<'a> {
        #[serde(borrow, alias = "function_declarations")]
        function_declarations: Option<&'a RawValue>,
    }
    let mut lists = Vec::new();
    for tool in tools {
        let declared: GeminiTool<'_> = serde_json::from_str(tool.get())?;
        match declared.function_declarations {
            Some(list) if tools.len() == 1 => return Ok(list.to_owned()),
            Some(list) => lists.extend(serde_json::from_str::<Vec<&RawValue>>(list.get())?),
            None => lists.push(tool),
        }
    }
    let joined = lists.iter().map(|t| t.get()).collect::<Vec<_>>().join(",");
    Ok(RawValue::from_string(format!("[{joined}]"))?)
}
