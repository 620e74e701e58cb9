//! The cassette: every answer of a model server once, by the hash of its request.
//!
//! A file of JSON lines, a header and the entries sorted by hash, so that the order of the requests
//! does not matter. After each new answer it is rewritten to a temporary file that replaces it:
//! paid answers survive an interrupted run.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use ctxbench_core::files;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Version of the file.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Head {
    #[serde(rename = "type")]
    kind: String,
    version: u32,
}

/// One recorded answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// SHA-256 of the request, see `Question::hash`.
    pub request: String,
    /// The model that was asked for.
    pub model: String,
    /// Largest reply allowed, tokens.
    pub max_tokens: u64,
    /// Reply, with secrets redacted.
    pub reply: String,
    /// Stop reason, as in its wire.
    pub stop: String,
    /// Counters of the endpoint, unchanged.
    #[serde(default)]
    pub usage: Value,
}

/// Why a cassette cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CassetteError {
    /// The file cannot be opened.
    #[error("the cassette {path} cannot be read: {source}")]
    Io {
        /// Which file.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// Something in it is not as it should be.
    #[error("the cassette {path}, line {line}: {message}")]
    Line {
        /// Which file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Problem.
        message: String,
    },
    /// It has to be there and is not.
    #[error("the cassette {0} does not exist, and an offline run needs it")]
    Missing(PathBuf),
}

/// Answers by request.
#[derive(Debug)]
pub struct Cassette {
    path: PathBuf,
    entries: Mutex<BTreeMap<String, Recorded>>,
    /// A gate per request, so that two threads with the same question get the same answer and it is
    /// paid for once.
    gates: Mutex<HashMap<String, Arc<Mutex<()>>>>,
}

impl Cassette {
    /// Opens a cassette; a file that does not exist is an empty one, except offline.
    pub fn open(path: &Path, offline: bool) -> Result<Cassette, CassetteError> {
        let entries = match files::read_text(path) {
            Ok(text) => parse(&text).map_err(|(line, message)| CassetteError::Line {
                path: path.into(),
                line,
                message,
            })?,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound && offline => {
                return Err(CassetteError::Missing(path.into()));
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => BTreeMap::new(),
            Err(source) => return Err(CassetteError::Io { path: path.into(), source }),
        };
        Ok(Cassette { path: path.into(), entries: Mutex::new(entries), gates: Mutex::default() })
    }

    /// Returns the answer to a request: the recorded one, or the result of `ask`, which is
    /// recorded. A failure is not recorded.
    pub(super) fn answer(
        &self,
        hash: &str,
        ask: impl FnOnce() -> Result<Recorded, String>,
    ) -> Result<Recorded, String> {
        let lost = || "another thread failed while it used the cassette".to_string();
        let gate =
            self.gates.lock().map_err(|_| lost())?.entry(hash.to_string()).or_default().clone();
        let _passed = gate.lock().map_err(|_| lost())?;
        if let Some(e) = self.entries.lock().map_err(|_| lost())?.get(hash) {
            return Ok(e.clone());
        }
        let entry = ask()?;
        let mut entries = self.entries.lock().map_err(|_| lost())?;
        entries.insert(hash.to_string(), entry.clone());
        files::write(&self.path, text(&entries)).map_err(|e| format!("the cassette: {e}"))?;
        Ok(entry)
    }
}

fn text(entries: &BTreeMap<String, Recorded>) -> String {
    let mut out = line(&Head { kind: "cassette".into(), version: VERSION });
    entries.values().for_each(|e| out.push_str(&line(e)));
    out
}

fn line(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("strings and numbers always serialise") + "\n"
}

/// Entries, or the line that is wrong and why.
fn parse(text: &str) -> Result<BTreeMap<String, Recorded>, (usize, String)> {
    let mut lines =
        text.lines().enumerate().map(|(i, l)| (i + 1, l)).filter(|(_, l)| !l.trim().is_empty());
    let Some((at, first)) = lines.next() else { return Ok(BTreeMap::new()) };
    let expected = "expected {\"type\":\"cassette\",\"version\":1}";
    let head: Head = serde_json::from_str(first).map_err(|e| (at, format!("{e}; {expected}")))?;
    if head.kind != "cassette" || head.version != VERSION {
        return Err((
            at,
            format!("found type `{}`, version {}; {expected}", head.kind, head.version),
        ));
    }
    let mut out = BTreeMap::new();
    for (at, line) in lines {
        let e: Recorded = serde_json::from_str(line).map_err(|e| (at, e.to_string()))?;
        if out.insert(e.request.clone(), e).is_some() {
            return Err((at, "a request that was recorded before".to_string()));
        }
    }
    Ok(out)
}
