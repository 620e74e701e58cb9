//! Runs that end early: by a signal, a kill or a full disk. Results are complete or unchanged, and
//! finished rows are not computed again.
#![cfg(unix)]

use std::collections::BTreeMap;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};

use ctxbench_util::rng::SplitMix64;

use crate::common::{CommandFolder, Run, ignored, is_ignored, signal};

const RUN: &str = "run login-bug-tight --transport direct --out out";

/// A run that has finished the row of `none` and waits for the server to write a summary of
/// `codex`.
struct WaitingRun {
    child: Child,
    _server: (TcpListener, TcpStream),
}

impl WaitingRun {
    /// Starts the run after commands of a shell.
    fn start(here: &CommandFolder, before: &str) -> WaitingRun {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        let line = format!(
            "{RUN} --strategy none --strategy codex --jobs 1 --cassette c.jsonl \
             --summarizer openai+http://{address}/v1#m"
        );
        let mut command = here.run(&line).after(before).command();
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let (connection, _) = server.accept().unwrap();
        WaitingRun { child, _server: (server, connection) }
    }

    /// Waits for the end with this exit code and returns the messages.
    fn ends_with(self, code: Option<i32>) -> String {
        let out = self.child.wait_with_output().unwrap();
        let messages = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), code, "{messages}");
        messages
    }
}

/// Returns the files of a folder without rows and times.
fn results(here: &CommandFolder) -> BTreeMap<String, Vec<u8>> {
    let mut files = here.files("out");
    let aside = |name: &str| name.starts_with(".rows/") || name.starts_with(".ctxbench-");
    files.retain(|name, _| !aside(name) && name != "timings.json");
    files
}

#[test]
fn run_ended_by_signal_exits_with_its_code_and_keeps_former_results() {
    for (name, code) in [("TERM", 143), ("INT", 130), ("HUP", 129)] {
        if is_ignored(&format!("SIG{name}")) {
            continue;
        }
        let here = CommandFolder::new();
        here.run(&format!("{RUN} --strategy reference")).ok();
        here.write("out/notes.txt", "mine");
        let before = results(&here);
        let run = WaitingRun::start(&here, "");
        signal(name, &run.child);
        let messages = run.ends_with(Some(code));
        let want = "Interrupted. Finished rows are kept in out/.rows; run the same command again";
        assert!(messages.contains(want), "{messages}");
        assert_eq!(results(&here), before);
    }
}

/// `nohup` and background jobs of a script start a program with ignored signals.
#[cfg(target_os = "linux")]
#[test]
fn run_with_inherited_ignored_signals_does_not_end_by_them() {
    let here = CommandFolder::new();
    let run = WaitingRun::start(&here, "trap '' HUP INT;");
    let status = std::fs::read_to_string(format!("/proc/{}/status", run.child.id())).unwrap();
    assert_eq!(ignored(&status) & 3, 3, "{status}");
    ["HUP", "INT", "TERM"].iter().for_each(|name| signal(name, &run.child));
    run.ends_with(Some(143));
}

#[cfg(target_os = "linux")]
#[test]
fn record_with_inherited_ignored_signal_leaves_it_ignored_for_the_program() {
    let here = CommandFolder::new();
    let run = here.run("record --out r.jsonl -- sh -c").arg("cat /proc/$PPID/status");
    let status = run.after("trap '' HUP;").ok().stdout;
    assert_eq!(ignored(&status) & 1, 1);
}

#[test]
fn killed_run_leaves_former_results_and_its_rows_for_the_next_run() {
    let here = CommandFolder::new();
    here.run(&format!("{RUN} --strategy reference")).ok();
    here.write("out/notes.txt", "mine");
    here.write("c.jsonl", "{\"type\":\"cassette\",\"version\":1}\n");
    let before = results(&here);
    let mut run = WaitingRun::start(&here, "");
    run.child.kill().unwrap();
    run.ends_with(None);
    assert_eq!(results(&here), before);

    let line = format!("{RUN} --strategy none --cassette offline:c.jsonl");
    let line = format!("{line} --summarizer openai+http://127.0.0.1:9/v1#m");
    here.run(&line).ok().stderr_contains(&["reused 1 row from out/.rows"]);
    let fresh = CommandFolder::new();
    fresh.write("c.jsonl", here.read("c.jsonl"));
    fresh.run(&line).ok();
    assert_eq!(here.read("out/notes.txt"), "mine");
    std::fs::remove_file(here.path("out/notes.txt")).unwrap();
    assert_eq!(results(&here), results(&fresh));
}

#[test]
fn second_run_into_same_folder_replaces_results_and_first_goes_on() {
    let here = CommandFolder::new();
    let run = WaitingRun::start(&here, "");
    here.run(&format!("{RUN} --strategy reference")).ok();
    let second = results(&here);
    signal("TERM", &run.child);
    run.ends_with(Some(143));
    assert_eq!(results(&here), second);
}

/// Prepares a command in which no file may exceed a number of blocks of 512 bytes.
fn with_full_disk(here: &CommandFolder, blocks: u64, line: &str) -> Run {
    here.run(line).after(&format!("trap '' XFSZ; ulimit -f {blocks};"))
}

#[test]
fn run_with_full_disk_keeps_rows_for_the_next_run() {
    let here = CommandFolder::new();
    let line = "run login-bug --strategy reference --strategy codex --transport direct --out out";
    here.run(line).ok();
    let whole = results(&here);
    let largest = std::fs::metadata(here.path("out/results.json")).unwrap().len();
    std::fs::remove_dir_all(here.path("out")).unwrap();
    // There is enough space for each row, but not for all of them indented.
    let out = with_full_disk(&here, largest / 512, line).fails_with(2);
    out.stderr_contains(&["finished rows are kept in out/.rows"]);
    assert!(!here.path("out/results.json").exists());
    here.run(line).ok().stderr_contains(&["reused 2 rows from out/.rows"]);
    assert_eq!(results(&here), whole);
}

#[test]
fn outputs_with_full_disk_stay_as_before() {
    let here = CommandFolder::new();
    here.run("run login-bug --strategy reference --transport direct --out out").ok();
    here.run("gate out --baseline base.json --store").ok();
    here.run("report out --format html -o page").ok();
    let before = here.files("");
    for line in ["gate out --baseline base.json --store", "report out --format html -o page"] {
        with_full_disk(&here, 1, line).fails_with(2).stderr_contains(&["has space"]);
        assert!(before == here.files(""), "`{line}` changed {:?}", here.files("").keys());
    }
}

#[test]
fn trace_with_full_disk_keeps_the_results() {
    let here = CommandFolder::new();
    let line = "run login-bug --strategy codex --transport direct --out out --trace /dev/full";
    here.fails(line, 2, &["--trace", "/dev/full", "; the results are in out"]);
    assert_eq!(here.csv("out/summary.csv").len(), 1);
}

#[test]
#[ignore = "nightly: kills at random moments"]
fn run_killed_at_random_moments_leaves_old_or_new_files() {
    let here = CommandFolder::new();
    let line = "run login-bug login-bug-tight --strategy codex --strategy none --transport direct \
                --out out";
    here.run(line).ok();
    let new = results(&here);
    here.run(&format!("{RUN} --strategy reference")).ok();
    let old = results(&here);
    let begin = std::time::Instant::now();
    here.run(line).ok();
    let longest = begin.elapsed().as_micros() as u64;
    let mut random = SplitMix64::new(7);
    for _ in 0..30 {
        std::fs::remove_dir_all(here.path("out")).unwrap();
        here.run(&format!("{RUN} --strategy reference")).ok();
        let mut command = here.run(line).command();
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_micros(random.below(longest)));
        child.kill().unwrap();
        child.wait().unwrap();
        let now = results(&here);
        // Each file is moved into place by itself. The marker may list the files of both.
        for (name, bytes) in now.iter().filter(|(name, _)| !name.starts_with(".ctxbench")) {
            let known = [&old, &new].iter().any(|r| r.get(name) == Some(bytes));
            assert!(known, "{name} is neither the former nor the new file");
        }
        here.run(line).ok();
        assert_eq!(results(&here), new);
    }
}
