//! The process of a program: lines, limits and shutdown.

use std::fs::File;
use std::io::{Read, Write};
use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use super::limits::ExecLimits;
use ctxbench_os::{ProcessGroup, StderrTail};
use serde_json::value::RawValue;

/// Number of lines of standard error that are shown when the program fails.
const STDERR_LINES: usize = 8;
/// Time that a process has to end after `shutdown`.
const GRACE: Duration = Duration::from_secs(2);

pub(super) struct Process {
    group: ProcessGroup,
    /// `None` once it is closed.
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    stderr: StderrTail,
    limits: ExecLimits,
    /// Rest of the limits for the current answer.
    budget: ExecLimits,
    transcript: TranscriptLog,
}

const TRANSCRIPT_START: &str = "{\"from\":\"";

/// A JSON line for every message in either direction, with its sender.
struct TranscriptLog(Option<File>);

impl TranscriptLog {
    fn open(limits: &ExecLimits) -> Result<TranscriptLog, String> {
        let Some(path) = &limits.transcript else { return Ok(TranscriptLog(None)) };
        let failed = |why: String| format!("exec.transcript: {}: {why}", path.display());
        let open = || -> std::io::Result<Option<File>> {
            let mut file = File::options().create(true).read(true).append(true).open(path)?;
            let mut start = Vec::new();
            if file.metadata()?.is_file() {
                std::io::Read::by_ref(&mut file)
                    .take(TRANSCRIPT_START.len() as u64)
                    .read_to_end(&mut start)?;
            }
            let is_ours = start.is_empty() || start == TRANSCRIPT_START.as_bytes();
            Ok(is_ours.then_some(file))
        };
        match open() {
            Ok(Some(file)) => Ok(TranscriptLog(Some(file))),
            Ok(None) => Err(failed("not a transcript; name a new file".into())),
            Err(e) => Err(failed(format!("failed to open it: {e}"))),
        }
    }

    fn line(&mut self, from: &str, line: &[u8]) -> Result<(), String> {
        let Some(file) = self.0.as_mut().filter(|_| !line.is_empty()) else { return Ok(()) };
        let text = String::from_utf8_lossy(line);
        // Other lines become JSON strings.
        let json = match serde_json::from_str::<&RawValue>(text.trim_end()) {
            Ok(_) => text.trim_end().to_string(),
            Err(_) => serde_json::Value::from(text.trim_end()).to_string(),
        };
        writeln!(file, "{{\"from\":\"{from}\",\"line\":{json}}}")
            .map_err(|e| format!("exec.transcript: {e}"))
    }
}

impl Process {
    /// Starts a program without a shell, in the working folder and its own process group.
    pub(super) fn start(command: &[String], limits: ExecLimits) -> Result<Process, String> {
        let [program, arguments @ ..] = command else {
            return Err("the command after `exec:` is missing".into());
        };
        let transcript = TranscriptLog::open(&limits)?;
        let mut starting = Command::new(program);
        starting.args(arguments);
        starting.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut group = ProcessGroup::spawn(&mut starting).map_err(|e| {
            format!("cannot start `{program}`: {e}; is it installed, and is the path right?")
        })?;
        let piped = "all three streams are pipes";
        let stdin = group.take_stdin();
        let stdout = BufReader::with_capacity(1 << 16, group.take_stdout().expect(piped));
        let stderr = StderrTail::collect(group.take_stderr().expect(piped));
        let budget = limits.clone();
        Ok(Process { group, stdin, stdout, stderr, limits, budget, transcript })
    }

    pub(super) fn begin_answer(&mut self) {
        self.budget = self.limits.clone();
        // The answer itself is a line, too.
        self.budget.calls += 1;
    }

    /// Sends a line, if given, and reads the next. Both run at once, because a program may write before
    /// it reads.
    pub(super) async fn exchange(&mut self, line: Option<&[u8]>) -> Result<Vec<u8>, String> {
        let begin = Instant::now();
        self.transcript.line("ctxbench", line.unwrap_or_default())?;
        let (stdin, stdout, budget) = (&mut self.stdin, &mut self.stdout, &mut self.budget);
        let write = async {
            if let (Some(line), Some(stdin)) = (line, stdin) {
                // If the program has ended, its output explains more than this error.
                let _ = stdin.write_all(line).await;
                let _ = stdin.flush().await;
            }
        };
        let time = budget.timeout;
        let both = async { tokio::join!(write, next_line(stdout, budget, &self.limits)).1 };
        let read = timeout(time, both).await;
        let read = read.unwrap_or_else(|_| {
            let seconds = self.limits.timeout.as_secs_f64();
            Err(format!("it did not answer within {seconds} s (exec.timeout)"))
        });
        self.budget.timeout = self.budget.timeout.saturating_sub(begin.elapsed());
        match read {
            Ok(line) if line.is_empty() => Err(self.exit_reason().await),
            Ok(line) => self.transcript.line("program", &line).map(|()| line),
            Err(why) => Err(why),
        }
    }

    async fn exit_reason(&mut self) -> String {
        match timeout(GRACE, self.group.wait()).await {
            Ok(Ok(status)) => format!("it ended with {status}"),
            _ => "it closed its standard output".into(),
        }
    }

    /// Sends `shutdown`, waits for a moment, and ends the group. The answer is ignored.
    pub(super) async fn shut_down(&mut self, id: u64) {
        let line = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"shutdown\",\"params\":{{}}}}\n"
        );
        self.begin_answer();
        let answered = timeout(GRACE, self.exchange(Some(line.as_bytes()))).await;
        self.stdin = None;
        if answered.is_ok() {
            let _ = timeout(GRACE, self.group.wait()).await;
        }
        self.group.kill();
    }

    /// Ends the program and returns the last lines of its standard error.
    pub(super) async fn stderr_tail(mut self) -> String {
        self.group.kill();
        self.stderr.last_lines(STDERR_LINES).await
    }
}

/// Reads the next line that is not blank, without its end. Empty at the end of the stream.
async fn next_line(
    stdout: &mut BufReader<ChildStdout>,
    budget: &mut ExecLimits,
    limits: &ExecLimits,
) -> Result<Vec<u8>, String> {
    let mut line = Vec::new();
    loop {
        let read =
            stdout.fill_buf().await.map_err(|e| format!("failed to read its output: {e}"))?;
        let end = read.iter().position(|b| *b == b'\n');
        let taken = end.unwrap_or(read.len());
        budget.output = budget.output.checked_sub(taken as u64).ok_or_else(|| {
            format!("its answer has more than {} bytes (exec.output)", limits.output)
        })?;
        line.extend_from_slice(&read[..taken]);
        let over = read.is_empty();
        stdout.consume(taken + usize::from(end.is_some()));
        if end.is_some() {
            budget.calls = budget.calls.checked_sub(1).ok_or_else(|| {
                format!("it made more than {} calls for one answer (exec.calls)", limits.calls)
            })?;
        }
        match (end, line.iter().all(u8::is_ascii_whitespace)) {
            (Some(_), true) => line.clear(),
            (Some(_), false) => return Ok(line),
            (None, _) if over => return Ok(Vec::new()),
            (None, _) => {}
        }
    }
}
