//! Process of an agent: lines in, lines out, timeouts, and the end of its process group.

use std::collections::VecDeque;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use super::director::SharedDirector;
use super::scratch::Scratch;
use ctxbench_os::{ProcessGroup, StderrTail};

/// Maximum length of a line that an agent prints, bytes.
const MAX_LINE_BYTES: usize = 64 << 20;
/// Maximum output between two messages that is not part of the protocol, bytes.
const MAX_NOISE_BYTES: usize = 4 << 20;
/// Maximum output between two requests to the model, bytes.
const MAX_OUTPUT_BYTES: usize = 256 << 20;
const STDERR_LINES: usize = 6;
/// Time that an agent has to end, and for the rest of its standard error.
const GRACE: Duration = Duration::from_secs(2);

/// Running process of an agent.
pub(super) struct Child {
    group: ProcessGroup,
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    /// Output that has been read but not used.
    buffer: VecDeque<u8>,
    stderr: StderrTail,
    patience: Patience,
    /// Number of requests at the last output, and the bytes printed since then.
    chatter: (usize, usize),
}

/// Timeout of an agent that neither prints nor sends a request.
#[derive(Clone)]
pub(super) struct Patience {
    pub(super) limit: Duration,
    pub(super) director: SharedDirector,
}

/// Next event of a process.
enum Next {
    /// Number of bytes printed. 0 means that the output was closed.
    Printed(usize),
    Ended(std::io::Result<std::process::ExitStatus>),
    /// The model gives no more answers, for this reason.
    Refused(String),
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
        let [program, arguments @ ..] = command else {
            return Err(Stopped("its description has no command".into()));
        };
        let mut starting = Command::new(program);
        starting.args(arguments).current_dir(scratch.project());
        starting.env_clear().envs(scratch.environment());
        starting.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut group = ProcessGroup::spawn(&mut starting)
            .map_err(|e| Stopped(format!("`{program}` cannot be started: {e}")))?;
        let piped = "all three streams are pipes";
        Ok(Child {
            stdin: group.take_stdin(),
            stdout: group.take_stdout().expect(piped),
            stderr: StderrTail::collect(group.take_stderr().expect(piped)),
            group,
            buffer: VecDeque::new(),
            patience,
            chatter: (0, 0),
        })
    }

    /// Closes standard input.
    pub(super) fn close_input(&mut self) {
        self.stdin = None;
    }

    /// Writes bytes to standard input.
    pub(super) async fn write(&mut self, bytes: &[u8]) -> Result<(), Stopped> {
        let Some(stdin) = &mut self.stdin else { return Ok(()) };
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
        let mut noise = 0;
        loop {
            let line = self.line().await?;
            match serde_json::from_slice(&line) {
                Ok(object @ Value::Object(_)) => return Ok(object),
                _ => noise += line.len() + 1,
            }
            if noise > MAX_NOISE_BYTES {
                let begin = plain(&String::from_utf8_lossy(&line[..line.len().min(80)]));
                let why = format!("its output does not follow the protocol: {begin:?}");
                return Err(self.stopped(why).await);
            }
        }
    }

    async fn line(&mut self) -> Result<Vec<u8>, Stopped> {
        let mut searched = 0;
        loop {
            let end = self.buffer.iter().skip(searched).position(|b| *b == b'\n');
            if let Some(end) = end {
                let mut line: Vec<u8> = self.buffer.drain(..=searched + end).collect();
                line.pop();
                return Ok(line);
            }
            searched = self.buffer.len();
            if searched > MAX_LINE_BYTES {
                let why = format!("it prints a line of more than {MAX_LINE_BYTES} bytes");
                return Err(self.stopped(why).await);
            }
            self.read().await?;
        }
    }

    /// Waits until the output ends with `end`, and clears it.
    pub(super) async fn until(&mut self, end: &str) -> Result<(), Stopped> {
        loop {
            let from = self.buffer.len().saturating_sub(end.len());
            if self.buffer.iter().skip(from).eq(end.as_bytes()) && !end.is_empty() {
                // The agent may be printing this text in the middle of its output.
                let more = timeout(Duration::from_millis(300), self.read_some()).await;
                match more {
                    Err(_) => {
                        self.buffer.clear();
                        return Ok(());
                    }
                    Ok(Ok(0)) | Ok(Err(_)) => return Err(self.exit_reason().await),
                    Ok(Ok(_)) => continue,
                }
            }
            if self.buffer.len() > MAX_LINE_BYTES {
                self.buffer.drain(..MAX_LINE_BYTES / 2);
            }
            self.read().await?;
        }
    }

    /// Waits for the process to end, skips its output, and returns its exit code. A daemon may keep
    /// the output open.
    pub(super) async fn finish(&mut self) -> Result<i32, Stopped> {
        let limit = self.patience.limit;
        let mut open = true;
        loop {
            let before = self.request_count();
            let mut bytes = [0; 1 << 14];
            let Child { group, stdout, .. } = self;
            let director = self.patience.director.clone();
            let next = async {
                tokio::select! {
                    biased;
                    why = director.gave_up() => Next::Refused(why),
                    read = stdout.read(&mut bytes), if open => Next::Printed(read.unwrap_or(0)),
                    status = group.wait() => Next::Ended(status),
                }
            };
            match timeout(limit, next).await {
                Ok(Next::Ended(Ok(status))) => return Ok(status.code().unwrap_or(-1)),
                Ok(Next::Ended(Err(e))) => {
                    return Err(Stopped(format!("failed to wait for it: {e}")));
                }
                Ok(Next::Refused(why)) => return Err(self.stopped(why).await),
                Ok(Next::Printed(0)) => open = false,
                Ok(Next::Printed(n)) => self.count_output(before, n).await?,
                Err(_) if self.request_count() != before => {}
                Err(_) if open => return Err(self.timed_out().await),
                Err(_) => {
                    return Err(self.stopped("it closed its output and did not end".into()).await);
                }
            }
        }
    }

    async fn read(&mut self) -> Result<(), Stopped> {
        match self.read_or_time_out().await? {
            0 => Err(self.exit_reason().await),
            _ => Ok(()),
        }
    }

    /// Reads once. Requests to the model reset the timeout.
    async fn read_or_time_out(&mut self) -> Result<usize, Stopped> {
        let Patience { limit, director } = self.patience.clone();
        loop {
            let before = self.request_count();
            let read = tokio::select! {
                biased;
                why = director.gave_up() => return Err(self.stopped(why).await),
                read = timeout(limit, self.read_some()) => read,
            };
            match read {
                Ok(Ok(n)) => {
                    self.count_output(before, n).await?;
                    return Ok(n);
                }
                Ok(Err(e)) => return Err(Stopped(format!("failed to read its output: {e}"))),
                Err(_) if self.request_count() != before => {}
                Err(_) => return Err(self.timed_out().await),
            }
        }
    }

    /// Returns the number of requests so far.
    fn request_count(&self) -> usize {
        self.patience.director.lock().exchanges.len()
    }

    async fn timed_out(&mut self) -> Stopped {
        let seconds = self.patience.limit.as_secs();
        let why = format!(
            "it neither printed anything nor sent a request for {seconds} s; if it is only slow, use a \
             larger --timeout"
        );
        self.stopped(why).await
    }

    /// Counts bytes that were printed after `asked` requests.
    async fn count_output(&mut self, asked: usize, bytes: usize) -> Result<(), Stopped> {
        let (before, printed) = self.chatter;
        self.chatter = (asked, if before == asked { printed + bytes } else { bytes });
        if self.chatter.1 <= MAX_OUTPUT_BYTES {
            return Ok(());
        }
        let why =
            format!("it prints more than {MAX_OUTPUT_BYTES} bytes without a request to its model");
        Err(self.stopped(why).await)
    }

    async fn read_some(&mut self) -> std::io::Result<usize> {
        let mut bytes = [0; 1 << 14];
        let n = self.stdout.read(&mut bytes).await?;
        self.buffer.extend(&bytes[..n]);
        Ok(n)
    }

    /// Explains why the process ended.
    async fn exit_reason(&mut self) -> Stopped {
        let why = match timeout(GRACE, self.group.wait()).await {
            Ok(Ok(status)) => format!("it ended with {status}"),
            _ => "it closed its standard output".into(),
        };
        self.stopped(why).await
    }

    /// Ends the process and adds the last lines of its standard error to a reason.
    pub(super) async fn stopped(&mut self, why: String) -> Stopped {
        self.group.kill();
        let last = plain(&self.stderr.last_lines(STDERR_LINES).await);
        Stopped(if last.is_empty() { why } else { format!("{why}; standard error:\n{last}") })
    }

    /// Gives the process a moment to end, then kills its group.
    pub(super) async fn end(&mut self) {
        self.close_input();
        let drain = async {
            while matches!(self.read_some().await, Ok(n) if n > 0) {
                self.buffer.clear();
            }
            let _ = self.group.wait().await;
        };
        let _ = timeout(GRACE, drain).await;
        self.group.kill();
    }
}

/// Removes colours and other control sequences.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            // A control sequence ends with a letter or a similar character.
            '\u{1b}' if chars.clone().next() == Some('[') => {
                let _ = chars.find(|c| c != &'[' && matches!(c, '@'..='~'));
            }
            '\n' => out.push(c),
            '\t' => out.push(' '),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}
