use super::*;
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
