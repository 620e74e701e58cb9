use ctxbench_session::{Entry, RecordedCompaction, Trigger};
use rusqlite::Connection;
use serde_json::json;

use super::super::detect;
use super::super::testing::{counted, describe, import, recorded, times};
use super::*;
use crate::Loaded;

fn all(source: &Source<'_>) -> Vec<Loaded> {
    import("opencode", source)
}

#[test]
fn an_export_becomes_a_session_with_its_compactions() {
    let loaded = all(&Source::at(&recorded("opencode/s2_multiturn.export.json"))).remove(0);
    let s = &loaded.session;
    assert_eq!((&*s.header.id, &*s.header.title), ("s2_multiturn.export", "Mock title"));
    assert_eq!(s.header.model.as_deref(), Some("mock-model"));
    let told: Vec<&RecordedCompaction> = s
        .entries
        .iter()
        .filter_map(|e| if let Entry::RecordedCompaction(c) = e { Some(c) } else { None })
        .collect();
    let [one, two] = told.as_slice() else { panic!("{told:?}") };
    // The previous contexts: 13,990 in and 20 out, later 14,500 and 40.
    assert_eq!((one.pre_tokens, two.pre_tokens), (Some(14_010), Some(14_540)));
    assert_eq!(one.summary.as_deref(), Some("## Objective\n- MOCK SUMMARY ONE"));
    assert_eq!(one.trigger, Some(Trigger::Auto));
    assert_eq!(one.usage.as_ref().map(|u| (u.input, u.output)), Some((6_000, 100)));
    let told = describe(s);
    let call = r#"call_0002]{"filePath":"/home/dev/shop/a.txt"}"#;
    assert_eq!(told[0], "user: \"Read a.txt please (turn 1).\"");
    assert!(told[1].ends_with(&format!("read[{call}")), "{}", told[1]);
    assert!(told[2].starts_with("result[call_0002]: <path>/home/dev/shop/a.txt</path>"));
    assert_eq!(counted(s)[0], Some([3_000, 0, 0, 60]));
    assert!(times(s).starts_with(&[0, 1_450]) && times(s)[3] == 3_044, "{:?}", times(s));
}

fn parts() -> Vec<(Value, Vec<Value>)> {
    let tokens = |input: u64| json!({"input": input, "output": 5, "reasoning": 2.0, "cache": {"read": 10, "write": 3}});
    vec![
        (
            json!({"id": "msg_1", "sessionID": "ses_1", "role": "user", "time": {"created": 1_795_293_988_000_u64}}),
            vec![
                json!({"id": "prt_1", "type": "text", "text": "fix it"}),
                json!({"id": "prt_2", "type": "text", "text": "reminder", "synthetic": true}),
                json!({"id": "prt_3", "type": "text", "text": "hidden", "ignored": true}),
                json!({"id": "prt_4", "type": "file", "mime": "image/png", "url": "data:image/png;base64,QUJD", "filename": "a.png"}),
                json!({"id": "prt_5", "type": "file", "mime": "text/plain", "url": "file:///a.txt"}),
            ],
        ),
        (
            json!({"id": "msg_2", "sessionID": "ses_1", "role": "assistant", "modelID": "m", "time": {"created": 1_795_293_989_000_u64}}),
            vec![
                json!({"id": "prt_1", "type": "step-start"}),
                json!({"id": "prt_2", "type": "reasoning", "text": "hm", "metadata": {"anthropic": {"signature": "S"}}}),
                json!({"id": "prt_3", "type": "tool", "tool": "task", "callID": "c1", "state": {"status": "completed", "input": {"p": 1}, "output": "done",
                "metadata": {"sessionId": "ses_2"}, "time": {"start": 1, "end": 1_795_293_995_000_u64, "compacted": 7}}}),
                json!({"id": "prt_4", "type": "tool", "tool": "read", "callID": "c2", "state": {"status": "error", "input": {}, "error": "no file"}}),
                json!({"id": "prt_5", "type": "step-finish", "tokens": tokens(100)}),
                json!({"id": "prt_6", "type": "step-start"}),
                json!({"id": "prt_7", "type": "text", "text": "ready"}),
                json!({"id": "prt_8", "type": "step-finish", "tokens": tokens(200)}),
            ],
        ),
    ]
}

fn of_subagent() -> Vec<(Value, Vec<Value>)> {
    vec![
        (
            json!({"id": "msg_3", "sessionID": "ses_2", "role": "user", "time": {"created": 1_795_293_990_000_u64}}),
            vec![json!({"id": "prt_1", "type": "text", "text": "look"})],
        ),
        (
            json!({"id": "msg_4", "sessionID": "ses_2", "role": "assistant", "modelID": "n", "time": {"created": 1_795_293_991_000_u64}}),
            vec![json!({"id": "prt_1", "type": "text", "text": "seen"})],
        ),
    ]
}

fn check(loaded: &[Loaded]) {
    let [one] = loaded else { panic!("{} sessions", loaded.len()) };
    let s = &one.session;
    assert_eq!((&*s.header.id, &*s.header.title), ("ses_1", "A fix"));
    let expected = [
        "user: reminder + fix it + <image/png 26>",
        "model: (hmS) + task[c1]{\"p\":1} + read[c2]{}",
        "ses_2/user: look",
        "ses_2/model: seen",
        "result[c1]: done",
        "result![c2]: no file",
        "model: ready",
    ];
    assert_eq!(describe(s), expected);
    assert_eq!(counted(s), [Some([100, 10, 3, 7]), None, Some([200, 10, 3, 7])]);
    assert!(one.warnings[0].contains("1 outputs were cleared"), "{:?}", one.warnings);
}

#[test]
fn a_storage_folder_gives_sessions_with_their_subagents() {
    let dir = tempfile::tempdir().unwrap();
    let write = |path: String, value: &Value| {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, value.to_string()).unwrap();
    };
    let info = json!({"id": "ses_1", "projectID": "p", "title": "A fix"});
    write("session/p/ses_1.json".into(), &info);
    let info = json!({"id": "ses_2", "projectID": "p", "parentID": "ses_1", "title": "child"});
    write("session/p/ses_2.json".into(), &info);
    for (info, parts) in parts().into_iter().chain(of_subagent()) {
        let (id, session) = (info["id"].as_str().unwrap(), info["sessionID"].as_str().unwrap());
        write(format!("message/{session}/{id}.json"), &info);
        for part in parts {
            write(format!("part/{id}/{}.json", part["id"].as_str().unwrap()), &part);
        }
    }
    check(&all(&Source::at(dir.path())));
    // A child that no call names, and its own child, which no call names either.
    for (id, parent) in [("ses_0c", "ses_0b"), ("ses_0b", "ses_1")] {
        let info = json!({"id": id, "projectID": "p", "parentID": parent, "title": id});
        write(format!("session/p/{id}.json"), &info);
        let said = json!({"id": id, "sessionID": id, "role": "user"});
        write(format!("message/{id}/{id}.json"), &said);
        write(format!("part/{id}/1.json"), &json!({"id": "1", "type": "text", "text": id}));
    }
    let four = all(&Source::at(dir.path()));
    check(&four[..1]);
    let ids: Vec<&str> = four.iter().map(|l| &*l.session.header.id).collect();
    assert_eq!(ids, ["ses_1", "ses_0b", "ses_0c"]);
    assert!(four[1].warnings[0].contains("a session of ses_1"), "{:?}", four[1].warnings);
    // A damaged session does not stop the others.
    std::fs::write(dir.path().join("session/p/ses_0.json"), "{").unwrap();
    let found = crate::load_path(dir.path()).unwrap();
    assert_eq!(found.scenarios.len(), 3);
    assert!(found.skipped[0].1.to_string().contains("ses_0.json:1: not readable"));
}

#[test]
fn a_database_gives_sessions_with_their_subagents() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("opencode é#1.db");
    let db = Connection::open(&path).unwrap();
    db.execute_batch(
        "CREATE TABLE session (id text PRIMARY KEY, project_id text, parent_id text, title text, time_created integer);
         CREATE TABLE message (id text PRIMARY KEY, session_id text, time_created integer, time_updated integer, data text);
         CREATE TABLE part (id text, message_id text, session_id text, data text);
         INSERT INTO session VALUES ('ses_2', 'p', 'ses_1', 'child', 2), ('ses_1', 'p', NULL, 'A fix', 1);",
    )
    .unwrap();
    for (mut info, parts) in parts().into_iter().chain(of_subagent()) {
        let (id, session) = (info["id"].clone(), info["sessionID"].clone());
        let (id, session) = (id.as_str().unwrap(), session.as_str().unwrap());
        let created = info["time"]["created"].as_i64().unwrap();
        info.as_object_mut().unwrap().remove("id");
        db.execute(
            "INSERT INTO message VALUES (?1, ?2, ?3, ?3, ?4)",
            rusqlite::params![id, session, created, info.to_string()],
        )
        .unwrap();
        for part in parts {
            let name = part["id"].as_str().unwrap();
            db.execute(
                "INSERT INTO part VALUES (?1, ?2, ?3, ?4)",
                [name, id, session, &part.to_string()],
            )
            .unwrap();
        }
    }
    drop(db);
    let before = std::fs::read(&path).unwrap();
    check(&all(&Source::at(&path)));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "no file is written next to it");
    // Subagent sessions without a call that names them. Two of them name each other as parents.
    let more = dir.path().join("more.db");
    std::fs::write(&more, &before).unwrap();
    let db = Connection::open(&more).unwrap();
    for (id, parent) in [("ses_3", "ses_1"), ("ses_4", "ses_5"), ("ses_5", "ses_4")] {
        let insert = "INSERT INTO session VALUES (?1, 'p', ?2, ?1, 9)";
        db.execute(insert, [id, parent]).unwrap();
        let insert = "INSERT INTO message VALUES (?1, ?1, 9, 9, '{\"role\": \"user\"}')";
        db.execute(insert, [id]).unwrap();
        let part = json!({"type": "text", "text": id}).to_string();
        db.execute("INSERT INTO part VALUES ('1', ?1, ?1, ?2)", [id, &part]).unwrap();
    }
    drop(db);
    let ids: Vec<String> =
        all(&Source::at(&more)).into_iter().map(|l| l.session.header.id).collect();
    assert_eq!(ids, ["ses_1", "ses_3", "ses_5", "ses_4"]);
    // Sources in memory, truncated ones and ones with other tables are refused.
    let refused = |source: &Source<'_>, why: &str| {
        let e = FORMAT.import_all(source).unwrap_err().to_string();
        assert!(e.contains(":1: ") && e.contains("expected") && e.contains(why), "{e}");
    };
    refused(&Source::of_bytes(&before, "x.db"), "not a file on disk");
    let cut = dir.path().join("cut.db");
    std::fs::write(&cut, &before[..before.len() / 2]).unwrap();
    refused(&Source::at(&cut), "it cannot be read");
    let other = dir.path().join("other.db");
    Connection::open(&other).unwrap().execute_batch("CREATE TABLE notes (id text)").unwrap();
    assert!(detect(&Source::at(&other)).is_none());
    refused(&Source::at(&other), "no such table");
}

fn small_database(path: &std::path::Path, journal: &str) -> Connection {
    let db = Connection::open(path).unwrap();
    db.pragma_update(None, "journal_mode", journal).unwrap();
    db.execute_batch(
        "CREATE TABLE session (id text PRIMARY KEY, \"COLUMN\" text, title text, time_created integer);
         CREATE TABLE message (id text, session_id text, time_created integer, data text);
         CREATE TABLE part (id text, message_id text, data text);
         INSERT INTO session VALUES ('ses_1', 'x', 'A fix', 1);
         INSERT INTO message VALUES ('msg_1', 'ses_1', 1, '{\"role\": \"user\"}');
         INSERT INTO part VALUES ('1', 'msg_1', '{\"type\": \"text\", \"text\": \"hi\"}'),
             ('2', 'msg_1', NULL), ('3', 'msg_1', x'ff');",
    )
    .unwrap();
    db
}

#[test]
fn database_with_undecodable_column_name_gives_its_sessions() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("damaged.db");
    drop(small_database(&path, "delete"));
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.windows(6).position(|w| w == b"COLUMN").unwrap();
    bytes[at] = 0xff;
    std::fs::write(&path, bytes).unwrap();
    let other = "{\"type\":\"session\",\"version\":1,\"id\":\"b\"}\n\
                 {\"type\":\"user\",\"id\":\"u\",\"text\":\"hi\"}\n";
    std::fs::write(dir.path().join("b.jsonl"), other).unwrap();
    let found = crate::load_path(dir.path()).unwrap();
    let ids: Vec<&str> = found.scenarios.iter().map(|s| &*s.id).collect();
    assert_eq!(ids, ["b", "ses_1"]);
    assert!(found.skipped.is_empty(), "{:?}", found.skipped);
    assert_eq!(found.scenarios[1].title, "A fix");
}

#[test]
fn database_with_its_tables_in_the_log_is_recognised() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("opencode.db");
    let _db = small_database(&path, "wal");
    assert_eq!(detect(&Source::at(&path)).map(|format| format.name), Some("opencode"));
    assert_eq!(all(&Source::at(&path))[0].session.header.title, "A fix");
}

#[test]
fn a_manual_compaction_without_a_summary_and_a_failed_request() {
    let export = json!({"info": {"id": "ses_1", "projectID": "p", "parentID": "ses_0"}, "messages": [
        {"info": {"id": "msg_1", "role": "user"}, "parts": [{"type": "text", "text": "hi"}]},
        {"info": {"id": "msg_2", "role": "assistant", "error": {"name": "APIError"}, "tokens": {"input": 0, "output": 0, "cache": {"read": 0, "write": 0}}}, "parts": []},
        {"info": {"id": "msg_3", "role": "user"}, "parts": [{"type": "compaction", "auto": false}]}]});
    let loaded = all(&Source::of_bytes(export.to_string().as_bytes(), "x.json")).remove(0);
    assert_eq!(describe(&loaded.session), ["user: hi", "compaction: None None None"]);
    assert!(
        matches!(&loaded.session.entries[1], Entry::RecordedCompaction(c) if c.trigger == Some(Trigger::Manual))
    );
}

#[test]
fn what_the_user_took_back_is_paid_and_not_in_the_session() {
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    let tokens = json!({"input": 10, "output": 5, "cache": {"read": 0, "write": 0}});
    let reply = |id: &str| json!({"id": id, "role": "assistant", "tokens": tokens.clone()});
    let info = json!({"id": "ses_1", "projectID": "p", "revert": {"messageID": "msg_3"}});
    let export = json!({"info": info, "messages": [
        {"info": {"id": "msg_1", "role": "user"}, "parts": text("keep")},
        {"info": reply("msg_2"), "parts": text("kept")},
        {"info": {"id": "msg_3", "role": "user"}, "parts": text("undo")},
        {"info": reply("msg_4"), "parts": text("undone")}]});
    let session = all(&Source::of_bytes(export.to_string().as_bytes(), "x.json")).remove(0).session;
    assert_eq!(describe(&session)[..2], ["user: keep", "model: kept"]);
    let is_call = |e: &&Entry| matches!(e, Entry::RecordedCall(c) if c.usage.input == 10);
    assert_eq!(session.entries.iter().filter(is_call).count(), 1);
    assert_eq!(session.entries.len(), 3);
}

#[test]
fn of_a_reply_that_was_taken_back_in_part_the_rest_stays() {
    let finish = |id: &str, input: u64| json!({"id": id, "type": "step-finish", "tokens": {"input": input, "output": 5, "cache": {"read": 0, "write": 0}}});
    let text = |id: &str| json!({"id": id, "type": "text", "text": id});
    let start = |id: &str| json!({"id": id, "type": "step-start"});
    let parts = json!([
        start("s1"),
        text("p1"),
        text("p2"),
        finish("f1", 10),
        start("s2"),
        text("p3"),
        finish("f2", 20)
    ]);
    let told = |part: &str| {
        let info = json!({"id": "ses_1", "projectID": "p", "revert": {"messageID": "msg_2", "partID": part}});
        let export = json!({"info": info, "messages": [
            {"info": {"id": "msg_1", "role": "user"}, "parts": [text("go")]},
            {"info": {"id": "msg_2", "role": "assistant"}, "parts": parts},
            {"info": {"id": "msg_3", "role": "user"}, "parts": [text("more")]}]});
        describe(&all(&Source::of_bytes(export.to_string().as_bytes(), "x.json")).remove(0).session)
    };
    assert_eq!(told("s2"), ["user: go", "model: p1 + p2", "call: 20"]);
    assert_eq!(told("p2"), ["user: go", "model: p1", "call: 20"]);
    assert_eq!(told("p1"), ["user: go", "call: 10", "call: 20"]);
}

/// The second summary failed, and the program cleared the output of the first call later.
#[test]
fn neither_a_failed_summary_nor_a_cleared_output_is_a_compaction() {
    let tokens =
        |input: u64| json!({"input": input, "output": 5, "cache": {"read": 0, "write": 0}});
    let asked =
        |id: &str, parts: Value| json!({"info": {"id": id, "role": "user"}, "parts": parts});
    let reply = |id: &str, input: u64, more: Value, parts: Value| {
        let mut info = json!({"id": id, "role": "assistant", "tokens": tokens(input)});
        info.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"info": info, "parts": parts})
    };
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    let call = json!([{"type": "tool", "tool": "read", "callID": "c", "state":
        {"status": "completed", "input": {}, "output": "x", "time": {"end": 2, "compacted": 7}}}]);
    let failed = json!({"summary": true, "error": {"name": "APIError"}});
    let export = json!({"info": {"id": "ses_1", "projectID": "p"}, "messages": [
        asked("msg_1", text("read it")),
        reply("msg_2", 150_000, json!({}), call),
        asked("msg_3", json!([{"type": "compaction", "auto": true}])),
        reply("msg_4", 150_100, failed, text("So")),
        asked("msg_5", text("go on")),
        reply("msg_6", 60_000, json!({}), text("done"))]});
    let s = all(&Source::of_bytes(export.to_string().as_bytes(), "x.json")).remove(0).session;
    let told = describe(&s);
    assert!(!told.iter().any(|line| line.starts_with("compaction")), "{told:?}");
    assert!(told.contains(&"call: 150100".to_string()), "{told:?}");
}
