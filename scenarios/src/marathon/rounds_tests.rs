//! Size and shape of the sessions made by rule.

use ctxbench_core::session::{Entry, Session};
use ctxbench_core::tokens::o200k;
use std::collections::HashMap;

use super::rounds::ROUNDS;
use super::{generated, generated_ids};
use crate::jsonl;

fn session(id: &str) -> Session {
    generated(id).expect("the plan exists")
}

/// What is made is what a reader of its file would get: nothing that a session must not hold, and
/// no number or text that changes on the way.
#[test]
fn they_are_sessions_as_files_have_them() {
    for made in generated_ids().into_iter().map(session) {
        let read = jsonl::read(made.to_jsonl().unwrap().as_bytes(), "x").expect("it is a session");
        assert_eq!((read.session, read.warnings), (made, vec![]));
    }
}

fn turns(session: &Session) -> usize {
    session.entries.iter().filter(|e| matches!(e, Entry::User(_))).count()
}

/// The lines of a session by the ids that facts may name, with their place: messages by id, results
/// by call.
fn places(text: &str) -> HashMap<String, (usize, String)> {
    let lines = text
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("a line is JSON"));
    let mut out = HashMap::new();
    for (at, line) in lines.enumerate() {
        let kind = line["type"].as_str().unwrap_or("").to_owned();
        let key = if kind == "tool" { &line["call_id"] } else { &line["id"] };
        if matches!(kind.as_str(), "user" | "assistant" | "tool") {
            let mut said = format!(
                "{}{}",
                line["text"].as_str().unwrap_or(""),
                line["output"].as_str().unwrap_or("")
            );
            for call in line["calls"].as_array().into_iter().flatten() {
                said += call["arguments"].as_str().unwrap_or("");
            }
            let old = out.insert(key.as_str().expect("it has an id").to_owned(), (at, said));
            assert!(old.is_none(), "ids are unique: {key}");
        }
    }
    out
}

#[test]
fn the_same_every_time_and_different_plans_differ() {
    assert!(generated("ten-rounds").is_some_and(|made| generated("ten-rounds") == Some(made)));
    assert_ne!(
        generated("ten-rounds").map(|s| s.entries.len()),
        generated("million").map(|s| s.entries.len())
    );
    assert!(generated("billion").is_none());
}

#[test]
fn they_have_the_turns_that_the_plan_says() {
    for plan in ROUNDS {
        assert_eq!(turns(&session(plan.id)), plan.turns, "{}", plan.id);
        assert!(plan.turns.is_multiple_of(plan.report_every), "{} ends with a report", plan.id);
    }
    assert_eq!(turns(&session("five-hundred")), 500);
}

#[test]
fn the_million_is_more_than_a_million_tokens() {
    let text = session("million").to_jsonl().unwrap();
    let tokens: u64 = places(&text).values().map(|(_, said)| o200k(said)).sum();
    assert!((1_000_000..1_300_000).contains(&tokens), "{tokens}");
}

#[test]
fn facts_stand_where_they_arise_and_are_asked_for_later() {
    for plan in ROUNDS {
        let session = session(plan.id);
        let places = places(&session.to_jsonl().unwrap());
        // One per ticket, one limit per report, the train and the rule.
        assert_eq!(session.facts.len(), plan.turns + 2, "{}", plan.id);
        for fact in &session.facts {
            let (at, said) = &places[&fact.arises];
            for token in &fact.tokens {
                assert!(said.contains(token.as_str()), "{}: {token}", fact.id);
            }
            for need in &fact.needs {
                let (later, asks) = &places[need];
                assert!(later > at, "{} is needed later", fact.id);
                assert!(
                    !fact.tokens.iter().any(|t| asks.contains(t.as_str())),
                    "{} is not given away",
                    fact.id
                );
            }
        }
        let first = &session.facts[0];
        assert_eq!(
            first.needs.len(),
            plan.turns / plan.report_every,
            "the first goal is needed in every report"
        );
        let limits: Vec<_> = session.facts.iter().filter(|f| f.id.starts_with("f-limit")).collect();
        assert_eq!(
            limits.iter().filter(|f| f.superseded_by.is_none()).count(),
            1,
            "one limit is the last"
        );
    }
}
