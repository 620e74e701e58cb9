use std::fs;
use std::sync::atomic::{AtomicI64, Ordering};

use super::*;
use rusqlite::Connection;

fn ids() -> IdGenerator {
    let ticks = AtomicI64::new(1_000);
    IdGenerator::new(move || ticks.fetch_add(1, Ordering::Relaxed), 1)
}

fn store() -> (tempfile::TempDir, Store, Id) {
    let folder = tempfile::tempdir().unwrap();
    let mut s = Store::open_with(folder.path().join("s.db"), ids()).unwrap();
    let session = s.create_session(&NewSession::default()).unwrap();
    (folder, s, session)
}

fn text(text: &str) -> Part {
    Part::Text(text.into())
}

pub(super) fn result(output: &str) -> Part {
    Part::Result { id: "1".into(), name: "read".into(), output: output.into(), is_error: false }
}

fn append_text(s: &mut Store, session: Id, said: &str) -> Id {
    s.append_messages(session, &[(Role::User, vec![text(said)])]).unwrap()[0].0
}

/// Returns the texts and outputs of messages; the summary for a boundary.
pub(super) fn texts_of(messages: &[LoadedMessage]) -> Vec<String> {
    let parts = messages.iter().flat_map(|m| &m.parts);
    parts.map(|p| p.content.text().to_string()).collect()
}

fn texts(s: &Store, session: Id) -> Vec<String> {
    texts_of(&s.load_context(session).unwrap())
}

#[cfg(unix)]
#[test]
fn open_new_store_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let tmp = tempfile::tempdir().unwrap();
    let mode = |name: &str| fs::metadata(tmp.path().join(name)).unwrap().permissions().mode();
    let mut store = Store::open(tmp.path().join("new.db")).unwrap();
    store.create_session(&NewSession::default()).unwrap();
    assert_eq!(mode("new.db") & 0o777, 0o600);
    for name in ["new.db-wal", "new.db-shm"] {
        if tmp.path().join(name).exists() {
            assert_eq!(mode(name) & 0o777, 0o600, "{name}");
        }
    }
}

#[test]
fn prune_part_of_a_message_is_refused() {
    let (_folder, mut s, session) = store();
    let said = s.append_messages(session, &[(Role::User, vec![text("hi")])]).unwrap();
    let e = s.prune_part(session, said[0].1[0], "cut").unwrap_err().to_string();
    assert!(e.contains("there is no tool result"), "{e}");
}

#[test]
fn load_context_over_batches_keeps_order() {
    let (_folder, mut s, session) = store();
    let other = s.create_session(&NewSession::default()).unwrap();
    let want: Vec<String> = (0..2 * BATCH + 7).map(|i| format!("m{i}")).collect();
    for t in &want {
        append_text(&mut s, session, t);
        append_text(&mut s, other, "elsewhere");
    }
    assert_eq!(texts(&s, session), want);
}

#[test]
fn reopened_store_continues_after_clock_set_back() {
    let f = tempfile::tempdir().unwrap();
    let path = f.path().join("s.db");
    let session = {
        let mut s = Store::open_with(&path, IdGenerator::new(|| 9_000, 1)).unwrap();
        let session =
            s.create_session(&NewSession { title: "t".into(), ..NewSession::default() }).unwrap();
        append_text(&mut s, session, "one");
        session
    };
    // The clock was set back in between.
    let mut s = Store::open_with(&path, IdGenerator::new(|| 10, 2)).unwrap();
    append_text(&mut s, session, "two");
    assert_eq!(texts(&s, session), ["one", "two"]);
    let e = s.append_messages(ids().next_id(), &[]).unwrap_err().to_string();
    assert!(e.contains("s.db") && e.contains("no session"), "{e}");
}

#[test]
fn open_other_file_is_refused_and_unchanged() {
    let f = tempfile::tempdir().unwrap();
    let path = f.path().join("notes.txt");
    fs::write(&path, "these are my notes, not a database at all").unwrap();
    let e = Store::open(&path).err().unwrap().to_string();
    assert!(e.contains("notes.txt: could not open it") && e.contains("another path"), "{e}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "these are my notes, not a database at all");

    let foreign = f.path().join("foreign.db");
    Connection::open(&foreign).unwrap().execute_batch("CREATE TABLE theirs (x)").unwrap();
    let before = fs::read(&foreign).unwrap();
    let e = Store::open(&foreign).err().unwrap().to_string();
    assert!(e.contains("a database of another program"), "{e}");
    assert_eq!(fs::read(&foreign).unwrap(), before);

    let newer = f.path().join("newer.db");
    drop(Store::open(&newer).unwrap());
    Connection::open(&newer).unwrap().execute_batch("PRAGMA user_version = 99").unwrap();
    let e = Store::open(&newer).err().unwrap().to_string();
    assert!(e.contains("format 99"), "{e}");
    assert_eq!(fs::read_dir(f.path()).unwrap().count(), 3, "no other file was created");
    let e = Store::open(f.path().join("no/such/folder.db")).err().unwrap().to_string();
    assert!(e.contains("check that the folder exists"), "{e}");
}

#[test]
fn rewind_and_fork_at_discarded_message_are_refused() {
    let (_folder, mut s, parent) = store();
    let first = append_text(&mut s, parent, "first");
    let at = append_text(&mut s, parent, "second");
    let fork = s.fork(parent, at, "").unwrap();
    s.rewind(parent, Position::After(first), "").unwrap();
    assert!(s.fork(parent, at, "").unwrap_err().to_string().contains("has no message"));
    // The fork has all messages of its parent, and a fork of a fork those of both.
    assert_eq!(texts(&s, fork), ["first", "second"]);
    s.rewind(fork, Position::Before(first), "").unwrap();
    assert_eq!(texts(&s, fork), [""; 0]);
}

#[test]
fn inherited_summary_is_newest_of_nearest_ancestor() {
    let (_folder, mut s, first) = store();
    let follows = |s: &mut Store, parent| {
        s.create_session(&NewSession { parent: Some(parent), ..Default::default() }).unwrap()
    };
    let second = follows(&mut s, first);
    let third = follows(&mut s, second);
    append_text(&mut s, first, "said");
    assert_eq!(
        [first, second, third].map(|id| s.inherited_summary(id).unwrap()),
        [None, None, None]
    );
    s.compact(first, Some("old"), &[]).unwrap();
    let b = s.compact(first, Some("summary of the first"), &[]).unwrap();
    let summary = Some((first, "summary of the first".to_string()));
    assert_eq!(s.inherited_summary(second).unwrap(), summary);
    assert_eq!(s.inherited_summary(third).unwrap(), summary, "the second has no summary");
    s.compact(second, Some("what the second did"), &[]).unwrap();
    assert_eq!(s.inherited_summary(third).unwrap().unwrap().0, second);
    let fork = s.fork(first, b, "").unwrap();
    assert_eq!(s.inherited_summary(fork).unwrap(), None, "the fork itself contains the summary");
}

#[test]
fn checkpoints_after_rewind_skip_discarded_messages() {
    let (_folder, mut s, session) = store();
    let first = append_text(&mut s, session, "a");
    let second = append_text(&mut s, session, "b");
    let position = Position::Before(first);
    let id = s.add_checkpoint(session, position, Some("one"), Some(7)).unwrap();
    s.add_checkpoint(session, Position::After(second), None, None).unwrap();
    s.rewind(session, Position::After(first), "").unwrap();
    let left = Checkpoint { id, position, name: Some("one".into()), files: Some(7) };
    assert_eq!(s.checkpoints(session).unwrap(), [left]);
}

#[test]
fn append_on_full_disk_changes_nothing() {
    let (folder, mut s, session) = store();
    append_text(&mut s, session, "kept");
    s.db.execute_batch("PRAGMA max_page_count = 1").unwrap();
    let big = "x".repeat(1_000_000);
    let message = (Role::User, vec![text("half"), text(&big)]);
    let e = s.append_messages(session, &[message]).unwrap_err().to_string();
    assert!(e.contains("s.db") && e.contains("nothing was changed, free some space"), "{e}");
    assert_eq!(texts(&s, session), ["kept"], "not half a message");
    // Space is available again.
    s.db.execute_batch("PRAGMA max_page_count = 100000").unwrap();
    append_text(&mut s, session, &big);
    drop(s);
    let s = Store::open_with(folder.path().join("s.db"), ids()).unwrap();
    assert_eq!(texts(&s, session), ["kept".to_string(), big]);
}

#[test]
fn two_writers_take_turns() {
    let f = tempfile::tempdir().unwrap();
    let path = f.path().join("s.db");
    let session = Store::open(&path).unwrap().create_session(&NewSession::default()).unwrap();
    let write = |name: &'static str| {
        let path = path.clone();
        move || {
            let mut s = Store::open(&path).unwrap();
            for i in 0..40 {
                append_text(&mut s, session, &format!("{name} {i}"));
            }
        }
    };
    std::thread::scope(|t| {
        t.spawn(write("a"));
        t.spawn(write("b"));
    });
    let got = texts(&Store::open(&path).unwrap(), session);
    for name in ["a", "b"] {
        let own = got.iter().filter(|t| t.starts_with(name)).cloned();
        assert!(own.eq((0..40).map(|i| format!("{name} {i}"))), "{got:?}");
    }
    assert_eq!(got.len(), 80);
}

#[test]
fn load_context_reads_only_recent_messages() {
    let (_folder, mut s, session) = store();
    let all: Vec<(Role, Vec<Part>)> =
        (0..3_000).map(|i| (Role::User, vec![text(&i.to_string())])).collect();
    s.append_messages(session, &all).unwrap();
    let message = append_text(&mut s, session, "new").to_string();
    // Steps of SQLite's virtual machine, which do not depend on time. 50 messages take a few hundred.
    let steps = |sql: &str, args: &[&dyn rusqlite::ToSql]| {
        let mut q = s.db.prepare(sql).unwrap();
        let mut rows = q.query(args).unwrap();
        while rows.next().unwrap().is_some() {}
        drop(rows);
        q.get_status(rusqlite::StatementStatus::VmStep)
    };
    let newest = steps(load::NEWEST, &[&session.to_string(), &"~", &(BATCH as i64)]);
    let parts = steps(load::PARTS, &[&session.to_string(), &message]);
    assert!(
        (BATCH as i32..1_000).contains(&newest) && (1..100).contains(&parts),
        "{newest} steps for messages, {parts} for parts"
    );
}
