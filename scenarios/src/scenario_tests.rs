use std::collections::HashMap;

use super::*;
use crate::formats::testing::assert_contains;

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

#[test]
fn errors_name_place_fault_and_remedy() {
    for (text, told) in [
        (
            "id = \"x\"\n[[steps]]\ntype = \"user\"",
            "s.toml:2: unknown key `steps`; did you mean step?",
        ),
        ("id = \"x\"\nid = = 3", "s.toml:2: "),
        ("title = \"x\"", "`id` is missing"),
        ("id = \"x\"\nscale = 0", "s.toml:2: \"scale\" does not fit"),
        ("id = \"x\"\nextends = \"nothing\"", "s.toml:2: no such file"),
    ] {
        assert!(bad(text).contains(told), "{told}: {}", bad(text));
    }
    for (step, told) in [
        ("text = \"x\"", "s.toml:3: an entry does not fit: missing field `type`"),
        (
            "type = \"user\"\ntext = \"x\"\ntxt = \"x\"",
            "s.toml:3: unknown key \"txt\"; expected a key of an entry of type \"user\"",
        ),
        ("type = \"user\"", "s.toml:3: missing field \"text\" or \"parts\""),
        ("type = \"user\"\nfile = \"out.txt\"\ntext = \"x\"", "both \"file\" and \"text\""),
        ("type = \"assistant\"\nusage = { inputs = 5 }", "s.toml:3: unknown key \"usage.inputs\""),
    ] {
        let e = bad(&format!("id = \"x\"\n\n[[step]]\n{step}\n"));
        assert!(e.contains(told), "{told}: {e}");
    }
    let fact = bad(&SMALL.replace("arises = \"c\"", "arises = \"cc\""));
    assert!(fact.contains("s.toml:25: fact \"f\" names unknown message \"cc\""), "{fact}");
    let twice =
        bad("id = \"y\"\nextends = \"small.toml\"\n[[step]]\ntype = \"user\"\nid = \"a\"\ntext = \
         \"\"\n");
    assert_contains(
        &twice,
        &["s.toml:3: message id \"a\" was used before, in the scenario that this one extends"],
    );
}

#[test]
fn citations_are_codes_or_free_words() {
    let with = |cites: &str| {
        good_or_error(&SMALL.replace("scale = 0.5", &format!("scale = 0.5\ncites = {cites}")))
    };
    assert_eq!(
        with("[\"failure mode 6\", \"cc#24179\"]").unwrap().cites,
        ["failure mode 6", "cc#24179"]
    );
    let e = with("[\"failure mode 61\"]").unwrap_err();
    assert_contains(
        &e,
        &[
            ":5",
            "unknown citation \"failure mode 61\"",
            "did you mean failure mode",
            "failure mode 6 or",
        ],
    );
    let told = "s.toml:5: cites: it is the text \"failure mode 6\"; expected a list";
    assert!(with("\"failure mode 6\"").unwrap_err().starts_with(told));
    assert!(with("[\" \"]").unwrap_err().contains("empty citation"));
}

fn good_or_error(text: &str) -> Result<Scenario, String> {
    super::read(text, "s.toml", &memory()).map_err(|e| e.to_string())
}
