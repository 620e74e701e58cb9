use super::*;
use ctxbench_core::block::{Draft, Role};
use ctxbench_session::fact::{Fact, FactKind};
use proptest::prelude::*;

fn book(facts: &[Fact]) -> FactBook {
    let said = |(n, text): (usize, &&str)| {
        let line = serde_json::json!({"type": "user", "id": format!("m{n}"), "text": text});
        serde_json::from_value(line).unwrap()
    };
    let recorded = TEXTS.iter().chain(&["port 8443", "Nordhafen"]);
    let entries = recorded.enumerate().map(said).collect();
    FactBook::from_session(&Session { facts: facts.to_vec(), entries, ..Session::default() })
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
    book.license(MessageId(5), "a5", None);
    assert_eq!(book.sightings(std::slice::from_ref(&said), None).fact(0), None);
    // The reply was recorded while the fact was visible.
    let visible = book.sightings(&[block(BlockKind::Output, "port 8443", 1)], None);
    book.license(MessageId(5), "a5", Some(&visible));
    assert!(book.sightings(&[said], None).fact(0).is_some());
    book.license(MessageId(7), "a7", None);
    let s = book.sightings(&[block(BlockKind::Assistant, "we use a mutex", 7)], None);
    assert_eq!(s.fact(1).map(|s| s.place), Some(FactPlace::Verbatim));
}

/// Computes the sightings of a context from scratch, according to the definition.
fn by_definition(
    book: &FactBook,
    facts: &[Fact],
    blocks: &[Arc<Block>],
    without: Option<MessageId>,
) -> Vec<Option<Sighting>> {
    let mut units = facts.iter().flat_map(|f| &f.tokens).enumerate().map(|(unit, token)| {
        let sighting = |b: &Arc<Block>| {
            let one = fact("", token, "");
            let tier = one.matches(&b.text, &ctxbench_session::fact::fold(&b.text));
            let written = is_reply(b) || fact_place(b) == FactPlace::Summary;
            let author = Author::Model(b.message);
            let counts = !written || book.licences.may_say(author, unit);
            (tier > Match::Absent && counts).then_some(Sighting { tier, place: fact_place(b) })
        };
        blocks.iter().filter(|b| without != Some(b.message)).map(sighting).max().flatten()
    });
    facts.iter().map(|f| units.by_ref().take(f.tokens.len()).min().flatten()).collect()
}

fn by_fact(facts: &[Fact], seen: &Sightings) -> Vec<Option<Sighting>> {
    (0..facts.len()).map(|f| seen.fact(f)).collect()
}

#[test]
fn literals_of_a_fact_may_stand_in_different_blocks() {
    let two = Fact { tokens: vec!["Nordhafen".into(), "8443".into()], ..fact("f", "", "u") };
    let mut book = book(&[two]);
    let [one, other] = [(BlockKind::User, "Nordhafen"), (BlockKind::Output, "port 8443")]
        .map(|(kind, text)| block(kind, text, 1));
    assert_eq!(book.sightings(std::slice::from_ref(&one), None).fact(0), None);
    assert!(book.sightings(&[one.clone(), other.clone()], None).fact(0).is_some());
    // A summary may repeat only the literal that was seen when it was written.
    let said = "The agent has now moved every service of this ship line into the new place, and \
                all requests from outside come through one gate there:";
    let summary = block(BlockKind::Summary, &format!("{said}\nNordhafen\n8443"), 9);
    let visible: Vec<bool> = book.sightings(&[one], None).units().collect();
    book.license_summaries(std::slice::from_ref(&summary), &visible);
    assert_eq!(book.sightings(std::slice::from_ref(&summary), None).fact(0), None);
    assert!(book.sightings(&[summary, other], None).fact(0).is_some());
}

#[test]
fn a_decision_needs_a_sentence_and_not_a_list() {
    let words = ["compaction", "threshold", "generat", "path"].map(String::from).to_vec();
    let decision = Fact { tokens: Vec::new(), words, ..fact("f", "", "u") };
    let said = "Write the compaction threshold into both generated paths";
    let line = serde_json::json!({"type": "user", "id": "u", "text": said});
    let entries = vec![serde_json::from_value(line).unwrap()];
    let session = Session { facts: vec![decision], entries, ..Session::default() };
    let mut book = FactBook::from_session(&session);
    let mut shows = |text: &str| {
        let summary = block(BlockKind::Summary, text, 9);
        book.license_summaries(std::slice::from_ref(&summary), &[true]);
        book.sightings(&[summary], None).fact(0).is_some()
    };
    assert!(shows("The agent put the compaction threshold into each of the generated paths."));
    assert!(!shows("authority generated Nordhafen threshold paths compaction connection"));
    let long = "authority Nordhafen connection retry_limit the compaction \
                threshold app_new.log generated paths strict_v2";
    assert!(!shows(long), "a list with a usual pair has no room");
    assert!(shows(&format!("{long}\n- {said}\n{long}")), "a copied line");
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
        1 => (0..6_u32, prop::collection::vec(any::<bool>(), 5))
            .prop_map(|(m, v)| Change::License(m, v)),
    ]
}

proptest! {
    #[test]
    fn kept_up_as_looked_at_anew(changes in prop::collection::vec(change(), 0..40)) {
        let two = Fact { tokens: vec!["alpha".into(), "1234".into()], ..fact("d", "", "x") };
        let facts = [fact("a", "alpha", "x"), fact("b", "beta", "x"), fact("c", "1234", "x"), two];
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
                    let units = visible.iter().map(|v| v.then_some(way)).collect();
                    let seen = Sightings { known: book.known.clone(), units };
                    book.license(MessageId(m), "", Some(&seen));
                }
                _ => {}
            }
            for without in [None, Some(MessageId(0)), Some(MessageId(3))] {
                let wanted = by_definition(&book, &facts, &blocks, without);
                prop_assert_eq!(by_fact(&facts, &book.sightings(&blocks, without)), wanted);
            }
            let verbatim: Vec<Arc<Block>> =
                blocks.iter().filter(|b| fact_place(b) == FactPlace::Verbatim).cloned().collect();
            let wanted = by_definition(&book, &facts, &verbatim, None);
            prop_assert_eq!(by_fact(&facts, &book.seen_verbatim(&blocks)), wanted);
            for (f, fact) in facts.iter().enumerate() {
                let folded = |b: &Arc<Block>| ctxbench_session::fact::fold(&b.text);
                for (message, by_agent) in (0..12).map(|n| (MessageId(n / 2), n % 2 == 1)) {
                    let told = |token: &String| {
                        let one = super::tests::fact("", token, "");
                        let said = |b: &&Arc<Block>| {
                            is_said(b) && b.message == message && is_reply(b) == by_agent
                        };
                        blocks.iter().filter(said).any(|b| one.matches(&b.text, &folded(b)) > Match::Absent)
                    };
                    let wanted = fact.tokens.iter().all(told);
                    prop_assert_eq!(book.is_said(f, by_agent, message, |m| m == message), wanted);
                }
            }
        }
    }
}
