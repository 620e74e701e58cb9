//! The model server through a separate client: every route, complete and streamed, with a clock
//! that the test controls.

mod scripts;
mod serving;

use std::sync::atomic::Ordering;

use ctxbench_agents::serve::{FAULT_HEADER, ServeOptions};
use ctxbench_core::request::ErrorKind;
use ctxbench_core::{Part, StopReason, ToolCall};
use serde_json::{Value, json};
use serving::{Here, assembled};

const MESSAGES: &str = "/v1/messages";
const RESPONSES: &str = "/v1/responses";
const CHAT: &str = "/v1/chat/completions";
const GENERATE: &str = "/v1beta/models/gemini-3.5-flash:generateContent";
const ROUTES: [(&str, &str); 4] = [
    ("anthropic-messages", MESSAGES),
    ("openai-responses", RESPONSES),
    ("openai-chat", CHAT),
    ("gemini", GENERATE),
];

/// Builds a request that gets a reply with reasoning (if the wire supports it), text and two calls.
fn asking(wire: &str, words: &str) -> Value {
    let schema = json!({"type": "object"});
    let said = json!([{"role": "user", "content": words}]);
    match wire {
        "anthropic-messages" => json!({
            "model": "claude-sonnet-4-6", "max_tokens": 2000, "messages": said, "thinking": {"type": "enabled", "budget_tokens": 1024},
            "tools": [{"name": "read", "input_schema": schema}],
        }),
        "openai-responses" => json!({
            "model": "gpt-5.5", "input": said, "reasoning": {"effort": "low"},
            "tools": [{"type": "function", "name": "read", "parameters": schema}],
        }),
        "gemini" => json!({
            "contents": [{"role": "user", "parts": [{"text": words}]}],
            "generationConfig": {"thinkingConfig": {"includeThoughts": true}},
            "tools": [{"functionDeclarations": [{"name": "read", "parametersJsonSchema": schema}]}],
        }),
        _ => json!({
            "model": "gpt-5.5", "messages": said, "tools": [{"type": "function", "function": {"name": "read", "parameters": schema}}],
        }),
    }
}

const CALLS: &str =
    "Read both.\ncall read {\"path\": \"a\", \"n\": 1e5}\ncall read {\"path\": \"ä \\\"b\\\"\"}";

/// Returns path and body of the same request as a stream.
fn streamed(path: &str, mut body: Value) -> (String, Value) {
    if path == GENERATE {
        return (path.replace(":generate", ":streamGenerate") + "?alt=sse", body);
    }
    body["stream"] = true.into();
    (path.into(), body)
}

#[tokio::test]
async fn assembled_stream_equals_whole_reply() {
    for (wire, path) in ROUTES {
        let mut body = asking(wire, CALLS);
        // Two servers, so that both replies are the first of a server.
        let whole = Here::plain().await.post(path, &body).await;
        body["stream_options"] = json!({"include_usage": true});
        let (at, body) = streamed(path, body);
        let stream = Here::plain().await.post(&at, &body).await;
        assert_eq!((whole.status, stream.status, stream.broken), (200, 200, false), "{path}");
        assert!(stream.headers["content-type"].to_str().unwrap().starts_with("text/event-stream"));
        let events = stream.events();
        assert!(events.len() > 7, "{path}: {} events", events.len());
        assert_eq!(assembled(wire, &events), whole.json(), "{path}");

        let reply = whole.reply(wire);
        let calls: Vec<&str> = reply.calls().map(|c| &*c.arguments).collect();
        let want = [r#"{"path": "a", "n": 1e5}"#, r#"{"path": "ä \"b\""}"#];
        assert_eq!(calls, want, "{path}: byte for byte");
        assert_eq!(reply.stop, StopReason::ToolUse);
        let thinks = matches!(reply.parts[0], Part::Reasoning { .. });
        assert_eq!(thinks, wire != "openai-chat", "{path}");
    }
}

#[tokio::test]
async fn cache_expires_by_the_clock() {
    let here = Here::plain().await;
    // 3,000 copies of a one-token text exceed the minimum of 1,024 tokens to cache.
    let system = json!([{"type": "text", "text": "rule ".repeat(3_000), "cache_control": {"type": "ephemeral"}}]);
    let mut body = json!({"model": "claude-sonnet-4-6", "max_tokens": 99, "system": system});
    body["messages"] = json!([{"role": "user", "content": "Hello"}]);
    let mut read = Vec::new();
    let times = [0, 1, 299_999, 599_998, 899_998];
    for at in times {
        here.now.store(at, Ordering::SeqCst);
        let usage = here.post(MESSAGES, &body).await.json()["usage"].clone();
        read.push(usage["cache_read_input_tokens"].as_u64().unwrap());
    }
    // Each use extends the lifetime by five minutes. The last request comes exactly five
    // minutes after the previous one, which is too late.
    assert_eq!(read[0], 0);
    assert!(read[1] >= 3_000 && read[1] == read[2] && read[2] == read[3], "{read:?}");
    assert_eq!(read[4], 0);
    let log = here.lines();
    assert!(log.iter().map(|l| l["at_ms"].as_u64().unwrap()).eq(times), "{log:?}");
    assert_eq!(log[1]["cache_read"], read[1]);
}

#[tokio::test]
async fn counting_and_compaction_have_their_routes() {
    let here = Here::plain().await;
    let said = json!([{"role": "user", "content": "Hello there"}]);
    // 1.17 times two o200k tokens, and the 34 tokens of each block on Claude.
    let asked = json!({"model": "claude-sonnet-4-6", "messages": said});
    let count = here.post("/v1/messages/count_tokens", &asked).await;
    assert_eq!(count.json(), json!({"input_tokens": 36}));
    let asked = json!({"model": "gpt-5.5", "input": said});
    let count = here.post("/v1/responses/input_tokens", &asked).await.json();
    let reply = here.post(RESPONSES, &asked).await.json();
    let billed = &reply["usage"]["input_tokens"];
    assert_eq!(count, json!({"object": "response.input_tokens", "input_tokens": billed}));
    let compacted = here.post("/v1/responses/compact", &asked).await.json();
    assert_eq!(compacted["object"], "response.compaction");
    let output = compacted["output"].as_array().unwrap();
    assert_eq!(output[0]["content"], json!([{"type": "input_text", "text": "Hello there"}]));
    assert_eq!((output.len(), &output[1]["type"]), (2, &json!("compaction")));
    for (header, id, field, value) in [
        (Some(("anthropic-version", "2023-06-01")), "claude-sonnet-4-6", "type", "model"),
        (None, "gpt-5.5", "object", "model"),
    ] {
        let listed = here.ask("GET", "/v1/models", header.as_slice(), "").await.json();
        let mut all = listed["data"].as_array().unwrap().iter();
        assert!(all.any(|m| m["id"] == id && m[field] == value), "{listed}");
    }
    assert_eq!(here.get("/v1/models/gpt-5.5").await["id"], "gpt-5.5");
    assert_eq!(here.ask("GET", "/v1/models/gpt-none", &[], "").await.status, 404);
}

#[tokio::test]
async fn gemini_counts_lists_and_reports_pauses() {
    let here = Here::plain().await;
    let said = json!([{"role": "user", "parts": [{"text": "Hello there"}]}]);
    // Two o200k tokens and the 4 tokens of each block, requested in each of the three ways.
    let whole = json!({"generateContentRequest": {
        "model": "models/gemini-3.5-flash", "contents": said,
        "systemInstruction": {"parts": [{"text": "Hello there"}]}}});
    let at = GENERATE.replace(":generateContent", ":countTokens");
    let vertex =
        "/v1beta1/projects/p/locations/l/publishers/google/models/gemini-3.5-flash:countTokens";
    for (path, body, tokens) in [
        (&*at, json!({"contents": said}), 6),
        (&*at, whole, 12),
        (vertex, json!({"contents": said}), 6),
    ] {
        assert_eq!(here.post(path, &body).await.json(), json!({"totalTokens": tokens}));
    }
    let key = [("x-goog-api-key", "none")];
    let listed = here.ask("GET", "/v1/models", &key, "").await.json();
    assert_eq!(listed, here.get("/v1beta/models").await);
    let names: Vec<&str> =
        listed["models"].as_array().unwrap().iter().filter_map(|m| m["name"].as_str()).collect();
    assert!(names.contains(&"models/gemini-3.5-flash"), "{names:?}");
    assert!(names.iter().all(|n| n.starts_with("models/gemini-")), "{names:?}");
    let one = here.get("/v1beta/models/gemini-3.5-flash").await;
    let limits = [&one["inputTokenLimit"], &one["outputTokenLimit"]];
    assert_eq!(limits, [&json!(1_048_576), &json!(65_536)]);
    assert_eq!(here.ask("GET", "/v1beta/models/none", &[], "").await.status, 404);
    let limited = here.with_fault(GENERATE, "429;retry-after=3", &asking("gemini", "x")).await;
    assert_eq!(limited.headers["retry-after"], "3");
    let error = &limited.json()["error"];
    let told = [&error["status"], &error["details"][0]["retryDelay"]];
    assert_eq!(told, ["RESOURCE_EXHAUSTED", "3s"]);
    let busy = here.with_fault(GENERATE, "503", &asking("gemini", "x")).await;
    assert_eq!(busy.json()["error"]["status"], "UNAVAILABLE");
    // A call at the start of a conversation is refused with the provider's message.
    let call = json!({"contents": [
        {"role": "model", "parts": [{"functionCall": {"name": "read", "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "read", "response": {}}}]}]});
    let refused = here.post(GENERATE, &call).await;
    assert_eq!(refused.status, 400);
    assert!(refused.json()["error"]["message"].as_str().unwrap().contains("user turn"));
}

#[tokio::test]
async fn geminis_cache_reads_from_its_smallest_size_on() {
    let here = Here::plain().await;
    let ask = async |words: usize, more: &str| {
        let system = json!({"parts": [{"text": "rule ".repeat(words)}]});
        let body = json!({
            "systemInstruction": system, "contents": [{"role": "user", "parts": [{"text": more}]}]});
        let usage = here.post(GENERATE, &body).await.json()["usageMetadata"].clone();
        let of = |key: &str| usage[key].as_u64().unwrap_or(0);
        (of("promptTokenCount"), of("cachedContentTokenCount"))
    };
    // The minimum for this model is 4,096 tokens; "rule " is one token.
    for (words, cached) in [(3_000, false), (4_200, true)] {
        let first = ask(words, "one").await;
        assert_eq!(first.1, 0, "{words}");
        let (prompt, read) = ask(words, "two").await;
        assert_eq!(read > 0, cached, "{words}: {read}");
        // Only the end of the text differs.
        assert!(!cached || prompt - read == 5, "{prompt} {read}");
    }
    let costs: Vec<f64> = here.lines().iter().map(|l| l["cost_usd"].as_f64().unwrap()).collect();
    // 1.5 USD per million tokens, and 10 % of that for cached tokens.
    assert!(costs[3] < costs[2] / 5.0, "{costs:?}");
}

#[tokio::test]
async fn malformed_requests_get_provider_errors() {
    let here = Here::new(ServeOptions { body_limit: 4_000, ..ServeOptions::default() }).await;
    for (wire, path) in ROUTES {
        let good = asking(wire, CALLS).to_string();
        assert_eq!(here.ask("POST", path, &[], good.clone()).await.status, 200);
        // Bodies that end too early, and some that are not JSON of this wire.
        let mut bad: Vec<Vec<u8>> =
            (0..good.len()).map(|n| good.as_bytes()[..n].to_vec()).collect();
        bad.extend([
            b"null".to_vec(),
            b"[]".to_vec(),
            b"{}".to_vec(),
            vec![0xff, 0xfe],
            br#"{"model":"claude-sonnet-4-6","messages":7}"#.to_vec(),
        ]);
        for body in bad {
            let shown = String::from_utf8_lossy(&body).into_owned();
            let answer = here.ask("POST", path, &[], body).await;
            let error = answer.error(wire);
            assert_eq!((answer.status, error.kind), (400, ErrorKind::Invalid), "{path}: {shown}");
            let code = match wire {
                "gemini" => "INVALID_ARGUMENT",
                _ => "invalid_request_error",
            };
            assert_eq!(error.code.as_deref(), Some(code), "{path}: {shown}");
        }
        // Half a surrogate pair, as JavaScript writes a text that was cut within a character.
        let halved = asking(wire, "cut HERE").to_string().replace("HERE", "\\ud83d");
        let at = halved.find("\\ud83d").unwrap();
        let answer = here.ask("POST", path, &[], halved).await;
        let error = answer.error(wire);
        let told = format!("no low surrogate in string: line 1 column {} (char {at})", at + 1);
        assert_eq!((error.status, error.kind), (400, ErrorKind::Invalid), "{path}");
        assert!(error.message.contains(&told), "{path}: {}", error.message);
        let large = here.ask("POST", path, &[], " ".repeat(4_001)).await;
        let (status, code) = match wire {
            "gemini" => (400, "INVALID_ARGUMENT"),
            _ => (413, "request_too_large"),
        };
        let error = large.error(wire);
        assert_eq!((large.status, error.code.as_deref()), (status, Some(code)), "{path}");
        assert!(error.is_overflow(), "{path}");
        let mut unknown = asking(wire, "x");
        unknown["model"] = "none".into();
        let at = path.replace("gemini-3.5-flash", "none");
        let unknown = here.post(&at, &unknown).await;
        let code = match wire {
            "anthropic-messages" => "not_found_error",
            "gemini" => "NOT_FOUND",
            _ => "model_not_found",
        };
        let error = unknown.error(wire);
        assert_eq!((unknown.status, error.code.as_deref()), (404, Some(code)), "{path}");
        let fault = here.with_fault(path, "nonsense", &asking(wire, "x")).await;
        assert!(fault.error(wire).message.contains("`nonsense` is none"), "{path}");
        assert_eq!(here.ask("GET", path, &[], "").await.status, 405);
    }
    for (path, anthropic) in
        [("/v1/messages/batches", true), ("/v1/embeddings", false), ("/", false)]
    {
        let answer = here.ask("POST", path, &[], "{}").await;
        assert_eq!((answer.status, answer.json()["type"] == "error"), (404, anthropic), "{path}");
    }
    let listed = here.ask("POST", "/v1beta/cachedThings", &[], "{}").await;
    assert_eq!((listed.status, &listed.json()["error"]["status"]), (404, &json!("NOT_FOUND")));
    // A model of another provider is unknown to this wire.
    let mut foreign = asking("anthropic-messages", "x");
    foreign["model"] = "gpt-5.5".into();
    assert_eq!(here.post(MESSAGES, &foreign).await.status, 404);
}

#[tokio::test]
async fn refuses_what_providers_refuse() {
    let here = Here::plain().await;
    let claude = |model: &str, more: Value| {
        let mut body = json!({
            "model": model, "max_tokens": 2000, "messages": [{"role": "user", "content": "Hello"}],
        });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        (MESSAGES, body)
    };
    let said = |content: Value| json!({"messages": [{"role": "user", "content": content}]});
    let answered = |text: &str| {
        json!({"messages": [
            {"role": "user", "content": "Hello"}, {"role": "assistant", "content": text},
        ]})
    };
    let (new, old) = ("claude-sonnet-4-6", "claude-sonnet-4-5");
    let thinks = |n: u64| json!({"thinking": {"type": "enabled", "budget_tokens": n}});
    let tool = json!({"name": "read", "input_schema": {"type": "object"}});
    let declared = json!({"name": "read", "parametersJsonSchema": {"type": "object"}});
    let empty = "messages.0: all messages must have non-empty content except for the optional";
    for ((path, body), told) in [
        (claude(new, json!({})), ""),
        (claude(new, said(json!([{"type": "text", "text": ""}]))), "blocks must be non-empty"),
        (claude(new, said(json!([{"type": "text", "text": " "}]))), "contain non-whitespace text"),
        (claude(new, said(json!("  "))), "contain non-whitespace text"),
        (claude(new, said(json!(""))), empty),
        (claude(new, said(json!([]))), empty),
        (
            claude(new, json!({"system": [{"type": "text", "text": ""}]})),
            "system: text content blocks must be non-empty",
        ),
        (claude(new, answered("{")), "This model does not support assistant message prefill."),
        (claude(old, answered("{")), ""),
        (claude(old, answered("{ ")), "cannot end with trailing whitespace"),
        (claude(new, thinks(1024)), ""),
        (claude(new, thinks(2000)), "`max_tokens` must be greater than `thinking.budget_tokens`"),
        (claude(new, thinks(1000)), "greater than or equal to 1024"),
        (claude(new, json!({"tools": [tool, tool]})), "tools: Tool names must be unique."),
        (
            (
                GENERATE,
                json!({
                    "contents": [{"role": "user", "parts": [{"text": "Hello"}]}],
                    "tools": [{"functionDeclarations": [declared, declared]}],
                }),
            ),
            "Duplicate function declaration found: read",
        ),
        (
            (
                CHAT,
                json!({
                    "model": "gpt-5.5",
                    "messages": [
                        {"role": "user", "content": "Hello"},
                        {"role": "assistant", "content": null},
                        {"role": "user", "content": "Hello?"},
                    ],
                }),
            ),
            "expected a string, got null",
        ),
    ] {
        let answer = here.post(path, &body).await;
        let message = answer.json()["error"]["message"].as_str().unwrap_or_default().to_string();
        assert_eq!(answer.status, if told.is_empty() { 200 } else { 400 }, "{body}: {message}");
        assert!(message.contains(told), "{body}: {message}");
    }
}

#[tokio::test]
async fn browser_and_foreign_host_requests_are_refused() {
    let here = scripts::scripted().await;
    let body = asking("openai-chat", "first").to_string();
    for foreign in [("host", "attacker.example"), ("origin", "https://attacker.example")] {
        for (method, path) in [("POST", CHAT), ("GET", "/v1/models")] {
            let answer = here.ask(method, path, &[foreign], body.clone()).await;
            assert_eq!(answer.status, 403, "{foreign:?} {path}");
            assert!(answer.json()["error"]["message"].is_string());
        }
    }
    // The refused requests did not advance the session, and pages of this machine may send
    // requests.
    let own = ("origin", "http://localhost:3000");
    assert_eq!(here.ask("POST", CHAT, &[own], body).await.status, 200);
}

#[tokio::test]
async fn faults_are_selected_by_number_and_header() {
    let faults = vec!["2:429;retry-after=3".parse().unwrap(), "3-4:529".parse().unwrap()];
    let here = Here::new(ServeOptions { faults, ..ServeOptions::default() }).await;
    let body = asking("anthropic-messages", "x");
    for (status, kind, wait) in [
        (200, Value::Null, None),
        (429, json!("rate_limit_error"), Some("3")),
        (529, json!("overloaded_error"), None),
        (529, json!("overloaded_error"), None),
        (200, Value::Null, None),
    ] {
        let a = here.post(MESSAGES, &body).await;
        let told = a.headers.get("retry-after").map(|v| v.to_str().unwrap());
        assert_eq!((a.status, &a.json()["error"]["type"], told), (status, &kind, wait));
    }
    for (wire, path) in ROUTES {
        let body = asking(wire, "x");
        let over = here.with_fault(path, "overflow", &body).await;
        assert!(over.error(wire).is_overflow(), "{path}");
        let (at, stream) = streamed(path, body.clone());
        let cut = here.with_fault(&at, "cut=3", &stream).await;
        assert_eq!((cut.status, cut.broken, cut.events().len()), (200, true, 3), "{path}");
        let half = here.with_fault(path, "cut=1", &body).await;
        assert!(half.broken && serde_json::from_slice::<Value>(&half.body).is_err(), "{path}");
        let once = "500;times=1;id=".to_string() + path;
        for status in [500, 200] {
            assert_eq!(here.with_fault(path, &once, &body).await.status, status, "{path}");
        }
    }
}

#[tokio::test]
async fn a_thread_survives_a_connection_that_breaks() {
    let here = Here::plain().await;
    let ask = |words: &str, thread: Value| json!({"model": "claude-sonnet-4-6", "max_tokens": 100, "messages": [{"role": "user", "content": words}], "thread": thread});
    let after = |id: &Value| json!({"type": "continue", "previous_message_id": id});
    let first = here.post(MESSAGES, &ask("one", json!({"type": "create"}))).await.json();
    let second = ask("two", after(&first["id"]));
    for (_, body) in [(String::new(), second.clone()), streamed(MESSAGES, second.clone())] {
        let lost = here.with_fault(MESSAGES, "cut=1", &body).await;
        assert!(lost.broken);
    }
    // The client did not receive the reply, so it sends the request again.
    let got = here.post(MESSAGES, &second).await;
    assert_eq!(got.status, 200, "{}", got.json());
    let third = here.post(MESSAGES, &ask("three", after(&got.json()["id"]))).await;
    assert_eq!(third.status, 200, "{}", third.json());
    let lines = here.lines();
    let input = |i: usize| lines[lines.len() - i]["input_tokens"].as_u64().unwrap();
    assert!(input(1) > input(2), "the whole conversation is billed");
    // The session continued, so this is not a retry.
    let old = here.post(MESSAGES, &second).await;
    let message = old.json()["error"]["message"].clone();
    assert_eq!(old.status, 404);
    assert!(message.as_str().unwrap().contains("no thread ends"), "{message}");
}

#[tokio::test]
async fn narrow_window_returns_provider_overflow_error() {
    let here = Here::new(ServeOptions { window: Some(1_000), ..ServeOptions::default() }).await;
    let version = [("anthropic-version", "2023-06-01")];
    let model = here.ask("GET", "/v1/models/claude-sonnet-4-6", &version, "").await.json();
    assert_eq!(model["max_input_tokens"], 1_000);
    for (wire, path) in ROUTES {
        let fits = here.post(path, &asking(wire, &"word ".repeat(800))).await;
        let over = here.post(path, &asking(wire, &"word ".repeat(1_000))).await;
        assert_eq!(fits.status, 200, "{path}");
        assert!(over.error(wire).is_overflow(), "{path}");
    }
    let last = here.lines().pop().unwrap();
    assert_eq!((last["status"].as_str(), last["http"].as_u64()), (Some("overflow"), Some(400)));
}

#[tokio::test]
async fn log_has_requests_without_keys() {
    let here = Here::plain().await;
    let key = "sk-very-secret";
    let headers =
        [("x-api-key", key), ("authorization", "Bearer sk-very-secret"), (FAULT_HEADER, "slow=1")];
    here.ask("POST", MESSAGES, &headers, asking("anthropic-messages", CALLS).to_string()).await;
    here.ask("POST", RESPONSES, &[], "{").await;
    let lines = here.lines();
    let l = &lines[0];
    let names = ["seq", "path", "model", "http", "status", "tools", "fault", "max_tokens"];
    let told = names.map(|name| l[name].clone());
    let want = json!([1, MESSAGES, "claude-sonnet-4-6", 200, "ok", true, "slow=1", 2_000]);
    assert_eq!(json!(told), want);
    let items = l["items"].as_array().unwrap();
    let one = (items.len(), &items[0]["kind"], &items[0]["text"]);
    assert_eq!(one, (1, &json!("user"), &json!(CALLS)));
    assert!(["input_tokens", "output_tokens"].iter().all(|n| l[*n].as_u64() > Some(10)));
    assert!(l["cost_usd"].as_f64() > Some(0.0));
    assert_eq!((&lines[1]["status"], &lines[1]["http"]), (&json!("invalid"), &json!(400)));
    assert!(!here.log().contains("secret"));
}

#[tokio::test]
async fn server_stops_on_request() {
    let mut here = Here::plain().await;
    assert_eq!(here.post(CHAT, &asking("openai-chat", "x")).await.status, 200);
    here.stop.take().unwrap().send(()).unwrap();
    here.running.await.unwrap();
}
