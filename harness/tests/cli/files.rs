//! Outputs that would overwrite inputs or user files, full disks, and unreadable inputs.
#![cfg(unix)]

use crate::common;

use std::fs::File;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Stdio};

use common::{CLAUDE_CODE, CODEX, CommandFolder, SESSION, jsonl};
use serde_json::json;

const TWO: &str = "--strategy reference --strategy codex --transport direct --out out";

#[test]
fn output_that_is_an_input_is_refused_under_any_name() {
    let here = CommandFolder::new();
    here.write("r.jsonl", SESSION);
    here.write("all/r.jsonl", SESSION);
    symlink("r.jsonl", here.path("link.jsonl")).unwrap();
    std::fs::hard_link(here.path("r.jsonl"), here.path("hard.jsonl")).unwrap();
    symlink("all", here.path("same")).unwrap();
    for option in ["--trace", "--status"] {
        for name in ["r.jsonl", "./all/../r.jsonl", "link.jsonl", "hard.jsonl"] {
            let line = format!("run r.jsonl {option} {name} {TWO}");
            here.refuses(&line, &[option, name, "would overwrite the input r.jsonl itself"]);
        }
        here.refuses(
            &format!("run all {option} same/r.jsonl {TWO}"),
            &["would overwrite the input all/r.jsonl itself"],
        );
        // A file that an argument refers to.
        here.refuses(
            &format!("run login-bug {option} r.jsonl {TWO}"),
            &[option, "r.jsonl exists and is not a file that ctxbench wrote"],
        );
    }
    here.refuses("import r.jsonl -o hard.jsonl", &["would overwrite the input r.jsonl itself"]);
}

#[test]
fn output_that_an_input_refers_to_is_refused() {
    let here = CommandFolder::new();
    here.write("said.txt", "read it");
    here.write("base.toml", "id = \"base\"\n[[step]]\ntype = \"user\"\nfile = \"said.txt\"\n");
    here.write("top.toml", "id = \"top\"\nextends = \"base.toml\"\n");
    for option in ["--trace", "--status"] {
        for name in ["said.txt", "base.toml"] {
            let line = format!("run top.toml {option} {name} {TWO}");
            here.refuses(&line, &[option, "would overwrite the input", name]);
        }
    }
    let spoken = |agent: bool, kind: &str, id: &str, parent: &str| {
        json!({"type": kind, "uuid": id, "parentUuid": parent, "sessionId": "s",
            "isSidechain": agent, "timestamp": "2026-01-01T00:00:01.000Z",
            "message": {"id": id, "role": kind, "content": [{"type": "text", "text": id}]}})
    };
    let of = |agent: bool, a: &str, b: &str| {
        jsonl(&[spoken(agent, "user", a, ""), spoken(agent, "assistant", b, a)])
    };
    here.write("c.jsonl", of(false, "ask", "answer"));
    here.write("c/subagents/agent-x.jsonl", of(true, "look", "found"));
    here.refuses(
        "import c.jsonl --force -o c/subagents/agent-x.jsonl",
        &["would overwrite the input c/subagents/agent-x.jsonl itself"],
    );
    here.refuses("serve --script c.jsonl --log c.jsonl", &["--log", "the input c.jsonl itself"]);
    here.refuses("serve --log c.jsonl", &["--log: c.jsonl is a session"]);
}

#[test]
fn run_keeps_user_files_among_results() {
    let here = CommandFolder::new();
    let run = format!("run login-bug {TWO}");
    here.run(&run).ok();
    here.write("out/notes.md", "my notes");
    here.run(&run).ok();
    assert_eq!(here.read("out/notes.md"), "my notes");
}

#[test]
fn closed_stderr_does_not_change_exit_code() {
    let here = CommandFolder::new();
    here.run(&format!("run login-bug {TWO}")).ok();
    let checks = [
        ("gate out --baseline base.json --store", 0),
        ("gate out --baseline base.json --max cost_usd=0", 1),
        ("run nosuch", 2),
    ];
    for (line, code) in checks {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let status = here.run(line).command().stderr(full).stdout(Stdio::null()).status().unwrap();
        assert_eq!(status.code(), Some(code), "{line}");
    }
}

#[test]
fn verify_without_checks_fails() {
    let here = CommandFolder::new();
    let scenario = |expect: &str| {
        format!(
            "id = \"s\"\n[[step]]\ntype = \"user\"\ntext = \"hi\"\n[expect.{expect}]\nrequests = 1\n"
        )
    };
    let line = "run s.toml --strategy codex --transport direct --verify";
    here.write("s.toml", scenario("aider"));
    here.run(line).fails_with(1).stderr_contains(&["--verify checked nothing"]);
    here.write("s.toml", scenario("codx"));
    here.run(line)
        .fails_with(2)
        .stderr_contains(&["s.toml:5: [expect.codx]", "did you mean codex"]);
    // Only a run has the names of its external programs.
    here.run("run s.toml --strategy codex --transport direct").ok();
    for row in ["codex", "\"codex@0.169:auto_compact_limit=90k\""] {
        here.write("s.toml", scenario(row));
        let line = format!("{line} --strategy codex:auto_compact_limit=90000");
        here.run(&line).ok().stderr_contains(&["all 1 expected answers were met"]);
    }
}

#[test]
fn two_outputs_to_one_file_are_refused() {
    let here = CommandFolder::new();
    here.write("t.txt", "");
    symlink("t.txt", here.path("link.txt")).unwrap();
    for (a, b) in [("t.txt", "link.txt"), ("new.txt", "./new.txt")] {
        let line = format!("run login-bug --trace {a} --status {b} {TWO}");
        here.refuses(&line, &["--trace and --status both name", "name two files"]);
    }
    here.run(&format!("run login-bug {TWO}")).ok();
    for name in ["results.json", "plots/new.svg", "timings.json"] {
        let line = format!("run login-bug --trace out/{name} {TWO}");
        here.refuses(&line, &["is a file of --out"]);
    }
}

#[test]
fn serve_log_of_a_private_script_is_private() {
    let here = CommandFolder::new();
    here.write("s.jsonl", SESSION);
    std::fs::set_permissions(here.path("s.jsonl"), PermissionsExt::from_mode(0o600)).unwrap();
    // If the port is in use, the server ends after it has opened its log.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    here.run(&format!("serve --script s.jsonl --log log.jsonl --port {port}")).fails_with(2);
    let mode = std::fs::metadata(here.path("log.jsonl")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn trace_and_status_replace_former_files() {
    let here = CommandFolder::new();
    let line = format!("run login-bug --trace out/t.jsonl --status s.jsonl {TWO}");
    here.run(&format!("run login-bug {TWO}")).ok();
    here.run(&line).ok();
    std::fs::set_permissions(here.path("s.jsonl"), PermissionsExt::from_mode(0o600)).unwrap();
    let (trace, status) = (here.read("out/t.jsonl"), here.read("s.jsonl"));
    assert!(trace.lines().count() > 4 && status.lines().count() > 4);
    here.run(&line).ok();
    assert_eq!((here.read("out/t.jsonl"), here.read("s.jsonl")), (trace, status));
    let mode = std::fs::metadata(here.path("s.jsonl")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn full_stdout_is_an_error_and_closed_pipe_is_not() {
    let here = CommandFolder::new();
    here.write("r.jsonl", SESSION);
    here.run(&format!("run login-bug {TWO}")).ok();
    here.run("gate out --baseline base.json --store").ok();
    let prints = [
        "import rollout.jsonl",
        "report out",
        "report out --format html",
        "compare out out",
        "gate out --baseline base.json",
        "list strategies --matrix",
        "show codex",
        "compact r.jsonl --strategy codex",
        "run r.jsonl --strategy reference --transport direct --out small",
        "run r.jsonl --strategy reference --transport direct --out small --json",
        "--help",
        "--version",
    ];
    here.write("rollout.jsonl", CODEX);
    for line in prints {
        let mut full = here.run(line).command();
        let to_full = File::options().write(true).open("/dev/full").unwrap();
        let out = full.stdout(to_full).stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(2), "{line}: {said}");
        assert!(said.contains("failed to write to stdout"), "{line}: {said}");

        let mut closed = here.run(line).command();
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let out = closed.stdout(writer).stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(0), "{line} into a closed pipe: {said}");
    }
}

#[test]
fn gate_store_over_other_file_is_refused() {
    let here = CommandFolder::new();
    here.run(&format!("run login-bug {TWO}")).ok();
    std::fs::hard_link(here.path("out/results.json"), here.path("hard.json")).unwrap();
    std::fs::copy(here.path("out/results.json"), here.path("copy.json")).unwrap();
    here.write("notes.json", "{\"mine\": true}");
    for name in ["out/results.json", "./out/../hard.json"] {
        here.refuses(
            &format!("gate out --baseline {name} --store"),
            &["would overwrite the input out/results.json itself"],
        );
    }
    for name in ["copy.json", "notes.json", "out/summary.csv"] {
        here.refuses(
            &format!("gate out --baseline {name} --store"),
            &[name, "is not a baseline", "--store replaces nothing else"],
        );
    }
    here.write("empty.json", "");
    for name in ["new.json", "empty.json", "new.json"] {
        here.run(&format!("gate out --baseline {name} --store")).ok().stderr_contains(&["stored"]);
        here.run(&format!("gate out --baseline {name}")).ok();
    }
}

#[test]
fn dangling_link_is_refused_before_the_run() {
    let here = CommandFolder::new();
    symlink("nowhere", here.path("out")).unwrap();
    symlink("nowhere", here.path("t.jsonl")).unwrap();
    let line = "run login-bug --strategy reference --transport direct";
    here.run(&format!("{line} --out out"))
        .fails_with(2)
        .stderr_contains(&["out is a link to a folder"]);
    here.run(&format!("{line} --trace t.jsonl"))
        .fails_with(2)
        .stderr_contains(&["--trace", "t.jsonl is a link to nowhere, which does not exist"]);
    assert!(!here.path("ctxbench-out").exists());
}

#[test]
fn conform_over_circular_links_ends() {
    let here = CommandFolder::new();
    let case = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/conformance");
    let one = std::fs::read_dir(case).unwrap().map(|e| e.unwrap().path());
    let case = one.filter(|p| p.is_dir()).min().unwrap();
    std::fs::create_dir_all(here.path("cases/a")).unwrap();
    symlink(&case, here.path("cases/real")).unwrap();
    let plain = here.run("conform cases/real").ok().stdout;
    symlink("..", here.path("cases/a/one")).unwrap();
    symlink("../a", here.path("cases/a/two")).unwrap();
    assert_eq!(here.run("conform cases").ok().stdout, plain);
}

#[test]
fn run_with_errors_only_fails() {
    let here = CommandFolder::new();
    here.write("none.jsonl", "{\"type\":\"cassette\",\"version\":1}\n");
    let server = "--summarizer openai+http://127.0.0.1:9/v1#m --cassette offline:none.jsonl";
    let line = format!("run login-bug-tight --strategy codex --transport direct {server}");
    here.run(&line).fails_with(1).stderr_contains(&["login-bug-tight × ", "ended with an error"]);
    assert_eq!(here.csv("ctxbench-out/summary.csv")[0]["status"], "error");
    // A strategy without summaries is measured, but the run still fails.
    let out = here.run(&format!("{line} --strategy reference")).fails_with(1);
    out.stderr_contains(&["ended with an error"]);
}

#[test]
fn report_replaces_only_reports_and_results() {
    let here = CommandFolder::new();
    here.run(&format!("run login-bug {TWO}")).ok();
    here.write("site/index.html", "years of work");
    here.write("site/plots/mine.txt", "mine");
    let before = here.files("site");
    let line = "report out --format csv --format html -o site";
    here.run(line).fails_with(2).stderr_contains(&[
        "site/index.html",
        "was not made by ctxbench report",
        "-o",
    ]);
    assert_eq!(here.files("site"), before, "a file was written");
    std::fs::remove_file(here.path("site/index.html")).unwrap();
    here.run(line).ok().stderr_contains(&["wrote site/index.html", "wrote site/summary.csv"]);
    // A report replaces files of an earlier report.
    here.run(line).ok();
    assert_eq!(here.read("site/plots/mine.txt"), "mine");
    // A linked file belongs to the user too.
    here.write("mine.json", "{}");
    symlink(here.path("mine.json"), here.path("site/results.json")).unwrap();
    here.run("report out --format json -o site")
        .fails_with(2)
        .stderr_contains(&["site/results.json"]);
    assert_eq!(here.read("mine.json"), "{}");
    // A results folder lists the files of the run.
    here.run("report out --format html --format junit -o out").ok();
    here.run("report out --format html --format junit -o out").ok();
    // A run does not write results into a folder of reports.
    here.run(&format!("run login-bug {TWO}").replace("--out out", "--out site"))
        .fails_with(2)
        .stderr_contains(&["site was not made by ctxbench"]);
}

#[test]
fn outputs_of_private_session_are_private() {
    let here = CommandFolder::new();
    here.write("r.jsonl", SESSION);
    let mode = |name: &str, mode: u32| {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(here.path(name), permissions).unwrap();
    };
    mode("r.jsonl", 0o600);
    here.run(&format!("run r.jsonl --trace t.jsonl --status s.jsonl {TWO}")).ok();
    here.run("report out --format html --format csv --format svg -o pages").ok();
    here.run("gate out --baseline base.json --store").ok();
    here.run("gate out --baseline base.json --junit j.xml --markdown g.md").ok();
    here.run("import r.jsonl --to openai -o one.json").ok();
    here.run("import r.jsonl --to openai -o many/").ok();
    let open = |name: &&String| {
        let found = std::fs::metadata(here.path(name)).unwrap();
        found.permissions().mode() & 0o077 != 0
    };
    let all = here.files("");
    let names: Vec<&String> = all.keys().filter(open).collect();
    assert!(all.len() > 40 && names.is_empty(), "others can read {names:?}");
    // Outputs of a readable session are readable.
    mode("r.jsonl", 0o644);
    here.run("import r.jsonl --to openai -o other.json").ok();
    assert!(open(&&"other.json".to_string()));
}

/// Runs the command line in a shell in the folder, so that it may contain pipes.
fn in_a_shell(here: &CommandFolder, script: &str) -> (Option<i32>, String) {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(script.replace("ctxbench", "\"$0\"")).arg(common::binary());
    let out = shell.current_dir(here.path("")).stdin(Stdio::null()).output().unwrap();
    (out.status.code(), String::from_utf8_lossy(&out.stderr).into_owned())
}

#[test]
fn inputs_from_pipe_are_read_to_the_end() {
    let here = CommandFolder::new();
    here.write("r.jsonl", SESSION);
    here.run(&format!("run r.jsonl {TWO}")).ok();
    here.run("gate out --baseline base.json --store").ok();
    here.write("claude.jsonl", CLAUDE_CODE);
    for (file, line) in [
        ("r.jsonl", "ctxbench run p --strategy none --transport direct --out p-out"),
        ("r.jsonl", "ctxbench import p --to openai"),
        ("r.jsonl", "ctxbench list sessions p"),
        ("base.json", "ctxbench gate out --baseline p"),
        ("out/results.json", "ctxbench compare out p"),
        ("out/results.json", "ctxbench report p"),
        ("claude.jsonl", "ctxbench validate p"),
    ] {
        let script =
            format!("mkfifo p && {{ cat {file} > p & {line} > told; code=$?; rm p; exit $code; }}");
        let (code, said) = in_a_shell(&here, &script);
        assert_eq!(code, Some(0), "{line}: {said}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn endless_inputs_are_refused() {
    let here = CommandFolder::new();
    here.write("r.jsonl", SESSION);
    here.run(&format!("run r.jsonl {TWO}")).ok();
    for line in [
        "run /dev/zero --out zero",
        "import /dev/zero",
        "validate /dev/zero",
        "list sessions /dev/zero",
        "run login-bug --models /dev/zero --out zero",
        "run login-bug --summarizer scripted:/dev/zero --out zero",
        "run login-bug --settings /dev/zero --out zero",
        "list models --config /dev/zero",
        "gate out --baseline /dev/zero",
        "compare out /dev/zero",
        "conform /dev/zero",
        "report /dev/zero",
    ] {
        let out = here.run(line).fails_with(2);
        let told = out.stderr + &out.stdout;
        assert!(told.contains("/dev/zero"), "{line}: {told}");
        assert!(!here.path("zero").exists(), "{line}");
    }
    // Reading the device again would exhaust memory.
    for device in ["/dev/zero", "/dev/full"] {
        let line = format!("ctxbench gate out --baseline {device} --store");
        let (code, said) = in_a_shell(&here, &format!("ulimit -v 2000000; {line}"));
        assert_eq!(code, Some(2), "{device}: {said}");
        assert!(said.contains(&format!("{device} is there and is not a baseline")), "{said}");
    }
}
