//! Outputs that would overwrite inputs or user files, full disks, and unreadable inputs.
#![cfg(unix)]

use std::fs::File;
use std::os::unix::fs::symlink;
use std::process::Stdio;

use crate::common::{CLAUDE_CODE, CODEX, CommandFolder, SESSION, data};

const TWO: &str = "--strategy reference --strategy codex --transport direct --out out";

#[test]
fn output_that_is_an_input_is_refused_under_any_name() {
    let here = CommandFolder::with("r.jsonl", SESSION);
    here.write("all/r.jsonl", SESSION);
    symlink("r.jsonl", here.path("link.jsonl")).unwrap();
    std::fs::hard_link(here.path("r.jsonl"), here.path("hard.jsonl")).unwrap();
    symlink("all", here.path("same")).unwrap();
    for name in ["r.jsonl", "./all/../r.jsonl", "link.jsonl", "hard.jsonl"] {
        let line = format!("run r.jsonl --trace {name} {TWO}");
        here.refuses(&line, &["--trace", name, "would overwrite the input r.jsonl itself"]);
    }
    here.refuses(
        &format!("run all --trace same/r.jsonl {TWO}"),
        &["would overwrite the input all/r.jsonl itself"],
    );
    // A file that an argument refers to.
    here.refuses(
        &format!("run login-bug --trace r.jsonl {TWO}"),
        &["--trace", "r.jsonl exists and is not a file that ctxbench wrote"],
    );
    here.refuses("import r.jsonl -o hard.jsonl", &["would overwrite the input r.jsonl itself"]);
}

#[test]
fn output_that_an_input_refers_to_is_refused() {
    let here = CommandFolder::with("said.txt", "read it");
    here.write("base.toml", "id = \"base\"\n[[step]]\ntype = \"user\"\nfile = \"said.txt\"\n");
    here.write("top.toml", "id = \"top\"\nextends = \"base.toml\"\n");
    for name in ["said.txt", "base.toml"] {
        let line = format!("run top.toml --trace {name} {TWO}");
        here.refuses(&line, &["--trace", "would overwrite the input", name]);
    }
    let session = "recordings/claude-code/spotter-8463c716";
    let copy = |from: &str, to: &str| here.write(to, std::fs::read(data(from)).unwrap());
    copy(&format!("{session}.jsonl"), "c.jsonl");
    let agent = "subagents/agent-a7be2f0.jsonl";
    copy(&format!("{session}/{agent}"), &format!("c/{agent}"));
    here.refuses(
        "import c.jsonl --force -o c/subagents/agent-a7be2f0.jsonl",
        &["would overwrite the input c/subagents/agent-a7be2f0.jsonl itself"],
    );
    here.refuses("serve --script c.jsonl --log c.jsonl", &["--log", "the input c.jsonl itself"]);
    here.refuses("serve --log c.jsonl", &["--log: c.jsonl is a session"]);
}

#[test]
fn links_out_of_an_input_folder_are_told_and_not_followed() {
    let here = CommandFolder::with("in/claude.jsonl", CLAUDE_CODE);
    here.write("out/codex.jsonl", CODEX);
    symlink("../out", here.path("in/away")).unwrap();
    let told = "in/away is a link to ";
    let validated = here.run("validate in").ok();
    validated.stderr_contains(&[told, "name that folder, too"]).lacks(&["codex.jsonl"]);
    let listed = here.run("list sessions in").output();
    listed.prints(&[told]).lacks(&["codex.jsonl"]);
    // What lies there is no input, so a trace there replaces the former one.
    for _ in 0..2 {
        let run = "run in --trace out/t.jsonl --strategy none --transport direct --out results";
        here.run(run).ok();
    }
}

#[test]
fn import_and_gate_replace_no_file_of_the_user() {
    let here = CommandFolder::with("claude.jsonl", CLAUDE_CODE);
    here.write("note.txt", "mine");
    here.write("other.jsonl", CODEX);
    here.run(&format!("run login-bug {TWO}")).ok();
    here.run("gate out --baseline base.json --store").ok();
    for name in ["note.txt", "other.jsonl"] {
        let import = format!("import claude.jsonl -o {name}");
        here.refuses(&import, &[name, "exists; use --force to replace it"]);
        for option in ["--junit", "--markdown"] {
            let gate = format!("gate out --baseline base.json {option} {name}");
            here.refuses(&gate, &[option, "exists and is not a file that ctxbench wrote"]);
        }
    }
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
fn two_outputs_to_one_file_are_refused() {
    let here = CommandFolder::with("t.txt", "");
    symlink("t.txt", here.path("link.txt")).unwrap();
    for (a, b) in [("t.txt", "link.txt"), ("new.txt", "./new.txt")] {
        let server = "--summarizer openai+http://127.0.0.1:9/v1#m";
        let line = format!("run login-bug {server} --trace {a} --cassette {b} {TWO}");
        here.refuses(&line, &["--trace and --cassette both name", "name two files"]);
    }
    here.run(&format!("run login-bug {TWO}")).ok();
    for name in ["results.json", "plots/new.svg", "timings.json"] {
        let line = format!("run login-bug --trace out/{name} {TWO}");
        here.refuses(&line, &["is a file of --out"]);
    }
}

#[test]
fn serve_log_of_a_private_script_is_private() {
    let here = CommandFolder::with("s.jsonl", SESSION);
    here.chmod("s.jsonl", 0o600);
    // If the port is in use, the server ends after it has opened its log.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    here.run(&format!("serve --script s.jsonl --log log.jsonl --port {port}")).fails_with(2);
    assert_eq!(here.mode("log.jsonl"), 0o600);
}

#[test]
fn trace_replaces_a_former_file() {
    let here = CommandFolder::new();
    here.run(&format!("run login-bug {TWO}")).ok();
    for name in ["out/t.jsonl", "t.jsonl"] {
        let line = format!("run login-bug --trace {name} {TWO}");
        here.run(&line).ok();
        let trace = here.read(name);
        assert!(trace.lines().count() > 4);
        here.chmod(name, 0o600);
        here.run(&line).ok();
        assert_eq!(here.read(name), trace);
    }
    assert_eq!(here.mode("t.jsonl"), 0o600);
}

#[test]
fn full_stdout_is_an_error_and_closed_pipe_is_not() {
    let here = CommandFolder::with("r.jsonl", SESSION);
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
        let full = File::options().write(true).open("/dev/full").unwrap();
        let out = here.run(line).stdout(full).fails_with(2);
        out.stderr_contains(&["failed to write to stdout"]);
        let (reader, closed) = std::io::pipe().unwrap();
        drop(reader);
        here.run(line).stdout(closed).ok();
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
    for name in ["new.json", "new.json"] {
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
    here.fails(&format!("{line} --out out"), 2, &["out is a link to a folder"]);
    let words = ["--trace", "t.jsonl is a link to nowhere, which does not exist"];
    here.fails(&format!("{line} --trace t.jsonl"), 2, &words);
    assert!(!here.path("ctxbench-out").exists());
}

#[test]
fn run_with_errors_only_fails() {
    let here = CommandFolder::with("none.jsonl", "{\"type\":\"cassette\",\"version\":1}\n");
    let server = "--summarizer openai+http://127.0.0.1:9/v1#m --cassette offline:none.jsonl";
    let line = format!("run login-bug-tight --strategy codex --transport direct {server}");
    here.fails(&line, 1, &["login-bug-tight × ", "ended with an error"]);
    assert_eq!(here.csv("ctxbench-out/summary.csv")[0]["status"], "error");
    // A strategy without summaries is measured, but the run still fails.
    here.fails(&format!("{line} --strategy reference"), 1, &["ended with an error"]);
}

#[test]
fn report_replaces_only_reports_and_results() {
    let here = CommandFolder::new();
    here.run(&format!("run login-bug {TWO}")).ok();
    here.write("site/index.html", "years of work");
    here.write("site/plots/mine.txt", "mine");
    let line = "report out --format csv --format html -o site";
    here.refuses(line, &["site/index.html", "was not made by ctxbench report", "-o"]);
    std::fs::remove_file(here.path("site/index.html")).unwrap();
    here.run(line).ok().stderr_contains(&["wrote site/index.html", "wrote site/summary.csv"]);
    // A report replaces files of an earlier report.
    here.run(line).ok();
    assert_eq!(here.read("site/plots/mine.txt"), "mine");
    // A linked file belongs to the user too.
    here.write("mine.json", "{}");
    symlink(here.path("mine.json"), here.path("site/results.json")).unwrap();
    here.refuses("report out --format json -o site", &["site/results.json"]);
    // A results folder lists the files of the run.
    here.run("report out --format html --format markdown -o out").ok();
    here.run("report out --format html --format markdown -o out").ok();
    // A run does not write results into a folder of reports.
    let run = format!("run login-bug {TWO}").replace("--out out", "--out site");
    here.refuses(&run, &["site was not made by ctxbench"]);
}

#[test]
fn outputs_of_private_session_are_private() {
    let here = CommandFolder::with("r.jsonl", SESSION);
    here.chmod("r.jsonl", 0o600);
    here.run(&format!("run r.jsonl --trace t.jsonl {TWO}")).ok();
    here.run("report out --format html --format csv --format svg -o pages").ok();
    here.run("gate out --baseline base.json --store").ok();
    here.run("gate out --baseline base.json --junit j.xml --markdown g.md").ok();
    here.run("import r.jsonl --to openai -o one.json").ok();
    here.run("import r.jsonl --to openai -o many/").ok();
    let open = |name: &&String| here.mode(name) & 0o077 != 0;
    let all = here.files("");
    let names: Vec<&String> = all.keys().filter(open).collect();
    assert!(all.len() >= 30 && names.is_empty(), "others can read {names:?}");
    // Outputs of a readable session are readable.
    here.chmod("r.jsonl", 0o644);
    here.run("import r.jsonl --to openai -o other.json").ok();
    assert!(open(&&"other.json".to_string()));
}

#[test]
fn inputs_from_pipe_are_read_to_the_end() {
    let here = CommandFolder::with("r.jsonl", SESSION);
    here.run(&format!("run r.jsonl {TWO}")).ok();
    here.run("gate out --baseline base.json --store").ok();
    here.write("claude.jsonl", CLAUDE_CODE);
    for (file, line) in [
        ("r.jsonl", "run p --strategy none --transport direct --out p-out"),
        ("r.jsonl", "import p --to openai"),
        ("r.jsonl", "list sessions p"),
        ("base.json", "gate out --baseline p"),
        ("out/results.json", "compare out p"),
        ("out/results.json", "report p"),
        ("claude.jsonl", "validate p"),
    ] {
        here.run(line).after(&format!("mkfifo p; cat {file} > p &")).ok();
        std::fs::remove_file(here.path("p")).unwrap();
    }
}

#[test]
#[cfg(target_os = "linux")]
fn endless_inputs_are_refused() {
    let here = CommandFolder::with("r.jsonl", SESSION);
    here.run(&format!("run r.jsonl {TWO}")).ok();
    for line in [
        "run /dev/zero --out zero",
        "import /dev/zero",
        "validate /dev/zero",
        "list sessions /dev/zero",
        "run login-bug --models /dev/zero --out zero",
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
        let store = here.run(&format!("gate out --baseline {device} --store"));
        let out = store.after("ulimit -v 2000000;").fails_with(2);
        out.stderr_contains(&[&format!("{device} is there and is not a baseline")]);
    }
}
