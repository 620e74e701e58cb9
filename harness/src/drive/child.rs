//! The agent's process: lines in, lines out, patience, and an end that nothing survives.

use std::collections::VecDeque;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use super::director::Shared;
use super::scratch::Scratch;
use crate::process_group::{ProcessGroup, StderrTail};

/// Longest line that an agent may print, bytes.
const MOST_LINE: usize = 64 << 20;
/// Of what it prints between two messages, this much may be no message, bytes.
const MOST_NOISE: usize = 4 << 20;
/// Between two requests to its model an agent may print this much, bytes.
const MOST_CHATTER: usize = 256 << 20;
const STDERR_LINES: usize = 6;
/// How long an agent may take to end once it is told to, and how long its last words are waited for.
const GRACE: Duration = Duration::from_secs(2);

/// A running agent.
pub(super) struct Child {
    group: ProcessGroup,
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    /// Read and not yet taken.
    buffer: VecDeque<u8>,
    stderr: StderrTail,
    patience: Patience,
    /// Requests when they were last counted, and bytes printed since there were so many.
    chatter: (usize, usize),
}

/// How long an agent may be silent: neither a line nor a request.
#[derive(Clone)]
pub(super) struct Patience {
    pub(super) limit: Duration,
    pub(super) director: Shared,
}

/// What a process does next.
enum Next {
    /// It prints so many bytes; none = it has closed its output.
    Printed(usize),
    Ended(std::io::Result<std::process::ExitStatus>),
    /// Its model answers nothing more, and why.
    Refused(String),
}

/// Why an agent cannot go on.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Stopped(pub(super) String);

impl Child {
    /// Starts a command in the project, in a process group of its own and with nothing of our
    /// environment but PATH.
    pub(super) fn start(
        command: &[String],
        scratch: &Scratch,
        patience: Patience,
    ) -> Result<Child, Stopped> {
        let [program, arguments @ ..] = command else {
            return Err(Stopped("its description names no command".into()));
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

    /// Nothing more will be written to it.
    pub(super) fn close_input(&mut self) {
        self.stdin = None;
    }

    /// Writes bytes to it.
    pub(super) async fn write(&mut self, bytes: &[u8]) -> Result<(), Stopped> {
        let Some(stdin) = &mut self.stdin else { return Ok(()) };
        let sent = async {
            stdin.write_all(bytes).await?;
            stdin.flush().await
        };
        match timeout(self.patience.limit, sent).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(self.gone().await),
            Err(_) => Err(Stopped("it reads nothing of what it is told (--timeout)".into())),
        }
    }

    /// Writes a JSON line to it.
    pub(super) async fn send(&mut self, message: &Value) -> Result<(), Stopped> {
        self.write(format!("{message}\n").as_bytes()).await
    }

    /// The next line that is a JSON object; other lines are passed over.
    pub(super) async fn receive(&mut self) -> Result<Value, Stopped> {
        let mut noise = 0;
        loop {
            let line = self.line().await?;
            match serde_json::from_slice(&line) {
                Ok(object @ Value::Object(_)) => return Ok(object),
                _ => noise += line.len() + 1,
            }
            if noise > MOST_NOISE {
                let begin = plain(&String::from_utf8_lossy(&line[..line.len().min(80)]));
                let why = format!("what it prints is not its protocol, as in {begin:?}");
                return Err(self.told(why).await);
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
            if searched > MOST_LINE {
                let why = format!("it prints a line of more than {MOST_LINE} bytes");
                return Err(self.told(why).await);
            }
            self.read().await?;
        }
    }

    /// Waits until what it has printed ends with a text, and takes it.
    pub(super) async fn until(&mut self, end: &str) -> Result<(), Stopped> {
        loop {
            let from = self.buffer.len().saturating_sub(end.len());
            if self.buffer.iter().skip(from).eq(end.as_bytes()) && !end.is_empty() {
                // It may be in the midst of printing the same.
                let more = timeout(Duration::from_millis(300), self.read_some()).await;
                match more {
                    Err(_) => {
                        self.buffer.clear();
                        return Ok(());
                    }
                    Ok(Ok(0)) | Ok(Err(_)) => return Err(self.gone().await),
                    Ok(Ok(_)) => continue,
                }
            }
            if self.buffer.len() > MOST_LINE {
                self.buffer.drain(..MOST_LINE / 2);
            }
            self.read().await?;
        }
    }

    /// Waits for the process to end, and passes over what it prints until then. Returns its exit
    /// code. A daemon that it leaves may keep its output open.
    pub(super) async fn finish(&mut self) -> Result<i32, Stopped> {
        let limit = self.patience.limit;
        let mut open = true;
        loop {
            let before = self.asked();
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
                Ok(Next::Ended(Err(e))) => return Err(Stopped(format!("it is lost: {e}"))),
                Ok(Next::Refused(why)) => return Err(self.told(why).await),
                Ok(Next::Printed(0)) => open = false,
                Ok(Next::Printed(n)) => self.chatters(before, n).await?,
                Err(_) if self.asked() != before => {}
                Err(_) if open => return Err(self.silent().await),
                Err(_) => {
                    return Err(self.told("it closed its output and did not end".into()).await);
                }
            }
        }
    }

    async fn read(&mut self) -> Result<(), Stopped> {
        match self.patient().await? {
            0 => Err(self.gone().await),
            _ => Ok(()),
        }
    }

    /// Reads once; while it makes requests, it may print nothing.
    async fn patient(&mut self) -> Result<usize, Stopped> {
        let Patience { limit, director } = self.patience.clone();
        loop {
            let before = self.asked();
            let read = tokio::select! {
                biased;
                why = director.gave_up() => return Err(self.told(why).await),
                read = timeout(limit, self.read_some()) => read,
            };
            match read {
                Ok(Ok(n)) => {
                    self.chatters(before, n).await?;
                    return Ok(n);
                }
                Ok(Err(e)) => return Err(Stopped(format!("its output is lost: {e}"))),
                Err(_) if self.asked() != before => {}
                Err(_) => return Err(self.silent().await),
            }
        }
    }

    /// Requests that it has made so far.
    fn asked(&self) -> usize {
        self.patience.director.lock().exchanges.len()
    }

    async fn silent(&mut self) -> Stopped {
        let seconds = self.patience.limit.as_secs();
        let why = format!(
            "it neither said nor asked anything for {seconds} s; if it only is slow, to start or to \
             work, a larger --timeout gives it more"
        );
        self.told(why).await
    }

    /// Takes note of bytes that it has printed after so many requests.
    async fn chatters(&mut self, asked: usize, bytes: usize) -> Result<(), Stopped> {
        let (before, printed) = self.chatter;
        self.chatter = (asked, if before == asked { printed + bytes } else { bytes });
        if self.chatter.1 <= MOST_CHATTER {
            return Ok(());
        }
        let why =
            format!("it prints more than {MOST_CHATTER} bytes without asking its model anything");
        Err(self.told(why).await)
    }

    async fn read_some(&mut self) -> std::io::Result<usize> {
        let mut bytes = [0; 1 << 14];
        let n = self.stdout.read(&mut bytes).await?;
        self.buffer.extend(&bytes[..n]);
        Ok(n)
    }

    /// Why it is not there any more.
    async fn gone(&mut self) -> Stopped {
        let why = match timeout(GRACE, self.group.wait()).await {
            Ok(Ok(status)) => format!("it ended with {status}"),
            _ => "it closed its standard output".into(),
        };
        self.told(why).await
    }

    /// A reason with the last lines of its standard error.
    pub(super) async fn told(&mut self, why: String) -> Stopped {
        self.group.kill();
        let last = plain(&self.stderr.last_lines(STDERR_LINES).await);
        Stopped(if last.is_empty() { why } else { format!("{why}; its last words:\n{last}") })
    }

    /// Gives it a moment to end by itself, then ends its group.
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

/// What an agent prints as it can be shown: without colours and whatever else steers a terminal.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            // The rest of a control sequence ends with a letter or the like.
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
