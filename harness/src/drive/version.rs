//! Which version an agent's program says it has.

use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use ctxbench_reports::printable;
use thiserror::Error;
use tokio::io::AsyncReadExt;
use tokio::process::Command;

use super::agent::Agent;
use super::fill::Fill;
use crate::process_group::ProcessGroup;
use crate::shutdown::TempFolder;

/// So much of what it says is looked at, bytes.
const MOST_VERSION: u64 = 64 << 10;

/// Why the version of a program is not known.
#[derive(Debug, Error)]
pub enum NoVersion {
    /// It could not be asked.
    #[error("it cannot be asked for its version: {0}")]
    NotAsked(#[from] std::io::Error),
    /// It took too long.
    #[error("it did not say its version within {} s", .0.as_secs())]
    Silent(Duration),
    /// The program failed.
    #[error("asked for its version, it ended with {status}{said}")]
    Failed {
        /// How it ended.
        status: ExitStatus,
        /// What it printed, in a line that follows.
        said: String,
    },
    /// What it printed holds none.
    #[error("what it prints, asked for its version, holds none")]
    NotSaid,
}

impl Agent {
    /// The version that a program says it has: the first word with digits and dots that it prints.
    /// It is asked in a home of its own, and for so long at most.
    pub fn version(&self, program: &Path, patience: Duration) -> Result<String, NoVersion> {
        let home = TempFolder::new()?;
        let fill = Fill::before(program, self.here.as_deref(), home.path());
        let mut asking = Command::new(program);
        asking.args(self.program.version.iter().map(|a| fill.text(a)));
        asking.current_dir(home.path()).env_clear();
        asking.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        asking.env("HOME", home.path()).env("TMPDIR", home.path());
        asking.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (text, ended, status) = runtime.block_on(async {
            let mut group = ProcessGroup::spawn(&mut asking)?;
            let piped = "both streams are pipes";
            let stdout = group.take_stdout().expect(piped).take(MOST_VERSION);
            let stderr = group.take_stderr().expect(piped).take(MOST_VERSION);
            let (mut one, mut two) = (stdout, stderr);
            let (mut out, mut err) = (Vec::new(), Vec::new());
            let both = async { tokio::join!(one.read_to_end(&mut out), two.read_to_end(&mut err)) };
            // What came in time is what there is.
            let ended = tokio::time::timeout(patience, both).await.is_ok();
            let text = [out, err].concat();
            // One that still has its streams open goes on with something else.
            let waited = async { if ended { group.wait().await.ok() } else { None } };
            let status = tokio::time::timeout(patience, waited).await.ok().flatten();
            Ok::<_, std::io::Error>((text, ended, status))
        })?;
        // What a program says when it fails may hold any number.
        match (status.filter(|s| !s.success()), version_of(&text)) {
            (Some(status), _) => Err(NoVersion::Failed { status, said: complaint(&text) }),
            (None, Some(version)) => Ok(version),
            (None, None) if ended => Err(NoVersion::NotSaid),
            (None, None) => Err(NoVersion::Silent(patience)),
        }
    }
}

fn version_of(text: &[u8]) -> Option<String> {
    String::from_utf8_lossy(text).split_whitespace().find_map(version_in)
}

/// The line of what a program printed that says what is wrong, behind a colon: the first, or the
/// last below a traceback of Python.
fn complaint(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let mut lines = text.lines().map(str::trim).filter(|l| !l.is_empty());
    let line = match lines.next() {
        Some(first) if first.starts_with("Traceback") => lines.next_back().or(Some(first)),
        first => first,
    };
    line.map_or(String::new(), |l| {
        format!(": {}", printable(l).chars().take(120).collect::<String>())
    })
}

/// The version in a word, as in `v1.2.3` or `codex-cli/0.169.0`.
fn version_in(word: &str) -> Option<String> {
    let begin = word.find(|c: char| c.is_ascii_digit())?;
    let rest = &word[begin..];
    let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
    let end = rest.find(|c| !letter(c)).unwrap_or(rest.len());
    let version = rest[..end].trim_end_matches('.');
    (version.contains('.')).then(|| version.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_programs_print() {
        let of = |text: &str| text.split_whitespace().find_map(version_in);
        assert_eq!(of("codex-cli 0.169.0").as_deref(), Some("0.169.0"));
        assert_eq!(of("aider 0.86.2\n").as_deref(), Some("0.86.2"));
        assert_eq!(of("v22.1.0-rc.1 (x)").as_deref(), Some("22.1.0-rc.1"));
        assert_eq!(of("no number").as_deref(), None);
    }
}
