//! The process of a program: its lines, its limits, and its end.

use std::fs::File;
use std::io::Write;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::limits::Limits;
use crate::groups;
use serde_json::value::RawValue;

/// Of standard error this much of the end is kept, bytes.
const STDERR_KEPT: usize = 4_096;
/// This many of its last lines are shown.
const STDERR_LINES: usize = 8;
/// How long a process that was told to end may take, and how long its last words are waited for.
const GRACE: Duration = Duration::from_secs(2);

pub(super) struct Process {
    child: Child,
    /// `None` once it is told that nothing more comes.
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    stderr: Arc<Mutex<Vec<u8>>>,
    listens: JoinHandle<()>,
    limits: Limits,
    /// What is left of the limits until the present answer.
    left: Left,
    transcript: Transcript,
}

/// Every line that goes either way, as JSON with who said it.
struct Transcript(Option<File>);

impl Transcript {
    fn open(limits: &Limits) -> Result<Transcript, String> {
        let Some(path) = &limits.transcript else { return Ok(Transcript(None)) };
        let file = File::options().create(true).append(true).open(path);
        let wrong = |e| format!("exec.transcript: cannot write {}: {e}", path.display());
        file.map(|file| Transcript(Some(file))).map_err(wrong)
    }

    fn line(&mut self, from: &str, line: &[u8]) -> Result<(), String> {
        let Some(file) = self.0.as_mut().filter(|_| !line.is_empty()) else { return Ok(()) };
        let text = String::from_utf8_lossy(line);
        // What is no JSON stands as text.
        let said = match serde_json::from_str::<&RawValue>(text.trim_end()) {
            Ok(_) => text.trim_end().to_string(),
            Err(_) => serde_json::Value::from(text.trim_end()).to_string(),
        };
        writeln!(file, "{{\"from\":\"{from}\",\"line\":{said}}}")
            .map_err(|e| format!("exec.transcript: {e}"))
    }
}

/// What is left of the limits of one answer.
struct Left {
    time: Duration,
    bytes: u64,
    lines: u64,
}

impl Process {
    /// Starts a program without a shell, in the working folder and a process group of its own.
    pub(super) fn start(command: &[String], limits: Limits) -> Result<Process, String> {
        let [program, arguments @ ..] = command else {
            return Err("there is no command behind `exec:`".into());
        };
        let transcript = Transcript::open(&limits)?;
        let mut starting = Command::new(program);
        starting.args(arguments).kill_on_drop(true);
        starting.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        #[cfg(unix)]
        starting.process_group(0);
        let mut child = starting.spawn().map_err(|e| {
            format!("cannot start `{program}`: {e}; is it installed, and is the path right?")
        })?;
        let piped = "all three streams are pipes";
        let stdin = child.stdin.take();
        let stdout = BufReader::with_capacity(1 << 16, child.stdout.take().expect(piped));
        let stderr = Arc::default();
        let listens = tokio::spawn(listen(child.stderr.take().expect(piped), Arc::clone(&stderr)));
        if let Some(id) = child.id() {
            groups::begun(id);
        }
        let left = Left::of(&limits);
        Ok(Process { child, stdin, stdout, stderr, listens, limits, left, transcript })
    }

    /// A new answer is asked for.
    pub(super) fn begin_answer(&mut self) {
        self.left = Left::of(&self.limits);
    }

    /// Sends a line, if there is one, and reads the next. Both at once: a program may be writing
    /// while it is written to.
    pub(super) async fn exchange(&mut self, line: Option<&[u8]>) -> Result<Vec<u8>, String> {
        let begin = Instant::now();
        self.transcript.line("ctxbench", line.unwrap_or_default())?;
        let (stdin, stdout, left) = (&mut self.stdin, &mut self.stdout, &mut self.left);
        let write = async {
            if let (Some(line), Some(stdin)) = (line, stdin) {
                // A program that has gone says more by what it leaves on standard output or error.
                let _ = stdin.write_all(line).await;
                let _ = stdin.flush().await;
            }
        };
        let time = left.time;
        let both = async { tokio::join!(write, next_line(stdout, left, &self.limits)).1 };
        let read = timeout(time, both).await;
        let read = read.unwrap_or_else(|_| {
            let seconds = self.limits.timeout.as_secs_f64();
            Err(format!("it did not answer within {seconds} s (exec.timeout)"))
        });
        self.left.time = self.left.time.saturating_sub(begin.elapsed());
        match read {
            Ok(line) if line.is_empty() => Err(self.gone().await),
            Ok(line) => self.transcript.line("program", &line).map(|()| line),
            Err(why) => Err(why),
        }
    }

    /// How a process ended that has closed its standard output.
    async fn gone(&mut self) -> String {
        match timeout(GRACE, self.child.wait()).await {
            Ok(Ok(status)) => format!("it ended with {status}"),
            _ => "it closed its standard output".into(),
        }
    }

    /// Tells it that the session is over, gives it a moment, and ends its group. What it says to
    /// that changes nothing.
    pub(super) async fn shut_down(&mut self, id: u64) {
        let line = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"shutdown\",\"params\":{{}}}}\n"
        );
        self.begin_answer();
        let answered = timeout(GRACE, self.exchange(Some(line.as_bytes()))).await;
        self.stdin = None;
        if answered.is_ok() {
            let _ = timeout(GRACE, self.child.wait()).await;
        }
        self.kill();
    }

    /// The last lines of its standard error; it is over.
    pub(super) async fn last_words(mut self) -> String {
        self.kill();
        // Whatever holds the pipe open beyond the group is not waited for.
        let _ = timeout(GRACE, &mut self.listens).await;
        let kept = self.stderr.lock().map(|k| k.clone()).unwrap_or_default();
        let text = String::from_utf8_lossy(&kept).into_owned();
        let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
        lines[lines.len().saturating_sub(STDERR_LINES)..].join("\n")
    }

    fn kill(&mut self) {
        if let Some(id) = self.child.id() {
            groups::end(id);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        self.listens.abort();
    }
}

impl Left {
    fn of(limits: &Limits) -> Left {
        Left { time: limits.timeout, bytes: limits.output, lines: limits.calls + 1 }
    }
}

/// Keeps the end of what is written to standard error.
async fn listen(mut stderr: ChildStderr, kept: Arc<Mutex<Vec<u8>>>) {
    let mut buffer = [0; 4_096];
    while let Ok(n @ 1..) = stderr.read(&mut buffer).await {
        let Ok(mut kept) = kept.lock() else { return };
        kept.extend_from_slice(&buffer[..n]);
        let over = kept.len().saturating_sub(STDERR_KEPT);
        kept.drain(..over);
    }
}

/// The next line without its end; empty at the end of the stream. Blank lines are passed over.
async fn next_line(
    stdout: &mut BufReader<ChildStdout>,
    left: &mut Left,
    limits: &Limits,
) -> Result<Vec<u8>, String> {
    let mut line = Vec::new();
    loop {
        let read = stdout.fill_buf().await.map_err(|e| format!("its output is lost: {e}"))?;
        let end = read.iter().position(|b| *b == b'\n');
        let taken = end.unwrap_or(read.len());
        left.bytes = left.bytes.checked_sub(taken as u64).ok_or_else(|| {
            format!("its answer has more than {} bytes (exec.output)", limits.output)
        })?;
        line.extend_from_slice(&read[..taken]);
        let over = read.is_empty();
        stdout.consume(taken + usize::from(end.is_some()));
        if end.is_some() {
            left.lines = left.lines.checked_sub(1).ok_or_else(|| {
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
