//! Sizes on which Gemini CLI bases its decisions (docs/sources/gemini-cli.md §1, §2).

use std::collections::HashMap;
use std::sync::Arc;

use ctxbench_core::block::{Block, BlockKind};
use ctxbench_core::tokens::utf16_len;
use ctxbench_util::json::Json;
use serde_json::{Value, json};

use super::contents::{ContentMessage, Side, stable_id};
use super::preview::{full_text, response_key};

/// Tokens that an image counts as (docs/sources/gemini-cli.md §1).
const IMAGE: u64 = 3_000;
/// Tokens that a PDF counts as (docs/sources/gemini-cli.md §1).
const PDF: u64 = 25_800;
/// Maximum characters of a text that is inspected. In a longer text all characters count as ASCII
/// (docs/sources/gemini-cli.md §1).
const LONG: u64 = 100_000;

/// Cache of block sizes by content hash. Every request compares the whole history with limits, so
/// each block is measured only once.
#[derive(Default)]
pub(super) struct Sizes(HashMap<u64, Size>);

#[derive(Clone, Copy)]
struct Size {
    /// Length of the part as compact JSON, UTF-16 units.
    json: u64,
    /// Number of quarter tokens.
    quarters: u64,
    /// Tokens of a result in the form that is written to a file.
    whole: u64,
}

impl Sizes {
    fn block_size(&mut self, b: &Block) -> Size {
        *self.0.entry(b.hash).or_insert_with(|| Size {
            json: part_json_len(b),
            quarters: quarters(b),
            whole: if b.kind == BlockKind::Output { estimate_text(&full_text(b)) } else { 0 },
        })
    }

    /// Returns the length of a message as compact JSON, in UTF-16 units.
    pub(super) fn json_len(&mut self, message: &ContentMessage) -> u64 {
        let role = if message.side == Side::User { "user" } else { "model" };
        let parts: u64 = message.parts.iter().map(|b| self.block_size(b).json).sum();
        let commas = (message.parts.len() as u64).saturating_sub(1);
        json_len(&json!({"role": role, "parts": []})) + parts + commas
    }

    /// Estimates the tokens of parts: the sum of their quarter tokens, rounded down once.
    pub(super) fn estimate<'a>(&mut self, parts: impl IntoIterator<Item = &'a Arc<Block>>) -> u64 {
        parts.into_iter().map(|b| self.block_size(b).quarters).sum::<u64>() / 4
    }

    /// Returns the tokens of a result in the form that is written to a file.
    pub(super) fn full_size(&mut self, result: &Block) -> u64 {
        self.block_size(result).whole
    }
}

/// Returns a result as an object: `{"output": …}`.
fn response(b: &Block) -> Value {
    json!({ response_key(b.is_error): *b.text })
}

fn json_len(v: &Value) -> u64 {
    utf16_len(&v.to_string())
}

fn part_json_len(b: &Block) -> u64 {
    let (id, name) = (stable_id(b), b.call.as_ref().map_or("", |c| &*c.name));
    match b.kind {
        BlockKind::Call => {
            // The arguments take the place of the digit.
            let arguments = Json::read(&b.text).map_or_else(|| "{}".to_string(), |j| j.write());
            let call = json!({"functionCall": {"id": id, "name": name, "args": 0}});
            json_len(&call) - 1 + utf16_len(&arguments)
        }
        BlockKind::Output => json_len(&json!({
            "functionResponse": {"id": id, "name": name, "response": response(b)}
        })),
        BlockKind::Image => b.media.as_ref().map_or(0, |m| {
            let data = m.url.split_once(";base64,").map_or(m.url.as_str(), |(_, data)| data);
            json_len(&json!({"inlineData": {"mimeType": m.media_type, "data": data}}))
        }),
        _ => json_len(&json!({"text": *b.text})),
    }
}

/// Estimates the tokens of a text.
pub(super) fn estimate_text(text: &str) -> u64 {
    text_quarters(text) / 4
}

fn quarters(b: &Block) -> u64 {
    match b.kind {
        BlockKind::Call => part_json_len(b),
        BlockKind::Output => {
            b.call.as_ref().map_or(0, |c| utf16_len(&c.name)) + json_len(&response(b))
        }
        BlockKind::Image => {
            let pdf = b.media.as_ref().is_some_and(|m| m.media_type == "application/pdf");
            4 * if pdf { PDF } else { IMAGE }
        }
        _ => text_quarters(&b.text),
    }
}

/// Returns the quarter tokens of a text: one for an ASCII character, six for any other.
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
    use super::super::contents::messages;
    use super::*;
    use crate::testing::{block, call_block};

    fn tool(kind: BlockKind, text: &str) -> Arc<Block> {
        call_block(kind, "call_1", "read_file", text)
    }

    #[test]
    fn sizes_are_those_of_the_json_forms() {
        // Lengths of the texts that JavaScript's JSON.stringify writes.
        let text = block(BlockKind::User, 0, "a\n\"é\"");
        let call = tool(BlockKind::Call, "{ \"file_path\": \"a.txt\" }");
        let output = tool(BlockKind::Output, "line\n");
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
        assert_eq!(Sizes::default().json_len(&messages[0]), json.encode_utf16().count() as u64);
    }

    #[test]
    fn estimates_follow_the_alphabet() {
        assert_eq!(estimate_text("abcdefg"), 1);
        assert_eq!(estimate_text("abcdefgh"), 2);
        // 4 × 1.5 tokens and 2 × 0.25.
        assert_eq!(estimate_text("日本語字ab"), 6);
        // In a text of more than 100,000 characters, all characters count as ASCII.
        assert_eq!(estimate_text(&"é".repeat(100_001)), 25_000);
        assert_eq!(estimate_text(&"é".repeat(100_000)), 150_000);
        // The name (9) and {"output":"line\n"} (19), a quarter each.
        let output = tool(BlockKind::Output, "line\n");
        assert_eq!(Sizes::default().estimate(&[output]), 7);
    }
}
