use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// 2026-05-11T08:27:17.490Z.
const NOW_MS: u64 = 1_778_488_037_490;

fn meta(version: &str) -> SessionMeta {
    SessionMeta { id: "s1".into(), cli_version: version.into() }
}

fn write(home: &Path, version: &str, payloads: Vec<Payload>) -> PathBuf {
    let mut w = Writer::create(home, meta(version), NOW_MS).unwrap();
    for p in payloads {
        w.append(p, NOW_MS + 2_000).unwrap();
    }
    w.path().to_path_buf()
}

fn item() -> impl Strategy<Value = RolloutItem> {
    let call = |(id, text): (u8, String)| {
        serde_json::from_value(json!({"type": "function_call", "name": "shell", "arguments": text, "call_id": format!("c{id}")})).unwrap()
    };
    prop_oneof![
        ("(user|assistant|developer)", ".{0,40}")
            .prop_map(|(role, text)| RolloutItem::message(&role, [text])),
        (any::<u8>(), ".{0,40}").prop_map(call),
        ".{0,40}".prop_map(|e| RolloutItem::Compaction { encrypted_content: e }),
        any::<u32>().prop_map(|n| RolloutItem::GhostSnapshot { ghost_commit: json!({"id": n}) }),
    ]
}

fn payload() -> impl Strategy<Value = Payload> {
    prop_oneof![
        item().prop_map(Payload::ResponseItem),
        ("\\PC{0,20}", prop::option::of(prop::collection::vec(item(), 0..3))).prop_map(
            |(message, replacement_history)| {
                Payload::Compacted(Compacted { message, replacement_history })
            }
        ),
        any::<u32>().prop_map(|n| Payload::EventMsg(RolloutEvent::TokenCount(
            TokenCount::estimate(&TokenInfo::default(), n.into())
        ))),
        (0usize..5)
            .prop_map(|num_turns| Payload::EventMsg(RolloutEvent::ThreadRolledBack { num_turns })),
        Just(Payload::EventMsg(RolloutEvent::TaskStarted {
            model_context_window: serde_json::Value::Null
        })),
        Just(Payload::EventMsg(RolloutEvent::Other(
            json!({"type": "agent_message", "message": "hi"})
        ))),
        Just(Payload::TurnContext(json!({"model": "gpt-5.4"}))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn written_rollout_reads_back(payloads in prop::collection::vec(payload(), 0..12), new in any::<bool>()) {
        let home = tempfile::tempdir().unwrap();
        let path = write(home.path(), if new { "0.169.0" } else { "0.63.0" }, payloads.clone());
        let read = Rollout::read(&path).unwrap();
        prop_assert!(read.unreadable.is_empty());
        let ordinals: Vec<_> = read.lines.iter().map(|l| l.ordinal).collect();
        let expected: Vec<_> = (0..=payloads.len() as u64).map(|n| new.then_some(n)).collect();
        prop_assert_eq!(ordinals, expected);
        let back: Vec<Payload> = read.lines.into_iter().skip(1).map(|l| l.payload).collect();
        prop_assert_eq!(back, payloads);
    }

    #[test]
    fn truncated_last_line_is_skipped(payloads in prop::collection::vec(payload(), 1..6), cut in any::<prop::sample::Index>()) {
        let home = tempfile::tempdir().unwrap();
        let path = write(home.path(), "0.169.0", payloads.clone());
        let bytes = std::fs::read(&path).unwrap();
        let last = bytes[..bytes.len() - 1].iter().rposition(|b| *b == b'\n').unwrap() + 1;
        // Keep at least one byte of the last line, and at most everything but its closing brace.
        let end = last + 1 + cut.index(bytes.len() - last - 2);
        std::fs::write(&path, &bytes[..end]).unwrap();
        let (mut w, read) = Writer::reopen(&path).unwrap();
        prop_assert_eq!(read.lines.len(), payloads.len());
        prop_assert_eq!(read.unreadable.len(), 1);
        let (message, place) = (&read.unreadable[0], format!("line {}", payloads.len() + 1));
        prop_assert!(message.contains("is truncated") && message.contains(&place));
        // Lines appended later are intact.
        w.append(payloads[0].clone(), NOW_MS).unwrap();
        let read = Rollout::read(&path).unwrap();
        prop_assert_eq!(&read.lines.last().unwrap().payload, &payloads[0]);
        prop_assert_eq!(read.unreadable.len(), 1);
    }
}

#[test]
fn written_lines_match_codex_format() {
    let home = tempfile::tempdir().unwrap();
    let path = write(
        home.path(),
        "0.169.0",
        vec![Payload::ResponseItem(RolloutItem::message("user", ["hi".into()]))],
    );
    assert!(path.ends_with("sessions/2026/05/11/rollout-2026-05-11T08-27-17-s1.jsonl"));
    let text = std::fs::read_to_string(&path).unwrap();
    let second: serde_json::Value = serde_json::from_str(text.lines().nth(1).unwrap()).unwrap();
    assert_eq!(
        second,
        json!({"timestamp": "2026-05-11T08:27:19.490Z", "ordinal": 1, "type": "response_item",
            "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}})
    );
}

#[test]
fn token_count_after_compaction_is_an_estimate() {
    // docs/sources/codex.md §1.5: the total stays, and the last usage has input 0 and total =
    // estimate.
    let total_token_usage = Counters { total_tokens: 2_480, ..Counters::default() };
    let before = TokenInfo { total_token_usage, ..TokenInfo::default() };
    let after = TokenCount::estimate(&before, 6_030).info.unwrap();
    let last_token_usage = Counters { total_tokens: 6_030, ..Counters::default() };
    assert_eq!(after, TokenInfo { last_token_usage, ..before });
}

#[test]
fn read_other_file_fails() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("x.jsonl");
    std::fs::write(&path, "{\"role\":\"user\"}\n").unwrap();
    let e = Rollout::read(&path).unwrap_err().to_string();
    assert!(e.contains("x.jsonl") && e.contains("line 1") && e.contains("timestamp"), "{e}");
    assert!(
        Rollout::read(&home.path().join("missing")).unwrap_err().to_string().contains("missing")
    );
}
