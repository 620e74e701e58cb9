//! Products: the facts of a strategy as data, and the code that builds it.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;

pub use crate::own_settings::SettingsFile;
use crate::sweep::SweepError;
use ctxbench_core::model::Capabilities;
use ctxbench_core::prelude::*;
use ctxbench_core::settings::{Setting, SettingError, Settings, UserSetting};
pub use ctxbench_core::strategy::Standing;
use ctxbench_kit::memory::{LoadRequest, LoadedFiles, MemoryTable, load};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use thiserror::Error;

use crate::persist::{OURS, PersistFormat};

/// Names and titles of the dimensions, in report order.
pub(crate) const DIMENSIONS: [(&str, &str); 12] = [
    ("layers", "Compaction layers"),
    ("llm_calls", "LLM calls"),
    ("user_messages", "User messages"),
    ("tool_results", "Tool results"),
    ("cache", "Prompt cache"),
    ("afterwards", "Afterwards"),
    ("token_counting", "Token counting"),
    ("pre_send_check", "Check before sending"),
    ("overflow_response", "Overflow response"),
    ("thinking", "Thinking"),
    ("memory", "Memory"),
    ("undo", "Undo"),
];

/// A version that a strategy can follow: a release, the documented intent, or a published
/// description.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Version {
    /// Name after the `@` in a strategy's name.
    pub name: &'static str,
    /// Version of the program that it follows, if that is not its name.
    pub program: Option<&'static str>,
    /// Last release that it follows; `None` = all that begin with its name.
    pub until: Option<&'static str>,
    /// Kind of version and its differences from the releases.
    #[serde(default = "as_released")]
    pub about: &'static str,
}

fn as_released() -> &'static str {
    "as released"
}

impl Version {
    pub const fn new(name: &'static str, about: &'static str) -> Version {
        Version { name, program: None, until: None, about }
    }

    /// Returns the version of the program that it follows; for a description, its own name.
    pub fn program(&self) -> &'static str {
        self.program.unwrap_or(self.name)
    }

    fn follows(&self, release: &[u64]) -> bool {
        let Some(first) = release_numbers(self.name) else { return false };
        match self.until.and_then(release_numbers) {
            Some(last) => (&first[..]..=&last[..]).contains(&release),
            None => release.starts_with(&first),
        }
    }

    /// Returns true if this version follows a published description instead of a release.
    pub fn is_description(&self) -> bool {
        self.name.starts_with("described-")
    }
}

/// Returns the numbers of a release such as 2.1.20 or 0.105.0-alpha.1. `None` = it has another form.
pub fn release_numbers(release: &str) -> Option<Vec<u64>> {
    let numbers = release.split(['-', '+']).next()?.split('.');
    numbers.map(|number| number.parse().ok()).collect()
}

/// Input from which a [`Product`] builds a strategy.
#[derive(Clone, Copy, Debug)]
pub struct BuildRequest<'a> {
    /// One of the product's versions.
    pub version: Version,
    /// Settings with the scale applied.
    pub settings: &'a Settings,
    /// Multiplier of token constants that are not settings.
    pub scale: f64,
    /// Texts of the product; see [`About::texts`].
    pub texts: &'a Map<String, Value>,
}

/// Invariant of the methods of [`BuildRequest`]: a test builds every version of every product.
const CHECKED: &str = "the fields of the product's types are those of its about.toml";

impl BuildRequest<'_> {
    /// Returns the settings as the product's struct with a field for each setting.
    pub fn settings<S: DeserializeOwned>(&self) -> S {
        self.settings.read().expect(CHECKED)
    }

    /// Returns the texts as the product's struct with a field for each text.
    pub fn texts<W: DeserializeOwned>(&self) -> W {
        W::deserialize(self.texts).expect(CHECKED)
    }
}

/// A strategy that cannot be used as asked.
#[derive(Debug, Error, PartialEq)]
pub enum SpecError {
    /// An unknown strategy or version, or a setting that has no effect in the version.
    #[error("{0}")]
    Unknown(String),
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// An invalid list or range of values.
    #[error(transparent)]
    Sweep(#[from] SweepError),
    /// An external program that cannot be started as written.
    #[error("{0}")]
    Program(String),
}

/// A model capability that a strategy requires.
#[derive(Clone, Copy, Debug)]
pub struct Requirement {
    /// Returns true if a provider with these capabilities meets the requirement.
    pub is_met: fn(&Capabilities) -> bool,
    /// Reason, as a sentence for the row that shows `n/a` with other models.
    pub reason: &'static str,
}

/// A product, technique or program whose context management can run as a strategy.
pub trait Product: Sync {
    /// Returns the facts about the product, usually [`About::read`] of its `about.toml`.
    fn about(&self) -> About;

    fn build(&self, request: &BuildRequest<'_>) -> Box<dyn Strategy>;

    /// Returns the capability that a version with these settings requires.
    fn needs(&self, _request: &BuildRequest<'_>) -> Option<Requirement> {
        None
    }

    /// Loads the memory files that a version reads.
    fn load_files(&self, _version: Version, request: LoadRequest<'_>) -> LoadedFiles {
        load(&request, Vec::new())
    }

    /// Returns the formats in which it stores sessions. Techniques and controls have none and are
    /// compared with our own store.
    fn formats(&self) -> &'static [PersistFormat] {
        OURS
    }

    /// Returns true if each session runs twice, and a differing second run is an error. Used for
    /// external programs.
    fn is_run_twice(&self) -> bool {
        false
    }

    /// Returns the command of the real program that runs instead of a model of it.
    fn command(&self) -> Option<String> {
        None
    }
}

/// A product of this crate: what its `about.toml` does not say.
pub(crate) struct Known {
    pub about: &'static str,
    pub build: fn(&BuildRequest<'_>) -> Box<dyn Strategy>,
    pub needs: fn(&BuildRequest<'_>) -> Option<Requirement>,
    pub load_files: fn(Version, LoadRequest<'_>) -> LoadedFiles,
    pub formats: &'static [PersistFormat],
}

impl Known {
    /// Returns a product that needs nothing, reads the files of its table and has no own store.
    pub const fn new(
        about: &'static str,
        build: fn(&BuildRequest<'_>) -> Box<dyn Strategy>,
    ) -> Known {
        let load_files = |_: Version, request: LoadRequest<'_>| load(&request, Vec::new());
        Known { about, build, needs: |_| None, load_files, formats: OURS }
    }
}

impl Product for Known {
    fn about(&self) -> About {
        About::read(self.about)
    }

    fn build(&self, b: &BuildRequest<'_>) -> Box<dyn Strategy> {
        (self.build)(b)
    }

    fn needs(&self, b: &BuildRequest<'_>) -> Option<Requirement> {
        (self.needs)(b)
    }

    fn load_files(&self, version: Version, request: LoadRequest<'_>) -> LoadedFiles {
        (self.load_files)(version, request)
    }

    fn formats(&self) -> &'static [PersistFormat] {
        self.formats
    }
}

/// Context window that a product assumes for some models, whatever the provider takes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AssumedWindow {
    /// Beginning of the models' names; empty for all models.
    pub models: &'static str,
    /// Window without a setting of the user, tokens.
    pub default: u64,
    /// Largest window that the user can set, tokens; `None` = no limit.
    pub max: Option<u64>,
    /// Versions that assume it; empty for all.
    #[serde(default)]
    pub versions: Vec<&'static str>,
}

/// Method by which a product keeps earlier versions of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SnapshotKind {
    /// The previous content of files changed by edit tools, per user prompt.
    EditTools,
    /// The whole tree in a separate git directory, per step.
    ShadowGit,
}

/// Scope of a product's rewind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rewind {
    /// True if the conversation can return to a message.
    pub conversation: bool,
    /// Method by which a rewind restores files, with the conversation or alone; `None` = files are
    /// not restored.
    pub code: Option<SnapshotKind>,
    /// True if one side of a message can be summarised.
    pub summaries: bool,
}

impl Rewind {
    /// Returns true if the product offers this rewind mode, at least in part.
    pub fn offers(&self, mode: RewindMode) -> bool {
        match mode {
            RewindMode::Conversation => self.conversation,
            RewindMode::Code => self.code.is_some(),
            RewindMode::Both => self.conversation || self.code.is_some(),
            RewindMode::SummarizeFrom | RewindMode::SummarizeTo => self.summaries,
        }
    }
}

/// Memory files that a product reads before the first message.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryFiles {
    /// No files. The text is the reason, as the end of a sentence.
    None(&'static str),
    Read {
        /// True if the strategy adds files for some paths when a call touches them.
        follows: bool,
        table: MemoryTable,
    },
}

/// Color of a strategy in plots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlotColor {
    /// Index of a hue of the palette, which other strategies may share.
    Palette(u8),
    /// Grey, for baselines.
    Grey,
}

/// The user's command to compact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ManualCompaction {
    Absent,
    /// A command without instructions.
    Plain,
    /// A command with instructions, which are added to the summary request.
    WithInstructions,
}

impl ManualCompaction {
    pub fn exists(self) -> bool {
        self != ManualCompaction::Absent
    }

    /// Describes the command for reports.
    pub fn words(self) -> &'static str {
        match self {
            ManualCompaction::Absent => "no",
            ManualCompaction::Plain => "yes, without instructions",
            ManualCompaction::WithInstructions => "yes",
        }
    }
}

/// Facts about a strategy: the content of an `about.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct About {
    /// Name on the command line.
    pub name: &'static str,
    /// Description in one line.
    pub summary: &'static str,
    /// Sources of the strategy's behavior.
    pub sources: Vec<&'static str>,
    /// Answers to the comparison dimensions, a short phrase each, by the names of `DIMENSIONS`.
    pub matrix: BTreeMap<&'static str, &'static str>,
    /// Control, contender or hypothetical.
    pub standing: Standing,
    /// True if it is not one of the strategies that run by default.
    pub on_request: bool,
    /// The user's command to compact.
    pub manual: ManualCompaction,
    /// Scope of the strategy's rewind.
    pub rewind: Rewind,
    /// True if recorded cases of the program exist.
    pub recorded: bool,
    /// True if the program never sends reasoning again, because its own provider does not require
    /// it. With a model of another provider this breaks no rule.
    pub omits_reasoning: bool,
    pub color: PlotColor,
    /// Project files that it reads before the first message.
    pub files: MemoryFiles,
    /// File in which users keep settings of the product, if it has one.
    pub settings_file: Option<SettingsFile>,
    /// Documentation page, as a path from the root of the repository.
    pub page: &'static str,
    /// All versions. The first one is used for a name without `@`.
    pub versions: Vec<Version>,
    /// Context windows that differ from those of the models. The first match counts.
    pub windows: Vec<AssumedWindow>,
    /// Settings with defaults and sources.
    pub settings: Vec<Setting>,
    /// Texts that the strategy adds to requests.
    pub words: Map<String, Value>,
}

/// Facts about a strategy of another crate of which nothing else is known.
impl Default for About {
    fn default() -> About {
        About {
            name: "",
            summary: "",
            sources: vec!["the program itself"],
            matrix: BTreeMap::new(),
            standing: Standing::Contender,
            on_request: false,
            manual: ManualCompaction::WithInstructions,
            rewind: Rewind::default(),
            recorded: false,
            omits_reasoning: false,
            color: PlotColor::Palette(0),
            files: MemoryFiles::None("not a product"),
            settings_file: None,
            page: "docs/method.md",
            versions: vec![Version::new("1", as_released())],
            windows: Vec::new(),
            settings: Vec::new(),
            words: Map::new(),
        }
    }
}

impl About {
    /// Returns the titles and answers of the dimensions, in report order.
    pub fn answers(&self) -> [(&'static str, &'static str); 12] {
        DIMENSIONS
            .map(|(name, title)| (title, self.matrix.get(name).copied().unwrap_or("not known")))
    }

    /// Returns these texts in place of all texts of the product; those that are missing are empty.
    /// Recorded cases give fillers of the recorded length.
    pub fn texts(&self, given: &Map<String, Value>) -> Map<String, Value> {
        let blank = self.words.keys().map(|name| (name.clone(), Value::from("")));
        blank.chain(given.clone()).collect()
    }

    /// Reads the text of an `about.toml` that is part of the program; its strings are kept until
    /// the program ends. Panics with the fault if the text is invalid.
    pub fn read(toml: &str) -> About {
        let json: Value = toml::from_str(toml).unwrap_or_else(|e| panic!("about.toml: {e}"));
        About::deserialize(&*Box::leak(Box::new(json)))
            .unwrap_or_else(|e| panic!("about.toml: {e}"))
    }
}

/// A registered product with its facts.
pub struct Descriptor {
    about: About,
    pub product: &'static dyn Product,
}

impl Deref for Descriptor {
    type Target = About;

    fn deref(&self) -> &About {
        &self.about
    }
}

impl fmt::Debug for Descriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.about.fmt(f)
    }
}

impl Descriptor {
    pub fn new(product: &'static dyn Product) -> Descriptor {
        Descriptor { about: product.about(), product }
    }

    /// Returns the documented settings with which users change the product's compaction, each with
    /// its file and the name of ours.
    pub fn knobs(
        &'static self,
    ) -> impl Iterator<Item = (&'static SettingsFile, &'static Setting, &'static UserSetting)> {
        let file = self.settings_file.as_ref();
        file.into_iter()
            .flat_map(|f| self.settings.iter().map(move |s| (f, s)))
            .flat_map(|(f, s)| s.keys.iter().map(move |k| (f, s, k)))
            .filter(|(_, _, k)| !k.values.is_empty())
    }

    /// Returns the version that follows a release of the program; `None` = no version does.
    pub fn following(&self, release: &str) -> Option<Version> {
        let release = release_numbers(release)?;
        // The versions are listed from the newest on.
        self.versions.iter().rfind(|version| version.follows(&release)).copied()
    }

    /// Returns the version of a name (`None` = the default).
    pub(crate) fn version(&self, name: Option<&str>) -> Result<Version, SpecError> {
        let Some(name) = name else { return Ok(self.versions[0]) };
        let unknown = || {
            let known: Vec<&str> = self.versions.iter().map(|v| v.name).collect();
            let (product, known) = (self.name, known.join(", "));
            SpecError::Unknown(format!("`{product}` has no version `{name}`; known are {known}"))
        };
        self.versions.iter().find(|v| v.name == name).copied().ok_or_else(unknown)
    }
}
