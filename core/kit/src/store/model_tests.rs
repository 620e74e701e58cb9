//! Property: after any operations and reopenings, a store loads the same sessions as a model in
//! memory, which is a list of messages with flags.

use std::sync::atomic::{AtomicI64, Ordering};

use proptest::prelude::*;

use super::tests::{result, texts_of as texts};
use super::*;

#[derive(Clone, Debug)]
struct ModelMessage {
    id: Id,
    part: Option<Id>,
    text: String,
    result: bool,
    placeholder: Option<String>,
    is_boundary: bool,
    copied: bool,
}

#[derive(Clone, Debug)]
struct ModelSession {
    id: Id,
    messages: Vec<ModelMessage>,
}

impl ModelSession {
    /// Returns the messages from the newest boundary on.
    fn context(&self) -> &[ModelMessage] {
        &self.messages[self.messages.iter().rposition(|m| m.is_boundary).unwrap_or(0)..]
    }

    /// Returns all messages without copies by compactions.
    fn log(&self) -> impl Iterator<Item = &ModelMessage> {
        self.messages.iter().filter(|m| !m.copied)
    }

    fn texts(&self) -> Vec<String> {
        self.context().iter().map(|m| m.placeholder.as_ref().unwrap_or(&m.text).clone()).collect()
    }
}

#[derive(Clone, Debug)]
enum Op {
    Say(u16),
    Result(u16),
    Prune(prop::sample::Index, u8),
    Compact(u8, u8),
    Rewind(prop::sample::Index),
    Fork(prop::sample::Index),
    Reopen,
}

fn op() -> impl Strategy<Value = (prop::sample::Index, Op)> {
    let op = prop_oneof![
        12 => any::<u16>().prop_map(Op::Say),
        6 => any::<u16>().prop_map(Op::Result),
        4 => (any::<prop::sample::Index>(), any::<u8>()).prop_map(|(i, p)| Op::Prune(i, p)),
        2 => (any::<u8>(), 0u8..4).prop_map(|(s, k)| Op::Compact(s, k)),
        3 => any::<prop::sample::Index>().prop_map(Op::Rewind),
        4 => any::<prop::sample::Index>().prop_map(Op::Fork),
        2 => Just(Op::Reopen),
    ];
    (any::<prop::sample::Index>(), op)
}

fn open(path: &Path, seed: u64) -> Store {
    static CLOCK: AtomicI64 = AtomicI64::new(1_000);
    Store::open_with(path, IdGenerator::new(|| CLOCK.fetch_add(1, Ordering::Relaxed), seed))
        .unwrap()
}

/// Applies an operation to the store and to the model.
fn apply(s: &mut Store, world: &mut Vec<ModelSession>, at: usize, op: &Op) {
    let fresh = |id, part, text: String| ModelMessage {
        id,
        part,
        text,
        result: false,
        placeholder: None,
        is_boundary: false,
        copied: false,
    };
    let session = world[at].id;
    let m = &mut world[at];
    match op {
        Op::Say(n) => {
            let text = n.to_string();
            let (id, _) =
                s.append_message(session, Role::User, &[Part::Text(text.as_str().into())]).unwrap();
            m.messages.push(fresh(id, None, text));
        }
        Op::Result(n) => {
            let text = format!("result {n}");
            let (id, parts) = s.append_message(session, Role::Tool, &[result(&text)]).unwrap();
            m.messages.push(ModelMessage { result: true, ..fresh(id, Some(parts[0]), text) });
        }
        Op::Prune(which, words) => {
            let mut results: Vec<&mut ModelMessage> =
                m.messages.iter_mut().filter(|m| m.result).collect();
            let n = results.len();
            if n > 0 {
                let one = &mut results[which.index(n)];
                let words = format!("cut {words}");
                s.prune_part(session, one.part.unwrap(), &words).unwrap();
                one.placeholder = Some(words);
            }
        }
        Op::Compact(summary, kept) => {
            let kept: Vec<String> = (0..*kept).map(|i| format!("kept {i}")).collect();
            let again: Vec<(Role, Vec<Part>)> =
                kept.iter().map(|t| (Role::User, vec![Part::Text(t.as_str().into())])).collect();
            let id = s.compact(session, Some(&summary.to_string()), &again).unwrap();
            m.messages
                .push(ModelMessage { is_boundary: true, ..fresh(id, None, summary.to_string()) });
            let ids: Vec<Id> = s.load_context(session).unwrap()[1..].iter().map(|m| m.id).collect();
            m.messages.extend(
                ids.into_iter()
                    .zip(kept)
                    .map(|(id, t)| ModelMessage { copied: true, ..fresh(id, None, t) }),
            );
        }
        Op::Rewind(to) => {
            if !m.messages.is_empty() {
                let to = m.messages[to.index(m.messages.len())].id;
                let done = s.rewind(session, Position::After(to), "").unwrap();
                let before = m.messages.clone();
                m.messages.retain(|m| m.id <= to);
                let discarded = before.iter().filter(|m| m.id > to && !m.copied).count();
                assert_eq!(done.messages, discarded);
                world.extend(done.branch.map(|id| ModelSession { id, messages: before }));
            }
        }
        Op::Fork(after) => {
            if !m.messages.is_empty() {
                let to = m.messages[after.index(m.messages.len())].id;
                let mut messages = m.messages.clone();
                messages.retain(|m| m.id <= to);
                let id = s.fork(session, to, "fork").unwrap();
                world.push(ModelSession { id, messages });
            }
        }
        Op::Reopen => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn store_loads_the_same_as_the_model(ops in prop::collection::vec(op(), 1..70)) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.db");
        let mut s = open(&path, 1);
        // Without syncing, which would slow down hundreds of commits.
        s.db.execute_batch("PRAGMA synchronous = OFF").unwrap();
        let id = s.create_session(&NewSession::default()).unwrap();
        let mut world = vec![ModelSession { id, messages: vec![] }];
        for (i, (which, op)) in ops.iter().enumerate() {
            let at = which.index(world.len());
            if matches!(op, Op::Reopen) {
                s = open(&path, i as u64);
                s.db.execute_batch("PRAGMA synchronous = OFF").unwrap();
            } else {
                apply(&mut s, &mut world, at, op);
            }
            for m in world.iter() {
                prop_assert_eq!(texts(&s.load_context(m.id).unwrap()), m.texts(), "after {:?}", op);
                let log = s.log(m.id).unwrap();
                let of = |log: &[LoadedMessage]| -> Vec<(Id, String)> {
                    log.iter().map(|m| m.id).zip(texts(log)).collect()
                };
                let expected: Vec<_> = m.log().map(|m| (m.id, m.text.clone())).collect();
                prop_assert_eq!(of(&log), expected, "log after {:?}", op);
            }
        }
    }
}
