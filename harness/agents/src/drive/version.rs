//! Version of an agent's program.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use ctxbench_reports::printable;
use tokio::io::AsyncReadExt;
use tokio::process::Command;

use super::agent::Agent;
use super::template::Template;
use ctxbench_os::ProcessGroup;
use ctxbench_os::shutdown::TempFolder;

/// Maximum output that is read, bytes.
const MAX_VERSION_BYTES: u64 = 64 << 10;

impl Agent {
    /// Runs a program in a temporary home and returns the version that it prints: the first word
    /// with digits and dots. An error says why the version is unknown.
    pub fn version(&self, program: &Path, patience: Duration) -> Result<String, String> {
        let failed = |e: std::io::Error| format!("failed to ask for its version: {e}");
        let home = TempFolder::new().map_err(failed)?;
        let template = Template::before_drive(self, program, home.path());
        let mut asking = Command::new(program);
        asking.args(self.program.version.iter().map(|a| template.text(a)));
        asking.current_dir(home.path()).env_clear();
        asking.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        asking.env("HOME", home.path()).env("TMPDIR", home.path());
        asking.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let asked = runtime.map_err(failed)?.block_on(async {
            let mut group = ProcessGroup::spawn(&mut asking)?;
            let piped = "both streams are pipes";
            let stdout = group.take_stdout().expect(piped).take(MAX_VERSION_BYTES);
            let stderr = group.take_stderr().expect(piped).take(MAX_VERSION_BYTES);
            let (mut one, mut two) = (stdout, stderr);
            let (mut out, mut err) = (Vec::new(), Vec::new());
            let both = async { tokio::join!(one.read_to_end(&mut out), two.read_to_end(&mut err)) };
            // Output that arrived in time is used.
            let ended = tokio::time::timeout(patience, both).await.is_ok();
            let text = [out, err].concat();
            // A program with open streams is still working.
            let waited = async { if ended { group.wait().await.ok() } else { None } };
            let status = tokio::time::timeout(patience, waited).await.ok().flatten();
            Ok((text, ended, status))
        });
        let (text, ended, status) = asked.map_err(failed)?;
        // An error message may contain any number.
        match (status.filter(|s| !s.success()), version_of(&text)) {
            (Some(status), _) => {
                Err(format!("the version command ended with {status}{}", complaint(&text)))
            }
            (None, Some(version)) => Ok(version),
            (None, None) if ended => Err("the version command printed no version".into()),
            (None, None) => {
                Err(format!("it did not print its version within {} s", patience.as_secs()))
            }
        }
    }
}

fn version_of(text: &[u8]) -> Option<String> {
    String::from_utf8_lossy(text).split_whitespace().find_map(version_in)
}

/// Returns the error message of a program, after a colon: its first line, or the last line of a
/// Python traceback.
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
        let of = |text: &str| text.split_whitespace().find_map(version_in);
        assert_eq!(of("codex-cli 0.169.0").as_deref(), Some("0.169.0"));
        assert_eq!(of("aider 0.86.2\n").as_deref(), Some("0.86.2"));
        assert_eq!(of("v22.1.0-rc.1 (x)").as_deref(), Some("22.1.0-rc.1"));
        assert_eq!(of("no number").as_deref(), None);
    }
}
