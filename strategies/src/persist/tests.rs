use std::path::Path;

use ctxbench_core::{Part, Role, ToolCall};
use proptest::prelude::*;

use super::*;

fn format(name: &str) -> &'static PersistFormat {
    formats().into_iter().find(|f| f.name == name).unwrap()
}

fn open(name: &str, dir: &Path) -> Box<dyn Persistence> {
    (format(name).open)(dir, 7).unwrap()
}

fn user(text: &str) -> StoredMessage {
    StoredMessage::text(Role::User, text)
}

fn reply(text: &str) -> StoredMessage {
    StoredMessage::text(Role::Assistant, text)
}

fn call(id: &str) -> StoredMessage {
    let call = Part::Call(ToolCall::new(id, "read", "{\"b\": 1,\"a\":2}"));
    StoredMessage { role: Role::Assistant, parts: vec![Part::Text("I look.".into()), call] }
}

fn result(id: &str, output: &str) -> StoredMessage {
    let (name, is_error) = ("read".into(), false);
    let part = Part::Result { id: id.into(), name, output: output.into(), is_error };
    StoredMessage { role: Role::Tool, parts: vec![part] }
}

fn summary(role: Role, text: &str) -> StoredMessage {
    StoredMessage { role, parts: vec![Part::Summary(text.into())] }
}

fn messages(said: &[StoredMessage]) -> Vec<JournalEntry> {
    said.iter().cloned().map(JournalEntry::Message).collect()
}

const LOSSLESS: [&str; 6] = [
    "ctxbench-store",
    "codex-rollout",
    "opencode-tables",
    "pi-jsonl",
    "gemini-cli-jsonl",
    "claude-code-jsonl",
];

fn written(name: &str, dir: &Path, entries: &[JournalEntry]) -> ReopenedSession {
    let mut p = open(name, dir);
    for e in entries {
        p.append(e).unwrap();
    }
    drop(p);
    open(name, dir).load().unwrap()
}

#[test]
fn what_was_said_comes_back() {
    let all = [
        user("do it"),
        call("c1"),
        result("c1", "long output"),
        reply("done\n# with a heading"),
        user("and?"),
    ];
    for name in LOSSLESS {
        let f = tempfile::tempdir().unwrap();
        let loaded = written(name, f.path(), &messages(&all));
        assert!(losses(&all, &loaded.context).equal, "{name}: {:?}", loaded.context);
        assert!(loaded.bytes_read > 50 && loaded.notes.is_empty(), "{name}");
        assert_eq!(losses(&all, &open(name, f.path()).log().unwrap()).lost, 0, "{name}");
    }
    let f = tempfile::tempdir().unwrap();
    let said = messages(&[user("do it"), reply("done\n# with a heading\nok")]);
    let loaded = written("aider-markdown", f.path(), &said);
    // The heading is dropped. The start of the next session, "\n# aider chat started at …\n\n",
    // leaves its empty lines (docs/sources/aider.md §1.5).
    assert_eq!(loaded.context, [user("do it  \n"), reply("\ndone\nok\n\n\n\n")]);
}

#[test]
fn a_compaction_with_a_tail_comes_back_in_its_order() {
    // docs/sources/opencode.md §9, 45 and 47: marker, summary, tail, later; the tail may begin with
    // the assistant.
    let old =
        [user("old"), reply("old reply"), user("u2"), call("c"), result("c", "out"), reply("a2")];
    for (name, role) in
        LOSSLESS.map(|n| (n, if n.starts_with("opencode") { Role::Assistant } else { Role::User }))
    {
        for from in [2, 3] {
            let f = tempfile::tempdir().unwrap();
            let mut view = vec![summary(role, "S")];
            if role == Role::Assistant {
                view.insert(0, user("What was it about?"));
            }
            view.extend_from_slice(&old[from..]);
            let mut entries = messages(&old);
            entries.push(JournalEntry::View(view.clone()));
            entries.push(JournalEntry::Message(user("later")));
            view.push(user("later"));
            let loaded = written(name, f.path(), &entries);
            assert!(losses(&view, &loaded.context).equal, "{name}: {:?}", loaded.context);
            // The log still contains the messages that the summary replaced.
            assert!(open(name, f.path()).log().unwrap().contains(&user("old")), "{name}");
        }
    }
}

#[test]
fn pruning_is_a_mark_where_a_format_has_one() {
    let said = [user("do it"), call("c"), result("c", "long output")];
    let cleared = |text: &str| vec![user("do it"), call("c"), result("c", text)];
    for (name, words, marked) in [
        ("ctxbench-store", "[gone]", true),
        ("opencode-tables", crate::opencode::log::CLEARED, true),
        // Our interpretation of the facts: no line records the clearing, so the whole result comes
        // back.
        ("claude-code-jsonl", "[gone]", false),
    ] {
        let f = tempfile::tempdir().unwrap();
        let mut entries = messages(&said);
        entries.push(JournalEntry::View(cleared(words)));
        let loaded = written(name, f.path(), &entries);
        let want = if marked { cleared(words) } else { said.to_vec() };
        assert!(losses(&want, &loaded.context).equal, "{name}: {:?}", loaded.context);
        assert!(
            losses(&said, &open(name, f.path()).log().unwrap()).equal,
            "{name}: pruning never deletes"
        );
    }
}

#[test]
fn a_boundary_without_its_summary_does_not_cut() {
    // docs/sources/failure-modes.md, failure mode 15: a crash between boundary and summary.
    let f = tempfile::tempdir().unwrap();
    let said = [user("a"), reply("b")];
    let mut entries = messages(&said);
    entries.push(JournalEntry::View(vec![summary(Role::User, "S"), reply("b")]));
    written("claude-code-jsonl", f.path(), &entries);
    let file =
        f.path().join(".claude/projects/-work-project/00000000-0000-4000-8000-000000000001.jsonl");
    let text = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    assert!(lines[2].contains("compact_boundary") && lines[3].contains("isCompactSummary"));
    std::fs::write(&file, lines[..3].concat()).unwrap();
    let mut p = open("claude-code-jsonl", f.path());
    let loaded = p.load().unwrap();
    assert_eq!(loaded.context, said);
    assert!(loaded.notes[0].contains("no summary"), "{:?}", loaded.notes);
    p.append(&JournalEntry::Message(user("on"))).unwrap();
    assert_eq!(p.load().unwrap().context[2..], [user("on")]);
}

#[test]
fn opencodes_keys_cascade() {
    // docs/sources/chat-history.md §7.7: one statement, after which nothing can be taken back. The
    // store of ctxbench refuses it.
    let f = tempfile::tempdir().unwrap();
    written("opencode-tables", f.path(), &messages(&[user("a"), reply("b")]));
    let db = rusqlite::Connection::open(f.path().join("opencode.db")).unwrap();
    db.execute_batch("PRAGMA foreign_keys = ON; DELETE FROM session").unwrap();
    let left: i64 = db
        .query_row("SELECT (SELECT count(*) FROM message) + (SELECT count(*) FROM part)", [], |r| {
            r.get(0)
        })
        .unwrap();
    assert_eq!(left, 0);
}

#[test]
fn a_damaged_registry_is_no_obstacle() {
    let f = tempfile::tempdir().unwrap();
    let path = f.path().join(".claude.json");
    for text in [
        "{\"projects\": {\"/other\": {\"lastSessionId\": \"x\"}}}",
        "{\"projects\": {\"/oth",
        "{\"projects\":[]}",
        "{\"projects\":\"x\"}",
        "{\"projects\":{\"/work/project\":7}}",
        "[1]",
        "null",
        "\"x\"",
    ] {
        std::fs::write(&path, text).unwrap();
        open("claude-code-jsonl", f.path());
        let is: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        assert!(is["projects"]["/work/project"]["lastSessionId"].is_string(), "{text}: {is}");
        assert_eq!(is["projects"]["/other"]["lastSessionId"] == "x", text.contains("/other"));
    }
}

#[test]
fn a_tool_part_of_another_shape_takes_its_result() {
    for state in ["\"x\"", "[]", "7", "null", "{\"time\":\"x\"}"] {
        let f = tempfile::tempdir().unwrap();
        written("opencode-tables", f.path(), &messages(&[user("a"), call("c")]));
        let db = rusqlite::Connection::open(f.path().join("opencode.db")).unwrap();
        let change =
            "UPDATE part SET data = json_set(data, '$.state', json(?1)) WHERE data LIKE '%callID%'";
        assert_eq!(db.execute(change, [state]).unwrap(), 1);
        let mut p = open("opencode-tables", f.path());
        p.append(&JournalEntry::Message(result("c", "out"))).unwrap();
        assert_eq!(p.load().unwrap().context.last(), Some(&result("c", "out")), "{state}");
        p.append(&JournalEntry::View(
            [p.load().unwrap().context[..2].to_vec(), vec![result("c", "cleared")]].concat(),
        ))
        .unwrap();
        assert_eq!(
            p.load().unwrap().context.last(),
            Some(&result("c", crate::opencode::log::CLEARED)),
            "{state}"
        );
    }
}

#[test]
fn reopened_with_the_same_seed_nothing_is_written_over() {
    let f = tempfile::tempdir().unwrap();
    let mut said = vec![user("a")];
    written("opencode-tables", f.path(), &[JournalEntry::Message(user("a"))]);
    for i in 0..4 {
        let more =
            [call(&format!("c{i}")), result(&format!("c{i}"), "out"), reply("done"), user("on")];
        for one in more {
            // `written` opens the session again for every message.
            written("opencode-tables", f.path(), &[JournalEntry::Message(one.clone())]);
            said.push(one);
        }
    }
    assert_eq!(open("opencode-tables", f.path()).load().unwrap().context, said);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    /// Checks the formats that can express any context: after any sequence of messages (a step below
    /// 12), pruning, compaction, rewinding and reopening, the loaded context equals the engine's.
    #[test]
    fn the_loaded_context_is_the_one_in_memory(
        steps in prop::collection::vec((0..19u8, any::<u8>(), any::<prop::sample::Index>()), 1..40),
    ) {
        for name in ["ctxbench-store", "codex-rollout"] {
            let f = tempfile::tempdir().unwrap();
            let mut p = open(name, f.path());
            let (mut journal, mut context) = (Journal::default(), Vec::<StoredMessage>::new());
            let mut written = 0;
            for (at, (step, n, which)) in steps.iter().enumerate() {
                let of = |role| -> Vec<usize> {
                    (0..context.len()).filter(|&i| context[i].role == role).collect()
                };
                match step {
                    0..6 => context.push(user(&format!("say {n}"))),
                    6..12 => {
                        let id = format!("c{at}");
                        context.extend([call(&id), result(&id, &format!("output {n}"))]);
                    }
                    12..14 => if let results @ [_, ..] = &of(Role::Tool)[..] {
                        let pruned = results[which.index(results.len())];
                        if let Part::Result { output, .. } = &mut context[pruned].parts[0] {
                            *output = "[cleared]".into();
                        }
                        journal.became(context.clone());
                    },
                    14..16 => {
                        let users = [of(Role::User), vec![context.len()]].concat();
                        let tail = users[which.index(users.len())];
                        context.splice(..tail, [summary(Role::User, &format!("summary {n}"))]);
                        journal.became(context.clone());
                    }
                    16 => context.truncate(which.index(context.len() + 1)),
                    _ => {
                        drop(p);
                        p = open(name, f.path());
                    }
                }
                journal.grew(context.clone());
                for e in &journal.entries[written..] {
                    p.append(e).unwrap();
                }
                written = journal.entries.len();
                let loaded = p.load().unwrap().context;
                prop_assert!(losses(&context, &loaded).equal, "{name} after {step}: {context:?}\n{loaded:?}");
            }
        }
    }
}

#[test]
fn errors_name_file_cause_and_remedy() {
    let full = || io::Error::from(io::ErrorKind::StorageFull);
    let text = PersistError::io(Path::new("/x/session.jsonl"), "append to it")(full());
    let text = text.to_string();
    assert!(text.starts_with("/x/session.jsonl: could not append to it: "), "{text}");
    assert!(text.ends_with("nothing was changed; free some space and try again"), "{text}");
}
