//! No bytes make a parser panic: random bytes, and files of each format with changed bytes, moved
//! lines and missing ends.

#[path = "../doors.rs"]
mod doors;

use std::path::{Path, PathBuf};

use ctxbench_core::block::Role;
use ctxbench_replay::Options;
use ctxbench_reports::record::Status;
use ctxbench_scenarios::{formats, parse};
use ctxbench_session::Entry as SessionEntry;
use ctxbench_strategies::persist::{self, JournalEntry, PersistFormat, StoredMessage};
use ctxbench_util::files::walk_into;
use doors::{DOORS, served};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::common::replayed::{MODEL, run_with};

fn good(door: &str) -> Vec<Vec<u8>> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
    let found = match door {
        "session" | "export" => files(&data, ".jsonl"),
        "scenario" => files(&data.join("../../scenarios/data"), ".toml"),
        "recording" | "validate" => {
            let mut all = files(&data.join("validate"), ".jsonl");
            all.extend(files(&data.join("recordings"), ""));
            all.retain(|p| !p.ends_with("README.md"));
            all
        }
        "settings file" => files(&data.join("settings"), ""),
        "packed" => [".zst", ".zip"].iter().flat_map(|e| files(&data.join("packed"), e)).collect(),
        "case" => files(&data.join("conformance"), ".json"),
        _ => files(&data.join("doors").join(door), ""),
    };
    let mut out: Vec<Vec<u8>> =
        found.iter().map(|p| std::fs::read(p).unwrap()).filter(|b| b.len() < 60_000).collect();
    match door {
        "recording" | "validate" => {
            // The beginning of a database has its schema as text.
            let sql = out.iter().map(|b| String::from_utf8_lossy(b).into_owned());
            let sql = sql.filter(|text| text.contains("create table"));
            let schemas = sql.map(|text| text.replace("create table", "CREATE TABLE"));
            let databases = schemas.map(|text| format!("SQLite format 3\0{text}").into_bytes());
            let databases: Vec<Vec<u8>> = databases.collect();
            out.extend(databases);
        }
        "store" => out.push([&b"SQLite format 3\0"[..], &[0; 500]].concat()),
        "replay" => {
            out.extend([hostile(1_000, 3_155_760_000_000, 1_000_000_000), hostile(0, 5, 7)]);
        }
        "stored" => out.extend((0..).zip(persist::formats()).flat_map(|(i, f)| stored(i, f))),
        "serve" => {
            let requests = good("request");
            let paths = 0..served().len() as u8;
            out.extend(paths.flat_map(|i| requests.iter().map(move |b| [&[i], &b[..]].concat())));
        }
        _ => {}
    }
    out
}

/// A session with these numbers in every numeric field.
fn hostile(prefix: u64, ms: u64, tokens: u64) -> Vec<u8> {
    let usage = format!(
        r#""usage":{{"input":{tokens},"output":{tokens},"cache_read":{tokens},"cache_write":{tokens}}}"#
    );
    format!(
        r#"{{"type":"session","version":1,"id":"s","prefix_tokens":{prefix}}}
{{"type":"user","id":"u1","text":"go","at":0}}
{{"type":"assistant","id":"a1","calls":[{{"id":"c1","name":"read","arguments":"{{}}"}}],"at":{ms},{usage}}}
{{"type":"tool","call_id":"c1","output":"out"}}
{{"type":"assistant","id":"a2","text":"done","at":{ms}}}
{{"type":"idle","ms":{ms}}}
{{"type":"idle","ms":{ms}}}
{{"type":"compact","at":{ms}}}
{{"type":"idle","ms":{ms}}}
{{"type":"recorded_compaction","pre_tokens":{tokens},"post_tokens":{tokens},"at":{ms}}}
{{"type":"user","id":"u2","text":"on"}}
{{"type":"assistant","id":"a3","text":"well","at":{ms},{usage}}}
"#
    )
    .into_bytes()
}

/// Returns files of a format, each preceded by the number of the format.
fn stored(number: u8, format: &PersistFormat) -> Vec<Vec<u8>> {
    let dir = tempfile::tempdir().unwrap();
    let mut p = (format.open)(dir.path(), 1).unwrap();
    let said =
        [StoredMessage::text(Role::User, "do it"), StoredMessage::text(Role::Assistant, "done")];
    said.iter().for_each(|s| p.append(&JournalEntry::Message(s.clone())).unwrap());
    p.append(&JournalEntry::View(said[1..].to_vec())).unwrap();
    drop(p);
    files(dir.path(), "")
        .iter()
        .map(|f| [vec![number], std::fs::read(f).unwrap()].concat())
        .collect()
}

fn files(dir: &Path, ends: &str) -> Vec<PathBuf> {
    let mut all = walk_into(dir, |_| true, drop);
    all.retain(|path| path.to_string_lossy().ends_with(ends));
    all
}

/// A mutation of a file.
#[derive(Clone, Debug)]
enum Damage {
    Byte(usize, u8),
    Cut(usize),
    Twice(usize, usize),
    /// Replaces a number with an unusual one.
    Number(usize, &'static str),
    Mark(usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<prop::sample::Index>().prop_map(|i| i.index(1 << 20));
    prop_oneof![
        (at.clone(), any::<u8>()).prop_map(|(i, b)| Damage::Byte(i, b)),
        at.clone().prop_map(Damage::Cut),
        (at.clone(), 1..200_usize).prop_map(|(i, n)| Damage::Twice(i, n)),
        (
            at.clone(),
            prop::sample::select(vec![
                "-1",
                "0",
                "18446744073709551615",
                "18446744073709551616",
                "1e999",
                "-9223372036854775809",
                "null",
                "[]",
                "\"\""
            ])
        )
            .prop_map(|(i, n)| Damage::Number(i, n)),
        at.prop_map(Damage::Mark),
    ]
}

fn apply(bytes: &mut Vec<u8>, damage: &Damage) {
    if bytes.is_empty() {
        return;
    }
    let len = bytes.len();
    let from = |at: usize, yes: fn(&u8) -> bool, bytes: &[u8]| {
        bytes.iter().skip(at % len).position(yes).map(|p| at % len + p)
    };
    match *damage {
        Damage::Byte(at, to) => bytes[at % len] = to,
        Damage::Cut(at) => bytes.truncate(at % len),
        Damage::Twice(at, n) => {
            let piece = bytes[at % len..(at % len + n).min(len)].to_vec();
            bytes.splice(at % len..at % len, piece);
        }
        Damage::Number(at, to) => {
            if let Some(start) = from(at, u8::is_ascii_digit, bytes) {
                let end = bytes[start..]
                    .iter()
                    .position(|b| !b.is_ascii_digit())
                    .map_or(len, |n| start + n);
                bytes.splice(start..end, to.bytes());
            }
        }
        Damage::Mark(at) => {
            if let Some(i) = from(at, |b| b"{}[]\"-#>`\n".contains(b), bytes) {
                bytes.remove(i);
            }
        }
    }
}

#[test]
fn every_parser_accepts_some_file() {
    for (name, door) in DOORS {
        let files = good(name);
        assert!(!files.is_empty(), "nothing to try {name} with");
        files.iter().for_each(|f| door(f));
    }
    for format in formats::ALL {
        let sniffed = |b: &Vec<u8>| {
            // The first versions of one format are recognised only by their file name.
            let head = formats::Source::of_bytes(b, "x.traj.json").head();
            (format.sniff)(&head.unwrap())
        };
        assert!(good("recording").iter().any(sniffed), "no recording of {}", format.title);
    }
    for wire in ctxbench_provider::wire::ALL {
        let decoded = |b: &Vec<u8>| wire.decode("", b).is_ok();
        assert!(good("request").iter().any(decoded), "no request of {wire:?}");
    }
}

#[test]
fn hostile_session_is_refused_or_replayed() {
    let replayed = |bytes: &[u8]| {
        let scenario = parse(bytes, "x.jsonl").map_err(|e| e.to_string())?;
        Ok::<_, String>(run_with(MODEL, &scenario, "sliding-window", &Options::default()))
    };
    let century = 3_155_760_000_000;
    let done = replayed(&hostile(1_000, century, 1_000_000_000)).unwrap();
    assert_eq!(done.status, Status::Completed, "{:?}", done.error);
    // Three pauses of a century.
    let last = done.requests.last().unwrap().at_ms;
    assert!((3 * century..3 * century + 600_000).contains(&last), "{last}");
    for (bytes, field) in [
        (hostile(100_000_000_000, 0, 0), "prefix_tokens"),
        (hostile(0, u64::MAX, 0), "at"),
        (hostile(0, 0, u64::MAX), "usage.input"),
    ] {
        let e = replayed(&bytes).unwrap_err();
        assert!(
            e.contains("x.jsonl:") && e.contains(&format!("{field:?}")) && e.contains("at most"),
            "{e}"
        );
    }
    // A session that a program builds is not validated. The clock stops at its maximum.
    let mut scenario = parse(&hostile(0, 5, 7), "x.jsonl").unwrap();
    for e in &mut scenario.session.entries {
        if let SessionEntry::Idle { ms, .. } = e {
            *ms = u64::MAX;
        }
    }
    let record = run_with(MODEL, &scenario, "sliding-window", &Options::default());
    assert_eq!(record.status, Status::Completed, "{:?}", record.error);
}

#[test]
#[ignore = "writes files: `fuzz/run` starts from them"]
fn write_the_corpus() {
    let dir =
        PathBuf::from(std::env::var_os("CTXBENCH_CORPUS").expect("CTXBENCH_CORPUS names a folder"));
    for (name, _) in DOORS {
        std::fs::create_dir_all(dir.join(name)).unwrap();
        for (i, bytes) in good(name).iter().enumerate() {
            std::fs::write(dir.join(name).join(format!("good-{i}")), bytes).unwrap();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn noise_is_refused_without_panic(bytes in vec(any::<u8>(), 0..200), text in any::<String>()) {
        for (_, door) in DOORS {
            door(&bytes);
            door(text.as_bytes());
        }
    }

    #[test]
    fn damaged_files_are_refused_or_read_in_part(pick in any::<prop::sample::Index>(), damages in vec(damage(), 1..6)) {
        for (name, door) in DOORS {
            let files = good(name);
            if files.is_empty() {
                continue;
            }
            let mut bytes = pick.get(&files).clone();
            damages.iter().for_each(|d| apply(&mut bytes, d));
            door(&bytes);
        }
    }
}
