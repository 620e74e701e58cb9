//! `ctxbench.toml`: options of the command line from a file.

use crate::common::Folder;

/// The example of docs/formats.md, with the file of models that it names.
fn documented() -> Folder {
    let formats = include_str!("../../../docs/formats.md");
    let section = formats.split_once("\n## Configuration\n").unwrap().1;
    let example = section.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let here = Folder::new();
    here.write("ctxbench.toml", example);
    here.write("own.toml", include_str!("../../../tests/data/models/own.toml"));
    here
}

fn with(text: &str) -> Folder {
    let here = Folder::new();
    here.write("ctxbench.toml", text);
    here
}

fn rows(here: &Folder, out: &str) -> Vec<String> {
    let mut all: Vec<String> = here
        .csv(&format!("{out}/summary.csv"))
        .iter()
        .map(|r| format!("{} {}", r["strategy"], r["model"]))
        .collect();
    all.sort();
    all
}

#[test]
fn the_documented_file_is_read_and_the_command_line_wins() {
    let here = documented();
    let out = here.run("run login-bug").ok();
    assert_eq!(out.stderr.matches("note: options from ./ctxbench.toml").count(), 1);
    assert_eq!(rows(&here, "results"), ["claude-code lab-coder", "codex lab-coder"]);
    assert_eq!(here.json("results/results.json")["runs"][0]["window"], 100_000);
    // Without a command name, too; what is given replaces all values of the file.
    here.run("--strategy reference --model gpt-5.4 --out own login-bug").ok();
    assert_eq!(rows(&here, "own"), ["reference gpt-5.4"]);
    assert_eq!(here.json("own/results.json")["runs"][0]["window"], 100_000);
    // Each command has its table.
    here.run("gate results --baseline base.json --no-config --store").ok();
    let min = "needs_kept_pct";
    let out = here.run("gate results --baseline base.json --min needs_kept_pct=0").ok();
    assert!(!out.stderr.contains("options from ./ctxbench.toml\nnote"), "{}", out.stderr);
    here.write("ctxbench.toml", format!("[gate]\nmin = [\"{min}=100\"]\n"));
    here.run("gate results --baseline base.json").fails_with(1).prints(&[min]);
    here.run("gate results --baseline base.json --no-config").ok();
    // One that takes nothing from it says nothing.
    let out = here.run("list strategies").ok();
    assert_eq!(out.stderr, "");
}

#[test]
fn a_file_is_found_upwards_and_its_paths_are_from_its_folder() {
    let here = documented();
    here.write("deep/er/here.txt", "");
    let inside = |line: &str| {
        let mut command = here.run(line).command();
        command.current_dir(here.path("deep/er")).output().unwrap()
    };
    let out = inside("run login-bug");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(said.contains("note: options from ../../ctxbench.toml"), "{said}");
    assert_eq!(rows(&here, "results"), ["claude-code lab-coder", "codex lab-coder"]);
    // Another file; and none.
    here.write("other/mine.toml", "[run]\nstrategy = [\"none\"]\nout = \"out\"\n");
    assert!(inside("run login-bug --config ../../other/mine.toml").status.success());
    assert_eq!(rows(&here, "other/out"), ["none claude-sonnet-4-6"]);
    let alone = inside("run login-bug --no-config --strategy none --transport direct --out here");
    assert!(alone.status.success() && here.path("deep/er/here/summary.csv").exists());
    here.run("list models --config none.toml").fails_with(2).says(&["cannot read none.toml"]);
    here.run("list models --config a.toml --no-config").fails_with(2);
    // Behind a word, and what may be built in.
    here.write("other/summaries.jsonl", "\"The port is 8443.\"\n");
    here.write(
        "other/mine.toml",
        "[run]\nsummarizer = \"scripted:summaries.jsonl\"\nstrategy = \"codex\"\nout = \"out\"\n",
    );
    here.run("run login-bug-tight --config other/mine.toml").ok();
}

#[test]
fn a_required_option_may_stand_in_it_and_switches_are_off_or_on() {
    let file = "[gate]\nbaseline = \"base.json\"\n[run]\nno_rereads = false\njson = true\n";
    let here = with(file);
    let out = here.run("run login-bug --strategy none --transport direct").ok();
    here.run("gate ctxbench-out --store").ok().says(&["stored base.json"]);
    here.run("gate ctxbench-out").ok();
    here.run("gate ctxbench-out --no-config").fails_with(2).says(&["--baseline"]);
    assert!(out.stdout.starts_with('{'), "{}", out.stdout);
    assert!(out.stdout.contains("once per loss, whole, charged"), "re-reads are on");
}

#[test]
fn what_cannot_stand_beside_the_command_line_gives_way() {
    let here = with("[man]\noutput = \"pages\"\n[gate]\nstore = true\nbaseline = \"b.json\"\n");
    let page = here.run("man gate").ok().stdout;
    assert!(page.contains(".TH ctxbench-gate 1"), "{page}");
    // What has a page of its own is named, and nothing else.
    assert!(!here.run("man --no-config").ok().stdout.contains("help(1)"));
    here.run("man").ok();
    assert!(here.path("pages/ctxbench-gate.1").exists());
    let said = here.run("gate nowhere --max cost_usd=1").fails_with(2).stderr;
    assert!(!said.contains("cannot be used with"), "{said}");
}
