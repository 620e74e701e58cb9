//! Descriptors of strategies: all facts that the benchmark needs about a product, as fields without
//! defaults. A product that leaves one out does not compile.

use std::fmt;
use std::marker::PhantomData;

pub use crate::own_settings::{Named, SettingsFile, UserSetting};
use crate::sweep::SweepError;
use ctxbench_core::host::RewindMode;
use ctxbench_core::model::{Capabilities, Model};
use ctxbench_core::settings::{Setting, SettingError, Settings, SettingsTable};
pub use ctxbench_core::strategy::Standing;
use ctxbench_core::strategy::Strategy;
use ctxbench_kit::memory::{LoadRequest, LoadedFiles};
use thiserror::Error;

use crate::conform::Conformance;
use crate::persist::{OURS, PersistFormat};

/// Answers to the comparison dimensions, a short phrase each.
#[derive(Clone, Copy, Debug)]
pub struct Matrix {
    /// Number and kind of compaction layers.
    pub layers: &'static str,
    /// Occasions on which the strategy calls a model.
    pub llm_calls: &'static str,
    /// Treatment of user messages.
    pub user_messages: &'static str,
    /// Treatment of tool results.
    pub tool_results: &'static str,
    /// Effect on the prompt cache.
    pub cache: &'static str,
    /// Steps after a compaction.
    pub afterwards: &'static str,
    /// Method of counting tokens.
    pub token_counting: &'static str,
    /// Checks before a request is sent.
    pub pre_send_check: &'static str,
    /// Reaction to a prompt that the provider refuses.
    pub overflow_response: &'static str,
    /// Treatment of reasoning.
    pub thinking: &'static str,
    /// Memory across sessions.
    pub memory: &'static str,
    /// Steps that can be undone.
    pub undo: &'static str,
}

impl Matrix {
    /// Matrix of a strategy about which nothing is known.
    pub const UNKNOWN: Matrix = Matrix {
        layers: "not known",
        llm_calls: "not known",
        user_messages: "not known",
        tool_results: "not known",
        cache: "not known",
        afterwards: "not known",
        token_counting: "not known",
        pre_send_check: "not known",
        overflow_response: "not known",
        thinking: "not known",
        memory: "not known",
        undo: "not known",
    };

    /// Returns the names and answers of the dimensions, in report order.
    pub fn rows(&self) -> [(&'static str, &'static str); 12] {
        [
            ("Compaction layers", self.layers),
            ("LLM calls", self.llm_calls),
            ("User messages", self.user_messages),
            ("Tool results", self.tool_results),
            ("Prompt cache", self.cache),
            ("Afterwards", self.afterwards),
            ("Token counting", self.token_counting),
            ("Check before sending", self.pre_send_check),
            ("Overflow response", self.overflow_response),
            ("Thinking", self.thinking),
            ("Memory", self.memory),
            ("Undo", self.undo),
        ]
    }
}

/// A version that a strategy can follow: a release, the documented intent, or a published
/// description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// Name after the `@` in a strategy's name.
    pub name: &'static str,
    /// Version of the program that it follows; for a description, its own name.
    pub program: &'static str,
    /// Kind of version and its differences from the releases.
    pub about: &'static str,
    pub reads: Reads,
}

/// Settings that have an effect in a version, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    All,
    Only(&'static [&'static str]),
    AllBut(&'static [&'static str]),
}

impl Version {
    /// The version of a strategy with a single one.
    pub const ONLY: Version = Version::released("1");

    /// Creates a version of a released program.
    pub const fn released(name: &'static str) -> Version {
        Version { name, program: name, about: "as released", reads: Reads::All }
    }

    /// Creates a version of a program according to a published description.
    pub const fn described(name: &'static str, about: &'static str, reads: Reads) -> Version {
        Version { name, program: name, about, reads }
    }

    /// Restricts the version to the settings of `reads`.
    pub const fn reading(self, reads: Reads) -> Version {
        Version { reads, ..self }
    }

    /// Returns true if this version follows a published description instead of a release.
    pub fn is_description(&self) -> bool {
        self.name.starts_with("described-")
    }

    /// Returns true if the version reads this setting.
    pub fn knows(&self, setting: &str) -> bool {
        match self.reads {
            Reads::All => true,
            Reads::Only(names) => names.contains(&setting),
            Reads::AllBut(names) => !names.contains(&setting),
        }
    }
}

/// Prompt texts of a product, declared with `words!` with our texts as defaults. Recorded cases
/// replace them with fillers of the recorded length.
pub trait PromptTexts: Default {
    /// Returns words with empty texts.
    fn blank() -> Self;
}

/// Texts of a product without texts.
impl PromptTexts for () {
    fn blank() -> Self {}
}

/// Input from which [`Product::build`] makes a strategy.
pub struct Build<P: Product> {
    pub version: P::Version,
    /// Settings with the scale applied.
    pub settings: P::Settings,
    pub words: P::Words,
    /// Multiplier of token constants that are not settings.
    pub scale: f64,
}

/// Input from which a [`Factory`] builds a strategy.
#[derive(Clone, Copy, Debug)]
pub struct BuildRequest<'a> {
    /// An element of [`Factory::versions`].
    pub version: Version,
    /// Settings with the scale applied.
    pub settings: &'a Settings,
    pub scale: f64,
}

/// A strategy that cannot be used as asked.
#[derive(Debug, Error, PartialEq)]
pub enum SpecError {
    #[error("there is no strategy `{name}`; {hint}")]
    Unknown {
        name: String,
        /// Hint with the nearest names.
        hint: String,
    },
    #[error("`{name}` has no version `{version}`; known are {known}")]
    UnknownVersion { name: String, version: String, known: String },
    /// A setting that has no effect in the version.
    #[error("`{name}@{version}` does not read the setting `{setting}`; it belongs to {known}")]
    OtherVersion {
        name: String,
        version: &'static str,
        setting: &'static str,
        /// Versions that read the setting.
        known: String,
    },
    /// An invalid setting.
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

/// Code of a strategy, next to its descriptor.
pub trait Product: 'static {
    /// Value that the code uses for a version; `()` if there is only one.
    type Version: Copy;

    /// Made by [`settings!`](ctxbench_core::settings!); `()` if it has none.
    type Settings: SettingsTable;

    /// `()` if it has none.
    type Words: PromptTexts;

    /// All versions. The first one is used for a name without `@`.
    const VERSIONS: &'static [(Version, Self::Version)];

    /// Returns the capability that a version with these settings requires.
    fn needs(_version: Self::Version, _settings: &Self::Settings) -> Option<Requirement> {
        None
    }

    fn build(b: Build<Self>) -> Box<dyn Strategy>
    where
        Self: Sized;

    /// Returns the value of one of [`Product::VERSIONS`].
    fn version(version: Version) -> Self::Version {
        let found = Self::VERSIONS.iter().find(|(v, _)| v.name == version.name);
        found.expect("a version comes from the product's own table").1
    }
}

/// A [`Product`] as a trait object, which ensures that table and code belong to the same product.
pub trait DynProduct: Sync {
    /// Returns the versions that can be selected, the default first.
    fn versions(&self) -> Vec<Version>;
    /// Returns the capability that a version with these settings requires.
    fn needs(&self, _version: Version, _settings: &Settings) -> Option<Requirement> {
        None
    }
    fn build(&self, order: &BuildRequest<'_>) -> Box<dyn Strategy>;
    /// Returns true if each session runs twice, and a differing second run is an error. Used for
    /// external programs.
    fn is_run_twice(&self) -> bool {
        false
    }
    /// Returns true if the strategy runs a real program instead of a model of it.
    fn is_program(&self) -> bool {
        false
    }
}

/// Builder of a product's strategies.
#[derive(Clone, Copy)]
pub struct Factory {
    /// Settings with defaults and sources.
    pub settings: &'static [Setting],
    /// The product that it builds.
    pub product: &'static dyn DynProduct,
}

struct Erased<P>(PhantomData<fn() -> P>);

impl<P: Product> DynProduct for Erased<P> {
    fn versions(&self) -> Vec<Version> {
        P::VERSIONS.iter().map(|(v, _)| *v).collect()
    }

    fn needs(&self, version: Version, settings: &Settings) -> Option<Requirement> {
        P::needs(P::version(version), &P::Settings::read(settings))
    }

    fn build(&self, order: &BuildRequest<'_>) -> Box<dyn Strategy> {
        P::build(Build {
            version: P::version(order.version),
            settings: P::Settings::read(order.settings),
            words: P::Words::default(),
            scale: order.scale,
        })
    }
}

impl Factory {
    /// Returns the factory of a product.
    pub const fn of<P: Product>() -> Factory {
        Factory { settings: P::Settings::TABLE, product: &Erased::<P>(PhantomData) }
    }

    /// Returns the versions that `name@version` can select, the default first.
    pub fn versions(&self) -> Vec<Version> {
        self.product.versions()
    }

    /// Resolves a version (`None` = the default) and settings from `k=v,k=v`. `name` appears in
    /// errors.
    pub fn select(
        &self,
        name: &str,
        version: Option<&str>,
        settings: &str,
    ) -> Result<(Version, Settings), SpecError> {
        let versions = self.versions();
        let named = |known: &dyn Fn(&Version) -> bool| {
            let names: Vec<&str> = versions.iter().filter(|v| known(v)).map(|v| v.name).collect();
            names.join(", ")
        };
        let version = match version {
            None => versions[0],
            Some(v) => {
                *versions.iter().find(|k| k.name == v).ok_or_else(|| SpecError::UnknownVersion {
                    name: name.into(),
                    version: v.into(),
                    known: named(&|_| true),
                })?
            }
        };
        let settings = Settings::parse(name, self.settings, settings)?;
        let strange = settings.explicit().map(|(s, _)| s).find(|s| !version.knows(s));
        match strange {
            None => Ok((version, settings)),
            Some(setting) => Err(SpecError::OtherVersion {
                name: name.into(),
                version: version.name,
                setting,
                known: named(&|v| v.knows(setting)),
            }),
        }
    }

    /// Returns why a version with these settings cannot run with a model; `None` = it can.
    pub fn unfit(
        &self,
        version: Version,
        settings: &Settings,
        model: &Model,
    ) -> Option<&'static str> {
        self.product
            .needs(version, settings)
            .filter(|n| !(n.is_met)(&model.capabilities))
            .map(|n| n.reason)
    }

    pub fn build(&self, order: &BuildRequest<'_>) -> Box<dyn Strategy> {
        self.product.build(order)
    }
}

impl fmt::Debug for Factory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Factory").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Method by which a product keeps earlier versions of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotKind {
    /// The previous content of files changed by edit tools, per user prompt.
    EditTools,
    /// The whole tree in a separate git directory, per step.
    ShadowGit,
}

/// Scope of a product's rewind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// No rewind at all.
    pub const UNSUPPORTED: Rewind = Rewind { conversation: false, code: None, summaries: false };

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

/// Memory files that a product reads.
#[derive(Clone, Copy, Debug)]
pub enum MemoryFiles {
    /// No files. The text is the reason, as the end of a sentence.
    None(&'static str),
    Read {
        /// Loads the files that a version reads.
        load: fn(Version, &LoadRequest<'_>) -> LoadedFiles,
        /// True if the strategy adds files for some paths when a call touches them.
        follows: bool,
    },
}

/// Color of a strategy in plots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlotColor {
    /// Index of a hue of the palette, which other strategies may share.
    Palette(u8),
    /// Grey, for baselines.
    Grey { dashed: bool },
}

/// The user's command to compact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManualCompaction {
    Absent,
    /// A command without instructions.
    Plain,
    /// A command with instructions, which are added to the summary request.
    WithInstructions,
}

impl ManualCompaction {
    /// Returns true if the command exists.
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

/// Static facts about a strategy.
#[derive(Clone, Copy, Debug)]
pub struct Descriptor {
    /// Name on the command line.
    pub name: &'static str,
    /// Description in one line.
    pub summary: &'static str,
    /// Sources of the strategy's behavior.
    pub sources: &'static [&'static str],
    pub matrix: Matrix,
    /// Control, contender or hypothetical.
    pub standing: Standing,
    /// The user's command to compact.
    pub manual: ManualCompaction,
    /// Scope of the strategy's rewind.
    pub rewind: Rewind,
    /// Formats in which it stores sessions. Techniques and controls have none and are compared with
    /// our own store.
    pub formats: &'static [PersistFormat],
    /// Settings and functions with which recorded cases of the program are replayed.
    pub conform: Conformance,
    pub color: PlotColor,
    /// Project files that it reads before the first message.
    pub files: MemoryFiles,
    /// File in which users keep settings of the product, if it has one.
    pub settings_file: Option<SettingsFile>,
    /// Documentation page, as a path from the root of the repository.
    pub page: &'static str,
    /// Versions, settings, required capabilities and construction.
    pub factory: Factory,
}

impl Descriptor {
    /// Returns the documented settings with which users change the product's compaction, with their
    /// file.
    pub fn knobs(
        &'static self,
    ) -> impl Iterator<Item = (&'static SettingsFile, &'static UserSetting)> {
        let file = self.settings_file.as_ref();
        file.into_iter()
            .flat_map(|f| f.settings.iter().map(move |s| (f, s)))
            .filter(|(_, s)| !s.values.is_empty())
    }

    /// Describes a strategy of another crate that is not a product. Add further facts with
    /// `Descriptor { page: "…", ..Descriptor::own::<P>(…) }`.
    pub const fn own<P: Product>(name: &'static str, summary: &'static str) -> Descriptor {
        Descriptor {
            sources: &["the crate that this program was built with"],
            files: MemoryFiles::None("a strategy of one's own reads no files of a project"),
            page: "docs/own-strategy.md",
            ..Descriptor::of_factory(name, summary, Factory::of::<P>())
        }
    }

    /// Describes a program or another strategy that is not a product. Replace `sources`, `files`
    /// and `page`.
    pub const fn of_factory(
        name: &'static str,
        summary: &'static str,
        factory: Factory,
    ) -> Descriptor {
        Descriptor {
            name,
            summary,
            sources: &["the program itself"],
            matrix: Matrix::UNKNOWN,
            standing: Standing::Contender,
            manual: ManualCompaction::WithInstructions,
            rewind: Rewind::UNSUPPORTED,
            formats: OURS,
            conform: Conformance::Unrecorded,
            color: PlotColor::Palette(0),
            files: MemoryFiles::None("not a product"),
            settings_file: None,
            page: "docs/method.md",
            factory,
        }
    }
}
