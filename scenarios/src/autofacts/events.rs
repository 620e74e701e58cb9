//! Events of a session for the modules that find facts. Replies are numbered per agent, and call
//! arguments are parsed once.

use std::collections::HashMap;
use std::sync::Arc;

use crate::escapes;
use ctxbench_core::content::Part;
use ctxbench_session::{Entry, Session};
use serde_json::Value;

/// A call with its arguments as JSON. Arguments that are not JSON become a string.
pub(super) struct ToolUse {
    pub(super) id: Arc<str>,
    pub(super) tool: Arc<str>,
    pub(super) arguments: Value,
}

pub(super) struct FactReply<'a> {
    pub(super) id: &'a str,
    pub(super) texts: Box<[Arc<str>]>,
    pub(super) calls: Box<[ToolUse]>,
}

/// Source of a text that the model was shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    User,
    Tool,
}

/// Text that the model was shown: a user message or the result of a call.
pub(super) struct ShownText<'a> {
    /// Id of the message or call.
    pub(super) key: &'a str,
    pub(super) by: By,
    /// Number of the reply before it: the reply with the call, or the last reply before a message.
    pub(super) at: usize,
    pub(super) texts: Box<[Arc<str>]>,
}

pub(super) enum FactEvent<'a> {
    ShownText(ShownText<'a>),
    /// A reply and its number among those of its agent, from 1.
    Reply(usize, FactReply<'a>),
    Cleared,
}

/// Subagent with the window that an event belongs to; `None` = the main conversation.
pub(super) type Agent<'a> = Option<&'a str>;

pub(super) fn collect(session: &Session) -> Vec<(Agent<'_>, FactEvent<'_>)> {
    let mut replies: HashMap<Agent<'_>, usize> = HashMap::new();
    let mut asked: HashMap<&str, usize> = HashMap::new();
    let mut out = Vec::with_capacity(session.entries.len());
    for entry in &session.entries {
        let agent = entry.agent();
        let so_far = replies.get(&agent).copied().unwrap_or(0);
        let event = match entry {
            Entry::User(m) => {
                let texts = texts(m.content());
                FactEvent::ShownText(ShownText { key: &m.id, by: By::User, at: so_far, texts })
            }
            Entry::Tool(m) => {
                // Another agent may have made the call. Each agent numbers its own replies.
                let at = asked.get(m.call_id.as_str()).copied().unwrap_or(so_far).min(so_far);
                let texts = texts(m.content());
                FactEvent::ShownText(ShownText { key: &m.call_id, by: By::Tool, at, texts })
            }
            Entry::Assistant(m) => {
                replies.insert(agent, so_far + 1);
                let parts = m.content();
                let calls: Box<[ToolUse]> =
                    parts.iter().filter_map(Part::as_call).map(call).collect();
                let own = m.parts.iter().flatten().filter_map(Part::as_call).chain(&m.calls);
                asked.extend(own.map(|call| (&*call.id, so_far + 1)));
                FactEvent::Reply(so_far + 1, FactReply { id: &m.id, texts: texts(parts), calls })
            }
            Entry::Clear | Entry::NewSession => FactEvent::Cleared,
            _ => continue,
        };
        out.push((agent, event));
    }
    out
}

fn call(call: &ctxbench_core::content::ToolCall) -> ToolUse {
    let arguments =
        escapes::from_str(&call.arguments).unwrap_or_else(|_| (&*call.arguments).into());
    ToolUse { id: call.id.clone(), tool: call.name.clone(), arguments }
}

fn texts(parts: Vec<Part>) -> Box<[Arc<str>]> {
    let text = |part: Part| match part {
        Part::Text(text) if !text.is_empty() => Some(text),
        _ => None,
    };
    parts.into_iter().filter_map(text).collect()
}

/// Returns the strings and numbers of a call's arguments, each with the name of its member. Returns
/// nothing if the arguments are not an object.
pub(super) fn leaves(arguments: &Value) -> Vec<(&str, String)> {
    let mut out = Vec::new();
    walk("", arguments, &mut out);
    out
}

fn walk<'a>(name: &'a str, value: &'a Value, out: &mut Vec<(&'a str, String)>) {
    match value {
        Value::String(s) => out.push((name, s.to_string())),
        Value::Number(n) => out.push((name, n.to_string())),
        Value::Array(list) => list.iter().for_each(|v| walk(name, v, out)),
        Value::Object(members) => members.iter().for_each(|(k, v)| walk(k, v, out)),
        Value::Null | Value::Bool(_) => {}
    }
}
