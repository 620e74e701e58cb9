//! Reading a rollout. A line that a crash cut off is passed over and named; everything around it is
//! read.

use std::fmt;
use std::path::Path;

use super::item::Item;
use super::line::{Event, Payload, RolloutLine, TokenInfo};
use super::reconstruct::{Count, Record, Resumed, reconstruct};
use super::writer::RolloutError;

/// A rollout as it was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rollout {
    /// Its lines in order.
    pub lines: Vec<RolloutLine>,
    /// Lines that could not be read.
    pub unreadable: Vec<Unreadable>,
}

/// A line that could not be read, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// Number of the line, from 1.
    pub line: usize,
    /// Its size in bytes.
    pub bytes: usize,
    /// The file ends in it without a line break: a write was cut off.
    pub torn: bool,
    /// What is wrong with it.
    pub why: String,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.torn { "was cut off while it was written" } else { "cannot be read" };
        write!(
            f,
            "line {} ({} bytes) {what} and was passed over: {}",
            self.line, self.bytes, self.why
        )
    }
}

impl Rollout {
    /// Reads a rollout from its text. Empty lines mean nothing.
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
                    let torn = !raw.ends_with('\n');
                    out.unreadable.push(Unreadable {
                        line: i + 1,
                        bytes: line.len(),
                        torn,
                        why: e.to_string(),
                    });
                }
            }
        }
        out
    }

    /// Reads a rollout file. Bytes that are no UTF-8, as a cut inside a character leaves them,
    /// spoil only their line.
    pub fn read(path: &Path) -> Result<Rollout, RolloutError> {
        let bytes = std::fs::read(path).map_err(|e| RolloutError::io(path, "read it", e))?;
        let out = Rollout::parse(&String::from_utf8_lossy(&bytes));
        if out.lines.is_empty() && !out.unreadable.is_empty() {
            return Err(RolloutError::NotARollout {
                path: path.to_path_buf(),
                why: out.unreadable[0].to_string(),
            });
        }
        Ok(out)
    }

    /// The session as it goes on; `rebuild` carries out a compaction that left no replacement
    /// behind.
    pub fn resume(&self, rebuild: impl Fn(&[Item], &Item) -> Vec<Item>) -> Resumed<Item> {
        reconstruct(&records(&self.lines), rebuild)
    }
}

/// What a resume needs to know of each line.
pub fn records(lines: &[RolloutLine]) -> Vec<Record<Item>> {
    numbered(lines).into_iter().map(|(_, record)| record).collect()
}

/// The same, each with the place of its line, from 0.
pub fn numbered(lines: &[RolloutLine]) -> Vec<(usize, Record<Item>)> {
    let record = |line: &RolloutLine| match &line.payload {
        Payload::ResponseItem(item) => {
            Some(Record::Item { item: item.clone(), user: item.is_user() })
        }
        Payload::Compacted(c) => Some(Record::Compacted {
            summary: Item::message("user", [c.message.clone()]),
            replacement: c.replacement_history.clone(),
        }),
        Payload::EventMsg(Event::TaskStarted { .. }) => Some(Record::TurnStarted),
        Payload::EventMsg(Event::ThreadRolledBack { num_turns, .. }) => {
            Some(Record::RolledBack { turns: *num_turns })
        }
        Payload::EventMsg(Event::TokenCount(t)) => {
            let count = |info: &TokenInfo| Count {
                last: info.last_token_usage.total_tokens,
                session: info.total_token_usage.total_tokens,
            };
            t.info.as_ref().map(|info| Record::Counted(count(info)))
        }
        _ => None,
    };
    lines.iter().enumerate().filter_map(|(i, l)| Some((i, record(l)?))).collect()
}
