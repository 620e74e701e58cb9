//! Exports and imports: everything that a format can represent survives the round trip. [`Can`]
//! lists the features of each format.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;

use ctxbench_core::block::Media;
use ctxbench_core::content::{Part, ToolCall};
use ctxbench_scenarios::exports::{self, ExportLosses};
use ctxbench_scenarios::formats::{self, Source};
use ctxbench_scenarios::{InputKind, jsonl, load_path, sniff};
use ctxbench_session::{
    AssistantEntry, Entry, Header, RecordedUsage, Session, ToolEntry, UserEntry,
};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::common::sdk;
use crate::random;

#[derive(Default)]
struct Can {
    /// Name as an export format and as a recording format.
    names: [&'static str; 2],
    reasoning: bool,
    /// Encrypted reasoning, and the order of the parts of a reply.
    sealed: bool,
    counters_times_models: bool,
    failures: bool,
    images_in_results: bool,
    subagents: bool,
    system_apart: bool,
    exact_arguments: bool,
}

fn atif() -> Can {
    Can {
        names: ["atif", "atif"],
        reasoning: true,
        counters_times_models: true,
        failures: true,
        images_in_results: true,
        subagents: true,
        system_apart: true,
        ..Can::default()
    }
}

fn all_formats() -> [Can; 3] {
    let names = ["openai", "openai-chat"];
    let openai = Can { names, system_apart: true, exact_arguments: true, ..Can::default() };
    let anthropic = Can {
        names: ["anthropic", "anthropic-messages"],
        reasoning: true,
        sealed: true,
        failures: true,
        images_in_results: true,
        ..Can::default()
    };
    [atif(), openai, anthropic]
}

/// Content of a window: leading texts and tools, then messages.
#[derive(Debug, Default, PartialEq)]
struct Window {
    tools: Vec<Value>,
    system: Vec<String>,
    messages: Vec<Value>,
}

/// Returns the content of a session that a format can represent, by window. `model` applies to
/// replies without one.
fn window_contents(
    session: &Session,
    can: &Can,
    model: &Option<String>,
) -> BTreeMap<Option<String>, Window> {
    let mut out: BTreeMap<Option<String>, Window> = BTreeMap::new();
    // Window and message of each call, and its index in its reply.
    let mut calls: BTreeMap<String, (Option<String>, usize, usize)> = BTreeMap::new();
    let mut start = None;
    for entry in &session.entries {
        let agent = entry.agent().map(str::to_string);
        if agent.is_some() && !can.subagents {
            continue;
        }
        let window = out.entry(agent.clone()).or_default();
        let mut time = |at: Option<u64>| {
            let at = at.filter(|_| can.counters_times_models && agent.is_none())?;
            Some(at.saturating_sub(*start.get_or_insert(at)))
        };
        match entry {
            Entry::Tools { definitions, .. } => window.tools = definitions.clone(),
            Entry::System { text, .. } | Entry::RepoMap { text, .. } => {
                window.system.push(text.clone());
            }
            Entry::Memory { path, text, .. } | Entry::File { path, text, .. } => {
                window.system.push(format!("{path}\n\n{text}"));
            }
            Entry::User(user) => {
                let parts = parts(&user.content(), can, true);
                window.messages.push(json!({"user": parts, "at": time(user.at)}));
            }
            Entry::Assistant(reply) => {
                let all = reply.all_calls();
                for (n, call) in all.iter().enumerate() {
                    let place = (agent.clone(), window.messages.len(), n);
                    calls.insert(call.id.to_string(), place);
                }
                let model = reply.model.as_ref().or(model.as_ref());
                let usage = reply
                    .usage
                    .as_ref()
                    .map(|u| (u.input, u.cache_read, u.cache_write + u.cache_write_1h, u.output));
                let mut message = json!({
                    "reply": parts(&reply.content(), can, false),
                    "at": time(reply.at),
                    "results": vec![Value::Null; all.len()],
                });
                if can.counters_times_models {
                    message["model"] = json!(model);
                    message["usage"] = json!(usage);
                }
                window.messages.push(message);
            }
            Entry::Tool(result) => {
                let (agent, message, n) = &calls[&result.call_id];
                let failed = (result.is_error == Some(true)) && can.failures;
                let parts = parts(&result.content(), can, can.images_in_results);
                out.get_mut(agent).unwrap().messages[*message]["results"][*n] =
                    json!({"parts": parts, "failed": failed});
            }
            _ => {}
        }
    }
    for window in out.values_mut() {
        window.system.retain(|text| !text.is_empty());
        if !can.system_apart && !window.system.is_empty() {
            window.system = vec![window.system.join("\n\n")];
        }
    }
    out.retain(|_, w| *w != Window::default());
    out
}

fn parts(parts: &[Part], can: &Can, images: bool) -> Vec<Value> {
    let mut out = Vec::new();
    for part in parts {
        out.extend(match part {
            Part::Text(text) if text.is_empty() => None,
            Part::Text(text) => Some(json!({"text": &**text})),
            Part::Image(media) => images.then(|| json!({"image": media.url})),
            Part::Reasoning { text, .. } if !can.sealed => {
                (can.reasoning && !text.is_empty()).then(|| json!({"thought": &**text}))
            }
            Part::Reasoning { text, encrypted } => Some(
                json!({"thought": &**text, "sealed": encrypted.as_deref().unwrap_or_default()}),
            ),
            Part::Call(call) => Some(json!({"call": &*call.name, "with": arguments(call, can)})),
            other => panic!("{other:?} is in no session"),
        });
    }
    if can.sealed {
        return out;
    }
    // The order is fixed: reasoning, then text, then calls.
    let (thoughts, rest): (Vec<_>, Vec<_>) =
        out.into_iter().partition(|p| p.get("thought").is_some());
    let (calls, said): (Vec<_>, Vec<_>) = rest.into_iter().partition(|p| p.get("call").is_some());
    let thoughts: Vec<&str> = thoughts.iter().filter_map(|t| t["thought"].as_str()).collect();
    let thought = (!thoughts.is_empty()).then(|| json!({"thought": thoughts.join("\n\n")}));
    thought.into_iter().chain(said).chain(calls).collect()
}

fn arguments(call: &ToolCall, can: &Can) -> Value {
    match serde_json::from_str::<Value>(&call.arguments) {
        _ if can.exact_arguments => json!(&*call.arguments),
        _ if call.arguments.trim().is_empty() => json!({}),
        Ok(Value::Object(object)) => object.into(),
        _ => json!({"arguments": &*call.arguments}),
    }
}

fn written(session: &Session, can: &Can) -> String {
    (exports::by_name(can.names[0]).unwrap().write)(session, &mut ExportLosses::default()).unwrap()
}

fn round_trip(session: &Session, can: &Can) -> Session {
    let text = written(session, can);
    let source = Source::of_bytes(text.as_bytes(), "s.json");
    let format = formats::by_name(can.names[1]).unwrap();
    let mut all = format.import_all(&source).unwrap_or_else(|e| panic!("{e}: {text}"));
    assert_eq!(all.len(), 1);
    all.remove(0).session
}

/// Writes and reads the session, so that it is valid.
fn checked(session: Session) -> Session {
    jsonl::read(session.to_jsonl().unwrap().as_bytes(), "s.jsonl").unwrap().session
}

fn recordings() -> Vec<(String, Session)> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/recordings");
    let mut out = Vec::new();
    for file in ctxbench_util::files::walk(&data).unwrap() {
        let source = Source::at(&file);
        let Some(InputKind::Recording(name)) = sniff(&source) else { continue };
        formats::by_name(name).unwrap().import(&source, |one| {
            // A file next to a session may contain no session.
            if let Ok(one) = one {
                out.push((format!("{name}-{}", out.len()), one.session));
            }
            ControlFlow::Continue(())
        });
    }
    assert!(out.len() > 15, "{}", out.len());
    out
}

#[test]
fn recordings_round_trip_through_every_format() {
    for (name, session) in recordings() {
        for can in &all_formats() {
            survives(&session, can, &session.header.model, &name);
        }
    }
}

/// Asserts that a session survives the round trip, and returns what comes back. `model` applies to
/// replies without one. A failure shows only the first difference, because the whole would be too
/// long.
fn survives(session: &Session, can: &Can, model: &Option<String>, name: &str) -> Session {
    let what = format!("{name} as {}", can.names[0]);
    let back = round_trip(session, can);
    let [found, expected] = [&back, session].map(|s| window_contents(s, can, model));
    assert!(found.keys().eq(expected.keys()), "{what}: {:?}", found.keys());
    for (window, expected) in expected {
        let found = &found[&window];
        assert_eq!(found.tools, expected.tools, "{what}, {window:?}");
        assert_eq!(found.system, expected.system, "{what}, {window:?}");
        for (n, (found, expected)) in found.messages.iter().zip(&expected.messages).enumerate() {
            assert_eq!(found, expected, "{what}, {window:?}, message {n}");
        }
        assert_eq!(found.messages.len(), expected.messages.len(), "{what}, {window:?}");
    }
    back
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        any::<String>(),
        "[ \n\r\t\u{feff}\u{2028}\"\\\\{}\\[\\]]{1,6}",
        Just("{\"role\":\"user\",\"content\":\"x\"}".to_string()),
    ]
}

fn part() -> impl Strategy<Value = Part> {
    let arguments = prop_oneof![
        text(),
        Just("{\"path\": \"a b\",\n \"n\": [1, 2.50, -3e2, null]}".to_string()),
        Just("{\"a\":\"\\ud800\"}".to_string()),
        Just("[1]".to_string()),
        text().prop_map(|t| json!({"text": t}).to_string()),
    ];
    let reasoning = (text(), prop::option::of("[a-z]{1,4}"));
    let url = prop::sample::select(vec!["data:image/png;base64,AAAA", "https://x.y/z.png"]);
    prop_oneof![
        3 => text().prop_map(|text| Part::Text(text.into())),
        1 => reasoning.prop_map(|(text, encrypted)| {
            Part::Reasoning { text: text.into(), encrypted: encrypted.map(Into::into) }
        }),
        1 => url.prop_map(|url| {
            let media_type = "image/png".to_string();
            Part::Image(Media { media_type, url: url.into(), name: None })
        }),
        2 => ("[a-z_]{0,6}", arguments).prop_map(|(n, a)| Part::Call(ToolCall::new("", n, a))),
    ]
}

/// A random message: role (0 = user), window, parts, counters, and more.
type Message = (u8, Option<&'static str>, Vec<Part>, Option<[u32; 4]>, bool, u16);

fn messages() -> impl Strategy<Value = Vec<Message>> {
    let window = prop_oneof![6 => Just(None), 1 => Just(Some("a")), 1 => Just(Some("b"))];
    let message = (
        0_u8..3,
        window,
        vec(part(), 0..5),
        // Larger prompts are no counters of a short session.
        prop::option::of([0_u32..300_000, 0..300_000, 0..300_000, 0..300_000]),
        any::<bool>(),
        any::<u16>(),
    );
    vec(message, 1..9)
}

fn session_of(messages: Vec<Message>, system: Vec<String>, model: Option<&str>) -> Session {
    let mut entries: Vec<Entry> = Vec::new();
    for text in system {
        entries.push(Entry::System { text, agent: None });
    }
    let mut at = 0;
    for (n, (who, agent, mut parts, usage, failed, wait)) in messages.into_iter().enumerate() {
        let agent = agent.map(str::to_string);
        parts.retain(|part| match part {
            Part::Text(_) => true,
            Part::Image(_) => who == 0,
            _ => who != 0,
        });
        let mut calls = Vec::new();
        for (i, part) in parts.iter_mut().enumerate() {
            if let Part::Call(call) = part {
                // Includes IDs in the form that importers assign.
                call.id = format!("m{}", n * 5 + i).into();
                calls.push(call.id.to_string());
            }
        }
        at += u64::from(wait);
        let (id, parts) = (format!("id-{n}"), Some(parts));
        if who == 0 {
            let at = Some(at);
            entries.push(Entry::User(UserEntry { id, parts, at, agent, ..Default::default() }));
            continue;
        }
        let usage = usage.map(|[input, output, cache_read, cache_write]| RecordedUsage {
            input: input.into(),
            output: output.into(),
            cache_read: cache_read.into(),
            cache_write: cache_write.into(),
            ..Default::default()
        });
        let model = failed.then(|| "m-2".to_string());
        let reply =
            AssistantEntry { id, parts, usage, model, agent: agent.clone(), ..Default::default() };
        entries.push(Entry::Assistant(reply));
        // The last call may have no result.
        let answered = calls.len() - usize::from(wait % 3 == 0 && !calls.is_empty());
        for call_id in calls.into_iter().take(answered) {
            let (output, is_error) = (Some(format!("{call_id}\n").into()), failed.then_some(true));
            let agent = agent.clone();
            entries.push(Entry::Tool(ToolEntry {
                call_id,
                output,
                is_error,
                agent,
                ..Default::default()
            }));
        }
    }
    let model = model.map(str::to_string);
    let header = Header { version: 1, id: "s".into(), model, ..Default::default() };
    checked(Session { header, entries, facts: Vec::new() })
}

/// A subagent keeps its position even if its times are later than those of the main conversation.
#[test]
fn times_count_from_the_start_of_the_main_conversation() {
    let call = || vec![Part::Call(ToolCall::new("", "", ""))];
    let a = Some("a");
    let all = vec![
        (1, a, vec![], None, false, 0),
        (1, None, call(), None, false, 1537),
        (0, None, vec![], None, false, 0),
        (0, a, vec![], None, false, 1),
        (0, None, vec![], None, false, 0),
    ];
    let session = session_of(all, vec![], None);
    survives(&session, &atif(), &None, "a subagent with later times");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_messages_round_trip(all in messages(), system in vec(text(), 0..3), model in any::<bool>()) {
        let session = session_of(all, system, model.then_some("m-1"));
        for can in &all_formats() {
            let main = session.entries.iter().any(|e| e.is_message() && e.agent().is_none());
            if !main && !can.subagents {
                // The format can represent no message of this session. Writing must not fail.
                written(&session, can);
                continue;
            }
            survives(&session, can, &session.header.model, "a session");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_sessions_round_trip(plan in random::plan(6)) {
        let session = checked(plan.scenario().session);
        for can in &all_formats() {
            let model = &session.header.model;
            let back = survives(&session, can, model, "a session");
            // A second round trip changes nothing.
            survives(&back, can, model, "it again");
        }
    }
}

/// Checks all recordings and built-in scenarios in all formats with the official packages.
#[test]
#[ignore = "needs .ci/sdks"]
fn official_packages_accept_exports() {
    let dir = sdk::folder();
    let out = tempfile::tempdir().unwrap();
    let data = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = recordings();
    for id in ctxbench_scenarios::builtin::IDS.iter() {
        all.push((id.to_string(), ctxbench_scenarios::builtin::by_id(id).unwrap().session));
    }
    for can in &all_formats() {
        let folder = out.path().join(can.names[0]);
        std::fs::create_dir(&folder).unwrap();
        for (name, session) in &all {
            std::fs::write(folder.join(format!("{name}.json")), written(session, can)).unwrap();
        }
    }
    let mut command = Command::new(sdk::python(&dir));
    command.arg(data.join("sdk/exports_check.py")).arg(out.path());
    let done = command.env("PYTHONDONTWRITEBYTECODE", "1").output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    let expected = format!("{} passed, 0 failed", all_formats().len() * all.len() + 1);
    assert!(said.contains(&expected), "{said}{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn exports_are_recognised_without_a_flag() {
    let dir = tempfile::tempdir().unwrap();
    let session = ctxbench_scenarios::builtin::by_id("login-bug").unwrap().session;
    for can in &all_formats() {
        let path = dir.path().join(format!("{}.json", can.names[0]));
        std::fs::write(&path, written(&session, can)).unwrap();
        assert_eq!(sniff(&Source::at(&path)), Some(InputKind::Recording(can.names[1])));
        let found = load_path(&path).unwrap();
        assert_eq!((found.scenarios.len(), found.scenarios[0].id.as_str()), (1, can.names[0]));
    }
}
