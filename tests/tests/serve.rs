//! The model server through a client of its own: every route, whole and streamed, under a clock that the test moves.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use ctxbench_core::provider::{Wire, decode_error, decode_reply};
use ctxbench_core::request::{ErrorKind, ReplyPart, StopReason};
use ctxbench_core::session::{AssistantEntry, Entry, Session, SessionCall, ToolEntry, UserEntry};
use ctxbench_harness::serve::{FAULT_HEADER, Family, Options, Script, Server};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};

const MESSAGES: &str = "/v1/messages";
const RESPONSES: &str = "/v1/responses";
const CHAT: &str = "/v1/chat/completions";
const ROUTES: [(Wire, &str); 3] = [(Wire::AnthropicMessages, MESSAGES), (Wire::OpenaiResponses, RESPONSES), (Wire::OpenaiChat, CHAT)];

struct Answer {
    status: u16,
    headers: hyper::HeaderMap,
    body: Vec<u8>,
    /// The connection broke before the body's end.
    broken: bool,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&self.body)))
    }

    /// Names and data of the events.
    fn events(&self) -> Vec<(String, String)> {
        let text = std::str::from_utf8(&self.body).unwrap();
        let field = |event: &str, name: &str| event.lines().find_map(|l| l.strip_prefix(name)).unwrap_or("").to_string();
        text.split_terminator("\n\n").map(|e| (field(e, "event: "), field(e, "data: "))).collect()
    }
}

struct Here {
    address: SocketAddr,
    now: Arc<AtomicU64>,
    log: Arc<Mutex<Vec<u8>>>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    running: tokio::task::JoinHandle<std::io::Result<()>>,
}

#[derive(Clone)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Here {
    async fn new(options: Options) -> Here {
        let (now, log) = (Arc::new(AtomicU64::new(0)), Arc::new(Mutex::new(Vec::new())));
        let clock = now.clone();
        let clock = Arc::new(move || clock.load(Ordering::SeqCst));
        let server = Server::bind(Options { clock, log: Some(Box::new(Shared(log.clone()))), ..options }).await.unwrap();
        let address = server.address();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let running = tokio::spawn(server.run(async move { drop(stopped.await) }));
        Here { address, now, log, stop: Some(stop), running }
    }

    async fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: impl Into<Bytes>) -> Answer {
        let mut request = hyper::Request::builder().method(method).uri(format!("http://{}{path}", self.address));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let client = Client::builder(TokioExecutor::new()).build_http();
        let response = client.request(request.body(Full::new(body.into())).unwrap()).await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let (mut body, mut incoming, mut broken) = (Vec::new(), response.into_body(), false);
        while let Some(frame) = incoming.frame().await {
            match frame.map(|f| f.into_data()) {
                Ok(Ok(data)) => body.extend_from_slice(&data),
                Ok(Err(_)) => {}
                Err(_) => {
                    broken = true;
                    break;
                }
            }
        }
        Answer { status, headers, body, broken }
    }

    async fn post(&self, path: &str, body: &Value) -> Answer {
        self.ask("POST", path, &[], body.to_string()).await
    }

    async fn with_fault(&self, path: &str, fault: &str, body: &Value) -> Answer {
        self.ask("POST", path, &[(FAULT_HEADER, fault)], body.to_string()).await
    }

    fn lines(&self) -> Vec<Value> {
        String::from_utf8(self.log.lock().unwrap().clone()).unwrap().lines().map(|l| serde_json::from_str(l).unwrap()).collect()
    }
}

fn block_on(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
}

/// A request that makes a reply of thinking (where the wire has it), text and two calls.
fn asking(wire: Wire, words: &str) -> Value {
    let schema = json!({"type": "object"});
    let said = json!([{"role": "user", "content": words}]);
    match wire {
        Wire::AnthropicMessages => json!({
            "model": "claude-sonnet-4-6", "max_tokens": 2000, "messages": said, "thinking": {"type": "enabled", "budget_tokens": 1024},
            "tools": [{"name": "read", "input_schema": schema}],
        }),
        Wire::OpenaiResponses => json!({
            "model": "gpt-5.5", "input": said, "reasoning": {"effort": "low"},
            "tools": [{"type": "function", "name": "read", "parameters": schema}],
        }),
        Wire::OpenaiChat => json!({
            "model": "gpt-5.5", "messages": said, "tools": [{"type": "function", "function": {"name": "read", "parameters": schema}}],
        }),
    }
}

const CALLS: &str = "Read both.\ncall read {\"path\": \"a\", \"n\": 1e5}\ncall read {\"path\": \"ä \\\"b\\\"\"}";

fn streamed(mut body: Value) -> Value {
    body["stream"] = true.into();
    body
}

/// Puts a whole reply together from its events, as a client would, and nothing but them.
fn assembled(wire: Wire, events: &[(String, String)]) -> Value {
    let data = |e: &(String, String)| serde_json::from_str::<Value>(&e.1).unwrap();
    match wire {
        Wire::AnthropicMessages => {
            let mut message = data(&events[0])["message"].clone();
            let mut inputs: Vec<String> = Vec::new();
            for e in events.iter().map(data) {
                let index = e["index"].as_u64().unwrap_or(0) as usize;
                match e["type"].as_str().unwrap() {
                    "content_block_start" => {
                        message["content"].as_array_mut().unwrap().push(e["content_block"].clone());
                        inputs.push(String::new());
                    }
                    "content_block_delta" => {
                        let d = &e["delta"];
                        let block = &mut message["content"][index];
                        for key in ["text", "thinking", "signature"] {
                            if let Some(more) = d[key].as_str() {
                                block[key] = format!("{}{more}", block[key].as_str().unwrap()).into();
                            }
                        }
                        inputs[index] += d["partial_json"].as_str().unwrap_or("");
                    }
                    "content_block_stop" if !inputs[index].is_empty() => {
                        message["content"][index]["input"] = serde_json::from_str(&inputs[index]).unwrap();
                    }
                    "message_delta" => {
                        for key in ["stop_reason", "stop_sequence"] {
                            message[key] = e["delta"][key].clone();
                        }
                        for (key, told) in e["usage"].as_object().unwrap() {
                            message["usage"][key] = told.clone();
                        }
                    }
                    _ => {}
                }
            }
            message
        }
        Wire::OpenaiResponses => {
            let mut response = data(&events[0])["response"].clone();
            for e in events.iter().map(data) {
                let index = e["output_index"].as_u64().unwrap_or(0) as usize;
                let at = |key: &str| e[key].as_u64().unwrap_or(0) as usize;
                let append =
                    |to: &mut Value, key: &str| to[key] = format!("{}{}", to[key].as_str().unwrap(), e["delta"].as_str().unwrap()).into();
                let output = &mut response["output"];
                match e["type"].as_str().unwrap() {
                    "response.output_item.added" => output.as_array_mut().unwrap().push(e["item"].clone()),
                    "response.content_part.added" => output[index]["content"].as_array_mut().unwrap().push(e["part"].clone()),
                    "response.reasoning_summary_part.added" => output[index]["summary"].as_array_mut().unwrap().push(e["part"].clone()),
                    "response.output_text.delta" => append(&mut output[index]["content"][at("content_index")], "text"),
                    "response.reasoning_summary_text.delta" => append(&mut output[index]["summary"][at("summary_index")], "text"),
                    "response.function_call_arguments.delta" => append(&mut output[index], "arguments"),
                    "response.output_item.done" if !output[index]["status"].is_null() => output[index]["status"] = "completed".into(),
                    "response.completed" => {
                        for key in ["status", "usage", "incomplete_details"] {
                            response[key] = e["response"][key].clone();
                        }
                    }
                    _ => {}
                }
            }
            response
        }
        Wire::OpenaiChat => {
            let (last, chunks) = events.split_last().unwrap();
            assert_eq!(last.1, "[DONE]");
            let first = data(&chunks[0]);
            let mut whole = json!({"id": first["id"], "created": first["created"], "model": first["model"], "object": "chat.completion"});
            let (mut content, mut calls, mut finish) = (String::new(), Vec::<Value>::new(), Value::Null);
            for c in chunks.iter().map(data) {
                let Some(choice) = c["choices"].get(0) else {
                    whole["usage"] = c["usage"].clone();
                    continue;
                };
                content += choice["delta"]["content"].as_str().unwrap_or("");
                for call in choice["delta"]["tool_calls"].as_array().into_iter().flatten() {
                    let index = call["index"].as_u64().unwrap() as usize;
                    if index == calls.len() {
                        let mut begun = call.clone();
                        begun.as_object_mut().unwrap().remove("index");
                        calls.push(begun);
                        continue;
                    }
                    let function = &mut calls[index]["function"];
                    let more = call["function"]["arguments"].as_str().unwrap();
                    function["arguments"] = format!("{}{more}", function["arguments"].as_str().unwrap()).into();
                }
                finish = choice["finish_reason"].clone();
            }
            let message = json!({"role": "assistant", "content": content, "tool_calls": calls});
            whole["choices"] = json!([{"index": 0, "finish_reason": finish, "message": message}]);
            whole
        }
    }
}

#[test]
fn a_stream_put_together_is_the_whole_reply() {
    block_on(async {
        for (wire, path) in ROUTES {
            let mut body = asking(wire, CALLS);
            // Two servers, so that both replies are the first of theirs.
            let whole = Here::new(Options::default()).await.post(path, &body).await;
            body["stream_options"] = json!({"include_usage": true});
            let stream = Here::new(Options::default()).await.post(path, &streamed(body)).await;
            assert_eq!((whole.status, stream.status, stream.broken), (200, 200, false), "{path}");
            assert!(stream.headers["content-type"].to_str().unwrap().starts_with("text/event-stream"));
            let events = stream.events();
            assert!(events.len() > 8, "{path}: {} events", events.len());
            assert_eq!(assembled(wire, &events), whole.json(), "{path}");

            let reply = decode_reply(wire, &whole.body).unwrap();
            let calls: Vec<&str> = reply
                .parts
                .iter()
                .filter_map(|p| if let ReplyPart::Call { arguments, .. } = p { Some(&**arguments) } else { None })
                .collect();
            assert_eq!(calls, [r#"{"path": "a", "n": 1e5}"#, r#"{"path": "ä \"b\""}"#], "{path}: byte for byte");
            assert_eq!(reply.stop, StopReason::ToolUse);
            assert_eq!(matches!(reply.parts[0], ReplyPart::Reasoning { .. }), wire != Wire::OpenaiChat, "{path}");
        }
    });
}

#[test]
fn the_cache_lives_as_long_as_the_clock_says() {
    block_on(async {
        let here = Here::new(Options::default()).await;
        // 3,000 words and more than the 1,024 tokens that are the least to cache.
        let system = json!([{"type": "text", "text": "rule ".repeat(3_000), "cache_control": {"type": "ephemeral"}}]);
        let mut body = json!({"model": "claude-sonnet-4-6", "max_tokens": 99, "system": system});
        body["messages"] = json!([{"role": "user", "content": "Hello"}]);
        let mut read = Vec::new();
        for at in [0, 1, 299_999, 599_998, 899_998] {
            here.now.store(at, Ordering::SeqCst);
            read.push(here.post(MESSAGES, &body).await.json()["usage"]["cache_read_input_tokens"].as_u64().unwrap());
        }
        // Each use keeps it for five minutes more; the last request comes exactly five minutes after the one before, which is too late.
        assert_eq!(read[0], 0);
        assert!(read[1] >= 3_000 && read[1] == read[2] && read[2] == read[3], "{read:?}");
        assert_eq!(read[4], 0);
        let log = here.lines();
        assert_eq!(log.iter().map(|l| l["at_ms"].as_u64().unwrap()).collect::<Vec<_>>(), [0, 1, 299_999, 599_998, 899_998]);
        assert_eq!(log[1]["cache_read"], read[1]);
    });
}

#[test]
fn counting_and_compaction_have_their_routes() {
    block_on(async {
        let here = Here::new(Options::default()).await;
        let said = json!([{"role": "user", "content": "Hello there"}]);
        // Two tokens of o200k and the four of any block.
        let count = here.post("/v1/messages/count_tokens", &json!({"model": "claude-sonnet-4-6", "messages": said})).await;
        assert_eq!(count.json(), json!({"input_tokens": 6}));
        let compacted = here.post("/v1/responses/compact", &json!({"model": "gpt-5.5", "input": said})).await.json();
        assert_eq!(compacted["object"], "response.compaction");
        assert_eq!(compacted["output"][0]["content"], json!([{"type": "input_text", "text": "Hello there"}]));
        assert_eq!(compacted["output"][1]["type"], "compaction");
        assert_eq!(compacted["output"].as_array().unwrap().len(), 2);
        let listed = here.ask("GET", "/v1/models", &[("anthropic-version", "2023-06-01")], "").await.json();
        assert!(listed["data"].as_array().unwrap().iter().any(|m| m["id"] == "claude-sonnet-4-6" && m["type"] == "model"));
        let listed = here.ask("GET", "/v1/models", &[], "").await.json();
        assert!(listed["data"].as_array().unwrap().iter().any(|m| m["id"] == "gpt-5.5" && m["object"] == "model"));
        assert_eq!(here.ask("GET", "/v1/models/gpt-5.5", &[], "").await.json()["id"], "gpt-5.5");
        assert_eq!(here.ask("GET", "/v1/models/gpt-none", &[], "").await.status, 404);
    });
}

#[test]
fn whatever_comes_in_an_answer_in_the_providers_shape_goes_out() {
    block_on(async {
        let here = Here::new(Options { body_limit: 4_000, ..Options::default() }).await;
        for (wire, path) in ROUTES {
            let good = asking(wire, CALLS).to_string();
            assert_eq!(here.ask("POST", path, &[], good.clone()).await.status, 200);
            // Every body that ends too early, and some that are no JSON of this wire.
            let mut bad: Vec<Vec<u8>> = (0..good.len()).map(|n| good.as_bytes()[..n].to_vec()).collect();
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
                let error = decode_error(wire, answer.status, &answer.body);
                assert_eq!((answer.status, error.kind), (400, ErrorKind::Invalid), "{path}: {shown}");
                assert_eq!(error.code.as_deref(), Some("invalid_request_error"), "{path}: {shown}");
            }
            let large = here.ask("POST", path, &[], " ".repeat(4_001)).await;
            assert_eq!((large.status, decode_error(wire, 413, &large.body).code.as_deref()), (413, Some("request_too_large")), "{path}");
            let mut unknown = asking(wire, "x");
            unknown["model"] = "none".into();
            let unknown = here.post(path, &unknown).await;
            let code = decode_error(wire, unknown.status, &unknown.body).code.unwrap();
            assert_eq!(
                (unknown.status, &*code),
                (404, if wire == Wire::AnthropicMessages { "not_found_error" } else { "model_not_found" })
            );
            let fault = here.with_fault(path, "nonsense", &asking(wire, "x")).await;
            assert!(decode_error(wire, fault.status, &fault.body).message.contains("`nonsense` is none"), "{path}");
            assert_eq!(here.ask("GET", path, &[], "").await.status, 405);
        }
        for (path, anthropic) in [("/v1/messages/batches", true), ("/v1/embeddings", false), ("/", false)] {
            let answer = here.ask("POST", path, &[], "{}").await;
            assert_eq!((answer.status, answer.json()["type"] == "error"), (404, anthropic), "{path}");
        }
        // A model of another provider is unknown to this one.
        let mut foreign = asking(Wire::AnthropicMessages, "x");
        foreign["model"] = "gpt-5.5".into();
        assert_eq!(here.post(MESSAGES, &foreign).await.status, 404);
    });
}

#[test]
fn one_provider_may_be_served_alone() {
    block_on(async {
        let here = Here::new(Options { family: Some(Family::Openai), ..Options::default() }).await;
        let status = |(wire, path)| {
            let here = &here;
            async move { here.post(path, &asking(wire, "x")).await.status }
        };
        let [a, r, c] = ROUTES;
        assert_eq!((status(a).await, status(r).await, status(c).await), (404, 200, 200));
    });
}

#[test]
fn faults_come_by_number_and_by_header() {
    block_on(async {
        let faults = vec!["2:429;retry-after=3".parse().unwrap(), "3-4:529".parse().unwrap()];
        let here = Here::new(Options { faults, ..Options::default() }).await;
        let body = asking(Wire::AnthropicMessages, "x");
        let mut seen = Vec::new();
        for _ in 0..5 {
            let a = here.post(MESSAGES, &body).await;
            let kind = if a.status == 200 { Value::Null } else { a.json()["error"]["type"].clone() };
            seen.push((a.status, kind, a.headers.get("retry-after").map(|v| v.to_str().unwrap().to_string())));
        }
        let overloaded = || (529, json!("overloaded_error"), None);
        let limited = (429, json!("rate_limit_error"), Some("3".to_string()));
        assert_eq!(seen, [(200, Value::Null, None), limited, overloaded(), overloaded(), (200, Value::Null, None)]);
        for (wire, path) in ROUTES {
            let body = asking(wire, "x");
            let over = here.with_fault(path, "overflow", &body).await;
            assert!(decode_error(wire, over.status, &over.body).is_overflow(), "{path}");
            let cut = here.with_fault(path, "cut=3", &streamed(body.clone())).await;
            assert_eq!((cut.status, cut.broken, cut.events().len()), (200, true, 3), "{path}");
            let half = here.with_fault(path, "cut=1", &body).await;
            assert!(half.broken && serde_json::from_slice::<Value>(&half.body).is_err(), "{path}");
            let once = "500;times=1;id=".to_string() + path;
            let statuses = [here.with_fault(path, &once, &body).await.status, here.with_fault(path, &once, &body).await.status];
            assert_eq!(statuses, [500, 200], "{path}");
        }
    });
}

#[test]
fn a_narrow_window_overflows_in_the_providers_words() {
    block_on(async {
        let here = Here::new(Options { window: Some(1_000), ..Options::default() }).await;
        for (wire, path) in ROUTES {
            let fits = here.post(path, &asking(wire, &"word ".repeat(900))).await;
            let over = here.post(path, &asking(wire, &"word ".repeat(1_000))).await;
            assert_eq!(fits.status, 200, "{path}");
            assert!(decode_error(wire, over.status, &over.body).is_overflow(), "{path}");
        }
        let last = here.lines().pop().unwrap();
        assert_eq!((last["status"].as_str(), last["http"].as_u64()), (Some("overflow"), Some(400)));
    });
}

fn session() -> Session {
    let user = |id: &str, text: &str| Entry::User(UserEntry { id: id.into(), text: Some(text.into()), ..Default::default() });
    let call = SessionCall { id: "c1".into(), name: "read".into(), arguments: r#"{"path":"a"}"#.into() };
    let entries = vec![
        user("u1", "Read a"),
        Entry::Assistant(AssistantEntry { id: "a1".into(), reasoning: Some("hm".into()), calls: vec![call], ..Default::default() }),
        Entry::Tool(ToolEntry { call_id: "c1".into(), output: Some("out".into()), ..Default::default() }),
        Entry::Assistant(AssistantEntry { id: "a2".into(), text: Some("It says out.".into()), ..Default::default() }),
    ];
    Session { entries, ..Default::default() }
}

#[test]
fn a_session_speaks_on_every_wire_until_it_is_over() {
    block_on(async {
        for (wire, path) in ROUTES {
            let here = Here::new(Options { script: Some(Script::of(&session())), ..Options::default() }).await;
            let mut body = asking(wire, "Read a");
            let first = here.post(path, &body).await;
            let reply = decode_reply(wire, &first.body).unwrap();
            assert!(matches!(&reply.parts[0], ReplyPart::Reasoning { text, .. } if &**text == "hm"), "{path}: {:?}", reply.parts);
            assert!(matches!(&reply.parts[1], ReplyPart::Call { id, .. } if &**id == "c1"), "{path}");
            // Asked again, as a client does whose connection broke.
            let again = here.post(path, &body).await;
            assert_eq!(decode_reply(wire, &again.body).unwrap().parts, reply.parts, "{path}");
            let talk = if wire == Wire::OpenaiResponses { "input" } else { "messages" };
            let more = match wire {
                Wire::AnthropicMessages => vec![
                    json!({"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "a"}}]}),
                    json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "out"}]}),
                ],
                Wire::OpenaiResponses => vec![
                    json!({"type": "function_call", "call_id": "c1", "name": "read", "arguments": "{\"path\":\"a\"}"}),
                    json!({"type": "function_call_output", "call_id": "c1", "output": "out"}),
                ],
                Wire::OpenaiChat => vec![
                    json!({"role": "assistant", "content": null, "tool_calls": [
                        {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{\"path\":\"a\"}"}}]}),
                    json!({"role": "tool", "tool_call_id": "c1", "content": "out"}),
                ],
            };
            body[talk].as_array_mut().unwrap().extend(more);
            let second = decode_reply(wire, &here.post(path, &body).await.body).unwrap();
            assert_eq!(second.text().as_deref(), Some("It says out."), "{path}");
            let last = [json!({"role": "assistant", "content": "It says out."}), json!({"role": "user", "content": "And now?"})];
            body[talk].as_array_mut().unwrap().extend(last);
            let over = here.post(path, &body).await;
            assert_eq!(decode_error(wire, over.status, &over.body).kind, ErrorKind::Ended, "{path}");
        }
    });
}

#[test]
fn the_log_tells_requests_and_no_key() {
    block_on(async {
        let here = Here::new(Options::default()).await;
        let key = "sk-very-secret";
        let headers = [("x-api-key", key), ("authorization", "Bearer sk-very-secret"), (FAULT_HEADER, "slow=1")];
        here.ask("POST", MESSAGES, &headers, asking(Wire::AnthropicMessages, CALLS).to_string()).await;
        here.ask("POST", RESPONSES, &[], "{").await;
        let lines = here.lines();
        let l = &lines[0];
        assert_eq!(
            (&l["seq"], &l["path"], &l["model"], &l["http"]),
            (&json!(1), &json!(MESSAGES), &json!("claude-sonnet-4-6"), &json!(200))
        );
        assert_eq!(
            (&l["status"], &l["tools"], &l["fault"], &l["max_tokens"]),
            (&json!("ok"), &json!(true), &json!("slow=1"), &json!(2_000))
        );
        let items = l["items"].as_array().unwrap();
        assert_eq!((items.len(), &items[0]["kind"], &items[0]["text"]), (1, &json!("user"), &json!(CALLS)));
        assert!(l["input_tokens"].as_u64() > Some(10) && l["output_tokens"].as_u64() > Some(10) && l["cost_usd"].as_f64() > Some(0.0));
        assert_eq!((&lines[1]["status"], &lines[1]["http"]), (&json!("invalid"), &json!(400)));
        assert!(!String::from_utf8(here.log.lock().unwrap().clone()).unwrap().contains("secret"));
    });
}

#[test]
fn the_server_ends_when_it_is_told_to() {
    block_on(async {
        let mut here = Here::new(Options::default()).await;
        assert_eq!(here.post(CHAT, &asking(Wire::OpenaiChat, "x")).await.status, 200);
        here.stop.take().unwrap().send(()).unwrap();
        here.running.await.unwrap().unwrap();
    });
}
