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

pub(super) use content::{content, definitions, text_of};
pub(super) use reader::MessageReader;
pub(super) use usage::{counters, is_search, take_inside, terms};

/// Properties that lists of messages lack.
const UNTOLD: &str = "compactions (a list of messages is what was left at its end), the wait \
                      between messages where these have no times, and counters where nobody stored \
                      them";

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

/// API of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MessageApi {
    Chat,
    Responses,
    Anthropic,
}

/// Returns the dialect of the first conversation in a file, or `None` if the file does not contain
/// one.
fn dialect(head: &Head) -> Option<MessageApi> {
    let lines: Vec<Value> = if head.is_document() {
        Vec::new()
    } else {
        head.objects().cloned().map(Value::Object).collect()
    };
    // One message per line.
    if lines.first().is_some_and(is_message) {
        return of_messages(&lines);
    }
    // The first line may break off.
    let first = lines.first().unwrap_or(head.value());
    let answers = ["response", "completion"].iter().filter_map(|k| first.get(k)).chain([first]);
    let mut messages = containers::conversation(first)?.into_owned();
    messages.extend(answers.filter(|a| a.as_object().is_some_and(is_answer)).cloned());
    of_messages(&messages)
}

fn of_messages(messages: &[Value]) -> Option<MessageApi> {
    let messages: Vec<&Map<String, Value>> =
        messages.iter().filter(|m| is_message(m)).filter_map(Value::as_object).collect();
    let responses = |m: &&Map<String, Value>| {
        !m.contains_key("role")
            || str_of(m, "type") == Some("message")
            || blocks(m).any(|b| matches!(b, "input_text" | "output_text" | "input_image"))
    };
    let anthropic = |m: &&Map<String, Value>| {
        let blocks = || blocks(m);
        is_answer(m)
            || blocks().any(|b| {
                content::is_tool(b) || matches!(b, "thinking" | "redacted_thinking" | "document")
            })
            || objects(m, "content")
                .any(|b| b.contains_key("source") || b.contains_key("cache_control"))
    };
    match messages.as_slice() {
        [] => None,
        all if all.iter().any(anthropic) => Some(MessageApi::Anthropic),
        all if all.iter().any(responses) => Some(MessageApi::Responses),
        _ => Some(MessageApi::Chat),
    }
}

/// Returns whether a value is an answer of the Messages API: a message with a type.
fn is_answer(m: &Map<String, Value>) -> bool {
    str_of(m, "type") == Some("message") && m.contains_key("stop_reason")
}

fn blocks(m: &Map<String, Value>) -> impl Iterator<Item = &str> {
    objects(m, "content").filter_map(|b| str_of(b, "type"))
}

#[cfg(test)]
mod tests;
