//! Records a drive as a conformance case and checks it against our implementation.
//!
//! A case contains the text of the session and no text by the agent: its prompts are described by
//! their size, and text that it adds around messages is masked (`mask`).

mod case;
mod events;
mod file;
mod mask;
mod rows;

use std::path::{Path, PathBuf};

use ctxbench_conform::record::{CaseRecording, ProgramNotes};
use ctxbench_conform::replay_of;
use ctxbench_strategies::Spec;
use ctxbench_util::files::{self, FileError};
use thiserror::Error;

use super::agent::{Agent, Deliver};
use super::{Driven, Exchange, Purpose};
use ctxbench_conform::{self as conform, Case, CaseError, CaseVerdict};
use ctxbench_os::sha256;

/// Error that prevents the recording of a case.
#[derive(Debug, Error)]
pub enum RecordError {
    /// No strategy implements the agent, or its cases are not sessions.
    #[error("{agent}: {why}, so no case of it can be recorded")]
    NoCases {
        /// Name of the agent.
        agent: String,
        why: &'static str,
    },
    /// The agent did not reach the end of the session.
    #[error("the agent did not reach the end of the session: {0}")]
    Stopped(String),
    /// The version is unknown, which is part of the case's path.
    #[error("it is not known of which version the case would be: {0}")]
    NoVersion(String),
    /// The agent sent no request to its model.
    #[error("the agent sent no request, so there is nothing to record")]
    Silent,
    /// The file cannot be written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The folder cannot be created.
    #[error("{}: {why}", path.display())]
    Folder {
        /// Path of the folder.
        path: PathBuf,
        why: std::io::Error,
    },
    /// The written case is invalid.
    #[error("{}: {why}", path.display())]
    Case {
        /// Path of the written file.
        path: PathBuf,
        why: Box<CaseError>,
    },
}

impl RecordError {
    /// Returns whether no case can be recorded for this agent or session.
    pub fn is_expected(&self) -> bool {
        matches!(self, RecordError::NoCases { .. } | RecordError::Stopped(_) | RecordError::Silent)
    }
}

/// Case that was written to a file.
#[derive(Debug)]
pub struct RecordedCase {
    pub path: PathBuf,
    /// Size of the file, bytes.
    pub bytes: usize,
    /// Result of our implementation for this case.
    pub verdict: CaseVerdict,
}

/// Returns the conversion of an agent's sessions to cases.
fn recording(agent: &str, strategy: Option<&Spec>) -> Result<&'static CaseRecording, RecordError> {
    let none = |why| RecordError::NoCases { agent: agent.to_string(), why };
    let spec = strategy.ok_or_else(|| none("its description names no `strategy`"))?;
    let replay = replay_of(spec.descriptor.name);
    let replay =
        replay.ok_or_else(|| none("cases of it are of single routines, not of sessions"))?;
    replay.record.as_ref().ok_or_else(|| none("its requests are not described yet"))
}

/// Returns data from an agent's scratch folder that a case needs.
pub(super) fn notes(agent: &str, strategy: Option<&Spec>, scratch: &Path) -> ProgramNotes {
    let found = recording(agent, strategy);
    found.map(|r| (r.notes)(scratch)).unwrap_or_default()
}

impl Driven {
    /// Writes a case into a folder named after strategy and version, and runs it.
    pub fn record(
        &self,
        agent: &Agent,
        session: &str,
        dir: &Path,
    ) -> Result<RecordedCase, RecordError> {
        let name = file_name(session, agent, self);
        let case = self.case(agent, &name)?;
        let folder = dir.join(&case.agent).join(files::safe_name(&case.version));
        std::fs::create_dir_all(&folder)
            .map_err(|why| RecordError::Folder { path: folder.clone(), why })?;
        let path = folder.join(format!("{name}.json"));
        let text = file::text(&case);
        files::write(&path, &text)?;
        // The check reads the written file.
        let tried = Case::parse(&text, &path.display().to_string());
        let tried = tried.and_then(|case| conform::replay(&case));
        let verdict =
            tried.map_err(|why| RecordError::Case { path: path.clone(), why: Box::new(why) })?;
        Ok(RecordedCase { bytes: text.len(), path, verdict })
    }

    /// Returns the case of a drive.
    fn case(&self, agent: &Agent, name: &str) -> Result<Case, RecordError> {
        let recording = recording(&self.agent, self.strategy.as_ref())?;
        if let Some(why) = &self.stopped {
            return Err(RecordError::Stopped(why.clone()));
        }
        if self.asked_to_go_on > 0 {
            return Err(RecordError::Stopped("the user had to ask it to continue".into()));
        }
        let resumes = agent.start.deliver == Deliver::Exec;
        let version =
            self.version.as_ref().map_err(|why| RecordError::NoVersion(why.to_string()))?;
        case::build(self, recording, version, resumes, name).ok_or(RecordError::Silent)
    }
}

/// Returns the file name of a session's case. For sessions that are not built in, it contains a
/// hash instead of the name, because recordings are private data.
fn file_name(session: &str, agent: &Agent, driven: &Driven) -> String {
    let built_in = ctxbench_scenarios::builtin::IDS.contains(&session);
    let mut name =
        if built_in { session.to_string() } else { format!("session-{}", &sha256(session)[..12]) };
    // Several descriptions may use the same strategy.
    if driven.strategy.as_ref().is_none_or(|s| s.descriptor.name != agent.name) {
        name += &format!("-{}", agent.name);
    }
    if driven.window != driven.model.window {
        name += &format!("-{}", driven.window);
    }
    if *driven.model.name != *agent.model {
        name += &format!("-{}", driven.model.name);
    }
    files::safe_name(&name)
}

/// Returns the exchanges of the agent's work and its summaries.
fn counted(exchanges: &[Exchange]) -> Vec<&Exchange> {
    let own = |e: &&Exchange| matches!(e.purpose, Purpose::Work | Purpose::Summary);
    exchanges.iter().filter(own).filter(|e| e.prompt.is_some()).collect()
}
