//! Selection of the model for a session.

use std::collections::BTreeSet;

use ctxbench_core::model::{self, Model};
use ctxbench_session::Session;

/// Returns the models for a session: the named ones, or its own model if none is named.
pub fn for_session(session: &Session, named: &[&'static Model]) -> Vec<&'static Model> {
    if named.is_empty() { vec![own(session)] } else { named.to_vec() }
}

/// Returns the default model of a session: the recorded one, or its [substitute](model::substitute)
/// if the catalogue does not list it, or [`model::DEFAULT_MODEL`] if neither is known.
pub fn own(session: &Session) -> &'static Model {
    recorded(session).unwrap_or_else(|| {
        model::find(model::DEFAULT_MODEL).expect("the default model is in the catalogue")
    })
}

/// Returns the model that a session was recorded with, or the model of the same family that
/// replaces it.
pub fn recorded(session: &Session) -> Option<&'static Model> {
    session.header.model.as_deref().and_then(model::priced_as)
}

/// Returns remarks about the results of a session with a model: that the model differs from the
/// recorded one, or that it was retired.
pub fn remarks(session: &Session, model: &Model) -> impl Iterator<Item = String> {
    instead_of_own(session, model).into_iter().chain(unpriced(session, model)).chain(retired(model))
}

/// Returns the remark about replies of models without a price, besides the session's own.
fn unpriced(session: &Session, model: &Model) -> Option<String> {
    let named = session.entries.iter().filter_map(|e| e.as_reply()?.model.as_deref());
    let is_other = |name: &&str| Some(*name) != session.header.model.as_deref();
    let all: BTreeSet<&str> =
        named.filter(is_other).filter(|name| model::priced_as(name).is_none()).collect();
    let names = all.iter().copied().collect::<Vec<_>>().join(", ");
    let said = format!("{names} has no price here: a replay prices its calls as {}", model.name);
    (!all.is_empty()).then_some(said)
}

fn retired(model: &Model) -> Option<String> {
    let day = model.retired()?;
    Some(format!("{} was retired on {day}; dollars are those of its last price list", model.name))
}

/// Returns the remark about a model that differs from the recorded one.
fn instead_of_own(session: &Session, model: &Model) -> Option<String> {
    let recorded = session.header.model.as_deref()?;
    let Some(own) = model::find_recorded(recorded) else {
        return Some(format!(
            "{recorded} is not in the table of models: run as {} (prices, window); name it in a \
             file of --models",
            model.name
        ));
    };
    if own.name == model.name {
        return None;
    }
    let mut others = Vec::new();
    if own.window != model.window {
        others.push(format!(
            "limits (a window of {} instead of {} tokens)",
            model.window, own.window
        ));
    }
    if own.prices != model.prices {
        let (new, old) = (model.prices.input, own.prices.input);
        others.push(format!("prices ({new} instead of {old} USD per million input tokens)"));
    }
    let how = if others.is_empty() {
        "has the same window and prices".to_string()
    } else {
        format!("has other {}", others.join(" and "))
    };
    Some(format!("it was recorded with {}; {} {how}", own.name, model.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctxbench_session::Header;

    fn session(model: Option<&str>) -> Session {
        let model = model.map(str::to_string);
        Session { header: Header { model, ..Header::default() }, ..Session::default() }
    }

    #[test]
    fn a_recording_has_a_model_of_its_own() {
        for (recorded, own_name) in [
            (Some("claude-opus-4-6"), "claude-opus-4-6"),
            (Some("claude-sonnet-4-5-20250929"), "claude-sonnet-4-5"),
            (Some("gpt-5.9-foo"), "gpt-5.5"),
            (Some("mystery-1"), model::DEFAULT_MODEL),
            (None, model::DEFAULT_MODEL),
        ] {
            assert_eq!(&*own(&session(recorded)).name, own_name);
        }
    }

    #[test]
    fn another_model_and_a_retired_one_are_told() {
        let opus = Some("claude-opus-4-6");
        for (recorded, run, said) in [
            (
                None,
                "gpt-5-codex",
                "gpt-5-codex was retired on 2026-07-23; dollars are those of its last price list",
            ),
            // Its day has not come.
            (None, "gpt-5", ""),
            (None, "gpt-5.4", ""),
            (opus, "claude-opus-4-6", ""),
            (
                opus,
                "claude-sonnet-4-6",
                "it was recorded with claude-opus-4-6; claude-sonnet-4-6 has other prices (3 instead of 5 USD per million input tokens)",
            ),
            (
                opus,
                "gpt-5.4",
                "it was recorded with claude-opus-4-6; gpt-5.4 has other limits (a window of ",
            ),
            (
                Some("gpt-5.9-foo"),
                "gpt-5.5",
                "gpt-5.9-foo is not in the table of models: run as gpt-5.5 (prices, window); name it in a file of --models",
            ),
        ] {
            let all: Vec<String> = remarks(&session(recorded), model::find(run).unwrap()).collect();
            let told = all.join("; ");
            assert!(told.starts_with(said) && told.is_empty() == said.is_empty(), "{told}");
        }
    }
}
