//! Texts in which the facts of a session arise.

use ctxbench_core::content::Part;
use ctxbench_session::Session;
use ctxbench_session::fact::Fact;
use rapidhash::RapidHashMap as HashMap;

/// Applies `of` to each fact of a session and to the first text under its id that contains one of
/// its literals. `arising` contains the facts of each id. Returns `None` for facts without such a
/// text. Arguments of a call belong to the message that made the call.
pub(super) fn in_sources<T>(
    session: &Session,
    arising: &HashMap<String, Vec<usize>>,
    mut of: impl FnMut(&Fact, &str) -> T,
) -> Vec<Option<T>> {
    let mut made: Vec<Option<T>> = session.facts.iter().map(|_| None).collect();
    for e in &session.entries {
        let Some(facts) = e.key().and_then(|key| arising.get(key)) else { continue };
        let parts = e.content();
        let calls = parts.iter().filter_map(Part::as_call).map(|c| &*c.arguments);
        for text in parts.iter().filter_map(Part::as_prose).chain(calls) {
            for &i in facts {
                let fact = &session.facts[i];
                if made[i].is_none() && !text.is_empty() && holds(fact, text) {
                    made[i] = Some(of(fact, text));
                }
            }
        }
    }
    made
}

/// Returns whether a text contains a literal of a fact or, for a fact without literals, enough of
/// its terms.
fn holds(fact: &Fact, text: &str) -> bool {
    match fact.tokens.is_empty() {
        true => fact.occurs_in(text),
        false => fact.tokens.iter().any(|t| text.contains(t.as_str())),
    }
}
