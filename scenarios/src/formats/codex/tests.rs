use ctxbench_session::{Entry, Session};
use serde_json::json;

use super::super::Source;
use super::super::testing::{self, counted, describe, recorded, times};
use super::*;

const ROLLOUT: &str = r##"{"timestamp":"2026-01-01T00:00:00.000Z","type":"session_meta","payload":{"id":"x","base_instructions":{"text":"You are an agent."}}}
{"timestamp":"2026-01-01T00:00:00.000Z","type":"response_item","payload":{"type":"message","role":"developer","content":[{"type":"input_text","text":"<permissions instructions>ask</permissions instructions>"}]}}
{"timestamp":"2026-01-01T00:00:00.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"# AGENTS.md instructions for /w/app\n\nbe nice"},{"type":"input_text","text":"<environment_context>linux</environment_context>"}]}}
{"timestamp":"2026-01-01T00:00:00.000Z","type":"turn_context","payload":{"model":"gpt-x"}}
{"timestamp":"2026-01-01T00:00:01.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"do it"}]}}
{"timestamp":"2026-01-01T00:00:01.000Z","type":"event_msg","payload":{"type":"user_message","message":"do it"}}
{"timestamp":"2026-01-01T00:00:02.000Z","type":"response_item","payload":{"type":"reasoning","summary":[{"type":"summary_text","text":"think"}],"encrypted_content":"enc"}}
{"timestamp":"2026-01-01T00:00:03.000Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"I will"}]}}
{"timestamp":"2026-01-01T00:00:03.000Z","type":"response_item","payload":{"type":"web_search_call","status":"completed","action":{"type":"search","query":"how"}}}
{"timestamp":"2026-01-01T00:00:03.000Z","type":"response_item","payload":{"type":"function_call","name":"exec","arguments":"{\"cmd\":\"ls\"}","call_id":"c1"}}
{"timestamp":"2026-01-01T00:00:03.000Z","type":"response_item","payload":{"type":"custom_tool_call","name":"apply_patch","input":"*** Begin","call_id":"c2"}}
{"timestamp":"2026-01-01T00:00:04.000Z","type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":1000},"last_token_usage":{"input_tokens":1000,"cached_input_tokens":900,"output_tokens":30},"model_context_window":5000}}}
{"timestamp":"2026-01-01T00:00:04.000Z","type":"event_msg","payload":{"type":"token_count","info":null}}
{"timestamp":"2026-01-01T00:00:05.000Z","type":"response_item","payload":{"type":"function_call_output","call_id":"c1","output":"files"}}
{"timestamp":"2026-01-01T00:00:05.000Z","type":"response_item","payload":{"type":"custom_tool_call_output","call_id":"c2","output":"{\"output\":\"ok\"}"}}
{"timestamp":"2026-01-01T00:00:06.000Z","type":"compacted","payload":{"message":"so far","replacement_history":[]}}
{"timestamp":"2026-01-01T00:00:07.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>later</environment_context>"}]}}
{"timestamp":"2026-01-01T00:00:08.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"and now"},{"type":"input_image","image_url":"data:image/png;base64,QUJD"}]}}
"##;

fn import(text: &str) -> (Session, Vec<String>) {
    let source = Source::of_bytes(text.as_bytes(), "rollout-1.jsonl");
    let loaded = testing::import("codex", &source).remove(0);
    (loaded.session, loaded.warnings)
}

#[test]
fn a_rollout_becomes_a_session() {
    let (s, warnings) = import(ROLLOUT);
    assert_eq!(warnings, Vec::<String>::new());
    assert_eq!(
        (s.header.context_window, s.header.model.as_deref(), s.header.title.as_str()),
        (Some(5264), Some("gpt-x"), "do it")
    );
    let expected = [
        "system: You are an agent.",
        "memory permissions instructions: <permissions instructions>ask</permissions instructions>",
        "memory /w/app/AGENTS.md: # AGENTS.md instructions for /w/app\n\nbe nice",
        "memory environment_context: <environment_context>linux</environment_context>",
        "user: do it",
        "model: (thinkenc) + I will + [web search: how] + exec[c1]{\"cmd\":\"ls\"} + \
         apply_patch[c2]*** Begin",
        "result[c1]: files",
        "result[c2]: {\"output\":\"ok\"}",
        "compaction: Some(1030) None Some(\"so far\")",
        "user: <environment_context>later</environment_context> + and now + <image/png 26>",
    ];
    assert_eq!(describe(&s), expected);
    assert_eq!(counted(&s), [Some([100, 900, 0, 30])]);
    assert_eq!(times(&s), [0, 1_000, 4_000, 4_000, 5_000, 7_000]);
    assert!(s.header.prefix_tokens.is_some_and(|p| p > 900 && p < 1000));
}

#[test]
fn old_rollouts_are_bare_items() {
    let text = r#"{"id":"x","timestamp":"2025-06-01T00:00:00.000Z","instructions":"be nice","git":{}}
{"record_type":"state"}
{"type":"message","role":"user","content":[{"type":"input_text","text":"hello"}]}
{"type":"local_shell_call","call_id":"c1","status":"completed","action":{"type":"exec","command":["ls"]}}
{"type":"function_call_output","call_id":"c1","output":{"content":"a b","success":false}}
{"type":"message","role":"assistant","content":[{"type":"output_text","text":"two"}]}"#;
    let (s, warnings) = import(text);
    assert_eq!(warnings, Vec::<String>::new());
    let expected = [
        "user: hello",
        "model: local_shell[c1]{\"command\":[\"ls\"],\"type\":\"exec\"}",
        "result![c1]: a b",
        "model: two",
    ];
    assert_eq!(describe(&s), expected);
}

/// A counted call: the kind of its entry, its id (the provider's, if told), and its tokens of input, cache reads and output.
type BilledCall = (&'static str, String, [u64; 3]);

/// Imports a file of `tests/data/billing`. Returns the session and its calls.
fn bill(name: &str) -> (Session, Vec<BilledCall>) {
    let path = recorded("../billing").join(name);
    let session = testing::import("codex", &Source::at(&path)).remove(0).session;
    let call = |e: &Entry| {
        let (kind, usage) = match e {
            Entry::Assistant(a) => ("reply", a.usage.clone()?),
            Entry::RecordedCall(c) => ("call", c.usage.clone()),
            Entry::RecordedCompaction(c) => ("compaction", c.usage.clone()?),
            _ => return None,
        };
        let id = usage.billing.call_alias.or(usage.billing.call_id).unwrap().to_string();
        Some((kind, id, [usage.input, usage.cache_read, usage.output]))
    };
    let calls = session.entries.iter().filter_map(call).collect();
    (session, calls)
}

#[test]
fn the_reported_window_is_95_percent_since_some_release() {
    let window = |version: &str, reported: u64| {
        let meta = json!({"type": "session_meta", "payload": {"id": "x", "cli_version": version}});
        let start = json!({"type": "event_msg", "payload": {"type": "task_started", "model_context_window": reported}});
        let text =
            format!("{meta}\n{start}\n{ROLLOUT}").replace(r#","model_context_window":5000"#, "");
        import(&text).0.header.context_window
    };
    assert_eq!(window("0.169.0", 258_400), Some(272_000));
    assert_eq!(window("0.63.0", 19_000), Some(20_000));
    // A rollout of 0.46 has the window of the model.
    assert_eq!(window("0.46.0", 272_000), Some(272_000));
    assert_eq!(window("0.60.1", 258_400), Some(272_000));
}

#[test]
fn a_fork_repeats_the_calls_of_its_thread() {
    let (_, thread) = bill("codex-thread.jsonl");
    let (fork, forked) = bill("codex-thread-fork.jsonl");
    assert_eq!(thread, forked[..2]);
    let tokens: Vec<[u64; 3]> = forked.iter().map(|(_, _, tokens)| *tokens).collect();
    assert_eq!(tokens, [[100_000, 0, 1_000], [1_000, 100_000, 1_000], [1_000, 101_000, 1_000]]);
    // The fork goes on from the conversation of its thread.
    assert_eq!(describe(&fork)[1], "user: Read the port from server.ts");
}

#[test]
fn what_stands_before_a_subagents_own_history_is_its_parents() {
    let (child, calls) = bill("codex-subagent.jsonl");
    assert_eq!(calls.iter().map(|c| c.2).collect::<Vec<_>>(), [[12_000, 0, 100]]);
    let told = [
        "system: You are a coding agent.",
        "user: Find all callers of listen()",
        "model: Two callers: server.ts and test.ts.",
    ];
    assert_eq!(describe(&child), told);
}

#[test]
fn a_usage_record_and_counters_tell_of_one_call() {
    let (_, calls) = bill("codex-usage-records.jsonl");
    let told: Vec<_> =
        calls.iter().map(|(kind, id, tokens)| (*kind, id.as_str(), tokens[0])).collect();
    let expected =
        [("reply", "r1", 240_000), ("compaction", "rc", 241_000), ("reply", "r2", 20_000)];
    assert_eq!(told, expected);
}

#[test]
fn items_of_newer_versions_keep_the_counters_of_their_call() {
    let (session, calls) = bill("codex-new-items.jsonl");
    let told: Vec<_> = calls.iter().map(|(kind, _, tokens)| (*kind, *tokens)).collect();
    assert_eq!(told, [("reply", [20_000, 0, 100]), ("reply", [1_500, 20_000, 100])]);
    let shown = describe(&session);
    assert_eq!(shown[2], "model: tool_search[ts1]{\"query\":\"port\"}");
    assert!(shown[3].starts_with("result[ts1]: [{\"description\":\"Finds ports\""), "{}", shown[3]);
    assert!(shown[3].ends_with("The port is 8443, seen in server.ts line 12."), "{}", shown[3]);
}

#[test]
fn written_tokens_and_the_items_of_the_newest_versions_are_known() {
    let path = recorded("codex/cache-writes.jsonl");
    let loaded = testing::import("codex", &Source::at(&path)).remove(0);
    let expected = [
        "user: Which port does server.ts use?",
        "model: (The port is probably a constant in server.ts.ZXhhbXBsZQ=) + \
         shell[call_1]{\"command\":[\"cat\",\"server.ts\"]}",
        "result[call_1]: export const port = 8443;\n",
        "model: server.ts listens on port 8443.",
        "user: No other ports.",
        "compaction: Some(14169) None None",
        "user: And which file sets it in tests?",
        "model: test/setup.ts sets it.",
    ];
    assert_eq!(describe(&loaded.session), expected);
    assert_eq!(loaded.warnings, Vec::<String>::new());
    // 14,010 = 13,000 written + 1,010; 14,129 = 13,952 read + 177.
    let told = [[1_010, 0, 13_000, 60], [177, 13_952, 0, 40], [9_309, 0, 0, 30]];
    assert_eq!(counted(&loaded.session), told.map(Some));
    assert_eq!(times(&loaded.session)[4], 5_000);
    let of_compaction = loaded.session.entries.iter().find_map(|e| match e {
        Entry::RecordedCompaction(c) => c.usage.as_ref().map(|u| [u.input, u.cache_read, u.output]),
        _ => None,
    });
    assert_eq!(of_compaction, Some([120, 14_080, 150]));
}

/// Counters with these tokens of input, output and reasoning, and the total input so far.
fn count(total: u64, input: u64, reasoning: u64) -> String {
    let last =
        json!({"input_tokens": input, "output_tokens": 9, "reasoning_output_tokens": reasoning});
    let info = json!({"total_token_usage": {"input_tokens": total}, "last_token_usage": last});
    json!({"type": "event_msg", "payload": {"type": "token_count", "info": info}}).to_string()
}

fn item(payload: Value) -> String {
    json!({"type": "response_item", "payload": payload}).to_string()
}

/// The totals before and after are 1,000 and 5,000, and the call had 1,500. The others are those of the
/// compaction between the two, if there is one.
#[test]
fn totals_that_grow_beyond_the_counters_are_told() {
    let said = json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]});
    let lines = [count(1_000, 1_000, 0), item(said), count(5_000, 1_500, 0)].join("\n");
    let (session, warnings) = import(&format!("{ROLLOUT}{lines}"));
    assert_eq!(warnings, Vec::<String>::new());
    let compaction = session.entries.iter().find_map(|e| match e {
        Entry::RecordedCompaction(c) => c.usage.clone(),
        _ => None,
    });
    assert_eq!(compaction.map(|usage| (usage.input, usage.output)), Some((2_500, 0)));
    let plain = ROLLOUT.lines().filter(|line| !line.contains("compacted"));
    let plain: String = plain.map(|line| format!("{line}\n")).collect();
    let (session, warnings) = import(&format!("{plain}{lines}"));
    let told = "line 20: the totals grew by 2500 input and 0 output tokens";
    assert!(warnings.iter().any(|w| w.starts_with(told)), "{warnings:?}");
    assert_eq!(describe(&session).last().map(String::as_str), Some("call: 2500"));
}

#[test]
fn calls_that_were_taken_back_or_have_no_reply_are_paid() {
    let said =
        |role: &str, text: &str| item(json!({"type": "message", "role": role, "content": text}));
    let event = |kind: &str, n: u64| {
        json!({"type": "event_msg", "payload": {"type": kind, "num_turns": n}}).to_string()
    };
    let compacted = json!({"type": "compacted", "payload": {"message": "so far"}}).to_string();
    let lines = [
        event("task_started", 0),
        said("user", "one"),
        item(json!({"type": "teleport_call", "id": "x"})),
        count(10, 10, 0),
        count(30, 20, 0),
        event("task_started", 0),
        said("user", "two"),
        said("assistant", "2"),
        count(70, 40, 0),
        count(150, 80, 0),
        compacted,
        // An estimate.
        count(150, 0, 0),
        event("thread_rolled_back", 1),
        event("task_started", 0),
        said("user", "three"),
    ];
    let (session, warnings) = import(&lines.join("\n"));
    let told = ["user: one", "model: ", "user: three", "call: 20", "call: 40", "call: 80"];
    assert_eq!(describe(&session), told);
    let note = "rollout-1.jsonl: 1 × content block \"teleport_call\", which this importer does not know; left out";
    assert_eq!((counted(&session), warnings), (vec![Some([10, 0, 0, 9])], vec![note.to_string()]));
}

#[test]
fn encrypted_reasoning_is_as_large_as_the_provider_counted() {
    let thought = |size: usize| {
        item(json!({"type": "reasoning", "summary": [], "encrypted_content": "A".repeat(size)}))
    };
    let asked = item(json!({"type": "message", "role": "user", "content": "go"}));
    let (session, _) = import(&[asked, thought(870), thought(870), count(10, 10, 14)].join("\n"));
    let sizes: Vec<u64> = session.entries[1].content().iter().map(|p| p.size().opaque).collect();
    assert_eq!(sizes, [7, 7]);
}

#[test]
fn a_rollback_takes_turns_back() {
    let text = r#"{"type":"response_item","payload":{"type":"message","role":"user","content":"one"}}
{"type":"response_item","payload":{"type":"message","role":"assistant","content":"1"}}
{"type":"response_item","payload":{"type":"message","role":"user","content":"two"}}
{"type":"response_item","payload":{"type":"message","role":"assistant","content":"2"}}
{"type":"event_msg","payload":{"type":"thread_rolled_back","num_turns":1}}
{"type":"response_item","payload":{"type":"message","role":"user","content":"three"}}"#;
    let (s, _) = import(text);
    assert_eq!(describe(&s), ["user: one", "model: 1", "user: three"]);
}

#[test]
fn what_the_user_said_counts_once_whether_item_or_event() {
    let line = |kind: &str, payload: Value| {
        json!({"timestamp": "2026-01-01T00:00:00.000Z", "type": kind, "payload": payload})
            .to_string()
    };
    let event = |text: &str| {
        line("event_msg", json!({"type": "user_message", "message": text, "images": []}))
    };
    let item = |role: &str, text: &str| {
        let kind = if role == "user" { "input_text" } else { "output_text" };
        let content = [json!({"type": kind, "text": text})];
        let message = json!({"type": "message", "role": role, "content": content});
        line("response_item", message)
    };
    let said = |lines: &[String]| describe(&import(&lines.join("\n")).0);
    let done = [item("assistant", "done")];
    for first in [
        vec![event("fix it")],
        vec![item("user", "fix it"), event("fix it")],
        vec![event("fix it"), item("user", "fix it")],
    ] {
        // The same text in a later turn is a new message.
        let lines = [&first[..], &done, &first[..], &done].concat();
        assert_eq!(said(&lines), ["user: fix it", "model: done"].repeat(2), "{first:?}");
        let back = line("event_msg", json!({"type": "thread_rolled_back", "num_turns": 1}));
        let lines = [&first[..], &done, &[event("more")], &done, &[back]].concat();
        assert_eq!(said(&lines), ["user: fix it", "model: done"], "{first:?}");
    }
    // The same text in an instructions file is not a message of the user.
    let rules = item("user", "# AGENTS.md instructions for /w\n\nfix it");
    let told = said(&[&[rules, event("fix it")], &done[..]].concat());
    assert_eq!(told[1..], ["user: fix it", "model: done"]);
}

#[test]
fn a_compaction_alone_in_its_turn_is_the_users() {
    let line = |kind: &str, payload: Value| json!({"type": kind, "payload": payload}).to_string();
    let event = |kind: &str| line("event_msg", json!({"type": kind}));
    let item = |role: &str, kind: &str| {
        let content = [json!({"type": kind, "text": role})];
        line("response_item", json!({"type": "message", "role": role, "content": content}))
    };
    let compacted = || line("compacted", json!({"message": "so far"}));
    let (start, end) = (event("task_started"), event("task_complete"));
    let (ask, reply) = (item("user", "input_text"), item("assistant", "output_text"));
    let trigger = |lines: &[&String]| {
        let first = [&start, &ask, &reply, &end];
        let lines: Vec<&str> = first.iter().chain(lines).map(|line| line.as_str()).collect();
        let (s, _) = import(&lines.join("\n"));
        let found = s.entries.iter().find_map(|e| match e {
            Entry::RecordedCompaction(c) => Some(c.trigger),
            _ => None,
        });
        found.unwrap()
    };
    let manual = Some(ctxbench_session::Trigger::Manual);
    assert_eq!(trigger(&[&start, &compacted(), &end, &start, &ask, &reply, &end]), manual);
    // The provider's own compaction is an item before.
    let remote = line("response_item", json!({"type": "compaction", "encrypted_content": "Zm9v"}));
    assert_eq!(trigger(&[&start, &remote, &compacted(), &end]), manual);
    // Before a message, between replies, and after the answer.
    assert_eq!(trigger(&[&start, &compacted(), &ask, &reply, &end]), None);
    assert_eq!(trigger(&[&start, &ask, &reply, &compacted(), &reply, &end]), None);
    assert_eq!(trigger(&[&start, &ask, &reply, &compacted(), &end]), None);
    // A file that does not tell the turns.
    assert_eq!(trigger(&[&compacted(), &ask]), None);
}
