//! Texts of a session, by id of the message or call.

use std::collections::HashMap;

use ctxbench_core::content::Part;
use ctxbench_core::fact::Fact;
use ctxbench_core::session::{Entry, Session};

/// Calls `found` with every text of a session and the id of its message or call. The id of constant
/// context is empty. Arguments of a call belong to the message that made the call.
pub(super) fn for_each_text<'a>(session: &'a Session, mut found: impl FnMut(&'a str, &str)) {
    for e in &session.entries {
        match e {
            Entry::System { text, .. } | Entry::RepoMap { text, .. } => found("", text),
            Entry::Memory { path, text, .. } | Entry::File { path, text, .. } => {
                found("", path);
                found("", text);
            }
            _ => {
                let (key, parts) = (e.key().unwrap_or_default(), e.content());
                parts.iter().filter_map(Part::as_prose).for_each(|t| found(key, t));
                let calls = parts.iter().filter_map(Part::as_call);
                calls.for_each(|c| found(key, &c.arguments));
            }
        }
    }
}

/// Applies `of` to each fact of a session and to the first text under its id that contains one of
/// its literals. Returns `None` for facts without such a text.
pub(super) fn in_sources<T>(
    session: &Session,
    mut of: impl FnMut(&Fact, &str) -> T,
) -> Vec<Option<T>> {
    let mut arising: HashMap<&str, Vec<usize>> = HashMap::new();
    for (i, f) in session.facts.iter().enumerate().filter(|(_, f)| !f.arises.is_empty()) {
        arising.entry(&f.arises).or_default().push(i);
    }
    let mut made: Vec<Option<T>> = session.facts.iter().map(|_| None).collect();
    for_each_text(session, |id, text| {
        for &i in arising.get(id).into_iter().flatten() {
            let fact = &session.facts[i];
            if made[i].is_none() && !text.is_empty() && holds(fact, text) {
                made[i] = Some(of(fact, text));
            }
        }
    });
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
