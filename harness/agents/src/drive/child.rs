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
/// Output that is kept for an id and for error messages, bytes.
const MAX_KEPT_BYTES: usize = 16 << 10;
const STDERR_LINES: usize = 6;
const STDOUT_LINES: usize = 3;
const MAX_SHOWN_BYTES: usize = 1_000;

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
        let program = command.first().ok_or(Stopped("its description has no command".into()))?;
        let whole = scratch.loopback().map(|l| l.command(command));
        let arguments = whole.as_deref().unwrap_or(command);
        let mut starting = Command::new(&arguments[0]);
        starting.args(&arguments[1..]).current_dir(scratch.project());
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

    /// Waits for the process to end, and returns its exit code and the id that it printed after a
    /// text. A daemon may keep the output open.
    pub(super) async fn finish(
        &mut self,
        before_id: Option<&str>,
    ) -> Result<(i32, Option<String>), Stopped> {
        let mut found = None;
        loop {
            let next = self.next(true).await?;
            let has_ended = matches!(next, Next::Ended(_));
            if let Some(before) = before_id.filter(|_| found.is_none()) {
                let end = if has_ended { "\n" } else { "" };
                found = id_after(&(String::from_utf8_lossy(&self.buffer) + end), before);
            }
            if let Next::Ended(status) = next {
                return Ok((status.code().unwrap_or(-1), found));
            }
            let over = self.buffer.len().saturating_sub(MAX_KEPT_BYTES);
            self.buffer.drain(..over);
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
        let printed = last_words(&self.buffer);
        if !printed.is_empty() {
            why += &format!("; standard output:\n{printed}");
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

/// Returns the id after a text: letters, digits, `-`, `_` and `.`, none of which makes it an option.
/// It ends before another character.
fn id_after(text: &str, before: &str) -> Option<String> {
    let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    text.split(before).skip(1).find_map(|rest| {
        let end = rest.find(|c| !letter(c))?;
        let id = &rest[..end];
        (!id.is_empty() && !id.starts_with('-')).then(|| id.to_string())
    })
}

/// Returns the last lines of standard output that are no messages of a protocol.
fn last_words(output: &[u8]) -> String {
    let text = plain(&String::from_utf8_lossy(output));
    let from = text.ceil_char_boundary(text.len().saturating_sub(MAX_SHOWN_BYTES));
    // A line that is cut may be one of the protocol.
    let text =
        if from == 0 { &text[..] } else { text[from..].split_once('\n').map_or("", |(_, t)| t) };
    let is_message = |line: &str| line.trim_start().starts_with(['{', '[']);
    let lines = text.lines().filter(|l| !l.trim().is_empty() && !is_message(l));
    let lines: Vec<&str> = lines.collect();
    lines[lines.len().saturating_sub(STDOUT_LINES)..].join("\n")
}

/// Removes colours and other control sequences.
fn plain(text: &str) -> String {
    let text = strip_str(text).to_string().replace('\t', " ");
    text.chars().filter(|c| *c == '\n' || !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_after_text_is_never_an_option() {
        let of = |text: &str| id_after(text, "session: ");
        assert_eq!(of("session: a-1_b.2\n").as_deref(), Some("a-1_b.2"));
        assert_eq!(of("session: --yolo\nsession: x\n").as_deref(), Some("x"));
        // The rest may not have arrived.
        assert_eq!(of("session: a-1"), None);
        assert_eq!(of("no id"), None);
        assert_eq!(id_after("{\"session_id\":\"7f\"}", "session_id\":\"").as_deref(), Some("7f"));
    }

    #[test]
    fn last_words_are_lines_without_messages_of_a_protocol() {
        let output = b"one\ntwo\n\n{\"id\": 1}\n\x1b[31mthree\x1b[0m\nfour\n";
        assert_eq!(last_words(output), "two\nthree\nfour");
    }
}
