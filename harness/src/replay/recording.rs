//! What a recording tells of the world that its session met: the model and its limits, how long
//! caches lived, how tokens were counted, and what of the prompts was not recorded.

use std::collections::HashMap;
use std::sync::Arc;

use ctxbench_core::calibration::{self, Calibrate};
use ctxbench_core::model::{self, Counting, Model};
use ctxbench_core::request::Ttl;
use ctxbench_core::session::{Entry, Session};
use ctxbench_core::strategy::DEFAULT_TTL;
use ctxbench_scenarios::Scenario;

use super::Options;
use crate::models;

/// The model as this session meets it: counting and limits of the session or the command line,
/// then the scale.
pub(super) fn met(scenario: &Scenario, model: &Model, options: &Options) -> Model {
    let header = &scenario.session.header;
    let mut m = model.clone();
    m.counting = counting(&scenario.session, model, options.calibrate).at(options.edge);
    if let Some(w) = options.window.or(header.context_window) {
        m.window = w;
        m.input_limit = None;
    }
    if let Some(o) = header.max_output {
        m.max_output = o;
    }
    m.scaled(scenario.scale)
}

/// How a model counts the tokens of a session.
pub(crate) fn counting(session: &Session, model: &Model, calibrate: Calibrate) -> Counting {
    match calibrate {
        Calibrate::Off => Counting::O200K,
        Calibrate::Recording if tells_sizes(session, model) => model.counting.of_visible_text(),
        _ => model.counting,
    }
}

/// The cache lifetime that the recorded program asked for, as far as counters tell.
pub(super) fn lifetime(session: &Session) -> Ttl {
    let counted = session.entries.iter().filter_map(|e| match e {
        Entry::Assistant(a) if a.agent.is_none() => a.usage,
        _ => None,
    });
    let written = counted.fold((0u64, 0u64), |(short, long), u| {
        (short.saturating_add(u.cache_write), long.saturating_add(u.cache_write_1h))
    });
    if written.1 > written.0 { Ttl::OneHour } else { DEFAULT_TTL }
}

/// The model that a recorded subagent ran on, where the run's is the one that its caller ran on.
pub(super) fn of_subagent(
    scenario: &Scenario,
    session: &Session,
    run: &Arc<Model>,
    o: &Options,
) -> Arc<Model> {
    let named = models::recorded;
    let as_recorded = named(&scenario.session).is_some_and(|m| m.name == run.name);
    match named(session).filter(|m| as_recorded && m.name != run.name && m.wire == run.wire) {
        Some(own) => Arc::new(Model { counting: run.counting, ..met(scenario, own, o) }),
        None => run.clone(),
    }
}

/// How the tokens that a session tells were counted: as the run's model counts, unless it was
/// recorded with one of another family.
pub(super) fn counted_by(session: &Session, model: &Model, calibrate: Calibrate) -> Counting {
    match session.header.model.as_deref() {
        Some(name)
            if calibrate == Calibrate::Off || model::provider_of(name) != Some(model.provider) =>
        {
            calibration::counting_of(Some(name)).of_visible_text()
        }
        _ => model.counting,
    }
}

/// Whether a recording's counters tell the sizes of prompts as this model counts them.
pub(super) fn tells_sizes(session: &Session, model: &Model) -> bool {
    let provider = session.header.model.as_deref().and_then(model::provider_of);
    provider == Some(model.provider) && session.has_counters()
}

/// What a recording lacks before each reply, o200k tokens of text by the reply's id.
pub(super) type Unseen = HashMap<String, u64>;

/// What a recording lacks by its counters, which count so. The text is the same whatever the run's
/// model; only that of the recorded family counts it as recorded.
pub(super) fn unseen(session: &Session, by: &Counting) -> Unseen {
    let own = session.entries.iter().filter(|e| e.agent().is_none());
    calibration::residuals(own, by, session.header.model.as_deref())
        .into_iter()
        .map(|(reply, tokens)| (reply.to_string(), by.fitting(tokens)))
        .collect()
}

/// Text of exactly `tokens` o200k tokens that stands for words that were not recorded. Four bytes a
/// token, like English: some programs estimate by bytes.
pub(crate) fn text_of(tokens: u64) -> String {
    let mut out = String::from(if tokens == 0 { "" } else { "and" });
    for _ in 1..tokens {
        out.push_str(" and");
    }
    out
}

/// A text as a person should read it: words that stand for unrecorded ones are none.
pub(crate) fn readable(text: &str) -> &str {
    let made_up = !text.is_empty() && text.split(' ').all(|word| word == "and");
    if made_up { "(words that the recording lacks)" } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

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
