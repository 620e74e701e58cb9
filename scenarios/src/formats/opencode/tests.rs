use rusqlite::Connection;
use serde_json::json;

use super::super::detect;
use super::super::testing::{counted, describe, import};
use super::*;
use crate::Loaded;

fn all(source: &Source<'_>) -> Vec<Loaded> {
    import("opencode", source)
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
