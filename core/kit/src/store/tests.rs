use std::fs;
use std::sync::atomic::{AtomicI64, Ordering};

use proptest::prelude::*;
use rusqlite::Connection;
use serde_json::{Value, json};

use super::*;

fn ids() -> Ulids {
    let ticks = AtomicI64::new(1_000);
    Ulids::new(move || ticks.fetch_add(1, Ordering::Relaxed), 1)
}

fn memory() -> (Store, Ulid) {
    let mut s = Store::open_in_memory(ids()).unwrap();
    let session = s.create_session(&NewSession::default()).unwrap();
    (s, session)
}

fn say(s: &mut Store, session: Ulid, text: &str) -> Ulid {
    s.append_message(session, Role::User, &[NewPart::text(text)]).unwrap().0
}

fn texts(s: &Store, session: Ulid) -> Vec<String> {
    let text = |p: &LoadedPart| p.data["text"].as_str().map(str::to_string);
    s.load_context(session).unwrap().iter().flat_map(|m| m.parts.iter().filter_map(text)).collect()
}

#[cfg(unix)]
#[test]
fn a_new_store_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let tmp = tempfile::tempdir().unwrap();
    let mode = |name: &str| fs::metadata(tmp.path().join(name)).unwrap().permissions().mode();
    let mut store = Store::open(tmp.path().join("new.db")).unwrap();
    store.create_session(&NewSession::default()).unwrap();
    assert_eq!(mode("new.db") & 0o777, 0o600);
    for beside in ["new.db-wal", "new.db-shm"] {
        if tmp.path().join(beside).exists() {
            assert_eq!(mode(beside) & 0o777, 0o600, "{beside}");
        }
    }
}

#[test]
fn loading_stops_at_the_newest_finished_boundary() {
    let (mut s, session) = memory();
    say(&mut s, session, "old");
    s.insert_boundary(session, "first").unwrap();
    say(&mut s, session, "middle");
    let b = s.insert_boundary(session, "second").unwrap();
    say(&mut s, session, "new");
    assert_eq!(texts(&s, session), ["second", "new"]);
    let loaded = s.load_context(session).unwrap();
    assert_eq!((loaded[0].id, loaded[0].boundary, loaded[1].boundary), (b, true, false));
}

#[test]
fn an_unfinished_boundary_stops_nothing_until_it_is_finished() {
    let (mut s, session) = memory();
    say(&mut s, session, "old");
    let b = s.begin_boundary(session).unwrap();
    say(&mut s, session, "said meanwhile");
    assert_eq!(texts(&s, session), ["old", "said meanwhile"]);
    s.finish_boundary(b, "summary").unwrap();
    assert_eq!(texts(&s, session), ["summary", "said meanwhile"]);
    assert!(matches!(s.finish_boundary(b, "again"), Err(StoreError::NoBoundary { .. })));
}

#[test]
fn a_pruned_result_shows_a_placeholder_and_keeps_its_data() {
    let (mut s, session) = memory();
    let result = ctxbench_core::content::Part::Result {
        id: "1".into(),
        name: "read".into(),
        output: "long".into(),
        is_error: false,
    };
    let (_, parts) = s.append_message(session, Role::Tool, &[NewPart::from(&result)]).unwrap();
    s.prune_part(parts[0], 77).unwrap();
    s.prune_part(parts[0], 99).unwrap();
    let shown = &s.load_context(session).unwrap()[0].parts[0];
    assert_eq!(
        (&shown.data["output"], &shown.data["call_id"], shown.compacted_at),
        (&json!(PRUNED), &json!("1"), Some(77))
    );
    assert_eq!(s.part_data(parts[0]).unwrap()["output"], "long");
    let (_, text) = s.append_message(session, Role::User, &[NewPart::text("hi")]).unwrap();
    let e = s.prune_part(text[0], 1).unwrap_err().to_string();
    assert!(e.contains("only a tool_result"), "{e}");
}

#[test]
fn order_holds_over_batches() {
    let (mut s, session) = memory();
    let other = s.create_session(&NewSession::default()).unwrap();
    let want: Vec<String> = (0..2 * BATCH + 7).map(|i| format!("m{i}")).collect();
    for t in &want {
        say(&mut s, session, t);
        say(&mut s, other, "elsewhere");
    }
    assert_eq!(texts(&s, session), want);
}

#[test]
fn going_back_marks_and_can_be_taken_back() {
    let (mut s, session) = memory();
    let first = say(&mut s, session, "first");
    s.insert_boundary(session, "summary").unwrap();
    say(&mut s, session, "second");
    assert_eq!(s.rewind(session, first, 500).unwrap(), 2);
    assert_eq!(texts(&s, session), ["first"]);
    assert_eq!(s.restore(session, 500).unwrap(), 2);
    assert_eq!(texts(&s, session), ["summary", "second"]);
}

#[test]
fn a_file_opened_again_goes_on() {
    let f = tempfile::tempdir().unwrap();
    let path = f.path().join("s.db");
    let session = {
        let mut s = Store::open_with(&path, Ulids::new(|| 9_000, 1)).unwrap();
        let session =
            s.create_session(&NewSession { title: "t".into(), ..NewSession::default() }).unwrap();
        say(&mut s, session, "one");
        session
    };
    // The clock went back in between.
    let mut s = Store::open_with(&path, Ulids::new(|| 10, 2)).unwrap();
    say(&mut s, session, "two");
    assert_eq!(texts(&s, session), ["one", "two"]);
    let e = s.append_message(ids().next_id(), Role::User, &[]).unwrap_err().to_string();
    assert!(e.contains("s.db") && e.contains("no session"), "{e}");
}

#[test]
fn other_files_are_refused_and_untouched() {
    let f = tempfile::tempdir().unwrap();
    let path = f.path().join("notes.txt");
    fs::write(&path, "these are my notes, not a database at all").unwrap();
    let e = Store::open(&path).err().unwrap().to_string();
    assert!(e.contains("notes.txt is not an SQLite database") && e.contains("another path"), "{e}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "these are my notes, not a database at all");

    let foreign = f.path().join("foreign.db");
    Connection::open(&foreign).unwrap().execute_batch("CREATE TABLE theirs (x)").unwrap();
    let before = fs::read(&foreign).unwrap();
    assert!(matches!(Store::open(&foreign).err(), Some(StoreError::Foreign { .. })));
    assert_eq!(fs::read(&foreign).unwrap(), before);

    let newer = f.path().join("newer.db");
    drop(Store::open(&newer).unwrap());
    Connection::open(&newer).unwrap().execute_batch("PRAGMA user_version = 99").unwrap();
    let e = Store::open(&newer).err().unwrap().to_string();
    assert!(e.contains("format 99"), "{e}");
    assert_eq!(fs::read_dir(f.path()).unwrap().count(), 3, "nothing is left beside the files");
    assert!(
        Store::open(f.path().join("no/such/folder.db"))
            .err()
            .unwrap()
            .to_string()
            .contains("check that the folder exists")
    );
}

#[test]
fn deleting_a_session_can_be_taken_back_and_takes_no_fork_with_it() {
    // docs/sources/chat-history.md §7.7: with cascading keys this would be one statement,
    // and final.
    let (mut s, parent) = memory();
    say(&mut s, parent, "first");
    s.insert_boundary(parent, "summary").unwrap();
    let at = say(&mut s, parent, "shared");
    say(&mut s, parent, "after the fork");
    let fork = s.fork(parent, at, "another way").unwrap();
    say(&mut s, fork, "in the fork");
    s.delete_session(parent, 1_000).unwrap();
    assert!(matches!(s.load_context(parent), Err(StoreError::NoSession { .. })));
    assert_eq!(texts(&s, fork), ["summary", "shared", "in the fork"]);
    // SQLite itself refuses to take what others stand on.
    let e =
        s.db.execute("DELETE FROM sessions WHERE id = ?1", [parent.to_string()])
            .unwrap_err()
            .to_string();
    assert!(e.contains("FOREIGN KEY"), "{e}");

    assert_eq!(s.vacuum(1_500, 1_000).unwrap(), Vacuumed { shrunk: true, ..Vacuumed::default() });
    s.undelete_session(parent).unwrap();
    assert_eq!(texts(&s, parent), ["summary", "shared", "after the fork"]);

    // Past the retention the parent keeps what the fork stands on, and no more.
    s.delete_session(parent, 1_000).unwrap();
    let gone = s.vacuum(2_000, 1_000).unwrap();
    assert_eq!((gone.sessions, gone.messages, gone.held), (0, 1, 1));
    assert_eq!(texts(&s, fork), ["summary", "shared", "in the fork"]);
    let log: Vec<Value> = s
        .log(fork)
        .unwrap()
        .iter()
        .flat_map(|m| m.parts.iter().map(|p| p.data["text"].clone()))
        .collect();
    assert_eq!(
        log,
        [json!("first"), json!(null), json!("summary"), json!("shared"), json!("in the fork")]
    );

    // When the fork has gone too, nothing is left.
    s.delete_session(fork, 1_500).unwrap();
    let gone = s.vacuum(2_500, 1_000).unwrap();
    assert_eq!((gone.sessions, gone.held), (2, 0));
    for table in ["sessions", "messages", "parts"] {
        let left: i64 =
            s.db.query_row(&format!("SELECT count(*) FROM {table}"), [], |r| r.get(0)).unwrap();
        assert_eq!(left, 0, "{table}");
    }
}

#[test]
fn marks_on_the_parent_do_not_reach_a_fork() {
    let (mut s, parent) = memory();
    let first = say(&mut s, parent, "first");
    let result = ctxbench_core::content::Part::Result {
        id: "1".into(),
        name: "read".into(),
        output: "long".into(),
        is_error: false,
    };
    let (at, parts) = s.append_message(parent, Role::Tool, &[NewPart::from(&result)]).unwrap();
    let fork = s.fork(parent, at, "").unwrap();
    s.prune_part(parts[0], 5).unwrap();
    s.rewind(parent, first, i64::MAX - 1).unwrap();
    assert_eq!(s.load_context(parent).unwrap().len(), 1);
    assert_eq!(s.load_context(fork).unwrap()[1].parts[0].data["output"], "long");
    assert_eq!(
        s.log(fork).unwrap().len(),
        2,
        "what the parent took back later is in the fork's log"
    );
    let e = s.rewind(fork, first, 9).unwrap_err().to_string();
    assert!(e.contains("forking its parent"), "{e}");
    assert!(
        matches!(s.fork(parent, at, ""), Err(StoreError::NoMessage { .. })),
        "a message that was taken back"
    );
}

#[test]
fn a_compaction_repeats_what_it_keeps_and_the_log_does_not() {
    let (mut s, session) = memory();
    say(&mut s, session, "old");
    say(&mut s, session, "kept");
    s.compact(session, Some("summary"), &[(Role::User, vec![NewPart::text("kept")])]).unwrap();
    say(&mut s, session, "new");
    assert_eq!(texts(&s, session), ["summary", "kept", "new"]);
    assert_eq!(s.log(session).unwrap().len(), 4, "old, kept, the boundary, new");
}

#[test]
fn usage_adds_up_by_model_and_survives_its_message() {
    use ctxbench_core::request::Usage;
    let (mut s, session) = memory();
    let first = say(&mut s, session, "a");
    let m = say(&mut s, session, "b");
    let one = Usage { input: 10, output: 2, cache_read: 100, ..Usage::default() };
    s.add_usage(session, Some(m), "big", &one).unwrap();
    s.add_usage(session, None, "big", &one).unwrap();
    s.add_usage(session, None, "small", &Usage { input: 1, ..Usage::default() }).unwrap();
    s.rewind(session, first, 10).unwrap();
    assert_eq!(s.vacuum(20, 5).unwrap().messages, 1);
    let sum = s.usage(session).unwrap();
    assert_eq!((sum["big"].input, sum["big"].cache_read, sum["small"].input), (20, 200, 1));
    assert!(matches!(
        s.add_usage(session, Some(m), "big", &one),
        Err(StoreError::NoMessage { .. })
    ));
}

#[test]
fn a_session_is_told_the_newest_summary_of_those_it_follows() {
    let (mut s, first) = memory();
    let follows = |s: &mut Store, parent| {
        s.create_session(&NewSession { parent: Some(parent), ..Default::default() }).unwrap()
    };
    let second = follows(&mut s, first);
    let third = follows(&mut s, second);
    say(&mut s, first, "said");
    assert_eq!([first, second, third].map(|id| s.inherited(id).unwrap()), [None, None, None]);
    s.insert_boundary(first, "old").unwrap();
    let b = s.insert_boundary(first, "what the first did").unwrap();
    let told = Some((first, "what the first did".to_string()));
    assert_eq!(s.inherited(second).unwrap(), told);
    assert_eq!(s.inherited(third).unwrap(), told, "the second has none of its own");
    s.insert_boundary(second, "what the second did").unwrap();
    assert_eq!(s.inherited(third).unwrap().unwrap().0, second);
    let fork = s.fork(first, b, "").unwrap();
    assert_eq!(s.inherited(fork).unwrap(), None, "it shows the summary itself");
    s.delete_session(second, 1).unwrap();
    assert_eq!(s.inherited(third).unwrap(), None, "a deleted parent tells nothing");
}

#[test]
fn checkpoints_belong_to_messages() {
    let (mut s, session) = memory();
    let first = say(&mut s, session, "a");
    let second = say(&mut s, session, "b");
    let manifest = json!({"src/a.rs": "sha256:00"});
    let before = |m, manifest: &Value| NewCheckpoint::new(Place::Before(m), manifest.clone());
    s.add_checkpoint(session, &before(first, &manifest)).unwrap();
    s.add_checkpoint(session, &before(second, &json!({}))).unwrap();
    s.rewind(session, first, 10).unwrap();
    let left = s.checkpoints(session).unwrap();
    assert_eq!(
        left.iter().map(|c| (c.what.place, &c.what.manifest)).collect::<Vec<_>>(),
        [(Place::Before(first), &manifest)]
    );
}

#[test]
fn a_full_disk_is_named_and_keeps_what_was_there() {
    let f = tempfile::tempdir().unwrap();
    let path = f.path().join("s.db");
    let mut s = Store::open_with(&path, ids()).unwrap();
    let session = s.create_session(&NewSession::default()).unwrap();
    say(&mut s, session, "kept");
    s.db.execute_batch("PRAGMA max_page_count = 1").unwrap();
    let big = "x".repeat(1_000_000);
    let e = s
        .append_message(session, Role::User, &[NewPart::text("half"), NewPart::text(&big)])
        .unwrap_err()
        .to_string();
    assert!(e.contains("s.db") && e.contains("the disk is full; nothing was changed"), "{e}");
    assert_eq!(texts(&s, session), ["kept"], "not half a message");
    // There is room again.
    s.db.execute_batch("PRAGMA max_page_count = 100000").unwrap();
    say(&mut s, session, &big);
    drop(s);
    let s = Store::open_with(&path, ids()).unwrap();
    assert_eq!(texts(&s, session), ["kept".to_string(), big]);
}

#[test]
fn a_read_only_file_can_be_read_and_says_why_it_cannot_be_written() {
    let f = tempfile::tempdir().unwrap();
    let path = f.path().join("s.db");
    let mut s = Store::open_with(&path, ids()).unwrap();
    let session = s.create_session(&NewSession::default()).unwrap();
    say(&mut s, session, "kept");
    drop(s);
    let mut s = Store::open_read_only(&path).unwrap();
    let e = s.append_message(session, Role::User, &[NewPart::text("no")]).unwrap_err().to_string();
    assert!(e.contains("s.db") && e.contains("it is read-only; nothing was changed"), "{e}");
    assert_eq!(texts(&s, session), ["kept"]);
}

#[test]
fn reading_leaves_no_trace_and_takes_no_other_database_for_a_store() {
    let f = tempfile::tempdir().unwrap();
    let folder = || {
        let files = fs::read_dir(f.path()).unwrap().map(|e| e.unwrap().path());
        let mut all: Vec<_> = files.map(|p| (p.clone(), fs::read(p).unwrap())).collect();
        all.sort();
        all
    };
    let path = f.path().join("a store? 50%#1.db");
    let mut s = Store::open_with(&path, ids()).unwrap();
    let session = s.create_session(&NewSession::default()).unwrap();
    say(&mut s, session, "kept");
    // While somebody writes, what was written is seen, too.
    assert_eq!(texts(&Store::open_read_only(&path).unwrap(), session), ["kept"]);
    drop(s);
    for (name, make) in [
        ("first.db", schema::first_format as fn(&std::path::Path)),
        ("second.db", schema::second_format),
    ] {
        make(&f.path().join(name));
    }
    let empty = f.path().join("empty.db");
    Connection::open(&empty).unwrap().execute_batch("PRAGMA user_version = 7").unwrap();
    let before = folder();
    assert_eq!(texts(&Store::open_read_only(&path).unwrap(), session), ["kept"]);
    let mut old = Store::open_read_only(f.path().join("first.db")).unwrap();
    let (id, _) = old.sessions().unwrap()[0];
    assert_eq!(texts(&old, id), ["from the first format"]);
    let e = old.append_message(id, Role::User, &[NewPart::text("no")]).unwrap_err().to_string();
    assert!(e.contains("it is read-only; nothing was changed"), "{e}");
    let old = Store::open_read_only(f.path().join("second.db")).unwrap();
    assert_eq!(old.sessions().unwrap().len(), 2, "the session and its fork");
    let e = Store::open_read_only(&empty).err().unwrap().to_string();
    assert!(e.contains("empty.db is a database of another program"), "{e}");
    assert_eq!(folder(), before, "neither in the files nor beside them");
}

#[test]
fn a_store_of_the_first_format_is_brought_up_to_date() {
    let f = tempfile::tempdir().unwrap();
    let path = f.path().join("s.db");
    schema::first_format(&path);
    let mut s = Store::open_with(&path, ids()).unwrap();
    let (session, _) = s.sessions().unwrap()[0].clone();
    assert_eq!(texts(&s, session), ["from the first format"]);
    let at = say(&mut s, session, "and on");
    let fork = s.fork(session, at, "").unwrap();
    assert_eq!(texts(&s, fork), ["from the first format", "and on"]);
}

#[test]
fn forks_of_the_second_format_have_their_log() {
    let f = tempfile::tempdir().unwrap();
    let path = f.path().join("s.db");
    schema::second_format(&path);
    let s = Store::open_with(&path, ids()).unwrap();
    let [parent, fork] = [0, 1].map(|i| s.sessions().unwrap()[i].0);
    assert_eq!(logged(&s, parent), ["a", "S", "c"]);
    assert_eq!(logged(&s, fork), ["a", "taken back after", "S", "c", "in the fork", "S2"]);
}

#[test]
fn two_programs_take_turns() {
    let f = tempfile::tempdir().unwrap();
    let path = f.path().join("s.db");
    let session = Store::open(&path).unwrap().create_session(&NewSession::default()).unwrap();
    let write = |name: &'static str| {
        let path = path.clone();
        move || {
            let mut s = Store::open(&path).unwrap();
            for i in 0..40 {
                say(&mut s, session, &format!("{name} {i}"));
            }
        }
    };
    std::thread::scope(|t| {
        t.spawn(write("a"));
        t.spawn(write("b"));
    });
    let got = texts(&Store::open(&path).unwrap(), session);
    for name in ["a", "b"] {
        let own: Vec<&String> = got.iter().filter(|t| t.starts_with(name)).collect();
        assert_eq!(
            own,
            (0..40).map(|i| format!("{name} {i}")).collect::<Vec<_>>().iter().collect::<Vec<_>>()
        );
    }
    assert_eq!(got.len(), 80);
}

#[derive(Clone, Debug)]
enum Step {
    Say(u8),
    Boundary,
    Unfinished,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn what_follows_the_newest_boundary_is_what_is_loaded(
        steps in prop::collection::vec(prop_oneof![8 => any::<u8>().prop_map(Step::Say), 1 => Just(Step::Boundary), 1 => Just(Step::Unfinished)], 0..120),
    ) {
        let (mut s, session) = memory();
        let mut want: Vec<String> = Vec::new();
        for step in steps {
            match step {
                Step::Say(n) => {
                    say(&mut s, session, &n.to_string());
                    want.push(n.to_string());
                }
                Step::Boundary => {
                    s.insert_boundary(session, "summary").unwrap();
                    want = vec!["summary".into()];
                }
                Step::Unfinished => drop(s.begin_boundary(session).unwrap()),
            }
        }
        prop_assert_eq!(texts(&s, session), want);
    }
}

#[test]
fn loading_looks_at_nothing_that_lies_before() {
    let (mut s, session) = memory();
    let all: Vec<(Role, Vec<NewPart>)> =
        (0..3_000).map(|i| (Role::User, vec![NewPart::text(&i.to_string())])).collect();
    s.append_messages(session, &all).unwrap();
    let message = say(&mut s, session, "new").to_string();
    // Steps of SQLite's machine: what was looked at, whatever the clock says. 50 messages cost some
    // hundred.
    let steps = |sql: &str, args: &[&dyn rusqlite::ToSql]| {
        let mut q = s.db.prepare(sql).unwrap();
        let mut rows = q.query(args).unwrap();
        while rows.next().unwrap().is_some() {}
        drop(rows);
        q.get_status(rusqlite::StatementStatus::VmStep)
    };
    let newest = steps(load::NEWEST, &[&session.to_string(), &"~", &(BATCH as i64)]);
    let parts = steps(load::PARTS, &[&message]);
    assert!(
        (BATCH as i32..1_000).contains(&newest) && (1..100).contains(&parts),
        "{newest} steps for messages, {parts} for parts"
    );
}

/// What is said in a session's log, a boundary by its summary.
fn logged(s: &Store, session: Ulid) -> Vec<String> {
    let text = |p: &LoadedPart| p.data["text"].as_str().map(str::to_string);
    s.log(session).unwrap().iter().flat_map(|m| m.parts.iter().filter_map(text)).collect()
}

#[test]
fn the_log_of_a_fork_of_a_fork_is_what_was_said_on_its_way() {
    let (mut s, p) = memory();
    say(&mut s, p, "a");
    say(&mut s, p, "b");
    let c = say(&mut s, p, "c");
    let f = s.fork(p, c, "").unwrap();
    let b = s.load_context(f).unwrap()[1].id;
    let g = s.fork(f, b, "").unwrap();
    assert_eq!(logged(&s, g), ["a", "b"]);
    say(&mut s, g, "in g");
    // Going back inside a fork takes back what it has from its parent too.
    s.rewind(f, b, 9_000).unwrap();
    assert_eq!(logged(&s, f), ["a", "b"]);
    assert_eq!(
        (logged(&s, p), logged(&s, g)),
        (vec!["a".into(), "b".into(), "c".into()], vec!["a".into(), "b".into(), "in g".into()])
    );
    s.restore(f, 9_000).unwrap();
    assert_eq!(logged(&s, f), ["a", "b", "c"]);
}

#[test]
fn what_lies_before_a_fork_stays_as_it_was_at_the_fork() {
    let (mut s, p) = memory();
    let a = say(&mut s, p, "a");
    say(&mut s, p, "taken back");
    s.rewind(p, a, 5).unwrap();
    say(&mut s, p, "b");
    let open = s.begin_boundary(p).unwrap();
    s.compact(p, Some("S"), &[(Role::User, vec![NewPart::text("b")])]).unwrap();
    let c = say(&mut s, p, "c");
    let f = s.fork(p, c, "").unwrap();
    assert_eq!(texts(&s, f), ["S", "b", "c"]);
    // Later marks on the parent change nothing: not a restoration, not a compaction that ends late,
    // not going back.
    s.restore(p, 5).unwrap();
    s.finish_boundary(open, "late").unwrap();
    assert_eq!(logged(&s, p), ["a", "taken back", "b", "late", "S", "c"]);
    s.rewind(p, a, 6).unwrap();
    let g = s.fork(f, s.load_context(f).unwrap()[2].id, "").unwrap();
    for fork in [f, g] {
        assert_eq!(logged(&s, fork), ["a", "b", "S", "c"], "what a compaction repeats comes once");
    }
    // What a fork's log needs is not removed.
    s.vacuum(i64::MAX, 0).unwrap();
    assert_eq!(
        (logged(&s, g), logged(&s, p)),
        (["a", "b", "S", "c"].map(String::from).to_vec(), vec!["a".to_string()])
    );
}

#[test]
fn a_compaction_that_was_taken_back_or_deleted_cannot_be_finished() {
    let (mut s, session) = memory();
    let first = say(&mut s, session, "first");
    let b = s.begin_boundary(session).unwrap();
    s.rewind(session, first, 500).unwrap();
    let e = s.finish_boundary(b, "summary").unwrap_err();
    assert!(
        matches!(e, StoreError::BoundaryTakenBack { id, .. } if id == b)
            && e.to_string().contains("was taken back"),
        "{e}"
    );
    s.restore(session, 500).unwrap();
    s.delete_session(session, 600).unwrap();
    assert!(matches!(s.finish_boundary(b, "summary"), Err(StoreError::NoSession { .. })));
    s.undelete_session(session).unwrap();
    s.finish_boundary(b, "summary").unwrap();
    assert_eq!(texts(&s, session), ["summary"]);
}

#[test]
fn going_back_behind_a_compaction_takes_its_time_back() {
    let (mut s, session) = memory();
    let compacted = |s: &Store, session: Ulid| -> Option<At> {
        s.db.query_row(
            "SELECT compacted_at FROM sessions WHERE id = ?1",
            [session.to_string()],
            |r| r.get(0),
        )
        .unwrap()
    };
    let first = say(&mut s, session, "first");
    assert_eq!(compacted(&s, session), None);
    s.insert_boundary(session, "one").unwrap();
    let one = compacted(&s, session);
    let second = say(&mut s, session, "second");
    s.insert_boundary(session, "two").unwrap();
    let two = compacted(&s, session);
    assert!(one.is_some() && one < two);
    s.rewind(session, second, 500).unwrap();
    assert_eq!(compacted(&s, session), one);
    s.rewind(session, first, 501).unwrap();
    assert_eq!(compacted(&s, session), None);
    s.restore(session, 500).unwrap();
    assert_eq!(compacted(&s, session), two);
    let fork = s.fork(session, second, "").unwrap();
    assert_eq!(compacted(&s, fork), one, "of the compaction that the fork shows");
}

#[test]
fn vacuum_says_when_a_reader_kept_the_file_from_shrinking() {
    let f = tempfile::tempdir().unwrap();
    let path = f.path().join("s.db");
    let mut s = Store::open_with(&path, ids()).unwrap();
    let session = s.create_session(&NewSession::default()).unwrap();
    say(&mut s, session, "kept");
    s.db.busy_timeout(std::time::Duration::ZERO).unwrap();
    let reader = Connection::open(&path).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM sessions").unwrap();
    assert!(!s.vacuum(10, 0).unwrap().shrunk);
    reader.execute_batch("COMMIT").unwrap();
    assert!(s.vacuum(10, 0).unwrap().shrunk);
}

#[test]
fn many_programs_may_open_a_new_store_at_once() {
    for _ in 0..20 {
        let f = tempfile::tempdir().unwrap();
        let path = f.path().join("s.db");
        let start = std::sync::Barrier::new(6);
        let failed: Vec<String> = std::thread::scope(|t| {
            let open = || {
                start.wait();
                Store::open(&path).err().map(|e| e.to_string())
            };
            let all: Vec<_> = (0..6).map(|_| t.spawn(open)).collect();
            all.into_iter().filter_map(|h| h.join().unwrap()).collect()
        });
        assert_eq!(failed, Vec::<String>::new());
    }
}

#[test]
fn an_id_that_leaves_no_room_is_named() {
    let (mut s, session) = memory();
    s.db.execute(
        "INSERT INTO messages SELECT '7ZZZZZZZZZZZZZZZZZZZZZZZZZ', id, 'user', 1, 1, \
        NULL, 0 FROM sessions",
        [],
    )
    .unwrap();
    let e = s.append_message(session, Role::User, &[NewPart::text("x")]).unwrap_err().to_string();
    assert!(e.contains("7ZZZZZZZZZZZZZZZZZZZZZZZZZ") && e.contains("backup"), "{e}");
}
