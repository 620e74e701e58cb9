//! mini-swe-agent trajectories (`NAME.traj.json`): an object with chat messages and `info`, or in
//! the first versions a list of messages alone.
//!
//! Rules, where the format leaves a choice:
//! - Where the model writes its command as a fenced block, the block becomes a call of the tool
//!   `bash` and the message after it its result. The program refuses a reply with several such
//!   blocks, or none: the next message is then the user's.
//! - The reply of the provider, which newer versions keep in `extra`, gives model, time and
//!   counters.

use super::actions::{Actions, fenced};
use crate::formats::prelude::*;

pub(super) const FORMAT: Format = Format {
    title: "mini-swe-agent",
    name: "mini-swe-agent",
    untold: "definitions of the tools; in the first versions model, times and counters",
    sniff,
    read,
    parts: no_parts,
};

/// Languages of fenced blocks that contain a command.
const LANGUAGES: &[&str] = &["mswea_bash_command", "bash"];

fn sniff(head: &Head) -> bool {
    let is_message = |m: &Value| m.get("role").is_some() && m.get("content").is_some();
    let of_messages = |list: &Value| list.get(0).is_some_and(is_message);
    let value = head.value();
    if value.is_array() {
        return head.name.ends_with(".traj.json") && of_messages(value);
    }
    let starts = |v: &Value, with: &str| v.as_str().is_some_and(|s| s.starts_with(with));
    value.get("trajectory_format").is_some_and(|f| starts(f, "mini-swe-agent"))
        || value.get("info").is_some_and(|info| {
            let kind = info.get("config").and_then(|c| c.get("agent_type"));
            info.get("mini_version").is_some() || kind.is_some_and(|k| starts(k, "minisweagent"))
        })
        || (head.name.ends_with(".traj.json") && value.get("messages").is_some_and(of_messages))
}

fn read(source: &Source<'_>, sink: &mut Sink<'_>) -> Result<(), Ended> {
    let document = Document::from_source(source)?;
    let mut reader = MessageReader::default();
    let lines = if document.text.trim_start().starts_with('[') {
        document.objects(Some(document.raw()?), &mut reader.out)
    } else {
        let members = document.members()?;
        let info = members.value("info");
        let model = info.pointer("/config/model/model_name").and_then(Value::as_str);
        reader.model = model.map(str::to_string);
        document.objects(members.raw("messages"), &mut reader.out)
    };
    let mut actions = Actions::default();
    for RecordedLine { number, mut object } in lines {
        actions.convert(&mut object, |m| fenced(str_of(m, "content")?, LANGUAGES));
        reader.item(number, &object);
    }
    sink(Ok(reader.out))
}
