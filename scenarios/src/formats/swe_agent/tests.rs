use std::path::Path;

use ctxbench_core::session::{Entry, Session};
use serde_json::json;

use super::super::detect;
use super::*;

fn all(source: &Source<'_>) -> Vec<Session> {
    let format = detect(source).expect("recognised");
    assert_eq!(format.name, "swe-agent");
    format.import_all(source).unwrap().into_iter().map(|l| l.session).collect()
}

fn recorded(name: &str) -> Session {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/recordings/swe-agent");
    all(&Source::at(&data.join(name))).remove(0)
}

fn import(text: &str) -> Vec<Session> {
    all(&Source::of_bytes(text.as_bytes(), "run.traj"))
}

fn calls(session: &Session) -> Vec<(String, String, String)> {
    let replies = session.entries.iter().filter_map(|e| match e {
        Entry::Assistant(a) => Some(a),
        _ => None,
    });
    let call = |c: ctxbench_core::content::ToolCall| {
        (c.id.to_string(), c.name.to_string(), c.arguments.to_string())
    };
    replies.flat_map(|a| a.all_calls()).map(call).collect()
}

#[test]
fn function_calls_keep_their_names_and_find_their_results() {
    let s = recorded("marshmallow-1867-function-calling.traj");
    assert_eq!(s.header.model.as_deref(), Some("gpt-4o"));
    assert_eq!(s.header.title, "TimeDelta serialization precision");
    assert!(matches!(&s.entries[0], Entry::System { text, .. } if text.starts_with("SETTING: ")));
    let names: Vec<String> = calls(&s).into_iter().map(|c| c.1).collect();
    assert_eq!(names, ["create", "edit", "bash", "bash", "find_file", "open"]);
    // The file contains one id three times and another twice. Each result belongs to the call
    // before it.
    let order: Vec<_> = s.entries[2..].chunks(2).collect();
    for pair in order {
        let [Entry::Assistant(a), Entry::Tool(t)] = pair else { panic!("{pair:?}") };
        assert_eq!(*a.all_calls()[0].id, *t.call_id);
    }
}

#[test]
fn actions_in_text_become_calls_of_the_shell() {
    let s = recorded("pydicom-1458-text.traj");
    // The demonstration is context, and the task is the only user message.
    assert!(matches!(&s.entries[1], Entry::Memory { path, .. } if path == "demonstration"));
    assert!(s.header.title.starts_with("We're currently solving the following issue"));
    let calls = calls(&s);
    assert_eq!(calls[0].1, "bash");
    assert_eq!(calls[0].2, json!({"command": "create reproduce_bug.py\n"}).to_string());
    let Entry::Assistant(first) = &s.entries[3] else { panic!("{:?}", s.entries[3]) };
    let text = first.content()[0].text().to_string();
    assert!(text.starts_with("First, I'll create") && !text.contains("```"), "{text}");
    let Entry::Tool(seen) = &s.entries[4] else { panic!("{:?}", s.entries[4]) };
    assert_eq!(seen.call_id, calls[0].0);
    assert!(seen.output.as_deref().unwrap().starts_with("[File: /pydicom"));
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
    let agents: Vec<Option<&str>> = s.entries.iter().map(Entry::agent).collect();
    assert_eq!(agents, [None, None, None, Some("sub"), Some("sub")]);
    assert!(
        matches!(&s.entries[2], Entry::User(u) if u.text.as_deref() == Some("Write a command."))
    );
}

#[test]
fn without_a_history_the_steps_stand_for_it() {
    let step = json!({"query": [{"role": "system", "content": "S"}, {"role": "user", "content": "fix it"}],
        "action": "ls", "observation": "a.py", "response": "I look.\n```\nls\n```", "thought": "I look."});
    let attempt = json!({"environment": "e", "trajectory": [step, step]});
    let s = import(&attempt.to_string()).remove(0);
    assert!(
        matches!(
            s.entries.as_slice(),
            [
                Entry::System { .. },
                Entry::User(_),
                Entry::Assistant(_),
                Entry::Tool(_),
                Entry::Assistant(_),
                Entry::Tool(_)
            ]
        ),
        "{:?}",
        s.entries
    );
    let two = import(&json!({"attempts": [attempt, attempt], "info": {}}).to_string());
    let ids: Vec<&str> = two.iter().map(|s| &*s.header.id).collect();
    assert_eq!(ids, ["run-attempt-1", "run-attempt-2"]);
    assert_eq!(two[0].entries, s.entries);
}
