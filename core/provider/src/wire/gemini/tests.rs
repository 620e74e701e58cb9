//! Bodies, compared with JSON written by hand from the API's reference (docs/sources/providers.md,
//! section 5).

use ctxbench_core::{BlockKind, Part, Reply, Role, StopReason, ToolCall, Usage};
use serde_json::{Value, json};

use super::*;
use crate::wire::tests::{block, conversation, file, model, request};

const PATH: &str = "/v1beta/models/m:generateContent";

fn decode(body: &Value) -> Result<Prompt, WireError> {
    WIRE.decode(PATH, body.to_string().as_bytes())
}

fn refused(body: &Value) -> String {
    decode(body).unwrap_err().to_string()
}

#[test]
fn counting_asks_about_the_whole_request() {
    let r = conversation();
    let e = WIRE.encode_count(&r).unwrap();
    assert_eq!(e.path, "/v1beta/models/m:countTokens");
    let asked: Value = serde_json::from_slice(&e.body).unwrap();
    let asked = &asked["generateContentRequest"];
    let sent: Value = serde_json::from_slice(&WIRE.encode(&r).body).unwrap();
    assert_eq!(
        (&asked["model"], &asked["contents"], &asked["systemInstruction"]),
        (&json!("models/m"), &sent["contents"], &sent["systemInstruction"])
    );
    let counting = &r.model.counting;
    assert_eq!(WIRE.decode(&e.path, &e.body).unwrap().tokens(counting), r.tokens());
    // Contents alone, as the SDKs ask.
    let alone = json!({"contents": sent["contents"]}).to_string();
    let alone = WIRE.decode(&e.path, alone.as_bytes()).unwrap();
    assert_eq!(alone.items.len(), r.blocks.len() - 1);
    assert_eq!(WIRE.decode_count_reply(&WIRE.encode_count_reply(7, None)).unwrap(), 7);
}

#[test]
fn what_other_clients_write_is_understood() {
    let given = include_str!("../../../../../tests/data/bodies/gemini-of-others.json");
    let p = decode(&serde_json::from_str(given).unwrap()).unwrap();
    assert_eq!((&*p.model, p.max_tokens), ("m", Some(9)));
    assert_eq!(p.tools.unwrap().json.get(), r#"[{"name":"a"},{"name":"b"},{"googleSearch":{}}]"#);
    let shown: Vec<(Role, String)> = p
        .items
        .iter()
        .map(|i| {
            let (id, text) = (i.call_id().unwrap_or_default(), i.text());
            let text = match (i.kind, &i.media) {
                (BlockKind::Reasoning, _) => format!("thought {text:?} {:?}", i.opaque),
                (BlockKind::Call, _) => format!("call {id} {text}"),
                (BlockKind::Output, media) => {
                    format!("result {id} {text} {} {}", i.is_error, media.is_some())
                }
                (_, Some(m)) => format!("{} {}", m.media_type, m.url),
                (_, None) => format!("Text({text:?})"),
            };
            (i.role, text)
        })
        .collect();
    let expected = [
        (Role::System, "Text(\"be brief\")"),
        (Role::User, "Text(\"hi\")"),
        (Role::Assistant, "thought \"\" Some(\"s1\")"),
        (Role::Assistant, "call a#1 {\"x\":1}"),
        (Role::Assistant, "call b#2 {}"),
        (Role::Assistant, "call a#3 {\"x\":2}"),
        (Role::Tool, "result b#2 ob false false"),
        (Role::Tool, "result a#1 {\"rows\":[1,2.5]} false false"),
        (Role::Tool, "result a#3 e true true"),
        (Role::User, "application/pdf gs://f"),
    ];
    assert_eq!(shown, expected.map(|(role, text)| (role, text.to_string())));
}

#[test]
fn results_without_ids_answer_calls_that_have_some() {
    let talk = |results: Value| {
        json!({"contents": [
            {"role": "user", "parts": [{"text": "go"}]},
            {"role": "model", "parts": [
                {"functionCall": {"id": "x", "name": "a", "args": {}}},
                {"functionCall": {"id": "y", "name": "a", "args": {}}}]},
            {"role": "user", "parts": results},
        ]})
    };
    let ids = |results: Value| -> Vec<String> {
        let items = decode(&talk(results)).unwrap().items;
        let results = items.iter().filter(|i| i.kind == BlockKind::Output);
        results.filter_map(|i| Some(i.call_id()?.to_string())).collect()
    };
    let named = |id: Value| json!({"functionResponse": {"id": id, "name": "a", "response": {}}});
    let bare = || json!({"functionResponse": {"name": "a", "response": {}}});
    assert_eq!(ids(json!([bare(), bare()])), ["x", "y"]);
    assert_eq!(ids(json!([named("y".into()), bare()])), ["y", "x"]);
    let other = json!({"functionResponse": {"name": "b", "response": {}}});
    assert_eq!(ids(json!([other])), ["b#none"]);
}

#[test]
fn what_is_not_of_this_wire_is_refused() {
    let said = |part: Value| json!({"contents": [{"role": "user", "parts": [part]}]});
    let role = refused(&json!({"contents": [{"role": "assistant", "parts": []}]}));
    assert!(role.contains("`assistant`"), "{role}");
    let code = refused(&said(json!({"executableCode": {"language": "PYTHON", "code": "1"}})));
    assert!(code.contains("lacks `text, functionCall"), "{code}");
    let call = refused(&said(json!({"functionCall": {"args": {}}})));
    assert!(call.contains("functionCall.name"), "{call}");
    for config in [json!({"candidateCount": 2}), json!({"candidate_count": 2})] {
        let body = json!({"contents": [], "generationConfig": config});
        assert!((WIRE.reply_options)(PATH, body.to_string().as_bytes()).is_err());
    }
}

#[test]
fn a_request_says_how_it_wants_its_reply() {
    let of =
        |path: &str, body: Value| (WIRE.reply_options)(path, body.to_string().as_bytes()).unwrap();
    let plain = of(PATH, json!({"contents": []}));
    assert_eq!((plain.stream, plain.thinking), (false, false));
    let config = json!({"generationConfig": {"thinkingConfig": {"includeThoughts": true}}});
    let asked = of("/v1beta/models/m:streamGenerateContent", config);
    assert_eq!((asked.stream, asked.thinking), (true, true));
    // A budget alone does not return thoughts.
    let budget = json!({"generationConfig": {"thinkingConfig": {"thinkingBudget": 100}}});
    assert!(!of(PATH, budget).thinking);
}

#[test]
fn a_call_answers_the_user_or_a_result() {
    let turns = |talk: &[(&str, Value)]| {
        let turn = |(role, part): &(&str, Value)| json!({"role": role, "parts": [part]});
        let contents: Vec<Value> = talk.iter().map(turn).collect();
        (WIRE.rules.refuses)(&decode(&json!({"contents": contents})).unwrap())
    };
    let text = || json!({"text": "t"});
    let call = || json!({"functionCall": {"name": "a", "args": {}}});
    let result = || json!({"functionResponse": {"name": "a", "response": {}}});
    let user = |part| ("user", part);
    let model = |part| ("model", part);
    assert_eq!(turns(&[user(text()), model(call()), user(result()), model(call())]), None);
    assert_eq!(turns(&[user(text()), model(text()), user(text())]), None);
    for talk in [
        vec![model(call()), user(result())],
        vec![user(text()), model(text()), model(call()), user(result())],
    ] {
        assert!(turns(&talk).is_some_and(|m| m.contains("function call turn")), "{talk:?}");
    }
}

#[test]
fn usage_counts_thoughts_apart_and_cached_tokens_within_the_prompt() {
    let given = json!({
        "candidates": [{"content": {"role": "model", "parts": [{"text": "hi"}]}, "finishReason": "MAX_TOKENS", "index": 0}],
        "usageMetadata": {
            "promptTokenCount": 2000, "cachedContentTokenCount": 1500, "candidatesTokenCount": 10,
            "thoughtsTokenCount": 30, "totalTokenCount": 2040},
        "modelVersion": "gemini-2.5-pro", "responseId": "r1",
    });
    let r = (WIRE.decode_reply)(given.to_string().as_bytes()).unwrap();
    let u = r.usage;
    assert_eq!((u.input, u.cache_read, u.output, u.reasoning), (500, 1_500, 40, 30));
    assert_eq!((u.total(), u.reported_total), (2_040, None));
    assert_eq!((r.stop, r.id.as_deref()), (StopReason::MaxTokens, Some("r1")));
    let named = model().named("gemini-2.5-pro");
    let again: Value = serde_json::from_slice(&(WIRE.encode_reply)(&r, &named)).unwrap();
    assert_eq!(again, given);
}

#[test]
fn a_prompt_that_is_blocked_has_no_candidate() {
    let blocked = json!({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 5}});
    let r = (WIRE.decode_reply)(blocked.to_string().as_bytes()).unwrap();
    assert_eq!((r.parts.len(), r.stop, r.usage.input), (0, StopReason::Refusal, 5));
    assert!((WIRE.decode_reply)(b"{}").is_err());
    let stopped = json!({"candidates": [{"finishReason": "RECITATION"}]});
    assert_eq!(
        (WIRE.decode_reply)(stopped.to_string().as_bytes()).unwrap().stop,
        StopReason::Refusal
    );
}

#[test]
fn a_stream_says_what_the_whole_reply_says() {
    let call = ToolCall { id: "c".into(), name: "t".into(), arguments: "{\"n\": 2.50}".into() };
    let usage = Usage { input: 5, output: 9, reasoning: 4, ..Usage::default() };
    let parts = vec![
        Part::Reasoning { text: "hm".into(), encrypted: Some("sig".into()) },
        Part::Text("One sentence of more than one piece.".into()),
        Part::Call(call),
    ];
    let reply = Reply { parts, usage, billed: usage, ..Reply::default() };
    let chunks = |reply: &Reply| -> Vec<String> {
        let events = (WIRE.events)(&(WIRE.encode_reply)(reply, &model()), true).unwrap();
        events.into_iter().map(|e| e.data).collect()
    };
    // A signature is on the last piece of its text, and arguments are unchanged.
    let chunk = |part: &str, end: &str| {
        format!(
            r#"{{"candidates":[{{"content":{{"parts":[{part}],"role":"model"}}{end},"modelVersion":"m"}}"#
        )
    };
    let more = |part| chunk(part, r#","index":0}]"#);
    let end = r#","finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":5,"thoughtsTokenCount":4,"totalTokenCount":14}"#;
    let expected = [
        more(r#"{"thought":true,"text":"hm"}"#),
        more(r#"{"text":"One sentence of more"}"#),
        more(r#"{"text":" than one piece.","thoughtSignature":"sig"}"#),
        chunk(r#"{"functionCall":{"id":"c","name":"t","args":{"n": 2.50}}}"#, end),
    ];
    assert_eq!(chunks(&reply), expected);
    // A reply without text is one chunk.
    assert_eq!(chunks(&Reply::default()).len(), 1);
}

#[test]
fn errors_have_googles_form() {
    let api = WIRE.api;
    let e = (WIRE.overflow)(1_058_724, 1_048_576);
    let (status, body) = api.encode_error(&e);
    let message =
        "The input token count (1058724) exceeds the maximum number of tokens allowed (1048576).";
    let expected =
        json!({"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}});
    assert_eq!((status, serde_json::from_slice::<Value>(&body).unwrap()), (400, expected));
    let limited = api.refusal(429, None, "slow down".into());
    assert_eq!(limited.code.as_deref(), Some("RESOURCE_EXHAUSTED"));
    let (_, body) = api.encode_refusal(&limited, Some(7));
    let body: Value = serde_json::from_slice(&body).unwrap();
    let details =
        json!([{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7s"}]);
    assert_eq!(body["error"]["details"], details);
    assert_eq!(api.decode_error(429, body.to_string().as_bytes()), limited);
}

#[test]
fn a_file_is_told_by_its_bytes() {
    let r = request(vec![
        block(0, BlockKind::User, Role::User, "what is it"),
        file("application/pdf", "data:application/pdf;base64,AA=="),
        file("application/pdf", "https://example.org/a"),
        file("image/png", "https://example.org/b.png"),
    ]);
    let e = WIRE.encode(&r);
    let body: Value = serde_json::from_slice(&e.body).unwrap();
    let expected = json!([
        {"text": "what is it"},
        {"inlineData": {"mimeType": "application/pdf", "data": "AA=="}},
        {"fileData": {"mimeType": "application/pdf", "fileUri": "https://example.org/a"}},
        {"fileData": {"fileUri": "https://example.org/b.png"}}]);
    assert_eq!(body["contents"][0]["parts"], expected);
    assert_eq!(WIRE.decode(&e.path, &e.body).unwrap(), WIRE.prompt_of(&r));
}
