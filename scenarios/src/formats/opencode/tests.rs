use rusqlite::Connection;

use super::super::detect;
use super::super::testing::import;
use super::*;

#[test]
fn a_damaged_session_of_a_folder_does_not_stop_the_others() {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in [
        ("session/p/ses_0.json", "{"),
        ("session/p/ses_1.json", r#"{"id":"ses_1","projectID":"p"}"#),
        ("message/ses_1/m.json", r#"{"id":"m","sessionID":"ses_1","role":"user"}"#),
        ("part/m/1.json", r#"{"id":"1","type":"text","text":"hi"}"#),
    ] {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let found = crate::load_path(dir.path()).unwrap();
    assert_eq!(found.scenarios.len(), 1);
    assert!(found.skipped[0].1.to_string().contains("ses_0.json:1: not readable"));
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
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2, "no file is written next to it");
    let other = dir.path().join("other.db");
    Connection::open(&other).unwrap().execute_batch("CREATE TABLE notes (id text)").unwrap();
    assert!(detect(&Source::at(&other)).is_none());
}

#[test]
fn database_with_its_tables_in_the_log_is_recognised() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("opencode.db");
    let _db = small_database(&path, "wal");
    assert_eq!(detect(&Source::at(&path)).map(|format| format.name), Some("opencode"));
    assert_eq!(import("opencode", &Source::at(&path))[0].session.header.title, "A fix");
}
