//! Runs the `ctxbench` command in a temporary folder: `here.run("run login-bug").ok()`,
//! `here.run("run nothing").fails_with(2)`.

#[path = "../../../../tests/tests/common/jsonl.rs"]
#[allow(dead_code, reason = "shared with the tests of the libraries")]
mod jsonl;
#[path = "../../../../tests/tests/common/readings.rs"]
pub mod readings;
#[path = "../../../../tests/tests/common/recordings.rs"]
pub mod recordings;
#[path = "../../../../tests/tests/common/replayed.rs"]
#[allow(dead_code, reason = "shared with the tests of the libraries")]
pub mod replayed;
#[path = "../../../../tests/tests/common/sdk.rs"]
pub mod sdk;

use std::collections::BTreeMap;
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;
use tempfile::TempDir;

pub use jsonl::{json_lines, jsonl};

/// A Claude Code transcript: a question, a file read, an answer, and another question that needs
/// the file's port.
pub const CLAUDE_CODE: &str = include_str!("../../data/claude-code.jsonl");

/// A Codex rollout with the same messages.
pub const CODEX: &str = include_str!("../../data/codex.jsonl");

pub const SESSION: &str = include_str!("../../data/session.jsonl");

/// Options of a run with the reference only.
pub const REPLAY: &str = "--strategy reference --transport direct --out out";

pub type Row = BTreeMap<String, String>;

pub fn repository(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join(name)
}

/// Returns the path of a file in `tests/data`.
pub fn data(name: &str) -> PathBuf {
    repository("tests/data").join(name)
}

/// Builds the database that an SQL file of the recordings describes, and returns its path.
pub fn database(here: &CommandFolder, recording: &str) -> PathBuf {
    let sql = std::fs::read_to_string(data("recordings").join(recording)).unwrap();
    let path = here.path(&recording.replace('/', "-")).with_extension("db");
    rusqlite::Connection::open(&path).unwrap().execute_batch(&sql).unwrap();
    path
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::default());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

pub struct CommandFolder(TempDir);

impl CommandFolder {
    pub fn with(name: &str, content: impl AsRef<[u8]>) -> CommandFolder {
        let here = CommandFolder::new();
        here.write(name, content);
        here
    }

    pub fn new() -> CommandFolder {
        CommandFolder(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file and creates its parent folders.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    #[cfg(unix)]
    pub fn chmod(&self, name: &str, mode: u32) {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(self.path(name), mode).unwrap();
    }

    #[cfg(unix)]
    pub fn mode(&self, name: &str) -> u32 {
        let permissions = std::fs::metadata(self.path(name)).unwrap().permissions();
        std::os::unix::fs::PermissionsExt::mode(&permissions) & 0o777
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    pub fn json(&self, name: &str) -> Value {
        serde_json::from_str(&self.read(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    pub fn csv(&self, name: &str) -> Vec<Row> {
        let mut reader = csv::Reader::from_path(self.path(name)).unwrap();
        reader.deserialize().map(|r| r.unwrap()).collect()
    }

    /// Returns the first row of a strategy in the summary of a results folder.
    pub fn row(&self, out: &str, strategy: &str) -> Row {
        let mut rows = self.csv(&format!("{out}/summary.csv")).into_iter();
        rows.find(|r| r["strategy"] == strategy).unwrap_or_else(|| panic!("no row of {strategy}"))
    }

    /// Returns a column of the summary of a results folder.
    pub fn column(&self, out: &str, name: &str) -> Vec<String> {
        let rows = self.csv(&format!("{out}/summary.csv")).into_iter();
        rows.map(|mut row| row.remove(name).unwrap()).collect()
    }

    pub fn runs(&self, out: &str) -> Vec<Value> {
        self.json(&format!("{out}/results.json"))["runs"].as_array().unwrap().clone()
    }

    /// Returns the content of every file below `name` by its relative path.
    pub fn files(&self, name: &str) -> BTreeMap<String, Vec<u8>> {
        let mut out = BTreeMap::new();
        collect(&self.path(name), "", &mut out);
        out
    }

    /// Prepares a command line with arguments separated by spaces.
    pub fn run(&self, line: &str) -> Run {
        let mut command = Command::new(binary());
        command.args(line.split_whitespace()).current_dir(self.0.path()).stdin(Stdio::null());
        for name in ["COLUMNS", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
            command.env_remove(name);
        }
        Run { command, line: line.to_string() }
    }

    /// Runs a command that must exit with this code and print these messages.
    #[track_caller]
    pub fn fails(&self, line: &str, code: i32, words: &[&str]) -> Output {
        let out = self.run(line).fails_with(code);
        out.stderr_contains(words);
        out
    }

    /// Runs a command that must exit with 2, print these messages and no results, and change no
    /// file.
    #[track_caller]
    pub fn refuses(&self, line: &str, words: &[&str]) {
        let files = || {
            let mut files = self.files("");
            // Marks results as those of an earlier run.
            files.retain(|name, _| !name.ends_with("/.ctxbench-run.tmp"));
            files
        };
        let before = files();
        let out = self.fails(line, 2, words);
        assert_eq!(out.stdout, "", "`{line}` printed results");
        let after = files();
        assert!(before == after, "`{line}` changed something: {:?}", after.keys());
    }
}

fn collect(dir: &Path, below: &str, out: &mut BTreeMap<String, Vec<u8>>) {
    for entry in std::fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display())) {
        let path = entry.unwrap().path();
        let name = format!("{below}{}", path.file_name().unwrap().to_string_lossy());
        if path.is_dir() {
            collect(&path, &format!("{name}/"), out);
            out.insert(format!("{name}/"), Vec::new());
        } else {
            out.insert(name, std::fs::read(&path).unwrap());
        }
    }
}

pub fn signal(name: &str, process: &Child) {
    let id = process.id().to_string();
    assert!(Command::new("kill").args([&format!("-{name}"), &id]).status().unwrap().success());
}

/// A command about to run.
pub struct Run {
    command: Command,
    line: String,
}

#[derive(Debug)]
pub struct Output {
    /// Exit code; `None` = killed by a signal.
    pub code: Option<i32>,
    /// Results, written to standard output.
    pub stdout: String,
    /// Messages, written to standard error.
    pub stderr: String,
}

impl Run {
    /// Adds an argument, which may contain spaces.
    pub fn arg(mut self, arg: &str) -> Run {
        self.command.arg(arg);
        self.line = format!("{} {arg:?}", self.line);
        self
    }

    pub fn env(mut self, name: &str, value: &str) -> Run {
        self.command.env(name, value);
        self
    }

    pub fn piped(mut self, text: impl AsRef<[u8]>) -> Run {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_ref()).unwrap();
        file.rewind().unwrap();
        self.command.stdin(file);
        self
    }

    /// Writes the results to a file or a pipe.
    pub fn stdout(mut self, to: impl Into<Stdio>) -> Run {
        self.command.stdout(to);
        self
    }

    /// Starts the program by a shell after other commands, such as `ulimit -f 1;`.
    pub fn after(self, commands: &str) -> Run {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(format!("{commands} exec \"$0\" \"$@\""));
        shell.arg(self.command.get_program()).args(self.command.get_args());
        shell.current_dir(self.command.get_current_dir().unwrap()).stdin(Stdio::null());
        Run { command: shell, line: self.line }
    }

    /// Returns the command, for settings that this builder lacks.
    pub fn command(self) -> Command {
        self.command
    }

    /// Runs the command and requires exit code 0.
    pub fn ok(self) -> Output {
        self.fails_with(0)
    }

    /// Runs the command and requires this exit code.
    pub fn fails_with(self, code: i32) -> Output {
        let line = self.line.clone();
        let out = self.output();
        assert_eq!(out.code, Some(code), "ctxbench {line}\n{}\n{}", out.stdout, out.stderr);
        out
    }

    /// Runs the command and requires no panic.
    pub fn output(mut self) -> Output {
        let out = self.command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is UTF-8");
        let out =
            Output { code: out.status.code(), stdout: text(out.stdout), stderr: text(out.stderr) };
        assert!(!out.stderr.contains("panicked"), "ctxbench {}\n{}", self.line, out.stderr);
        out
    }
}

impl Output {
    #[track_caller]
    pub fn stderr_contains(&self, words: &[&str]) -> &Output {
        for w in words {
            assert!(self.stderr.contains(w), "{w:?} is missing in the messages:\n{}", self.stderr);
        }
        self
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}: {}", self.stdout))
    }

    /// Checks that neither results nor messages contain any of these texts.
    #[track_caller]
    pub fn lacks(&self, words: &[&str]) -> &Output {
        let all = format!("{}{}", self.stdout, self.stderr);
        for w in words {
            assert!(!all.contains(w), "{w:?} is in the output:\n{all}");
        }
        self
    }

    /// Checks that the results contain each of these texts.
    #[track_caller]
    pub fn prints(&self, words: &[&str]) -> &Output {
        for w in words {
            assert!(self.stdout.contains(w), "{w:?} is missing in the output:\n{}", self.stdout);
        }
        self
    }
}

/// Returns the path of the `ctxbench` program, or the one in `CTXBENCH_PROGRAM`.
pub fn binary() -> PathBuf {
    std::env::var_os("CTXBENCH_PROGRAM")
        .map_or_else(|| env!("CARGO_BIN_EXE_ctxbench").into(), PathBuf::from)
}

/// Returns whether this process, and so its children, ignore a signal: HUP under `nohup`, INT in
/// the background of a script. Only Linux reports it.
pub fn is_ignored(name: &str) -> bool {
    let bit = ["SIGHUP", "SIGINT"].iter().position(|n| *n == name);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = bit.is_some_and(|bit| ignored(&status) >> bit & 1 == 1);
    if ignored {
        println!("not tried: {name} is ignored here");
    }
    ignored
}

/// Returns the ignored signals from a Linux process status, one bit each, starting with HUP (1).
pub fn ignored(status: &str) -> u64 {
    let mask = status.lines().find_map(|l| l.strip_prefix("SigIgn:")).unwrap_or("0");
    u64::from_str_radix(mask.trim(), 16).unwrap()
}
