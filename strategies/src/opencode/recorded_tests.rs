//! Recorded results of single functions of OpenCode.

use super::log::{CLEARED, StoredMessage, message_len, message_transcript, part_len};
use super::rules::{self, ModelLimits, OpenCodeSettings, PRUNE_EXEMPT, TurnSpan};
use crate::testing::{check, recorded};
use ctxbench_core::prelude::*;
use serde_json::{Value, json};

fn check_all(name: &str, function: impl Fn(&Value) -> Value) {
    check(&format!("opencode/1.18.33/{name}.json"), function);
}

fn list(v: &Value) -> impl Iterator<Item = &Value> {
    v.as_array().into_iter().flatten()
}

/// Returns a member that is missing if it is 0.
fn number(v: &Value, name: &str) -> u64 {
    v[name].as_u64().unwrap_or(0)
}

fn text<'a>(v: &'a Value, name: &str) -> &'a str {
    v[name].as_str().unwrap_or_default()
}

fn is_user(v: &Value) -> bool {
    v["role"] == "user"
}

/// Returns the settings of a program's configuration, and the tokens that they leave usable.
fn settings(i: &Value) -> (OpenCodeSettings, u64) {
    let mut s =
        crate::Spec::parse("opencode").unwrap().settings.read::<OpenCodeSettings>().unwrap();
    s.auto = i["compaction"]["auto"].as_bool().unwrap_or(s.auto);
    s.reserved = i["compaction"]["reserved"].as_u64();
    let model = &i["model"];
    let input = model["input"].as_u64();
    let limits = ModelLimits::new(number(model, "context"), number(model, "output"), input, 1.0);
    let usable = limits.usable(s.reserved);
    (s, usable)
}

fn cleared(result: &Block) -> Arc<Block> {
    result.with_text(BlockForm::Cleared, CLEARED)
}

#[test]
fn budgets_are_as_recorded() {
    check_all("estimate", |i| json!(utf16_div4_round(i.as_str().unwrap())));
    check_all("overflow", |i| {
        let (s, usable) = settings(i);
        let t = &i["tokens"];
        let used = rules::used(&Usage {
            input: number(t, "input"),
            output: number(t, "output"),
            reasoning: number(t, "reasoning"),
            cache_read: number(t, "cache_read"),
            cache_write: number(t, "cache_write"),
            reported_total: t["total"].as_u64(),
            ..Usage::default()
        });
        let overflow = rules::overflows(s.auto, number(&i["model"], "context"), usable, used);
        json!({"usable": usable, "overflow": overflow})
    });
    check_all("tail_budget", |i| {
        let (s, usable) = settings(i);
        json!(rules::tail_budget(usable, s.preserve_recent_tokens, s.tail_least, s.tail_most))
    });
}

#[test]
fn results_are_cleared_as_recorded() {
    let rule = rules::prune_rule(&settings(&Value::Null).0);
    let facts = recorded("opencode/1.18.33/prune.json");
    let given = [number(&facts, "protect_tokens"), number(&facts, "minimum_tokens")];
    assert_eq!([rule.protect, rule.minimum], given);
    check_all("prune", |i| {
        let result = |tool: &Value| {
            let output = "x".repeat(number(tool, "chars") as usize);
            let draft = block(BlockKind::Output, &output, Some(["call", text(tool, "tool")]));
            let is_error = tool.get("status").is_some_and(|s| s != "completed");
            let result = build(Draft { is_error, ..draft });
            if tool["cleared"] == true { cleared(&result) } else { result }
        };
        let message = |m: &Value| StoredMessage {
            summary: m["summary"] == true,
            ..StoredMessage::new(MessageId(0), is_user(m), list(&m["tools"]).map(result).collect())
        };
        let messages: Vec<StoredMessage> = list(&i["messages"]).map(message).collect();
        if i["prune"] != true {
            return json!([]);
        }
        let chosen = rules::prune(&messages, rule, PRUNE_EXEMPT, utf16_div4_round);
        chosen.into_iter().map(|(message, part)| json!(format!("{message}.{part}"))).collect()
    });
}

#[test]
fn tails_and_orders_are_as_recorded() {
    check_all("select_tail", |i| {
        let span = |t: &Value| TurnSpan {
            first: number(t, "first") as usize,
            end: number(t, "end") as usize,
            suffix_tokens: list(&t["suffix_tokens"]).filter_map(Value::as_u64).collect(),
        };
        let turns: Vec<TurnSpan> = list(&i["turns"]).map(span).collect();
        json!(rules::select_tail(&turns, i["tail_turns"].as_i64(), number(i, "budget")))
    });
    check_all("filter_compacted", |i| {
        let number = |id: &Value| {
            let at = list(i).position(|m| m["id"] == *id).unwrap_or(usize::MAX);
            MessageId(at as u32)
        };
        let view = |m: &Value| StoredMessage {
            marker: m.get("compaction").map(|c| c.get("tail_start_id").map(number)),
            parent: m.get("parent").map(number),
            summary: m["summary"] == true,
            finished: m["finished"] == true,
            error: m["error"] == true,
            ..StoredMessage::new(number(&m["id"]), is_user(m), vec![])
        };
        let stored: Vec<StoredMessage> = list(i).map(view).collect();
        rules::filter_compacted(&stored).into_iter().map(|k| i[k]["id"].clone()).collect()
    });
}

fn block(kind: BlockKind, text: &str, call: Option<[&str; 2]>) -> Draft {
    let call = call.map(|[id, name]| Arc::new(CallRef { id: id.into(), name: name.into() }));
    Draft { call, ..Draft::text(kind, Role::User, text) }
}

fn build(draft: Draft) -> Arc<Block> {
    draft.build(MessageId(0), vec![])
}

#[test]
fn messages_are_estimated_as_recorded() {
    let part = |p: &Value| {
        let call = Some([text(p, "toolCallId"), text(p, "toolName")]);
        let draft = match text(p, "type") {
            "tool-call" => block(BlockKind::Call, &p["input"].to_string(), call),
            "tool-result" => block(BlockKind::Output, text(&p["output"], "value"), call),
            _ => block(BlockKind::User, text(p, "text"), None),
        };
        build(draft)
    };
    check_all("messages_estimate", |i| {
        let len = |m: &Value| {
            let parts: Vec<u64> = list(&m["content"]).map(|p| part_len(&part(p))).collect();
            message_len(text(m, "role"), &parts)
        };
        json!(rules::estimate_list(&list(i).map(len).collect::<Vec<_>>()))
    });
}

fn tool(name: &str, arguments: &str, output: &str) -> [Arc<Block>; 2] {
    let call = Some(["call", name]);
    [(BlockKind::Call, arguments), (BlockKind::Output, output)]
        .map(|(kind, text)| build(block(kind, text, call)))
}

#[test]
fn transcripts_are_as_recorded() {
    let blocks = |p: &Value| match text(p, "type") {
        "tool" => {
            let [call, output] = tool(text(p, "name"), text(p, "arguments"), text(p, "output"));
            vec![call, if p["cleared"] == true { cleared(&output) } else { output }]
        }
        "reasoning" => vec![build(block(BlockKind::Reasoning, text(p, "text"), None))],
        _ => vec![build(block(BlockKind::User, text(p, "text"), None))],
    };
    check_all("transcript", |i| {
        let blocks: Vec<Arc<Block>> = list(&i["parts"]).flat_map(blocks).collect();
        json!({"text": *message_transcript(is_user(i), &blocks)})
    });
}

/// docs/sources/opencode.md §3.2.6: files by their media type and name, among the texts of a
/// message and after a tool result.
#[test]
fn files_are_named_in_transcripts() {
    let text = |t: &str| build(block(BlockKind::User, t, None));
    let (media_type, url) = ("image/png".to_string(), String::new());
    let media = Some(Arc::new(Media { media_type, url, name: Some("pic.png".into()) }));
    let file = build(Draft { media, ..block(BlockKind::Image, "", None) });
    let said = message_transcript(true, &[text("a"), text("b"), file.clone(), text("c")]);
    assert_eq!(*said, *"[User]: a\nb\nc\n[Attached image/png: pic.png]");
    let [call, output] = tool("read", "{}", "seen");
    let shown = message_transcript(false, &[call.clone(), output.clone(), file]);
    let line =
        "[Assistant tool call]: read({})\n[Tool result]: seen\n[Attached image/png: pic.png]";
    assert_eq!(*shown, *line);

    // The sizes of a head contain the bytes of files.
    let url = "data:image/png;base64,QUJD".to_string();
    let media = Some(Arc::new(Media { media_type: "image/png".into(), url, name: None }));
    let file = build(Draft { media, ..block(BlockKind::Image, "", None) });
    let len = |user, blocks| StoredMessage::new(MessageId(0), user, blocks).json_len();
    let texts =
        r#"{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"},"#;
    let image = r#"{"type":"file","data":"data:image/png;base64,QUJD","mediaType":"image/png"}]},"#;
    let said = len(true, vec![text("a"), text("b"), file.clone()]);
    assert_eq!(said, (texts.len() + image.len()) as u64);
    let called = r#"{"role":"assistant","content":[{"type":"tool-call","toolCallId":"call","toolName":"read","input":{}}]},"#;
    let result = r#"{"role":"tool","content":[{"type":"tool-result","toolCallId":"call","toolName":"read","output":{"type":"content","value":[{"type":"text","text":"seen"},{"type":"media","mediaType":"image/png","data":"QUJD"}]}}]},"#;
    assert_eq!(len(false, vec![call, output, file]), (called.len() + result.len()) as u64);
}
