//! Damaged files in every format: a session or an error that names the file, the line and the
//! expected input, and never a panic.

use std::ops::ControlFlow;

use rusqlite::Connection;
use serde_json::Value;

use super::reading_tests::readings;
use super::*;
use crate::{InputError, Loaded, autofacts};

/// Returns the format and the path of each sample that is a text, or of each that describes a database.
fn samples(are_databases: bool) -> impl Iterator<Item = (&'static str, &'static str)> {
    let all = readings::samples().map(|(_, format, path)| (format, path));
    all.filter(move |(_, path)| path.ends_with(".sql") == are_databases && !path.ends_with(".eval"))
}

fn read(format: &Format, bytes: &[u8], name: &str) -> Vec<Result<Loaded, InputError>> {
    read_source(format, &Source::of_bytes(bytes, name))
}

fn read_source(format: &Format, source: &Source<'_>) -> Vec<Result<Loaded, InputError>> {
    let mut out = Vec::new();
    format.import(source, |one| {
        out.push(one.map(|mut loaded| {
            autofacts::add(&mut loaded.session);
            loaded
        }));
        ControlFlow::Continue(())
    });
    out
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap()
}

/// Returns a copy of a value with every value replaced for which `to` returns another.
fn changed(value: &Value, to: &dyn Fn(&Value) -> Option<Value>) -> Value {
    if let Some(other) = to(value) {
        return other;
    }
    match value {
        Value::Array(list) => list.iter().map(|v| changed(v, to)).collect(),
        Value::Object(object) => {
            Value::Object(object.iter().map(|(k, v)| (k.clone(), changed(v, to))).collect())
        }
        other => other.clone(),
    }
}

/// Applies the change to the document, or to each of its lines.
fn in_json(text: &str, to: &dyn Fn(&Value) -> Option<Value>) -> Vec<u8> {
    if let Ok(document) = serde_json::from_str::<Value>(text) {
        return serde_json::to_vec_pretty(&changed(&document, to)).unwrap();
    }
    // Text that is not JSON stays unchanged.
    let line = |l: &str| match serde_json::from_str(l) {
        Ok(value) => changed(&value, to).to_string(),
        Err(_) => l.to_string(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n").into_bytes()
}

/// Changes of values, each with a name.
type Change = (&'static str, fn(&Value) -> Option<Value>);

const CHANGES: [Change; 7] = [
    ("texts are numbers", |v| v.is_string().then(|| 7.into())),
    ("long texts are objects", |v| {
        v.as_str().is_some_and(|s| s.len() > 24).then(|| serde_json::json!({"a": 1}))
    }),
    ("numbers are texts", |v| v.is_number().then(|| "x".into())),
    ("numbers are negative", |v| v.is_number().then(|| (-5).into())),
    ("huge numbers", |v| v.is_number().then(|| u64::MAX.into())),
    ("lists are null", |v| v.is_array().then_some(Value::Null)),
    ("items are lists", |v| {
        let list = v.as_array()?;
        Some(list.iter().map(|v| Value::from(vec![v.clone()])).collect())
    }),
];

fn damages(text: &str) -> Vec<(&'static str, Vec<u8>)> {
    let bytes = text.as_bytes();
    let cut = |n: usize| bytes[..n].to_vec();
    let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    let changed = CHANGES.iter().map(|(name, to)| (*name, in_json(text, to)));
    let others = [
        ("cut in the middle", cut(bytes.len() / 2)),
        ("cut near the end", cut(bytes.len() - 4)),
        ("empty", Vec::new()),
        ("blank", b" \n\t\n".to_vec()),
        ("no text", (0..=255).cycle().take(3_000).collect()),
        ("deep", text.replacen('{', &format!("{{\"x\":{},", nested(4_000)), 1).into_bytes()),
        ("mixed", format!("{text}\n{{\"type\":\"other\"}}\n[1]\nnoise\n{text}").into_bytes()),
        (
            "Latin-1",
            text.replace('e', "\u{1}").bytes().map(|b| if b == 1 { 0xe9 } else { b }).collect(),
        ),
    ];
    changed.chain(others).collect()
}

/// Applies a change to each value in a database, and to the JSON in its texts.
fn change_values(db: &Connection, to: &dyn Fn(&Value) -> Option<Value>) {
    let texts = |sql: &str| -> Vec<String> {
        let mut statement = db.prepare(sql).unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    for table in texts("SELECT name FROM sqlite_master WHERE type = 'table'") {
        for column in texts(&format!("SELECT name FROM pragma_table_info('{table}')")) {
            let mut rows = db.prepare(&format!("SELECT rowid, {column} FROM {table}")).unwrap();
            let cell = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, database::value(row, 1)));
            let cells: Vec<(i64, Option<Value>)> =
                rows.query_map([], cell).unwrap().map(Result::unwrap).collect();
            for (row, value) in cells {
                let Some(value) = value else { continue };
                let inner = value.as_str().and_then(|s| serde_json::from_str::<Value>(s).ok());
                let inner = inner.filter(|v| v.is_object() || v.is_array());
                let new = match inner.map_or_else(|| changed(&value, to), |v| changed(&v, to)) {
                    Value::String(text) => text,
                    other => other.to_string(),
                };
                let sql = format!("UPDATE OR IGNORE {table} SET {column} = ?1 WHERE rowid = ?2");
                // A key that is a number or that exists already stays.
                let _ = db.execute(&sql, rusqlite::params![new, row]);
            }
        }
    }
}

/// Checks that each result is a session, or an error that names file, line and what was expected.
fn check(found: Vec<Result<Loaded, InputError>>, file: &str, what: &str) {
    assert!(!found.is_empty(), "{what}: neither a session nor an error");
    for one in found {
        match one {
            Ok(loaded) => {
                assert!(!loaded.session.entries.is_empty(), "{what}");
                loaded.session.to_jsonl().unwrap();
            }
            Err(e) => {
                let e = e.to_string();
                let place = e.strip_prefix(file).and_then(|e| e.strip_prefix(':'));
                let line = place.and_then(|p| p.split_once(": ")).map(|(l, _)| l);
                let line = line.and_then(|l| l.parse::<usize>().ok());
                assert!(line.is_some_and(|l| l > 0), "{what}: {e}");
                assert!(e.contains("; expected "), "{what}: {e}");
            }
        }
    }
}

#[test]
fn damaged_databases_are_refused_or_read_in_part() {
    for (name, path) in samples(true) {
        let format = by_name(name).unwrap();
        let (_folder, file) = testing::database(path);
        let name = file_name(file.to_str().unwrap());
        let whole = std::fs::read(&file).unwrap();
        let read = || read_source(format, &Source::at(&file));
        let all = read().iter().filter(|one| one.is_ok()).count();
        assert!(all > 0, "{path}");
        let from = |n: usize, change: fn(u8) -> u8| -> Vec<u8> {
            let changed =
                |(at, byte): (usize, &u8)| if at % n == n - 1 { change(*byte) } else { *byte };
            whole.iter().enumerate().map(changed).collect()
        };
        for (damage, bytes) in [
            ("cut in the middle", whole[..whole.len() / 2].to_vec()),
            ("cut near the end", whole[..whole.len() - 4].to_vec()),
            ("empty", vec![]),
            ("only a header", whole[..100].to_vec()),
            ("some bytes are others", from(997, |byte| byte ^ 0x55)),
            ("some bytes are 0", from(101, |_| 0)),
        ] {
            std::fs::write(&file, bytes).unwrap();
            check(read(), name, &format!("{path}, {damage}"));
        }
        for (damage, to) in CHANGES {
            std::fs::write(&file, &whole).unwrap();
            change_values(&Connection::open(&file).unwrap(), &to);
            check(read(), name, &format!("{path}, {damage}"));
        }
        // In memory it cannot be read.
        let e = format.import_all(&Source::of_bytes(&whole, name)).unwrap_err().to_string();
        assert!(e.contains("not a file on disk); expected a database of"), "{e}");
    }
}

#[test]
fn damaged_recordings_are_refused_or_read_in_part() {
    for (name, path) in samples(false) {
        let (format, file) = (by_name(name).unwrap(), file_name(path));
        let text = std::fs::read_to_string(testing::recorded(path)).unwrap();
        for (damage, bytes) in damages(&text) {
            let found = read(format, &bytes, file);
            check(found, file, &format!("{path}, {damage}"));
        }
        // An empty file is not a session.
        for empty in ["", " \n"] {
            assert!(read(format, empty.as_bytes(), file).iter().all(Result::is_err), "{path}");
        }
    }
}

#[test]
fn encodings_with_a_mark_and_other_ends_of_lines_change_nothing() {
    for (name, path) in samples(false) {
        let (format, file) = (by_name(name).unwrap(), file_name(path));
        let text = std::fs::read_to_string(testing::recorded(path)).unwrap();
        let sessions = |bytes: &[u8]| -> Vec<Loaded> {
            let source = Source::of_bytes(bytes, file);
            assert_eq!(detect(&source).map(|f| f.name), Some(format.name), "{path}");
            format.import_all(&source).unwrap()
        };
        let expected = sessions(text.as_bytes());
        let wide = |unit: fn(u16) -> [u8; 2], mark: [u8; 2]| -> Vec<u8> {
            mark.into_iter().chain(text.encode_utf16().flat_map(unit)).collect()
        };
        for bytes in [
            wide(u16::to_le_bytes, [0xff, 0xfe]),
            wide(u16::to_be_bytes, [0xfe, 0xff]),
            format!("\u{feff}{text}").into_bytes(),
            text.replace('\n', "\r\n").into_bytes(),
        ] {
            assert!(sessions(&bytes) == expected, "{path}");
        }
    }
}

#[test]
fn a_torn_first_line_and_joined_lines_lose_nothing_else() {
    for (name, path) in samples(false).filter(|(_, path)| path.ends_with(".jsonl")) {
        let (format, file) = (by_name(name).unwrap(), file_name(path));
        let text = std::fs::read_to_string(testing::recorded(path)).unwrap();
        let sessions = |text: &str| {
            let source = Source::of_bytes(text.as_bytes(), file);
            assert_eq!(detect(&source).map(|f| f.name), Some(format.name), "{path}");
            read(format, text.as_bytes(), file).into_iter().filter(Result::is_ok).count()
        };
        // A row is a session.
        let lost = usize::from(matches!(name, "openhands" | "openai-chat"));
        let all = sessions(&text);
        let half = text.floor_char_boundary(text.find('\n').unwrap() / 2);
        let torn = [&text[..half], &text[text.find('\n').unwrap()..]].concat();
        assert_eq!(sessions(&torn), all - lost, "{path}");
        assert_eq!(sessions(&text.replace('\n', "")), all, "{path}");
        let replies = |text: &str| -> usize {
            let loaded = read(format, text.as_bytes(), file).into_iter().flatten();
            loaded.map(|l| l.session.entries.iter().filter_map(|e| e.as_reply()).count()).sum()
        };
        assert_eq!(replies(&text.replace('\n', "")), replies(&text), "{path}");
    }
}

#[test]
fn a_document_that_breaks_off_keeps_what_is_whole() {
    let is_document = |path: &str| [".json", ".traj"].iter().any(|ending| path.ends_with(ending));
    for (name, path) in samples(false).filter(|(_, path)| is_document(path)) {
        let (format, file) = (by_name(name).unwrap(), file_name(path));
        let text = std::fs::read_to_string(testing::recorded(path)).unwrap();
        let cut = &text[..text.floor_char_boundary(text.len() * 9 / 10)];
        assert_eq!(
            detect(&Source::of_bytes(cut.as_bytes(), file)).map(|f| f.name),
            Some(name),
            "{path}"
        );
        // Only the last recording is cut.
        let found = read(format, cut.as_bytes(), file).pop().unwrap();
        let told = found.unwrap_or_else(|e| panic!("{path}: {e}")).warnings;
        let cut = format!("{file}:{}: the JSON breaks off here", cut.lines().count());
        assert!(told.iter().any(|w| w.starts_with(&cut)), "{path}: {told:?}");
    }
}

#[test]
fn of_several_recordings_in_a_document_that_breaks_off_the_last_is_cut() {
    let text =
        std::fs::read_to_string(testing::recorded("messages/anthropic-messages.json")).unwrap();
    for mark in ["", "\u{feff}"] {
        let all = format!("{mark}[{text},{text},{text}");
        let bytes = &all.as_bytes()[..all.len() - text.len() / 5];
        let found = read(by_name("anthropic-messages").unwrap(), bytes, "x.json");
        let is_cut = |one: &Result<Loaded, InputError>| {
            one.as_ref().unwrap().warnings.iter().any(|w| w.contains("breaks off"))
        };
        assert_eq!(found.iter().map(is_cut).collect::<Vec<_>>(), [false, false, true], "{mark:?}");
    }
}

#[test]
fn every_format_has_a_recording_that_is_damaged_here() {
    for format in ALL {
        let mut samples = samples(false).chain(samples(true));
        assert!(samples.any(|(name, _)| name == format.name), "{}", format.name);
    }
}
