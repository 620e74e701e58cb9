//! Given summaries from the recording or a file.

use std::path::Path;
use std::sync::Arc;

use ctxbench_session::{Entry, Session};
use serde::Deserialize;

use super::SetUpError;

#[derive(Clone, Debug, PartialEq)]
pub enum SummaryScript {
    /// Summaries of the session's `recorded_compaction` lines.
    Recorded,
    File(Arc<[ScriptedText]>),
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedText {
    pub text: String,
    /// Strategy that the summary is for, by label or name. `None` = all strategies.
    pub strategy: Option<String>,
}

impl SummaryScript {
    /// Reads a file of JSON lines.
    pub fn open(path: &Path) -> Result<SummaryScript, SetUpError> {
        let name = path.display();
        let text = ctxbench_util::files::read_text(path)
            .map_err(|e| SetUpError(format!("{name} cannot be read: {e}")))?;
        let mut lines = Vec::new();
        for (i, l) in text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty()) {
            let plain = serde_json::from_str(l).map(|text| ScriptedText { text, strategy: None });
            let line = plain.or_else(|_| serde_json::from_str(l)).map_err(|_| {
                SetUpError(format!(
                    "{name}, line {}: expected a JSON string or \
                     {{\"text\":\"…\",\"strategy\":\"…\"}} (strategy may be left out)",
                    i + 1
                ))
            });
            lines.push(line?);
        }
        match lines.is_empty() {
            true => Err(SetUpError(format!("{name} contains no summary"))),
            false => Ok(SummaryScript::File(lines.into())),
        }
    }

    /// Returns the texts for a session and strategy, in order. For a file, these are the lines with
    /// the label, or else those with the strategy's name, or else those without a name.
    pub fn texts(&self, session: &Session, label: &str, strategy: &str) -> Vec<String> {
        match self {
            SummaryScript::Recorded => session.entries.iter().filter_map(recorded).collect(),
            SummaryScript::File(lines) => {
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
