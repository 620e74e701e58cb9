//! Bodies, compared with JSON written by hand from the providers' references.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::prompt::Prompt;
use crate::wire::{
    ALL, Wire, WireError, anthropic, for_model, gemini, openai_chat, openai_responses,
};
use ctxbench_core::block::{CallRef, Media, MessageId};
use ctxbench_core::model::{catalogue, find};
use ctxbench_core::request::{Applied, ClearInputs, ClearTrigger, ServerEdit, Thread, Tools};
use ctxbench_core::usage::Ttl;
use ctxbench_core::{Block, BlockKind, Draft, Model, ModelError, Reply, Request, Role, StopReason};

const ANTHROPIC: Wire = &anthropic::WIRE;
const RESPONSES: Wire = &openai_responses::WIRE;
const CHAT: Wire = &openai_chat::WIRE;
const GEMINI: Wire = &gemini::WIRE;

pub(super) fn model() -> Arc<Model> {
    Arc::new(find("claude-sonnet-4-6").unwrap().clone()).named("m")
}

fn decode(body: &[u8]) -> Result<Prompt, WireError> {
    ANTHROPIC.decode("", body)
}

#[test]
fn every_wire_is_known_by_its_name_and_every_model_speaks_one_that_can_what_it_can() {
    for wire in ALL {
        assert_eq!(super::find(wire.name), Some(*wire), "the name is its own");
        assert!(super::apis().iter().any(|api| std::ptr::eq(*api, wire.api)), "{wire:?}");
        let path = (wire.path)("m");
        assert_eq!((wire.endpoint)(&path), Some(super::Endpoint::Reply), "{wire:?}: {path}");
        let first = ALL.iter().find(|w| (w.endpoint)(&path).is_some());
        assert_eq!(first, Some(wire), "{path} is nobody else's");
    }
    let clear = ServerEdit::ClearThinking { keep: None };
    let ask = block(0, BlockKind::CompactionTrigger, Role::User, "");
    let said = block(0, BlockKind::User, Role::User, "u");
    for m in catalogue() {
        let (wire, can) = (for_model(m), m.capabilities);
        let counts = wire.encode_count(&request(vec![said.clone()])).is_some();
        for (needed, carried) in [
            (can.counting, counts),
            (can.message_threads, wire.rules.carries_threads),
            (can.context_editing, (wire.rules.carried_edit)(&clear).is_some()),
            (can.server_compaction || can.compaction_items, (wire.rules.shows_trigger)(&ask, true)),
        ] {
            assert!(carried || !needed, "{} over {wire:?}", m.name);
        }
    }
}

pub(super) fn block(message: u32, kind: BlockKind, role: Role, text: &str) -> Arc<Block> {
    Draft::text(kind, role, text).build(MessageId(message), vec![])
}

fn called(message: u32, kind: BlockKind, id: &str, text: &str) -> Arc<Block> {
    let call = Arc::new(CallRef { id: id.into(), name: "read".into() });
    block(message, kind, Role::Assistant, text).map_draft(|d| d.call = Some(call))
}

/// Builds a file in the message after the system prompt.
pub(super) fn file(media_type: &str, url: &str) -> Arc<Block> {
    let media = Media { media_type: media_type.into(), url: url.into(), name: None };
    block(1, BlockKind::Image, Role::User, "").map_draft(|d| d.media = Some(Arc::new(media)))
}

pub(super) fn request(blocks: Vec<Arc<Block>>) -> Request {
    Request { max_tokens: Some(100), ..Request::new(model(), blocks) }
}

/// System, user with image, a reply with thinking, text and two calls, their results, a developer
/// note, a question.
pub(super) fn conversation() -> Request {
    let thinking = block(2, BlockKind::Reasoning, Role::Assistant, "hm");
    let failed = called(4, BlockKind::Output, "c2", "no").map_draft(|d| d.is_error = true);
    request(vec![
        block(0, BlockKind::Base, Role::Instructions, "base"),
        block(1, BlockKind::User, Role::User, "look"),
        file("image/png", "data:image/png;base64,AA=="),
        thinking.map_draft(|d| d.opaque = Some("sig".into())),
        block(2, BlockKind::Assistant, Role::Assistant, "reading"),
        called(2, BlockKind::Call, "c1", "{\"p\": 1}"),
        called(2, BlockKind::Call, "c2", "not json"),
        called(3, BlockKind::Output, "c1", "yes"),
        block(5, BlockKind::Context, Role::Developer, "note"),
        failed,
        block(6, BlockKind::User, Role::User, "go on"),
    ])
}

fn body(wire: Wire, r: &Request) -> Value {
    serde_json::from_slice(&wire.encode(r).body).unwrap()
}

/// Each wire's body of [`conversation`], with a breakpoint after the thinking, where none can be. It is
/// before it then.
#[test]
fn the_body_of_a_conversation_is_as_written_by_hand() {
    let mut r = conversation();
    r.breakpoints = vec![0, 3, 10];
    r.ttl = Ttl::OneHour;
    r.tools = Tools::new(&[json!({"name": "read"})]);
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/bodies");
    for wire in ALL {
        let text = std::fs::read_to_string(format!("{folder}/{}.json", wire.name)).unwrap();
        let expected: Value = serde_json::from_str(&text).unwrap();
        let mut found = body(wire, &r);
        // The files of OpenAI have the messages and the members beside them that differ.
        if wire.name.starts_with("openai") {
            let members = expected.as_object().unwrap();
            found.as_object_mut().unwrap().retain(|name, _| members.contains_key(name));
        }
        assert_eq!(found, expected, "{wire:?}");
    }
    let e = ANTHROPIC.encode(&r);
    assert_eq!(e.messages, [0, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3]);
    assert_eq!(e.headers[1], ("anthropic-beta", "extended-cache-ttl-2025-04-11".to_string()));
    let e = GEMINI.encode(&r);
    assert_eq!(e.path, "/v1beta/models/m:generateContent");
    assert_eq!(e.messages, [0, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3]);
}

#[test]
fn anthropic_carries_edits_and_compaction_blocks() {
    let mut r = request(vec![
        block(0, BlockKind::Compaction, Role::Assistant, "so far"),
        block(1, BlockKind::User, Role::User, "go"),
    ]);
    r.server_edits = vec![
        ServerEdit::ClearThinking { keep: Some(2) },
        ServerEdit::ClearToolUses {
            trigger: ClearTrigger::InputTokens(30_000),
            keep: 3,
            clear_at_least: 5_000,
            exclude: vec!["web".into()],
            inputs: ClearInputs::Of(vec!["edit".into()]),
        },
        ServerEdit::compact(150_000),
    ];
    let b = body(ANTHROPIC, &r);
    assert_eq!(
        b["messages"][0],
        json!({"role": "assistant", "content": [{"type": "compaction", "content": "so far"}]})
    );
    let edits = json!([
        {"type": "clear_thinking_20251015", "keep": {"type": "thinking_turns", "value": 2}},
        {"type": "clear_tool_uses_20250919", "trigger": {"type": "input_tokens", "value": 30000}, "keep": {"type": "tool_uses", "value": 3},
         "clear_at_least": {"type": "input_tokens", "value": 5000}, "exclude_tools": ["web"], "clear_tool_inputs": ["edit"]},
        {"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 150000}, "pause_after_compaction": false}]);
    assert_eq!(b["context_management"]["edits"], edits);
    let betas = &ANTHROPIC.encode(&r).headers[1].1;
    assert_eq!(betas, "context-management-2025-06-27,compact-2026-01-12");
}

#[test]
fn anthropic_understands_what_other_clients_write() {
    let given = json!({
        "model": "m", "max_tokens": 5, "stream": true, "metadata": {"user_id": "u"}, "system": "be \
         brief",
        "tools": [{"name": "a", "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
        "cache_control": {"type": "ephemeral"},
        "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": [{"type": "redacted_thinking", "data": "xx"}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}, {"type": "text", "text": "and"}]}],
    });
    let p = decode(given.to_string().as_bytes()).unwrap();
    assert_eq!(
        p.items.iter().map(|i| i.text()).collect::<Vec<_>>(),
        ["be brief", "hi", "", "", "and"]
    );
    assert_eq!(
        (p.tools_cache, p.items[4].cache, p.items[0].cache),
        (Some(Ttl::OneHour), Some(Ttl::FiveMinutes), None)
    );
    let e = decode(br#"{"model":"m","messages":[{"role":"user","content":[{"type":"video"}]}]}"#)
        .unwrap_err();
    assert!(e.to_string().contains("`video`"), "{e}");
}

#[test]
fn anthropic_bills_the_sum_of_iterations() {
    // The example of docs/sources/anthropic-sdk.md §3.
    let given = json!({
        "content": [{"type": "compaction", "content": "s", "encrypted_content": null}, {"type": "text", "text": "t"}],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 23000, "output_tokens": 1000, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
            "iterations": [{"type": "compaction", "input_tokens": 180000, "output_tokens": 3500, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0},
                {"type": "message", "model": "m", "input_tokens": 23000, "output_tokens": 1000, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}]}});
    let r = (ANTHROPIC.decode_reply)(given.to_string().as_bytes()).unwrap();
    assert_eq!((r.usage.prompt(), r.billed.prompt(), r.billed.output), (23_000, 203_000, 4_500));
    assert_eq!((r.stop, &*r.compaction().unwrap().clone()), (StopReason::ToolUse, "s"));
}

#[test]
fn a_continued_thread_sends_only_what_is_new() {
    let mut r = request(vec![
        block(0, BlockKind::Base, Role::System, "base"),
        block(1, BlockKind::User, Role::User, "look"),
        called(2, BlockKind::Call, "c1", "{}"),
        called(3, BlockKind::Output, "c1", "yes"),
    ]);
    r.tools = Tools::new(&[json!({"name": "read"})]);
    r.breakpoints = vec![0, 3];
    r.thread = Some(Thread::Create);
    let b = body(ANTHROPIC, &r);
    assert_eq!(
        (&b["thread"], b["messages"].as_array().unwrap().len()),
        (&json!({"type": "create"}), 3)
    );
    r.thread = Some(Thread::Continue { after: "msg_7".into(), held: 3 });
    let result = json!({"type": "tool_result", "tool_use_id": "c1", "content": "yes", "cache_control": {"type": "ephemeral"}});
    let expected = json!({
        "model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": [result]}],
        "thread": {"type": "continue", "previous_message_id": "msg_7"},
    });
    assert_eq!(body(ANTHROPIC, &r), expected);
    let e = ANTHROPIC.encode(&r);
    assert_eq!(
        e.headers,
        [
            ("anthropic-version", "2026-10-21".to_string()),
            ("anthropic-beta", "message-threads-2026-08-12".to_string())
        ]
    );
    // Counting is about the whole conversation.
    assert_eq!(
        decode(&ANTHROPIC.encode_count(&r).unwrap().body).unwrap().tokens(&r.model.counting),
        r.tokens()
    );
}

#[test]
fn applied_edits_and_detailed_errors_have_the_documented_shape() {
    // The example of docs/sources/anthropic-sdk.md §3.
    let applied = Applied {
        cleared_tool_uses: 8,
        cleared_tokens: 50_000,
        cleared_thinking_turns: 3,
        thinking_tokens: 15_000,
    };
    let r = Reply { id: Some("msg_1".into()), applied, ..Reply::default() };
    let bytes = (ANTHROPIC.encode_reply)(&r, &model());
    let b: Value = serde_json::from_slice(&bytes).unwrap();
    let expected = json!([
        {"type": "clear_tool_uses_20250919", "cleared_tool_uses": 8, "cleared_input_tokens": 50000},
        {"type": "clear_thinking_20251015", "cleared_thinking_turns": 3, "cleared_input_tokens": 15000}]);
    assert_eq!((&b["id"], &b["context_management"]["applied_edits"]), (&json!("msg_1"), &expected));
    assert_eq!((ANTHROPIC.decode_reply)(&bytes).unwrap(), r);
    let code = Some("compaction_block_misplaced".into());
    let e = ModelError { code, ..ModelError::invalid("m") };
    let (status, bytes) = ANTHROPIC.api.encode_error(&e);
    assert_eq!(
        serde_json::from_slice::<Value>(&bytes).unwrap()["error"]["details"],
        json!({"error_code": "compaction_block_misplaced"})
    );
    assert_eq!(ANTHROPIC.api.decode_error(status, &bytes), e);
}

#[test]
fn a_split_text_is_one_message_of_several_parts() {
    let split = block(0, BlockKind::User, Role::User, "headtail").map_draft(|d| d.splits = vec![4]);
    let r = request(vec![split, block(0, BlockKind::User, Role::User, "next")]);
    let input = &body(RESPONSES, &r)["input"];
    assert_eq!(
        input[0]["content"],
        json!([{"type": "input_text", "text": "head"}, {"type": "input_text", "text": "tail"}])
    );
    assert_eq!(input[1]["content"], json!([{"type": "input_text", "text": "next"}]));
    let messages = &body(CHAT, &r)["messages"];
    assert_eq!(
        messages[0]["content"],
        json!([{"type": "text", "text": "head"}, {"type": "text", "text": "tail"}])
    );
    assert_eq!(messages[1]["content"], json!("next"));
}

#[test]
fn the_counting_endpoint_takes_the_same_request_without_a_reply_limit() {
    let r = conversation();
    let e = ANTHROPIC.encode_count(&r).unwrap();
    let (mut sampled, counted) =
        (body(ANTHROPIC, &r), serde_json::from_slice::<Value>(&e.body).unwrap());
    sampled.as_object_mut().unwrap().remove("max_tokens");
    assert_eq!(counted, sampled);
    assert_eq!(decode(&e.body).unwrap().tokens(&r.model.counting), r.tokens());
    assert_eq!(ANTHROPIC.decode_count_reply(&ANTHROPIC.encode_count_reply(7, None)).unwrap(), 7);
    assert_eq!(ANTHROPIC.decode_count_reply(&ANTHROPIC.encode_count_reply(7, Some(9))).unwrap(), 7);
}

#[test]
fn each_wire_gets_its_own_shape_and_foreign_ones_stay() {
    let own = json!({"name": "read", "description": "d", "input_schema": {"type": "object"}});
    let foreign = json!({"type": "web_search"});
    let given = [own.clone(), foreign.clone()];
    assert_eq!(ANTHROPIC.tool_definitions(&given), given);
    let chat = CHAT.tool_definitions(&given);
    assert_eq!(chat[0]["function"]["parameters"], own["input_schema"]);
    assert_eq!(chat[1], foreign);
    assert_eq!(RESPONSES.tool_definitions(&given)[0]["parameters"], own["input_schema"]);
    let declared = json!({
        "name": "read", "description": "d", "parametersJsonSchema": {"type": "object"},
    });
    assert_eq!(GEMINI.tool_definitions(&given), [declared, foreign]);
}
