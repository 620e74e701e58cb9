use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use proptest::prelude::*;
use serde_json::json;

use super::*;
use ctxbench_core::request::Usage;

/// A temporary folder.
struct TempFolder(PathBuf);

impl TempFolder {
    fn new() -> TempFolder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "ctxbench-rollout-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        TempFolder(path)
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns a clock that starts at 2026-05-11T08:27:17.490Z and advances by a second per call.
fn clock() -> Clock {
    let now = AtomicU64::new(1_778_488_037_490);
    Box::new(move || now.fetch_add(1_000, Ordering::Relaxed))
}

fn meta(version: &str) -> SessionMeta {
    SessionMeta { id: "s1".into(), cli_version: version.into(), ..SessionMeta::default() }
}

fn write(home: &Path, version: &str, payloads: Vec<Payload>) -> PathBuf {
    let mut w = Writer::create(home, meta(version), clock()).unwrap();
    for p in payloads {
        w.append(p).unwrap();
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
        ".{0,40}".prop_map(|e| RolloutItem::Compaction {
            encrypted_content: e,
            rest: Default::default()
        }),
        any::<u32>().prop_map(|n| RolloutItem::GhostSnapshot {
            ghost_commit: json!({"id": n}),
            rest: Default::default()
        }),
    ]
}

fn payload() -> impl Strategy<Value = Payload> {
    let usage = |(input, output): (u32, u32)| Usage {
        input: input.into(),
        output: output.into(),
        ..Usage::default()
    };
    prop_oneof![
        item().prop_map(Payload::ResponseItem),
        ("\\PC{0,20}", prop::option::of(prop::collection::vec(item(), 0..3))).prop_map(
            |(message, replacement_history)| {
                Payload::Compacted(Compacted {
                    message,
                    replacement_history,
                    ..Compacted::default()
                })
            }
        ),
        any::<(u32, u32)>().prop_map(usage).prop_map(|u| Payload::EventMsg(
            RolloutEvent::TokenCount(TokenCount::response(&TokenInfo::default(), &u))
        )),
        (0usize..5).prop_map(|num_turns| Payload::EventMsg(RolloutEvent::ThreadRolledBack {
            num_turns,
            rest: Default::default()
        })),
        Just(Payload::EventMsg(RolloutEvent::TaskStarted { rest: Default::default() })),
        Just(Payload::EventMsg(RolloutEvent::Other(
            json!({"type": "agent_message", "message": "hi"})
        ))),
        Just(Payload::TurnContext(json!({"model": "gpt-5.4"}).as_object().unwrap().clone())),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn written_rollout_reads_back(payloads in prop::collection::vec(payload(), 0..12), new in any::<bool>()) {
        let home = TempFolder::new();
        let path = write(&home.0, if new { "0.169.0" } else { "0.63.0" }, payloads.clone());
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
        let home = TempFolder::new();
        let path = write(&home.0, "0.169.0", payloads.clone());
        let bytes = std::fs::read(&path).unwrap();
        let last = bytes[..bytes.len() - 1].iter().rposition(|b| *b == b'\n').unwrap() + 1;
        // Keep at least one byte of the last line, and at most everything but its closing brace.
        let end = last + 1 + cut.index(bytes.len() - last - 2);
        std::fs::write(&path, &bytes[..end]).unwrap();
        let (mut w, read) = Writer::reopen(&path, clock()).unwrap();
        prop_assert_eq!(read.lines.len(), payloads.len());
        prop_assert_eq!(read.unreadable.len(), 1);
        let message = read.unreadable[0].to_string();
        let place = format!("line {}", payloads.len() + 1);
        prop_assert!(read.unreadable[0].torn);
        prop_assert!(message.contains("is truncated") && message.contains(&place));
        // Lines appended later are intact.
        w.append(payloads[0].clone()).unwrap();
        let read = Rollout::read(&path).unwrap();
        prop_assert_eq!(&read.lines.last().unwrap().payload, &payloads[0]);
        prop_assert_eq!(read.unreadable.len(), 1);
    }
}

#[test]
fn written_lines_match_codex_format() {
    let home = TempFolder::new();
    let path = write(
        &home.0,
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
    // docs/sources/codex.md §1.5: the usage is added to the session total, then the last usage has
    // input 0 and total = estimate.
    let usage = Usage { input: 1_100, output: 40, cache_read: 100, ..Usage::default() };
    let first = TokenCount::response(&TokenInfo::default(), &usage).info.unwrap();
    let second = TokenCount::response(&first, &usage).info.unwrap();
    assert_eq!(
        (second.total_token_usage.total_tokens, second.last_token_usage.total_tokens),
        (2_480, 1_240)
    );
    let after = TokenCount::estimate(&second, 6_030).info.unwrap();
    assert_eq!(
        (after.total_token_usage.total_tokens, after.last_token_usage.input_tokens),
        (2_480, 0)
    );
    assert_eq!(after.last_token_usage.total_tokens, 6_030);
}

#[test]
fn read_other_file_fails() {
    let home = TempFolder::new();
    let path = home.0.join("x.jsonl");
    std::fs::write(&path, "{\"role\":\"user\"}\n").unwrap();
    let e = Rollout::read(&path).unwrap_err().to_string();
    assert!(e.contains("x.jsonl") && e.contains("line 1") && e.contains("timestamp"), "{e}");
    assert!(Rollout::read(&home.0.join("missing")).unwrap_err().to_string().contains("missing"));
}
