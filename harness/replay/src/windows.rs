//! Extracts the windows of a session's subagents, each as a separate session.

use std::collections::{BTreeSet, HashMap};

use ctxbench_session::{AssistantEntry, Entry, Session, ToolEntry, UserEntry, calibration};

/// Positions of the entries of each window. With these, the cost of extracting a window depends
/// only on its own size.
#[derive(Debug, Default)]
pub(super) struct Windows {
    /// Messages from and to each subagent, and entries that belong only to it.
    own: HashMap<String, Vec<usize>>,
    /// Constant context such as memory files, and the system prompt and tools of the main
    /// conversation.
    shared: Vec<usize>,
}

impl Windows {
    /// Builds the index.
    pub(super) fn from_session(session: &Session) -> Windows {
        let mut out = Windows::default();
        for (i, e) in session.entries.iter().enumerate() {
            match (e, e.agent()) {
                (Entry::Memory { .. } | Entry::RepoMap { .. } | Entry::File { .. }, _)
                | (Entry::System { .. } | Entry::Tools { .. }, None) => out.shared.push(i),
                (_, Some(agent)) => out.own.entry(agent.into()).or_default().push(i),
                _ => {}
            }
        }
        out
    }

    /// Returns the session of one subagent, with its messages as the main conversation. The system
    /// prompt and tools are its own, or else those of the session. Constant context such as memory
    /// files is shared. Facts stay with the whole session.
    pub(super) fn session(&self, session: &Session, id: &str) -> Session {
        let own = self.own.get(id).map_or(&[][..], Vec::as_slice);
        let gives = |kind: fn(&Entry) -> bool| own.iter().any(|&i| kind(&session.entries[i]));
        let system = gives(|e| matches!(e, Entry::System { .. }));
        let tools = gives(|e| matches!(e, Entry::Tools { .. }));
        let shared = self.shared.iter().filter(|&&i| match session.entries[i] {
            Entry::System { .. } => !system,
            Entry::Tools { .. } => !tools,
            _ => true,
        });
        let all: BTreeSet<usize> = own.iter().chain(shared).copied().collect();
        let entries = all.into_iter().map(|i| unmarked(session.entries[i].clone())).collect();
        let header = session.header.clone();
        let mut out = Session { header, entries, facts: Vec::new() };
        out.header.model = out
            .entries
            .iter()
            .find_map(|e| if let Entry::Assistant(a) = e { a.model.clone() } else { None })
            .or(out.header.model);
        // The subagent's first request shows how much text its fixed part lacks.
        if out.header.prefix_tokens.is_some() {
            let recorded = out.header.model.as_deref();
            let by = calibration::counting_of(recorded).for_visible_text();
            let own = calibration::prefix(&out.entries, &by, recorded).filter(|n| *n > 0);
            out.header.prefix_tokens = own.or(out.header.prefix_tokens);
        }
        out
    }
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
    use super::super::agents::tests::{agent, session};
    use super::super::agents::{depths, subagents};
    use super::*;

    fn windows(s: &Session) -> Windows {
        Windows::from_session(s)
    }

    fn own(s: &Session, id: &str) -> Session {
        windows(s).session(s, id)
    }

    #[test]
    fn a_window_is_taken_out_without_a_look_at_the_others() {
        let mut lines = vec![r#"{"type":"memory","path":"A.md","text":"rule"}"#.to_string()];
        lines.push(r#"{"type":"user","id":"u","text":"go"}"#.into());
        for i in 0..1_000 {
            lines.push(format!(r#"{{"type":"assistant","id":"a{i}","calls":[{{"id":"c{i}","name":"task","arguments":"{{}}"}}]}}"#));
            lines.push(format!(r#"{{"type":"user","id":"u{i}","text":"t","agent":"x{i}"}}"#));
            lines.push(format!(r#"{{"type":"tool","call_id":"c{i}","output":"x"}}"#));
        }
        let s = session(&lines.join("\n"));
        let all = subagents(&s);
        let waits = |i: usize| agent(&format!("x{i}"), Some((&format!("c{i}"), None)), true);
        assert!(all.iter().enumerate().all(|(i, a)| *a == waits(i)));
        assert!(depths(&all).iter().all(|d| *d == 1));
        let windows = windows(&s);
        let stored = windows.own.values().chain([&windows.shared]).map(Vec::len).sum::<usize>();
        assert_eq!((stored, windows.session(&s, "x999").entries.len()), (1_001, 2));
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
        // 103, less three tokens and a block.
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
