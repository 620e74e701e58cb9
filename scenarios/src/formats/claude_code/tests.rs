use ctxbench_session::{Billing, Entry, RecordedCompaction, RecordedUsage, Session, Trigger};

use super::*;
use crate::Loaded;
use crate::formats::Source;
use crate::formats::testing::{self, assert_contains, counted, describe, times};

const MAIN: &str = r#"{"type":"file-history-snapshot","messageId":"u1","snapshot":{}}
{"type":"user","uuid":"u0","parentUuid":null,"sessionId":"s","isSidechain":false,"isMeta":true,"timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":"caveat"}}
{"type":"user","uuid":"u1","parentUuid":"u0","sessionId":"s","isSidechain":false,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"find it"}}
{"type":"assistant","uuid":"a1","parentUuid":"u1","requestId":"r1","timestamp":"2026-01-01T00:00:02.500Z","message":{"id":"m","model":"claude-x","role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"sig"}],"stop_reason":null,"usage":{"input_tokens":3,"cache_creation_input_tokens":100,"cache_read_input_tokens":50,"output_tokens":1}}}
{"type":"assistant","uuid":"a2","parentUuid":"a1","requestId":"r1","timestamp":"2026-01-01T00:00:03.000Z","message":{"id":"m","model":"claude-x","role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Read","input":{"p":"x"}}],"stop_reason":null,"usage":{"input_tokens":3,"cache_creation_input_tokens":100,"cache_read_input_tokens":50,"output_tokens":1}}}
{"type":"user","uuid":"r1","parentUuid":"a2","timestamp":"2026-01-01T00:00:04.000Z","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"one"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}}]}]}}
{"type":"user","uuid":"side","parentUuid":null,"isSidechain":true,"message":{"role":"user","content":"for the subagent"}}
{"type":"assistant","uuid":"a3","parentUuid":"r1","requestId":"r1","message":{"id":"m","model":"claude-x","role":"assistant","content":[{"type":"tool_use","id":"t2","name":"Read","input":{}}],"stop_reason":null,"usage":{"input_tokens":3,"cache_creation_input_tokens":100,"cache_read_input_tokens":50,"output_tokens":1}}}
{"type":"user","uuid":"r2","parentUuid":"a3","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t2","content":"bad","is_error":true}]}}
{"type":"user","uuid":"n1","parentUuid":"r2","isMeta":true,"message":{"role":"user","content":"reminder"}}
{"type":"assistant","uuid":"a4","parentUuid":"n1","requestId":"r2","message":{"id":"m2","model":"claude-x","role":"assistant","content":[{"type":"text","text":"done"}],"stop_reason":"end_turn","usage":{"input_tokens":9,"output_tokens":7}}}
{"type":"system","subtype":"compact_boundary","uuid":"b","parentUuid":null,"logicalParentUuid":"a4","timestamp":"2026-01-01T00:01:01.000Z","compactMetadata":{"trigger":"auto","preTokens":170000}}
{"type":"user","uuid":"cs","parentUuid":"b","isCompactSummary":true,"isVisibleInTranscriptOnly":true,"message":{"role":"user","content":"what was"}}
{"type":"user","uuid":"u2","parentUuid":"cs","timestamp":"2026-01-01T00:01:02.000Z","message":{"role":"user","content":[{"type":"text","text":"go on"}]}}
{"type":"assistant","uuid":"e","parentUuid":"u2","isApiErrorMessage":true,"message":{"id":"x","model":"<synthetic>","content":[{"type":"text","text":"API Error"}]}}
{"type":"user","uuid":"n2","parentUuid":"e","message":{"role":"user","content":"<command-name>/exit</command-name>"}}
"#;

fn import(text: &str) -> (Session, Vec<String>) {
    let source = Source::of_bytes(text.as_bytes(), "rec.jsonl");
    let loaded = testing::import("claude-code", &source).remove(0);
    (loaded.session, loaded.warnings)
}

#[test]
fn a_transcript_becomes_a_session() {
    let (s, warnings) = import(MAIN);
    assert_eq!(warnings, Vec::<String>::new());
    assert_eq!(
        (s.header.id.as_str(), s.header.title.as_str(), s.header.model.as_deref()),
        ("rec", "find it", Some("claude-x"))
    );
    let expected = [
        "user: caveat + find it",
        "model: (hmsig) + Read[t1]{\"p\":\"x\"} + Read[t2]{}",
        "result[t1]: one + <image/png 26>",
        "side-side/user: for the subagent",
        "result![t2]: bad + reminder",
        "model: done",
        "compaction: Some(170000) None Some(\"what was\")",
        "user: go on",
    ];
    assert_eq!(describe(&s), expected);
    assert_eq!(keys(&s), ["u1", "m", "t1", "side", "t2", "m2", "u2"]);
    assert_eq!(counted(&s), [Some([3, 50, 100, 1]), Some([9, 0, 0, 7])]);
    assert_eq!(times(&s), [0, 1_500, 3_000, 60_000, 61_000]);
    let Entry::Assistant(first) = &s.entries[1] else { panic!("not a reply") };
    // Thinking with a signature that costs nothing, and two calls.
    let estimate = estimated(&["hm"]) + estimated(&["Read{\"p\":\"x\"}", "Read{}"]);
    assert_eq!(first.usage.as_ref().unwrap().output_estimate, Some(estimate));
    assert_eq!(compactions(&s)[0].trigger, Some(Trigger::Auto));
    // It compacted by itself at 170,000 tokens; a client with a larger window does not.
    assert_eq!(s.header.context_window, Some(200_000));
    let at = |tokens: &str| MAIN.replace("\"preTokens\":170000", tokens);
    assert_eq!(import(&at("\"preTokens\":967000")).0.header.context_window, None);
    assert_eq!(import(&at("\"preTokens\":90000")).0.header.context_window, None);
    assert_eq!(s.header.prefix_tokens, Some(153 - estimated(&["caveat", "find it"])));
}

fn keys(session: &Session) -> Vec<&str> {
    session.entries.iter().filter_map(Entry::key).collect()
}

/// Counts each text as a block of Claude's: 1.1 tokens per o200k token, and 34 more.
fn estimated(blocks: &[&str]) -> u64 {
    // A model without a version counts as one of the newest.
    let tokens = |text: &&str| (1.61 * ctxbench_core::tokens::o200k(text) as f64).round() as u64;
    let block = |text: &&str| tokens(text) + 38;
    blocks.iter().map(block).sum()
}

#[test]
fn a_subagents_file_is_a_session_of_its_own() {
    let text = r#"{"type":"user","uuid":"1","parentUuid":null,"sessionId":"s","isSidechain":true,"message":{"content":"task"}}
{"type":"assistant","uuid":"2","parentUuid":"1","isSidechain":true,"message":{"id":"m","content":[{"type":"text","text":"ok"}]}}"#;
    let (s, _) = import(text);
    assert_eq!(s.entries.len(), 2);
}

#[test]
fn a_retry_replaces_the_branch_before_it() {
    let text = r#"{"type":"user","uuid":"1","parentUuid":null,"sessionId":"s","message":{"content":"a"}}
{"type":"assistant","uuid":"2","parentUuid":"1","message":{"id":"m","content":"first try"}}
{"type":"assistant","uuid":"3","parentUuid":"1","message":{"id":"n","content":"second try"}}"#;
    let (s, warnings) = import(text);
    assert_eq!(s.entries.len(), 2);
    assert!(warnings[0].contains("left out 1 line of branches"), "{warnings:?}");
}

#[test]
fn members_of_another_type_count_as_missing_and_the_last_of_two_counts() {
    let line = |members: &str| {
        let reply = r#"{"type":"assistant","uuid":"2","parentUuid":"1","message":{"id":"m","content":"yes"}}"#;
        let user = r#"{"type":"user","uuid":"1","sessionId":"s","parentUuid":null,"message":{"content":"a"}}"#;
        describe(&import(&format!("{user}\n{reply}\n{members}")).0)
    };
    let known = line("");
    assert_eq!(known, ["user: a", "model: yes"]);
    for message in ["[]", "[\"n\",\"claude-x\"]", "\"no\"", "7", "null"] {
        let odd =
            format!(r#"{{"type":"assistant","uuid":"3","parentUuid":"2","message":{message}}}"#);
        assert_eq!(line(&odd), known, "{message}");
    }
    let odd = r#"{"type":"assistant","uuid":"3","parentUuid":"2","isMeta":{},"version":7,"message":{"id":[],"usage":"x","stop_reason":1,"content":"no"},"message":{"id":"n","content":"more"}}"#;
    assert_eq!(line(odd), ["user: a", "model: yes", "model: more"]);
}

#[test]
fn nothing_to_import_is_an_error() {
    let source = Source::of_bytes(br#"{"type":"summary","leafUuid":"x"}"#, "r.jsonl");
    let e = FORMAT.import_all(&source).unwrap_err().to_string();
    assert!(e.contains("r.jsonl:1: no messages"), "{e}");
}

/// Returns a session that was compacted once, and the file with the request for its summary.
fn compacted(boundary: &str, command: &str) -> [String; 2] {
    let main = format!(
        r#"{{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"s","isSidechain":false,"timestamp":"2026-01-01T00:00:01.000Z","message":{{"role":"user","content":"find it"}}}}
{{"type":"assistant","uuid":"a1","parentUuid":"u1","requestId":"r1","timestamp":"2026-01-01T00:00:02.000Z","message":{{"id":"m","model":"claude-x","content":[{{"type":"text","text":"found"}}],"stop_reason":"end_turn","usage":{{"input_tokens":3,"output_tokens":7}}}}}}
{{"type":"system","subtype":"compact_boundary","uuid":"b","parentUuid":null,"logicalParentUuid":"a1","timestamp":"2026-01-01T00:01:30.000Z","compactMetadata":{boundary}}}
{{"type":"user","uuid":"cs","parentUuid":"b","isCompactSummary":true,"timestamp":"2026-01-01T00:01:30.000Z","message":{{"role":"user","content":"what was"}}}}
{command}{{"type":"user","uuid":"u2","parentUuid":"cs","timestamp":"2026-01-01T00:02:02.000Z","message":{{"role":"user","content":"go on"}}}}"#
    );
    let request = r#"{"type":"user","uuid":"s1","parentUuid":"a1","isSidechain":true,"agentId":"acompact-1","sessionId":"s","timestamp":"2026-01-01T00:00:20.000Z","message":{"role":"user","content":"Sum it up."}}
{"type":"assistant","uuid":"s2","parentUuid":"s1","isSidechain":true,"agentId":"acompact-1","sessionId":"s","requestId":"r9","timestamp":"2026-01-01T00:01:20.000Z","message":{"id":"m9","model":"claude-y","content":[{"type":"text","text":"what was"}],"usage":{"input_tokens":3,"cache_creation_input_tokens":8681,"cache_read_input_tokens":164830,"output_tokens":8}}}"#;
    [main, request.to_string()]
}

/// Loads a session with a companion file that contains a request for a summary.
fn load_with_companion(main: &str, request: &str) -> Loaded {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rec.jsonl");
    std::fs::write(&path, main).unwrap();
    std::fs::write(dir.path().join("agent-acompact-1.jsonl"), request).unwrap();
    let mut loaded = FORMAT.import_all(&Source::at(&path)).unwrap().remove(0);
    let told = loaded.warnings.pop().unwrap();
    assert!(told.contains("also read 1 file next to it"), "{told}");
    loaded
}

fn compactions(session: &Session) -> Vec<RecordedCompaction> {
    let recorded = |e: &Entry| match e {
        Entry::RecordedCompaction(c) => Some(c.clone()),
        _ => None,
    };
    session.entries.iter().filter_map(recorded).collect()
}

#[test]
fn the_request_for_a_summary_is_part_of_its_compaction() {
    let [main, request] = compacted(r#"{"trigger":"auto","preTokens":173514}"#, "");
    let loaded = load_with_companion(&main, &request);
    let [found] = &compactions(&loaded.session)[..] else { panic!("not one compaction") };
    let counted = RecordedUsage {
        input: 3,
        output: 8,
        cache_read: 164_830,
        cache_write: 8_681,
        output_estimate: Some(estimated(&["what was"])),
        billing: Billing {
            call_id: Some("claude-code m9 claude-y 3+164830+8681".into()),
            call_in: Some("r9".into()),
            ..Billing::default()
        },
        ..RecordedUsage::default()
    };
    assert_eq!((found.model.as_deref(), found.usage.clone()), (Some("claude-y"), Some(counted)));
    assert!(loaded.session.entries.iter().all(|e| e.agent().is_none()), "no subagent is left");
    assert_eq!(loaded.warnings, Vec::<String>::new());
}

#[test]
fn a_request_for_a_summary_without_its_compaction_is_left_out() {
    let [main, request] = compacted(r#"{"trigger":"auto"}"#, "");
    let main: Vec<&str> = main.lines().filter(|l| !l.contains("ompact")).collect();
    let loaded = load_with_companion(&main.join("\n"), &request);
    assert!(loaded.session.entries.iter().all(|e| e.agent().is_none()));
    assert_contains(&loaded.warnings[0], &["of a compaction that is not in the file"]);
}

#[test]
fn a_manual_compaction_has_the_words_and_the_time_of_its_command() {
    let command = r#"{"type":"user","uuid":"c","parentUuid":"cs","timestamp":"2026-01-01T00:00:12.000Z","message":{"role":"user","content":"<command-name>/compact</command-name>\n<command-message>compact</command-message>\n<command-args>keep the ports</command-args>"}}
"#;
    let one = |command: &str| {
        let [main, _] = compacted(r#"{"trigger":"manual","preTokens":90000}"#, command);
        let [found] = &compactions(&import(&main).0)[..] else { panic!("not one compaction") };
        assert_eq!(found.trigger, Some(Trigger::Manual));
        (found.instructions.clone(), found.at)
    };
    assert_eq!(one(command), (Some("keep the ports".into()), Some(11_000)));
    assert_eq!(one(&command.replace("keep the ports", "")), (None, Some(11_000)));
    assert_eq!(one(&command.replace("/compact<", "/cost<")), (None, Some(89_000)));
}

#[test]
fn what_a_tool_of_the_provider_returned_answers_its_call() {
    let line = |n: u32, block: &str| {
        format!(
            r#"{{"type":"assistant","uuid":"a{n}","parentUuid":"a{}","message":{{"id":"m","model":"claude-x","content":[{block}],"stop_reason":"end_turn","usage":{{"input_tokens":9,"output_tokens":5}}}}}}"#,
            n - 1
        )
    };
    let text = [
        r#"{"type":"user","uuid":"a0","parentUuid":null,"sessionId":"s","message":{"content":"On which port?"}}"#.to_string(),
        line(1, r#"{"type":"server_tool_use","id":"s1","name":"web_search","input":{"query":"q"}}"#),
        line(2, r#"{"type":"web_search_tool_result","tool_use_id":"s1","content":[{"type":"web_search_result","title":"Ports","url":"https://a.b","encrypted_content":"EqgB"}]}"#),
        line(3, r#"{"type":"server_tool_use","id":"s2","name":"code_execution","input":{"code":"1"}}"#),
        line(4, r#"{"type":"code_execution_tool_result","tool_use_id":"s2","content":{"type":"code_execution_tool_result_error","error_code":"unavailable"}}"#),
        line(5, r#"{"type":"text","text":"8443"}"#),
    ];
    let (session, warnings) = import(&text.join("\n"));
    assert_eq!(warnings, Vec::<String>::new());
    let expected = [
        r#"model: web_search[s1]{"query":"q"} + code_execution[s2]{"code":"1"} + 8443"#,
        r#"result[s1]: {"title":"Ports","type":"web_search_result","url":"https://a.b"}"#,
        r#"result![s2]: {"error_code":"unavailable","type":"code_execution_tool_result_error"}"#,
    ];
    assert_eq!(describe(&session)[1..], expected);
}

/// Neither is in the conversation, and both are told.
#[test]
fn subagents_without_a_file_and_cleared_results_are_told() {
    let line = |id: u64, kind: &str, more: Value| {
        let mut line = json!({"type": kind, "uuid": id.to_string(), "sessionId": "s",
            "parentUuid": (id > 1).then(|| (id - 1).to_string())});
        line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        line.to_string()
    };
    let said = |id: u64, prompt: u64| {
        let message = json!({"id": format!("m{id}"), "role": "assistant", "stop_reason": "end_turn",
            "content": [{"type": "text", "text": "Done."}], "usage": {"input_tokens": prompt, "output_tokens": 1}});
        line(id, "assistant", json!({"message": message}))
    };
    let all = [
        line(1, "user", json!({"message": {"role": "user", "content": "go"}})),
        line(
            2,
            "progress",
            json!({"data": {"type": "agent_progress"}, "toolUseID": "agent_msg_1"}),
        ),
        said(3, 160_000),
        line(4, "system", json!({"subtype": "microcompact_boundary"})),
        said(5, 60_000),
    ];
    let (session, warnings) = import(&all.join("\n"));
    assert_eq!(compactions(&session), []);
    let told = warnings.join("\n");
    for part in [
        "1 × message of a subagent whose own file is missing",
        "1 × the program cleared older results",
    ] {
        assert!(told.contains(part), "{told}");
    }
}

/// Returns lines in a chain: `said` = kind, id of the reply, content.
fn chain(said: &[(&str, &str, Value)], parent: Option<&str>, prompt: u64) -> String {
    let line = |(n, (kind, id, content)): (usize, &(&str, &str, Value))| {
        let before = n.checked_sub(1).map(|n| format!("l{n}"));
        let mut message = json!({"role": kind, "content": content});
        if *kind == "assistant" {
            message["id"] = json!(id);
            message["usage"] = json!({"input_tokens": prompt, "output_tokens": 1});
        }
        let line = json!({"type": kind, "uuid": format!("l{n}"), "sessionId": "s",
            "parentUuid": before.as_deref().or(parent), "message": message});
        line.to_string()
    };
    said.iter().enumerate().map(line).collect::<Vec<_>>().join("\n")
}

/// The second reply has a word, which the model sees again. The third ends the file.
#[test]
fn interrupted_thoughts_are_paid_and_no_reply() {
    let thought = |text: &str| json!([{"type": "thinking", "thinking": text, "signature": "sig"}]);
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    let stop = || text("[Request interrupted by user]");
    let all = [
        ("user", "", json!("go")),
        ("assistant", "m1", thought("hm")),
        ("assistant", "m1", thought("hm, hm")),
        ("user", "", stop()),
        ("user", "", json!("Which port?")),
        ("assistant", "m2", thought("the port")),
        ("assistant", "m2", text("It is")),
        ("user", "", stop()),
        ("user", "", json!("Which?")),
        ("assistant", "m3", thought("no word at all")),
    ];
    let (session, warnings) = import(&chain(&all, None, 900));
    assert_eq!(warnings, Vec::<String>::new());
    let expected = [
        "user: go",
        "user: [Request interrupted by user]",
        "user: Which port?",
        "model: (the portsig) + It is",
        "user: [Request interrupted by user]",
        "user: Which?",
        "model: (no word at allsig)",
        "call: 900",
    ];
    assert_eq!(describe(&session), expected);
}

/// A large first prompt alone is that of a session with many tools, and a line that is lost hides little.
#[test]
fn a_file_that_hides_what_its_first_line_follows_continues_it() {
    let said = [("user", "", json!("go on")), ("assistant", "m1", json!("Done."))];
    let continues =
        |parent, prompt| import(&chain(&said, parent, prompt)).0.header.source.unwrap().continues;
    assert!(continues(Some("elsewhere"), 112_000));
    assert!(!continues(None, 112_000));
    assert!(!continues(Some("elsewhere"), 40_000));
}
