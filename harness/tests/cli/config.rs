//! `ctxbench.toml`: options from a file, and the restrictions on a file that was found
//! automatically.

use crate::common::CommandFolder;

/// Creates the example of docs/config.md, with its file of models.
fn documented() -> CommandFolder {
    let formats = include_str!("../../../docs/config.md");
    let section = formats.split_once("\n## ctxbench.toml\n").unwrap().1;
    let example = section.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let here = CommandFolder::with("ctxbench.toml", example);
    here.write("own.toml", include_str!("../../../tests/data/models/own.toml"));
    here
}

fn rows(here: &CommandFolder, out: &str) -> Vec<String> {
    let mut all: Vec<String> = here
        .csv(&format!("{out}/summary.csv"))
        .iter()
        .map(|r| format!("{} {}", r["strategy"], r["model"]))
        .collect();
    all.sort();
    all
}

/// Runs a command in a subfolder and returns its messages.
fn inside(here: &CommandFolder, folder: &str, line: &str) -> String {
    here.run(line).after(&format!("cd {folder};")).ok().stderr
}

#[test]
fn documented_file_is_read_and_command_line_wins() {
    let here = documented();
    let out = here.run("run login-bug").ok();
    assert_eq!(out.stderr.matches("note: options from ./ctxbench.toml").count(), 1);
    assert_eq!(rows(&here, "ctxbench-out"), ["claude-code lab-coder", "codex lab-coder"]);
    assert_eq!(here.json("ctxbench-out/results.json")["runs"][0]["window"], 100_000);
    // The command may be omitted. An option on the command line replaces all values of the file.
    here.run("--strategy reference --model gpt-5.4 -o own login-bug").ok();
    assert_eq!(rows(&here, "own"), ["reference gpt-5.4"]);
    assert_eq!(here.json("own/results.json")["runs"][0]["window"], 100_000);
    // Each command has its own table.
    here.run("gate ctxbench-out --baseline base.json --config none --store").ok();
    here.run("gate ctxbench-out --baseline base.json").ok();
    here.write("ctxbench.toml", "[gate]\nmin = [\"recall_pct=100\"]\n");
    here.run("gate ctxbench-out --baseline base.json").fails_with(1).prints(&["recall_pct"]);
    here.run("gate ctxbench-out --baseline base.json --config none").ok();
    // A command without options in the file prints no note.
    assert_eq!(here.run("list strategies").ok().stderr, "");
}

#[test]
fn file_is_found_up_to_the_root_of_the_repository() {
    let here = CommandFolder::with(
        "ctxbench.toml",
        "[run]\nstrategy = [\"none\"]\ntransport = \"direct\"\n",
    );
    here.write("deep/er/here.txt", "");
    let line = "run login-bug-tight --out out --strategy codex";
    assert!(!inside(&here, "deep/er", line).contains("options from"), "no repository");
    here.write(".git/HEAD", "");
    let messages = inside(&here, "deep/er", line);
    assert!(messages.contains("note: options from ../../ctxbench.toml"), "{messages}");
    here.write("deep/.git/HEAD", "");
    assert!(!inside(&here, "deep/er", line).contains("options from"), "above the root");
}

#[test]
fn paths_of_a_named_file_are_relative_to_it() {
    let here = CommandFolder::new();
    here.write("other/mine.toml", "[run]\nstrategy = [\"codex\"]\nout = \"out\"\n");
    here.run("run login-bug-tight --config other/mine.toml").ok();
    assert_eq!(rows(&here, "other/out"), ["codex claude-sonnet-4-6"]);
}

#[test]
fn named_file_sets_every_option() {
    let text = "[gate]\nbaseline = \"base.json\"\n[run]\nno_rereads = false\njson = true\n";
    let here = CommandFolder::with("c.toml", text);
    let out = here.run("--config c.toml login-bug --strategy none --transport direct").ok();
    let stored = here.run("gate ctxbench-out --store --config c.toml").ok();
    stored.stderr_contains(&["stored base.json"]);
    here.run("gate ctxbench-out --config=c.toml").ok();
    here.fails("gate ctxbench-out", 2, &["--baseline"]);
    assert!(out.stdout.starts_with('{'), "{}", out.stdout);
    // Re-reads are on.
    out.prints(&["once per loss, whole, charged"]);
}

#[test]
#[cfg(unix)]
fn found_file_cannot_run_a_program_contact_a_server_or_write_a_file() {
    for (text, key) in [
        ("[run]\nstrategy = [\"reference\", \"x=exec:touch pwned\"]\n", "strategy"),
        ("[run]\nsummarizer = [\"openai+http://127.0.0.1:9/v1#m\"]\n", "summarizer"),
        ("[run]\ncassette = \"c.jsonl\"\n", "cassette"),
        ("[run]\nout = \"pwned\"\n", "out"),
        ("[run]\ntrace = \"pwned\"\n", "trace"),
        ("[run]\nmemory = \"/\"\n", "memory"),
        ("[record]\nupstream = \"http://127.0.0.1:9\"\n", "upstream"),
        ("[record]\nenv = [\"PATH\"]\n", "env"),
        ("[drive]\nprogram = [\"codex=./pwn\"]\n", "program"),
        ("[drive]\nagent = [\"./pwn.toml\"]\n", "agent"),
        ("[gate]\nstore = true\n", "store"),
    ] {
        let here = CommandFolder::with("ctxbench.toml", text);
        let line = "run login-bug-tight --strategy reference --transport direct";
        let told = "run with --config ./ctxbench.toml";
        here.refuses(line, &["error: ./ctxbench.toml:2: `", key, told]);
    }
    let here = CommandFolder::with("ctxbench.toml", "[run]\nstrategy = [\"x=exec:touch pwned\"]\n");
    here.run("run login-bug-tight --config ctxbench.toml --transport direct").fails_with(1);
    assert!(here.path("pwned").exists(), "the user has named the file");
}

#[test]
#[cfg(unix)]
fn found_file_that_others_may_change_is_refused() {
    let here = CommandFolder::with("ctxbench.toml", "[run]\nwindow = 1000\n");
    let told = ["./ctxbench.toml can be changed by other users", "chmod go-w", "--config none"];
    for mode in [0o666, 0o664] {
        here.chmod("ctxbench.toml", mode);
        here.fails("list strategies", 2, &told);
    }
    here.run("list strategies --config none").ok();
    here.run("list strategies --config ctxbench.toml").ok();
    here.chmod("ctxbench.toml", 0o644);
    here.run("list strategies").ok();
}
