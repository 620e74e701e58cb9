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
use doors::{DOORS, served};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::common::replayed::{MODEL, run_with};

/// Valid files for each parser, from the test data.
fn good(door: &str) -> Vec<Vec<u8>> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
    let built_in = |ends: &str| files(&data.join("../../scenarios/data"), ends);
    let found = match door {
        "session" | "export" => files(&data, ".jsonl"),
        "scenario" => built_in(".toml"),
        "recording" | "validate" => {
            let mut all = files(&data.join("validate"), ".jsonl");
            all.extend(files(&data.join("recordings"), ""));
            all.retain(|p| !p.ends_with("README.md"));
            all
        }
        "settings file" => files(&data.join("settings"), ""),
        "packed" => [".zst", ".zip"].iter().flat_map(|e| files(&data.join("packed"), e)).collect(),
        "case" => files(&data.join("conformance"), ".json"),
        _ => Vec::new(),
    };
    let mut out: Vec<Vec<u8>> =
        found.iter().map(|p| std::fs::read(p).unwrap()).filter(|b| b.len() < 60_000).collect();
    // Formats without files.
    out.extend(match door {
        "request" => vec![
            br#"{"model":"m","max_tokens":9,"system":"s","messages":[{"role":"user","content":[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}]},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{"a":1}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"o"}]}]}"#.to_vec(),
            br#"{"model":"m","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"x"}]},{"type":"function_call","call_id":"c","name":"n","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"o"}]}"#.to_vec(),
            br#"{"systemInstruction":{"parts":[{"text":"s"}]},"contents":[{"role":"user","parts":[{"text":"x"},{"inlineData":{"mimeType":"image/png","data":"AA=="}}]},{"role":"model","parts":[{"thought":true,"text":"h"},{"functionCall":{"name":"n","args":{"a":1}},"thoughtSignature":"s"}]},{"role":"user","parts":[{"functionResponse":{"name":"n","response":{"output":"o"}}}]}],"tools":[{"functionDeclarations":[{"name":"n"}]}],"generationConfig":{"maxOutputTokens":9}}"#.to_vec(),
            br#"{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"n","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"o"}]}"#.to_vec(),
        ],
        "requests" => good("request").iter().map(|b| growing(b)).collect(),
        "store" => vec![
            br#"{"id":"s","projectID":"p","title":"t","role":"assistant","modelID":"m","type":"tool","tool":"task","callID":"c","state":{"status":"completed","input":{},"output":"o","metadata":{"sessionId":"s"},"time":{"end":1}},"tokens":{"input":1,"output":2,"cache":{"read":3,"write":4}}}"#.to_vec(),
            br#"{"kind":"MessageEvent","source":"user","llm_message":{"role":"user","content":[{"type":"text","text":"x"}]},"stats":{"usage_to_metrics":{"agent":{"token_usages":[{"response_id":"r","prompt_tokens":1,"cache_read_tokens":1}]}}}}"#.to_vec(),
            [&b"SQLite format 3\0"[..], &[0; 500]].concat(),
        ],
        "reply" => vec![
            br#"{"type":"message","role":"assistant","content":[{"type":"text","text":"x"},{"type":"tool_use","id":"t","name":"n","input":{}}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":2}}"#.to_vec(),
            br#"{"candidates":[{"content":{"role":"model","parts":[{"text":"x","thoughtSignature":"s"},{"functionCall":{"name":"n","args":{}}}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":2,"totalTokenCount":3}}"#.to_vec(),
            br#"{"error":{"type":"invalid_request_error","message":"prompt is too long: 2 tokens > 1 maximum"}}"#.to_vec(),
        ],
        "strategy" => vec![b"codex@0.63:auto_compact_limit=90k,x=\"y\"".to_vec()],
        "results" => vec![br#"{"version":1,"generator":"g","runs":[{"scenario":{"id":"a"},"strategy":{"name":"codex"}}]}"#.to_vec()],
        "memory" => vec![b"---\npaths:\n  - \"src/{a,b}/**\"\n---\n# Notes\n- one\n\n## More\n* \
         two @x/y.md `@z`\n".to_vec()],
        "markdown" => vec![b"# aider chat started at 2026-01-01 00:00:00\n\n#### do it\n\nDone.\n> \
         Tokens: 1k sent\n\n#### again  \n#### and more\n".to_vec()],
        "edits" => vec![
            br#"{"path":"a.rs","edits":[{"old":"a\nb","new":"c"}]}"#.to_vec(),
            br#"{"file_path":"a","content":"x\ny"}"#.to_vec(),
            b"*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n*** End Patch\n".to_vec(),
            b"a\nb\nc\0a\nc\nd\n".to_vec(),
        ],
        "replay" => vec![hostile(1_000, 3_155_760_000_000, 1_000_000_000), hostile(0, 5, 7)],
        "cassette" => vec![
            b"{\"type\":\"cassette\",\"version\":1}\n{\"request\":\"h\",\"model\":\"m\",\"max_tokens\":9,\"reply\":\"r\",\"stop\":\"end_turn\",\"usage\":{}}\n".to_vec(),
        ],
        "script" => vec![b"\"plain\"\n{\"text\":\"x\",\"strategy\":\"codex\"}\n".to_vec()],
        "history" => vec![b"{\"session_id\":\"s\",\"ts\":1,\"text\":\"x\"}\n".repeat(9)],
        "stored" => (0_u8..).zip(persist::formats()).flat_map(|(i, f)| stored(i, f)).collect(),
        "serve" => (0..served().len() as u8).flat_map(|i| good("request").into_iter().map(move |b| [vec![i], b].concat())).collect(),
        _ => Vec::new(),
    });
    out
}

/// Returns the requests of a conversation that grows to this one and beyond, separated by zeros.
fn growing(request: &[u8]) -> Vec<u8> {
    let whole: serde_json::Value = serde_json::from_slice(request).unwrap();
    let list = ["messages", "input", "contents"].into_iter().find(|f| whole[f].is_array()).unwrap();
    let said = whole[list].as_array().unwrap();
    let said = [&said[..], said].concat();
    let with = |n: usize| {
        let mut body = whole.clone();
        body[list] = said[..n].to_vec().into();
        body.to_string().into_bytes()
    };
    (1..=said.len()).map(with).collect::<Vec<_>>().join(&0)
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
    let (mut out, mut open) = (Vec::new(), vec![dir.to_path_buf()]);
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(&dir).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.to_string_lossy().ends_with(ends) {
                out.push(path);
            }
        }
    }
    out.sort();
    out
}

/// A mutation of a file.
#[derive(Clone, Debug)]
enum Damage {
    /// Replaces a byte.
    Byte(usize, u8),
    /// Removes the end.
    Cut(usize),
    /// Repeats a part.
    Twice(usize, usize),
    /// Replaces a number with an unusual one.
    Number(usize, &'static str),
    /// Removes a bracket or quote.
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
