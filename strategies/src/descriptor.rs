//! What a strategy says of itself. Whatever the benchmark wants to know of a product stands here,
//! as a field without a default: a product that leaves one out does not compile.

use std::fmt;
use std::marker::PhantomData;

use crate::sweep::SweepError;
use ctxbench_core::model::{Capabilities, Model};
use ctxbench_core::session::RewindMode;
use ctxbench_core::settings::{Setting, SettingError, Settings, SettingsTable, Value};
pub use ctxbench_core::strategy::Standing;
use ctxbench_core::strategy::Strategy;
use ctxbench_kit::memory::{LoadRequest, LoadedFiles};
use thiserror::Error;

use crate::conform::Conformance;
use crate::persist::{Format, OURS};

/// Answers to the comparison dimensions, a short phrase each.
#[derive(Clone, Copy, Debug)]
pub struct Matrix {
    /// How many layers of compaction, and which.
    pub layers: &'static str,
    /// When a model is called for it.
    pub llm_calls: &'static str,
    /// What happens to user messages.
    pub user_messages: &'static str,
    /// What happens to tool results.
    pub tool_results: &'static str,
    /// What it does for, or to, the prompt cache.
    pub cache: &'static str,
    /// What follows a compaction.
    pub afterwards: &'static str,
    /// How it counts tokens.
    pub token_counting: &'static str,
    /// What it checks before sending.
    pub pre_send_check: &'static str,
    /// What it does when the provider refuses a prompt.
    pub overflow_response: &'static str,
    /// What happens to reasoning.
    pub thinking: &'static str,
    /// What it remembers across sessions.
    pub memory: &'static str,
    /// What can be undone.
    pub undo: &'static str,
}

impl Matrix {
    /// Of a strategy that answers nothing.
    pub const UNTOLD: Matrix = Matrix {
        layers: "not told",
        llm_calls: "not told",
        user_messages: "not told",
        tool_results: "not told",
        cache: "not told",
        afterwards: "not told",
        token_counting: "not told",
        pre_send_check: "not told",
        overflow_response: "not told",
        thinking: "not told",
        memory: "not told",
        undo: "not told",
    };

    /// Dimension names and answers, in report order.
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

/// A version that a strategy can follow: a release, what a program was meant to do, or what a
/// published description says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// Behind the `@`.
    pub name: &'static str,
    /// Version of the program that it follows; that of a description is its own name.
    pub program: &'static str,
    /// What it is, and how it differs from the releases.
    pub about: &'static str,
    pub reads: Reads,
}

/// Which settings mean anything to a version, by their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    All,
    Only(&'static [&'static str]),
    AllBut(&'static [&'static str]),
}

impl Version {
    /// A program as it was released.
    pub const fn released(name: &'static str) -> Version {
        Version { name, program: name, about: "as released", reads: Reads::All }
    }

    /// A program as a published description has it.
    pub const fn described(name: &'static str, about: &'static str, reads: Reads) -> Version {
        Version { name, program: name, about, reads }
    }

    /// The same, reading these settings.
    pub const fn reading(self, reads: Reads) -> Version {
        Version { reads, ..self }
    }

    /// Whether it is what has been published of the program, and no release.
    pub fn is_description(&self) -> bool {
        self.name.starts_with("described-")
    }

    /// Whether a setting means anything to it.
    pub fn knows(&self, setting: &str) -> bool {
        match self.reads {
            Reads::All => true,
            Reads::Only(names) => names.contains(&setting),
            Reads::AllBut(names) => !names.contains(&setting),
        }
    }
}

/// The versions of a product, each with the value by which its code knows it.
pub trait Versions: Copy + 'static {
    /// The plain name's first.
    const TABLE: &'static [(Version, Self)];
}

/// For what has one version only.
impl Versions for () {
    const TABLE: &'static [(Version, Self)] = &[(Version::released("1"), ())];
}

/// The prompt texts of a product, ours: a struct made by `words!`, whose
/// default they are. Recorded cases put fillers of the recorded length in their place.
pub trait Words: Default {
    /// Without a text anywhere.
    fn blank() -> Self;
}

/// For what says nothing.
impl Words for () {
    fn blank() -> Self {}
}

/// What a strategy is built from.
pub struct Build<P: Product> {
    pub version: P::Version,
    /// Settings, scale applied.
    pub settings: P::Settings,
    pub words: P::Words,
    /// Multiplier of token constants that are not settings.
    pub scale: f64,
}

/// The same as a user asked for it.
#[derive(Clone, Copy, Debug)]
pub struct Order<'a> {
    /// One of [`Factory::versions`].
    pub version: Version,
    /// Settings, scale applied.
    pub settings: &'a Settings,
    pub scale: f64,
}

/// A strategy that cannot be used as asked.
#[derive(Debug, Error, PartialEq)]
pub enum SpecError {
    /// No such strategy.
    #[error("there is no strategy `{name}`; {hint}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// Nearest names.
        hint: String,
    },
    /// No such version.
    #[error("`{name}` has no version `{version}`; known are {known}")]
    UnknownVersion {
        /// Strategy.
        name: String,
        /// What was asked for.
        version: String,
        /// All versions.
        known: String,
    },
    /// A setting that means nothing to the version.
    #[error("`{name}@{version}` does not read the setting `{setting}`; it belongs to {known}")]
    OtherVersion {
        /// Strategy.
        name: String,
        /// What was asked for.
        version: &'static str,
        /// What was given.
        setting: &'static str,
        /// Versions that read it.
        known: String,
    },
    /// A setting that does not fit.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// A list or range of values that does not work.
    #[error(transparent)]
    Sweep(#[from] SweepError),
    /// A program as a strategy that cannot be started as it is written.
    #[error("{0}")]
    Program(String),
}

/// Settings of ours by their names, each value as on the command line.
pub type Named = Vec<(&'static str, String)>;

/// The file in which people keep their settings of a product.
#[derive(Clone, Copy, Debug)]
pub struct SettingsFile {
    /// The folder in which the product looks for it: several products call theirs alike.
    pub folder: &'static str,
    /// How its name may end.
    pub names: &'static [&'static str],
    /// What its text says of our settings. The error says what is wrong with the text, and where.
    pub read: fn(&str) -> Result<Named, String>,
}

/// A setting that people can change in the product themselves, and that its makers document.
#[derive(Clone, Copy, Debug)]
pub struct Knob {
    /// Which of our settings it is.
    pub setting: &'static str,
    /// Values worth trying, as on the command line. Amounts are in the unit that the product's own
    /// line takes, never per cent of a window: one line holds for sessions of every model.
    pub values: &'static [&'static str],
    /// The page of the product's makers.
    pub documented: &'static str,
    /// Where the line goes: a file, or the shell.
    pub place: &'static str,
    /// The line itself, `{value}` standing for the value.
    pub template: &'static str,
    /// What its figures cannot show, as a sentence; empty = nothing.
    pub unseen: &'static str,
}

impl Knob {
    /// The line that gives the product this value.
    pub fn line(&self, value: &Value) -> String {
        self.template.replace("{value}", &value.to_string())
    }
}

/// What a strategy cannot do without.
#[derive(Clone, Copy, Debug)]
pub struct Need {
    /// Whether a provider can do it.
    pub can: fn(&Capabilities) -> bool,
    /// Why, as a sentence for the row that reads `n/a` with other models.
    pub why: &'static str,
}

/// What a strategy's folder provides beside its descriptor.
pub trait Product: 'static {
    /// `()` if there is only one.
    type Version: Versions;

    /// Made by [`settings!`](ctxbench_core::settings!); `()` if it has none.
    type Settings: SettingsTable;

    /// `()` if it has none.
    type Words: Words;

    /// What a version with these settings cannot do without.
    fn needs(version: Self::Version, settings: &Self::Settings) -> Option<Need>;

    /// Builds the strategy.
    fn build(b: Build<Self>) -> Box<dyn Strategy>
    where
        Self: Sized;
}

/// A [`Product`] with its type forgotten: table and code cannot be those of different products.
pub trait Maker: Sync {
    /// Versions that can be followed, the plain name's first.
    fn versions(&self) -> Vec<Version>;
    /// What a version with these settings cannot do without.
    fn needs(&self, version: Version, settings: &Settings) -> Option<Need>;
    /// Builds the strategy.
    fn build(&self, order: &Order<'_>) -> Box<dyn Strategy>;
    /// Whether each session is run twice, and a second run that goes otherwise is an error: for
    /// programs that are not ours.
    fn is_run_twice(&self) -> bool {
        false
    }
    /// Whether it is a program that runs as it is, and nothing that is modelled here.
    fn is_program(&self) -> bool {
        false
    }
}

/// Makes strategies of one kind.
#[derive(Clone, Copy)]
pub struct Factory {
    /// Settings with defaults and sources.
    pub settings: &'static [Setting],
    /// What it makes them of.
    pub maker: &'static dyn Maker,
}

struct Typed<P>(PhantomData<fn() -> P>);

impl<P: Product> Maker for Typed<P> {
    fn versions(&self) -> Vec<Version> {
        P::Version::TABLE.iter().map(|(v, _)| *v).collect()
    }

    fn needs(&self, version: Version, settings: &Settings) -> Option<Need> {
        P::needs(known(version), &P::Settings::read(settings))
    }

    fn build(&self, order: &Order<'_>) -> Box<dyn Strategy> {
        P::build(Build {
            version: known(order.version),
            settings: P::Settings::read(order.settings),
            words: P::Words::default(),
            scale: order.scale,
        })
    }
}

/// The value by which a product's code knows a version.
pub(crate) fn known<V: Versions>(version: Version) -> V {
    let found = V::TABLE.iter().find(|(v, _)| v.name == version.name);
    found.expect("a version comes from the factory's own table").1
}

impl Factory {
    /// The factory of a product.
    pub const fn of<P: Product>() -> Factory {
        Factory { settings: P::Settings::TABLE, maker: &Typed::<P>(PhantomData) }
    }

    /// Versions that can be followed, the plain name's first; `name@version` selects another.
    pub fn versions(&self) -> Vec<Version> {
        self.maker.versions()
    }

    /// A version, the plain name's without one, and settings from `k=v,k=v`; `name` stands in
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
        let strange = settings.given().map(|(s, _)| s).find(|s| !version.knows(s));
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

    /// Why a version with these settings cannot exist with a model; `None` = it can.
    pub fn unfit(
        &self,
        version: Version,
        settings: &Settings,
        model: &Model,
    ) -> Option<&'static str> {
        self.maker.needs(version, settings).filter(|n| !(n.can)(&model.capabilities)).map(|n| n.why)
    }

    /// Builds the strategy.
    pub fn build(&self, order: &Order<'_>) -> Box<dyn Strategy> {
        self.maker.build(order)
    }
}

impl fmt::Debug for Factory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Factory").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Where history survives outside the context, so that the product itself could bring back what the
/// context lost.
#[derive(Clone, Copy, Debug)]
pub enum Recovery {
    /// A full log of every message and result.
    Log,
    /// A text of what user and model said, without tool output: how what the user (`true`) or the
    /// model said comes back of it.
    ChatHistory(fn(bool, &str) -> String),
    /// Nowhere.
    Nothing,
    /// Nobody knows.
    Unknown,
}

/// How a product keeps files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeWay {
    /// The former content of what edit tools change, per user prompt.
    EditTools,
    /// The whole tree in a git directory of its own, per step.
    ShadowGit,
}

/// What a product's rewind brings back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rewind {
    /// The conversation goes back to a message.
    pub conversation: bool,
    /// Files go back with it or alone, and how they are kept.
    pub code: Option<CodeWay>,
    /// Summaries of one side of a message.
    pub summaries: bool,
}

impl Rewind {
    /// Nothing can be brought back.
    pub const NONE: Rewind = Rewind { conversation: false, code: None, summaries: false };

    /// Whether anything of a mode can be had.
    pub fn offers(&self, mode: RewindMode) -> bool {
        match mode {
            RewindMode::Conversation => self.conversation,
            RewindMode::Code => self.code.is_some(),
            RewindMode::Both => self.conversation || self.code.is_some(),
            RewindMode::SummarizeFrom | RewindMode::SummarizeTo => self.summaries,
        }
    }
}

/// Which memory files a product reads.
#[derive(Clone, Copy, Debug)]
pub enum MemoryFiles {
    /// None; why, as the end of a sentence.
    None(&'static str),
    Read {
        /// What a version reads.
        load: fn(Version, &LoadRequest<'_>) -> LoadedFiles,
        /// Whether the strategy brings in files for some paths with a call that touches them.
        follows: bool,
    },
}

/// How a strategy is drawn in plots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// In a hue of the palette, which others may share.
    Hue(u8),
    /// In grey: a yardstick.
    Grey { dashed: bool },
}

/// The user's command to compact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manual {
    /// There is none.
    Absent,
    /// It takes no instructions.
    Plain,
    /// It takes instructions, which go into the request for the summary.
    Instructed,
}

impl Manual {
    /// Whether there is one.
    pub fn exists(self) -> bool {
        self != Manual::Absent
    }

    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Manual::Absent => "no",
            Manual::Plain => "yes, without instructions",
            Manual::Instructed => "yes",
        }
    }
}

/// What a strategy says of itself.
#[derive(Clone, Copy, Debug)]
pub struct Descriptor {
    /// Name on the command line.
    pub name: &'static str,
    /// One line for people.
    pub summary: &'static str,
    /// Where its behaviour is taken from.
    pub sources: &'static [&'static str],
    /// Comparison answers.
    pub matrix: Matrix,
    /// Control, contender or hypothetical.
    pub standing: Standing,
    /// Its command to compact.
    pub manual: Manual,
    /// Where history survives outside the context.
    pub recovery: Recovery,
    /// What its rewind brings back.
    pub rewind: Rewind,
    /// How it keeps sessions on disk. Techniques and controls are no products; they are held
    /// against our own store.
    pub formats: &'static [Format],
    /// How recorded cases of its program are run.
    pub conform: Conformance,
    pub look: Look,
    /// What it reads of a project before the first message.
    pub files: MemoryFiles,
    /// Its settings file, where people have one.
    pub settings_file: Option<SettingsFile>,
    /// What people can turn in the product to change its compaction; empty for what is no product,
    /// or has no such setting.
    pub knobs: &'static [Knob],
    /// Its page, from the top of the repository.
    pub page: &'static str,
    /// Versions, settings, what it needs of a model, and how it is built.
    pub factory: Factory,
}

impl Descriptor {
    /// What a strategy of another crate says of itself that is no product: name, one line for
    /// people, and how it is built. Whatever else is known can be said with
    /// `Descriptor { page: "…", ..Descriptor::own::<P>(…) }`.
    pub const fn own<P: Product>(name: &'static str, summary: &'static str) -> Descriptor {
        Descriptor {
            name,
            summary,
            sources: &["the crate that this program was built with"],
            matrix: Matrix::UNTOLD,
            standing: Standing::Contender,
            manual: Manual::Instructed,
            recovery: Recovery::Unknown,
            rewind: Rewind::NONE,
            formats: OURS,
            conform: Conformance::NONE,
            look: Look::Hue(0),
            files: MemoryFiles::None("a strategy of one's own reads no files of a project"),
            settings_file: None,
            knobs: &[],
            page: "docs/own-strategy.md",
            factory: Factory::of::<P>(),
        }
    }
}
