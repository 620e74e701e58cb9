use std::collections::HashMap;

use super::*;

#[derive(Default)]
struct Memory(HashMap<&'static str, &'static str>);

impl Companions for Memory {
    fn text(&self, name: &str) -> Result<String, String> {
        self.0.get(name).map(|s| s.to_string()).ok_or_else(|| "no such file".to_string())
    }
    fn base(&self, name: &str) -> Result<Scenario, InputError> {
        let text = self.text(name).map_err(|e| no_base(e, "fix it"))?;
        super::read(&text, name, self)
    }
}

const SMALL: &str = r#"id = "small"
title = "T"
tags = ["default"]
scale = 0.5
context_window = 1000

[[step]]
type = "tools"
file = "tools.json"

[[step]]
type = "user"
text = "please"

[[step]]
type = "assistant"
id = "a"
calls = [{ id = "c", name = "read", arguments = { path = "x" } }]

[[step]]
type = "tool"
call_id = "c"
file = "out.txt"

[[fact]]
id = "f"
kind = "value"
tokens = ["42"]
arises = "c"
"#;

fn memory() -> Memory {
    Memory(HashMap::from([
        ("tools.json", r#"[{"name":"read"}]"#),
        ("out.txt", "it is 42\n"),
        ("small.toml", SMALL),
    ]))
}

fn good(text: &str) -> Scenario {
    super::read(text, "s.toml", &memory()).unwrap()
}

fn bad(text: &str) -> String {
    super::read(text, "s.toml", &memory()).unwrap_err().to_string()
}

#[test]
fn a_scenario_is_a_session_with_a_story() {
    let s = good(SMALL);
    assert_eq!((s.id.as_str(), s.scale), ("small", 0.5));
    assert_eq!(s.session.header.context_window, Some(1000));
    let [
        Entry::Tools { definitions, .. },
        Entry::User(user),
        Entry::Assistant(a),
        Entry::Tool(tool),
    ] = s.session.entries.as_slice()
    else {
        panic!("{:?}", s.session.entries)
    };
    assert_eq!(definitions.len(), 1);
    assert_eq!(user.id, "m2");
    assert_eq!(&*a.calls[0].arguments, r#"{"path":"x"}"#);
    assert_eq!(tool.output.as_deref(), Some("it is 42\n"));
    assert_eq!(s.session.facts.len(), 1);
    let again = crate::jsonl::read(s.session.to_jsonl().unwrap().as_bytes(), "x").unwrap();
    assert_eq!(again.session, s.session);
}

#[test]
fn a_tool_step_may_call_its_output_text() {
    let s = good(&SMALL.replace("file = \"out.txt\"", "text = \"42\""));
    let Some(Entry::Tool(tool)) = s.session.entries.last() else { panic!("not a result") };
    assert_eq!(tool.output.as_deref(), Some("42"));
    let both = bad(&SMALL.replace("file = \"out.txt\"", "file = \"out.txt\"\ntext = \"42\""));
    assert!(both.contains("both \"file\" and \"output\""), "{both}");
}

#[test]
fn an_extension_takes_what_it_does_not_say() {
    let s = good(
        "id = \"more\"\nextends = \"small.toml\"\n[[step]]\ntype = \"user\"\ntext = \"go \
         on\"\n",
    );
    let base = good(SMALL);
    assert_eq!(s.session.entries[..4], base.session.entries[..]);
    assert_eq!(s.session.entries.len(), 5);
    let expected = (base.session.facts, Some(1000));
    assert_eq!((s.session.facts, s.session.header.context_window), expected);
    assert_eq!((s.scale, s.tags.len()), (0.5, 0));
}
