//! Finds the subagents of a session: their messages, the call that started each, and whether its
//! caller waited.
//!
//! The call of an agent is found by the first rule that matches: the call with the agent's id; the
//! call with the agent's first message among its arguments; the first call without a result of the
//! newest reply before the agent's first message. A call starts one agent. The caller waits if the
//! result of the call comes after the agent's last message. An agent without a call is replayed
//! after the main conversation, without a waiting caller.

use std::collections::HashMap;

use ctxbench_core::content::joined_text;
use ctxbench_session::{Entry, Session};
use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Subagent {
    pub(super) id: String,
    pub(super) call: Option<AgentCall>,
    /// Whether the caller waits until the subagent finishes.
    pub(super) waits: bool,
    /// Nesting depth; 1 for subagents of the main conversation.
    pub(super) depth: usize,
}

/// The call that starts a subagent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AgentCall {
    pub(super) id: String,
    /// Window of the call; `None` for the main conversation.
    pub(super) caller: Option<String>,
}

/// Returns the subagents of a session in the order in which they begin.
pub(super) fn subagents(session: &Session) -> Vec<Subagent> {
    let mut all: Vec<FoundAgent<'_>> = Vec::new();
    let mut index: HashMap<&str, usize> = HashMap::new();
    for (i, e) in session.entries.iter().enumerate() {
        let Some(id) = e.agent().filter(|_| e.key().is_some()) else { continue };
        let at = *index.entry(id).or_insert_with(|| {
            all.push(FoundAgent { id, first: i, last: i, prompt: prompt(e) });
            all.len() - 1
        });
        all[at].last = i;
    }
    if all.is_empty() {
        return Vec::new();
    }
    let calls = AgentCalls::from_session(session);
    let mut depths: HashMap<&str, usize> = HashMap::new();
    let mut out = Vec::new();
    for (agent, call) in all.iter().zip(calls.of_each(&all)) {
        let made = call.map(|i| &calls.0[i]);
        // A caller begins before its subagents.
        let above = made.and_then(|m| m.caller).and_then(|c| depths.get(c)).copied();
        let depth = 1 + above.unwrap_or_default();
        depths.insert(agent.id, depth);
        out.push(Subagent {
            id: agent.id.to_string(),
            call: made
                .map(|m| AgentCall { id: m.id.clone(), caller: m.caller.map(str::to_string) }),
            waits: made.and_then(|m| m.result).is_some_and(|r| r > agent.last),
            depth,
        });
    }
    out
}

/// Maximum nesting depth; deeper subagents are not replayed. No known product exceeds one level.
pub(super) const DEEPEST: usize = 32;

/// Returns notes on the subagents of a session for readers of its figures.
pub(super) fn remarks(session: &Session) -> Vec<String> {
    let all = subagents(session);
    let quoted = |of: fn(&&Subagent) -> bool| {
        let ids = all.iter().filter(of).map(|a| format!("{:?}", a.id));
        ids.collect::<Vec<_>>().join(", ")
    };
    let mut out = Vec::new();
    let uncalled = quoted(|a| a.call.is_none());
    if !uncalled.is_empty() {
        out.push(format!(
            "no call before it starts subagent {uncalled}; replayed when the main \
            conversation is over"
        ));
    }
    let deep = quoted(|a| a.depth > DEEPEST);
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

struct FoundAgent<'a> {
    id: &'a str,
    first: usize,
    last: usize,
    prompt: String,
}

struct PlacedCall<'a> {
    at: usize,
    caller: Option<&'a str>,
    id: String,
    /// Text arguments of the call, trimmed.
    texts: Vec<String>,
    /// Position of the call's result.
    result: Option<usize>,
}

struct AgentCalls<'a>(Vec<PlacedCall<'a>>);

impl<'a> AgentCalls<'a> {
    fn from_session(session: &'a Session) -> Self {
        let result = |(i, e): (usize, &'a Entry)| match e {
            Entry::Tool(t) => Some((t.call_id.as_str(), i)),
            _ => None,
        };
        let results: HashMap<&str, usize> =
            session.entries.iter().enumerate().filter_map(result).collect();
        let mut out = Vec::new();
        for (at, e) in session.entries.iter().enumerate() {
            let Entry::Assistant(a) = e else { continue };
            out.extend(a.all_calls().into_iter().map(|c| PlacedCall {
                at,
                caller: a.agent.as_deref(),
                result: results.get(&*c.id).copied(),
                id: c.id.to_string(),
                texts: texts(&c.arguments),
            }));
        }
        AgentCalls(out)
    }

    /// Returns the call that starts each subagent. Certain matches are made first, so that a guess
    /// never takes their calls.
    fn of_each(&self, agents: &[FoundAgent<'_>]) -> Vec<Option<usize>> {
        let mut found: Vec<Option<usize>> = vec![None; agents.len()];
        let mut taken = vec![false; self.0.len()];
        for rule in [Rule::Id, Rule::Prompt, Rule::Place] {
            for (at, agent) in found.iter_mut().zip(agents).filter(|(at, _)| at.is_none()) {
                let before = self.0.partition_point(|c| c.at < agent.first);
                let is_open = |i: &usize| self.0[*i].result.is_none_or(|r| r > agent.first);
                let free = |from: usize| (from..before).filter(|i| !taken[*i]);
                *at = match rule {
                    Rule::Id => free(0).find(|i| self.0[*i].id == agent.id),
                    Rule::Prompt if agent.prompt.is_empty() => None,
                    Rule::Prompt => free(0).find(|i| self.0[*i].texts.contains(&agent.prompt)),
                    Rule::Place => {
                        let newest = free(0).rfind(is_open).map(|i| self.0[i].at);
                        let first = newest.map(|at| self.0.partition_point(|c| c.at < at));
                        first.and_then(|first| free(first).find(is_open))
                    }
                };
                at.iter().for_each(|i| taken[*i] = true);
            }
        }
        found
    }
}

/// Way to find the call that starts a subagent.
#[derive(Clone, Copy)]
enum Rule {
    Id,
    Prompt,
    /// The first open call of the newest reply.
    Place,
}

/// Returns the text of a user message, trimmed.
fn prompt(e: &Entry) -> String {
    let Entry::User(u) = e else { return String::new() };
    joined_text(&u.content(), "").trim().to_string()
}

fn texts(arguments: &str) -> Vec<String> {
    let Ok(Value::Object(map)) = serde_json::from_str(arguments) else { return Vec::new() };
    map.values().filter_map(|v| Some(v.as_str()?.trim().to_string())).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn session(lines: &str) -> Session {
        let head = r#"{"type":"session","version":1,"id":"s"}"#;
        ctxbench_scenarios::jsonl::read(format!("{head}\n{lines}").as_bytes(), "s").unwrap().session
    }

    type Found = (&'static str, Option<(&'static str, Option<&'static str>)>, bool);

    /// Checks the subagents of a session: their ids, calls with their callers, and who waits.
    fn check(lines: &str, want: &[Found]) {
        let all = subagents(&session(lines));
        let found = all.iter().map(|a| {
            let call = a.call.as_ref().map(|c| (&*c.id, c.caller.as_deref()));
            (&*a.id, call, a.waits)
        });
        assert_eq!(found.collect::<Vec<_>>(), want);
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
        assert_eq!([0, 31, 32].map(|i| all[i].depth), [1, DEEPEST, DEEPEST + 1]);
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
        check(
            r#"{"type":"user","id":"u1","text":"go"}
{"type":"assistant","id":"a1","calls":[{"id":"c1","name":"task","arguments":"{\"prompt\":\"look at A\"}"},{"id":"c2","name":"task","arguments":"{\"prompt\":\"look at B\"}"}]}
{"type":"user","id":"x1","text":"You are a helper. look at B","agent":"x"}
{"type":"user","id":"y1","text":"look at A","agent":"y"}
{"type":"tool","call_id":"c1","output":"r"}
{"type":"tool","call_id":"c2","output":"r"}"#,
            &[("x", Some(("c2", None)), true), ("y", Some(("c1", None)), true)],
        );
    }

    #[test]
    fn calls_are_found_by_id_by_prompt_and_by_place() {
        check(
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
            &[
                ("x", Some(("c1", None)), true),
                ("c2", Some(("c2", None)), true),
                // The call has a result before the agent's last message, so it started the agent in
                // the background.
                ("y", Some(("c0", None)), false),
                ("z", Some(("c3", Some("y"))), true),
                ("w", None, false),
            ],
        );
    }
}
