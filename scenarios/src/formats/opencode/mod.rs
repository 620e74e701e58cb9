//! OpenCode: the output of `opencode export`, its storage folder (`…/opencode/storage`), and its
//! database (`opencode.db`) (docs/sources/opencode.md §7).
//!
//! Rules, where the format leaves a choice:
//! - A step of the model (`step-start` to `step-finish`) is one reply with the counters of the
//!   step; results follow their calls.
//! - A `compaction` part and the reply marked `summary` are one recorded compaction. Text that the
//!   user did not type (`synthetic`) joins a message; `ignored` parts were not sent.
//! - Sessions of subagents are the windows of their callers in a folder or database, found by the
//!   session that the `task` call names; in an export they are separate.
//! - What the user took back (`revert`) is not in the session. Its calls are paid.
//! - `input` excludes the tokens read from and written to the cache. Reasoning is billed as output.
//! - A tool's output is the whole one; where the program cleared it later (pruning), a note says so.

mod reader;
mod stores;

use super::database::has_tables;
use super::source::DATABASE;
use crate::formats::prelude::*;
use reader::{MessageRow, StoredSession};

pub(super) const FORMAT: Format = Format {
    title: "OpenCode",
    name: "opencode",
    untold: "system prompt, tools and instruction files, which request carried which reminder, and \
             whether a request failed before its first part",
    sniff,
    read,
    parts: no_parts,
};

fn sniff(head: &Head) -> bool {
    if let Some(entries) = &head.entries {
        return ["session", "message"].iter().all(|n| entries.iter().any(|e| e == n));
    }
    if head.text.starts_with(DATABASE) {
        return has_tables(head, &["session", "message", "part"]);
    }
    let value = head.value();
    let info = |v: &Value, key: &str| v.get("info").is_some_and(|i| i.get(key).is_some());
    let message = |m: &Value| info(m, "role") && m.get("parts").is_some();
    value.get("messages").is_some_and(|m| m.get(0).is_some_and(message))
        || info(value, "projectID") && info(value, "id")
}

fn read(source: &Source<'_>, sink: &mut Sink<'_>) -> Result<(), Ended> {
    if let Some(folder) = source.path().filter(|p| p.is_dir()) {
        return stores::folder(folder, sink);
    }
    if source.head()?.text.starts_with(DATABASE) {
        return stores::database(source, sink);
    }
    sink(export(&Document::from_source(source)?))
}

fn export(document: &Document<'_>) -> Result<Recording, InputError> {
    let members = document.members()?;
    let mut out = Recording::default();
    let info = members.value("info").as_object().cloned().unwrap_or_default();
    let message = |RecordedLine { number: line, mut object }: RecordedLine| {
        let Some(Value::Object(info)) = object.remove("info") else { return None };
        Some(MessageRow { line, info, parts: objects(&object, "parts").cloned().collect() })
    };
    let messages = document.objects(members.raw("messages"), &mut out).into_iter();
    let stored = StoredSession { info, messages: messages.filter_map(message).collect() };
    reader::recording(stored, &mut |_| None, &mut out);
    Ok(out)
}

#[cfg(test)]
mod tests;
