use super::*;
use crate::jsonl;

fn session(lines: &[&str]) -> Session {
    let text = format!("{}\n{}", r#"{"type":"session","version":1,"id":"s"}"#, lines.join("\n"));
    jsonl::read(text.as_bytes(), "s").unwrap().session
}

fn found(lines: &[&str]) -> Vec<(String, FactKind, String, Vec<String>)> {
    let mut s = session(lines);
    add(&mut s);
    s.facts.into_iter().map(|f| (f.tokens.concat(), f.kind, f.arises, f.needs)).collect()
}

const ASK: &str = r#"{"type":"user","id":"u1","text":"look at src/known/file.rs"}"#;
const CALL: &str =
    r#"{"type":"assistant","id":"a1","calls":[{"id":"c1","name":"ls","arguments":"{}"}]}"#;
const RESULT: &str = r#"{"type":"tool","call_id":"c1","output":"src/known/file.rs /w/src/new/auth.rs parse_token 20260108 nothing"}"#;

#[test]
fn what_a_result_introduced_and_a_later_turn_used_is_a_fact() {
    let use_ = r#"{"type":"assistant","id":"a2","text":"parse_token on 20260108","calls":[{"id":"c2","name":"read","arguments":"{\"p\":\"src/new/auth.rs\",\"q\":\"src/known/file.rs\"}"}]}"#;
    let done = r#"{"type":"tool","call_id":"c2","output":"x"}"#;
    let facts =
        found(&[ASK, CALL, RESULT, r#"{"type":"user","id":"u2","text":"go on"}"#, use_, done]);
    let need = vec!["a2".to_string()];
    assert_eq!(
        facts,
        [
            ("src/new/auth.rs".to_string(), FactKind::Artifact, "c1".to_string(), need.clone()),
            ("parse_token".to_string(), FactKind::Value, "c1".to_string(), need.clone()),
            ("20260108".to_string(), FactKind::Value, "c1".to_string(), need),
        ]
    );
}

#[test]
fn what_is_used_at_once_or_said_by_the_user_first_is_none() {
    let at_once = r#"{"type":"assistant","id":"a2","text":"parse_token"}"#;
    assert_eq!(found(&[ASK, CALL, RESULT, at_once]), []);
    let said = r#"{"type":"user","id":"u0","text":"parse_token"}"#;
    let use_ = r#"{"type":"assistant","id":"a2","text":"parse_token"}"#;
    assert_eq!(
        found(&[said, CALL, RESULT, r#"{"type":"user","id":"u2","text":"go on"}"#, use_]),
        []
    );
    assert_eq!(
        found(&[
            ASK,
            CALL,
            RESULT,
            r#"{"type":"clear"}"#,
            r#"{"type":"user","id":"u2","text":"go on"}"#,
            use_
        ]),
        []
    );
}

#[test]
fn five_replies_are_far_enough_and_three_needs_are_kept() {
    let mut lines = vec![ASK.to_string(), CALL.to_string(), RESULT.to_string()];
    lines.extend((2..12).map(|i| {
        format!(r#"{{"type":"assistant","id":"a{i}","text":"parse_token parse_token"}}"#)
    }));
    let facts = found(&lines.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(facts.len(), 1);
    assert_eq!(facts[0].3, ["a6", "a7", "a8"]);
}

#[test]
fn of_many_facts_an_even_choice_is_kept() {
    let words: Vec<String> = (0..1000).map(|i| format!("word_number_{i}")).collect();
    let all = words.join(" ");
    let result = format!(r#"{{"type":"tool","call_id":"c1","output":"{all}"}}"#);
    let use_ = format!(r#"{{"type":"assistant","id":"a2","text":"{all}"}}"#);
    let facts = found(&[ASK, CALL, &result, r#"{"type":"user","id":"u2","text":"go on"}"#, &use_]);
    assert_eq!(facts.len(), MOST);
    assert_eq!((facts[0].0.as_str(), facts[399].0.as_str()), ("word_number_0", "word_number_997"));
}

#[test]
fn given_facts_stay() {
    let mut s =
        session(&[ASK, r#"{"type":"fact","id":"f","kind":"goal","tokens":["x"],"arises":"u1"}"#]);
    add(&mut s);
    assert_eq!(s.facts.len(), 1);
}
