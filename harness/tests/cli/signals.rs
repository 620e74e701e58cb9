//! Commands that are told to end: by whom they may be, and what they say. Those that are killed
//! stand in `kills.rs`.
#![cfg(unix)]

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use crate::common::{Folder, ignored};

fn send(signal: &str, to: &Child) {
    let sent = Command::new("kill").args([signal, &to.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

/// How a command ended, and what it said.
fn end(of: Child) -> (Option<i32>, String) {
    let out = of.wait_with_output().unwrap();
    (out.status.code(), String::from_utf8(out.stderr).unwrap())
}

/// The command, started by a shell that ignores these signals.
fn ignoring(here: &Folder, signals: &str, line: &str) -> Command {
    let ours = here.run(line).command();
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(format!("trap '' {signals}; exec \"$0\" \"$@\""));
    shell.arg(ours.get_program()).args(ours.get_args());
    shell.current_dir(here.path("")).stdin(Stdio::null());
    shell
}

/// A run that waits for a server, which takes a request and never answers.
fn waiting_run() -> (TcpListener, String) {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let line = format!(
        "run login-bug-tight --strategy codex --transport direct --out out --cassette c.jsonl \
         --summarizer openai+http://{}/v1#m",
        server.local_addr().unwrap()
    );
    (server, line)
}

#[test]
fn a_run_that_is_told_to_end_says_what_is_kept_and_until_then_its_folder_is_its_own() {
    let here = Folder::new();
    let (server, line) = waiting_run();
    let mut run = here.run(&line).command();
    let run = run.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let (_asked, _) = server.accept().unwrap();
    let second = "run login-bug --strategy reference --transport direct --out out";
    here.run(second).fails_with(2).says(&["another run into this folder is going on"]);
    send("-TERM", &run);
    let (code, told) = end(run);
    assert_eq!(code, Some(143), "{told}");
    let want = "broken off; finished rows are kept in out.partial, and the same command goes on";
    assert!(told.contains(want), "{told}");
    here.run(second).ok();
}

/// As `nohup` and a script start what shall go on without them.
#[cfg(target_os = "linux")]
#[test]
fn a_signal_that_was_ignored_when_we_were_started_does_not_end_us() {
    let here = Folder::new();
    let (server, line) = waiting_run();
    let mut run = ignoring(&here, "HUP INT", &line);
    let run = run.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let (_asked, _) = server.accept().unwrap();
    let status = std::fs::read_to_string(format!("/proc/{}/status", run.id())).unwrap();
    assert_eq!(ignored(&status) & 3, 3, "{status}");
    ["-HUP", "-INT", "-TERM"].iter().for_each(|signal| send(signal, &run));
    let (code, said) = end(run);
    assert_eq!(code, Some(143), "{said}");
    assert!(said.contains("broken off; finished rows are kept in out.partial"), "{said}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_recorder_passes_on_no_signal_that_was_ignored_when_it_was_started() {
    let here = Folder::new();
    let mut record = ignoring(&here, "HUP", "record --out r.jsonl -- sh -c");
    let out = record.arg("cat /proc/$PPID/status").output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    // Whoever started these tests may have INT ignored.
    assert_eq!(ignored(&String::from_utf8_lossy(&out.stdout)) & 1, 1);
}

#[test]
fn a_run_that_is_told_to_end_behind_its_results_says_where_they_are_and_what_is_missing() {
    let here = Folder::new();
    // Whoever writes into a pipe waits for a reader.
    let piped = here.path("t.jsonl");
    assert!(Command::new("mkfifo").arg(&piped).status().unwrap().success());
    let line = "run login-bug --strategy codex --transport direct --out out --trace t.jsonl \
                --status s.jsonl";
    let mut run = here.run(line).command();
    let mut run = run.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    while !here.path("out").exists() && run.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    send("-TERM", &run);
    let (code, said) = end(run);
    assert_eq!(code, Some(143), "{said}");
    let want = "broken off when the results were in out; --trace t.jsonl and --status s.jsonl were \
                not written, and the same command writes them";
    assert!(said.contains(want), "{said}");
    here.json("out/results.json");
    assert!(!here.path("s.jsonl").exists());

    let reader = std::thread::spawn(move || std::fs::read_to_string(piped).unwrap());
    here.run(line).ok();
    assert!(reader.join().unwrap().lines().count() > 0 && !here.read("s.jsonl").is_empty());
    assert!(!here.path("out.partial").exists());
}
