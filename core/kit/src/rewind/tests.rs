use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use proptest::prelude::*;

use super::*;
use crate::checkpoint::FileOutcome;
use crate::store::NewSession;
use ctxbench_core::content::Part;

/// A session with files in a folder, like the example agent.
struct TestAgent {
    dir: tempfile::TempDir,
    kept: Rewinder,
    session: Id,
}

fn agent() -> TestAgent {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(".agent/sessions.db");
    fs::create_dir(dir.path().join(".agent")).unwrap();
    let mut kept = Rewinder::open(&path, dir.path()).unwrap();
    let title = "a conversation".to_string();
    let session = kept.store.create_session(&NewSession { title, ..Default::default() }).unwrap();
    TestAgent { dir, kept, session }
}

impl TestAgent {
    fn turn(&mut self, text: &str, file: &str, content: &str) -> [Id; 2] {
        let mut files = self.kept.files().unwrap();
        let number = files.begin(text, 0).unwrap();
        files.before_edit(file).unwrap();
        fs::write(self.dir.path().join(file), content).unwrap();
        let messages = [(Role::User, text.to_string()), (Role::Assistant, format!("did {text}"))]
            .map(|(role, text)| (role, vec![Part::Text(text.into())]));
        let ids = self.kept.store.append_messages(self.session, &messages).unwrap();
        let position = Position::Before(ids[0].0);
        self.kept.store.add_checkpoint(self.session, position, None, Some(number)).unwrap();
        [ids[0].0, ids[1].0]
    }

    fn checkpoints(&self, session: Id) -> Vec<Checkpoint> {
        self.kept.store.checkpoints(session).unwrap()
    }

    fn checkpoint(&self, session: Id, name: &str) -> Checkpoint {
        let all = self.checkpoints(session);
        all.into_iter().rfind(|c| c.name.as_deref() == Some(name)).unwrap()
    }

    /// Returns the texts of a session's log.
    fn log(&self, session: Id) -> Vec<String> {
        texts(&self.kept.store.log(session).unwrap())
    }

    fn read(&self, file: &str) -> Option<String> {
        fs::read_to_string(self.dir.path().join(file)).ok()
    }

    fn files(&self) -> BTreeMap<String, String> {
        let all = ["a", "b", "c"].map(|f| Some((f.to_string(), self.read(f)?)));
        all.into_iter().flatten().collect()
    }
}

fn texts(log: &[LoadedMessage]) -> Vec<String> {
    log.iter().flat_map(|m| &m.parts).map(|p| p.content.text().to_string()).collect()
}

#[test]
fn rewind_both_keeps_discarded_messages_in_a_fork() {
    let mut a = agent();
    a.turn("one", "a", "1");
    a.kept.mark(a.session, "works").unwrap();
    a.turn("two", "a", "2");
    a.kept.store.compact(a.session, Some("summary"), &[]).unwrap();
    a.turn("three", "b", "3");
    let to = Target::Checkpoint(a.checkpoint(a.session, "works"));
    let done = a.kept.rewind(a.session, &to, Restore::Both).unwrap();
    assert_eq!(a.files(), BTreeMap::from([("a".to_string(), "1".to_string())]));
    assert_eq!(a.log(a.session), ["one", "did one"]);
    let branch = done.branch.unwrap();
    assert_eq!(
        a.log(branch),
        ["one", "did one", "two", "did two", "summary", "three", "did three"]
    );
    assert_eq!(a.kept.store.session(branch).unwrap().title, "a conversation (discarded)");
    // The fork has all checkpoints, including those before the compaction.
    let names = |s: Id| a.checkpoints(s).len();
    assert_eq!((names(a.session), names(branch)), (2, 5), "two prompts were discarded");
    // It also has the replaced files.
    let undo = a.checkpoint(branch, "before rewind");
    assert_eq!(Some(undo.id), done.undo);
    a.kept.rewind(branch, &Target::Checkpoint(undo), Restore::Code).unwrap();
    assert_eq!(a.files(), [("a", "2"), ("b", "3")].map(|(f, t)| (f.into(), t.into())).into());
}

#[test]
fn rewind_to_message_restores_files_of_that_time() {
    let mut a = agent();
    let [_, answer] = a.turn("one", "a", "1");
    let [prompt, last] = a.turn("two", "a", "2");
    let e = a.kept.rewind(a.session, &Target::Message(last), Restore::Code).unwrap_err();
    assert!(e.to_string().contains("no checkpoint with files follows"), "{e}");
    for (to, content) in [(prompt, "1"), (answer, "1")] {
        fs::write(a.dir.path().join("a"), "2").unwrap();
        let done = a.kept.rewind(a.session, &Target::Message(to), Restore::Code).unwrap();
        assert_eq!(a.read("a").as_deref(), Some(content));
        assert_eq!(done.files.unwrap().count(|o| *o == FileOutcome::Restored), 1);
        assert_eq!((done.branch, done.messages), (None, 0), "the conversation stays");
    }
}

#[test]
fn refused_rewind_changes_nothing() {
    let mut a = agent();
    assert!(matches!(a.kept.mark(a.session, "x"), Err(RewindError::Empty(_))));
    let [first, _] = a.turn("one", "a", "1");
    // Another agent uses the folder.
    let other = a.kept.files().unwrap();
    for what in [Restore::Both, Restore::Code, Restore::Conversation] {
        let e = a.kept.rewind(a.session, &Target::Message(first), what).unwrap_err();
        let message = e.to_string();
        assert!(message.contains("another program uses these checkpoints"), "{message}");
    }
    drop(other);
    // A checkpoint without files, and a message of another session.
    let store = &mut a.kept.store;
    let other = store.create_session(&NewSession::default()).unwrap();
    let message = (Role::User, vec![Part::Text("x".into())]);
    let m = store.append_messages(other, &[message]).unwrap()[0].0;
    let id = store.add_checkpoint(other, Position::After(m), Some("x"), None).unwrap();
    let c = a.checkpoint(other, "x");
    let e = a.kept.rewind(other, &Target::Checkpoint(c), Restore::Both).unwrap_err();
    assert!(matches!(e, RewindError::NoFiles(c) if c == id), "{e}");
    let stranger = Target::Message(m);
    assert!(a.kept.rewind(a.session, &stranger, Restore::Both).is_err());
    assert_eq!(a.log(a.session), ["one", "did one"]);
    assert_eq!(a.read("a").as_deref(), Some("1"));
}

/// Makes inserts into a table fail, as on a full disk; `None` allows them again.
fn fail_inserts(a: &TestAgent, at: Option<&str>) {
    let db = rusqlite::Connection::open(a.dir.path().join(".agent/sessions.db")).unwrap();
    db.execute_batch("DROP TRIGGER IF EXISTS refuse").unwrap();
    if let Some(at) = at {
        let no = "BEGIN SELECT RAISE(ABORT, 'the disk is full'); END";
        db.execute_batch(&format!("CREATE TRIGGER refuse BEFORE INSERT ON {at} {no}")).unwrap();
    }
}

#[test]
fn interrupted_rewind_keeps_checkpoint_and_can_be_repeated() {
    let written = |content: &str| {
        let all = ["a", "b", "c"].map(|f| (f.to_string(), format!("{content} {f}")));
        BTreeMap::from(all)
    };
    for what in [Restore::Code, Restore::Both] {
        let mut a = agent();
        for file in ["a", "b", "c"] {
            a.turn(&format!("old {file}"), file, &format!("old {file}"));
        }
        a.kept.mark(a.session, "old").unwrap();
        for file in ["a", "b", "c"] {
            a.turn(&format!("new {file}"), file, &format!("new {file}"));
        }
        let to = Target::Checkpoint(a.checkpoint(a.session, "old"));
        let before = a.log(a.session);
        let names = |a: &TestAgent, session: Id| -> Vec<Id> {
            let all = a.checkpoints(session);
            let undo = |c: &&Checkpoint| c.name.as_deref() == Some("before rewind");
            all.iter().filter(undo).map(|c| c.id).collect()
        };

        // The checkpoint cannot be stored: no file changes.
        fail_inserts(&a, Some("checkpoints"));
        let e = a.kept.rewind(a.session, &to, what).unwrap_err();
        assert!(e.to_string().contains("the disk is full"), "{e}");
        assert_eq!((a.files(), names(&a, a.session).len()), (written("new"), 0));
        assert_eq!(a.log(a.session), before);

        // The conversation cannot be rewound: the files changed and have a checkpoint.
        fail_inserts(&a, Some("sessions"));
        let ended = a.kept.rewind(a.session, &to, what);
        assert_eq!(ended.is_err(), what == Restore::Both, "{ended:?}");
        assert_eq!(a.files(), written("old"));
        assert_eq!(a.log(a.session), before);
        assert_eq!(names(&a, a.session).len(), 1);
        // Simulate a crash while files are written.
        fs::write(a.dir.path().join("c"), "new c").unwrap();

        // Repeating it succeeds, and the first of the two checkpoints is still there.
        fail_inserts(&a, None);
        let done = a.kept.rewind(a.session, &to, what).unwrap();
        assert_eq!(a.files(), written("old"));
        let kept_in = done.branch.unwrap_or(a.session);
        assert_eq!(done.branch.is_some(), what == Restore::Both);
        let [first, second] = names(&a, kept_in)[..] else { panic!("expected two") };
        assert_eq!(done.undo, Some(second));
        let all = a.checkpoints(kept_in);
        let back = Target::Checkpoint(all.into_iter().find(|c| c.id == first).unwrap());
        a.kept.rewind(kept_in, &back, Restore::Code).unwrap();
        assert_eq!(a.files(), written("new"));
    }
}

#[test]
fn restore_without_message_to_mark_is_refused() {
    let mut a = agent();
    let [first, _] = a.turn("one", "a", "1");
    a.kept.mark(a.session, "x").unwrap();
    let marked = a.checkpoint(a.session, "x");
    fs::write(a.dir.path().join("a"), "2").unwrap();
    a.kept.store.rewind(a.session, Position::Before(first), "rest").unwrap();
    let to = Target::Checkpoint(marked);
    let e = a.kept.rewind(a.session, &to, Restore::Code).unwrap_err();
    assert!(matches!(e, RewindError::Empty(s) if s == a.session), "{e}");
    assert_eq!(a.read("a").as_deref(), Some("2"));
}

#[derive(Clone, Debug)]
enum Op {
    Turn(u8, u8),
    Compact,
    Mark,
    Fork(prop::sample::Index),
    Rewind(prop::sample::Index, u8),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        5 => (0u8..3, any::<u8>()).prop_map(|(f, t)| Op::Turn(f, t)),
        1 => Just(Op::Compact),
        2 => Just(Op::Mark),
        2 => any::<prop::sample::Index>().prop_map(Op::Fork),
        3 => (any::<prop::sample::Index>(), 0u8..3).prop_map(|(i, w)| Op::Rewind(i, w)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// A checkpoint restores its files and conversation, every message stays in the log of some
    /// session, and overwritten files can be restored.
    #[test]
    fn rewind_loses_nothing(ops in prop::collection::vec(op(), 1..16)) {
        let mut a = agent();
        let mut messages: BTreeSet<String> = BTreeSet::new();
        // Files and messages of each checkpoint, by the number of its files.
        let mut then: BTreeMap<u64, (BTreeMap<String, String>, Vec<String>)> = BTreeMap::new();
        for (i, op) in ops.iter().enumerate() {
            let log = a.log(a.session);
            let newest = |a: &TestAgent| {
                let all = a.checkpoints(a.session);
                all.iter().filter_map(|c| c.files).max().unwrap()
            };
            match op {
                Op::Turn(f, text) => {
                    let files = a.files();
                    let prompt = format!("prompt {i}");
                    a.turn(&prompt, ["a", "b", "c"][usize::from(*f)], &text.to_string());
                    messages.extend([prompt.clone(), format!("did {prompt}")]);
                    then.insert(newest(&a), (files, log));
                }
                Op::Compact => {
                    let summary = format!("summary {i}");
                    a.kept.store.compact(a.session, Some(&summary), &[]).unwrap();
                    messages.insert(summary);
                }
                Op::Mark => {
                    if a.kept.mark(a.session, "m").is_ok() {
                        then.insert(newest(&a), (a.files(), log));
                    }
                }
                Op::Fork(at) => {
                    let own = a.kept.store.load_context(a.session).unwrap();
                    if !own.is_empty() {
                        let at = own[at.index(own.len())].id;
                        a.session = a.kept.store.fork(a.session, at, "fork").unwrap();
                    }
                }
                Op::Rewind(to, what) => {
                    let own: BTreeSet<Id> = a.kept.store.load_context(a.session).unwrap()
                        .iter().map(|m| m.id).collect();
                    let all: Vec<Checkpoint> = a.checkpoints(a.session)
                        .into_iter()
                        .filter(|c| own.contains(&c.position.message()))
                        .filter(|c| c.name.as_deref() != Some("before rewind"))
                        .collect();
                    if all.is_empty() {
                        continue;
                    }
                    let to = all[to.index(all.len())].clone();
                    let what =
                        [Restore::Code, Restore::Conversation, Restore::Both][usize::from(*what)];
                    let (files, before) = (a.files(), log);
                    let (old_files, old_log) = then[&to.files.unwrap()].clone();
                    let done =
                        a.kept.rewind(a.session, &Target::Checkpoint(to), what).unwrap();
                    let after = a.log(a.session);
                    if what == Restore::Conversation {
                        prop_assert_eq!(&a.files(), &files);
                    } else {
                        prop_assert_eq!(&a.files(), &old_files);
                    }
                    if what == Restore::Code {
                        prop_assert_eq!(&after, &before);
                    } else {
                        prop_assert_eq!(&after, &old_log);
                    }
                    if let Some(branch) = done.branch {
                        let kept = a.log(branch);
                        prop_assert_eq!(kept, before.clone());
                        prop_assert_eq!(before.len() - after.len(), done.messages);
                    }
                    if let Some(undo) = done.undo {
                        let at = done.branch.unwrap_or(a.session);
                        let all = a.checkpoints(at);
                        let undo = all.into_iter().find(|c| c.id == undo).unwrap();
                        a.kept.rewind(at, &Target::Checkpoint(undo), Restore::Code).unwrap();
                        prop_assert_eq!(a.files(), files);
                    }
                }
            }
        }
        let mut found: BTreeSet<String> = BTreeSet::new();
        for s in a.kept.store.sessions().unwrap() {
            found.extend(a.log(s.id));
        }
        prop_assert_eq!(found, messages);
    }
}
