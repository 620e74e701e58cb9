use ctxbench_core::content::{Part, ToolCall};
use ctxbench_core::session::{AssistantEntry, Entry, Header, Session, ToolEntry, UserEntry};
use ctxbench_core::tokens::o200k;
use serde_json::json;

use super::*;

fn user(id: &str) -> Entry {
    Entry::User(UserEntry { id: id.into(), text: Some("go".into()), ..UserEntry::default() })
}

fn says(id: &str, text: &str) -> Entry {
    Entry::Assistant(AssistantEntry {
        id: id.into(),
        text: Some(text.into()),
        ..AssistantEntry::default()
    })
}

/// A reply that calls these tools, and their results.
fn calls(id: &str, names: &[&str]) -> Vec<Entry> {
    let call = |name: &&str| ToolCall {
        id: format!("{id}-{name}").as_str().into(),
        name: (*name).into(),
        arguments: "{}".into(),
    };
    let calls: Vec<ToolCall> = names.iter().map(call).collect();
    let results = calls.iter().map(|c| {
        Entry::Tool(ToolEntry {
            call_id: c.id.to_string(),
            output: Some("out".into()),
            ..ToolEntry::default()
        })
    });
    let results: Vec<Entry> = results.collect();
    let reply =
        Entry::Assistant(AssistantEntry { id: id.into(), calls, ..AssistantEntry::default() });
    std::iter::once(reply).chain(results).collect()
}

fn system(text: &str) -> Entry {
    Entry::System { text: text.into(), agent: None, extra: Default::default() }
}

fn tools(names: &[&str]) -> Entry {
    let definitions = names.iter().map(|n| json!({ "name": n })).collect();
    Entry::Tools { definitions, agent: None, extra: Default::default() }
}

fn session(entries: Vec<Entry>) -> Session {
    Session { header: Header::default(), entries, facts: vec![] }
}

fn pulled(lever: &str, entries: Vec<Entry>) -> Vec<Entry> {
    Levers::parse(lever).unwrap().applied(&session(entries), 1.0).entries
}

/// Ids of messages and results, those of another window with it.
fn keys(entries: &[Entry]) -> Vec<String> {
    let key = |e: &Entry| match e.agent() {
        Some(agent) => Some(format!("{agent}/{}", e.key()?)),
        None => e.key().map(str::to_string),
    };
    entries.iter().filter_map(key).collect()
}

#[test]
fn a_tool_is_looked_up_before_it_is_called_first() {
    let mut entries = vec![
        system("You code."),
        tools(&["read", "mcp__issues__get", "mcp__issues__close", "mcp__mail__send"]),
        user("u"),
    ];
    entries.extend(calls("a", &["read"]));
    entries.extend(calls("b", &["mcp__issues__get", "mcp__issues__close"]));
    entries.extend(calls("c", &["mcp__issues__get"]));
    entries.push(Entry::Clear { extra: Default::default() });
    entries.extend(calls("d", &["mcp__issues__get"]));
    let out = pulled("tools=deferred", entries.clone());
    let Entry::System { text, .. } = &out[0] else { panic!("{out:?}") };
    assert!(text.ends_with("mcp__issues__close\nmcp__issues__get\nmcp__mail__send"), "{text}");
    let Entry::Tools { definitions, .. } = &out[1] else { panic!("{out:?}") };
    let names: Vec<_> = definitions.iter().map(|d| d["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["read", "ToolSearch"]);
    assert_eq!(
        keys(&out),
        [
            "u",
            "a",
            "a-read",
            "lookup-b",
            "lookup-b-call",
            "b",
            "b-mcp__issues__get",
            "b-mcp__issues__close",
            "c",
            "c-mcp__issues__get",
            "lookup-d",
            "lookup-d-call",
            "d",
            "d-mcp__issues__get",
        ]
    );
    let found = out.iter().find(|e| e.key() == Some("lookup-b-call")).unwrap();
    let Entry::Tool(found) = found else { panic!("{found:?}") };
    assert_eq!(
        found.output.as_deref(),
        Some("{\"name\":\"mcp__issues__get\"}\n{\"name\":\"mcp__issues__close\"}")
    );
    let asked = out.iter().find(|e| e.key() == Some("lookup-b")).unwrap();
    let Entry::Assistant(asked) = asked else { panic!("{asked:?}") };
    assert_eq!(
        &*asked.calls[0].arguments,
        r#"{"query":"select:mcp__issues__get,mcp__issues__close"}"#
    );
    // Without tools of servers there is nothing to defer.
    let plain = vec![system("You code."), tools(&["read"]), user("u"), says("a", "done")];
    assert_eq!(pulled("tools=deferred", plain.clone()), plain);
}

#[test]
fn thinking_is_cut_to_the_budget_of_a_reply() {
    let thought = "one two three four five six seven eight nine ten";
    assert_eq!(o200k(thought), 10);
    let reply = |reasoning: Option<&str>, parts: Option<Vec<Part>>| {
        Entry::Assistant(AssistantEntry {
            id: "a".into(),
            reasoning: reasoning.map(Into::into),
            parts,
            ..AssistantEntry::default()
        })
    };
    let part = |text: &str| Part::Reasoning { text: text.into(), encrypted: None };
    let first = |lever: &str, e: Entry| pulled(lever, vec![e]).remove(0);
    assert_eq!(
        first("thinking=4", reply(Some(thought), None)),
        reply(Some("one two three four"), None)
    );
    assert_eq!(first("thinking=10", reply(Some(thought), None)), reply(Some(thought), None));
    assert_eq!(first("thinking=0", reply(Some(thought), None)), reply(None, None));
    // One budget for all of a reply; its words are no thinking.
    let said = Part::Text("I go on with the tests.".into());
    let parts = vec![part(thought), said.clone(), part(thought)];
    assert_eq!(
        first("thinking=12", reply(None, Some(parts))),
        reply(None, Some(vec![part(thought), said.clone(), part("one two")]))
    );
    // A scenario's scale makes the budget smaller with everything else.
    let levers = Levers::parse("thinking=40").unwrap();
    let scaled = levers.applied(&session(vec![reply(Some(thought), None)]), 0.1).entries;
    assert_eq!(scaled, [reply(Some("one two three four"), None)]);
}

#[test]
fn each_member_does_its_share_in_a_window_of_its_own() {
    let mut entries = vec![system("You code."), user("u")];
    entries.extend(calls("a", &["read"]));
    entries.push(says("b", "half way"));
    entries.push(user("v"));
    entries.extend([says("c", "more"), says("d", "done")]);
    // Two of four replies.
    let out = pulled("team=2x50%", entries.clone());
    let member = |n: u32| {
        [".begin", ".u", ".a", ".a-read", ".b"]
            .map(|k| format!("member-{n}/member-{n}{k}"))
            .to_vec()
    };
    let lead = |keys: &[&str]| keys.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(
        keys(&out),
        [
            lead(&["u", "team"]),
            member(1),
            member(2),
            lead(&["member-1", "member-2", "a", "a-read", "b", "v", "c", "d"]),
        ]
        .concat()
    );
    let report = out.iter().find(|e| e.key() == Some("member-2")).unwrap();
    let Entry::Tool(report) = report else { panic!("{report:?}") };
    assert_eq!(report.output.as_deref(), Some("half way"), "its last words");
    // The call within a member's window and its result agree.
    let reply = out.iter().find(|e| e.key() == Some("member-1.a")).unwrap();
    let Entry::Assistant(reply) = reply else { panic!("{reply:?}") };
    assert_eq!(&*reply.calls[0].id, "member-1.a-read");
    // The whole session is the default, and a share is rounded up to a reply.
    let replies = |lever: &str| {
        let of = |e: &Entry| matches!(e, Entry::Assistant(a) if a.agent.is_some());
        pulled(lever, entries.clone()).iter().filter(|e| of(e)).count()
    };
    assert_eq!([replies("team=1"), replies("team=3x26%"), replies("team=1x1%")], [4, 6, 1]);
}

#[test]
fn errors_say_what_a_lever_takes() {
    let e = |text: &str| Levers::parse(text).unwrap_err().to_string();
    assert!(e("thinkin=4").contains("did you mean thinking"), "{}", e("thinkin=4"));
    assert!(e("thinking=much").contains("8k, not `much`"), "{}", e("thinking=much"));
    assert!(e("subagents=claude-haiku").contains("claude-haiku-4-5"), "{}", e("subagents=x"));
    for wrong in ["team=0", "team=3x0%", "team=3x50", "team=x", "team=101", "team=3x101%"] {
        assert!(e(wrong).contains("such as 6 or 6x50%"), "{}", e(wrong));
    }
    assert_eq!(e("team=3+team=4"), "lever `team` is given twice");
    let unknown = e("subagents=nope");
    assert!(unknown.starts_with("lever `subagents`: "), "{unknown}");
    assert!(unknown.contains("nope") && !unknown.contains("takes"), "{unknown}");
    assert_eq!(
        e("foo=1"),
        "there is no lever `foo`; write thinking=TOKENS, tools=deferred, subagents=MODEL or \
         team=MEMBERSxSHARE%, joined by +"
    );
    let all = "thinking=8k+tools=deferred+subagents=claude-haiku-4-5+team=6";
    assert_eq!(
        Levers::parse(all).unwrap().to_string(),
        "thinking=8000+tools=deferred+subagents=claude-haiku-4-5+team=6x100%"
    );
}

#[test]
fn a_lever_that_does_nothing_is_told() {
    let idle = |lever: &str, entries: Vec<Entry>| {
        Levers::parse(lever).unwrap().idle(&session(entries), 1.0)
    };
    let plain = || vec![system("You code."), tools(&["read"]), user("u"), says("a", "done")];
    let all = "thinking=8k+tools=deferred+subagents=claude-haiku-4-5";
    assert_eq!(
        idle(all, plain()),
        ["thinking=8000", "tools=deferred", "subagents=claude-haiku-4-5"]
    );
    assert!(idle("team=2+subagents=claude-haiku-4-5", plain()).is_empty());
    assert_eq!(idle("team=2", vec![user("u")]), ["team=2x100%"], "nobody works there");
}
