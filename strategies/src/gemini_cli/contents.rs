//! The history as Gemini CLI keeps it: messages of user and model in turn, and the sizes that it
//! decides by (docs/sources/gemini-cli.md §1, §2).

use std::sync::Arc;

use ctxbench_core::block::{Block, BlockKind, Role};
use ctxbench_core::json::Json;
use ctxbench_core::strategy::is_system;
use ctxbench_core::tokens::{json_utf16_len, utf16_len};

/// What an image counts as, tokens (docs/sources/gemini-cli.md §1).
const IMAGE: u64 = 3_000;
/// What a PDF counts as, tokens (docs/sources/gemini-cli.md §1).
const PDF: u64 = 25_800;
/// A text of more characters is not looked at: all count as ASCII (docs/sources/gemini-cli.md §1).
const LONG: u64 = 100_000;

/// Who speaks in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    User,
    Model,
}

/// A message: neighbours of one side are one, and their parts follow each other.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) side: Side,
    pub(super) parts: Vec<Arc<Block>>,
}

impl Message {
    /// Whether it hands over results of tools.
    pub(super) fn has_results(&self) -> bool {
        self.parts.iter().any(|b| b.kind == BlockKind::Output)
    }

    fn has_calls(&self) -> bool {
        self.parts.iter().any(|b| b.kind == BlockKind::Call)
    }

    /// Whether it ends a turn of the model.
    pub(super) fn is_answer(&self) -> bool {
        self.side == Side::Model && !self.has_calls()
    }

    /// Length as compact JSON, UTF-16 units.
    pub(super) fn json_len(&self) -> u64 {
        let role = if self.side == Side::User { "user" } else { "model" };
        let parts: Vec<u64> = self.parts.iter().map(|b| part_json_len(b)).collect();
        r#"{"role":"","parts":[]}"#.len() as u64
            + role.len() as u64
            + parts.iter().sum::<u64>()
            + (parts.len() as u64).saturating_sub(1)
    }
}

/// Which side a block is on; `None` = it is no part of the history.
pub(super) fn side(b: &Block) -> Option<Side> {
    match (b.kind, b.role) {
        (BlockKind::RepoMap | BlockKind::File | BlockKind::Reasoning, _) => None,
        _ if is_system(b) => None,
        (_, Role::Assistant) => Some(Side::Model),
        _ => Some(Side::User),
    }
}

/// Blocks as messages.
pub(super) fn messages<'a>(blocks: impl Iterator<Item = &'a Arc<Block>>) -> Vec<Message> {
    let mut out: Vec<Message> = Vec::new();
    for b in blocks {
        let Some(side) = side(b) else { continue };
        match out.last_mut().filter(|m| m.side == side) {
            Some(last) => last.parts.push(b.clone()),
            None => out.push(Message { side, parts: vec![b.clone()] }),
        }
    }
    out
}

/// The id of a call as the history holds it; normal requests leave the name out.
pub(super) fn stable_id(b: &Block) -> String {
    b.call.as_ref().map_or_else(String::new, |c| format!("{}__{}", c.name, c.id))
}

/// A result as the member of its object: `{"output": …}`.
fn response_len(b: &Block) -> u64 {
    let key = if b.is_error { "error" } else { "output" };
    r#"{"":}"#.len() as u64 + key.len() as u64 + json_utf16_len(&b.text)
}

fn part_json_len(b: &Block) -> u64 {
    let id_and_name = || {
        let name = b.call.as_ref().map_or("", |c| c.name.as_str());
        r#""id":,"name":,"#.len() as u64 + json_utf16_len(&stable_id(b)) + json_utf16_len(name)
    };
    match b.kind {
        BlockKind::Call => {
            let arguments = Json::read(&b.text).map_or_else(|| "{}".to_string(), |j| j.write());
            r#"{"functionCall":{"args":}}"#.len() as u64 + id_and_name() + utf16_len(&arguments)
        }
        BlockKind::Output => {
            r#"{"functionResponse":{"response":}}"#.len() as u64 + id_and_name() + response_len(b)
        }
        BlockKind::Image => b.media.as_ref().map_or(0, |m| {
            let data = m.url.split_once(";base64,").map_or(m.url.as_str(), |(_, data)| data);
            r#"{"inlineData":{"mimeType":,"data":}}"#.len() as u64
                + json_utf16_len(&m.media_type)
                + json_utf16_len(data)
        }),
        _ => r#"{"text":}"#.len() as u64 + json_utf16_len(&b.text),
    }
}

/// Tokens of parts: a sum of quarters, rounded down once.
pub(super) fn estimate<'a>(parts: impl Iterator<Item = &'a Arc<Block>>) -> u64 {
    parts.map(|b| quarters(b)).sum::<u64>() / 4
}

/// Tokens of a text.
pub(super) fn estimate_text(text: &str) -> u64 {
    text_quarters(text) / 4
}

fn quarters(b: &Block) -> u64 {
    match b.kind {
        BlockKind::Call => part_json_len(b),
        BlockKind::Output => b.call.as_ref().map_or(0, |c| utf16_len(&c.name)) + response_len(b),
        BlockKind::Image => {
            let pdf = b.media.as_ref().is_some_and(|m| m.media_type == "application/pdf");
            4 * if pdf { PDF } else { IMAGE }
        }
        _ => text_quarters(&b.text),
    }
}

/// An ASCII character is a quarter of a token, any other one and a half.
fn text_quarters(text: &str) -> u64 {
    let all = utf16_len(text);
    if all > LONG {
        return all;
    }
    let ascii = text.bytes().filter(u8::is_ascii).count() as u64;
    ascii + 6 * (all - ascii)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctxbench_core::block::{CallRef, Draft, MessageId};

    fn block(kind: BlockKind, role: Role, text: &str) -> Arc<Block> {
        let call = Some(Arc::new(CallRef { id: "call_1".into(), name: "read_file".into() }));
        let call = call.filter(|_| matches!(kind, BlockKind::Call | BlockKind::Output));
        Draft { call, ..Draft::text(kind, role, text) }.build(MessageId(0), vec![])
    }

    #[test]
    fn sizes_are_those_of_the_json_forms() {
        // Lengths of the texts that JavaScript's JSON.stringify writes.
        let text = block(BlockKind::User, Role::User, "a\n\"é\"");
        let call = block(BlockKind::Call, Role::Assistant, "{ \"file_path\": \"a.txt\" }");
        let output = block(BlockKind::Output, Role::Tool, "line\n");
        for (b, json) in [
            (&text, r#"{"text":"a\n\"é\""}"#),
            (
                &call,
                r#"{"functionCall":{"id":"read_file__call_1","name":"read_file","args":{"file_path":"a.txt"}}}"#,
            ),
            (
                &output,
                r#"{"functionResponse":{"id":"read_file__call_1","name":"read_file","response":{"output":"line\n"}}}"#,
            ),
        ] {
            assert_eq!(part_json_len(b), json.encode_utf16().count() as u64, "{json}");
        }
        let all = [&text, &call, &output].map(|b| b.clone());
        let messages = messages(all.iter());
        let sides: Vec<Side> = messages.iter().map(|m| m.side).collect();
        assert_eq!(sides, [Side::User, Side::Model, Side::User]);
        let json = r#"{"role":"user","parts":[{"text":"a\n\"é\""}]}"#;
        assert_eq!(messages[0].json_len(), json.encode_utf16().count() as u64);
    }

    #[test]
    fn estimates_follow_the_alphabet() {
        assert_eq!(estimate_text("abcdefg"), 1);
        assert_eq!(estimate_text("abcdefgh"), 2);
        // 4 × 1.5 tokens and 2 × 0.25.
        assert_eq!(estimate_text("日本語字ab"), 6);
        // Beyond 100,000 characters all count as ASCII.
        assert_eq!(estimate_text(&"é".repeat(100_001)), 25_000);
        assert_eq!(estimate_text(&"é".repeat(100_000)), 150_000);
        // The name (9) and {"output":"line\n"} (19), a quarter each.
        let output = block(BlockKind::Output, Role::Tool, "line\n");
        assert_eq!(estimate([output].iter()), 7);
    }
}
