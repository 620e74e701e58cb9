//! Properties that every reader of the session relies on.

use super::{MARATHON, generated};
use ctxbench_core::session::Session;
use serde_json::Value;
use std::collections::BTreeMap;

fn session() -> Session {
    generated(MARATHON).expect("the story is there")
}

fn lines() -> Vec<Value> {
    session()
        .to_jsonl()
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).expect("every line is JSON"))
        .collect()
}

fn text<'a>(line: &'a Value, key: &str) -> &'a str {
    line[key].as_str().unwrap_or("")
}

fn items<'a>(line: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    line[key].as_array().into_iter().flatten()
}

/// Everything a message says, with the arguments of its calls.
fn contents(line: &Value) -> String {
    let mut out = format!("{}{}", text(line, "text"), text(line, "output"));
    for call in items(line, "calls") {
        out.push('\n');
        out += text(call, "arguments");
    }
    out
}

/// Position of every message by its id, tool results by their call id.
fn positions(lines: &[Value]) -> BTreeMap<&str, usize> {
    let mut found = BTreeMap::new();
    for (index, line) in lines.iter().enumerate() {
        let key = match text(line, "type") {
            "user" | "assistant" => "id",
            "tool" => "call_id",
            _ => continue,
        };
        let old = found.insert(text(line, key), index);
        assert!(old.is_none(), "ids are unique");
    }
    found
}

fn facts(lines: &[Value]) -> impl Iterator<Item = &Value> {
    lines.iter().filter(|line| text(line, "type") == "fact")
}

#[test]
fn two_calls_give_the_same_session() {
    assert_eq!(session(), session());
}

#[test]
fn the_head_comes_first_and_facts_last() {
    let lines = lines();
    let kinds: Vec<&str> = lines.iter().map(|line| text(line, "type")).collect();
    assert_eq!(kinds[..5], ["session", "system", "tools", "memory", "user"]);
    let first_fact = kinds.iter().position(|kind| *kind == "fact");
    let first_fact = first_fact.expect("there are facts");
    assert!(kinds[first_fact..].iter().all(|kind| *kind == "fact"));
    assert_eq!(lines[4]["at"], 0);
}

#[test]
fn every_call_is_answered_at_once_and_in_order() {
    let lines = lines();
    let mut open: Vec<(String, String)> = Vec::new();
    for line in &lines {
        match text(line, "type") {
            "assistant" => {
                assert!(open.is_empty(), "no result is missing before {}", line["id"]);
                for call in items(line, "calls") {
                    let arguments: Result<Value, _> = serde_json::from_str(text(call, "arguments"));
                    assert!(arguments.is_ok_and(|value| value.is_object()));
                    open.push((text(call, "id").to_owned(), text(call, "name").to_owned()));
                }
            }
            "tool" => {
                let (id, name) = open.remove(0);
                assert_eq!((text(line, "call_id"), text(line, "name")), (&*id, &*name));
                assert!(!text(line, "output").is_empty(), "{id} has an output");
            }
            _ => assert!(open.is_empty()),
        }
    }
}

#[test]
fn turns_end_with_an_answer_and_time_goes_on() {
    let lines = lines();
    let (mut users, mut at) = (0, 0);
    let mut previous = &lines[3];
    for line in &lines {
        let kind = text(line, "type");
        let after_facts = text(previous, "type") == "fact";
        if (kind == "user" && users > 0) || (kind == "fact" && !after_facts) {
            assert_eq!(text(previous, "type"), "assistant");
            assert!(previous["calls"].is_null(), "{} ends a turn", previous["id"]);
        }
        users += usize::from(kind == "user");
        if let Some(now) = line["at"].as_u64() {
            assert!(now >= at);
            at = now;
        }
        previous = line;
    }
    assert!(users >= 44, "{users} user turns");
}

#[test]
fn facts_arise_where_they_say_and_are_needed_later() {
    let lines = lines();
    let positions = positions(&lines);
    let ids: Vec<&str> = facts(&lines).map(|fact| text(fact, "id")).collect();
    for fact in facts(&lines) {
        let id = text(fact, "id");
        let arises = positions[text(fact, "arises")];
        let place = contents(&lines[arises]);
        let tokens: Vec<&str> = items(fact, "tokens").filter_map(Value::as_str).collect();
        assert!(!tokens.is_empty());
        for token in &tokens {
            assert!(place.contains(token), "{id}: {token}");
        }
        let needs: Vec<&str> = items(fact, "needs").filter_map(Value::as_str).collect();
        assert!((1..=3).contains(&needs.len()));
        for need in needs {
            let at = positions[need];
            assert!(at > arises, "{id} is needed later");
            let given_away = tokens.iter().any(|token| contents(&lines[at]).contains(token));
            let is_user = text(&lines[at], "type") == "user";
            assert!(!is_user || !given_away, "{id} is not given away by {need}");
        }
        if let Some(newer) = fact["superseded_by"].as_str() {
            assert!(ids.contains(&newer));
        }
    }
    assert!(ids.len() >= 55, "{} facts", ids.len());
}
