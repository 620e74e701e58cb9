//! One-row overview of a session, for selection from a large corpus.

use ctxbench_scenarios::Scenario;
use ctxbench_session::{Entry, RecordedUsage, calibration};
use serde::Serialize;

use crate::choice;
use ctxbench_replay::billing::{BilledCalls, SharedCalls, call, call_hashes};
use ctxbench_replay::recorded::{self, BilledCall};

/// Overview of a session. `None` = the recording does not contain it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SessionSummary {
    /// Format name of the program that recorded the session. `None` for Session JSONL without a
    /// source and for scenarios.
    pub agent: Option<String>,
    pub id: String,
    /// Model name as recorded.
    pub model: Option<String>,
    /// Time at which the session began, RFC 3339 in UTC.
    pub started: Option<String>,
    /// Number of replies of the main conversation.
    pub steps: u64,
    /// Number of these replies with counters of the provider.
    pub counted_steps: u64,
    /// Tokens of all calls, prompts and replies, by the provider's counters. If a reply has no counters,
    /// tokens of the content of all conversations, each counted once, by the counting of the model's
    /// family.
    pub tokens: u64,
    /// True if the provider counted them.
    pub tokens_are_counted: bool,
    /// Tokens of the largest prompt of the main conversation. A lower bound if some replies have no
    /// counters.
    pub peak: u64,
    /// True if the provider counted that prompt. Otherwise it is our count, without the parts that
    /// the recording lacks.
    pub peak_is_counted: bool,
    /// Number of compactions by the original program.
    pub compactions: u64,
    /// Counters × prices, USD.
    pub cost_usd: Option<f64>,
    /// Remarks about calls that are priced as those of another model, or that have no price.
    pub cost_notes: Vec<String>,
    /// True if calls without counters or prices are not in the cost, or outputs only as stubs.
    pub cost_is_minimum: bool,
    #[serde(skip)]
    calls: Vec<BilledCall>,
    #[serde(skip)]
    shared: SharedCalls,
}

const UNCOUNTED: &str = "at least: replies without counters are not in the cost";

impl SessionSummary {
    /// Computes the row of a session.
    pub fn new(scenario: &Scenario) -> SessionSummary {
        let session = &scenario.session;
        let header = &session.header;
        let hashes = call_hashes(session);
        let (calls, remarks) = recorded::bill(session, &hashes);
        let main = || session.entries.iter().filter(|e| e.agent().is_none());
        let count = |of: fn(&Entry) -> bool| main().filter(|e| of(e)).count() as u64;
        let steps = count(|e| matches!(e, Entry::Assistant(_)));
        let counted = main().filter_map(|e| e.as_reply()?.usage.as_ref());
        let counted: Vec<u64> = counted.map(RecordedUsage::prompt).collect();
        let counted_steps = counted.len() as u64;
        let model = header.model.as_deref();
        let by = calibration::counting_of(model).for_visible_text();
        let counted_peak = counted.into_iter().max();
        // A prompt without counters may be larger than the counted ones.
        let shown = (counted_steps < steps || counted_peak.is_none())
            .then(|| calibration::largest_prompt(main(), &by, model));
        let peak = counted_peak.max(shown).unwrap_or_default();
        let priced: Vec<f64> = calls.iter().filter_map(|(_, usd)| *usd).collect();
        let cost_usd = (!priced.is_empty()).then(|| priced.iter().sum());
        let is_uncounted = |e: &Entry| e.as_reply().is_some_and(|a| a.usage.is_none());
        // The program's own sums include replies without counters.
        let is_told = |e: &Entry| matches!(e, Entry::RecordedCall(c) if c.usage.is_cost_only());
        let mut entries = session.entries.iter();
        let usages = entries.clone().filter_map(|e| call(e)?.0);
        let billed: u64 = usages.map(|u| u.prompt().saturating_add(u.output)).sum();
        let is_any_uncounted = entries.clone().any(is_uncounted);
        let tokens_are_counted = billed > 0 && !is_any_uncounted;
        let uncounted = is_any_uncounted && !entries.any(is_told);
        let mut usages = session.entries.iter().filter_map(|e| call(e)?.0);
        let has_stubs = usages.any(|u| u.output_estimate.is_some());
        let cost_is_minimum = uncounted || has_stubs || priced.len() < calls.len();
        let uncounted = uncounted.then(|| UNCOUNTED.to_string());
        let notes = remarks.into_iter().chain(uncounted);
        SessionSummary {
            agent: header.source.as_ref().map(|s| s.format.clone()),
            id: header.id.clone(),
            model: header.model.clone(),
            started: header.started.clone(),
            steps,
            counted_steps,
            tokens: if tokens_are_counted { billed } else { choice::tokens(session) },
            tokens_are_counted,
            peak,
            peak_is_counted: counted_peak == Some(peak),
            compactions: count(|e| matches!(e, Entry::RecordedCompaction(_))),
            cost_usd,
            cost_notes: cost_usd.map(|_| notes.collect()).unwrap_or_default(),
            cost_is_minimum,
            calls,
            shared: SharedCalls::new(session, hashes),
        }
    }

    /// Leaves calls that another session is billed for out of the cost. `at` = number of the
    /// session.
    pub fn bill_once(&mut self, billed: &mut BilledCalls, at: usize) {
        let elsewhere = billed.bill(at, &self.shared);
        if elsewhere.is_empty() {
            return;
        }
        let own = |(id, _): &&BilledCall| id.is_none_or(|id| !elsewhere.contains_key(&id));
        let usd = self.calls.iter().filter(own).filter_map(|(_, usd)| *usd);
        self.cost_usd = self.cost_usd.map(|_| usd.fold(0.0, |all, usd| all + usd));
        let note = "calls that an earlier session has, too, are in its cost only";
        self.cost_notes.push(note.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(lines: &[serde_json::Value]) -> SessionSummary {
        let text: String = lines.iter().map(|l| format!("{l}\n")).collect();
        SessionSummary::new(&ctxbench_scenarios::parse(text.as_bytes(), "s.jsonl").unwrap())
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
        // Prompts and replies of both calls.
        assert_eq!((row.tokens, row.tokens_are_counted), (800_000, true));
        assert_eq!(row.agent.as_deref(), Some("claude-code"));
        // 0.6 M in and 0.2 M out at 3 and 15 USD per million, as listed.
        assert!((row.cost_usd.unwrap() - (0.6 * 3.0 + 0.2 * 15.0)).abs() < 1e-9, "{row:?}");
    }

    #[test]
    fn of_replies_without_counters_the_peak_is_a_lower_bound() {
        let header = json!({"type": "session", "version": 1, "id": "s", "model": "gpt-5.9-foo"});
        let user = json!({"type": "user", "id": "u", "text": "hello ".repeat(100)});
        let reply = |id: &str, usage: serde_json::Value| json!({"type": "assistant", "id": id, "text": "hello", "usage": usage});
        let told = |input: u64| {
            let counted = reply("a", json!({"input": input, "output": 1}));
            let row = row(&[header.clone(), user.clone(), counted, reply("b", json!(null))]);
            (row.steps, row.counted_steps, row.peak_is_counted, row.peak, row.cost_notes)
        };
        let priced = "gpt-5.9-foo is not in the table of models: its calls are priced as gpt-5.5";
        let notes = vec![priced.to_string(), UNCOUNTED.to_string()];
        assert_eq!(told(5_000), (2, 1, true, 5_000, notes));
        // The second prompt contains 100 one-token words.
        let (.., is_counted, peak, _) = told(5);
        assert!(!is_counted && peak > 100, "{peak}");
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
        // Three messages precede the second reply. After the compaction its summary and one message
        // precede it.
        assert_eq!((long.tokens, long.tokens_are_counted), (short.tokens, false));
        assert_eq!(long.peak * 4, long.tokens * 3);
        assert!(short.peak < long.peak && !short.peak_is_counted, "{short:?}");
        assert_eq!((short.cost_usd, short.agent, short.started), (None, None, None));
    }
}
