//! Tests of a hand-written session in each format, with the entries that the format cannot express.

use ctxbench_session::Session;
use serde_json::Value;

use super::*;
use crate::jsonl;

/// Reads the session, or the same in another form.
fn data(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/exports");
    std::fs::read_to_string(format!("{folder}/{name}")).unwrap()
}

fn session() -> Session {
    jsonl::read(data("session.jsonl").as_bytes(), "s.jsonl").unwrap().session
}

fn written(name: &str) -> (Value, String, ExportLosses) {
    let mut lost = ExportLosses::default();
    let text = (by_name(name).unwrap().write)(&session(), &mut lost).unwrap();
    assert!(text.ends_with('\n') && text.lines().count() == 1, "{text}");
    (serde_json::from_str(&text).unwrap(), text, lost)
}

#[test]
fn a_session_in_each_form_is_as_written_by_hand() {
    let all_of_atif = "1 × arguments that are not a JSON object, 1 × commands to compact, 1 × encrypted reasoning, \
        1 × facts, 1 × files on disk, 1 × places of parts within a reply, 1 × sizes of window, reply and prefix, \
        1 × times of results";
    let of_openai = [
        "1 × conversations of subagents",
        "1 × counters",
        "2 × reasoning",
        "3 × times",
        "1 × failures of tools",
    ];
    for (name, losses) in [
        ("atif", &[all_of_atif][..]),
        ("openai", &of_openai),
        ("anthropic", &["1 × names of images"]),
    ] {
        let (value, text, lost) = written(name);
        assert_eq!(value, serde_json::from_str::<Value>(&data(&format!("{name}.json"))).unwrap());
        let lost = lost.summary().unwrap();
        assert!(losses.iter().all(|words| lost.contains(words)), "{name}: {lost}");
        match name {
            // Unchanged, but on one line.
            "atif" => assert!(text.contains(r#""arguments":{"b": 1, "a": 2.50}"#), "{text}"),
            "anthropic" => assert!(!lost.contains("reasoning"), "{lost}"),
            _ => {}
        }
    }
}

#[test]
fn our_own_form_loses_nothing_and_a_wrong_name_tells_the_nearest() {
    let mut lost = ExportLosses::default();
    let text = (by_name("session").unwrap().write)(&session(), &mut lost).unwrap();
    assert_eq!(
        (jsonl::read(text.as_bytes(), "s.jsonl").unwrap().session, lost.summary()),
        (session(), None)
    );
    let e = by_name("openia").err().unwrap().to_string();
    assert!(e.contains("did you mean openai"), "{e}");
}

#[test]
fn the_documentation_has_a_row_for_each() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/recordings.md");
    let page = std::fs::read_to_string(path).unwrap();
    let section = page.split("\n### Exports\n").nth(1).unwrap().split("\n## ").next().unwrap();
    for name in names() {
        assert!(section.contains(&format!("\n| `{name}` | ")), "{name}");
    }
}

#[test]
fn arguments_that_no_reader_takes_are_kept_as_text() {
    use ctxbench_core::content::ToolCall;
    for (written, expected) in [
        ("{}", "{}"),
        ("", "{}"),
        (" {\"a\":\r\n[1]} ", " {\"a\":  [1]} "),
        ("[1]", "{\"arguments\":\"[1]\"}"),
        ("{\"a\":1", "{\"arguments\":\"{\\\"a\\\":1\"}"),
        // A lone surrogate, and a number that is too large.
        ("{\"a\":\"\\ud800\"}", "{\"arguments\":\"{\\\"a\\\":\\\"\\\\ud800\\\"}\"}"),
        ("{\"a\":1e999}", "{\"arguments\":\"{\\\"a\\\":1e999}\"}"),
    ] {
        let call = ToolCall::new("c", "read", written);
        let found = conversation::arguments(&call, &mut ExportLosses::default());
        assert_eq!(found.get(), expected.trim(), "{written}");
    }
}
