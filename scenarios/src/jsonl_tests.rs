use ctxbench_core::content::{Part, ToolCall};
use ctxbench_core::host::RewindMode;
use ctxbench_session::*;
use proptest::prelude::*;

use super::*;

const HEAD: &str = r#"{"type":"session","version":1,"id":"s"}"#;

fn good(lines: &[&str]) -> Loaded {
    read(format!("{HEAD}\n{}", lines.join("\n")).as_bytes(), "s.jsonl").unwrap()
}

fn bad(text: &str) -> String {
    read(text.as_bytes(), "s.jsonl").unwrap_err().to_string()
}

#[test]
fn half_a_character_is_a_mark() {
    let l = good(&[r#"{"type":"user","id":"a","text":"cut \ud83d"}"#]);
    let Entry::User(user) = &l.session.entries[0] else { panic!("{:?}", l.session.entries) };
    assert_eq!(user.text.as_deref(), Some("cut \u{fffd}"));
}

#[test]
fn a_file_begins_with_the_header() {
    assert_eq!(
        bad(""),
        format!("s.jsonl:1: the file is empty; expected {HEADER}; record or write a session first")
    );
    for (header, told) in [
        (r#"{"type":"user","id":"a","text":"x"}"#, "the first line has the type \"user\""),
        ("noise", "s.jsonl:1: the first line is not a JSON object"),
    ] {
        assert!(bad(header).contains(told), "{told}: {}", bad(header));
    }
}

#[test]
fn calls_without_results_stay_and_results_without_calls_go() {
    let l = good(&[
        r#"{"type":"assistant","id":"a","calls":[{"id":"c1","name":"n","arguments":"{}"},{"id":"c2","name":"n","arguments":"{}"}]}"#,
        r#"{"type":"tool","call_id":"c1","output":"x"}"#,
        r#"{"type":"tool","call_id":"c1","output":"again"}"#,
        r#"{"type":"tool","call_id":"c9","output":"y"}"#,
    ]);
    assert_eq!(l.session.entries.len(), 2);
    let expected = [
        "s.jsonl:4: second result for call \"c1\"; left out",
        "s.jsonl:5: result for \"c9\", which no earlier reply called; left out",
        "s.jsonl:2: call \"c2\" has no result; kept as it is",
    ];
    assert_eq!(l.warnings, expected);
}

#[test]
fn a_last_line_that_breaks_off_is_left_out() {
    let fact =
        r#"{"type":"fact","id":"f","kind":"goal","tokens":["x"],"arises":"a","needs":["b"]}"#;
    let l =
        good(&[r#"{"type":"user","id":"a","text":"x"}"#, fact, r#"{"type":"user","id":"b","te"#]);
    assert_eq!(l.session.entries.len(), 1);
    assert_eq!(l.session.facts[0].needs, Vec::<String>::new());
    assert_eq!(l.warnings[0], "s.jsonl:4: the last line breaks off; the lines before it are used");
}

#[test]
fn a_line_that_breaks_off_loses_only_itself() {
    let whole = r#"{"type":"user","id":"a","text":"x"}"#;
    let torn = r#"{"type":"user","id":"b","te"#;
    let rewind = r#"{"type":"rewind","to":"b"}"#;
    let fact =
        r#"{"type":"fact","id":"f","kind":"goal","tokens":["x"],"arises":"a","needs":["b"]}"#;
    let last = r#"{"type":"user","id":"c","text":"y"}"#;
    let l = good(&[
        whole,
        &format!("{torn}{{\"type\":\"user\",\"id\":\"d\",\"text\":\"z\"}}"),
        torn,
        rewind,
        fact,
        last,
    ]);
    let ids: Vec<&str> = l.session.entries.iter().filter_map(Entry::key).collect();
    assert_eq!(ids, ["a", "d", "c"]);
    assert_eq!(l.session.entries.len(), 3);
    for (warning, told) in l.warnings.iter().zip([
        "s.jsonl:3: 1 object on one line, after one that breaks off; read",
        "s.jsonl:4: not a JSON object (EOF while parsing a string",
        "s.jsonl:5: rewind to \"b\", which the damaged file lacks; left out",
        "s.jsonl:6: fact \"f\" names messages that the damaged file lacks; left out there",
    ]) {
        assert!(warning.starts_with(told), "{told}: {warning}");
    }
    assert_eq!(l.warnings.len(), 4);
    // A torn header loses its session and no other.
    let text = [HEAD, whole, &HEAD[..30], last, HEAD, last].join("\n");
    let mut all = Vec::new();
    read_each(text.as_bytes(), "s.jsonl", &mut |one| {
        all.push(one.map(|l| l.session.entries.len()).map_err(|e| e.to_string()));
        ControlFlow::Continue(())
    });
    assert_eq!((&all[0], &all[2], all.len()), (&Ok(1), &Ok(1), 3));
    let told = all[1].as_ref().unwrap_err();
    assert!(told.starts_with("s.jsonl:3: the first line is not a JSON object"), "{told}");
}

fn word() -> impl Strategy<Value = String> {
    "[a-zA-Zäß€\" \n\\\\{}]{0,12}"
}

fn entry(i: usize) -> impl Strategy<Value = Vec<Entry>> {
    let at = proptest::option::of(0..=crate::bounds::TOKENS);
    (0..7_u8, word(), word(), at, any::<bool>()).prop_map(move |(kind, text, other, at, inner)| {
        match kind {
            0 => vec![Entry::System { text, agent: None }],
            1 => {
                let definitions = vec![serde_json::json!({ "name": "run" })];
                vec![Entry::Tools { definitions, agent: None }]
            }
            2 => vec![
                Entry::RepoMap { text: text.clone() },
                Entry::Memory { path: other.clone(), text: text.clone() },
                Entry::File { path: other, text, mode: FileMode::ReadOnly },
            ],
            3 => {
                let (id, text) = (format!("m{i}"), Some(text.into()));
                vec![Entry::User(UserEntry { id, text, at, ..UserEntry::default() })]
            }
            4 => vec![
                Entry::Assistant(reply(i, &text, &other, inner)),
                Entry::Tool(ToolEntry {
                    call_id: format!("c{i}"),
                    output: Some(text.into()),
                    ..ToolEntry::default()
                }),
            ],
            5 => vec![Entry::RecordedCompaction(RecordedCompaction {
                pre_tokens: at,
                summary: Some(text.clone()),
                trigger: at.map(|_| Trigger::Manual),
                instructions: at.map(|_| other),
                model: at.map(|_| text),
                usage: at.map(|input| RecordedUsage { input, ..RecordedUsage::default() }),
                at,
                ..RecordedCompaction::default()
            })],
            _ => vec![
                Entry::Clear,
                Entry::NewSession,
                Entry::Restart,
                Entry::Idle { ms: 5 },
                Entry::Compact { instructions: None, at },
            ],
        }
    })
}

fn reply(i: usize, text: &str, reasoning: &str, in_parts: bool) -> AssistantEntry {
    let call = ToolCall::new(format!("c{i}"), "run", reasoning);
    let usage = Some(RecordedUsage {
        input: 1,
        output: 2,
        cache_read: 3,
        cache_write: 4,
        cache_write_1h: 5,
        output_estimate: Some(6),
        billing: Billing::default(),
    });
    let whole = AssistantEntry { id: format!("m{i}"), usage, ..AssistantEntry::default() };
    if in_parts {
        let thought = Part::Reasoning { text: reasoning.into(), encrypted: Some("e".into()) };
        let parts = Some(vec![thought, Part::Text(text.into()), Part::Call(call)]);
        return AssistantEntry { parts, ..whole };
    }
    let (text, reasoning) = (Some(text.into()), Some(reasoning.into()));
    AssistantEntry { text, reasoning, calls: vec![call], ..whole }
}

#[test]
fn a_fact_that_nothing_says_is_told() {
    let with = |fact: &str| {
        let said = r#"{"type":"user","id":"u1","text":"the port is 8,443"}"#;
        let map = r#"{"type":"repo_map","text":"PORT = 47113"}"#;
        read([HEAD, map, said, fact].join("\n").as_bytes(), "s.jsonl").unwrap().warnings
    };
    let fact = |token: &str| {
        format!(r#"{{"type":"fact","id":"f","kind":"value","tokens":["{token}"],"arises":"u1"}}"#)
    };
    for token in ["8,443", "The Port", "8443", "47113"] {
        assert_eq!(with(&fact(token)), Vec::<String>::new(), "{token}");
    }
    assert_eq!(
        with(&fact("nowhere")),
        ["s.jsonl:4: fact \"f\" is said nowhere in the session, so nothing can keep it; correct \
             its \"tokens\" (nowhere)"]
    );
}

fn session() -> impl Strategy<Value = Session> {
    (0usize..8).prop_flat_map(|n| {
        let entries: Vec<_> = (0..n).map(|i| entry(i).boxed()).collect();
        (entries, word(), proptest::option::of(1..=crate::bounds::TOKENS)).prop_map(
            |(groups, title, context_window)| {
                let mut entries: Vec<Entry> = groups.into_iter().flatten().collect();
                let said = |id: &str| {
                    let (id, text) = (id.into(), Some("bye, x".into()));
                    Entry::User(UserEntry { id, text, ..UserEntry::default() })
                };
                let (to, mode) = ("last".into(), RewindMode::Both);
                let rewind = Entry::Rewind { to, mode, instructions: None };
                entries.extend([said("bye"), rewind, said("last")]);
                let known =
                    r#"{"id":"f","kind":"todo","tokens":["x"],"arises":"bye","needs":["last"]}"#;
                let fact = serde_json::from_str(known).unwrap();
                let (version, id) = (1, "s".into());
                let header = Header { version, id, title, context_window, ..Header::default() };
                Session { header, entries, facts: vec![fact] }
            },
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read_again(s in session()) {
        let loaded = read(s.to_jsonl().unwrap().as_bytes(), "x").unwrap();
        prop_assert_eq!(loaded.session, s);
        prop_assert_eq!(loaded.warnings, Vec::<String>::new());
    }

    #[test]
    fn a_file_cut_anywhere_is_an_error_a_warning_or_whole_lines(s in session()) {
        let text = s.to_jsonl().unwrap();
        for end in 0..text.len() {
            let part = &text.as_bytes()[..end];
            if let Ok(loaded) = read(part, "x") {
                let whole = part.ends_with(b"\n") || text.as_bytes()[end] == b'\n';
                prop_assert!(whole || !loaded.warnings.is_empty(), "cut at {end} went unnoticed");
            }
        }
    }
}
