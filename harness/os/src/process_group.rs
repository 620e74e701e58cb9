//! A child process with all processes that it starts. The whole group ends with its first process.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::shutdown;

/// Interval between two checks whether the first process has ended.
const POLL: Duration = Duration::from_millis(5);

/// A process in its own process group. The group is killed when the process has ended, when
/// [`ProcessGroup::kill`] is called, or on drop, and never signalled after that: its number may
/// belong to another group by then.
///
/// On Windows only the process itself is killed.
pub struct ProcessGroup {
    child: Child,
    /// Process ID, until the group has been killed.
    id: Option<u32>,
}

impl ProcessGroup {
    pub fn spawn(command: &mut Command) -> io::Result<ProcessGroup> {
        command.kill_on_drop(true);
        #[cfg(unix)]
        command.process_group(0);
        let child = shutdown::spawn_group(|| command.spawn().map(|child| (child.id(), child)))?;
        Ok(ProcessGroup { id: child.id(), child })
    }

    /// Waits for the first process to end, then kills the rest of the group. Cancel safe.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        // Until it is reaped, the process prevents reuse of the group's ID.
        while self.id.is_some_and(is_running) {
            tokio::time::sleep(POLL).await;
        }
        self.kill();
        self.child.wait().await
    }

    /// Kills the group. Has no effect on a group that has ended.
    pub fn kill(&mut self) {
        if let Some(id) = self.id.take() {
            shutdown::end_group(id);
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns whether a child process has not ended yet, without reaping it.
#[cfg(unix)]
fn is_running(id: u32) -> bool {
    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
    let Some(pid) = i32::try_from(id).ok().and_then(Pid::from_raw) else { return false };
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    matches!(waitid(WaitId::Pid(pid), options), Ok(None))
}

#[cfg(not(unix))]
fn is_running(_: u32) -> bool {
    false
}

/// Number of bytes kept of standard error, from its end.
const STDERR_BYTES: usize = 4_096;
/// Time that a process has to end, and for the rest of its standard error.
const GRACE: Duration = Duration::from_secs(2);

/// A process group that is spoken with through pipes. Its standard error is read in the background,
/// so that it is never blocked.
pub struct PipedProcess {
    pub group: ProcessGroup,
    /// `None` once it is closed.
    pub stdin: Option<ChildStdin>,
    pub stdout: BufReader<ChildStdout>,
    /// End of the standard error, and the task that reads it.
    stderr: (Arc<Mutex<Vec<u8>>>, JoinHandle<()>),
}

impl PipedProcess {
    pub fn spawn(command: &mut Command) -> io::Result<PipedProcess> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut group = ProcessGroup::spawn(command)?;
        let piped = "all three streams are pipes";
        let stdout = BufReader::with_capacity(1 << 16, group.child.stdout.take().expect(piped));
        let mut stderr = group.child.stderr.take().expect(piped);
        let end: Arc<Mutex<Vec<u8>>> = Arc::default();
        let tail = end.clone();
        let reader = tokio::spawn(async move {
            let mut buffer = [0; STDERR_BYTES];
            while let Ok(n @ 1..) = stderr.read(&mut buffer).await {
                let Ok(mut tail) = tail.lock() else { return };
                tail.extend_from_slice(&buffer[..n]);
                let over = tail.len().saturating_sub(STDERR_BYTES);
                tail.drain(..over);
            }
        });
        Ok(PipedProcess { stdin: group.child.stdin.take(), stdout, stderr: (end, reader), group })
    }

    /// Says why the process closed its standard output.
    pub async fn exit_reason(&mut self) -> String {
        match timeout(GRACE, self.group.wait()).await {
            Ok(Ok(status)) => format!("it ended with {status}"),
            _ => "it closed its standard output".into(),
        }
    }

    /// Kills the group and returns the last lines of its standard error, at most `max_lines`, blank
    /// lines left out. A process outside the group that keeps the stream open is not waited for.
    pub async fn stop(&mut self, max_lines: usize) -> String {
        self.group.kill();
        let _ = timeout(GRACE, &mut self.stderr.1).await;
        let bytes = self.stderr.0.lock().map(|b| b.clone()).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
        lines[lines.len().saturating_sub(max_lines)..].join("\n")
    }

    /// Closes standard input, gives the process a moment to end, and kills its group.
    pub async fn end(&mut self) {
        self.stdin = None;
        let drain = async {
            let mut bytes = [0; STDERR_BYTES];
            while matches!(self.stdout.read(&mut bytes).await, Ok(1..)) {}
            let _ = self.group.wait().await;
        };
        let _ = timeout(GRACE, drain).await;
        self.group.kill();
    }
}

impl Drop for PipedProcess {
    fn drop(&mut self) {
        self.stderr.1.abort();
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    /// A shell that starts a long sleep in the background and prints its process id.
    async fn shell(script: &str) -> (ProcessGroup, u32) {
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("sleep 77 & echo $!; {script}")).stdout(Stdio::piped());
        let mut group = ProcessGroup::spawn(&mut command).unwrap();
        let mut stdout = group.child.stdout.take().unwrap();
        let mut text = Vec::new();
        while !text.ends_with(b"\n") {
            text.push(stdout.read_u8().await.unwrap());
        }
        (group, String::from_utf8(text).unwrap().trim().parse().unwrap())
    }

    async fn ends(id: u32) -> bool {
        for _ in 0..200 {
            let ps = Command::new("ps").args(["-o", "stat=", "-p", &id.to_string()]).output();
            let state = String::from_utf8(ps.await.unwrap().stdout).unwrap();
            if state.trim().is_empty() || state.starts_with('Z') {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        false
    }

    #[tokio::test]
    async fn group_ends_with_its_process_and_on_drop() {
        let (mut group, sleep) = shell("exit 3").await;
        assert_eq!(group.wait().await.unwrap().code(), Some(3));
        assert!(ends(sleep).await);
        let (group, sleep) = shell("wait").await;
        drop(group);
        assert!(ends(sleep).await);
    }

    #[tokio::test]
    async fn group_that_ended_is_not_signalled_again() {
        let (mut group, _) = shell("exit 0").await;
        let id = group.id.unwrap();
        group.wait().await.unwrap();
        assert_eq!(group.id, None);
        // Another process with the same ID is not killed.
        let mut other = Command::new("sleep");
        other.arg("77").process_group(0).kill_on_drop(true);
        let mut other = other.spawn().unwrap();
        shutdown::end_group(other.id().unwrap());
        shutdown::end_group(id);
        group.kill();
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(other.try_wait().unwrap().is_none());
    }
}
