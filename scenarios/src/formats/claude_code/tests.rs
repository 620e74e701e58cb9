use serde_json::json;

use super::*;
use crate::formats::Source;
use crate::formats::testing::import;

#[test]
fn nothing_to_import_is_an_error() {
    let source = Source::of_bytes(br#"{"type":"summary","leafUuid":"x"}"#, "r.jsonl");
    let e = FORMAT.import_all(&source).unwrap_err().to_string();
    assert!(e.contains("r.jsonl:1: no messages"), "{e}");
}

/// A large first prompt alone is that of a session with many tools, and a line that is lost hides little.
#[test]
fn a_file_that_hides_what_its_first_line_follows_continues_it() {
    let continues = |parent: Option<&str>, prompt: u64| {
        let user = json!({"type": "user", "uuid": "1", "sessionId": "s", "parentUuid": parent,
            "message": {"role": "user", "content": "go on"}});
        let usage = json!({"input_tokens": prompt, "output_tokens": 1});
        let reply = json!({"type": "assistant", "uuid": "2", "sessionId": "s", "parentUuid": "1",
            "message": {"role": "assistant", "id": "m1", "content": "Done.", "usage": usage}});
        let text = format!("{user}\n{reply}");
        let all = import("claude-code", &Source::of_bytes(text.as_bytes(), "rec.jsonl"));
        all[0].session.header.source.as_ref().unwrap().continues
    };
    assert!(continues(Some("elsewhere"), 112_000));
    assert!(!continues(None, 112_000));
    assert!(!continues(Some("elsewhere"), 40_000));
}
