//! Wire formats, one folder each. A wire is a [`WireFormat`]; the wires of a provider share an
//! [`ApiFormat`].

mod anthropic;
mod encoding;
pub(crate) mod errors;
mod format;
mod gemini;
pub(crate) mod json;
mod openai;
mod openai_chat;
mod openai_responses;
pub(crate) mod plan;
#[cfg(test)]
mod properties_tests;
pub(crate) mod slot;
mod stream;
#[cfg(test)]
mod tests;

use ctxbench_core::model::Model;

pub use encoding::LastPrompt;
pub use format::{
    Api, ApiFormat, Encoded, Endpoint, HasHeader, ReplyOptions, ResultsDue, Rules, Wire, WireError,
    WireFormat,
};
pub use stream::{StreamEvent, event_data};

/// All wire formats. The first is the default for unknown clients.
pub static ALL: &[Wire] =
    &[&openai_responses::WIRE, &openai_chat::WIRE, &anthropic::WIRE, &gemini::WIRE];

pub fn find(name: &str) -> Option<Wire> {
    ALL.iter().copied().find(|w| w.name == name)
}

/// Returns the wire of a model.
///
/// # Panics
///
/// If the model names an unknown wire; a test checks the catalogue.
pub fn for_model(model: &Model) -> Wire {
    find(&model.wire).unwrap_or_else(|| panic!("{} speaks `{}`", model.name, model.wire))
}

/// Returns the providers' APIs, in the order of their wires.
pub fn apis() -> [Api; 3] {
    [&openai::OPENAI, &anthropic::ANTHROPIC, &gemini::GOOGLE]
}

pub fn detect_api(path: &str, header: HasHeader<'_>) -> Api {
    let known = apis().into_iter().find(|a| (a.matches_client)(path, header));
    known.unwrap_or(ALL[0].api)
}
