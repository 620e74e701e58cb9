//! Gemini CLI's history of alternating messages of user and model, their sizes, and the rules that
//! depend on these: the split of the history, the results to cut before it, and the results to mask
//! (docs/sources/gemini-cli.md §1, §2, §5).

use std::collections::{HashMap, HashSet};

use ctxbench_core::prelude::*;
use ctxbench_util::json::Json;
use serde::Deserialize;
use serde_json::{Value, json};

use super::preview::{CutSizes, MASKED, full_text, response_key};

/// Values of the settings in `about.toml`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GeminiCliSettings {
    pub(crate) threshold: f64,
    pub(crate) keep: f64,
    pub(crate) results_budget: u64,
    pub(crate) cut_to: u64,
    pub(crate) mask: bool,
    pub(crate) mask_protect: u64,
    pub(crate) mask_minimum: u64,
    pub(crate) attempts: u64,
}

/// Texts in `about.toml`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GeminiCliWords {
    pub(crate) summary_system: Arc<str>,
    pub(crate) prompt_new: Arc<str>,
    pub(crate) prompt_anchored: Arc<str>,
    pub(crate) prompt_verify: Arc<str>,
    pub(crate) ack: Arc<str>,
    pub(crate) interrupted: Arc<str>,
    pub(crate) cut_note: Arc<str>,
    pub(crate) masked_note: Arc<str>,
}

/// Tools with results that are never masked (docs/sources/gemini-cli.md §5).
const EXEMPT: [&str; 4] = ["activate_skill", "ask_user", "enter_plan_mode", "exit_plan_mode"];

/// Returns the number of messages before the split. The split lies before the first user message
/// without results at which the share `goes` of the characters is reached. If there is none,
/// everything is before the split when the history ends with an answer; otherwise the split lies
/// before the last user message without results.
pub(super) fn split(messages: &[ContentMessage], goes: f64, sizes: &mut Sizes) -> usize {
    let sizes: Vec<u64> = messages.iter().map(|m| sizes.json_len(m)).collect();
    let target = sizes.iter().sum::<u64>() as f64 * goes;
    let (mut before, mut last) = (0, 0);
    for (i, (m, size)) in messages.iter().zip(sizes).enumerate() {
        if m.side == Role::User && !m.has_results() {
            if before as f64 >= target {
                return i;
            }
            last = i;
        }
        before += size;
    }
    if messages.last().is_some_and(ContentMessage::is_answer) { messages.len() } else { last }
}

/// Cuts the results that exceed `budget` tokens, counting from the newest, to `most` characters.
/// `note` precedes the cut output, and `next` counts the files.
pub(super) fn cut_results(
    blocks: Vec<Arc<Block>>,
    budget: u64,
    most: usize,
    note: &str,
    sizes: &mut Sizes,
    next: &mut u64,
) -> Vec<Arc<Block>> {
    let mut used = 0;
    let mut out = blocks;
    for b in out.iter_mut().rev().filter(|b| b.kind == BlockKind::Output) {
        let tokens = sizes.block_size(b).whole;
        if used + tokens <= budget {
            used += tokens;
            continue;
        }
        *next += 1;
        let text = full_text(b);
        let Some(cut) = CutSizes::new(&text, most) else {
            used += tokens;
            continue;
        };
        let tool = b.call.as_ref().map_or("", |c| &*c.name);
        let shown = cut.render(&text, note, &format!("tool-outputs/{tool}_{next}.txt"));
        used += estimate_text(&shown);
        *b = b.with_text(BlockForm::Truncated, shown);
    }
    out
}

/// Returns the call IDs of the results to mask. The last message is skipped.
pub(super) fn to_mask(
    messages: &[ContentMessage],
    rule: PruneRule,
    sizes: &mut Sizes,
) -> HashSet<Arc<str>> {
    let older = messages.split_last().map_or(&[][..], |(_, older)| older);
    let results = older.iter().rev().flat_map(|m| m.parts.iter().rev());
    let results = results.filter(|b| b.kind == BlockKind::Output && !b.text.contains(MASKED));
    let results = results.filter_map(|b| Some((b, b.call.as_ref()?)));
    let results: Vec<_> = results.filter(|(_, c)| !EXEMPT.contains(&&*c.name)).collect();
    let steps = results.iter().map(|(b, _)| Some(sizes.estimate([*b])));
    prune_walk(steps, rule).into_iter().map(|i| results[i].1.id.clone()).collect()
}

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
        let role = if message.side == Role::User { "user" } else { "model" };
        let parts: u64 = message.parts.iter().map(|b| self.block_size(b).json).sum();
        let commas = (message.parts.len() as u64).saturating_sub(1);
        json_len(&json!({"role": role, "parts": []})) + parts + commas
    }

    /// Estimates the tokens of parts: the sum of their quarter tokens, rounded down once.
    pub(super) fn estimate<'a>(&mut self, parts: impl IntoIterator<Item = &'a Arc<Block>>) -> u64 {
        parts.into_iter().map(|b| self.block_size(b).quarters).sum::<u64>() / 4
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

/// A message of `User` or `Assistant`. Consecutive messages of one side are merged.
#[derive(Debug)]
pub(super) struct ContentMessage {
    pub(super) side: Role,
    pub(super) parts: Vec<Arc<Block>>,
}

impl ContentMessage {
    /// Returns true if the message contains tool results.
    pub(super) fn has_results(&self) -> bool {
        self.parts.iter().any(|b| b.kind == BlockKind::Output)
    }

    /// Returns true if the message ends a turn of the model.
    pub(super) fn is_answer(&self) -> bool {
        self.side == Role::Assistant && self.parts.iter().all(|b| b.kind != BlockKind::Call)
    }
}

/// Returns the side of a block. `None` = the block is not part of the history.
pub(super) fn side(b: &Block) -> Option<Role> {
    match (b.kind, b.role) {
        (BlockKind::RepoMap | BlockKind::File | BlockKind::Reasoning, _) => None,
        _ if is_system(b) => None,
        (_, Role::Assistant) => Some(Role::Assistant),
        _ => Some(Role::User),
    }
}

pub(super) fn messages<'a>(blocks: impl Iterator<Item = &'a Arc<Block>>) -> Vec<ContentMessage> {
    let mut out: Vec<ContentMessage> = Vec::new();
    for b in blocks {
        let Some(side) = side(b) else { continue };
        match out.last_mut().filter(|m| m.side == side) {
            Some(last) => last.parts.push(b.clone()),
            None => out.push(ContentMessage { side, parts: vec![b.clone()] }),
        }
    }
    out
}

/// Returns the ID of a call in the history: tool name and call ID. Normal requests omit the name.
pub(super) fn stable_id(b: &Block) -> String {
    b.call.as_ref().map_or_else(String::new, |c| format!("{}__{}", c.name, c.id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{block, call_block};

    fn user(size: usize) -> Arc<Block> {
        block(BlockKind::User, 0, &"x".repeat(size))
    }

    fn reply(size: usize) -> Arc<Block> {
        block(BlockKind::Assistant, 0, &"x".repeat(size))
    }

    fn call(id: &str) -> Arc<Block> {
        call_block(BlockKind::Call, id, "read_file", "{}")
    }

    fn output_of(tool: &str, id: &str, size: usize) -> Arc<Block> {
        call_block(BlockKind::Output, id, tool, &"x".repeat(size))
    }

    fn output(id: &str, size: usize) -> Arc<Block> {
        output_of("read_file", id, size)
    }

    #[test]
    fn a_history_that_ends_in_a_loop_of_tools_is_split_before_its_last_prompt() {
        let turn = |size| [user(10), reply(size)];
        let calls = [user(10), call("1"), output("1", 900), call("2")];
        let blocks: Vec<Arc<Block>> = [&turn(100)[..], &turn(100), &calls].concat();
        assert_eq!(split(&messages(blocks.iter()), 0.7, &mut Sizes::default()), 4);
        assert_eq!(split(&[], 0.7, &mut Sizes::default()), 0);
    }

    #[test]
    fn the_line_is_reached_with_equal_size() {
        // 30 + 40 characters of JSON each: {"role":"user","parts":[{"text":""}]} is 38, model 39.
        let (a, b) = (user(62), reply(61));
        let blocks = [a.clone(), b.clone(), a, b];
        // 200 of 400 are exactly half.
        assert_eq!(split(&messages(blocks.iter()), 0.5, &mut Sizes::default()), 2);
        assert_eq!(split(&messages(blocks.iter()), 0.501, &mut Sizes::default()), 4);
    }

    #[test]
    fn short_results_stay_beyond_the_budget() {
        let results = vec![output("1", 1_000)];
        let cut = cut_results(results, 10, 40_000, "Cut", &mut Sizes::default(), &mut 0);
        assert_eq!(cut[0].form, BlockForm::Verbatim);
    }

    #[test]
    fn masking_protects_the_newest_results_and_needs_a_minimum() {
        let rule = PruneRule { protect: 50_000, minimum: 30_000, minimum_suffices: true };
        let of = |sizes: &[usize], tool: &str| {
            let mut blocks = vec![user(1)];
            for (i, size) in sizes.iter().enumerate() {
                let id = i.to_string();
                blocks.push(call(&id));
                blocks.push(output_of(tool, &id, *size));
            }
            blocks.push(reply(1));
            let masked = to_mask(&messages(blocks.iter()), rule, &mut Sizes::default());
            let mut out: Vec<String> = masked.iter().map(|id| id.to_string()).collect();
            out.sort();
            out
        };
        // Each result is (80,000 + 9 + 13) / 4 = 20,005 tokens, so the third from the end crosses
        // 50,000.
        assert_eq!(of(&[80_000; 5], "read_file"), ["0", "1", "2"]);
        assert_eq!(of(&[80_000; 4], "read_file"), ["0", "1"]);
        assert!(of(&[80_000; 3], "read_file").is_empty());
        assert!(of(&[80_000; 5], "ask_user").is_empty());
    }

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
        let sides: Vec<Role> = messages.iter().map(|m| m.side).collect();
        assert_eq!(sides, [Role::User, Role::Assistant, Role::User]);
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
