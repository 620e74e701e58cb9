use ctxbench_session::Session;
use serde_json::json;

use super::super::testing::{self, describe};
use super::*;

fn all(source: &Source<'_>) -> Vec<Session> {
    testing::import("swe-agent", source).into_iter().map(|l| l.session).collect()
}

fn recorded(name: &str) -> Session {
    all(&Source::at(&testing::recorded("swe-agent").join(name))).remove(0)
}

fn import(text: &str) -> Vec<Session> {
    all(&Source::of_bytes(text.as_bytes(), "run.traj"))
}

/// Returns the name and the id of the call at the end of a reply.
fn call(reply: &str) -> (&str, &str) {
    let (name, rest) = reply.rsplit(" + ").next().unwrap().split_once('[').unwrap();
    (name.trim_start_matches("model: "), rest.split_once(']').unwrap().0)
}

#[test]
fn function_calls_keep_their_names_and_find_their_results() {
    let s = recorded("marshmallow-1867-function-calling.traj");
    assert_eq!(s.header.model.as_deref(), Some("gpt-4o"));
    assert_eq!(s.header.title, "TimeDelta serialization precision");
    let told = describe(&s);
    assert!(told[0].starts_with("system: SETTING: "));
    // The file contains one id three times and another twice. Each result belongs to the call
    // before it.
    let mut names = Vec::new();
    for pair in told[2..].chunks(2) {
        let (name, id) = call(&pair[0]);
        assert!(pair[1].starts_with(&format!("result[{id}]: ")), "{pair:?}");
        names.push(name);
    }
    assert_eq!(names, ["create", "edit", "bash", "bash", "find_file", "open"]);
}

#[test]
fn actions_in_text_become_calls_of_the_shell() {
    let s = recorded("pydicom-1458-text.traj");
    // The demonstration is context, and the task is the only user message.
    let told = describe(&s);
    assert!(told[1].starts_with("memory demonstration: "), "{}", told[1]);
    assert!(s.header.title.starts_with("We're currently solving the following issue"));
    assert!(told[3].starts_with("model: First, I'll create") && !told[3].contains("```"));
    assert!(told[3].ends_with("bash[action-1]{\"command\":\"create reproduce_bug.py\\n\"}"));
    assert!(told[4].starts_with("result[action-1]: [File: /pydicom"), "{}", told[4]);
}

#[test]
fn a_reply_without_an_action_has_no_result() {
    let text = json!({"environment": "e", "trajectory": [{"action": "", "observation": "no"}], "history": [
        {"role": "user", "agent": "main", "content": "do"},
        {"role": "assistant", "agent": "main", "content": "hm", "thought": "hm", "action": ""},
        {"role": "user", "agent": "main", "content": "Write a command."},
        {"role": "assistant", "agent": "sub", "content": "aside", "thought": "aside", "action": "ls"},
        {"role": "user", "agent": "sub", "content": "x"}],
        "replay_config": "{\"agent\":{\"model\":{\"name\":\"gpt-4o\"}}}"});
    let s = import(&text.to_string()).remove(0);
    assert_eq!(s.header.model.as_deref(), Some("gpt-4o"));
    assert_eq!(s.header.title, "do");
    let expected = [
        "user: do",
        "model: hm",
        "user: Write a command.",
        "sub/model: aside + bash[action-1]{\"command\":\"ls\"}",
        "sub/result[action-1]: x",
    ];
    assert_eq!(describe(&s), expected);
}

#[test]
fn without_a_history_the_steps_stand_for_it() {
    let step = json!({"query": [{"role": "system", "content": "S"}, {"role": "user", "content": "fix it"}],
        "action": "ls", "observation": "a.py", "response": "I look.\n```\nls\n```", "thought": "I look."});
    let attempt = json!({"environment": "e", "trajectory": [step, step]});
    let s = import(&attempt.to_string()).remove(0);
    let told = describe(&s);
    assert_eq!(told[..2], ["system: S", "user: fix it"]);
    for (n, pair) in (1..).zip(told[2..].chunks(2)) {
        assert_eq!(pair[0], format!("model: I look. + bash[action-{n}]{{\"command\":\"ls\"}}"));
        assert_eq!(pair[1], format!("result[action-{n}]: a.py"));
    }
    assert_eq!(told.len(), 6);
    let two = import(&json!({"attempts": [attempt, attempt], "info": {}}).to_string());
    let ids: Vec<&str> = two.iter().map(|s| &*s.header.id).collect();
    assert_eq!(ids, ["run-attempt-1", "run-attempt-2"]);
    assert_eq!(two[0].entries, s.entries);
}
