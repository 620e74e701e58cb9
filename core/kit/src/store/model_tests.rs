//! Property: after any operations and reopenings, a store loads the same sessions as a model in
//! memory, which is a list of messages with flags.

use std::sync::atomic::{AtomicI64, Ordering};

use proptest::prelude::*;
use proptest::sample::Index;

use super::tests::{result, texts_of as texts};
use super::*;

#[derive(Clone, Debug)]
struct ModelMessage {
    id: Id,
    result: Option<Id>,
    text: String,
    shown: String,
    is_boundary: bool,
    is_copy: bool,
}

type ModelSession = (Id, Vec<ModelMessage>);

#[derive(Clone, Debug)]
enum Op {
    Say,
    Result,
    Prune,
    Compact,
    Rewind,
    Fork,
    Reopen,
}

/// An operation on one of the sessions, with a number for its texts, at one of its messages.
fn op() -> impl Strategy<Value = (Op, Index, usize, Index)> {
    let op = prop_oneof![
        12 => Just(Op::Say),
        6 => Just(Op::Result),
        4 => Just(Op::Prune),
        2 => Just(Op::Compact),
        3 => Just(Op::Rewind),
        4 => Just(Op::Fork),
        2 => Just(Op::Reopen),
    ];
    (op, any::<Index>(), 0..1_000_usize, any::<Index>())
}

fn open(path: &Path, seed: u64) -> Store {
    static CLOCK: AtomicI64 = AtomicI64::new(1_000);
    let ids = IdGenerator::new(|| CLOCK.fetch_add(1, Ordering::Relaxed), seed);
    let store = Store::open_with(path, ids).unwrap();
    // Without syncing, which would slow down hundreds of commits.
    store.db.execute_batch("PRAGMA synchronous = OFF").unwrap();
    store
}

fn apply(s: &mut Store, world: &mut Vec<ModelSession>, at: usize, op: &Op, n: usize, which: Index) {
    let message = |id, text: String| ModelMessage {
        id,
        result: None,
        shown: text.clone(),
        text,
        is_boundary: false,
        is_copy: false,
    };
    let (session, messages) = &mut world[at];
    let session = *session;
    let to = (!messages.is_empty()).then(|| messages[which.index(messages.len())].id);
    match (op, to) {
        (Op::Say | Op::Result, _) => {
            let text = format!("{op:?} {n}");
            let is_result = matches!(op, Op::Result);
            let part = if is_result { result(&text) } else { Part::Text(text.as_str().into()) };
            let ids = s.append_messages(session, &[(Role::User, vec![part])]).unwrap();
            let (id, parts) = &ids[0];
            let result = is_result.then_some(parts[0]);
            messages.push(ModelMessage { result, ..message(*id, text) });
        }
        (Op::Prune, _) => {
            let results: Vec<_> = messages.iter_mut().filter(|m| m.result.is_some()).collect();
            if !results.is_empty() {
                let at = n % results.len();
                let pruned = results.into_iter().nth(at).unwrap();
                pruned.shown = format!("cut {n}");
                s.prune_part(session, pruned.result.unwrap(), &pruned.shown).unwrap();
            }
        }
        (Op::Compact, _) => {
            let kept: Vec<String> = (0..n % 4).map(|i| format!("kept {i}")).collect();
            let again: Vec<(Role, Vec<Part>)> =
                kept.iter().map(|t| (Role::User, vec![Part::Text(t.as_str().into())])).collect();
            let id = s.compact(session, Some(&n.to_string()), &again).unwrap();
            messages.push(ModelMessage { is_boundary: true, ..message(id, n.to_string()) });
            let copies = s.load_context(session).unwrap().into_iter().skip(1).zip(kept);
            let copy = |(m, text): (LoadedMessage, _)| message(m.id, text);
            messages.extend(copies.map(|c| ModelMessage { is_copy: true, ..copy(c) }));
        }
        (Op::Rewind, Some(to)) => {
            let done = s.rewind(session, Position::After(to), "").unwrap();
            let before = messages.clone();
            messages.retain(|m| m.id <= to);
            let is_discarded = |m: &&ModelMessage| m.id > to && !m.is_copy;
            assert_eq!(done.messages, before.iter().filter(is_discarded).count());
            world.extend(done.branch.map(|id| (id, before)));
        }
        (Op::Fork, Some(to)) => {
            let fork = messages.iter().filter(|m| m.id <= to).cloned().collect();
            world.push((s.fork(session, to, "fork").unwrap(), fork));
        }
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn store_loads_the_same_as_the_model(ops in prop::collection::vec(op(), 1..70)) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.db");
        let mut s = open(&path, 1);
        let mut world = vec![(s.create_session(&NewSession::default()).unwrap(), vec![])];
        for (i, (op, session, n, which)) in ops.iter().enumerate() {
            if matches!(op, Op::Reopen) {
                s = open(&path, i as u64);
            }
            let at = session.index(world.len());
            apply(&mut s, &mut world, at, op, *n, *which);
            for (id, messages) in &world {
                // The context begins with the newest boundary; the log has no copies.
                let from = messages.iter().rposition(|m| m.is_boundary).unwrap_or(0);
                let shown: Vec<String> = messages[from..].iter().map(|m| m.shown.clone()).collect();
                prop_assert_eq!(texts(&s.load_context(*id).unwrap()), shown, "after {:?}", op);
                let log = s.log(*id).unwrap();
                let log: Vec<(Id, String)> = log.iter().map(|m| m.id).zip(texts(&log)).collect();
                let said = messages.iter().filter(|m| !m.is_copy);
                let said: Vec<_> = said.map(|m| (m.id, m.text.clone())).collect();
                prop_assert_eq!(log, said, "log after {:?}", op);
            }
        }
    }
}
