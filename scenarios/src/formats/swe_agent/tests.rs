use super::super::testing::{describe, import, recorded};
use super::*;

/// Returns the name and the id of the call at the end of a reply.
fn call(reply: &str) -> (&str, &str) {
    let (name, rest) = reply.rsplit(" + ").next().unwrap().split_once('[').unwrap();
    (name.trim_start_matches("model: "), rest.split_once(']').unwrap().0)
}

#[test]
fn function_calls_keep_their_names_and_find_their_results() {
    let path = recorded("swe-agent/marshmallow-1867-function-calling.traj");
    let s = import("swe-agent", &Source::at(&path)).remove(0).session;
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
