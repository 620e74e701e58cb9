//! Size and shape of the sessions made by rule.

use ctxbench_core::session::{Entry, Session};
use ctxbench_core::tokens::o200k;
use std::collections::HashMap;

use super::generated_jsonl;
use super::rounds::PLANS;
use crate::jsonl;

fn session(id: &str) -> Session {
    let text = generated_jsonl(id).expect("the plan exists");
    let loaded = jsonl::read(text.as_bytes(), id).expect("it is a session");
    assert_eq!(loaded.warnings, Vec::<String>::new());
    loaded.session
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
fn the_same_bytes_every_time_and_different_plans_differ() {
    assert!(
        generated_jsonl("ten-rounds")
            .is_some_and(|text| generated_jsonl("ten-rounds") == Some(text))
    );
    assert_ne!(
        generated_jsonl("ten-rounds").map(|t| t.len()),
        generated_jsonl("million").map(|t| t.len())
    );
    assert!(generated_jsonl("billion").is_none());
}

#[test]
fn they_have_the_turns_that_the_plan_says() {
    for plan in PLANS {
        assert_eq!(turns(&session(plan.id)), plan.turns, "{}", plan.id);
        assert!(plan.turns.is_multiple_of(plan.report_every), "{} ends with a report", plan.id);
    }
    assert_eq!(turns(&session("five-hundred")), 500);
}

#[test]
fn the_million_is_more_than_a_million_tokens() {
    let text = generated_jsonl("million").expect("the plan exists");
    let tokens: u64 = places(&text).values().map(|(_, said)| o200k(said)).sum();
    assert!((1_000_000..1_300_000).contains(&tokens), "{tokens}");
}

#[test]
fn facts_stand_where_they_arise_and_are_asked_for_later() {
    for plan in PLANS {
        let text = generated_jsonl(plan.id).expect("the plan exists");
        let (session, places) = (session(plan.id), places(&text));
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
