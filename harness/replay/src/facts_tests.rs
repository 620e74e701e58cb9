use std::collections::BTreeSet;

use super::*;
use ctxbench_core::block::{Draft, Role};
use ctxbench_session::fact::{Fact, FactKind};
use proptest::prelude::*;

fn book(facts: &[Fact]) -> FactBook {
    FactBook::from_session(&Session { facts: facts.to_vec(), ..Session::default() })
}

fn fact(id: &str, token: &str, arises: &str) -> Fact {
    Fact::new(id, FactKind::Value, token, arises)
}

fn block(kind: BlockKind, text: &str, message: u32) -> Arc<Block> {
    Draft::text(kind, Role::User, text).build(MessageId(message), vec![])
}

#[test]
fn a_reply_shows_what_it_saw_and_what_arises_in_it() {
    let mut book = book(&[fact("f", "port 8443", "c1"), fact("g", "a mutex", "a7")]);
    let said = block(BlockKind::Assistant, "the port 8443 again", 5);
    // The reply was recorded while nothing was visible.
    book.license(MessageId(5), "a5", &[None]);
    assert_eq!(book.sightings(std::slice::from_ref(&said), None)[0], None);
    // The reply was recorded while the fact was visible.
    let visible = book.sightings(&[block(BlockKind::Output, "port 8443", 1)], None);
    book.license(MessageId(5), "a5", &visible);
    assert!(book.sightings(&[said], None)[0].is_some());
    book.license(MessageId(7), "a7", &[None]);
    let s = book.sightings(&[block(BlockKind::Assistant, "we use a mutex", 7)], None);
    assert_eq!(s[1].map(|s| s.place), Some(FactPlace::Verbatim));
}

/// Computes the sightings of a context from scratch, according to the definition.
fn by_definition(
    book: &FactBook,
    facts: &[Fact],
    blocks: &[Arc<Block>],
    without: Option<MessageId>,
) -> Vec<Option<Sighting>> {
    let mut out: Vec<Option<Sighting>> = vec![None; book.known.facts.len()];
    for b in blocks.iter().filter(|b| without != Some(b.message)) {
        for (i, f) in facts.iter().enumerate() {
            let tier = f.matches(&b.text, &ctxbench_session::fact::fold(&b.text));
            let written = is_reply(b) || fact_place(b) == FactPlace::Summary;
            if tier > Match::Absent && (!written || book.licences.may_say(b.message, i)) {
                out[i] = out[i].max(Some(Sighting { tier, place: fact_place(b) }));
            }
        }
    }
    out
}

/// A change of a context between two checks.
#[derive(Clone, Debug)]
enum Change {
    Push(usize, usize, u32),
    Remove(usize),
    Replace(usize, usize, usize, u32),
    License(u32, Vec<bool>),
}

const KINDS: [BlockKind; 5] = [
    BlockKind::User,
    BlockKind::Assistant,
    BlockKind::Output,
    BlockKind::Summary,
    BlockKind::Context,
];
const TEXTS: [&str; 6] = ["", "alpha", "Beta", "ALPHA beta", "gamma 1234", "1,234 and alpha"];

fn change() -> impl Strategy<Value = Change> {
    let block = || (0..KINDS.len(), 0..TEXTS.len(), 0..6_u32);
    prop_oneof![
        4 => block().prop_map(|(k, t, m)| Change::Push(k, t, m)),
        1 => (0..12_usize).prop_map(Change::Remove),
        1 => (0..12_usize, block()).prop_map(|(i, (k, t, m))| Change::Replace(i, k, t, m)),
        1 => (0..6_u32, prop::collection::vec(any::<bool>(), 3))
            .prop_map(|(m, v)| Change::License(m, v)),
    ]
}

proptest! {
    #[test]
    fn kept_up_as_looked_at_anew(changes in prop::collection::vec(change(), 0..40)) {
        let facts = [fact("a", "alpha", "x"), fact("b", "beta", "x"), fact("c", "1234", "x")];
        let mut book = book(&facts);
        let mut blocks: Vec<Arc<Block>> = Vec::new();
        for c in changes {
            match c {
                Change::Push(k, t, m) => blocks.push(block(KINDS[k], TEXTS[t], m)),
                Change::Remove(i) if i < blocks.len() => drop(blocks.remove(i)),
                Change::Replace(i, k, t, m) if i < blocks.len() => {
                    blocks[i] = block(KINDS[k], TEXTS[t], m);
                }
                Change::License(m, visible) => {
                    let way = Sighting { tier: Match::Verbatim, place: FactPlace::Verbatim };
                    let visible: Vec<_> = visible.iter().map(|v| v.then_some(way)).collect();
                    book.license(MessageId(m), "", &visible);
                }
                _ => {}
            }
            for without in [None, Some(MessageId(0)), Some(MessageId(3))] {
                let wanted = by_definition(&book, &facts, &blocks, without);
                prop_assert_eq!(book.sightings(&blocks, without), wanted);
            }
            let verbatim: Vec<Arc<Block>> =
                blocks.iter().filter(|b| fact_place(b) == FactPlace::Verbatim).cloned().collect();
            let wanted = by_definition(&book, &facts, &verbatim, None);
            prop_assert_eq!(book.seen_verbatim(&blocks), wanted);
            for (f, fact) in facts.iter().enumerate() {
                let told = |b: &&Arc<Block>| {
                    is_said(b) && fact.matches(&b.text, &ctxbench_session::fact::fold(&b.text)) > Match::Absent
                };
                let wanted: BTreeSet<MessageId> =
                    blocks.iter().filter(told).map(|b| b.message).collect();
                prop_assert_eq!(book.said_in(f).collect::<BTreeSet<_>>(), wanted);
            }
        }
    }
}
