//! The subagents of a session: which messages are theirs, which call started each, and whether its
//! caller waited.
//!
//! Which call starts an agent, the first rule that finds one: the call whose id is the agent's; the
//! call with the agent's first message among its arguments; the first call without a result of the
//! newest reply before the agent's first message. A call starts one agent. The caller waits where
//! the result of the call stands behind the agent's last message. An agent without a call is
//! replayed when the main conversation is over, and nobody waits for it.

use std::collections::HashMap;

use ctxbench_core::calibration;
use ctxbench_core::content::joined_text;
use ctxbench_core::session::{AssistantEntry, Entry, Session, ToolEntry, UserEntry};
use serde_json::Value;

/// A subagent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Subagent {
    pub(super) id: String,
    pub(super) call: Option<AgentCall>,
    /// Whether the caller waits for its end.
    pub(super) waits: bool,
}

/// The call that starts a subagent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AgentCall {
    pub(super) id: String,
    /// In whose window it is made; `None` = the main conversation.
    pub(super) caller: Option<String>,
}

/// The subagents of a session in the order in which they begin.
pub(super) fn subagents(session: &Session) -> Vec<Subagent> {
    let mut all: Vec<Found<'_>> = Vec::new();
    let mut index: HashMap<&str, usize> = HashMap::new();
    for (i, e) in session.entries.iter().enumerate() {
        let Some(id) = e.agent().filter(|_| e.key().is_some()) else { continue };
        let at = *index.entry(id).or_insert_with(|| {
            all.push(Found { id, first: i, last: i, prompt: prompt(e) });
            all.len() - 1
        });
        all[at].last = i;
    }
    if all.is_empty() {
        return Vec::new();
    }
    let calls = Calls::of(session);
    all.iter().zip(calls.of_each(&all)).map(|(a, i)| a.started_by(i.map(|i| &calls.0[i]))).collect()
}

/// How deep subagents may start subagents; those below are not replayed. No product is known to go
/// further than one level.
pub(super) const DEEPEST: usize = 32;

/// How many callers stand above a subagent, the main conversation among them.
pub(super) fn depth(all: &[Subagent], i: usize) -> usize {
    let caller = |i: usize| {
        all[i].call.as_ref().and_then(|c| all.iter().position(|a| Some(&a.id) == c.caller.as_ref()))
    };
    // A caller begins before those that it calls, so this ends.
    std::iter::successors(Some(i), |i| caller(*i)).take(DEEPEST + 1).count()
}

/// What a person should know of a session's subagents before looking at figures.
pub fn remarks(session: &Session) -> Vec<String> {
    let all = subagents(session);
    let quoted = |of: &mut dyn Iterator<Item = &Subagent>| {
        of.map(|a| format!("{:?}", a.id)).collect::<Vec<_>>().join(", ")
    };
    let mut out = Vec::new();
    let uncalled = quoted(&mut all.iter().filter(|a| a.call.is_none()));
    if !uncalled.is_empty() {
        out.push(format!(
            "no call before it starts subagent {uncalled}; replayed when the main \
            conversation is over"
        ));
    }
    let deep = quoted(
        &mut all.iter().enumerate().filter(|(i, _)| depth(&all, *i) > DEEPEST).map(|(_, a)| a),
    );
    if !deep.is_empty() {
        out.push(format!("subagents more than {DEEPEST} levels deep are not replayed: {deep}"));
    }
    let mut made: HashMap<String, Option<&str>> = HashMap::new();
    for e in &session.entries {
        match e {
            Entry::Assistant(a) => made
                .extend(a.all_calls().into_iter().map(|c| (c.id.to_string(), a.agent.as_deref()))),
            Entry::Tool(t)
                if made.get(&t.call_id).is_some_and(|caller| *caller != t.agent.as_deref()) =>
            {
                out.push(format!(
                    "the result of call {:?} stands in another window than the call; \
                    check its `agent`",
                    t.call_id
                ));
            }
            _ => {}
        }
    }
    out
}

struct Found<'a> {
    id: &'a str,
    first: usize,
    last: usize,
    prompt: String,
}

struct Made<'a> {
    at: usize,
    caller: Option<&'a str>,
    id: String,
    /// Its arguments that are text, trimmed.
    texts: Vec<String>,
    /// Where its result stands.
    result: Option<usize>,
}

struct Calls<'a>(Vec<Made<'a>>);

impl<'a> Calls<'a> {
    fn of(session: &'a Session) -> Self {
        let result = |(i, e): (usize, &'a Entry)| match e {
            Entry::Tool(t) => Some((t.call_id.as_str(), i)),
            _ => None,
        };
        let results: HashMap<&str, usize> =
            session.entries.iter().enumerate().filter_map(result).collect();
        let mut out = Vec::new();
        for (at, e) in session.entries.iter().enumerate() {
            let Entry::Assistant(a) = e else { continue };
            out.extend(a.all_calls().into_iter().map(|c| Made {
                at,
                caller: a.agent.as_deref(),
                result: results.get(&*c.id).copied(),
                id: c.id.to_string(),
                texts: texts(&c.arguments),
            }));
        }
        Calls(out)
    }

    /// The call that starts each subagent. Sure signs are looked for first, so that a guess for one
    /// takes no call from another.
    fn of_each(&self, agents: &[Found<'_>]) -> Vec<Option<usize>> {
        let mut found: Vec<Option<usize>> = vec![None; agents.len()];
        for sign in [Self::by_id, Self::by_prompt, Self::by_place] {
            for (n, agent) in
                agents.iter().enumerate().filter(|(n, _)| found[*n].is_none()).collect::<Vec<_>>()
            {
                let free = |i: &usize| {
                    !found.contains(&Some(*i))
                        && self.0[*i].caller != Some(agent.id)
                        && self.0[*i].at < agent.first
                };
                found[n] = sign(self, agent, (0..self.0.len()).filter(free).collect());
            }
        }
        found
    }

    fn by_id(&self, agent: &Found<'_>, free: Vec<usize>) -> Option<usize> {
        free.into_iter().find(|i| self.0[*i].id == agent.id)
    }

    fn by_prompt(&self, agent: &Found<'_>, free: Vec<usize>) -> Option<usize> {
        free.into_iter()
            .find(|i| !agent.prompt.is_empty() && self.0[*i].texts.contains(&agent.prompt))
    }

    /// The first open call of the newest reply that has one.
    fn by_place(&self, agent: &Found<'_>, free: Vec<usize>) -> Option<usize> {
        let open: Vec<usize> = free
            .into_iter()
            .filter(|i| self.0[*i].result.is_none_or(|r| r > agent.first))
            .collect();
        let newest = open.iter().map(|i| self.0[*i].at).max()?;
        open.into_iter().find(|i| self.0[*i].at == newest)
    }
}

impl Found<'_> {
    fn started_by(&self, made: Option<&Made<'_>>) -> Subagent {
        let call =
            made.map(|m| AgentCall { id: m.id.clone(), caller: m.caller.map(str::to_string) });
        Subagent {
            id: self.id.to_string(),
            call,
            waits: made.and_then(|m| m.result).is_some_and(|r| r > self.last),
        }
    }
}

/// The text of a user message, trimmed.
fn prompt(e: &Entry) -> String {
    let Entry::User(u) = e else { return String::new() };
    joined_text(&u.content(), "").trim().to_string()
}

fn texts(arguments: &str) -> Vec<String> {
    let Ok(Value::Object(map)) = serde_json::from_str(arguments) else { return Vec::new() };
    map.values().filter_map(|v| Some(v.as_str()?.trim().to_string())).collect()
}

/// The session of one subagent: its messages as a main conversation, under its own system prompt
/// and tools where the session gives them, else under those of the session; memory files and the
/// like are everybody's. All facts of the session stay.
pub(super) fn own(session: &Session, id: &str) -> Session {
    let mut out = Session {
        header: session.header.clone(),
        entries: Vec::new(),
        facts: session.facts.clone(),
    };
    let gives =
        |kind: fn(&Entry) -> bool| session.entries.iter().any(|e| kind(e) && e.agent() == Some(id));
    let system = gives(|e| matches!(e, Entry::System { .. })).then_some(id);
    let tools = gives(|e| matches!(e, Entry::Tools { .. })).then_some(id);
    for e in &session.entries {
        let own = match e {
            Entry::System { .. } => e.agent() == system,
            Entry::Tools { .. } => e.agent() == tools,
            Entry::User(_) | Entry::Assistant(_) | Entry::Tool(_) => e.agent() == Some(id),
            Entry::Memory { .. } | Entry::RepoMap { .. } | Entry::File { .. } => true,
            _ => false,
        };
        if own {
            out.entries.push(unmarked(e.clone()));
        }
    }
    out.header.model = out
        .entries
        .iter()
        .find_map(|e| if let Entry::Assistant(a) = e { a.model.clone() } else { None })
        .or(out.header.model);
    // Its first request tells what the recording lacks of its own fixed part.
    if out.header.prefix_tokens.is_some() {
        let recorded = out.header.model.as_deref();
        let by = calibration::counting_of(recorded).of_visible_text();
        let own = calibration::prefix(&out.entries, &by, recorded).filter(|n| *n > 0);
        out.header.prefix_tokens = own.or(out.header.prefix_tokens);
    }
    out
}

fn unmarked(mut e: Entry) -> Entry {
    match &mut e {
        Entry::User(UserEntry { agent, .. })
        | Entry::Assistant(AssistantEntry { agent, .. })
        | Entry::Tool(ToolEntry { agent, .. })
        | Entry::System { agent, .. }
        | Entry::Tools { agent, .. } => *agent = None,
        _ => {}
    }
    e
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(lines: &str) -> Session {
        let head = r#"{"type":"session","version":1,"id":"s"}"#;
        ctxbench_scenarios::jsonl::read(format!("{head}\n{lines}").as_bytes(), "s").unwrap().session
    }

    fn agent(id: &str, call: Option<(&str, Option<&str>)>, waits: bool) -> Subagent {
        let call = call
            .map(|(id, caller)| AgentCall { id: id.into(), caller: caller.map(str::to_string) });
        Subagent { id: id.into(), call, waits }
    }

    #[test]
    fn what_does_not_fit_is_said_and_deep_nesting_ends() {
        let mut lines = vec![r#"{"type":"user","id":"u","text":"go"}"#.to_string()];
        let mut caller = String::new();
        for i in 0..200 {
            lines.push(format!(r#"{{"type":"assistant","id":"a{i}","calls":[{{"id":"c{i}","name":"task","arguments":"{{}}"}}]{caller}}}"#));
            caller = format!(r#","agent":"c{i}""#);
            lines.push(format!(r#"{{"type":"user","id":"u{i}","text":"t"{caller}}}"#));
        }
        lines.push(r#"{"type":"tool","call_id":"c7","output":"x"}"#.into());
        let s = session(&lines.join("\n"));
        let all = subagents(&s);
        assert_eq!((depth(&all, 0), depth(&all, 31), depth(&all, 32)), (1, DEEPEST, DEEPEST + 1));
        let said = remarks(&s);
        assert!(
            said[0].starts_with(
                "subagents more than 32 levels deep are not replayed: \"c32\", \"c33\""
            ),
            "{said:?}"
        );
        assert_eq!(
            said[1],
            "the result of call \"c7\" stands in another window than the call; check its `agent`"
        );
        let before = session(r#"{"type":"user","id":"x","text":"early","agent":"x"}"#);
        assert!(
            remarks(&before)[0].starts_with("no call before it starts subagent \"x\""),
            "{:?}",
            remarks(&before)
        );
    }

    #[test]
    fn a_guess_takes_no_call_from_one_that_is_sure() {
        let s = session(
            r#"{"type":"user","id":"u1","text":"go"}
{"type":"assistant","id":"a1","calls":[{"id":"c1","name":"task","arguments":"{\"prompt\":\"look at A\"}"},{"id":"c2","name":"task","arguments":"{\"prompt\":\"look at B\"}"}]}
{"type":"user","id":"x1","text":"You are a helper. look at B","agent":"x"}
{"type":"user","id":"y1","text":"look at A","agent":"y"}
{"type":"tool","call_id":"c1","output":"r"}
{"type":"tool","call_id":"c2","output":"r"}"#,
        );
        assert_eq!(
            subagents(&s),
            [agent("x", Some(("c2", None)), true), agent("y", Some(("c1", None)), true)]
        );
    }

    #[test]
    fn calls_are_found_by_id_by_prompt_and_by_place() {
        let s = session(
            r#"{"type":"user","id":"u1","text":"go"}
{"type":"assistant","id":"a1","calls":[{"id":"c0","name":"read","arguments":"{}"},{"id":"c1","name":"task","arguments":"{\"prompt\":\" look here \"}"},{"id":"c2","name":"task","arguments":"{}"}]}
{"type":"user","id":"x1","text":"look here","agent":"x"}
{"type":"user","id":"c2-1","text":"elsewhere","agent":"c2"}
{"type":"user","id":"y1","text":"third","agent":"y"}
{"type":"assistant","id":"y2","text":"t","agent":"y","calls":[{"id":"c3","name":"task","arguments":"{}"}]}
{"type":"tool","call_id":"c0","output":"r"}
{"type":"user","id":"z1","text":"nested","agent":"z"}
{"type":"tool","call_id":"c3","output":"n","agent":"y"}
{"type":"tool","call_id":"c1","output":"r"}
{"type":"tool","call_id":"c2","output":"r"}
{"type":"user","id":"w1","text":"nobody","agent":"w"}"#,
        );
        assert_eq!(
            subagents(&s),
            [
                agent("x", Some(("c1", None)), true),
                agent("c2", Some(("c2", None)), true),
                // Its call has a result before its last message: started in the background.
                agent("y", Some(("c0", None)), false),
                agent("z", Some(("c3", Some("y"))), true),
                agent("w", None, false),
            ]
        );
    }

    #[test]
    fn the_unrecorded_prefix_is_the_subagents_where_it_was_counted() {
        let mut s = session(
            r#"{"type":"user","id":"x1","text":"one two three","agent":"x"}
{"type":"assistant","id":"x2","text":"ok","agent":"x","usage":{"input":3,"cache_read":90,"cache_write":10}}
{"type":"user","id":"y1","text":"look","agent":"y"}"#,
        );
        assert_eq!(own(&s, "x").header.prefix_tokens, None, "the session lacks nothing");
        s.header.prefix_tokens = Some(500);
        // 103 less three tokens and a block.
        assert_eq!(own(&s, "x").header.prefix_tokens, Some(96));
        assert_eq!(own(&s, "y").header.prefix_tokens, Some(500));
    }

    #[test]
    fn a_subagent_has_its_own_words_and_what_is_everybodys() {
        let s = session(
            r#"{"type":"system","text":"main"}
{"type":"system","text":"for x","agent":"x"}
{"type":"tools","definitions":[{"name":"read"}]}
{"type":"memory","path":"A.md","text":"rule"}
{"type":"user","id":"u1","text":"go"}
{"type":"user","id":"x1","text":"look","agent":"x"}
{"type":"compact"}"#,
        );
        let types = |s: &Session| {
            s.entries.iter().map(|e| serde_json::to_value(e).unwrap()).collect::<Vec<_>>()
        };
        let texts = |s: &Session| {
            types(s)
                .iter()
                .map(|v| v["text"].as_str().unwrap_or("-").to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(texts(&own(&s, "x")), ["for x", "-", "rule", "look"]);
        assert_eq!(texts(&own(&s, "y")), ["main", "-", "rule"], "without a prompt of its own");
        assert!(types(&own(&s, "x")).iter().all(|v| v.get("agent").is_none()));
    }
}
