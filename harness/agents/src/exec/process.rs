//! The process of a program: lines, limits and shutdown.

use std::time::{Duration, Instant};

use ctxbench_os::{PipedProcess, shutdown};
use ctxbench_strategies::SpecError;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdout, Command};
use tokio::time::timeout;

/// Number of lines of standard error that are shown when the program fails.
const STDERR_LINES: usize = 8;
/// Time that a process has to end after `shutdown`.
const GRACE: Duration = Duration::from_secs(2);
/// Maximum size of one answer with its calls, bytes.
const MAX_OUTPUT_BYTES: usize = 64 << 20;
/// Maximum number of calls back during one answer.
const MAX_CALLS: usize = 10_000;

/// The settings `exec.*`, which are not passed to the program.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ExecLimits {
    /// Time for one answer, without the time that ctxbench needs for calls back.
    pub(super) timeout: Duration,
    /// Whether each session is run twice to check that the program is deterministic.
    pub(super) twice: bool,
}

impl Default for ExecLimits {
    fn default() -> ExecLimits {
        ExecLimits { timeout: Duration::from_secs(60), twice: false }
    }
}

impl ExecLimits {
    /// Applies a setting. Returns `false` for a setting of the program.
    pub(super) fn take(&mut self, name: &str, value: &str) -> Result<bool, SpecError> {
        let wrong = |expected| format!("`{name}` takes {expected}, not `{value}`");
        match name.strip_prefix("exec.") {
            None => return Ok(false),
            Some("timeout") => {
                let time = parse_duration(value);
                let time = time.ok_or_else(|| wrong("a time such as 60s or 5m"));
                self.timeout = time.map_err(SpecError::Program)?;
            }
            Some("twice") => {
                let twice = value.parse().map_err(|_| wrong("true or false"));
                self.twice = twice.map_err(SpecError::Program)?;
            }
            Some(_) => {
                let known = "exec.timeout and exec.twice";
                let why = format!("unknown setting `{name}`; known are {known}");
                return Err(SpecError::Program(why));
            }
        }
        Ok(true)
    }
}

/// Parses `60`, `60s` or `5m`, above 0 and at most a day.
fn parse_duration(text: &str) -> Option<Duration> {
    let (number, unit) = match text.strip_suffix('m') {
        Some(minutes) => (minutes, 60.0),
        None => (text.strip_suffix('s').unwrap_or(text), 1.0),
    };
    let seconds = number.parse::<f64>().ok()? * unit;
    (seconds > 0.0 && seconds <= 86_400.0).then(|| Duration::from_secs_f64(seconds))
}

pub(super) struct Process {
    process: PipedProcess,
    timeout: Duration,
    /// Rest of the limits for the current answer.
    budget: Budget,
}

#[derive(Default)]
struct Budget {
    time: Duration,
    bytes: usize,
    lines: usize,
}

impl Process {
    /// Starts a program without a shell, in the working folder and its own process group.
    pub(super) fn start(command: &[String], timeout: Duration) -> Result<Process, String> {
        let (program, arguments) = command.split_first().ok_or("the command is missing")?;
        shutdown::adopt_orphans();
        let process = PipedProcess::spawn(Command::new(program).args(arguments)).map_err(|e| {
            format!("cannot start `{program}`: {e}; is it installed, and is the path right?")
        })?;
        Ok(Process { process, timeout, budget: Budget::default() })
    }

    pub(super) fn begin_answer(&mut self) {
        // The answer itself is a line, too.
        self.budget = Budget { time: self.timeout, bytes: MAX_OUTPUT_BYTES, lines: MAX_CALLS + 1 };
    }

    /// Sends a line, if given, and reads the next. Both run at once, because a program may write before
    /// it reads.
    pub(super) async fn exchange(&mut self, line: Option<&[u8]>) -> Result<Vec<u8>, String> {
        let begin = Instant::now();
        let PipedProcess { stdin, stdout, .. } = &mut self.process;
        let write = async {
            if let (Some(line), Some(stdin)) = (line, stdin) {
                // If the program has ended, its output explains more than this error.
                let _ = stdin.write_all(line).await;
                let _ = stdin.flush().await;
            }
        };
        let time = self.budget.time;
        let both = async { tokio::join!(write, next_line(stdout, &mut self.budget)).1 };
        let read = timeout(time, both).await.unwrap_or_else(|_| {
            let seconds = self.timeout.as_secs_f64();
            Err(format!("it did not answer within {seconds} s (exec.timeout)"))
        });
        self.budget.time = self.budget.time.saturating_sub(begin.elapsed());
        match read {
            Ok(line) if line.is_empty() => Err(self.process.exit_reason().await),
            read => read,
        }
    }

    /// Sends `shutdown`, waits for a moment, and ends the group. The answer is ignored.
    pub(super) async fn shut_down(&mut self, id: u64) {
        let line = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"shutdown\",\"params\":{{}}}}\n"
        );
        self.begin_answer();
        if timeout(GRACE, self.exchange(Some(line.as_bytes()))).await.is_ok() {
            self.process.end().await;
        }
        self.process.group.kill();
    }

    /// Ends the program and returns the last lines of its standard error.
    pub(super) async fn stderr_tail(mut self) -> String {
        self.process.stop(STDERR_LINES).await
    }
}

/// Reads the next line that is not blank, without its end. Empty at the end of the stream.
async fn next_line(
    stdout: &mut BufReader<ChildStdout>,
    budget: &mut Budget,
) -> Result<Vec<u8>, String> {
    loop {
        let mut line = Vec::new();
        let mut rest = (&mut *stdout).take(budget.bytes as u64 + 1);
        let read = rest.read_until(b'\n', &mut line).await;
        read.map_err(|e| format!("failed to read its output: {e}"))?;
        let has_end = line.pop_if(|b| *b == b'\n').is_some();
        let bytes = budget.bytes.checked_sub(line.len());
        budget.bytes =
            bytes.ok_or_else(|| format!("its answer has more than {MAX_OUTPUT_BYTES} bytes"))?;
        if !has_end {
            return Ok(Vec::new());
        }
        let lines = budget.lines.checked_sub(1);
        budget.lines =
            lines.ok_or_else(|| format!("it made more than {MAX_CALLS} calls for one answer"))?;
        if !line.iter().all(u8::is_ascii_whitespace) {
            return Ok(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_exec_are_limits_and_others_are_the_programs() {
        let mut l = ExecLimits::default();
        assert_eq!(l.take("timeout", "5s"), Ok(false));
        assert_eq!(
            (l.take("exec.timeout", "1.5s"), l.take("exec.twice", "true")),
            (Ok(true), Ok(true))
        );
        assert_eq!(l, ExecLimits { timeout: Duration::from_millis(1_500), twice: true });
        for (name, value) in [
            ("exec.timeout", "0s"),
            ("exec.timeout", "soon"),
            ("exec.twice", "yes"),
            ("exec.x", "3"),
        ] {
            let e = l.take(name, value).unwrap_err().to_string();
            assert!(e.contains(name), "{e}");
        }
    }
}
