//! Scenarios: sessions with documentation, written in TOML.

use std::path::PathBuf;

use ctxbench_core::nearest;
use ctxbench_core::session::{Entry, Header, Session};
use ctxbench_core::toml_file::Lines;
use toml::de::DeTable;

use crate::bounds::{self, BoundedNumber};
use crate::check::{Located, assemble};
use crate::error::{InputError, LineFault, Loaded};
use crate::toml_tree;
use crate::{autofacts, builtin, pitfalls};

pub use expect::{Expect, Expected, ExpectedCell, ExpectedRow};
pub use faults::{FaultOn, ProviderFault};

pub(crate) mod expect;
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
    pub expect: Expect,
    pub session: Session,
    /// Whether [`Scenario::find_facts`] added the facts. They are then not part of the file.
    pub facts_found: bool,
    /// Faults of the simulated provider.
    pub faults: Vec<ProviderFault>,
    /// Repairs and omissions of the reader, one sentence each.
    pub warnings: Vec<String>,
    /// Files on disk that the scenario was read from.
    pub files: Vec<PathBuf>,
}

impl Scenario {
    /// Wraps a plain session: scale 1, no tags, no expectations.
    pub fn of_session(loaded: Loaded) -> Scenario {
        let Loaded { session, warnings } = loaded;
        let (id, title) = (session.header.id.clone(), session.header.title.clone());
        Scenario { id, title, scale: 1.0, session, warnings, ..Scenario::default() }
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
        !self.is_tagged("mechanism")
    }

    pub(crate) fn is_tagged(&self, tag: &str) -> bool {
        self.tags.iter().any(|t| t == tag)
    }
}

/// Companion files of a scenario file.
pub(crate) trait Companions {
    /// Returns the text of a file.
    fn text(&self, name: &str) -> Result<String, String>;
    /// Returns the scenario that it extends.
    fn base(&self, name: &str) -> Result<Scenario, NoBase>;
}

/// Reason why a scenario cannot be extended.
pub(crate) enum NoBase {
    /// The name is invalid: problem and advice.
    Name(String, String),
    /// The file contains this error.
    Broken(InputError),
}

pub(crate) const KEYS: &[&str] = &[
    "id",
    "title",
    "why",
    "pitfall",
    "cites",
    "tags",
    "model",
    "context_window",
    "max_output",
    "scale",
    "extends",
    "step",
    "fact",
    "fault",
    "expect",
];

/// Reads a scenario. `file` is only used in messages. Steps and facts of an extended scenario come
/// first. Its limits apply if this scenario has none, and its `[expect]` is not inherited. A tool
/// step may write its output as `text`, like the other steps.
pub(crate) fn read(
    text: &str,
    file: &str,
    beside: &dyn Companions,
) -> Result<Scenario, InputError> {
    let reader = ScenarioReader { lines: Lines::new(text), file, beside };
    let at = |fault: LineFault| fault.at(file);
    let tree = toml_tree::parse(text, &reader.lines).map_err(at)?;
    reader.known_keys(&tree, KEYS, "a scenario").map_err(at)?;
    let base = match reader.string(&tree, "extends").map_err(at)? {
        Some(name) => reader.base(&name, reader.line_of(&tree, "extends"))?,
        None => Scenario { scale: 1.0, ..Scenario::default() },
    };
    reader.scenario(&tree, base).map_err(at)
}

struct ScenarioReader<'a> {
    lines: Lines,
    file: &'a str,
    beside: &'a dyn Companions,
}

impl ScenarioReader<'_> {
    fn base(&self, name: &str, line: usize) -> Result<Scenario, InputError> {
        let built_in = builtin::base(name).map(|base| {
            base.map_err(|e| NoBase::Name(e.to_string(), "extend another scenario".to_string()))
        });
        built_in.unwrap_or_else(|| self.beside.base(name)).map_err(|why| match why {
            NoBase::Broken(e) => e,
            NoBase::Name(what, fix) => {
                let expected = "a built-in scenario's id or the path of a scenario file";
                LineFault::new(line, what, expected, fix).at(self.file)
            }
        })
    }

    fn scenario(&self, tree: &DeTable<'_>, base: Scenario) -> Result<Scenario, LineFault> {
        let Some(id) = self.string(tree, "id")?.filter(|s| !s.trim().is_empty()) else {
            return Err(LineFault::new(
                1,
                "missing field \"id\"",
                "id = \"a-short-name\"",
                "give the scenario a name",
            ));
        };
        let title = self.string(tree, "title")?.unwrap_or_default();
        let inherited = base.session.header;
        let header = Header {
            version: crate::jsonl::VERSION,
            id: id.clone(),
            title: title.clone(),
            model: self.string(tree, "model")?.or(inherited.model),
            context_window: self.count(tree, "context_window")?.or(inherited.context_window),
            max_output: self.count(tree, "max_output")?.or(inherited.max_output),
            prefix_tokens: inherited.prefix_tokens,
            started: inherited.started,
            source: inherited.source,
            extra: inherited.extra,
        };
        let mut items: Vec<Located> =
            base.session.entries.into_iter().map(|entry| Located { line: 0, entry }).collect();
        items.extend(
            base.session.facts.into_iter().map(|f| Located { line: 0, entry: Entry::Fact(f) }),
        );
        self.steps(tree, &mut items)?;
        let loaded = assemble(header, items, self.file, false)?;
        if !loaded.session.entries.iter().any(Entry::is_message) {
            return Err(LineFault::new(
                1,
                "no messages",
                "[[step]] tables, or extends = \"…\"",
                "write at least one user step",
            ));
        }
        Ok(Scenario {
            id,
            title,
            why: self.string(tree, "why")?.unwrap_or_default(),
            pitfall: self.string(tree, "pitfall")?.unwrap_or_default(),
            cites: self.cites(tree)?,
            tags: self.strings(tree, "tags")?,
            scale: self.scale(tree)?.unwrap_or(base.scale),
            expect: self.expect(tree)?,
            session: loaded.session,
            facts_found: false,
            // The first matching fault decides, so that a scenario can override the faults of its
            // base.
            faults: self.faults(tree)?.into_iter().chain(base.faults).collect(),
            warnings: loaded.warnings,
            files: Vec::new(),
        })
    }

    fn strings(&self, tree: &DeTable<'_>, key: &str) -> Result<Vec<String>, LineFault> {
        let Some(value) = tree.get(key) else { return Ok(Vec::new()) };
        let line = self.lines.line_at(value.span().start);
        serde_json::from_value(toml_tree::json(value.get_ref(), line)?).map_err(|e| {
            LineFault::new(
                line,
                format!("{key:?} does not fit: {e}"),
                "a list of strings",
                format!("write {key} = [\"…\"]"),
            )
        })
    }

    fn cites(&self, tree: &DeTable<'_>) -> Result<Vec<String>, LineFault> {
        let cites = self.strings(tree, "cites")?;
        match cites.iter().find_map(|c| pitfalls::wrong(c)) {
            Some((what, fix)) => {
                let expected = "a code such as \"token-budgeting pitfall 7\" or \"failure mode \
                    6\", or your own text";
                Err(LineFault::new(self.line_of(tree, "cites"), what, expected, fix))
            }
            None => Ok(cites),
        }
    }

    fn scale(&self, tree: &DeTable<'_>) -> Result<Option<f64>, LineFault> {
        let Some(value) = tree.get("scale") else { return Ok(None) };
        let line = self.lines.line_at(value.span().start);
        match toml_tree::json(value.get_ref(), line)?.as_f64().filter(|s| bounds::SCALE.contains(s))
        {
            Some(scale) => Ok(Some(scale)),
            None => {
                let expected =
                    format!("a number from {} to {}", bounds::SCALE.start(), bounds::SCALE.end());
                Err(LineFault::new(
                    line,
                    "\"scale\" does not fit",
                    expected,
                    "write 1.0 for no scaling",
                ))
            }
        }
    }

    fn string(&self, tree: &DeTable<'_>, key: &str) -> Result<Option<String>, LineFault> {
        match tree.get(key) {
            None => Ok(None),
            Some(v) => match v.get_ref().as_str() {
                Some(s) => Ok(Some(s.to_string())),
                None => Err(LineFault::new(
                    self.line_of(tree, key),
                    format!("{key:?} is not a string"),
                    "a string",
                    "put it in quotes",
                )),
            },
        }
    }

    fn count(&self, tree: &DeTable<'_>, key: &str) -> Result<Option<u64>, LineFault> {
        let Some(value) = tree.get(key) else { return Ok(None) };
        let line = self.lines.line_at(value.span().start);
        match toml_tree::json(value.get_ref(), line)?.as_u64() {
            Some(mut n) => {
                bounds::check(vec![BoundedNumber::limit(key, &mut n)], line).map(|()| Some(n))
            }
            None => Err(LineFault::new(
                line,
                format!("{key:?} does not fit"),
                "a number of tokens",
                "write a whole number",
            )),
        }
    }

    fn known_keys(
        &self,
        table: &DeTable<'_>,
        known: &[&str],
        whose: &str,
    ) -> Result<(), LineFault> {
        for key in table.keys() {
            if !known.contains(&key.get_ref().as_ref()) {
                let line = self.lines.line_at(key.span().start);
                let (what, expected) =
                    (format!("unknown key {:?}", key.get_ref()), format!("a key of {whose}"));
                return Err(LineFault::new(
                    line,
                    what,
                    expected,
                    nearest::hint(key.get_ref(), known),
                ));
            }
        }
        Ok(())
    }

    fn line_of(&self, table: &DeTable<'_>, key: &str) -> usize {
        table.keys().find(|k| k.get_ref() == key).map_or(1, |k| self.lines.line_at(k.span().start))
    }
}

#[cfg(test)]
#[path = "scenario_tests.rs"]
mod tests;
