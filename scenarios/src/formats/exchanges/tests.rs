//! Tests of sessions from hand-written requests and replies.

use ctxbench_session::{Entry, RecordedUsage};
use serde_json::{Value, json};

use super::super::testing::{describe, import};
use super::line::{Bodies, Exchange, ExchangeEnd, Header, Line, Passed, VERSION};
use super::*;
use crate::error::Loaded;

/// Builds a recording with one second per exchange.
struct RecordingBuilder {
    lines: Vec<Line>,
    bodies: Bodies,
    system: &'static str,
    tools: &'static [&'static str],
}

fn builder() -> RecordingBuilder {
    let started = "2026-01-02T03:04:05.000Z".to_string();
    let header = Header { version: VERSION, started, ..Header::default() };
    let lines = vec![Line::CtxbenchRecording(header)];
    let (bodies, system, tools) = (Bodies::default(), "You are an agent.", &["read"][..]);
    RecordingBuilder { lines, bodies, system, tools }
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn reply(text: &str) -> Value {
    json!({"role": "assistant", "content": text})
}

fn calls(id: &str) -> Value {
    json!({"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "read", "input": {"path": id}}]})
}

fn result(id: &str, text: &str) -> Value {
    json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": text}]})
}

/// Returns a complete answer with the text of a message and a prompt of `prompt` tokens.
fn answer(message: &Value, prompt: u64) -> String {
    let content = match &message["content"] {
        Value::String(text) => json!([{"type": "text", "text": text}]),
        list => list.clone(),
    };
    json!({"id": "msg_1", "content": content, "stop_reason": "end_turn",
        "usage": {"input_tokens": prompt, "output_tokens": 5}})
    .to_string()
}

impl RecordingBuilder {
    fn prefix(mut self, system: &'static str, tools: &'static [&'static str]) -> RecordingBuilder {
        (self.system, self.tools) = (system, tools);
        self
    }

    fn exchange(self, messages: &[Value], reply: &Value) -> RecordingBuilder {
        let prompt = 100 * messages.len() as u64;
        self.answered(messages, 200, ExchangeEnd::Whole, &answer(reply, prompt))
    }

    fn talk(self, messages: &[Value]) -> RecordingBuilder {
        let replies = (0..messages.len()).filter(|i| messages[*i]["role"] == "assistant");
        replies.fold(self, |r, i| r.exchange(&messages[..i], &messages[i]))
    }

    fn answered(
        mut self,
        messages: &[Value],
        status: u16,
        ended: ExchangeEnd,
        reply: &str,
    ) -> RecordingBuilder {
        let number = self.lines.len() as u64;
        let tools: Vec<Value> =
            self.tools.iter().map(|t| json!({"name": t, "input_schema": {}})).collect();
        let body = json!({"model": "claude-sonnet-4-6", "max_tokens": 9, "system": self.system,
            "tools": tools, "messages": messages});
        let exchange = Exchange {
            number,
            at_ms: 1_000 * number,
            wire: "anthropic-messages".into(),
            path: "/v1/messages".into(),
            host: "api.anthropic.com".into(),
            body: Some(self.bodies.pack(number, &body.to_string())),
            status,
            reply: Some(reply.into()),
            end_ms: 1_000 * number + 500,
            ended,
            ..Exchange::default()
        };
        self.lines.push(Line::Exchange(Box::new(exchange)));
        self
    }

    fn text(&self) -> String {
        self.lines.iter().map(|l| serde_json::to_string(l).unwrap() + "\n").collect()
    }

    fn sessions(&self) -> Vec<Loaded> {
        let text = self.text();
        let source = Source::of_bytes(text.as_bytes(), "r.jsonl");
        import("ctxbench-record", &source)
    }

    fn session(&self) -> Loaded {
        let mut all = self.sessions();
        assert_eq!(all.len(), 1);
        all.remove(0)
    }

    fn summary(&self) -> Vec<String> {
        describe(&self.session().session)
    }
}

fn tools(names: &[&str]) -> String {
    let tool = |name: &&str| json!({"name": name, "description": "", "input_schema": {}});
    format!("tools: {}", names.iter().map(tool).collect::<Value>())
}

const SUMMARY: &str = "The user wants the port changed.\nIt is in server.ts, line 12.";

#[test]
fn a_conversation_is_what_its_requests_show() {
    let r = builder().talk(&[
        user("go"),
        calls("c1"),
        result("c1", "found"),
        reply("done"),
        user("thanks"),
        reply("you are welcome"),
    ]);
    let expected = [
        "system: You are an agent.",
        &tools(&["read"]),
        "user: go",
        "model: read[c1]{\"path\":\"c1\"}",
        "result[c1]: found",
        "model: done",
        "user: thanks",
        "model: you are welcome",
    ];
    assert_eq!(r.summary(), expected);
    let loaded = r.session();
    assert_eq!(loaded.session.header.model.as_deref(), Some("claude-sonnet-4-6"));
    let Entry::Assistant(last) = loaded.session.entries.last().unwrap() else { panic!() };
    assert_eq!(last.usage, Some(RecordedUsage { input: 500, output: 5, ..Default::default() }));
    // From the first request, 1 s after the start, to the end of the last answer, 3.5 s after the
    // start.
    assert_eq!(last.at, Some(2_500));
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
}

#[test]
fn a_summary_at_the_end_of_the_conversation_is_a_compaction() {
    let task = user("change the port");
    let shown = user(&format!("Earlier work, in short:\n{SUMMARY}"));
    let r = builder()
        .talk(&[
            task.clone(),
            calls("c1"),
            result("c1", "port = 80"),
            reply("Wait."),
            user("Summarise all of it."),
            reply(SUMMARY),
        ])
        .exchange(&[task, shown, user("continue")], &reply("Done."));
    let expected = [
        "model: Wait.".to_string(),
        // The previous prompt had 300 tokens and 5 of reply, the next one 300.
        format!("compaction: Some(305) Some(300) {:?}", Some(SUMMARY)),
        "user: continue".to_string(),
        "model: Done.".to_string(),
    ];
    assert_eq!(r.summary()[5..], expected);
}

#[test]
fn a_summary_beside_the_conversation_is_a_compaction_too() {
    let written = format!("<analysis>\nfirst this, then that\n</analysis>\n{SUMMARY}");
    let r = builder()
        .talk(&[user("change the port"), calls("c1"), result("c1", "port = 80"), reply("Next?")])
        .prefix("You write summaries.", &[])
        .exchange(&[user("Transcript: port = 80")], &reply(&written))
        .prefix("You are an agent.", &["read"])
        .exchange(
            &[user(&format!("This continues from before.\n{SUMMARY}")), user("continue")],
            &reply("Done."),
        );
    let told = r.summary();
    assert_eq!(told[5], "model: Next?");
    assert_eq!(told[6], format!("compaction: Some(305) Some(200) {:?}", Some(&written)));
    assert_eq!(told[7..], ["user: continue", "model: Done."]);
    let session = r.session().session;
    let Entry::RecordedCompaction(c) = &session.entries[6] else { panic!() };
    let bill = c.usage.as_ref().map(|u| (u.input, u.output));
    assert_eq!(bill, Some((100, 5)), "the bill of the summary");
}

#[test]
fn requests_that_do_not_only_go_on() {
    let long = [user("go"), calls("c1"), result("c1", "one"), calls("c2"), result("c2", "two")];
    let gone = [&long[..1], &long[3..], &[calls("c3"), result("c3", "three")]].concat();
    let talk = [user("go"), calls("c1"), result("c1", "long output"), reply("on")];
    let altered = |next| {
        [user("go"), calls("c1"), result("c1", "[cleared]"), reply("on"), user(next)].to_vec()
    };
    let said = |question: &str, text: &str| [user(question), reply(text)];
    let cases: [(&str, RecordingBuilder, usize, &[&str]); 5] = [
        (
            "calls that are gone are a compaction without a summary",
            builder()
                .exchange(&long[..1], &calls("c1"))
                .exchange(&long[..3], &calls("c2"))
                .exchange(&long, &calls("c3"))
                .exchange(&gone, &reply("ok")),
            7,
            &[
                "model: read[c3]{\"path\":\"c3\"}",
                "compaction: Some(505) Some(500) None",
                "result[c3]: three",
                "model: ok",
            ],
        ),
        (
            "altered results are the same conversation",
            builder().talk(&talk).exchange(&altered("more"), &reply("ok")),
            4,
            &["result[c1]: long output", "model: on", "user: more", "model: ok"],
        ),
        (
            "the same words again are said again",
            builder().talk(&talk).exchange(&altered("go"), &reply("ok")),
            5,
            &["model: on", "user: go", "model: ok"],
        ),
        (
            "a reply that was not taken is a call",
            builder()
                .exchange(&[user("go")], &reply("a first answer"))
                .exchange(&[user("go")], &reply("another"))
                .exchange(&[user("go"), reply("another"), user("on")], &reply("ok")),
            2,
            &["user: go", "model: another", "user: on", "model: ok", "call: 100"],
        ),
        (
            "what the user took back is not part of the session",
            builder()
                .talk(&[said("one", "1"), said("two", "2"), said("three", "3")].concat())
                .exchange(&[user("one"), reply("1"), user("other")], &reply("4")),
            2,
            &["user: one", "model: 1", "user: other", "model: 4", "call: 300", "call: 500"],
        ),
    ];
    for (what, recorded, from, expected) in cases {
        assert_eq!(recorded.summary()[from..], *expected, "{what}");
    }
}

#[test]
fn subagents_and_side_requests_are_apart() {
    let task = "Find where the port is set";
    let delegates = json!({"role": "assistant", "content": [
        {"type": "tool_use", "id": "t1", "name": "task", "input": {"prompt": task}}]});
    let found = "The port is set in server.ts.";
    let r = builder()
        .prefix("Make a title.", &[])
        .exchange(&[user("change the port")], &reply("Port change"))
        .prefix("You are an agent.", &["read", "task"])
        .exchange(&[user("change the port")], &delegates)
        .prefix("You are a helper.", &["read"])
        .talk(&[user(task), calls("c1"), result("c1", "port = 80"), reply(found)])
        .prefix("You are an agent.", &["read", "task"])
        .exchange(
            &[user("change the port"), delegates.clone(), result("t1", found)],
            &reply("Done."),
        );
    let expected = [
        "system: You are an agent.",
        &tools(&["read", "task"]),
        "user: change the port",
        "model: task[t1]{\"prompt\":\"Find where the port is set\"}",
        "agent-1/system: You are a helper.",
        &format!("agent-1/{}", tools(&["read"])),
        "agent-1/user: Find where the port is set",
        "agent-1/model: read[c1]{\"path\":\"c1\"}",
        "agent-1/result[c1]: port = 80",
        "agent-1/model: The port is set in server.ts.",
        "result[t1]: The port is set in server.ts.",
        "model: Done.",
        "side-1/call: 100",
    ];
    assert_eq!(r.summary(), expected);
}

#[test]
fn failures_and_broken_streams_have_no_reply() {
    let cut = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{}}}\n\nevent: content";
    let r = builder()
        .answered(&[user("go")], 429, ExchangeEnd::Whole, "{\"error\":{}}")
        .answered(&[user("go")], 200, ExchangeEnd::Cut, cut)
        .answered(&[user("go")], 0, ExchangeEnd::Unreached, "")
        .exchange(&[user("go"), reply("the latter"), user("on")], &reply("ok"));
    assert_eq!(r.summary()[2..], ["user: go", "model: the latter", "user: on", "model: ok"]);
    let loaded = r.session();
    let Entry::Assistant(kept) = &loaded.session.entries[3] else { panic!() };
    assert_eq!(kept.usage, None, "it was not counted");
}

#[test]
fn conversations_of_a_kind_are_sessions() {
    let r = builder()
        .talk(&[user("the first task"), calls("c1"), result("c1", "x"), reply("done")])
        .exchange(&[user("another task")], &reply("done, too"));
    let all = r.sessions();
    let ids: Vec<&str> = all.iter().map(|l| l.session.header.id.as_str()).collect();
    assert_eq!(ids, ["r-1", "r-2"]);
    assert_eq!(describe(&all[1].session)[2..], ["user: another task", "model: done, too"]);
}

#[test]
fn lost_lines_take_no_more_with_them_than_they_must() {
    let task = "t".repeat(500);
    let r = builder().talk(&[user(&task), reply("1"), user("two"), reply("2")]);
    let text = r.text();
    let lines: Vec<&str> = text.lines().collect();
    // Killed during a write.
    let cut = format!("{}\n{}\n{}", lines[0], lines[1], &lines[2][..lines[2].len() / 2]);
    let read = |text: &str| FORMAT.import_all(&Source::of_bytes(text.as_bytes(), "r.jsonl"));
    let loaded = read(&cut).unwrap().remove(0);
    assert!(loaded.warnings[0].contains("r.jsonl:3: the last line breaks off"));
    assert_eq!(describe(&loaded.session)[3..], ["model: 1"]);
    // A lost line that others refer to.
    let lost = format!("{}\nnoise\n{}\n", lines[0], lines[2]);
    let e = read(&lost).unwrap_err().to_string();
    assert!(
        e.contains("r.jsonl:2: not a JSON object") && e.contains("like that of exchange 1"),
        "{e}"
    );
    let newer = lines[0].replace("\"version\":1", "\"version\":2");
    let e = read(&newer).unwrap_err().to_string();
    assert!(e.starts_with("r.jsonl:1: version 2 of the recording; expected version 1"), "{e}");
}

#[test]
fn unknown_calls_and_contents_are_told() {
    let mut r = builder().exchange(
        &[json!({"role": "user", "content": [{"type": "text", "text": "go"}, {"type": "hologram"}]})],
        &reply("ok"),
    );
    let passed = |path: &str, known| {
        let (method, path) = ("GET".into(), path.into());
        Line::Passed(Passed { at_ms: 1, method, path, status: 200, known })
    };
    r.lines.extend([passed("/v1/models", true), passed("/v1/new", false)]);
    let loaded = r.session();
    let expected = [
        "r.jsonl: 1 × content of the kind \"hologram\", which is not modelled; left out",
        "r.jsonl: 1 call of paths that are not known here; left out",
    ];
    assert_eq!(loaded.warnings, expected);
    assert_eq!(describe(&loaded.session)[2..], ["user: go", "model: ok"]);
}

#[test]
fn a_refused_request_without_messages_is_no_session() {
    let r = builder().exchange(&[user("the task")], &reply("done")).answered(
        &[],
        400,
        ExchangeEnd::Whole,
        "{}",
    );
    let loaded = r.session();
    assert_eq!(loaded.warnings, ["r.jsonl:3: a request without messages (HTTP 400); left out"]);
    assert_eq!(describe(&loaded.session)[2..], ["user: the task", "model: done"]);
}

#[test]
fn half_a_character_costs_no_request() {
    let text = builder().exchange(&[user("cut <half>")], &reply("ok")).text();
    let text = text.replace("<half>", r"\\ud83d");
    let all = FORMAT.import_all(&Source::of_bytes(text.as_bytes(), "r.jsonl")).unwrap();
    assert_eq!(all[0].warnings, Vec::<String>::new());
    assert_eq!(describe(&all[0].session)[2..], ["user: cut \u{fffd}", "model: ok"]);
}
