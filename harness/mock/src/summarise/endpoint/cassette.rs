//! Cassette: the answers of a model server by the hash of the request, each once.
//!
//! The file contains JSON lines: a header and the entries sorted by hash, so that the order of the
//! requests does not matter. After each new answer it is rewritten to a temporary file that
//! replaces it. Paid answers therefore survive an interrupted run.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use ctxbench_util::files;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::summarise::SetUpError;

const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct CassetteHeader {
    #[serde(rename = "type")]
    kind: String,
    version: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedAnswer {
    /// SHA-256 of the request, see `Question::hash`.
    pub request: String,
    pub model: String,
    pub max_tokens: u64,
    /// Reply, with secrets redacted.
    pub reply: String,
    /// Stop reason as sent by the server.
    pub stop: String,
    /// Counters of the endpoint, unchanged.
    #[serde(default)]
    pub usage: Value,
}

/// Recorded answers by request.
#[derive(Debug)]
pub struct Cassette {
    path: PathBuf,
    /// Whether all answers must be in the file.
    pub(super) offline: bool,
    entries: Mutex<BTreeMap<String, RecordedAnswer>>,
    /// A gate per request. If two threads send the same request, both get the same answer, which is
    /// paid for once.
    gates: Mutex<HashMap<String, Arc<Mutex<()>>>>,
}

impl Cassette {
    /// Opens a cassette. A missing file is an empty cassette, except offline.
    pub fn open(path: &Path, offline: bool) -> Result<Cassette, SetUpError> {
        let wrong = |what: String| SetUpError(format!("the cassette {}{what}", path.display()));
        let entries = match files::read_text(path) {
            Ok(text) => {
                parse(&text).map_err(|(line, why)| wrong(format!(", line {line}: {why}")))?
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound && offline => {
                return Err(wrong(" does not exist, and an offline run needs it".into()));
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => BTreeMap::new(),
            Err(e) => return Err(wrong(format!(" cannot be read: {e}"))),
        };
        let (path, entries) = (path.into(), Mutex::new(entries));
        Ok(Cassette { path, offline, entries, gates: Mutex::default() })
    }

    /// Returns whether the answer to a request is recorded.
    pub(super) fn has(&self, hash: &str) -> bool {
        self.entries.lock().is_ok_and(|entries| entries.contains_key(hash))
    }

    /// Returns the answer to a request: the recorded one, or the result of `ask`, which is then
    /// recorded. Failures are not recorded.
    pub(super) fn answer(
        &self,
        hash: &str,
        ask: impl FnOnce() -> Result<RecordedAnswer, String>,
    ) -> Result<RecordedAnswer, String> {
        let lost = || "another thread failed while it used the cassette".to_string();
        let gate =
            self.gates.lock().map_err(|_| lost())?.entry(hash.to_string()).or_default().clone();
        let _passed = gate.lock().map_err(|_| lost())?;
        if let Some(e) = self.entries.lock().map_err(|_| lost())?.get(hash) {
            return Ok(e.clone());
        }
        if self.offline {
            return Err("the cassette has no entry for it, and the run is offline".to_string());
        }
        let entry = ask()?;
        let mut entries = self.entries.lock().map_err(|_| lost())?;
        entries.insert(hash.to_string(), entry.clone());
        files::write(&self.path, text(&entries)).map_err(|e| format!("the cassette: {e}"))?;
        Ok(entry)
    }
}

fn text(entries: &BTreeMap<String, RecordedAnswer>) -> String {
    let mut out = line(&CassetteHeader { kind: "cassette".into(), version: VERSION });
    entries.values().for_each(|e| out.push_str(&line(e)));
    out
}

fn line(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("strings and numbers always serialise") + "\n"
}

/// Parses the entries. An error contains the line number and the reason.
fn parse(text: &str) -> Result<BTreeMap<String, RecordedAnswer>, (usize, String)> {
    let mut lines =
        text.lines().enumerate().map(|(i, l)| (i + 1, l)).filter(|(_, l)| !l.trim().is_empty());
    let Some((at, first)) = lines.next() else { return Ok(BTreeMap::new()) };
    let expected = "expected {\"type\":\"cassette\",\"version\":1}";
    let head: CassetteHeader =
        serde_json::from_str(first).map_err(|e| (at, format!("{e}; {expected}")))?;
    if head.kind != "cassette" || head.version != VERSION {
        return Err((
            at,
            format!("found type `{}`, version {}; {expected}", head.kind, head.version),
        ));
    }
    let mut out = BTreeMap::new();
    for (at, line) in lines {
        let e: RecordedAnswer = serde_json::from_str(line).map_err(|e| (at, e.to_string()))?;
        if out.insert(e.request.clone(), e).is_some() {
            return Err((at, "a request that was recorded before".to_string()));
        }
    }
    Ok(out)
}
