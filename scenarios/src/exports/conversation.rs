//! Contents of a session that all foreign formats can express: messages in order, and each reply
//! with the results of its calls.

use std::collections::HashMap;

use ctxbench_core::block::Media;
use ctxbench_core::content::{Part, ToolCall};
use ctxbench_session::{AssistantEntry, Entry, Session, ToolEntry, UserEntry};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::ExportLosses;
use crate::formats::definition;

/// Messages of one window.
#[derive(Default)]
pub(super) struct ExportConversation<'a> {
    /// Name of the subagent. `None` = the main conversation.
    pub(super) agent: Option<&'a str>,
    /// Objects with `name`, `description`, `input_schema`.
    pub(super) tools: Vec<Value>,
    pub(super) turns: Vec<ExportTurn<'a>>,
    /// Call of the main conversation that has the first result after the beginning of this one.
    pub(super) before: Option<&'a str>,
}

pub(super) enum ExportTurn<'a> {
    /// Text that is not part of a message, such as a system prompt.
    Standing(String),
    User(&'a UserEntry),
    Reply(&'a AssistantEntry, Vec<&'a ToolEntry>),
}

/// Returns the conversations of a session: the main one first, then subagents in order of their
/// beginning.
pub(super) fn conversations<'a>(
    session: &'a Session,
    lost: &mut ExportLosses,
) -> Vec<ExportConversation<'a>> {
    let mut out = vec![ExportConversation::default()];
    let mut at: HashMap<Option<&str>, usize> = HashMap::from([(None, 0)]);
    // Window and turn of each call.
    let mut callers: HashMap<String, (usize, usize)> = HashMap::new();
    for entry in &session.entries {
        if let Some(what) = unsaid(entry) {
            lost.add(what);
            continue;
        }
        let agent = entry.agent();
        let window = *at.entry(agent).or_insert_with(|| {
            out.push(ExportConversation { agent, ..ExportConversation::default() });
            out.len() - 1
        });
        match entry {
            Entry::Tools { definitions, .. } if out[window].tools.is_empty() => {
                let tools = definitions.iter().filter_map(definition);
                out[window].tools = tools.filter(|tool| tool["name"] != "").collect();
            }
            Entry::Tools { .. } => lost.add("later lists of tools"),
            Entry::User(user) => out[window].turns.push(ExportTurn::User(user)),
            Entry::Assistant(reply) => {
                let place = (window, out[window].turns.len());
                callers.extend(reply.all_calls().iter().map(|c| (c.id.to_string(), place)));
                out[window].turns.push(ExportTurn::Reply(reply, Vec::new()));
            }
            Entry::Tool(result) => {
                let place = callers.get(&result.call_id).copied();
                let turn = place.and_then(|(window, turn)| out[window].turns.get_mut(turn));
                match turn {
                    Some(ExportTurn::Reply(_, results)) => results.push(result),
                    _ => lost.add("results without a call"),
                }
                lost.add_if(!result.effects.is_empty(), "results with the files they changed");
                if place.is_some_and(|(window, _)| window == 0) {
                    for of_agent in out.iter_mut().skip(1).filter(|c| c.before.is_none()) {
                        of_agent.before = Some(&result.call_id);
                    }
                }
            }
            other => {
                if let Some(text) = standing(other).filter(|t| !t.is_empty()) {
                    out[window].turns.push(ExportTurn::Standing(text));
                }
            }
        }
    }
    session.facts.iter().for_each(|_| lost.add("facts"));
    out
}

/// Returns the name of an entry that other formats cannot express.
fn unsaid(entry: &Entry) -> Option<&'static str> {
    Some(match entry {
        Entry::DiskFile { .. } => "files on disk",
        Entry::Compact { .. } => "commands to compact",
        Entry::Rewind { .. } => "rewinds",
        Entry::Clear => "fresh beginnings",
        Entry::NewSession => "beginnings of new sessions",
        Entry::Restart => "restarts",
        Entry::Idle { .. } => "waits",
        Entry::RecordedCompaction(_) => "compactions",
        Entry::RecordedCall(_) => "calls on branches that were given up",
        Entry::Fact(_) => "facts",
        _ => return None,
    })
}

/// Returns the text that precedes the messages, after the name of its file if it has one.
fn standing(entry: &Entry) -> Option<String> {
    let text = entry.standing_text()?;
    Some(match entry {
        Entry::Memory { path, .. } | Entry::File { path, .. } => format!("{path}\n\n{text}"),
        _ => text.to_string(),
    })
}

pub(super) fn as_function(tool: &Value) -> Value {
    let [name, description, schema] = ["name", "description", "input_schema"].map(|k| &tool[k]);
    let function = json!({"name": name, "description": description, "parameters": schema});
    json!({"type": "function", "function": function})
}

/// Returns the arguments of a call on one line, as the model wrote them. Arguments that are not a
/// JSON object are wrapped in one.
pub(super) fn arguments(call: &ToolCall, lost: &mut ExportLosses) -> Box<RawValue> {
    // Line ends within texts are escaped, so raw line ends only occur between values.
    let raw = |text: &str| RawValue::from_string(text.replace(['\n', '\r'], " "));
    // Parsed completely, since a raw value may contain text that no reader accepts.
    let is_object = serde_json::from_str::<Map<String, Value>>(&call.arguments).is_ok();
    if let (true, Ok(written)) = (is_object, raw(&call.arguments)) {
        return written;
    }
    if call.arguments.trim().is_empty() {
        return RawValue::from_string("{}".into()).unwrap_or_default();
    }
    lost.add("arguments that are not a JSON object");
    raw(&json!({"arguments": &*call.arguments}).to_string()).unwrap_or_default()
}

/// Converts texts and images. `image` returns `None` for files that are lost, `otherwise`.
pub(super) fn texts_and_images(
    parts: &[Part],
    lost: &mut ExportLosses,
    otherwise: &'static str,
    image: impl Fn(&Media) -> Option<Value>,
) -> Value {
    let mut list = Vec::new();
    for part in parts {
        match part {
            Part::Text(text) => list.push(json!({"type": "text", "text": &**text})),
            Part::Image(media) => {
                let block = image(media);
                lost.add_if(block.is_none(), otherwise);
                list.extend(block);
            }
            _ => lost.add("parts of other kinds"),
        }
    }
    content_of(list)
}

/// Returns the content of a message from its blocks: a single text, or else a list.
pub(super) fn content_of(blocks: Vec<Value>) -> Value {
    match blocks.as_slice() {
        [] => "".into(),
        [one] if one["type"] == "text" => one["text"].clone(),
        _ => blocks.into(),
    }
}

/// Returns whether the parts of a message are in the order reasoning, content, calls, which formats
/// with a separate field for each can keep.
pub(super) fn in_places(parts: &[Part]) -> bool {
    let place = |p: &Part| match p {
        Part::Reasoning { .. } => 0,
        Part::Call(_) => 2,
        _ => 1,
    };
    parts.is_sorted_by_key(place)
        && parts.iter().filter(|p| matches!(p, Part::Reasoning { .. })).count() < 2
}
