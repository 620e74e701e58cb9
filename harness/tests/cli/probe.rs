//! `ctxbench probe` with servers that always, never or sometimes answer right.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::common::CommandFolder;
use crate::sdks::Serving;

/// Lines of four tool results, each with the literal of its fact.
const LINES: [(&str, &str); 4] = [
    ("the server listens on port 8443 by default", "8443"),
    ("all tokens come from vault.local every morning", "vault.local"),
    ("please report problems to ticket HARBOR-17 only", "HARBOR-17"),
    ("the longest wait before another attempt is 45s here", "45s"),
];

/// Returns a session with a turn that shows the lines, and a message that needs all of them.
fn session() -> String {
    let mut lines = vec![
        json!({"type": "session", "version": 1, "id": "s", "model": "claude-haiku-4-5"}),
        json!({"type": "user", "id": "u1", "text": "look around"}),
    ];
    for (i, (line, _)) in LINES.iter().enumerate() {
        let call = json!({"id": format!("c{i}"), "name": "read", "arguments": "{}"});
        lines.push(json!({"type": "assistant", "id": format!("a{i}"), "calls": [call]}));
        lines.push(json!({"type": "tool", "call_id": format!("c{i}"), "output": line}));
    }
    lines.push(json!({"type": "assistant", "id": "a4", "text": "done"}));
    lines.push(json!({"type": "user", "id": "u2", "text": "write all of it down"}));
    lines.push(json!({"type": "assistant", "id": "a5", "text": "written"}));
    for (i, (_, literal)) in LINES.iter().enumerate() {
        lines.push(json!({"type": "fact", "id": format!("f{i}"), "kind": "value",
            "tokens": [literal], "arises": format!("c{i}"), "needs": ["u2"]}));
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// A model server that answers every request by its messages.
struct FakeModel {
    url: String,
    requests: Arc<AtomicUsize>,
}

impl FakeModel {
    fn start(answer: fn(conversation: &str, question: &str) -> String) -> FakeModel {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(AtomicUsize::new(0));
        let count = requests.clone();
        std::thread::spawn(move || {
            for mut connection in listener.incoming().flatten() {
                count.fetch_add(1, Ordering::SeqCst);
                let body: Value = serde_json::from_slice(&body(&mut connection)).unwrap();
                let messages = body["messages"].to_string();
                let (conversation, question) = messages.split_once("Answer from").unwrap();
                let text = answer(conversation, question);
                let answer = json!({"content": [{"type": "text", "text": text}],
                    "stop_reason": "end_turn", "usage": {"input_tokens": 1, "output_tokens": 1}});
                let answer = answer.to_string();
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n", answer.len());
                let _ = write!(connection, "{head}connection: close\r\n\r\n{answer}");
            }
        });
        FakeModel { url, requests }
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

/// Reads an HTTP request and returns its body.
fn body(connection: &mut TcpStream) -> Vec<u8> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        connection.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    let length = head.lines().find_map(|l| l.strip_prefix("content-length: ")).unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    connection.read_exact(&mut body).unwrap();
    body
}

/// Returns the literal that a question asks for.
fn expected(question: &str) -> &'static str {
    let (_, literal) = LINES
        .iter()
        .find(|(line, literal)| question.contains(&line.replace(literal, "____")))
        .unwrap_or_else(|| panic!("{question}"));
    assert!(!question.contains(literal), "{question}");
    literal
}

fn always_right(_: &str, question: &str) -> String {
    format!("It was `{}`.", expected(question))
}

fn always_wrong(_: &str, _: &str) -> String {
    "unknown".to_string()
}

/// Finds a literal if the conversation has it.
fn reader(conversation: &str, question: &str) -> String {
    let literal = expected(question);
    if conversation.contains(literal) { literal.to_string() } else { "unknown".to_string() }
}

const PROBE: &str = "probe s.jsonl --strategy reference --strategy observation-masking:keep=2 \
    --model claude-haiku-4-5";

/// Returns the table of a model.
fn printed(model: fn(&str, &str) -> String) -> String {
    let here = CommandFolder::with("s.jsonl", session());
    let server = FakeModel::start(model);
    let url = format!("anthropic+{}", server.url);
    here.run(&format!("{PROBE} --base-url {url} --cassette c.jsonl")).ok().stdout
}

#[test]
fn a_model_that_reads_its_context_is_right_where_the_fact_is_present() {
    // Masking shows two of the four results at the need. 6 of 6: 6 / (6 + 1.96²) = 61 %; 0 of 2:
    // 1.96² / (2 + 1.96²) = 66 %; 100 − √(39² + 66²) = 24.
    let want = "\
claude-haiku-4-5 asked about 2 contexts: 4 questions each.
                         recall % right if present  right if absent
───────────────────────────────────────────────────────────────────
reference                   100.0 4/4 = 100 % (51–100)              n/a
observation-…king:keep=2     50.0 2/2 = 100 % (34–100) 0/2 = 0 % (0–66)
all                               6/6 = 100 % (61–100) 0/2 = 0 % (0–66)
Recall predicts right answers: a fact in the context changes their share by +100
  points (95 % interval +24 to +100).
";
    let squeeze = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let [want, found] = [want, &printed(reader)].map(|text| squeeze(&text.replace('─', "")));
    assert_eq!(found, want);
}

#[test]
fn models_that_do_not_read_show_no_relation() {
    let right = printed(always_right);
    assert!(right.contains("6/6 = 100 % (61–100)"), "{right}");
    assert!(right.contains("2/2 = 100 % (34–100)"), "{right}");
    assert!(right.contains("It is open whether recall predicts right answers"), "{right}");
    // 0 of 6: 1.96² / (6 + 1.96²) = 39 %.
    let wrong = printed(always_wrong);
    assert!(wrong.contains("0/6 = 0 % (0–39)") && wrong.contains("0/2 = 0 % (0–66)"), "{wrong}");
}

#[test]
fn a_second_run_asks_nothing_and_prints_the_same() {
    let here = CommandFolder::with("s.jsonl", session());
    let key = "the-secret-key-0815";
    let server = FakeModel::start(reader);
    let run = |url: &str, cassette: &str| {
        let line = format!("{PROBE} --base-url {url} --cassette {cassette} --json");
        here.run(&line).env("CTXBENCH_SUMMARIZER_KEY", key).ok()
    };
    let url = format!("anthropic+{}", server.url);
    let first = run(&url, "c.jsonl");
    assert_eq!(server.requests(), 8);
    first.stderr_contains(&["8 questions to claude-haiku-4-5, 0 of them answered"]).lacks(&[key]);
    let again = run(&url, "c.jsonl");
    again.stderr_contains(&["8 of them answered in the cassette; the others have 0 tokens"]);
    let offline = run("openai+http://127.0.0.1:1/v1", "offline:c.jsonl");
    assert_eq!(server.requests(), 8);
    assert_eq!((&again.stdout, &offline.stdout), (&first.stdout, &first.stdout));
    assert!(!here.read("c.jsonl").contains(key));
    let rows = &first.json()["rows"];
    let present = |row: usize| {
        let answers = rows[row]["answers"].as_array().unwrap().iter();
        answers.map(|a| a["is_present"].as_bool().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(present(0), [true; 4]);
    assert_eq!(present(1), [false, false, true, true]);
}

#[test]
fn questions_are_chosen_by_number_and_seed() {
    let here = CommandFolder::with("s.jsonl", session());
    let server = FakeModel::start(reader);
    let facts = |options: &str| {
        let url = format!("anthropic+{}", server.url);
        let line = format!("{PROBE} --base-url {url} --cassette c.jsonl --json {options}");
        let questions = here.run(&line).ok().json()["questions"].clone();
        let facts = questions.as_array().unwrap().iter().map(|q| q["fact"].to_string());
        facts.collect::<Vec<_>>()
    };
    let all: Vec<_> = (1..=8).map(|seed| facts(&format!("--questions 2 --seed {seed}"))).collect();
    // One of two is about a fact that masking lost.
    let is_lost = |fact: &&String| ["\"f0\"", "\"f1\""].contains(&fact.as_str());
    assert!(all.iter().all(|two| two.len() == 2 && two.iter().filter(is_lost).count() == 1));
    assert!(all.iter().any(|two| *two != all[0]), "{all:?}");
}

#[test]
fn nothing_is_asked_above_the_limit_or_at_an_unknown_price() {
    let here = CommandFolder::with("s.jsonl", session());
    let server = FakeModel::start(reader);
    let base = format!("--base-url anthropic+{} --cassette c.jsonl", server.url);
    here.refuses(&format!("{PROBE} {base} --max-usd 0"), &["this is more than --max-usd 0; ask"]);
    let unlisted = PROBE.replace("claude-haiku-4-5", "unlisted");
    let public = "--base-url openai+https://models.example/v1 --cassette c.jsonl";
    here.refuses(&format!("{unlisted} {public}"), &["unlisted has no price", "--models FILE"]);
    assert_eq!(server.requests(), 0);
    here.run(&format!("{unlisted} {base}")).ok().stderr_contains(&["its price is not known"]);
    here.refuses(&format!("{PROBE} --base-url nowhere --cassette c.jsonl"), &["--base-url"]);
    let session = session();
    let no_facts: Vec<_> = session.lines().filter(|l| !l.contains("\"fact\"")).collect();
    here.write("s.jsonl", no_facts.join("\n"));
    here.refuses(&format!("{PROBE} {base}"), &["no question: no need with one exact literal"]);
}

#[test]
fn the_mock_server_stands_in_for_a_model_and_failures_keep_the_answers_so_far() {
    let here = CommandFolder::new();
    let server = Serving::run(&here, "serve --fault 6:500");
    let line = format!(
        "probe login-bug-tight --strategy reference --strategy codex --questions 4 --model \
         claude-haiku-4-5 --base-url anthropic+{} --cassette c.jsonl",
        server.url
    );
    here.fails(&line, 1, &["no answer for request ", "answered 500", "are in the cassette"]);
    let recorded = here.read("c.jsonl").lines().count() - 1;
    assert!((5..8).contains(&recorded), "{recorded}");
    let rest = here.run(&line).ok();
    rest.stderr_contains(&[&format!("8 questions to claude-haiku-4-5, {recorded} of them")]);
    // It describes requests, so it has no answers.
    rest.prints(&["claude-haiku-4-5 asked about 2 contexts: 4 questions each.", "0/"]);
}
