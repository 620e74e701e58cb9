use serde_json::{Value, json};

use super::*;
use crate::Loaded;
use crate::formats::Source;
use crate::formats::testing::{describe, import};

#[test]
fn members_of_another_type_count_as_missing_and_the_last_of_two_counts() {
    let line = |members: &str| {
        let reply = r#"{"type":"assistant","uuid":"2","parentUuid":"1","message":{"id":"m","content":"yes"}}"#;
        let user = r#"{"type":"user","uuid":"1","sessionId":"s","parentUuid":null,"message":{"content":"a"}}"#;
        let text = format!("{user}\n{reply}\n{members}");
        let source = Source::of_bytes(text.as_bytes(), "rec.jsonl");
        describe(&import("claude-code", &source)[0].session)
    };
    let known = line("");
    assert_eq!(known, ["user: a", "model: yes"]);
    for message in ["[]", "[\"n\",\"claude-x\"]", "\"no\"", "7", "null"] {
        let odd =
            format!(r#"{{"type":"assistant","uuid":"3","parentUuid":"2","message":{message}}}"#);
        assert_eq!(line(&odd), known, "{message}");
    }
    let odd = r#"{"type":"assistant","uuid":"3","parentUuid":"2","isMeta":{},"version":7,"message":{"id":[],"usage":"x","stop_reason":1,"content":"no"},"message":{"id":"n","content":"more"}}"#;
    assert_eq!(line(odd), ["user: a", "model: yes", "model: more"]);
}

#[test]
fn nothing_to_import_is_an_error() {
    let source = Source::of_bytes(br#"{"type":"summary","leafUuid":"x"}"#, "r.jsonl");
    let e = FORMAT.import_all(&source).unwrap_err().to_string();
    assert!(e.contains("r.jsonl:1: no messages"), "{e}");
}

fn read(text: &str) -> Loaded {
    import("claude-code", &Source::of_bytes(text.as_bytes(), "rec.jsonl")).remove(0)
}

/// Returns lines in a chain: `said` = kind, id of the reply, content.
fn chain(said: &[(&str, &str, Value)], parent: Option<&str>, prompt: u64) -> String {
    let line = |(n, (kind, id, content)): (usize, &(&str, &str, Value))| {
        let before = n.checked_sub(1).map(|n| format!("l{n}"));
        let mut message = json!({"role": kind, "content": content});
        if *kind == "assistant" {
            message["id"] = json!(id);
            message["usage"] = json!({"input_tokens": prompt, "output_tokens": 1});
        }
        let line = json!({"type": kind, "uuid": format!("l{n}"), "sessionId": "s",
            "parentUuid": before.as_deref().or(parent), "message": message});
        line.to_string()
    };
    said.iter().enumerate().map(line).collect::<Vec<_>>().join("\n")
}

/// The second reply has a word, which the model sees again. The third ends the file.
#[test]
fn interrupted_thoughts_are_paid_and_no_reply() {
    let thought = |text: &str| json!([{"type": "thinking", "thinking": text, "signature": "sig"}]);
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    let stop = || text("[Request interrupted by user]");
    let all = [
        ("user", "", json!("go")),
        ("assistant", "m1", thought("hm")),
        ("assistant", "m1", thought("hm, hm")),
        ("user", "", stop()),
        ("user", "", json!("Which port?")),
        ("assistant", "m2", thought("the port")),
        ("assistant", "m2", text("It is")),
        ("user", "", stop()),
        ("user", "", json!("Which?")),
        ("assistant", "m3", thought("no word at all")),
    ];
    let loaded = read(&chain(&all, None, 900));
    assert_eq!(loaded.warnings, Vec::<String>::new());
    let expected = [
        "user: go",
        "user: [Request interrupted by user]",
        "user: Which port?",
        "model: (the portsig) + It is",
        "user: [Request interrupted by user]",
        "user: Which?",
        "model: (no word at allsig)",
        "call: 900",
    ];
    assert_eq!(describe(&loaded.session), expected);
}

/// A large first prompt alone is that of a session with many tools, and a line that is lost hides little.
#[test]
fn a_file_that_hides_what_its_first_line_follows_continues_it() {
    let said = [("user", "", json!("go on")), ("assistant", "m1", json!("Done."))];
    let continues = |parent, prompt| {
        read(&chain(&said, parent, prompt)).session.header.source.unwrap().continues
    };
    assert!(continues(Some("elsewhere"), 112_000));
    assert!(!continues(None, 112_000));
    assert!(!continues(Some("elsewhere"), 40_000));
}
