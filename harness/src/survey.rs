//! What a session is, in one row: for choosing among many.

use ctxbench_core::calibration;
use ctxbench_core::session::{Entry, Session};
use ctxbench_scenarios::Scenario;
use serde::Serialize;

use crate::choice;
use crate::models;
use crate::recorded::as_recorded;

/// A session in one row. `None` = the recording does not tell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The program that recorded it, by the name of its format; `None` for Session JSONL without
    /// a source and for scenarios.
    pub agent: Option<String>,
    pub id: String,
    /// As recorded.
    pub model: Option<String>,
    /// When it began, RFC 3339 in UTC.
    pub started: Option<String>,
    /// Replies of the main conversation.
    pub steps: u64,
    /// Tokens of the content of all its conversations, each once, as the family of its model counts.
    pub tokens: u64,
    /// The largest prompt of the main conversation, tokens.
    pub peak: u64,
    /// The provider counted that prompt; else we did, without what the recording lacks.
    pub peak_is_counted: bool,
    /// Compactions of the original program.
    pub compactions: u64,
    /// Counters × prices, USD.
    pub cost_usd: Option<f64>,
}

impl Row {
    /// Of a session.
    pub fn of(scenario: &Scenario) -> Row {
        let session = &scenario.session;
        let header = &session.header;
        let recorded = models::recorded(session).and_then(|model| as_recorded(scenario, model));
        let main = || session.entries.iter().filter(|e| e.agent().is_none());
        let count = |of: fn(&Entry) -> bool| main().filter(|e| of(e)).count() as u64;
        let counted = counted_peak(session);
        let model = header.model.as_deref();
        let by = calibration::counting_of(model).of_visible_text();
        Row {
            agent: header.source.as_ref().map(|s| s.format.clone()),
            id: header.id.clone(),
            model: header.model.clone(),
            started: header.started.clone(),
            steps: count(|e| matches!(e, Entry::Assistant(_))),
            tokens: choice::tokens(session),
            peak: counted.unwrap_or_else(|| calibration::largest_prompt(main(), &by, model)),
            peak_is_counted: counted.is_some(),
            compactions: count(|e| matches!(e, Entry::RecordedCompaction(_))),
            cost_usd: recorded.map(|r| r.summary.cost_usd),
        }
    }
}

/// The largest prompt that the provider counted in the main conversation.
fn counted_peak(session: &Session) -> Option<u64> {
    let prompt = |e: &Entry| match e {
        Entry::Assistant(a) if a.agent.is_none() => a.usage.map(|u| u.prompt()),
        _ => None,
    };
    session.entries.iter().filter_map(prompt).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(lines: &[serde_json::Value]) -> Row {
        let text: String = lines.iter().map(|l| format!("{l}\n")).collect();
        Row::of(&ctxbench_scenarios::parse(text.as_bytes(), "s.jsonl").unwrap())
    }

    use serde_json::json;

    #[test]
    fn counters_tell_peak_and_cost() {
        let header = json!({"type": "session", "version": 1, "id": "s", "model": "claude-sonnet-4-6",
            "started": "2026-03-01T10:00:00.000Z", "source": {"format": "claude-code"}});
        let usage = |input: u64| json!({"input": input, "output": 100_000});
        let row = row(&[
            header,
            json!({"type": "user", "id": "u", "text": "hello"}),
            json!({"type": "assistant", "id": "a", "text": "hello", "usage": usage(500_000)}),
            json!({"type": "recorded_compaction", "summary": "hello"}),
            json!({"type": "assistant", "id": "b", "text": "hello", "usage": usage(100_000)}),
        ]);
        assert_eq!(
            (row.steps, row.compactions, row.peak, row.peak_is_counted),
            (2, 1, 500_000, true)
        );
        assert_eq!(row.agent.as_deref(), Some("claude-code"));
        // 0.6 M in and 0.2 M out at 3 and 15 USD per million, as listed.
        assert!((row.cost_usd.unwrap() - (0.6 * 3.0 + 0.2 * 15.0)).abs() < 1e-9, "{row:?}");
    }

    #[test]
    fn without_counters_we_count_and_no_cost_is_known() {
        let header = json!({"type": "session", "version": 1, "id": "s"});
        let said = |id: &str| json!({"type": "user", "id": id, "text": "hello"});
        let reply = |id: &str| json!({"type": "assistant", "id": id, "text": "hello"});
        let long = row(&[header.clone(), said("u"), reply("a"), said("v"), reply("b")]);
        let short = row(&[
            header,
            said("u"),
            reply("a"),
            json!({"type": "recorded_compaction", "summary": "hello"}),
            said("v"),
            reply("b"),
        ]);
        // Three messages stood before the second reply; after the compaction its summary and one.
        assert_eq!(long.tokens, short.tokens);
        assert_eq!(long.peak * 4, long.tokens * 3);
        assert!(short.peak < long.peak && !short.peak_is_counted, "{short:?}");
        assert_eq!((short.cost_usd, short.agent, short.started), (None, None, None));
    }
}
