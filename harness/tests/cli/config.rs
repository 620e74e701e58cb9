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
fn a_mistake_in_it_is_told_with_file_line_and_the_nearest() {
    for (text, said) in [
        (
            "[run]\n\nstratgy = [\"codex\"]\n",
            "3: `run` has no option `stratgy`; did you mean strategy",
        ),
        (
            "[rnu]\n",
            "1: there is no option of all commands and no command `rnu`; did you mean run?",
        ),
        (
            "strategy = [\"codex\"]\n",
            "1: `strategy` is an option of a command; put it under its table",
        ),
        ("run = 3\n", "1: `run` is a command; expected a table of its options, [run]"),
        ("[run]\nseed = [1, 2]\n", "2: `seed`: expected one value; it may not be repeated"),
        ("[run]\njson = \"yes\"\n", "2: `json`: expected true or false"),
        ("[run]\nwindow = true\n", "2: `window`: expected a text or a number"),
        ("[run]\nstrategy = [[1]]\n", "2: `strategy`: expected a list of texts or numbers"),
        ("[run]\nconfig = \"x\"\n", "2: `run` has no option `config`"),
        ("[gate]\nmim = []\n", "2: `gate` has no option `mim`; did you mean min"),
        ("[run\n", "1: "),
        // Values are judged by the command line.
        ("[run]\nseed = 1\ntransport = \"carrier\"\n", "3: invalid value 'carrier'"),
        ("[run]\nwindow = 0\n", "2: invalid value '0' for '--window <N>'"),
    ] {
        let out = with(text).run("run login-bug").fails_with(2);
        let all = format!("error: ./ctxbench.toml:{said}");
        let first = out.stderr.lines().next().unwrap_or_default();
        assert!(first.starts_with(&all), "{text}{first}");
    }
    with("[run]\noffline = true\n").run("run login-bug").fails_with(2).says(&["--cassette"]);
    // An error of the command line itself is told as ever.
    let here = with("[run]\nseed = 1\n");
    here.run("run --sede 2").fails_with(2).says(&["error: unexpected argument '--sede'", "--seed"]);
    here.run("run --window 0").fails_with(2).says(&["error: invalid value '0'"]);
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

/// Every long option of a command's help stands in the file, too, so a new one needs nothing.
#[test]
fn every_option_of_every_command_may_stand_in_it() {
    let plain = Folder::new();
    let commands =
        "run list show import compact conform validate serve explain compare gate report";
    for command in commands.split(' ') {
        let help = plain.run(&format!("{command} --help")).ok().stdout;
        let options = help
            .lines()
            .filter_map(|l| l.trim_start().split_once("--"))
            .filter(|(before, _)| before.is_empty() || before.ends_with(", "))
            .map(|(_, o)| o.split([' ', '=']).next().unwrap());
        for option in options.filter(|o| !["help", "version", "config", "no-config"].contains(o)) {
            let table = if option == "models" { String::new() } else { format!("[{command}]\n") };
            // Wrong for every option, and told as such rather than as unknown.
            let here = with(&format!("{table}{option} = [[1]]\n"));
            let out = here.run("list models").fails_with(2);
            assert!(out.stderr.contains(&format!("`{option}`: expected")), "{}", out.stderr);
        }
    }
}
