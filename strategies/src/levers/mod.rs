//! What changes the bill of a session beside its compaction, whatever the strategy: how much the
//! model may think, whether tool definitions stand in every prompt, which model subagents use, and
//! whether a team works on it (docs/sources/token-budgeting.md §5.8, §5.9, §7.14).
//!
//! A lever changes the session before it is replayed. Replies stay as they were recorded, so what
//! a model would have said with less thinking, or a smaller one at all, is not known: the figures
//! are of the same work.

mod team;
mod thinking;
mod tools;

use std::fmt;

use ctxbench_core::model::{self, Model};
use ctxbench_core::nearest;
use ctxbench_core::session::{Entry, Session};
use thiserror::Error;

pub use team::Team;

/// The levers pulled in a run; none by default.
#[derive(Clone, Debug, Default)]
pub struct Levers {
    /// Tokens of thinking that a reply may hold (o200k, before a scenario's scale).
    pub thinking: Option<u64>,
    /// Tools of MCP servers stand in no prompt until they were looked up.
    pub deferred_tools: bool,
    /// Model of every subagent and team mate.
    pub subagents: Option<&'static Model>,
    /// A team works on the session.
    pub team: Option<Team>,
}

/// Names on the command line.
const NAMES: [&str; 4] = ["thinking", "tools", "subagents", "team"];

/// A lever that cannot be pulled.
#[derive(Debug, Error, PartialEq)]
pub enum LeverError {
    /// No such lever.
    #[error(
        "there is no lever `{0}`{1}; write thinking=TOKENS, tools=deferred, subagents=MODEL or \
         team=MEMBERSxSHARE%, joined by +"
    )]
    Unknown(String, String),
    /// A model that is not known.
    #[error("lever `subagents`: {0}")]
    Model(String),
    /// A value that does not fit.
    #[error("lever `{name}` takes {expected}, not `{given}`")]
    BadValue {
        /// Lever.
        name: &'static str,
        /// What was given.
        given: String,
        /// What was expected.
        expected: String,
    },
    /// The same twice.
    #[error("lever `{0}` is given twice")]
    Twice(String),
}

impl Levers {
    /// Reads `name=value`, several joined by `+`.
    pub fn parse(text: &str) -> Result<Levers, LeverError> {
        let mut out = Levers::default();
        for one in text.split('+') {
            let (name, value) = one.split_once('=').unwrap_or((one, ""));
            let bad = |name, expected: String| LeverError::BadValue {
                name,
                given: value.to_string(),
                expected,
            };
            let twice = match name {
                "thinking" => {
                    let n = number(value).ok_or_else(|| {
                        bad("thinking", "a number of tokens such as 8000 or 8k".into())
                    })?;
                    out.thinking.replace(n).is_some()
                }
                "tools" if value == "deferred" => std::mem::replace(&mut out.deferred_tools, true),
                "tools" => return Err(bad("tools", "deferred".into())),
                "subagents" => {
                    let model = model::find(value).map_err(|e| LeverError::Model(e.to_string()))?;
                    out.subagents.replace(model).is_some()
                }
                "team" => {
                    let team = Team::parse(value).ok_or_else(|| bad("team", Team::SHAPE.into()))?;
                    out.team.replace(team).is_some()
                }
                _ => {
                    let near = nearest::hint_or(name, &NAMES, "");
                    let near = if near.is_empty() { near } else { format!(", {near}") };
                    return Err(LeverError::Unknown(name.to_string(), near));
                }
            };
            if twice {
                return Err(LeverError::Twice(name.to_string()));
            }
        }
        Ok(out)
    }

    /// Parts what names a strategy from the levers behind it.
    pub(crate) fn split(text: &str) -> (&str, Option<&str>) {
        let begins = NAMES.iter().filter_map(|n| text.find(&format!("+{n}="))).min();
        begins.map_or((text, None), |at| (&text[..at], Some(&text[at + 1..])))
    }

    /// Whether none is pulled.
    pub fn is_empty(&self) -> bool {
        self.each().is_empty()
    }

    /// The levers that do nothing on a session, as they are written; `scale` = that of its
    /// scenario.
    pub fn idle(&self, session: &Session, scale: f64) -> Vec<String> {
        let agents = session.entries.iter().any(|e| e.agent().is_some()) || self.team.is_some();
        let changes = |one: &Levers| match one.subagents {
            Some(_) => agents,
            None => one.applied(session, scale) != *session,
        };
        self.each().into_iter().filter(|one| !changes(one)).map(|one| one.to_string()).collect()
    }

    /// The session as it would be with these levers; `scale` = that of its scenario.
    pub fn applied(&self, session: &Session, scale: f64) -> Session {
        let mut out = session.clone();
        if let Some(team) = self.team {
            out.entries = team.joined(out.entries);
        }
        if let Some(most) = self.thinking {
            thinking::cut(&mut out.entries, ctxbench_core::settings::scale_tokens(most, scale));
        }
        if self.deferred_tools {
            out.entries = tools::deferred(out.entries);
        }
        out
    }

    /// Each by itself.
    fn each(&self) -> Vec<Levers> {
        let none = Levers::default;
        let mut out = Vec::new();
        out.extend(self.thinking.map(|n| Levers { thinking: Some(n), ..none() }));
        out.extend(self.deferred_tools.then(|| Levers { deferred_tools: true, ..none() }));
        out.extend(self.subagents.map(|m| Levers { subagents: Some(m), ..none() }));
        out.extend(self.team.map(|t| Levers { team: Some(t), ..none() }));
        out
    }
}

impl fmt::Display for Levers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut all = Vec::new();
        all.extend(self.thinking.map(|n| format!("thinking={n}")));
        all.extend(self.deferred_tools.then(|| "tools=deferred".to_string()));
        all.extend(self.subagents.map(|m| format!("subagents={}", m.name)));
        all.extend(self.team.map(|t| format!("team={t}")));
        f.write_str(&all.join("+"))
    }
}

/// A number of tokens: 8000, 8_000 or 8k.
fn number(text: &str) -> Option<u64> {
    let plain: String = text.chars().filter(|c| *c != '_').collect();
    let (digits, factor) = plain.strip_suffix(['k', 'K']).map_or((&*plain, 1), |d| (d, 1_000));
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

/// An id that no message or call of the session has.
fn free_id(entries: &[Entry], wanted: &str) -> String {
    let taken = |id: &str| {
        entries.iter().any(|e| {
            e.key() == Some(id)
                || e.agent() == Some(id)
                || matches!(e, Entry::Assistant(a) if a.all_calls().iter().any(|c| &*c.id == id))
        })
    };
    let numbered = (2..).map(|n| format!("{wanted}-{n}"));
    let mut all = std::iter::once(wanted.to_string()).chain(numbered);
    all.find(|id| !taken(id)).unwrap_or_default()
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
