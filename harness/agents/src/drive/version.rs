//! Version of an agent's program.

use std::path::Path;
use std::time::Duration;

use ctxbench_os::shutdown::TempFolder;
use ctxbench_os::{PipedProcess, block_on};
use ctxbench_reports::printable;
use ctxbench_util::cut::cut;
use tokio::io::AsyncReadExt;
use tokio::process::Command;
use tokio::time::timeout;

use super::agent::Agent;

/// Maximum output that is read, bytes.
const MAX_VERSION_BYTES: u64 = 64 << 10;

impl Agent {
    /// Runs a program in a temporary home and returns the version that it prints: the first word
    /// with digits and dots. An error says why the version is unknown.
    pub fn version(&self, program: &Path, patience: Duration) -> Result<String, String> {
        let failed = |e: std::io::Error| format!("failed to ask for its version: {e}");
        let home = TempFolder::new().map_err(failed)?;
        let template = self.template(program, home.path());
        let mut asking = Command::new(program);
        asking.args(self.program.version.iter().map(|a| template.text(a)));
        asking.current_dir(home.path()).env_clear();
        asking.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        asking.env("HOME", home.path()).env("TMPDIR", home.path());
        let (text, ended) = block_on(async {
            let mut process = PipedProcess::spawn(&mut asking).map_err(failed)?;
            process.stdin = None;
            let mut out = Vec::new();
            let ended = timeout(patience, async {
                let _ = (&mut process.stdout).take(MAX_VERSION_BYTES).read_to_end(&mut out).await;
                process.group.wait().await.ok()
            });
            let ended = ended.await;
            out.extend(process.stop(usize::MAX).await.into_bytes());
            Ok((String::from_utf8_lossy(&out).into_owned(), ended))
        })
        .unwrap_or_else(|e| Err(failed(e)))?;
        match (ended, text.split_whitespace().find_map(version_in)) {
            // An error message may contain any number.
            (Ok(Some(status)), _) if !status.success() => {
                Err(format!("the version command ended with {status}{}", complaint(&text)))
            }
            (_, Some(version)) => Ok(version),
            (Ok(_), None) => Err("the version command printed no version".into()),
            (Err(_), None) => {
                Err(format!("it did not print its version within {} s", patience.as_secs()))
            }
        }
    }
}

/// Returns the error message of a program, after a colon: its first line, or the last line of a
/// Python traceback.
fn complaint(text: &str) -> String {
    let mut lines = text.lines().map(str::trim).filter(|l| !l.is_empty());
    let line = match lines.next() {
        Some(first) if first.starts_with("Traceback") => lines.next_back().or(Some(first)),
        first => first,
    };
    line.map_or(String::new(), |l| format!(": {}", cut(&printable(l), 120)))
}

/// Returns the version in a word such as `v1.2.3` or `codex-cli/0.169.0`.
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
    fn version_in_finds_version_in_output() {
        for (text, version) in [
            ("codex-cli 0.169.0", Some("0.169.0")),
            ("aider 0.86.2\n", Some("0.86.2")),
            ("v22.1.0-rc.1 (x)", Some("22.1.0-rc.1")),
            ("no number", None),
        ] {
            assert_eq!(text.split_whitespace().find_map(version_in).as_deref(), version);
        }
    }
}
