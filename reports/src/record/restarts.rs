//! Sessions that the user rewound or reopened.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use ctxbench_core::Millis;
use ctxbench_core::host::{RewindMode, RewindStatus};

/// Mechanism by which a product stores files for a rewind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeptBy {
    #[default]
    #[serde(rename = "edit tools")]
    EditTools,
    #[serde(rename = "shadow git")]
    ShadowGit,
}

/// A rewind to a message, or a summary of the conversation on one side of it. `None` if the product
/// does not support this or the value is unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RewindRecord {
    /// Number in the run, from 0.
    pub seq: u64,
    /// Id of the message in the session.
    pub to: String,
    pub mode: RewindMode,
    pub status: RewindStatus,
    /// Number of the next request.
    pub before_request: u64,
    /// Virtual time, ms.
    pub at_ms: Millis,
    /// Context before, tokens.
    pub context_before: Option<u64>,
    /// Context after, tokens.
    pub context_after: Option<u64>,
    /// Context of the product at that message, tokens; `None` if the conversation is not rewound.
    pub context_then: Option<u64>,
    /// True if the context afterwards equals the context at that message, block by block.
    pub context_equal: Option<bool>,
    /// Restored files; `None` if the rewind restores no files or the session does not contain the
    /// files on disk.
    pub code: Option<CodeRewind>,
}

/// Files restored by a rewind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CodeRewind {
    pub way: KeptBy,
    /// Number of files that the product tracked as changed since the prompt.
    pub tracked: u64,
    /// Number of files that had changed since the prompt, or that the restoration changed, tracked
    /// or not.
    pub changed: u64,
    /// Number of changed files that equal their state at the prompt afterwards.
    pub restored: u64,
    /// Paths of changed files that were not restored.
    pub missed: Vec<String>,
    /// Number of files that were refused or failed.
    pub refused: u64,
    /// `restored ÷ changed`, per cent; `None` if no file had changed.
    pub success_pct: Option<f64>,
    /// Storage of the checkpoints of edit tools so far, bytes.
    pub edit_tools_bytes: u64,
    /// Storage of shadow git so far, bytes before compression; `None` if the product does not use
    /// it.
    pub shadow_git_bytes: Option<u64>,
}

/// A session that was closed and opened again.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ResumeRecord {
    /// Number of the restart in the session, from 1.
    pub restart: u64,
    /// Number of messages that the context showed before the restart.
    pub messages: u64,
    /// True if the product shows the same conversation afterwards, by its own rules.
    pub shown_equal: bool,
    /// Number of summary requests between the restart and the first answer.
    pub resume_summary_calls: u64,
    /// Waiting for these summaries, ms, modelled.
    pub resume_blocked_ms: u64,
    /// Data restored from a file; `None` if the product has no file or restoring failed.
    pub file: Option<ResumeFile>,
    /// Reason for missing figures of a file, for people.
    pub error: Option<String>,
}

impl ResumeRecord {
    /// Returns true if the product has no format and leaves storage to the embedding program.
    pub fn keeps_nothing(&self) -> bool {
        self.file.is_none() && self.error.is_none()
    }
}

/// Data restored from one format.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ResumeFile {
    /// Name of the format.
    pub format: String,
    /// Size on disk, bytes.
    pub stored_bytes: u64,
    /// Bytes read while loading: whole files, or the examined rows.
    pub bytes_read: u64,
    /// Number of messages of the context that were lost.
    pub lost: u64,
    /// Number of messages that were restored with other text, in part, or with another role.
    pub garbled: u64,
    /// Number of restored messages that the context no longer showed.
    pub surplus: u64,
    /// True if exactly the same context was restored.
    pub context_equal: bool,
    /// Share of the facts stated before the restart that appear in the stored data, per cent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recoverable_pct: Option<f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}
