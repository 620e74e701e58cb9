//! Time to open a session with a compaction near its end. It should depend only on the messages
//! after the compaction, and not on the 1, 4 or 16 times as many before it.

#![allow(missing_docs)]

use std::path::Path;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use ctxbench_core::block::Role;
use ctxbench_core::content::Part;
use ctxbench_kit::store::{Id, NewSession, Store};
use ctxbench_strategies::persist::{
    JournalEntry, PersistFormat, Persistence, StoredMessage, formats,
};

/// Messages before the boundary in the shortest session of the store.
const OLDER: usize = 2_000;
/// Messages before the boundary in the shortest session of a format. The formats store one message
/// at a time, as the products do.
const OLDER_BY_FORMAT: usize = 50;
const TIMES: [usize; 3] = [1, 4, 16];
/// Messages after the boundary.
const NEWER: usize = 20;
/// Messages of every `expect`.
const WRITABLE: &str = "a new temporary folder is writable";
const WRITTEN: &str = "it was just written";

fn text(i: usize) -> String {
    format!("message {i}: {}", "some text from earlier in this session ".repeat(8))
}

/// Creates a store with a session of `older` messages, a boundary, and [`NEWER`] messages after it.
fn stored(path: &Path, older: usize) -> Id {
    let mut s = Store::open(path).expect(WRITABLE);
    let session = s.create_session(&NewSession::default()).expect(WRITABLE);
    let say = |s: &mut Store, range: std::ops::Range<usize>| {
        let all: Vec<(Role, Vec<Part>)> =
            range.map(|i| (Role::User, vec![Part::Text(text(i).into())])).collect();
        s.append_messages(session, &all).expect(WRITABLE);
    };
    say(&mut s, 0..older);
    s.compact(session, Some("summary of the session"), &[]).expect(WRITABLE);
    say(&mut s, 0..NEWER);
    session
}

/// Creates a session in a product's format, with a compaction near its end.
fn written(f: &PersistFormat, dir: &Path, older: usize) -> Box<dyn Persistence> {
    let mut p = (f.open)(dir, 1).expect(WRITABLE);
    let message = |i: usize| {
        let role = if i.is_multiple_of(2) { Role::User } else { Role::Assistant };
        JournalEntry::Message(StoredMessage::text(role, &text(i)))
    };
    let summary = StoredMessage {
        role: Role::Assistant,
        parts: vec![Part::Summary("summary of the session".into())],
    };
    let question = StoredMessage::text(Role::User, "Summarise the session.");
    let boundary = JournalEntry::View(vec![question, summary]);
    let entries = (0..older).map(message).chain([boundary]).chain((0..NEWER).map(message));
    entries.for_each(|e| p.append(&e).expect(WRITABLE));
    p
}

fn load(c: &mut Criterion) {
    let mut group = c.benchmark_group("resume");
    for times in TIMES {
        let dir = tempfile::tempdir().expect(WRITABLE);
        let path = dir.path().join("store.db");
        let session = stored(&path, times * OLDER);
        group.bench_function(BenchmarkId::new("store", format!("{times}x")), |b| {
            b.iter(|| {
                Store::open(&path).and_then(|s| s.load_context(session)).expect(WRITTEN).len()
            });
        });
        for f in formats() {
            let dir = tempfile::tempdir().expect(WRITABLE);
            let p = written(f, dir.path(), times * OLDER_BY_FORMAT);
            group.bench_function(BenchmarkId::new(f.name, format!("{times}x")), |b| {
                b.iter(|| p.load().expect(WRITTEN));
            });
        }
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(500));
    targets = load
}
criterion_main!(benches);
