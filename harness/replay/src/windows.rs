//! Extracts the windows of a session's subagents, each as a separate session.

use ctxbench_session::{AssistantEntry, Entry, Session, ToolEntry, UserEntry, calibration};

/// Returns the session of one subagent, with its messages as the main conversation. The system prompt
/// and tools are its own, or else those of the session. Constant context such as memory files is
/// shared. Facts stay with the whole session.
pub(super) fn window(session: &Session, id: &str) -> Session {
    let own = |e: &&Entry| e.agent() == Some(id);
    let gives = |kind: fn(&Entry) -> bool| session.entries.iter().filter(own).any(kind);
    let system = gives(|e| matches!(e, Entry::System { .. }));
    let tools = gives(|e| matches!(e, Entry::Tools { .. }));
    let belongs = |e: &&Entry| match e {
        Entry::Memory { .. } | Entry::RepoMap { .. } | Entry::File { .. } => true,
        Entry::System { agent: None, .. } => !system,
        Entry::Tools { agent: None, .. } => !tools,
        _ => own(e),
    };
    let entries = session.entries.iter().filter(belongs).map(|e| unmarked(e.clone())).collect();
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
    use super::super::agents::tests::session;
    use super::*;

    #[test]
    fn the_unrecorded_prefix_is_the_subagents_where_it_was_counted() {
        let mut s = session(
            r#"{"type":"user","id":"x1","text":"one two three","agent":"x"}
{"type":"assistant","id":"x2","text":"ok","agent":"x","usage":{"input":3,"cache_read":90,"cache_write":10}}
{"type":"user","id":"y1","text":"look","agent":"y"}"#,
        );
        assert_eq!(window(&s, "x").header.prefix_tokens, None, "the session lacks nothing");
        s.header.prefix_tokens = Some(500);
        // 103, less three tokens and a block.
        assert_eq!(window(&s, "x").header.prefix_tokens, Some(96));
        assert_eq!(window(&s, "y").header.prefix_tokens, Some(500));
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
        assert_eq!(texts(&window(&s, "x")), ["for x", "-", "rule", "look"]);
        assert_eq!(texts(&window(&s, "y")), ["main", "-", "rule"], "without a prompt of its own");
        assert!(types(&window(&s, "x")).iter().all(|v| v.get("agent").is_none()));
    }
}
