//! Data of a product for its recorded cases: its rules as functions, and the settings, constants
//! and requests of a recorded session. The harness reads, replays and compares the cases.

pub mod record;
pub mod shape;
pub mod text;

use ctxbench_core::block::Block;
use ctxbench_core::model::Model;
use ctxbench_core::request::Request;
use ctxbench_core::settings::{Settings, SettingsTable};
use ctxbench_core::strategy::Strategy;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::descriptor::{Build, Factory, Product, SpecError, Version};
use shape::Shape;
use text::BadRecipe;

/// Functions and data for checking recorded cases of a product.
#[derive(Clone, Copy, Debug)]
pub struct Conformance {
    /// Rules for function cases, by name.
    pub functions: &'static [Function],
    /// Members of results that summarise the other members in a label.
    pub labels: &'static [Label],
    /// Replay of recorded sessions. `None` = the program cannot be recorded.
    pub replay: Option<Replay>,
}

/// A member of a result with a label chosen by the recorder. Two labels that are not recorded count
/// as equal, so that the other members decide.
#[derive(Clone, Copy, Debug)]
pub struct Label {
    pub member: &'static str,
    /// Labels that occur in recordings.
    pub recorded: &'static [&'static str],
}

impl Conformance {
    /// Conformance of a product without recordings.
    pub const NO_CASES: Conformance = Conformance { functions: &[], labels: &[], replay: None };
}

/// Facts that a rule may need in addition to its input.
pub struct Context {
    /// Version with the rules to apply.
    pub version: Version,
    /// The strategy's settings with their defaults.
    pub settings: Settings,
    /// Facts common to all cases of a file.
    pub facts: Map<String, Value>,
}

/// Error that prevents the use of a case.
#[derive(Debug, thiserror::Error)]
pub enum MemberError {
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("{0}")]
    Input(String),
    #[error(transparent)]
    Recipe(#[from] BadRecipe),
    #[error("expected settings that the strategy knows, found {0}")]
    Settings(#[from] SpecError),
    #[error("unknown version `{0}`")]
    Version(String),
}

/// A rule with its name. It deserialises the input, calls the strategy's function and serialises
/// the result. Unknown or missing members fail the case.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    pub name: &'static str,
    /// Versions with this rule. None = all versions.
    pub versions: &'static [&'static str],
    pub call: fn(&Context, Value) -> Result<Value, MemberError>,
}

/// Deserialises an input to the type that a rule expects.
pub(crate) fn read<T: DeserializeOwned>(input: Value) -> Result<T, MemberError> {
    Ok(serde_json::from_value(input)?)
}

/// Deserialises a member that is required, but may be null.
pub(crate) fn nullable<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    d: D,
) -> Result<Option<T>, D::Error> {
    Option::deserialize(d)
}

/// Functions and data for replaying recorded sessions of a program.
#[derive(Clone, Copy, Debug)]
pub struct Replay {
    /// Members of a case's settings.
    pub settings: Shape,
    /// True if any request parameter may appear among the settings.
    pub parameters: bool,
    /// Members of a case's constants.
    pub constants: Shape,
    /// Required members of a case's outcome. If empty, the outcome may be missing.
    pub ends: &'static [&'static str],
    /// Interprets a case. Its settings and constants have these shapes.
    pub set_up: fn(&RecordedProgram<'_>, Model) -> Result<SetUp, MemberError>,
    /// Returns the names of the class of an error that the program raises itself, the recorded one
    /// first. Returns none for other reasons.
    pub error_classes: fn(&str) -> &'static [&'static str],
    /// Conversion of driven sessions to cases; `None` = not available.
    pub record: Option<record::CaseRecording>,
}

/// Facts of a case about the recorded program.
pub struct RecordedProgram<'a> {
    pub version: &'a str,
    pub settings: &'a Map<String, Value>,
    /// Sizes of texts that are constant in the program.
    pub constants: &'a Map<String, Value>,
    /// Pieces that every request shows.
    pub fixed: &'a [Value],
}

impl RecordedProgram<'_> {
    /// Returns the size of a constant, bytes.
    pub(crate) fn constant(&self, name: &str) -> usize {
        let size = |v: &Value| v.as_u64().or_else(|| v.get("bytes").and_then(Value::as_u64));
        self.constants.get(name).and_then(size).unwrap_or(0) as usize
    }

    /// Returns a setting, unless it is missing or null.
    pub(crate) fn setting(&self, name: &str) -> Option<&Value> {
        self.settings.get(name).filter(|v| !v.is_null())
    }
}

/// A case prepared for its replay.
pub struct SetUp {
    pub strategy: Box<dyn Strategy>,
    pub model: Model,
    /// Request parameters of the program's caller.
    pub params: Map<String, Value>,
    /// True if usage reports cache reads and writes separately instead of within the input.
    pub cache_beside_input: bool,
    /// True if a caller acts while the program handles a reply: a `compact` event is the caller's,
    /// and calls run only if the stop reason says so.
    pub caller_acts: bool,
    pub view: RequestView,
}

/// Form in which a case records requests.
#[derive(Default)]
pub struct RequestView {
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
    pub cut: Option<fn(&str) -> Option<Value>>,
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
    /// The user's focus after this text, at the end of the prompt. Both are optional.
    Focus(String),
}

/// Settings of a case in the notation of the command line, so that the same ranges apply.
#[derive(Default)]
pub(crate) struct CaseSettings(Vec<String>);

impl CaseSettings {
    pub(crate) fn set(&mut self, name: &str, value: impl std::fmt::Display) {
        self.0.push(format!("{name}={value}"));
    }

    /// Sets a value if the case gives one.
    pub(crate) fn take(&mut self, name: &str, value: Option<&Value>) {
        match value {
            Some(Value::String(word)) => self.set(name, word),
            Some(Value::Null) | None => {}
            Some(other) => self.set(name, other),
        }
    }
}

/// Returns our version to compare with a recorded one, the newest release that is not newer. A new
/// release of the program is thus tested before it is described here.
pub(crate) fn followed<P: Product>(recorded: &str) -> Result<&'static str, MemberError> {
    let numbers = |v: &str| v.split('.').map(|n| n.parse().ok()).collect::<Option<Vec<u64>>>();
    let wanted = numbers(recorded.split(['-', '+']).next().unwrap_or_default());
    let releases = P::VERSIONS.iter().map(|(v, _)| v.name);
    let older = releases.filter_map(|name| Some((numbers(name)?, name)));
    let newest = older.filter(|(n, _)| wanted.as_ref().is_some_and(|w| n <= w)).max();
    newest.map(|(_, name)| name).ok_or_else(|| MemberError::Version(recorded.into()))
}

/// Builds the strategy of a recorded version, with fillers in place of its texts.
pub(crate) fn build<P: Product>(
    name: &str,
    version: &str,
    given: &CaseSettings,
    words: P::Words,
) -> Result<Box<dyn Strategy>, MemberError> {
    let (version, settings) = Factory::of::<P>().select(name, Some(version), &given.0.join(","))?;
    Ok(P::build(Build {
        version: P::version(version),
        settings: P::Settings::read(&settings),
        words,
        scale: 1.0,
    }))
}
