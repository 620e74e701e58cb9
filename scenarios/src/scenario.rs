//! Scenarios: sessions with documentation, written in TOML.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::path::PathBuf;

use ctxbench_session::{Entry, Header, Session};
use ctxbench_util::toml_file::{self, Lines};
use serde::Deserialize;
use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeTable, Deserializer};

use crate::bounds;
use crate::check::{Located, assemble};
use crate::error::{InputError, Loaded};
use crate::{autofacts, pitfalls};

pub use faults::{FaultOn, ProviderFault};

pub(crate) mod faults;
pub(crate) mod steps;

/// Session to replay, with its documentation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scenario {
    /// Short name, unique in a run and equal to the id in the session's header.
    pub id: String,
    /// One-line description.
    pub title: String,
    /// Purpose of the scenario.
    pub why: String,
    /// Mistake that it shows.
    pub pitfall: String,
    /// References to the sources by code ([`crate::pitfalls`]), or free text such as a ticket.
    pub cites: Vec<String>,
    /// Tags. `default`: included in a run without arguments. `mechanism`: tests a single mechanism
    /// and has too few facts for ranking strategies.
    pub tags: Vec<String>,
    /// Factor on the window and on every absolute token constant of every strategy. 1 = unchanged.
    pub scale: f64,
    pub session: Session,
    /// Whether the file has no facts, so that [`Scenario::find_facts`] adds them.
    pub facts_found: bool,
    /// Faults of the simulated provider.
    pub faults: Vec<ProviderFault>,
    /// Repairs and omissions of the reader, one sentence each.
    pub warnings: Vec<String>,
    /// Files on disk that the scenario was read from.
    pub files: Vec<PathBuf>,
    /// Hashes of the calls that another session of the command is billed for.
    pub billed_elsewhere: BTreeSet<u64>,
    /// Session of the command that this one is counted as in comparisons, because they share calls
    /// or are copies. `None` = it counts itself.
    pub counted_as: Option<String>,
}

impl Scenario {
    /// Wraps a plain session: scale 1, no tags. Facts are found if it has none.
    pub fn of_session(loaded: Loaded) -> Scenario {
        let Loaded { session, warnings, beside: files } = loaded;
        let (id, title) = (session.header.id.clone(), session.header.title.clone());
        let facts_found = session.facts.is_empty();
        Scenario { id, title, scale: 1.0, session, facts_found, warnings, files, ..Self::default() }
    }

    /// Finds facts that the session needed, if the file has none. This takes most of the loading
    /// time, so the caller decides when to do it.
    pub fn find_facts(&mut self) {
        if self.facts_found {
            autofacts::add(&mut self.session);
        }
    }

    /// Returns whether strategies may be ranked by this scenario, which the tag `mechanism` rules
    /// out. A test checks that built-in scenarios without the tag have at least twenty (fact, need)
    /// pairs of several kinds.
    pub fn is_evidence(&self) -> bool {
        !self.tags.iter().any(|t| t == "mechanism")
    }
}

/// Companion files of a scenario file.
pub(crate) trait Companions {
    /// Returns the text of a file.
    fn text(&self, name: &str) -> Result<String, String>;
    /// Returns the scenario that it extends. An error of its name has no file; see [`no_base`].
    fn base(&self, name: &str) -> Result<Scenario, InputError>;
}

/// Returns the error for a scenario that cannot be extended, still without its place.
pub(crate) fn no_base(what: impl Display, fix: impl Display) -> InputError {
    InputError::new(1, what, "a built-in scenario's id or the path of a scenario file", fix)
}

/// A scenario file, as far as it is not a session.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScenarioFile {
    /// Short name, unique in a run.
    id: String,
    /// A line for people.
    #[serde(default)]
    title: String,
    /// Purpose of the scenario.
    #[serde(default)]
    why: String,
    /// Mistake that it shows.
    #[serde(default)]
    pitfall: String,
    /// References to the sources: codes such as `token-budgeting pitfall 7` and `failure mode 6`,
    /// or your own text.
    #[serde(default)]
    cites: Vec<String>,
    /// `default` means: part of a run without arguments.
    #[serde(default)]
    tags: Vec<String>,
    /// The model the session is meant for.
    model: Option<String>,
    /// Context window in tokens, when it differs from the model's.
    context_window: Option<u64>,
    /// Largest reply in tokens, when it differs from the model's.
    max_output: Option<u64>,
    /// Factor on the window and on every absolute token constant of every strategy; 1 or the
    /// extended scenario's when absent.
    scale: Option<f64>,
    /// A built-in scenario's id or the path of a scenario file; its steps and facts come first.
    extends: Option<String>,
    /// Events, in order.
    #[serde(default)]
    step: Vec<Spanned<Map<String, Value>>>,
    /// Facts that the session establishes, for recall.
    #[serde(default)]
    fact: Vec<Spanned<Map<String, Value>>>,
    /// Requests that the provider does not answer as usual; those of an extended scenario come
    /// first.
    #[serde(default)]
    fault: Vec<Spanned<ProviderFault>>,
}

/// Reads a scenario. `file` is only used in messages. Steps and facts of an extended scenario come
/// first. Its limits apply if this scenario has none. A tool step may write its output as `text`, like
/// the other steps.
pub(crate) fn read(
    text: &str,
    file: &str,
    beside: &dyn Companions,
) -> Result<Scenario, InputError> {
    let toml = |e| InputError::from(toml_file::error(file, text, &e));
    let tree = DeTable::parse(text).map_err(toml)?;
    let top = ScenarioFile::deserialize(Deserializer::from(tree.clone())).map_err(toml)?;
    let reader = ScenarioReader { lines: Lines::new(text), tree: tree.into_inner(), file, beside };
    let base = match &top.extends {
        Some(name) => reader.base(name)?,
        None => Scenario { scale: 1.0, ..Scenario::default() },
    };
    reader.scenario(top, base).map_err(|e| e.at(file))
}

struct ScenarioReader<'a> {
    lines: Lines,
    tree: DeTable<'a>,
    file: &'a str,
    beside: &'a dyn Companions,
}

impl ScenarioReader<'_> {
    fn base(&self, name: &str) -> Result<Scenario, InputError> {
        self.beside.base(name).map_err(|e| match e.file.is_empty() {
            true => InputError { line: self.line_of("extends"), ..e }.at(self.file),
            false => e,
        })
    }

    fn scenario(&self, mut top: ScenarioFile, base: Scenario) -> Result<Scenario, InputError> {
        self.check_values(&mut top)?;
        let inherited = base.session.header;
        let header = Header {
            version: crate::jsonl::VERSION,
            id: top.id.clone(),
            title: top.title.clone(),
            model: top.model.or(inherited.model),
            context_window: top.context_window.or(inherited.context_window),
            max_output: top.max_output.or(inherited.max_output),
            ..inherited
        };
        let facts = base.session.facts.into_iter().map(Entry::Fact);
        let inherited = base.session.entries.into_iter().chain(facts);
        let mut items: Vec<Located> = inherited.map(|entry| Located { line: 0, entry }).collect();
        self.steps(top.step, top.fact, &mut items)?;
        let loaded = assemble(header, items, self.file, false)?;
        if !loaded.session.entries.iter().any(Entry::is_message) {
            let expected = "[[step]] tables, or extends = \"…\"";
            return Err(InputError::new(1, "no messages", expected, "write a user step"));
        }
        Ok(Scenario {
            id: top.id,
            title: top.title,
            why: top.why,
            pitfall: top.pitfall,
            cites: top.cites,
            tags: top.tags,
            scale: top.scale.unwrap_or(base.scale),
            session: loaded.session,
            // The first matching fault decides, so that a scenario can override the faults of its
            // base.
            faults: self.faults(top.fault)?.into_iter().chain(base.faults).collect(),
            warnings: loaded.warnings,
            ..Scenario::default()
        })
    }

    /// Checks the values that a type alone does not.
    fn check_values(&self, top: &mut ScenarioFile) -> Result<(), InputError> {
        let wrong = |key: &str, what: &str, expected: &str, fix: &str| {
            Err(InputError::new(self.line_of(key), what, expected, fix))
        };
        if top.id.trim().is_empty() {
            return wrong("id", "\"id\" is empty", "a short name", "give the scenario a name");
        }
        if let Some((what, fix)) = top.cites.iter().find_map(|c| pitfalls::wrong(c)) {
            let expected = "a code such as \"token-budgeting pitfall 7\" or \"failure mode 6\", or \
                            your own text";
            return wrong("cites", &what, expected, &fix);
        }
        if top.scale.is_some_and(|s| !bounds::SCALE.contains(&s)) {
            let (least, most) = (bounds::SCALE.start(), bounds::SCALE.end());
            let expected = format!("a number from {least} to {most}");
            return wrong("scale", "\"scale\" does not fit", &expected, "write 1.0 for no scaling");
        }
        let limits =
            [("context_window", &mut top.context_window), ("max_output", &mut top.max_output)];
        for (key, limit) in limits {
            let limit = bounds::given((key, limit, bounds::LIMIT));
            bounds::check(limit.into_iter().collect(), self.line_of(key))?;
        }
        Ok(())
    }

    fn line_of(&self, key: &str) -> usize {
        let key = self.tree.keys().find(|k| k.get_ref() == key);
        key.map_or(1, |k| self.lines.line_at(k.span().start))
    }
}

#[cfg(test)]
#[path = "scenario_tests.rs"]
mod tests;
