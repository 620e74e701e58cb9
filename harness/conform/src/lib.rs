//! Comparison of our requests with the recorded ones of real programs.
//!
//! A case gives settings, fixed pieces and events. The engine and the strategies of the benchmark
//! must make the recorded requests. `products/` maps the settings and constants of each product, and
//! classifies the requests of the real program for a new case.

pub mod case;
mod check;
mod compare;
mod outcome;
mod pieces;
mod products;
mod prompt;
pub mod record;
mod shorten;
mod text;
mod world;

use std::pin::pin;
use std::task::{Context, Waker};

use ctxbench_core::engine::EngineOptions;
use ctxbench_core::prelude::*;
use ctxbench_core::{Model, agent, model};
use ctxbench_provider::wire;
use regex::Regex;
use serde_json::{Map, Value};

use case::Cut;
pub use case::{Case, CaseError};
pub use compare::Difference;
pub use products::find as replay_of;
pub use shorten::shorten;

/// Functions and data for replaying recorded sessions of a program.
#[derive(Clone, Copy, Debug)]
pub struct Replay {
    /// Names of a case's constants.
    pub constants: &'static [&'static str],
    /// Required members of a case's outcome. If empty, the outcome may be missing.
    pub ends: &'static [&'static str],
    /// Interprets a case: its settings and constants.
    pub set_up: fn(&Case, Model) -> Result<SetUp, CaseError>,
    /// Returns the names of the class of an error that the program raises itself, the recorded one
    /// first. Returns none for other reasons.
    pub error_classes: fn(&str) -> &'static [&'static str],
    /// Conversion of driven sessions to cases; `None` = not available.
    pub record: Option<record::CaseRecording>,
}

/// A case prepared for its replay.
pub struct SetUp {
    pub strategy: Box<dyn Strategy>,
    pub model: Model,
    pub view: RequestView,
}

/// Form in which a case records requests.
#[derive(Default)]
pub struct RequestView {
    /// Request parameters of the program's caller.
    pub params: Map<String, Value>,
    /// True if usage reports cache reads and writes separately instead of within the input.
    pub cache_beside_input: bool,
    /// True if a caller acts while the program handles a reply: a `compact` event is the caller's,
    /// and calls run only if the stop reason says so.
    pub caller_acts: bool,
    /// Name of the wire for numbering the messages of items. `None` = items have no numbers.
    pub numbered: Option<&'static str>,
    /// Number of messages at the beginning without a number.
    pub unnumbered: usize,
    /// True if a parameter, and not an item, requests a compaction of the provider.
    pub compaction_is_parameter: bool,
    /// True if compactions by the provider are items without a role.
    pub roleless_compaction: bool,
    /// Form of a summary and the text around it.
    pub summary: SummaryForm,
    /// Purpose of a compression request, if it differs from the time of the request.
    pub phase: Option<fn(&Request) -> Option<&'static str>>,
    /// Returns the sizes to which an output was cut, if its note names a file and its text is
    /// therefore not compared.
    pub cut: Option<fn(&str) -> Option<Cut>>,
    /// Forms of a summary prompt that contains the conversation as a transcript.
    pub prompts: Vec<PromptForm>,
}

/// Structure of a summary in the history.
#[derive(Default)]
pub struct SummaryForm {
    /// Text before the body.
    pub head: String,
    /// Text after the body.
    pub tail: String,
    /// Constant segments of a body, by name.
    pub constants: Vec<(&'static str, String)>,
    /// Whether the program adds the lists of files to the body.
    pub lists_files: bool,
}

pub struct PromptForm {
    /// Name of the form, if cases distinguish forms.
    pub variant: Option<&'static str>,
    /// The constant texts with variable pieces between them: `transcript`, and `prior` for the
    /// previous summary. `None` if the texts are larger than any prompt.
    pub pattern: Option<Regex>,
}

/// Result of one replay case.
#[derive(Clone, Debug)]
pub struct CaseVerdict {
    /// Number of requests in the case.
    pub expected: usize,
    /// Number of matching requests before the first difference.
    pub matched: usize,
    /// The first difference; `None` = the case passed.
    pub difference: Option<Difference>,
}

pub fn replay(case: &Case) -> Result<CaseVerdict, CaseError> {
    let unknown = CaseError::unknown;
    let unfinished = || CaseError::Other("the run of the case does not end".into());
    let product = products::find(&case.agent);
    let product = product.ok_or_else(|| unknown("agent", &case.agent))?;
    case.check(product)?;
    let template = model::catalogue().first().ok_or_else(|| unknown("model", ""))?;
    let SetUp { mut strategy, model, view } = (product.set_up)(case, template.clone())?;
    let (world, script) = world::ScriptWorld::new(case, &view);
    let options = EngineOptions { default_breakpoints: false, ..EngineOptions::default() };
    let mut engine = Engine::with_options(Arc::new(model), Box::new(world), options);
    engine.fixed = pieces::fixed(case);
    if let Some(name) = view.numbered {
        let wire = wire::find(name).ok_or_else(|| unknown("wire", name))?;
        engine.fixed.server_edits = (wire.rules.edits_among)(&view.params);
    }
    engine.fixed.params = view.params.clone();
    // Nothing in a case waits, so the run ends at once.
    let run =
        pin!(agent::run(&mut engine, &mut *strategy)).poll(&mut Context::from_waker(Waker::noop()));
    if run.is_pending() {
        // A strategy waits for something that is not in the case.
        return Err(unfinished());
    }
    let estimates = engine
        .events()
        .iter()
        .filter_map(|e| match e.event {
            Event::Estimated(n) => Some((e.before_request.saturating_sub(1) as usize, n)),
            _ => None,
        })
        .collect();
    let script = script.lock().map_err(|_| unfinished())?;
    let mut verdict = compare::compare(case, &script, &view, &estimates);
    if let (None, Some(want)) = (&verdict.difference, &case.outcome) {
        let found = outcome::outcome(want, &script, product.error_classes, &view, engine.events());
        verdict.difference = found.map(|m| m.at(script.requests.len(), None));
    }
    Ok(verdict)
}
