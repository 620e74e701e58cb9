//! Records a drive as a conformance case and checks it against our implementation.
//!
//! A case contains the text of the session and no text by the agent: its prompts are described by
//! their size, and text that it adds around messages is masked (`mask`).

mod case;
mod events;
mod file;
mod mask;

use std::path::{Path, PathBuf};

use ctxbench_conform::record::{CaseRecording, ProgramNotes};
use ctxbench_conform::replay_of;
use ctxbench_strategies::Spec;
use ctxbench_util::files;
use thiserror::Error;

use super::agent::Deliver;
use super::{Driven, window};
use ctxbench_conform::{self as conform, Case, CaseVerdict};
use ctxbench_util::hash::sha256;

/// Error that prevents the recording of a case.
#[derive(Debug, Error)]
pub enum RecordError {
    /// No case can be recorded for this agent or session.
    #[error("{0}")]
    Impossible(String),
    #[error("{0}")]
    Failed(String),
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
    let none =
        |why| RecordError::Impossible(format!("{agent}: {why}, so no case of it can be recorded"));
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
    pub fn record(&self, session: &str, dir: &Path) -> Result<RecordedCase, RecordError> {
        let name = file_name(session, self);
        let case = self.case(&name)?;
        let folder = dir.join(&case.agent).join(files::safe_name(&case.version));
        let path = folder.join(format!("{name}.json"));
        let failed = |why: String| RecordError::Failed(format!("{}: {why}", path.display()));
        std::fs::create_dir_all(&folder).map_err(|why| failed(why.to_string()))?;
        let text = file::text(&case);
        files::write(&path, &text).map_err(|e| RecordError::Failed(e.to_string()))?;
        // The check reads the written file.
        let case = Case::parse(&text, &path.display().to_string());
        let verdict = case.and_then(|case| conform::replay(&case));
        let verdict = verdict.map_err(|why| failed(why.to_string()))?;
        Ok(RecordedCase { bytes: text.len(), path, verdict })
    }

    fn case(&self, name: &str) -> Result<Case, RecordError> {
        let recording = recording(&self.agent.name, self.strategy.as_ref())?;
        let unasked =
            (self.end.asked_to_go_on > 0).then(|| "the user had to ask it to continue".into());
        if let Some(why) = self.end.stopped.clone().or(unasked) {
            let why = format!("the agent did not reach the end of the session: {why}");
            return Err(RecordError::Impossible(why));
        }
        let resumes = self.agent.start.deliver == Deliver::Exec;
        let unknown = |why| format!("it is not known of which version the case would be: {why}");
        let version = self.version.as_ref().map_err(|why| RecordError::Failed(unknown(why)))?;
        let none = "the agent sent no request, so there is nothing to record";
        case::build(self, recording, version, resumes, name)
            .ok_or_else(|| RecordError::Impossible(none.into()))
    }
}

/// Returns the file name of a session's case. For sessions that are not built in, it contains a
/// hash instead of the name, because recordings are private data.
fn file_name(session: &str, driven: &Driven) -> String {
    let agent = &driven.agent;
    let built_in = ctxbench_scenarios::builtin::IDS.contains(&session);
    let mut name =
        if built_in { session.to_string() } else { format!("session-{}", &sha256(session)[..12]) };
    // Several descriptions may use the same strategy.
    if driven.strategy.as_ref().is_none_or(|s| s.descriptor.name != agent.name) {
        name += &format!("-{}", agent.name);
    }
    if driven.window != window(driven.strategy.as_ref(), driven.model, None) {
        name += &format!("-{}", driven.window);
    }
    if *driven.model.name != *agent.model {
        name += &format!("-{}", driven.model.name);
    }
    files::safe_name(&name)
}
