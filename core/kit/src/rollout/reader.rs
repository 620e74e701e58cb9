//! Rollout reader. Skips and reports lines that cannot be parsed, such as a line truncated by a
//! crash.

use std::path::Path;

use super::item::RolloutItem;
use super::line::{Payload, RolloutEvent, RolloutLine, TokenInfo};
use super::reconstruct::{Record, ResumedSession, TokenTotals, reconstruct};
use super::writer::RolloutError;

/// Contents of a rollout.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rollout {
    /// Lines in order.
    pub lines: Vec<RolloutLine>,
    /// Descriptions of the lines that could not be parsed.
    pub unreadable: Vec<String>,
}

impl Rollout {
    /// Parses a rollout. Ignores empty lines.
    pub fn parse(text: &str) -> Rollout {
        let mut out = Rollout::default();
        for (i, raw) in text.split_inclusive('\n').enumerate() {
            let line = raw.trim_end_matches(['\n', '\r']);
            if line.trim().is_empty() {
                continue;
            }
            match serde_json::from_str(line) {
                Ok(l) => out.lines.push(l),
                Err(e) => {
                    // An interrupted write leaves a last line without a newline.
                    let is_torn = !raw.ends_with('\n');
                    let state = if is_torn { "is truncated" } else { "cannot be parsed" };
                    let (number, bytes) = (i + 1, line.len());
                    out.unreadable.push(format!(
                        "line {number} ({bytes} bytes) {state} and was skipped: {e}"
                    ));
                }
            }
        }
        out
    }

    /// Reads a rollout file. Invalid UTF-8, such as a truncated character, affects only its line.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or contains text but no line of a rollout.
    pub fn read(path: &Path) -> Result<Rollout, RolloutError> {
        let bytes = std::fs::read(path).map_err(|e| RolloutError::io(path, "read it", e))?;
        let out = Rollout::parse(&String::from_utf8_lossy(&bytes));
        if out.lines.is_empty() && !out.unreadable.is_empty() {
            return Err(RolloutError::NotARollout {
                path: path.to_path_buf(),
                reason: out.unreadable[0].clone(),
            });
        }
        Ok(out)
    }

    /// Resumes the session. Calls `rebuild` for a compaction without a replacement history.
    pub fn resume(
        &self,
        rebuild: impl Fn(&[RolloutItem], &RolloutItem) -> Vec<RolloutItem>,
    ) -> ResumedSession<RolloutItem> {
        reconstruct(&records(&self.lines), rebuild)
    }
}

/// Converts lines to the records that a resume needs.
pub fn records(lines: &[RolloutLine]) -> Vec<Record<RolloutItem>> {
    numbered(lines).into_iter().map(|(_, record)| record).collect()
}

/// Converts lines to records, each with its zero-based line index.
pub fn numbered(lines: &[RolloutLine]) -> Vec<(usize, Record<RolloutItem>)> {
    let record = |line: &RolloutLine| match &line.payload {
        Payload::ResponseItem(item) => {
            Some(Record::Item { item: item.clone(), user: item.is_user() })
        }
        Payload::Compacted(c) => Some(Record::Compacted {
            summary: RolloutItem::message("user", [c.message.clone()]),
            replacement: c.replacement_history.clone(),
        }),
        Payload::EventMsg(RolloutEvent::TaskStarted { .. }) => Some(Record::TurnStarted),
        Payload::EventMsg(RolloutEvent::ThreadRolledBack { num_turns, .. }) => {
            Some(Record::RolledBack { turns: *num_turns })
        }
        Payload::EventMsg(RolloutEvent::TokenCount(t)) => {
            let count = |info: &TokenInfo| TokenTotals {
                last: info.last_token_usage.total_tokens,
                session: info.total_token_usage.total_tokens,
            };
            t.info.as_ref().map(|info| Record::Counted(count(info)))
        }
        _ => None,
    };
    lines.iter().enumerate().filter_map(|(i, l)| Some((i, record(l)?))).collect()
}
