//! Runs that end early: by a signal, a kill or a full disk. Results are complete or unchanged, and
//! finished rows are not computed again.
#![cfg(unix)]

use std::collections::BTreeMap;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use ctxbench_util::rng::SplitMix64;

use crate::common::{CommandFolder, ignored};

const RUN: &str = "run login-bug-tight --transport direct --out out";

/// A run that has finished the row of `none` and waits for the server to write a summary of
/// `codex`.
struct WaitingRun {
    child: Child,
    _server: (TcpListener, TcpStream),
}

impl WaitingRun {
    /// Starts the run. `shell` is a command that starts the program, such as `nohup`.
    fn start(here: &CommandFolder, shell: Option<&str>) -> WaitingRun {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        let line = format!(
            "{RUN} --strategy none --strategy codex --jobs 1 --cassette c.jsonl \
             --summarizer openai+http://{address}/v1#m"
        );
        let ours = here.run(&line).command();
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("{} exec \"$0\" \"$@\"", shell.unwrap_or_default()));
        command.arg(ours.get_program()).args(ours.get_args()).current_dir(here.path(""));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        let (connection, _) = server.accept().unwrap();
        WaitingRun { child, _server: (server, connection) }
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
    }

    /// Waits for the end and returns the exit code and the messages.
    fn finish(self) -> (Option<i32>, String) {
        let out = self.child.wait_with_output().unwrap();
        (out.status.code(), String::from_utf8(out.stderr).unwrap())
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
    for (signal, code) in [("-TERM", 143), ("-INT", 130), ("-HUP", 129)] {
        if crate::common::is_ignored(&format!("SIG{}", &signal[1..])) {
            continue;
        }
        let here = CommandFolder::new();
        here.run(&format!("{RUN} --strategy reference")).ok();
        here.write("out/notes.txt", "mine");
        let before = results(&here);
        let run = WaitingRun::start(&here, None);
        run.signal(signal);
        let (ended, messages) = run.finish();
        assert_eq!(ended, Some(code), "{messages}");
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
    let run = WaitingRun::start(&here, Some("trap '' HUP INT;"));
    let status = std::fs::read_to_string(format!("/proc/{}/status", run.child.id())).unwrap();
    assert_eq!(ignored(&status) & 3, 3, "{status}");
    ["-HUP", "-INT", "-TERM"].iter().for_each(|signal| run.signal(signal));
    let (code, messages) = run.finish();
    assert_eq!(code, Some(143), "{messages}");
}

#[cfg(target_os = "linux")]
#[test]
fn record_with_inherited_ignored_signal_leaves_it_ignored_for_the_program() {
    let here = CommandFolder::new();
    let ours = here.run("record --out r.jsonl -- sh -c").command();
    let mut shell = Command::new("sh");
    shell.arg("-c").arg("trap '' HUP; exec \"$0\" \"$@\"");
    shell.arg(ours.get_program()).args(ours.get_args()).arg("cat /proc/$PPID/status");
    let out = shell.current_dir(here.path("")).stdin(Stdio::null()).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    assert_eq!(ignored(&String::from_utf8_lossy(&out.stdout)) & 1, 1);
}

#[test]
fn killed_run_leaves_former_results_and_its_rows_for_the_next_run() {
    let here = CommandFolder::new();
    here.run(&format!("{RUN} --strategy reference")).ok();
    here.write("out/notes.txt", "mine");
    here.write("c.jsonl", "{\"type\":\"cassette\",\"version\":1}\n");
    let before = results(&here);
    let mut run = WaitingRun::start(&here, None);
    run.child.kill().unwrap();
    run.finish();
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
    let run = WaitingRun::start(&here, None);
    here.run(&format!("{RUN} --strategy reference")).ok();
    let second = results(&here);
    run.signal("-TERM");
    let (code, messages) = run.finish();
    assert_eq!(code, Some(143), "{messages}");
    assert_eq!(results(&here), second);
}

/// Runs a command in which no file may exceed a number of blocks of 512 bytes.
fn with_full_disk(here: &CommandFolder, blocks: u64, line: &str) -> (Option<i32>, String) {
    let ours = here.run(line).command();
    let mut limited = Command::new("sh");
    limited.arg("-c").arg(format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\""));
    limited.arg(ours.get_program()).args(ours.get_args());
    let out = limited.current_dir(here.path("")).stdin(Stdio::null()).output().unwrap();
    (out.status.code(), String::from_utf8_lossy(&out.stderr).into_owned())
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
    let (code, messages) = with_full_disk(&here, largest / 512, line);
    assert_eq!(code, Some(2), "{messages}");
    assert!(messages.contains("finished rows are kept in out/.rows"), "{messages}");
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
        let (code, messages) = with_full_disk(&here, 1, line);
        assert_eq!(code, Some(2), "{line}: {messages}");
        assert!(messages.contains("has space"), "{messages}");
        assert!(before == here.files(""), "`{line}` changed {:?}", here.files("").keys());
    }
}

#[test]
fn trace_with_full_disk_keeps_the_results() {
    let here = CommandFolder::new();
    let line = "run login-bug --strategy codex --transport direct --out out --trace /dev/full";
    here.run(line).fails_with(2).stderr_contains(&[
        "--trace",
        "/dev/full",
        "; the results are in out",
    ]);
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
