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
    is_deleted: bool,
}

#[derive(Clone, Debug)]
struct ModelSession {
    id: Id,
    /// Log of the ancestors of a fork, before the messages that it shows.
    before: Vec<String>,
    messages: Vec<ModelMessage>,
}

impl ModelSession {
    fn live(&self) -> impl DoubleEndedIterator<Item = &ModelMessage> {
        self.messages.iter().filter(|m| !m.is_deleted)
    }

    /// Returns the messages from the newest boundary on.
    fn context(&self) -> Vec<ModelMessage> {
        let live: Vec<&ModelMessage> = self.live().collect();
        let from = live.iter().rposition(|m| m.is_boundary).unwrap_or(0);
        live[from..].iter().map(|m| (*m).clone()).collect()
    }

    /// Returns all messages that were not rewound, without copies by compactions.
    fn log(&self) -> Vec<String> {
        self.before
            .iter()
            .cloned()
            .chain(self.live().filter(|m| !m.copied).map(|m| m.text.clone()))
            .collect()
    }

    fn texts(&self) -> Vec<String> {
        self.context().into_iter().map(|m| m.placeholder.unwrap_or(m.text)).collect()
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
        is_deleted: false,
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
                m.messages.iter_mut().filter(|m| m.result && !m.is_deleted).collect();
            let n = results.len();
            if n > 0 {
                let one = &mut results[which.index(n)];
                let words = format!("cut {words}");
                s.prune_part(one.part.unwrap(), &words).unwrap();
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
            let live: Vec<Id> = m.messages.iter().filter(|m| !m.is_deleted).map(|m| m.id).collect();
            if !live.is_empty() {
                let to = live[to.index(live.len())];
                s.rewind(session, Position::After(to), "").unwrap();
                m.messages
                    .iter_mut()
                    .filter(|m| m.id > to && !m.is_deleted)
                    .for_each(|m| m.is_deleted = true);
            }
        }
        Op::Fork(after) => {
            let ids: Vec<Id> = m.live().map(|m| m.id).collect();
            if !ids.is_empty() {
                let to = ids[after.index(ids.len())];
                let part = ModelSession {
                    messages: m.messages.iter().filter(|m| m.id <= to).cloned().collect(),
                    ..m.clone()
                };
                let id = s.fork(session, to, "fork").unwrap();
                let loaded = s.load_context(id).unwrap();
                let copy = |(old, new): (ModelMessage, &LoadedMessage)| ModelMessage {
                    id: new.id,
                    part: old.part.map(|_| new.parts[0].id),
                    ..old
                };
                assert_eq!(part.context().len(), loaded.len());
                let messages: Vec<ModelMessage> =
                    part.context().into_iter().zip(&loaded).map(copy).collect();
                // Messages of the parent that the fork does not show.
                let mut before = part.log();
                before.truncate(before.len() - messages.iter().filter(|m| !m.copied).count());
                world.push(ModelSession { id, before, messages });
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
        let mut world = vec![ModelSession { id, before: vec![], messages: vec![] }];
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
                prop_assert_eq!(texts(&s.log(m.id).unwrap()), m.log(), "log after {:?}", op);
            }
        }
        // Logged messages have the IDs that loading returns.
        for m in world.iter() {
            let log: Vec<Id> = s.log(m.id).unwrap().iter().skip(m.before.len()).map(|m| m.id).collect();
            prop_assert_eq!(log, m.live().filter(|m| !m.copied).map(|m| m.id).collect::<Vec<_>>());
        }
    }
}
