//! Reads the environment of a recorded session: model and limits, cache lifetimes, token counting,
//! and text of the prompts that was not recorded.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use ctxbench_core::breakpoints::DEFAULT_TTL;
use ctxbench_core::model::{self, Counting, Model};
use ctxbench_core::usage::Ttl;
use ctxbench_scenarios::{Scenario, bounds};
use ctxbench_session::calibration::{self, Calibrate};
use ctxbench_session::{AssistantEntry, Entry, Session};
use ctxbench_strategies::Spec;

use crate::models;
use crate::options::Options;

/// Returns the model for this session: applies a token counting, the limits of the session or the
/// command line and those that the strategy assumes, and then the scale.
pub(super) fn calibrated_model(
    scenario: &Scenario,
    spec: &Spec,
    model: &Model,
    options: &Options,
    counting: Counting,
) -> Model {
    let header = &scenario.session.header;
    let mut m = model.clone();
    m.counting = counting;
    let given = options.window.or(header.context_window);
    if let Some(w) = given {
        m.window = w;
        m.input_limit = None;
    }
    if let Some(w) = spec.window(model, given) {
        // The provider still takes what the model takes.
        m.input_limit.get_or_insert(m.window);
        m.window = w;
    }
    if let Some(o) = header.max_output {
        m.max_output = o;
    }
    m.scaled(scenario.scale)
}

pub(crate) fn counting(session: &Session, model: &Model, calibrate: Calibrate) -> Counting {
    match calibrate {
        Calibrate::Off => Counting::O200K,
        _ if is_calibrated(session, model, calibrate) => {
            let by = model.counting.for_visible_text();
            let own = session.entries.iter().filter(|e| e.agent().is_none());
            let recorded = session.header.model.as_deref();
            by.times(calibration::counted_factor(own, &by, recorded))
        }
        _ => model.counting,
    }
}

/// Returns the cache lifetime that the recorded program requested, according to its counters.
pub(super) fn lifetime(session: &Session) -> Ttl {
    let counted = session.entries.iter().filter_map(|e| match e {
        Entry::Assistant(a) if a.agent.is_none() => a.usage.as_ref(),
        _ => None,
    });
    let written = counted.fold((0u64, 0u64), |(short, long), u| {
        (short.saturating_add(u.cache_write), long.saturating_add(u.cache_write_1h))
    });
    if written.1 > written.0 { Ttl::OneHour } else { DEFAULT_TTL }
}

/// Returns the model of a recorded subagent: its recorded model, if the run's model is the recorded
/// one of the main conversation and both use the same wire; otherwise the run's model.
pub(super) fn of_subagent(
    scenario: &Scenario,
    spec: &Spec,
    session: &Session,
    run: &Arc<Model>,
    o: &Options,
) -> Arc<Model> {
    let named = models::recorded;
    let as_recorded = named(&scenario.session).is_some_and(|m| m.name == run.name);
    match named(session).filter(|m| as_recorded && m.name != run.name && m.wire == run.wire) {
        Some(own) => {
            let own = calibrated_model(scenario, spec, own, o, run.counting);
            // The count of the run is scaled already.
            Arc::new(Model { counting: run.counting, ..own })
        }
        None => run.clone(),
    }
}

/// Returns the counting of the token numbers in a session: that of the run's model, unless a model
/// of another provider recorded them.
pub(super) fn counted_by(session: &Session, model: &Model, calibrate: Calibrate) -> Counting {
    match session.header.model.as_deref() {
        Some(name)
            if calibrate == Calibrate::Off || model::provider_of(name) != Some(model.provider) =>
        {
            calibration::counting_of(Some(name)).for_visible_text()
        }
        _ => model.counting,
    }
}

/// Returns whether the counters of a recording tell sizes in the token counting of this model.
pub(super) fn is_calibrated(session: &Session, model: &Model, calibrate: Calibrate) -> bool {
    let provider = session.header.model.as_deref().and_then(model::provider_of);
    calibrate == Calibrate::Recording && provider == Some(model.provider) && session.has_counters()
}

/// Tokens (o200k) of text that a recording lacks before each reply, by id of the reply.
pub(super) type Unseen = HashMap<String, u64>;

/// Returns the text that a recording lacks according to its counters, if token counts are calibrated
/// by them. The text
/// is the same for every model of a run, but only the recorded family counts it as recorded.
/// Together with the text before the first request, its size is limited to fit into memory;
/// [`unfilled`] reports the rest.
pub(super) fn unseen(session: &Session, model: &Model, calibrate: Calibrate) -> Unseen {
    if !is_calibrated(session, model, calibrate) {
        return Unseen::default();
    }
    let by = &model.counting;
    let own = session.entries.iter().filter(|e| e.agent().is_none());
    let before = session.header.prefix_tokens.unwrap_or_default();
    let mut left = bounds::FILLER_TOKENS.saturating_sub(before);
    let mut take = |tokens: u64| {
        let taken = by.fitting(tokens).min(left);
        left -= taken;
        taken
    };
    calibration::residuals(own, by, session.header.model.as_deref())
        .into_iter()
        .map(|(reply, tokens)| (reply.to_string(), take(tokens)))
        .collect()
}

/// Returns a note on each conversation with prompts that grow by more than a replay fills in.
pub(super) fn unfilled(session: &Session) -> Vec<String> {
    // Growth and newest prompt of each conversation, tokens.
    let mut grown: BTreeMap<Option<&str>, (u64, u64)> = BTreeMap::new();
    for e in &session.entries {
        let Entry::Assistant(AssistantEntry { usage: Some(usage), .. }) = e else { continue };
        let (all, before) = grown.entry(e.agent()).or_default();
        *all = all.saturating_add(usage.prompt().saturating_sub(*before));
        *before = usage.prompt();
    }
    let most = bounds::FILLER_TOKENS;
    let note = |(agent, (tokens, _)): (Option<&str>, _)| {
        let of = agent.map(|id| format!(" of subagent {id:?}")).unwrap_or_default();
        format!(
            "its counters{of} tell of {tokens} tokens of text; a replay makes up {most} of them and \
             leaves out the rest, so prompts can be smaller than recorded"
        )
    };
    grown.into_iter().filter(|(_, (tokens, _))| *tokens > most).map(note).collect()
}

/// Returns a text of exactly `tokens` o200k tokens, to replace text that was not recorded. It has
/// four bytes per token, like English, because some programs estimate tokens from bytes.
pub fn text_of(tokens: u64) -> String {
    let mut out = String::from(if tokens == 0 { "" } else { "and" });
    for _ in 1..tokens {
        out.push_str(" and");
    }
    out
}

/// Returns a text for people. Filler for unrecorded text is replaced by a note.
pub(crate) fn readable(text: &str) -> &str {
    let made_up = !text.is_empty() && text.split(' ').all(|word| word == "and");
    if made_up { "(words that the recording lacks)" } else { text }
}

#[cfg(test)]
mod tests {
    use ctxbench_session::{Header, RecordedUsage};

    use super::*;

    fn reply(id: &str, agent: Option<&str>, prompt: u64) -> Entry {
        let usage = Some(RecordedUsage { cache_read: prompt, ..RecordedUsage::default() });
        let (id, agent) = (id.to_string(), agent.map(str::to_string));
        Entry::Assistant(AssistantEntry { id, agent, usage, ..AssistantEntry::default() })
    }

    #[test]
    fn what_is_made_up_for_a_conversation_fits_into_memory() {
        let model = Some("claude-sonnet-4-6".to_string());
        let header = Header { model, prefix_tokens: Some(4_000_000), ..Header::default() };
        let entries = vec![
            reply("a1", None, 4_000_000),
            reply("a2", None, 5_000_000),
            reply("a3", None, 1_000_000_000),
            reply("a4", None, 1_000_005_000),
        ];
        let mut session = Session { header, entries, facts: vec![] };
        // In this example, a token counts as one, and a block as four.
        let listed = model::find("claude-sonnet-4-6").unwrap().clone();
        let model = Model { counting: Counting::O200K, ..listed };
        let unseen = unseen(&session, &model, Calibrate::Recording);
        assert_eq!((unseen["a2"], unseen["a3"], unseen["a4"]), (999_996, 5_000_004, 0));
        session.entries.push(reply("b1", Some("x"), 2_000_000));
        let told = unfilled(&session);
        let [told] = told.as_slice() else { panic!("{told:?}") };
        assert!(told.starts_with("its counters tell of 1000005000 tokens of text"), "{told}");
        assert!(told.contains("makes up 10000000 of them"), "{told}");
        session.entries = vec![reply("a1", None, 4_000_000), reply("b1", Some("x"), 20_000_000)];
        let told = unfilled(&session);
        assert!(told[0].starts_with("its counters of subagent \"x\" tell of 20000000"), "{told:?}");
    }

    #[test]
    fn only_made_up_words_are_not_read() {
        assert_eq!(readable(&text_of(3)), "(words that the recording lacks)");
        assert_eq!((readable(""), readable("and so on")), ("", "and so on"));
    }

    #[test]
    fn filler_has_its_size() {
        for n in [0, 1, 2, 500, 27_699] {
            assert_eq!(ctxbench_core::tokens::o200k(&text_of(n)), n);
        }
    }
}
