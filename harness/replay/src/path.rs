//! Recorded path of a session: actions from outside, and the replies and tool results of each turn.

use std::collections::{HashMap, HashSet};

use super::recording::text_of;
use ctxbench_core::Model;
use ctxbench_core::prelude::*;
use ctxbench_session::{AssistantEntry, Entry, Session, ToolEntry, UserEntry};

/// Time from the last reply of a turn to the next user message, ms, for a session without times. The
/// report states it.
pub const THINK_MS: Millis = 30_000;
/// Time from a reply to the results of its calls, ms, for a session without times.
pub const TOOLS_MS: Millis = 2_000;

/// One recorded reply with the results of its tools.
#[derive(Clone, Debug)]
pub struct PathStep {
    /// Id of the reply in the session.
    pub key: Arc<str>,
    /// Content of the reply.
    pub parts: Vec<Part>,
    /// Tokens of its output as the recording counted them; 0 = unknown.
    pub output: u64,
    /// Results of its calls, in order.
    pub results: Vec<Incoming>,
    /// Time that the tools took, ms.
    pub tools_ms: Millis,
    /// Model that gave it, if it is another than the session's or had another price.
    pub model: Option<Arc<Model>>,
}

/// An external action, and the replies after it.
#[derive(Clone, Debug)]
pub struct Move {
    /// Time before the action, ms.
    pub gap_ms: Millis,
    pub action: Action,
    /// Ids of its user messages in the session.
    pub keys: Vec<Arc<str>>,
    /// Replies to user messages.
    pub steps: Vec<PathStep>,
}

#[derive(Clone, Debug, Default)]
pub struct Path {
    /// Recorded actions in order.
    pub moves: Vec<Move>,
    /// Number of recorded replies.
    pub steps: u64,
}

impl Path {
    /// Returns the path of the main conversation of a session, without the messages of subagents.
    pub fn recorded(session: &Session) -> Path {
        Path::without(session, &HashSet::new(), &HashMap::new())
    }

    /// Returns the path without the time of calls that wait for subagents, because the subagents
    /// take their own time. `unseen` = o200k tokens of earlier text that the recording lacks, by
    /// reply.
    pub fn without(
        session: &Session,
        waited: &HashSet<&str>,
        unseen: &HashMap<String, u64>,
    ) -> Path {
        let mut results: HashMap<&str, Vec<&ToolEntry>> = HashMap::new();
        for e in &session.entries {
            if let Entry::Tool(t) = e {
                results.entry(&t.call_id).or_default().push(t);
            }
        }
        let mut b =
            PathBuilder { waited, unseen, path: Path::default(), last_at: None, next_at: None };
        let mut next_at: Vec<Option<Millis>> = session.entries.iter().map(recorded_at).collect();
        for i in (1..next_at.len()).rev() {
            next_at[i - 1] = next_at[i - 1].or(next_at[i]);
        }
        for (e, next) in session.entries.iter().zip(next_at) {
            b.next_at = next;
            match e {
                Entry::User(u) if u.agent.is_none() => b.user(u),
                Entry::Assistant(a) if a.agent.is_none() => b.assistant(a, &results),
                Entry::Compact { .. } | Entry::RecordedCompaction(_) => {
                    if let Some((instructions, at)) = e.compact_command() {
                        let instructions = instructions.map(str::to_string);
                        b.push(Action::Compact { instructions }, at, vec![])
                    }
                }
                Entry::Rewind { to, mode, instructions, .. } => {
                    b.rewind(to, *mode, instructions.clone())
                }
                Entry::Clear => b.push(Action::Clear, None, vec![]),
                Entry::NewSession => b.push(Action::NewSession, None, vec![]),
                Entry::Restart => b.push(Action::Restart, None, vec![]),
                Entry::Idle { ms, .. } => b.push(Action::Idle { ms: *ms }, None, vec![]),
                _ => {}
            }
        }
        b.path
    }
}

struct PathBuilder<'a> {
    /// Calls that wait for subagents.
    waited: &'a HashSet<&'a str>,
    unseen: &'a HashMap<String, u64>,
    path: Path,
    /// Time of the newest event, in ms since the session began: its recorded time, plus the default
    /// times added since.
    last_at: Option<Millis>,
    /// First recorded time from the current entry on.
    next_at: Option<Millis>,
}

/// Returns the recorded time of an entry of the main conversation.
fn recorded_at(e: &Entry) -> Option<Millis> {
    match e {
        Entry::User(u) if u.agent.is_none() => u.at,
        Entry::Assistant(a) if a.agent.is_none() => a.at,
        Entry::Tool(t) if t.agent.is_none() => t.at,
        _ => e.compact_command()?.1,
    }
}

impl PathBuilder<'_> {
    fn push(&mut self, action: Action, at: Option<Millis>, keys: Vec<Arc<str>>) {
        let idle = match action {
            Action::Idle { ms } => Some(ms),
            _ => None,
        };
        let gap_ms = match (self.last_at, at) {
            _ if self.path.moves.is_empty() => 0,
            (Some(a), Some(b)) => b.saturating_sub(a),
            _ if idle.is_some() => 0,
            // The default time must not exceed the next recorded time.
            (Some(a), None) => self.next_at.map_or(THINK_MS, |b| THINK_MS.min(b.saturating_sub(a))),
            _ => THINK_MS,
        };
        // The gap before the next recorded time must not include this time again.
        self.last_at =
            at.or(self.last_at.map(|a| a.saturating_add(gap_ms).saturating_add(idle.unwrap_or(0))));
        self.path.moves.push(Move { gap_ms, action, keys, steps: vec![] });
    }

    fn rewind(&mut self, to: &str, mode: RewindMode, instructions: Option<String>) {
        // Messages that were answered together are one message, with the id of the first.
        let turn = self.path.moves.iter().rev().find(|m| m.keys.iter().any(|k| &**k == to));
        let to = turn.map_or(to, |m| &m.keys[0]).to_string();
        self.push(Action::Rewind { to, mode, instructions }, None, vec![]);
    }

    fn user(&mut self, u: &UserEntry) {
        let is_of_user = |part: &Part| matches!(part, Part::Text(_) | Part::Image(_));
        let parts: Vec<Part> = u.content().into_iter().filter(is_of_user).collect();
        let key: Arc<str> = u.id.as_str().into();
        // Messages that the recorded agent answered together are one turn.
        if let Some(Move { action: Action::User(msg), keys, steps, .. }) =
            self.path.moves.last_mut()
            && steps.is_empty()
        {
            msg.parts.extend(parts);
            keys.push(key);
            self.last_at = u.at.or(self.last_at);
            return;
        }
        self.push(Action::User(Incoming { key: key.clone(), parts }), u.at, vec![key]);
    }

    fn assistant(&mut self, a: &AssistantEntry, results: &HashMap<&str, Vec<&ToolEntry>>) {
        if !matches!(self.path.moves.last(), Some(Move { action: Action::User(_), .. })) {
            // The reply has no user message: the recording began here, or it continued after a
            // command.
            let msg = Incoming { key: "".into(), parts: vec![Part::Text("(continue)".into())] };
            self.push(Action::User(msg), a.at, vec![]);
        }
        self.unseen_before(&a.id);
        let calls = a.all_calls();
        let found: Vec<Option<&&ToolEntry>> =
            calls.iter().map(|c| results.get(&*c.id).and_then(|r| r.first())).collect();
        let returned: Vec<Incoming> = calls
            .iter()
            .zip(&found)
            .map(|(c, t)| match t {
                Some(t) => result(c, t),
                None => Incoming::result(c, true, "(no result was recorded)"),
            })
            .collect();
        let last = |of: fn(bool) -> bool| {
            let timed = calls.iter().zip(&found).filter(|(c, _)| of(self.waited.contains(&*c.id)));
            timed.filter_map(|(_, t)| t.as_ref()?.at).max()
        };
        let (ended, tools_ended) = (last(|_| true), last(|waited| !waited));
        let took = |n: usize, ended: Option<Millis>| match (a.at, ended) {
            _ if n == 0 => 0,
            (Some(a), Some(b)) => b.saturating_sub(a),
            _ => TOOLS_MS,
        };
        let tools = calls.iter().filter(|c| !self.waited.contains(&*c.id)).count();
        let (all_ms, tools_ms) = (took(calls.len(), ended), took(tools, tools_ended));
        self.last_at = ended.or(a.at.or(self.last_at).map(|at| at.saturating_add(all_ms)));
        let step = PathStep {
            model: None,
            output: a.usage.as_ref().map_or(0, |u| u.output),
            key: a.id.as_str().into(),
            parts: a.content().into_iter().filter(is_of_reply).collect(),
            results: returned,
            tools_ms,
        };
        if let Some(m) = self.path.moves.last_mut() {
            m.steps.push(step);
            self.path.steps += 1;
        }
    }

    /// Adds text that the recording lacks to the last incoming message. The text leaves the context
    /// together with that message, but it is not part of a result that could be cleared.
    fn unseen_before(&mut self, reply: &str) {
        let Some(tokens) = self.unseen.get(reply) else { return };
        let Some(Move { action: Action::User(msg), steps, .. }) = self.path.moves.last_mut() else {
            return;
        };
        let results = steps.last_mut().and_then(|s| s.results.last_mut());
        results.unwrap_or(msg).parts.push(Part::Unrecorded(text_of(*tokens).into()));
    }
}

fn is_of_reply(part: &Part) -> bool {
    match part {
        Part::Text(text) => !text.is_empty(),
        Part::Reasoning { .. } | Part::Call(_) => true,
        _ => false,
    }
}

fn result(call: &ToolCall, t: &ToolEntry) -> Incoming {
    let content = t.content();
    let text = match content.as_slice() {
        [Part::Text(text)] => text.clone(),
        all => {
            let texts = all.iter().filter_map(Part::as_text).skip_while(|text| text.is_empty());
            texts.collect::<Vec<_>>().join("\n").into()
        }
    };
    let mut out = Incoming::result(call, t.is_error == Some(true), text);
    out.parts.extend(content.into_iter().filter(|p| matches!(p, Part::Image(_))));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctxbench_session::Header;

    fn user(id: &str, at: u64) -> Entry {
        Entry::User(UserEntry {
            id: id.into(),
            text: Some(id.into()),
            at: Some(at),
            ..Default::default()
        })
    }

    #[test]
    fn turns_gaps_and_results() {
        let call = ToolCall { id: "c1".into(), name: "read".into(), arguments: "{}".into() };
        let entries = vec![
            user("u1", 0),
            user("u2", 10),
            Entry::Assistant(AssistantEntry {
                id: "a1".into(),
                calls: vec![call],
                at: Some(1_000),
                ..Default::default()
            }),
            Entry::Tool(ToolEntry {
                call_id: "c1".into(),
                output: Some("out".into()),
                at: Some(4_000),
                ..Default::default()
            }),
            Entry::Compact { instructions: None, at: None },
            user("u3", 9_000),
        ];
        let path = Path::recorded(&Session { header: Header::default(), entries, facts: vec![] });
        assert_eq!(path.steps, 1);
        assert_eq!(path.moves.len(), 3);
        assert_eq!(path.moves[0].keys.len(), 2, "two messages answered together are one turn");
        assert_eq!(path.moves[0].steps[0].tools_ms, 3_000);
        // Five seconds passed between the result and u3. The command in between has no recorded
        // time.
        assert_eq!(path.moves[1].gap_ms, 5_000);
        assert_eq!(path.moves[2].gap_ms, 0);
    }

    fn gaps(entries: Vec<Entry>) -> Vec<u64> {
        let path = Path::recorded(&Session { header: Header::default(), entries, facts: vec![] });
        path.moves.iter().map(|m| m.gap_ms).collect()
    }

    fn system_entry(at: Option<u64>) -> Entry {
        Entry::Assistant(AssistantEntry {
            id: "a".into(),
            text: Some("yes".into()),
            at,
            ..Default::default()
        })
    }

    #[test]
    fn a_pause_that_both_entry_and_times_tell_of_passes_once() {
        let idle = Entry::Idle { ms: 3_600_000 };
        assert_eq!(
            gaps(vec![
                user("u1", 0),
                system_entry(Some(5_000)),
                idle.clone(),
                user("u2", 3_625_000)
            ]),
            [0, 0, 20_000]
        );
        // The recorded clock did not advance during the pause, so no gap remains.
        assert_eq!(
            gaps(vec![user("u1", 0), system_entry(Some(5_000)), idle, user("u2", 25_000)]),
            [0, 0, 0]
        );
    }

    #[test]
    fn times_are_recorded_or_stated() {
        let silent = |id: &str| {
            Entry::User(UserEntry { id: id.into(), text: Some("hi".into()), ..Default::default() })
        };
        assert_eq!(
            gaps(vec![
                silent("u1"),
                system_entry(None),
                silent("u2"),
                system_entry(None),
                silent("u3")
            ]),
            [0, 30_000, 30_000]
        );
        // A rewind has no recorded time, so its default time is subtracted from the recorded gap.
        let back = Entry::Rewind { to: "a".into(), mode: Default::default(), instructions: None };
        assert_eq!(
            gaps(vec![user("u1", 0), system_entry(Some(5_000)), back, user("u2", 60_000)]),
            [0, 30_000, 25_000]
        );
        // The tools have no recorded times, so the results come two seconds after the reply.
        let call = ToolCall { id: "c1".into(), name: "read".into(), arguments: "{}".into() };
        let asks = Entry::Assistant(AssistantEntry {
            id: "a".into(),
            calls: vec![call],
            at: Some(1_000),
            ..Default::default()
        });
        let result = Entry::Tool(ToolEntry {
            call_id: "c1".into(),
            output: Some("out".into()),
            ..Default::default()
        });
        assert_eq!(gaps(vec![user("u1", 0), asks, result, user("u2", 10_000)]), [0, 7_000]);
    }
}
