use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use proptest::prelude::*;
use serde_json::json;

use super::*;
use ctxbench_core::request::Usage;

/// A folder that goes when the test is over.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "ctxbench-rollout-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A clock that starts at 2026-05-11T08:27:17.490Z and goes on by a second each time.
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

fn item() -> impl Strategy<Value = Item> {
    let call = |(id, text): (u8, String)| {
        serde_json::from_value(json!({"type": "function_call", "name": "shell", "arguments": text, "call_id": format!("c{id}")})).unwrap()
    };
    prop_oneof![
        ("(user|assistant|developer)", ".{0,40}")
            .prop_map(|(role, text)| Item::message(&role, [text])),
        (any::<u8>(), ".{0,40}").prop_map(call),
        ".{0,40}".prop_map(|e| Item::Compaction { encrypted_content: e, rest: Default::default() }),
        any::<u32>().prop_map(|n| Item::GhostSnapshot {
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
        any::<(u32, u32)>().prop_map(usage).prop_map(|u| Payload::EventMsg(Event::TokenCount(
            TokenCount::response(&TokenInfo::default(), &u)
        ))),
        (0usize..5).prop_map(|num_turns| Payload::EventMsg(Event::ThreadRolledBack {
            num_turns,
            rest: Default::default()
        })),
        Just(Payload::EventMsg(Event::TaskStarted { rest: Default::default() })),
        Just(Payload::EventMsg(Event::Other(json!({"type": "agent_message", "message": "hi"})))),
        Just(Payload::TurnContext(json!({"model": "gpt-5.4"}).as_object().unwrap().clone())),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read(payloads in prop::collection::vec(payload(), 0..12), new in any::<bool>()) {
        let home = Folder::new();
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
    fn a_torn_last_line_costs_itself_only(payloads in prop::collection::vec(payload(), 1..6), cut in any::<prop::sample::Index>()) {
        let home = Folder::new();
        let path = write(&home.0, "0.169.0", payloads.clone());
        let bytes = std::fs::read(&path).unwrap();
        let last = bytes[..bytes.len() - 1].iter().rposition(|b| *b == b'\n').unwrap() + 1;
        // From one byte of the last line to all but its closing brace.
        let end = last + 1 + cut.index(bytes.len() - last - 2);
        std::fs::write(&path, &bytes[..end]).unwrap();
        let (mut w, read) = Writer::reopen(&path, clock()).unwrap();
        prop_assert_eq!(read.lines.len(), payloads.len());
        prop_assert_eq!(read.unreadable.len(), 1);
        let message = read.unreadable[0].to_string();
        let place = format!("line {}", payloads.len() + 1);
        prop_assert!(read.unreadable[0].torn);
        prop_assert!(message.contains("was cut off") && message.contains(&place));
        // What is appended after it is whole.
        w.append(payloads[0].clone()).unwrap();
        let read = Rollout::read(&path).unwrap();
        prop_assert_eq!(&read.lines.last().unwrap().payload, &payloads[0]);
        prop_assert_eq!(read.unreadable.len(), 1);
    }
}

#[test]
fn lines_have_the_shape_of_the_program() {
    let home = Folder::new();
    let path = write(
        &home.0,
        "0.169.0",
        vec![Payload::ResponseItem(Item::message("user", ["hi".into()]))],
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
fn a_compaction_is_counted_as_an_estimate() {
    // docs/sources/codex.md §1.5: the usage is added to the session, then the newest counters
    // become input 0 and total = estimate.
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
fn a_file_of_something_else_is_refused() {
    let home = Folder::new();
    let path = home.0.join("x.jsonl");
    std::fs::write(&path, "{\"role\":\"user\"}\n").unwrap();
    let e = Rollout::read(&path).unwrap_err().to_string();
    assert!(e.contains("x.jsonl") && e.contains("line 1") && e.contains("timestamp"), "{e}");
    assert!(Rollout::read(&home.0.join("missing")).unwrap_err().to_string().contains("missing"));
}

fn history(folder: &Folder, max: Option<u64>) -> HistoryFile {
    HistoryFile::new(folder.0.join("history.jsonl"), max, clock(), |_| {})
}

#[test]
fn entries_are_found_by_file_and_place() {
    let home = Folder::new();
    let h = history(&home, None);
    assert_eq!(h.metadata().unwrap(), None);
    h.append("s1", "Fix the login handler").unwrap();
    h.append("s2", "line\nbreak").unwrap();
    let first = std::fs::read_to_string(h.path()).unwrap().lines().next().unwrap().to_string();
    assert_eq!(first, r#"{"session_id":"s1","ts":1778488037,"text":"Fix the login handler"}"#);
    let m = h.metadata().unwrap().unwrap();
    assert_eq!(m.entries, 2);
    assert_eq!(h.lookup(m.log, 1).unwrap().unwrap().text, "line\nbreak");
    assert_eq!(h.lookup(m.log, 2).unwrap(), None);
    assert_eq!(h.lookup(LogId(m.log.0 ^ 1), 1).unwrap(), None);
}

#[cfg(unix)]
#[test]
fn only_the_owner_may_read_it() {
    use std::os::unix::fs::PermissionsExt;
    let home = Folder::new();
    let h = history(&home, None);
    std::fs::write(h.path(), "").unwrap();
    std::fs::set_permissions(h.path(), PermissionsExt::from_mode(0o644)).unwrap();
    h.append("s", "secret").unwrap();
    assert_eq!(std::fs::metadata(h.path()).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn after_a_rotation_old_places_mean_nothing() {
    let home = Folder::new();
    let h = history(&home, None);
    h.append("s", "old").unwrap();
    let old = h.metadata().unwrap().unwrap();
    // The old file still exists, so the new one cannot get its inode.
    std::fs::rename(h.path(), home.0.join("history.old")).unwrap();
    h.append("s", "new").unwrap();
    assert_eq!(h.lookup(old.log, 0).unwrap(), None);
    let new = h.metadata().unwrap().unwrap();
    assert_eq!(h.lookup(new.log, 0).unwrap().unwrap().text, "new");
}

#[test]
fn a_held_lock_is_tried_ten_times() {
    let home = Folder::new();
    let waits = Arc::new(AtomicU64::new(0));
    let seen = waits.clone();
    let h = HistoryFile::new(home.0.join("history.jsonl"), None, clock(), move |ms| {
        seen.fetch_add(ms, Ordering::Relaxed);
    });
    h.append("s", "one").unwrap();
    let other = std::fs::File::open(h.path()).unwrap();
    other.lock().unwrap();
    let e = h.append("s", "two").unwrap_err();
    assert!(
        matches!(e, HistoryError::Locked { .. })
            && e.to_string().contains("locked by another program"),
        "{e}"
    );
    // Nine waits of 100 ms between ten tries.
    assert_eq!(waits.load(Ordering::Relaxed), 900);
    drop(other);
    assert_eq!(h.metadata().unwrap().unwrap().entries, 1);
    h.append("s", "two").unwrap();
    assert_eq!(h.metadata().unwrap().unwrap().entries, 2);
}

#[test]
fn a_torn_entry_does_not_spoil_the_next() {
    let home = Folder::new();
    let h = history(&home, None);
    std::fs::write(h.path(), r#"{"session_id":"s","ts":1,"te"#).unwrap();
    h.append("s", "whole").unwrap();
    let m = h.metadata().unwrap().unwrap();
    assert_eq!(h.lookup(m.log, 0).unwrap(), None);
    assert_eq!(h.lookup(m.log, 1).unwrap().unwrap().text, "whole");
}

#[test]
fn a_trimmed_history_takes_the_place_of_the_former_one_which_nobody_empties() {
    let home = Folder::new();
    let h = history(&home, Some(150));
    h.append("s", "one").unwrap();
    h.append("s", "two").unwrap();
    // Not UTF-8, as a program that was cut off leaves it: it is nobody's to mend.
    let strange = b"{\"text\":\"\xe4\"}\n";
    let mut file = std::fs::OpenOptions::new().append(true).open(h.path()).unwrap();
    std::io::Write::write_all(&mut file, strange).unwrap();
    let former = std::fs::read(h.path()).unwrap();
    let mut open = std::fs::File::open(h.path()).unwrap();
    let places = h.metadata().unwrap().unwrap().log;
    h.append("s", "three").unwrap();
    let mut held = Vec::new();
    std::io::Read::read_to_end(&mut open, &mut held).unwrap();
    assert_eq!(held, former, "whoever has it open reads on");
    // Lines of 48, 48 and 13 bytes and the new one of 50: 159, of which 120 may stay.
    let now = std::fs::read(h.path()).unwrap();
    let third = r#"{"session_id":"s","ts":1778488039,"text":"three"}"#;
    assert_eq!(now, [&former[48..], third.as_bytes(), b"\n"].concat());
    assert_eq!(h.lookup(places, 0).unwrap(), None, "another file");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(h.path()).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn who_waited_for_the_lock_of_a_file_that_was_replaced_opens_the_new_one() {
    let home = Folder::new();
    history(&home, None).append("s", "one").unwrap();
    let path = home.0.join("history.jsonl");
    let held = std::fs::File::open(&path).unwrap();
    held.lock().unwrap();
    // What another program does while this one waits.
    let (beside, place) = (home.0.join("beside"), path.clone());
    std::fs::write(&beside, "new\n").unwrap();
    let h = HistoryFile::new(&path, None, clock(), move |_| {
        if beside.exists() {
            std::fs::rename(&beside, &place).unwrap();
            held.unlock().unwrap();
        }
    });
    h.append("s", "two").unwrap();
    let now = std::fs::read_to_string(&path).unwrap();
    assert!(now.starts_with("new\n") && now.contains("two"), "{now}");
}

#[test]
fn a_file_that_is_replaced_between_opening_and_locking_is_opened_again() {
    let home = Folder::new();
    let h = history(&home, None);
    h.append("s", "one").unwrap();
    let beside = home.0.join("beside");
    std::fs::write(&beside, "new\n").unwrap();
    let replaced = |file: &std::fs::File| {
        let _ = std::fs::rename(&beside, h.path());
        file.try_lock()
    };
    let mut file = h.locked(|| std::fs::File::open(h.path()), replaced).unwrap();
    let mut text = String::new();
    std::io::Read::read_to_string(&mut file, &mut text).unwrap();
    assert_eq!(text, "new\n");
}

#[test]
fn writers_at_once_lose_no_line_while_they_trim() {
    let home = Folder::new();
    let new =
        |path: PathBuf| HistoryFile::new(path, Some(3_000), clock(), |_| std::thread::yield_now());
    let add = |writer: usize, n: usize| {
        let h = new(home.0.join("history.jsonl"));
        // Others may be faster ten times.
        while let Err(e) = h.append(&writer.to_string(), &n.to_string()) {
            assert!(matches!(e, HistoryError::Locked { .. }), "{e}");
        }
    };
    let whole = |text: &str| {
        let mut last = [None; 3];
        for line in text.lines() {
            let p: TypedPrompt = serde_json::from_str(line).unwrap();
            let (writer, n): (usize, usize) =
                (p.session_id.parse().unwrap(), p.text.parse().unwrap());
            assert!(last[writer].is_none_or(|before| n == before + 1), "{n} of {writer}: {text}");
            last[writer] = Some(n);
        }
        last
    };
    let ended = AtomicU64::new(0);
    std::thread::scope(|s| {
        for writer in 0..2 {
            let (add, ended) = (&add, &ended);
            s.spawn(move || {
                (0..150).for_each(|n| add(writer, n));
                ended.fetch_add(1, Ordering::Relaxed);
            });
        }
        let reader = new(home.0.join("history.jsonl"));
        while ended.load(Ordering::Relaxed) < 2 {
            match reader.read() {
                Ok(text) => drop(whole(&text.unwrap_or_default())),
                Err(e) => assert!(matches!(e, HistoryError::Locked { .. }), "{e}"),
            }
        }
    });
    // Whoever was last; the other's lines may have gone by then.
    let last = whole(&std::fs::read_to_string(home.0.join("history.jsonl")).unwrap());
    assert!(last[..2].contains(&Some(149)), "{last:?}");
    assert_eq!(std::fs::read_dir(&home.0).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn trimming_leaves_a_fifth_of_room() {
    // docs/sources/codex.md §4: at most max(floor(0.8 × max), newest line).
    let lines =
        |sizes: &[usize]| -> String { sizes.iter().map(|n| "x".repeat(n - 1) + "\n").collect() };
    let kept = |sizes: &[usize], max| trimmed(&lines(sizes), max).len();
    assert_eq!(kept(&[100; 10], 1_000), 1_000, "up to the limit nothing goes");
    assert_eq!(kept(&[100; 11], 1_000), 800);
    assert_eq!(kept(&[100; 11], 1_099), 800, "879 bytes hold eight lines");
    assert_eq!(kept(&[200, 799], 998), 799, "798 bytes, and the newest line all the same");
    assert_eq!(kept(&[40, 70], 0), 70);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_cap_keeps_the_newest_whole_lines(texts in prop::collection::vec(".{0,60}", 1..30), max in 0u64..1_500) {
        let home = Folder::new();
        let h = history(&home, Some(max));
        let mut all: Vec<String> = Vec::new();
        for t in &texts {
            h.append("s", t).unwrap();
            let kept = std::fs::read_to_string(h.path()).unwrap();
            let newest = kept.split_inclusive('\n').next_back().unwrap().to_string();
            all.push(newest.clone());
            let whole: String = all.concat();
            prop_assert!(whole.ends_with(&kept) && kept.ends_with('\n'));
            prop_assert!(kept.len() as u64 <= max.max(newest.len() as u64));
            let entry: TypedPrompt = serde_json::from_str(newest.trim_end()).unwrap();
            prop_assert_eq!(&entry.text, t);
        }
    }
}
