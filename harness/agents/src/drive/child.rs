//! Process of an agent: lines in, lines out, timeouts, and the end of its process group.

use std::process::ExitStatus;
use std::time::Duration;

use anstream::adapter::strip_str;
use ctxbench_os::PipedProcess;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;
use tokio::time::timeout;

use super::director::SharedDirector;
use super::scratch::Scratch;

/// Maximum output between two requests to the model, bytes.
const MAX_OUTPUT_BYTES: usize = 64 << 20;
/// Output that is searched for a prompt, bytes.
const MAX_SEARCHED_BYTES: usize = 1 << 20;
const STDERR_LINES: usize = 6;

/// Running process of an agent.
pub(super) struct Child {
    process: PipedProcess,
    /// Output that has been read but not used.
    buffer: Vec<u8>,
    /// False once it has closed its standard output.
    is_open: bool,
    patience: Patience,
    /// Number of requests at the last output, and the bytes printed since then.
    chatter: (usize, usize),
    /// First line that is not part of the protocol.
    noise: Option<String>,
}

/// Timeout of an agent that neither prints nor sends a request.
#[derive(Clone)]
pub(super) struct Patience {
    pub(super) limit: Duration,
    pub(super) director: SharedDirector,
}

/// Next event of a process.
enum Next {
    Printed(usize),
    Closed,
    Ended(ExitStatus),
}

/// Reason why an agent cannot continue.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Stopped(pub(super) String);

impl Child {
    /// Starts a command in the project folder and its own process group. Of our environment it gets
    /// only PATH.
    pub(super) fn start(
        command: &[String],
        scratch: &Scratch,
        patience: Patience,
    ) -> Result<Child, Stopped> {
        let (program, arguments) =
            command.split_first().ok_or(Stopped("its description has no command".into()))?;
        let mut starting = Command::new(program);
        starting.args(arguments).current_dir(scratch.project());
        starting.env_clear().envs(scratch.environment());
        let process = PipedProcess::spawn(&mut starting)
            .map_err(|e| Stopped(format!("`{program}` cannot be started: {e}")))?;
        let buffer = Vec::new();
        Ok(Child { process, buffer, is_open: true, patience, chatter: (0, 0), noise: None })
    }

    pub(super) fn close_input(&mut self) {
        self.process.stdin = None;
    }

    /// Writes bytes to standard input.
    pub(super) async fn write(&mut self, bytes: &[u8]) -> Result<(), Stopped> {
        let Some(stdin) = &mut self.process.stdin else { return Ok(()) };
        let sent = async {
            stdin.write_all(bytes).await?;
            stdin.flush().await
        };
        match timeout(self.patience.limit, sent).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(self.exit_reason().await),
            Err(_) => Err(Stopped("it does not read its input (--timeout)".into())),
        }
    }

    /// Writes a JSON line to standard input.
    pub(super) async fn send(&mut self, message: &Value) -> Result<(), Stopped> {
        self.write(format!("{message}\n").as_bytes()).await
    }

    /// Returns the next line that is a JSON object, and skips others.
    pub(super) async fn receive(&mut self) -> Result<Value, Stopped> {
        loop {
            let line = self.line().await?;
            if let Ok(object @ Value::Object(_)) = serde_json::from_slice(&line) {
                return Ok(object);
            }
            self.noise.get_or_insert_with(|| {
                plain(&String::from_utf8_lossy(&line[..line.len().min(80)]))
            });
        }
    }

    async fn line(&mut self) -> Result<Vec<u8>, Stopped> {
        let mut searched = 0;
        loop {
            if let Some(end) = self.buffer[searched..].iter().position(|b| *b == b'\n') {
                let rest = self.buffer.split_off(searched + end + 1);
                return Ok(std::mem::replace(&mut self.buffer, rest));
            }
            searched = self.buffer.len();
            self.read().await?;
        }
    }

    /// Waits until the output ends with `end`, and clears it.
    pub(super) async fn until(&mut self, end: &str) -> Result<(), Stopped> {
        loop {
            if self.buffer.ends_with(end.as_bytes()) && !end.is_empty() {
                // The agent may be printing this text in the middle of its output.
                let Ok(more) = timeout(Duration::from_millis(300), self.read()).await else {
                    self.buffer.clear();
                    return Ok(());
                };
                more?;
                continue;
            }
            let over = self.buffer.len().saturating_sub(MAX_SEARCHED_BYTES);
            self.buffer.drain(..over);
            self.read().await?;
        }
    }

    /// Waits for the process to end, skips its output, and returns its exit code. A daemon may keep
    /// the output open.
    pub(super) async fn finish(&mut self) -> Result<i32, Stopped> {
        loop {
            self.buffer.clear();
            if let Next::Ended(status) = self.next(true).await? {
                return Ok(status.code().unwrap_or(-1));
            }
        }
    }

    async fn read(&mut self) -> Result<(), Stopped> {
        match self.next(false).await? {
            Next::Printed(_) => Ok(()),
            Next::Closed | Next::Ended(_) => Err(self.exit_reason().await),
        }
    }

    /// Waits for output or, with `ends`, for the end of the process. Requests to the model reset the
    /// timeout.
    async fn next(&mut self, ends: bool) -> Result<Next, Stopped> {
        let Patience { limit, director } = self.patience.clone();
        let why = loop {
            let asked = director.lock().exchanges.len();
            let PipedProcess { stdout, group, .. } = &mut self.process;
            let next = async {
                tokio::select! {
                    biased;
                    why = director.gave_up() => Err(why),
                    read = stdout.read_buf(&mut self.buffer), if self.is_open => {
                        Ok(read.ok().filter(|n| *n > 0).map_or(Next::Closed, Next::Printed))
                    }
                    status = group.wait(), if ends => {
                        status.map(Next::Ended).map_err(|e| format!("failed to wait for it: {e}"))
                    }
                }
            };
            match timeout(limit, next).await {
                Ok(Ok(Next::Printed(n))) => {
                    let (before, printed) = self.chatter;
                    self.chatter = (asked, if before == asked { printed + n } else { n });
                    if self.chatter.1 <= MAX_OUTPUT_BYTES {
                        return Ok(Next::Printed(n));
                    }
                    break format!(
                        "it prints more than {MAX_OUTPUT_BYTES} bytes without a request to its \
                         model"
                    );
                }
                Ok(Ok(next)) => {
                    self.is_open &= !matches!(next, Next::Closed);
                    return Ok(next);
                }
                Ok(Err(why)) => break why,
                Err(_) if director.lock().exchanges.len() != asked => {}
                Err(_) if !self.is_open => break "it closed its output and did not end".into(),
                Err(_) => {
                    break format!(
                        "it neither printed anything nor sent a request for {} s; if it is only \
                         slow, use a larger --timeout",
                        limit.as_secs()
                    );
                }
            }
        };
        Err(self.stopped(why).await)
    }

    /// Explains why the process ended.
    async fn exit_reason(&mut self) -> Stopped {
        let why = self.process.exit_reason().await;
        self.stopped(why).await
    }

    /// Ends the process and adds what it said to a reason.
    pub(super) async fn stopped(&mut self, mut why: String) -> Stopped {
        let last = plain(&self.process.stop(STDERR_LINES).await);
        if let Some(noise) = &self.noise {
            why += &format!("; it printed {noise:?}, which is not part of the protocol");
        }
        if !last.is_empty() {
            why += &format!("; standard error:\n{last}");
        }
        Stopped(why)
    }

    /// Gives the process a moment to end, then kills its group.
    pub(super) async fn end(&mut self) {
        self.process.end().await;
    }
}

/// Removes colours and other control sequences.
fn plain(text: &str) -> String {
    let text = strip_str(text).to_string().replace('\t', " ");
    text.chars().filter(|c| *c == '\n' || !c.is_control()).collect()
}
