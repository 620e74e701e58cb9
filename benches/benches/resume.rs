//! Time to open a session with a compaction near its end. It should depend only on the messages
//! after the compaction.
//!
//! `CTXBENCH_MESSAGES=1000000 cargo bench --bench resume` builds a session of that many messages
//! once, bulk-loaded, and times it.

#![allow(missing_docs)]

use std::path::Path;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use ctxbench_benches::{Mode, table};
use ctxbench_core::block::Role;
use ctxbench_core::content::Part;
use ctxbench_kit::store::{Id, NewSession, Store};
use ctxbench_strategies::persist::{
    JournalEntry, PersistFormat, Persistence, StoredMessage, formats,
};

/// Messages before the boundary in the shortest session.
const OLDER: usize = 2_000;
/// Messages before the boundary in the shortest session of the table of formats. The formats store
/// one message at a time, as the products do.
const OLDER_BY_FORMAT: usize = 50;
const TIMES: [usize; 3] = [1, 4, 16];
/// Messages after the boundary.
const NEWER: usize = 20;

fn text(i: usize) -> String {
    format!("message {i}: {}", "some text from earlier in this session ".repeat(8))
}

/// Creates a store with a session of `older` messages, a boundary, and [`NEWER`] messages after it.
fn store(path: &Path, older: usize) -> (Store, Id) {
    const AT_ONCE: usize = 10_000;
    let mut s = Store::open(path).expect("a fresh file");
    let session = s.create_session(&NewSession::default()).expect("room on the disk");
    let say = |s: &mut Store, range: std::ops::Range<usize>| {
        let all: Vec<(Role, Vec<Part>)> =
            range.map(|i| (Role::User, vec![Part::Text(text(i).into())])).collect();
        s.append_messages(session, &all).expect("room on the disk");
    };
    for from in (0..older).step_by(AT_ONCE) {
        say(&mut s, from..(from + AT_ONCE).min(older));
    }
    s.compact(session, Some("summary of the session"), &[]).expect("room on the disk");
    say(&mut s, 0..NEWER);
    (s, session)
}

/// Returns the fastest of some rounds of opening and loading.
fn fastest(rounds: usize, mut load: impl FnMut()) -> Duration {
    (0..rounds)
        .map(|_| {
            let begin = Instant::now();
            load();
            begin.elapsed()
        })
        .min()
        .unwrap_or_default()
}

fn micros(t: Duration) -> String {
    format!("{:.0}", t.as_secs_f64() * 1e6)
}

fn row(name: &str, took: &[Duration], bytes: Vec<u64>) -> Vec<String> {
    let mut out = vec![name.to_string()];
    out.extend(took.iter().map(|t| micros(*t)));
    out.push(format!("{:.2}", took[took.len() - 1].as_secs_f64() / took[0].as_secs_f64()));
    out.extend(bytes.iter().map(u64::to_string));
    out
}

/// Creates a session in a product's format, with a compaction near its end.
fn written(f: &PersistFormat, dir: &Path, older: usize) -> Box<dyn Persistence> {
    let mut p = (f.open)(dir, 1).expect("a fresh folder");
    let mut say = |e: JournalEntry| p.append(&e).expect("room on the disk");
    for i in 0..older {
        say(JournalEntry::Message(StoredMessage::text(
            if i % 2 == 0 { Role::User } else { Role::Assistant },
            &text(i),
        )));
    }
    let summary = StoredMessage {
        role: Role::Assistant,
        parts: vec![Part::Summary("summary of the session".into())],
    };
    say(JournalEntry::View(vec![
        StoredMessage::text(Role::User, "Summarise the session."),
        summary,
    ]));
    for i in 0..NEWER {
        say(JournalEntry::Message(StoredMessage::text(
            if i % 2 == 0 { Role::User } else { Role::Assistant },
            &text(i),
        )));
    }
    p
}

fn print_table(mode: Mode) {
    let (times, rounds) = if mode == Mode::Smoke { (&TIMES[..2], 1) } else { (&TIMES[..], 20) };
    let mut rows = Vec::new();
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut took = Vec::new();
    let mut bytes = Vec::new();
    for n in times {
        let path = dir.path().join(format!("{n}.db"));
        let (_, session) = store(&path, n * OLDER);
        took.push(fastest(rounds, || {
            let s = Store::open(&path).expect("it was just written");
            assert_eq!(s.load_context(session).expect("it was just written").len(), NEWER + 1);
            bytes.truncate(took.len());
            bytes.push(s.bytes_read());
        }));
    }
    rows.push(row(&format!("store, {OLDER} older = 1×"), &took, bytes));
    for f in formats() {
        let mut took = Vec::new();
        let mut bytes = Vec::new();
        for n in times {
            let dir = tempfile::tempdir().expect("a temporary folder");
            let p = written(f, dir.path(), n * OLDER_BY_FORMAT);
            took.push(fastest(rounds, || drop(std::hint::black_box(p.load()))));
            bytes.push(p.load().expect("it was just written").bytes_read);
        }
        rows.push(row(f.name, &took, bytes));
    }
    let mut head = vec!["format".to_string()];
    head.extend(times.iter().map(|n| format!("{n}× µs")));
    head.push(format!("{}×/1×", times[times.len() - 1]));
    head.extend(times.iter().map(|n| format!("{n}× read B")));
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let title = format!(
        "loading with {NEWER} messages behind the boundary; {OLDER_BY_FORMAT} older = 1× for the \
         formats; 1.00 = no growth"
    );
    println!("{}", table(&title, &head, &rows));
    if let Some(n) = std::env::var("CTXBENCH_MESSAGES").ok().and_then(|n| n.parse::<usize>().ok()) {
        let path = dir.path().join("large.db");
        let (s, session) = store(&path, n);
        drop(s);
        let size = std::fs::metadata(&path).map_or(0, |m| m.len());
        let first = fastest(1, || {
            drop(
                Store::open(&path)
                    .and_then(|s| s.load_context(session))
                    .expect("it was just written"),
            )
        });
        let best = fastest(20, || {
            drop(
                Store::open(&path)
                    .and_then(|s| s.load_context(session))
                    .expect("it was just written"),
            )
        });
        println!(
            "{n} messages, {size} bytes: opened and loaded in {} µs the first time, {} µs at \
             best\n",
            micros(first),
            micros(best)
        );
    }
}

fn load(c: &mut Criterion) {
    match Mode::of_args() {
        Mode::List => {}
        mode => print_table(mode),
    }
    let mut group = c.benchmark_group("resume/store");
    let dir = tempfile::tempdir().expect("a temporary folder");
    for times in TIMES {
        let path = dir.path().join(format!("{times}.db"));
        let (s, session) = store(&path, times * OLDER);
        group.bench_function(BenchmarkId::from_parameter(format!("{times}x")), |b| {
            b.iter(|| s.load_context(session))
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20).warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    targets = load
}
criterion_main!(benches);
