//! Data of a product for its recorded cases: the settings, constants and requests of a recorded
//! session. The harness reads, replays and compares the cases.

pub mod case;
mod check;
pub mod record;
pub mod text;

use ctxbench_core::block::Block;
use ctxbench_core::model::Model;
use ctxbench_core::request::Request;
use ctxbench_core::strategy::Strategy;
use serde_json::{Map, Value};

use crate::Spec;
use crate::descriptor::BuildRequest;
use case::{Case, CaseError, Cut};
#[cfg(test)]
pub(crate) use check::prepare;

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

/// Returns the files that a summary in the history names: those only read, and those modified.
pub type FilesOf = fn(&Block) -> (Vec<String>, Vec<String>);
/// Formats the two file lists of a summary.
pub type ShowFiles = fn(&[String], &[String]) -> String;

/// Structure of a summary in the history.
#[derive(Default)]
pub struct SummaryForm {
    /// Text before the body.
    pub head: String,
    /// Text after the body.
    pub tail: String,
    /// Constant segments of a body, by name.
    pub constants: Vec<(&'static str, String)>,
    /// File lists in the body, if the program adds them.
    pub files: Option<(FilesOf, ShowFiles)>,
}

/// A form of a summary prompt: constant texts with variable pieces between them.
pub struct PromptForm {
    /// Name of the form, if cases distinguish forms.
    pub variant: Option<&'static str>,
    /// Pieces in order. A constant separates two variable pieces.
    pub pieces: Vec<PromptPiece>,
}

/// A piece of a summary prompt.
#[derive(Clone, Debug)]
pub enum PromptPiece {
    /// A text of the program.
    Constant(String),
    Transcript,
    /// The previous summary.
    Prior,
}

/// Returns the replay of a product's recorded sessions, if there are any.
pub fn replay_of(product: &str) -> Option<&'static Replay> {
    match product {
        "codex" => Some(&crate::codex::conform::REPLAY),
        "opencode" => Some(&crate::opencode::conform::REPLAY),
        "pi" => Some(&crate::pi::conform::REPLAY),
        "gemini-cli" => Some(&crate::gemini_cli::conform::REPLAY),
        "anthropic-sdk" => Some(&crate::anthropic_sdk::conform::REPLAY),
        _ => None,
    }
}

/// Builds the strategy that a case is compared with: our newest release that is not newer than the
/// recorded one, so that a new release of the program is tested before it is described here. Settings
/// that are null have their defaults. `texts` replace the texts of the product; those that are
/// missing are empty.
pub(crate) fn build(
    product: &str,
    recorded: &str,
    settings: &Value,
    texts: &Value,
) -> Result<Box<dyn Strategy>, CaseError> {
    let unknown = |what, name: &str| CaseError::Unknown { what, name: name.into() };
    let numbers = |v: &str| v.split('.').map(|n| n.parse().ok()).collect::<Option<Vec<u64>>>();
    let product = Spec::parse(product).map_err(|_| unknown("agent", product))?;
    let wanted = numbers(recorded.split(['-', '+']).next().unwrap_or_default());
    let releases = product.descriptor.versions.iter().filter_map(|v| Some((numbers(v.name)?, v)));
    let older = releases.filter(|(n, _)| wanted.as_ref().is_some_and(|w| n <= w));
    let newest = older.max_by(|(a, _), (b, _)| a.cmp(b));
    let (_, version) = newest.ok_or_else(|| unknown("version", recorded))?;
    let mut spec = Spec { version: *version, ..product };
    for (name, value) in settings.as_object().into_iter().flatten().filter(|(_, v)| !v.is_null()) {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_string);
        spec = spec.with(name, &text).map_err(|e| CaseError::Value {
            at: "settings".into(),
            expected: e.to_string(),
            found: text,
        })?;
    }
    let request = BuildRequest {
        version: spec.version,
        settings: &spec.settings,
        scale: 1.0,
        texts: texts.as_object(),
    };
    Ok(spec.descriptor.product.build(&request))
}
