//! Runs Aider's history file and prompt order on recorded inputs.

use super::chunks::Chunks;
use super::markdown::{MarkdownSpeaker, append, append_start, split_chat_history_markdown};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::conform::{Context, MemberError, read};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SplitMarkdown {
    text: String,
    include_tool: bool,
}

fn spoken(list: Vec<(MarkdownSpeaker, String)>) -> Value {
    list.into_iter().map(|(who, text)| json!({"role": who.word(), "content": text})).collect()
}

pub(super) fn split_markdown(_: &Context, input: Value) -> Result<Value, MemberError> {
    let i: SplitMarkdown = read(input)?;
    Ok(spoken(split_chat_history_markdown(&i.text, i.include_tool)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Roundtrip {
    turns: Vec<(Operation, String)>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Operation {
    Start,
    User,
    Assistant,
    Tool,
}

pub(super) fn roundtrip(_: &Context, input: Value) -> Result<Value, MemberError> {
    let i: Roundtrip = read(input)?;
    let mut file = String::new();
    for (operation, text) in &i.turns {
        match operation {
            Operation::Start => append_start(&mut file, text),
            Operation::User => append(&mut file, MarkdownSpeaker::User, text),
            Operation::Assistant => append(&mut file, MarkdownSpeaker::Assistant, text),
            Operation::Tool => append(&mut file, MarkdownSpeaker::Tool, text),
        }
    }
    let back = |include_tool| spoken(split_chat_history_markdown(&file, include_tool));
    Ok(json!({"markdown": file, "messages": back(false), "messages_with_tool": back(true)}))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CacheHeaders {
    chunks: Map<String, Value>,
}

pub(super) fn cache_headers(_: &Context, input: Value) -> Result<Value, MemberError> {
    let mut i: CacheHeaders = read(input)?;
    let mut part = |name: &str| -> Result<Vec<Value>, MemberError> {
        i.chunks.remove(name).map_or(Ok(Vec::new()), read)
    };
    let chunks = Chunks {
        system: part("system")?,
        examples: part("examples")?,
        readonly_files: part("readonly_files")?,
        repo: part("repo")?,
        done: part("done")?,
        chat_files: part("chat_files")?,
        cur: part("cur")?,
        reminder: part("reminder")?,
    };
    if let Some(odd) = i.chunks.keys().next() {
        return Err(MemberError::Input(format!("unknown part `{odd}`")));
    }
    let mut all = chunks.all();
    for at in chunks.breakpoints() {
        let text = all[at]["content"].take();
        all[at]["content"] =
            json!([{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]);
    }
    Ok(json!({"cacheable_messages": all[..chunks.cacheable()], "all_messages": all}))
}
