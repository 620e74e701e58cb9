//! Conversations in the messages of an API, as people keep them in files and databases: OpenAI's
//! chat messages, the items of its Responses API, Anthropic's messages.
//!
//! Rules, where there is a choice:
//! - A conversation is a list of messages, or an object with one (`messages`, `input`, `history`,
//!   `conversation`), also one within `request`, `body` or `data`; the answer to it (`choices`,
//!   `output`, `content`, also within `response`) is its last reply.
//! - A file contains one conversation as a JSON document, a JSON array of them, one on each line,
//!   or one message on each line.
//! - The dialects are distinguished by their blocks, and read by one reader, which accepts parts of
//!   the other dialects, too. A conversation of texts alone reads the same in all of them and
//!   counts as chat messages.
//! - Each assistant message is a reply. Items of the Responses API up to the next input are one.
//! - Old `function_call`s have no ids; they get one, and a `function` message answers the last call
//!   of its name.
//! - An item of a tool that ran at the provider is a call and its result; see `at_provider.rs`.
//! - Counters are in `usage` of a message, or next to the answer.

mod at_provider;
mod containers;
mod content;
mod reader;
mod usage;

use super::prelude::*;
use reader::is_message;

pub(crate) use content::definition;
pub(super) use content::{content, definitions, text_of};
pub(super) use reader::{MessageReader, stamp};
pub(super) use usage::{compaction_in, counters, is_search, take_inside, terms};

const UNTOLD: &str = "compactions, and times and counters where nobody stored them";

pub(super) const CHAT: Format = Format {
    title: "OpenAI chat messages",
    name: "openai-chat",
    untold: UNTOLD,
    sniff: |head| dialect(head) == Some(MessageApi::Chat),
    read: containers::read,
    parts: no_parts,
};

pub(super) const RESPONSES: Format = Format {
    title: "OpenAI Responses items",
    name: "openai-responses",
    untold: "what encrypted reasoning says, what a web search found, and compactions before the \
             items begin",
    sniff: |head| dialect(head) == Some(MessageApi::Responses),
    read: containers::read,
    parts: no_parts,
};

pub(super) const ANTHROPIC: Format = Format {
    title: "Anthropic messages",
    name: "anthropic-messages",
    untold: UNTOLD,
    sniff: |head| dialect(head) == Some(MessageApi::Anthropic),
    read: containers::read,
    parts: no_parts,
};

/// API of a message. Of the dialects of a conversation's messages, the last one here counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum MessageApi {
    Chat,
    Responses,
    Anthropic,
}

/// Returns the dialect of the first conversation in a file, or `None` if the file does not contain
/// one.
fn dialect(head: &Head) -> Option<MessageApi> {
    let first = match head.objects().next().filter(|_| !head.is_document()) {
        // One message per line.
        Some(first) if is_message(first) => return head.objects().filter_map(api_of).max(),
        // The first line may break off.
        Some(first) => Value::Object(first.clone()),
        None => match head.value() {
            Value::Array(list) if !starts_with_message(list) => list.first()?.clone(),
            other => other.clone(),
        },
    };
    let text = first.to_string();
    containers::conversation(&Document::new(&text, &head.name)).ok()?.api
}

fn starts_with_message(list: &[Value]) -> bool {
    list.first().and_then(Value::as_object).is_some_and(is_message)
}

/// Returns the dialect of a message, or `None` for other objects.
fn api_of(m: &Map<String, Value>) -> Option<MessageApi> {
    let of_block = |block: &Map<String, Value>| match str_of(block, "type").unwrap_or_default() {
        "thinking" | "redacted_thinking" | "document" => MessageApi::Anthropic,
        kind if content::is_tool(kind) => MessageApi::Anthropic,
        _ if block.contains_key("source") => MessageApi::Anthropic,
        _ if block.contains_key("cache_control") => MessageApi::Anthropic,
        "input_text" | "output_text" | "input_image" => MessageApi::Responses,
        _ => MessageApi::Chat,
    };
    let own = match str_of(m, "type") == Some("message") {
        _ if is_answer(m) => MessageApi::Anthropic,
        is_item if is_item || !m.contains_key("role") => MessageApi::Responses,
        _ => MessageApi::Chat,
    };
    is_message(m).then(|| objects(m, "content").map(of_block).fold(own, Ord::max))
}

/// Returns whether a value is an answer of the Messages API: a message with a type.
fn is_answer(m: &Map<String, Value>) -> bool {
    str_of(m, "type") == Some("message") && m.contains_key("stop_reason")
}

#[cfg(test)]
mod tests;
