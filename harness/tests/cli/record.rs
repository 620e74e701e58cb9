//! `ctxbench record`: the requests that it forwards and stores, the ones that it does not, and
//! other commands on its files. A recorder without a program ends with Ctrl-C, which a test can
//! only send on Unix.
#![cfg(unix)]

use crate::sdks::{CLIENTS, Serving, runs};

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;

use crate::common::{CommandFolder, data, gzip, json_lines, sdk, signal};
use serde_json::{Value, json};

/// The events of a streamed reply, cut after the beginning of its content.
const REPLY: [&str; 2] =
    [include_str!("../data/reply-begin.sse"), include_str!("../data/reply-end.sse")];

fn request(from: &mut BufReader<TcpStream>) -> (String, Vec<u8>) {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(from.read_line(&mut head).unwrap() > 0, "the request ends in its head: {head}");
    }
    let length = head.lines().find_map(|l| {
        let (name, value) = l.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().unwrap())
    });
    let mut body = vec![0; length.unwrap_or(0)];
    from.read_exact(&mut body).unwrap();
    (head, body)
}

/// Starts a provider that answers one request. Returns its address, and later the head and body of
/// the request.
fn provider(
    answer: impl FnOnce(&mut TcpStream) + Send + 'static,
) -> (String, JoinHandle<(String, Vec<u8>)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let asked = request(&mut BufReader::new(stream.try_clone().unwrap()));
        answer(&mut stream);
        asked
    });
    (url, asked)
}

fn respond(stream: &mut TcpStream, head: &str, body: &[u8]) {
    let n = body.len();
    let head = format!("HTTP/1.1 {head}\r\nconnection: close\r\ncontent-length: {n}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body).unwrap();
}

/// Sends a request manually and returns the connection for reading the answer.
fn send(url: &str, head: &str, body: &[u8]) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(url.strip_prefix("http://").unwrap()).unwrap();
    let n = body.len();
    let head = format!("{head}\r\nconnection: close\r\ncontent-length: {n}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    BufReader::new(stream)
}

fn read_answer(mut answer: BufReader<TcpStream>) -> String {
    let mut text = Vec::new();
    // A broken connection still delivers the earlier bytes.
    let _ = answer.read_to_end(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

const POST: &str = "POST /v1/messages HTTP/1.1\r\nhost: localhost\r\nanthropic-version: 2023-06-01\r\n\
    content-type: application/json";

fn asking(words: &str) -> Vec<u8> {
    let messages = json!([{"role": "user", "content": words}]);
    json!({"model": "claude-sonnet-4-6", "max_tokens": 9, "stream": true, "messages": messages})
        .to_string()
        .into_bytes()
}

/// Stops an idle recorder with a signal that background programs do not ignore.
fn interrupt(recorder: &mut Serving) {
    signal("TERM", &recorder.child);
    assert_eq!(recorder.child.wait().unwrap().code(), Some(0));
}

/// Starts a recorder into `r.jsonl` for a provider.
fn recorder(here: &CommandFolder, url: &str) -> Serving {
    Serving::run(here, &format!("record --out r.jsonl --upstream {url}"))
}

fn lines(here: &CommandFolder, name: &str) -> Vec<Value> {
    json_lines(&here.read(name))
}

#[test]
fn no_key_is_in_the_file_or_in_what_is_said() {
    let here = CommandFolder::new();
    // An answer that repeats every secret, as some error messages do.
    let said = json!({"type": "error", "error": {"type": "authentication_error",
        "message": "canary-header-1 canary-bearer-2 canary-query-3 canary-cookie-4 canary-own-5"}});
    let (url, asked) = provider(move |stream| {
        let head = "401 Unauthorized\r\nset-cookie: id=canary-set-6\r\nx-echo: canary-header-1\r\n\
            request-id: canary-bearer-2";
        respond(stream, head, said.to_string().as_bytes());
    });
    let mut recorder = recorder(&here, &url);
    let head = POST.replace(" HTTP", "?beta=true&api_key=canary-query-3 HTTP")
        + "\r\nx-api-key: canary-header-1\r\nauthorization: Bearer canary-bearer-2\r\n\
           cookie: session=canary-cookie-4; x=y\r\nx-my-secret: canary-own-5\r\nx-other: canary-7";
    let answer = read_answer(send(&recorder.url, &head, &asking("hello, canary-header-1")));
    assert!(answer.contains("canary-query-3"), "the client sees the reply");
    interrupt(&mut recorder);
    let (head, body) = asked.join().unwrap();
    for secret in ["canary-header-1", "canary-bearer-2", "canary-cookie-4", "canary-own-5"] {
        assert!(head.contains(secret), "{secret} passes through: {head}");
    }
    assert!(head.starts_with("POST /v1/messages?beta=true&api_key=canary-query-3 "), "{head}");
    assert_eq!(body, asking("hello, canary-header-1"));
    let text = here.read("r.jsonl");
    assert!(!text.contains("canary"), "{text}");
    let exchange = &lines(&here, "r.jsonl")[1];
    assert_eq!(exchange["status"], 401);
    assert_eq!(exchange["query"], json!(["beta", "api_key"]));
    assert_eq!(exchange["headers"]["anthropic-version"], "2023-06-01");
    // Requests to the closed port fail, and the error contains no key.
    let line = "record --out n.jsonl --upstream http://user:canary@h -- true";
    here.run(line).fails_with(2).lacks(&["canary"]);
    assert!(!here.path("n.jsonl").exists());
}

#[test]
fn an_answer_streams_as_it_comes() {
    let here = CommandFolder::new();
    let (go_on, wait) = std::sync::mpsc::channel::<()>();
    let (url, _asked) = provider(move |stream| {
        let head =
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        stream.write_all((head.to_string() + REPLY[0]).as_bytes()).unwrap();
        // The rest arrives after the client has received the beginning.
        wait.recv().unwrap();
        stream.write_all(REPLY[1].as_bytes()).unwrap();
    });
    let mut recorder = recorder(&here, &url);
    let mut answer = send(&recorder.url, POST, &asking("hello"));
    let mut seen = String::new();
    while !seen.contains("content_block_start") {
        assert!(answer.read_line(&mut seen).unwrap() > 0, "{seen}");
    }
    go_on.send(()).unwrap();
    assert!(read_answer(answer).contains("message_stop"));
    interrupt(&mut recorder);
    let exchange = &lines(&here, "r.jsonl")[1];
    assert_eq!(exchange["reply"].as_str().unwrap(), REPLY.concat(), "byte for byte");
    assert_eq!(exchange["body"]["text"].as_str().unwrap().as_bytes(), asking("hello"));
    assert_eq!(exchange["ended"], "whole");
    here.run("import r.jsonl").ok().prints(&["\"text\":\"ok\"", "\"input\":7,\"output\":2"]);
}

#[test]
fn what_breaks_off_is_kept_as_such() {
    let here = CommandFolder::new();
    let (url, _asked) = provider(|stream| {
        let head =
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 9999\r\n\r\n";
        stream.write_all((head.to_string() + REPLY[0]).as_bytes()).unwrap();
    });
    let mut recorder = recorder(&here, &url);
    read_answer(send(&recorder.url, POST, &asking("hello")));
    // The provider has stopped.
    let refused = read_answer(send(&recorder.url, POST, &asking("hello")));
    assert!(
        refused.starts_with("HTTP/1.1 502") && refused.contains("\"type\":\"error\""),
        "{refused}"
    );
    interrupt(&mut recorder);
    let all = lines(&here, "r.jsonl");
    assert_eq!((&all[1]["ended"], &all[1]["status"]), (&json!("cut"), &json!(200)));
    assert!(all[1]["reply"].as_str().unwrap().starts_with("event: message_start"));
    assert_eq!((&all[2]["ended"], &all[2]["status"]), (&json!("unreached"), &json!(0)));
    assert_eq!(all[2]["body"]["like"], 1, "body sent again");
}

#[test]
fn compressed_bodies_pass_through_and_are_kept_as_text() {
    let here = CommandFolder::new();
    let reply = r#"{"content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":1}}"#;
    let packed = gzip(reply.as_bytes());
    let sent = packed.clone();
    let (url, asked) = provider(move |stream| {
        let head = "200 OK\r\ncontent-type: application/json\r\ncontent-encoding: gzip";
        respond(stream, head, &sent);
    });
    let mut recorder = recorder(&here, &url);
    let head = format!("{POST}\r\ncontent-encoding: gzip\r\naccept-encoding: br");
    let mut answer = Vec::new();
    send(&recorder.url, &head, &gzip(&asking("hello"))).read_to_end(&mut answer).unwrap();
    assert!(answer.ends_with(&packed), "the client gets the bytes that came");
    interrupt(&mut recorder);
    let (head, body) = asked.join().unwrap();
    assert_eq!(body, gzip(&asking("hello")));
    assert!(head.to_ascii_lowercase().contains("accept-encoding: identity"), "{head}");
    let exchange = &lines(&here, "r.jsonl")[1];
    assert_eq!(exchange["body"]["text"].as_str().unwrap().as_bytes(), asking("hello"));
    assert_eq!(exchange["reply"], reply);
}

#[test]
fn only_programs_on_this_machine_are_served() {
    let here = CommandFolder::new();
    let mut recorder = Serving::run(&here, "record --out r.jsonl --upstream http://127.0.0.1:9");
    for head in [
        POST.replace("localhost", "rebound.example"),
        format!("{POST}\r\norigin: https://page.example"),
        format!("{POST}\r\norigin: null"),
    ] {
        let answer = read_answer(send(&recorder.url, &head, &asking("hello")));
        assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    }
    let upgrade = POST.replace("POST", "GET") + "\r\nupgrade: websocket";
    assert!(read_answer(send(&recorder.url, &upgrade, b"")).starts_with("HTTP/1.1 426"));
    interrupt(&mut recorder);
    assert_eq!(lines(&here, "r.jsonl").len(), 1, "it is not recorded");
}

#[test]
fn the_program_decides_how_it_ends_and_where_it_is_told_to_send() {
    let here = CommandFolder::new();
    let out = here
        .run("record --out a.jsonl --upstream http://127.0.0.1:9 -- sh -c")
        .arg("echo $OPENAI_BASE_URL; echo $ANTHROPIC_BASE_URL; exit 7")
        .fails_with(7);
    let told: Vec<&str> = out.stdout.lines().collect();
    let (openai, anthropic) = (told[0], told[1]);
    assert!(anthropic.starts_with("http://127.0.0.1:"), "{anthropic}");
    assert_eq!(openai, format!("{anthropic}/v1"));
    out.stderr_contains(&["recording through http://127.0.0.1:", "no request came through"]);
    let of = |env: &str, variable: &str| {
        let name = format!("{variable}.jsonl");
        let run = here.run(&format!("record --quiet --out {name} --env {env} -- sh -c"));
        let out = run.arg(&format!("echo ${variable}")).ok();
        assert_eq!(out.stderr, "");
        out.stdout.trim().to_string()
    };
    assert!(of("OPENAI_API_BASE", "OPENAI_API_BASE").ends_with("/v1"));
    assert!(!of("MINE", "MINE").contains("/v1"));
    assert!(of("OTHER={url}/api", "OTHER").ends_with("/api"));
    here.run("record --out k.jsonl -- sh -c").arg("kill -TERM $$").fails_with(143);
    // A custom agent.
    here.write("mine.toml", include_str!("../data/shell-agent.toml"));
    let out = here.run("record --out m.jsonl --agent ./mine.toml -- sh argument").ok();
    // The file is private, and an existing one is not replaced.
    assert_eq!(here.mode("m.jsonl"), 0o600);
    here.refuses("record --out m.jsonl -- true", &["is there already"]);
    assert!(out.stdout.starts_with("to http://127.0.0.1:"), "{}", out.stdout);
    assert!(out.stdout.trim().ends_with(" argument"), "{}", out.stdout);
}

#[test]
fn ctrl_c_reaches_the_program_and_the_file_is_whole() {
    let here = CommandFolder::new();
    let mut command = here.run("record --out r.jsonl -- sh -c").command();
    // The program prints that it is ready and handles the signal itself. It waits for input that
    // never arrives.
    command.arg("trap 'echo told; exit 9' TERM; echo ready; while :; do read line; done");
    let (stdin, _open) = std::io::pipe().unwrap();
    command.stdin(stdin).stdout(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    signal("TERM", &child);
    assert_eq!(child.wait().unwrap().code(), Some(9));
    out.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\ntold\n");
    assert_eq!(lines(&here, "r.jsonl")[0]["type"], "ctxbench_recording");
}

#[test]
fn secrets_in_prompts_are_taken_out_when_that_is_asked_for() {
    let key = "AKIAIOSFODNN7EXAMPLQ";
    for redact in [false, true] {
        let here = CommandFolder::new();
        let (url, _asked) = provider(|stream| {
            let head = "200 OK\r\ncontent-type: text/event-stream";
            respond(stream, head, REPLY.concat().as_bytes());
        });
        let more = if redact { " --redact" } else { "" };
        let mut recorder =
            Serving::run(&here, &format!("record --out r.jsonl --upstream {url}{more}"));
        read_answer(send(&recorder.url, POST, &asking(&format!("use {key}"))));
        interrupt(&mut recorder);
        assert_eq!(here.read("r.jsonl").contains(key), !redact);
        assert_eq!(lines(&here, "r.jsonl")[0]["redacted"] == true, redact);
        here.run("import r.jsonl").ok().prints(&["\"text\":\"ok\""]);
    }
}

#[test]
fn a_recording_is_a_session_for_every_command() {
    let here = CommandFolder::new();
    let recording = data("recordings/ctxbench-record/port.jsonl").display().to_string();
    let imported = here.run(&format!("import {recording}")).ok();
    imported.prints(&[
        "\"format\":\"ctxbench-record\"",
        "\"agent\":\"agent-1\"",
        "\"type\":\"recorded_compaction\",\"pre_tokens\":764,\"post_tokens\":251",
        "You said: Summarise the work so far: the port moves from 8080 to 9090, in server.ts and in",
        "\"agent\":\"side-1\"",
    ]);
    let validated = here.run(&format!("validate {recording}")).ok();
    validated.prints(&["calls         10, compared 7, exactly right 7"]);
    here.run(&format!("list sessions {recording}")).ok().prints(&["ctxbench-record"]);
    here.run(&format!("run {recording} --strategy none --transport direct")).ok();
}

#[test]
#[ignore = "needs .ci/sdks"]
fn the_official_clients_work_through_it() {
    let dir = sdk::folder();
    for (script, checks) in CLIENTS.into_iter().filter(|(s, _)| !s.starts_with("gemini")) {
        let here = CommandFolder::new();
        let server = Serving::run(&here, "serve");
        let line = format!("record --out r.jsonl --upstream {}", server.url);
        let mut recorder = Serving::run(&here, &line);
        runs(script, checks, &dir, &recorder.url);
        interrupt(&mut recorder);
        let text = here.read("r.jsonl");
        assert!(text.lines().count() > checks && !text.contains("api_key"), "{script}");
        here.run("import r.jsonl -o out/").ok();
    }
}
