use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};

use proptest::prelude::*;
use rusqlite::Connection;
use serde_json::json;

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

/// A folder that goes away with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ctxbench-store-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
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
    let result = crate::history::Part::Result { id: "1".into(), name: "read".into(), output: "long".into(), is_error: false };
    let (_, parts) = s.append_message(session, Role::Tool, &[NewPart::from(&result)]).unwrap();
    s.prune_part(parts[0], 77).unwrap();
    s.prune_part(parts[0], 99).unwrap();
    let shown = &s.load_context(session).unwrap()[0].parts[0];
    assert_eq!((&shown.data["output"], &shown.data["call_id"], shown.compacted_at), (&json!(PRUNED), &json!("1"), Some(77)));
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
    let f = Folder::new("reopen");
    let path = f.0.join("s.db");
    let session = {
        let mut s = Store::open_with(&path, Ulids::new(|| 9_000, 1)).unwrap();
        let session = s.create_session(&NewSession { title: "t".into(), ..NewSession::default() }).unwrap();
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
    let f = Folder::new("other");
    let path = f.0.join("notes.txt");
    fs::write(&path, "these are my notes, not a database at all").unwrap();
    let e = Store::open(&path).err().unwrap().to_string();
    assert!(e.contains("notes.txt is not an SQLite database") && e.contains("another path"), "{e}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "these are my notes, not a database at all");

    let foreign = f.0.join("foreign.db");
    Connection::open(&foreign).unwrap().execute_batch("CREATE TABLE theirs (x)").unwrap();
    let before = fs::read(&foreign).unwrap();
    assert!(matches!(Store::open(&foreign).err(), Some(StoreError::Foreign { .. })));
    assert_eq!(fs::read(&foreign).unwrap(), before);

    let newer = f.0.join("newer.db");
    drop(Store::open(&newer).unwrap());
    Connection::open(&newer).unwrap().execute_batch("PRAGMA user_version = 99").unwrap();
    let e = Store::open(&newer).err().unwrap().to_string();
    assert!(e.contains("format 99"), "{e}");
    assert_eq!(fs::read_dir(&f.0).unwrap().count(), 3, "nothing is left beside the files");
    assert!(Store::open(f.0.join("no/such/folder.db")).err().unwrap().to_string().contains("check that the folder exists"));
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
