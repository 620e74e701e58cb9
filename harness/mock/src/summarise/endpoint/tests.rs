//! Tests of endpoints with a server in this process: recording, replay, failures, secrets.

use std::path::PathBuf;
use std::sync::Arc;

use ctxbench_core::model::Counting;
use ctxbench_core::{BlockKind, Draft, Role, StopReason};
use ctxbench_provider::{Item, Prompt, plain};
use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;
use wiremock::matchers::{body_partial_json, header, method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

use super::address::EndpointDialect;
use super::*;
use crate::summarise::{Summariser, summarise};

const SECRET: &str = "cassette-test-key-4711-abcdef";

fn prompt(words: &str) -> Prompt {
    let text = |role, t: &str, message| Item::new(role, plain(t), message, None);
    let call = Draft::call("c1".into(), "read_file".into(), r#"{"path":"a.ts"}"#.into());
    let output = Draft::output("c1".into(), "".into(), "listen(8443)".into(), false);
    let items = vec![
        text(Role::System, "You are a coding agent.", 0),
        text(Role::User, words, 1),
        Item::new(Role::Assistant, call, 2, None),
        Item::new(Role::Tool, output, 3, None),
        text(Role::User, "Write a summary.", 3),
    ];
    Prompt { max_tokens: Some(2_000), ..Prompt::new("claude-haiku-4-5", items) }
}

fn ask(e: &Arc<Endpoint>, p: &Prompt) -> Result<Summary, Unwritten> {
    let counting = Counting::O200K;
    let job = SummaryJob { prompt: p, counting, facts: &[], seed: 1, index: 0 };
    summarise(&Summariser::Endpoint(e.clone()), &job)
}

/// File in a folder that is deleted after the test. It does not exist yet.
struct ScratchFile(TempDir);

impl ScratchFile {
    fn new() -> ScratchFile {
        ScratchFile(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("cassette.jsonl")
    }

    fn text(&self) -> String {
        std::fs::read_to_string(self.path()).unwrap_or_default()
    }
}

fn endpoint(url: &str, file: &ScratchFile, key: Option<&str>, offline: bool) -> Arc<Endpoint> {
    let cassette = Arc::new(Cassette::open(&file.path(), offline).unwrap());
    Arc::new(Endpoint::new(Address::parse(url).unwrap(), key.map(Key::new), cassette).unwrap())
}

fn anthropic_answer(text: &str) -> Value {
    json!({"content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": text}], "stop_reason": "max_tokens",
        "usage": {"input_tokens": 41, "output_tokens": 7}})
}

fn openai_answer(text: &str) -> Value {
    json!({"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 40, "completion_tokens": 6}})
}

#[tokio::test]
async fn anthropic_is_recorded_once_and_replayed_without_a_network() {
    let server = MockServer::start().await;
    let want = json!({
        "model": "claude-haiku-4-5", "max_tokens": 2000, "system": "You are a coding agent.",
        "messages": [
            {"role": "user", "content": "Which port?"},
            {"role": "assistant", "content": "[call of read_file] {\"path\":\"a.ts\"}"},
            {"role": "user", "content": "[result of the tool]\nlisten(8443)\n\nWrite a summary."},
        ],
    });
    Mock::given(method("POST"))
        .and(path("/v1/messages"))
        .and(header("x-api-key", SECRET))
        .and(header("anthropic-version", "2023-06-01"))
        .and(body_partial_json(want))
        .respond_with(ResponseTemplate::new(200).set_body_json(anthropic_answer("Port 8443.")))
        .expect(1)
        .mount(&server)
        .await;
    let file = ScratchFile::new();
    let live = endpoint(&format!("anthropic+{}", server.uri()), &file, Some(SECRET), false);
    let p = prompt("Which port?");
    let first = ask(&live, &p).unwrap();
    assert_eq!(first, Summary { text: "Port 8443.".into(), stop: StopReason::MaxTokens });
    assert_eq!(ask(&live, &p).unwrap(), first);
    // A different address without a server. The answer comes from the cassette.
    let replay = endpoint("openai+http://127.0.0.1:1/v1", &file, None, true);
    assert_eq!(ask(&replay, &p).unwrap(), first);
    let entry: Value = serde_json::from_str(file.text().lines().nth(1).unwrap()).unwrap();
    assert_eq!(
        (&entry["usage"]["input_tokens"], &entry["stop"], &entry["model"]),
        (&json!(41), &json!("max_tokens"), &json!("claude-haiku-4-5"))
    );
    assert!(!file.text().contains("listen(8443)"), "prompts are not stored");
}

#[tokio::test]
async fn openai_is_asked_in_its_own_words_for_the_model_of_the_address() {
    let server = MockServer::start().await;
    Mock::given(path("/v1/chat/completions"))
        .and(header("authorization", format!("Bearer {SECRET}").as_str()))
        .and(body_partial_json(
            json!({"model": "qwen", "max_tokens": 2000, "messages": [{"role": "system", "content": "You are a coding agent."}]}),
        ))
        .respond_with(ResponseTemplate::new(200).set_body_json(openai_answer("Port 8443.")))
        .expect(1)
        .mount(&server)
        .await;
    let file = ScratchFile::new();
    let live = endpoint(&format!("openai+{}/v1#qwen", server.uri()), &file, Some(SECRET), false);
    assert_eq!(live.name(), "endpoint:qwen");
    let all: Vec<_> = std::thread::scope(|s| {
        let threads: Vec<_> =
            (0..4).map(|_| s.spawn(|| ask(&live, &prompt("Which port?")).unwrap())).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    assert!(
        all.iter().all(|w| *w == Summary { text: "Port 8443.".into(), stop: StopReason::EndTurn }),
        "{all:?}"
    );
}

#[tokio::test]
async fn what_is_not_recorded_is_an_error_that_names_the_request() {
    let file = ScratchFile::new();
    std::fs::write(file.path(), "{\"type\":\"cassette\",\"version\":1}\n").unwrap();
    let p = prompt("Which port?");
    let hash = wire::Question::new(&p, None).hash();
    let offline = endpoint("anthropic+https://api.anthropic.com", &file, None, true);
    let why = ask(&offline, &p).unwrap_err().0;
    assert!(why.contains(&hash) && why.contains("offline"), "{why}");
    // Port 1 of this machine, where no server listens.
    let dead = endpoint("anthropic+http://127.0.0.1:1", &file, None, false);
    let why = ask(&dead, &p).unwrap_err().0;
    assert!(why.contains(&hash) && why.contains("could not be reached"), "{why}");
}

#[tokio::test]
async fn answers_are_told_without_secrets_and_refusals_are_not_recorded() {
    let refusal = format!(
        "Incorrect API key provided: {SECRET}; Authorization: Bearer abcdef123456; x-api-key \
         sk-ant-api03-AAAABBBBCCCCDDDD"
    );
    let whole = |answer| ResponseTemplate::new(200).set_body_json(answer);
    for (answer, expected) in [
        (
            ResponseTemplate::new(401).set_body_string(refusal),
            Err("the endpoint answered 401: Incorrect API key provided: [redacted]"),
        ),
        (whole(openai_answer("x")), Err("no `content` list")),
        (whole(anthropic_answer(&format!("The key is {SECRET}."))), Ok("The key is [redacted].")),
    ] {
        let server = MockServer::start().await;
        Mock::given(path("/v1/messages")).respond_with(answer).expect(1).mount(&server).await;
        let file = ScratchFile::new();
        let live = endpoint(&format!("{}/v1/messages", server.uri()), &file, Some(SECRET), false);
        let summary = ask(&live, &prompt("Which key?"));
        assert_eq!(file.path().exists(), summary.is_ok());
        let told = summary.map_or_else(|why| Err(why.0), |summary| Ok(summary.text));
        match (&told, expected) {
            (Err(why), Err(expected)) => assert!(why.contains(expected), "{why}"),
            _ => assert_eq!(told, expected.map(str::to_string).map_err(str::to_string)),
        }
        for secret in [SECRET, "abcdef123456", "sk-ant"] {
            assert!(!format!("{told:?} {live:?} {}", file.text()).contains(secret));
        }
    }
}

#[test]
fn the_order_of_recording_does_not_matter() {
    let entry = |n: u64| cassette::RecordedAnswer {
        request: format!("{n:064x}"),
        model: "m".into(),
        max_tokens: n,
        reply: "r".into(),
        stop: "end_turn".into(),
        usage: json!({"input_tokens": n}),
    };
    let record = |order: &[u64]| {
        let file = ScratchFile::new();
        let cassette = Cassette::open(&file.path(), false).unwrap();
        for n in order {
            cassette.answer(&entry(*n).request, || Ok(entry(*n))).unwrap();
        }
        assert_eq!(
            cassette.answer(&entry(order[0]).request, || Err("asked twice".into())),
            Ok(entry(order[0]))
        );
        file.text()
    };
    let text = record(&[1, 2, 3]);
    assert_eq!(text, record(&[3, 1, 2]));
    assert_eq!(text.lines().count(), 4);
}

#[test]
fn addresses_say_wire_path_and_model() {
    use EndpointDialect::{Anthropic, OpenAi};
    for (text, dialect, url, model) in [
        (
            "anthropic+https://api.anthropic.com",
            Anthropic,
            "https://api.anthropic.com/v1/messages",
            None,
        ),
        ("anthropic+https://host/v1/#m", Anthropic, "https://host/v1/messages", Some("m")),
        (
            "openai+http://localhost:8080/v1#qwen/3:8b",
            OpenAi,
            "http://localhost:8080/v1/chat/completions",
            Some("qwen/3:8b"),
        ),
        ("https://host/x/chat/completions", OpenAi, "https://host/x/chat/completions", None),
    ] {
        let a = Address::parse(text).unwrap();
        assert_eq!((a.dialect, &*a.url.to_string(), a.model.as_deref()), (dialect, url, model));
    }
}

#[test]
fn a_key_leaves_the_machine_encrypted_only() {
    let file = ScratchFile::new();
    let with = |url: &str| {
        Endpoint::new(
            Address::parse(url).unwrap(),
            Some(Key::new(SECRET)),
            Arc::new(Cassette::open(&file.path(), false).unwrap()),
        )
    };
    let why = with("openai+http://example.org/v1").unwrap_err().to_string();
    assert!(why.contains("example.org is reached over http"), "{why}");
    for fine in [
        "openai+https://example.org/v1",
        "openai+http://localhost:1/v1",
        "openai+http://127.0.0.1/v1",
        "openai+http://[::1]:8/v1",
    ] {
        assert!(with(fine).is_ok(), "{fine}");
    }
}

#[test]
fn the_hash_is_that_of_model_messages_and_limit() {
    // sha256 of {"max_tokens":10,"messages":[{"role":"user","content":"a"}],"model":"m"}, by
    // sha256sum.
    let items = vec![Item::new(Role::User, plain("a"), 1, None)];
    let of = |limit, model| {
        let p = Prompt { max_tokens: Some(limit), ..Prompt::new("", items.clone()) };
        wire::Question::new(&p, Some(model)).hash()
    };
    assert_eq!(of(10, "m"), "a371ffbb038ee53a0f338ccdf5acde56761014ca7ef3e3dac0bf026f01846113");
    assert!(of(11, "m") != of(10, "m") && of(10, "n") != of(10, "m"));
}

#[test]
fn conversations_become_what_servers_take() {
    let item = |role, text: &str| Item::new(role, plain(text), 1, None);
    let trigger = Draft::text(BlockKind::CompactionTrigger, Role::User, "");
    let trigger = Item::new(Role::User, trigger, 2, None);
    let items = vec![item(Role::Assistant, "b"), item(Role::Developer, "rule"), trigger];
    let p = Prompt { items, max_tokens: None, ..prompt("") };
    let body: Value = serde_json::from_slice(
        &wire::Question::new(&p, None).body(EndpointDialect::OpenAi, "api.openai.com"),
    )
    .unwrap();
    let roles: Vec<&str> =
        body["messages"].as_array().unwrap().iter().map(|m| m["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
    assert!(
        body["messages"][2]["content"]
            .as_str()
            .unwrap()
            .starts_with("rule\n\nSummarise the conversation")
    );
    assert_eq!(body["max_completion_tokens"], 8192);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_panics_and_the_key_never_stays(text in ".{0,80}", key in "[a-zA-Z0-9]{12,40}", url in ".{0,40}") {
        let out = without_secrets(&format!("{text}{key}{text}"), Some(&key));
        prop_assert!(!out.contains(&key), "{}", out);
        prop_assert_eq!(without_secrets(&out, Some(&key)).contains(&key), false);
        let _ = Address::parse(&url);
        let _ = Address::parse(&format!("openai+http://{url}"));
        let _ = wire::read(EndpointDialect::OpenAi, &text);
    }
}
