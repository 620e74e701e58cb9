//! Given summaries: those of the recording, or those of a file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ctxbench_core::session::{Entry, Session};
use serde::Deserialize;

/// Source of scripted summaries.
#[derive(Clone, Debug, PartialEq)]
pub enum Script {
    /// These texts in this order.
    Texts(Vec<String>),
    /// Summaries of the session's `recorded_compaction` lines.
    Recorded,
    /// A file, read.
    File(Arc<[ScriptedText]>),
}

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptedText {
    /// The summary.
    pub text: String,
    /// For this strategy alone, by label or bare name.
    pub strategy: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum Written {
    Plain(String),
    Of { text: String, strategy: Option<String> },
}

/// Why a file of summaries cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// It cannot be opened.
    #[error("{path} cannot be read: {source}")]
    Io {
        /// Which file.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// A line is neither of the two forms.
    #[error(
        "{path}, line {line}: expected a JSON string or {{\"text\":\"…\",\"strategy\":\"…\"}} \
         (strategy may be left out)"
    )]
    Line {
        /// Which file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
    },
    /// No summary in it.
    #[error("{0} contains no summary")]
    Empty(PathBuf),
}

impl Script {
    /// Reads a file of JSON lines.
    pub fn open(path: &Path) -> Result<Script, ScriptError> {
        let text = ctxbench_core::files::read_text(path)
            .map_err(|source| ScriptError::Io { path: path.into(), source })?;
        let mut lines = Vec::new();
        for (i, l) in text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty()) {
            lines.push(match serde_json::from_str(l) {
                Ok(Written::Plain(text)) => ScriptedText { text, strategy: None },
                Ok(Written::Of { text, strategy }) => ScriptedText { text, strategy },
                Err(_) => return Err(ScriptError::Line { path: path.into(), line: i + 1 }),
            });
        }
        if lines.is_empty() {
            Err(ScriptError::Empty(path.into()))
        } else {
            Ok(Script::File(lines.into()))
        }
    }

    /// Returns the texts for one session and strategy, in order. Of a file: the lines with the
    /// label; else those with the strategy's name; else those without a name.
    pub fn texts(&self, session: &Session, label: &str, strategy: &str) -> Vec<String> {
        match self {
            Script::Texts(t) => t.clone(),
            Script::Recorded => session.entries.iter().filter_map(recorded).collect(),
            Script::File(lines) => {
                let of = |who: Option<&str>| -> Vec<String> {
                    lines
                        .iter()
                        .filter(|l| l.strategy.as_deref() == who)
                        .map(|l| l.text.clone())
                        .collect()
                };
                [Some(label), Some(strategy), None]
                    .into_iter()
                    .map(of)
                    .find(|t| !t.is_empty())
                    .unwrap_or_default()
            }
        }
    }
}

fn recorded(e: &Entry) -> Option<String> {
    match e {
        Entry::RecordedCompaction(c) => c.summary.clone(),
        _ => None,
    }
}
