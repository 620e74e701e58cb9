//! The command from outside: its output, its files, and equal figures from all kinds of input.

use std::process::Stdio;

use crate::common::readings::samples;
use crate::common::{self, CLAUDE_CODE, CODEX, CommandFolder, data};
use ctxbench_reports::FORMATS;
use ctxbench_scenarios::builtin;
use serde_json::{Value, json};

const FAST: &str =
    "run login-bug --strategy reference --strategy codex --strategy opencode --transport direct";

/// Returns the first column of `list …`, up to the first empty line, without indented lines.
fn names(here: &CommandFolder, what: &str) -> Vec<String> {
    let out = here.run(&format!("list {what}")).ok().stdout;
    out.lines()
        .take_while(|l| !l.is_empty())
        .filter(|l| !l.starts_with(' '))
        .map(|l| l.split_whitespace().next().unwrap().to_string())
        .collect()
}

#[test]
fn requests_and_compactions_add_up_to_the_summary() {
    let here = CommandFolder::new();
    here.run("run login-bug-tight --transport direct").ok();
    let (requests, compactions) =
        (here.csv("ctxbench-out/requests.csv"), here.csv("ctxbench-out/compactions.csv"));
    for row in here.csv("ctxbench-out/summary.csv") {
        let strategy = &row["strategy"];
        let mine: Vec<_> = requests.iter().filter(|r| r["strategy"] == *strategy).collect();
        let number = |text: &str| text.parse::<f64>().unwrap();
        let sum = |column: &str| -> f64 { mine.iter().map(|r| number(&r[column])).sum() };
        let compacted = compactions.iter().filter(|r| r["strategy"] == *strategy).count();
        let counted = [mine.len() as f64, sum("input_tokens"), compacted as f64];
        let told = ["requests", "input_tokens", "compactions"].map(|column| number(&row[column]));
        assert_eq!(counted, told, "{strategy}");
        let (cost, told) = (sum("cost_usd"), number(&row["cost_usd"]));
        assert!((cost - told).abs() < 1e-4, "{strategy}: {cost} and {told}");
    }
}

#[test]
fn list_and_show_cover_strategies_scenarios_and_models() {
    let here = CommandFolder::new();
    let strategies = names(&here, "strategies");
    for name in "reference none keep-nothing sliding-window observation-masking aider codex \
        opencode claude-code anthropic-sdk openoxide"
        .split_whitespace()
    {
        assert!(strategies.iter().any(|s| s == name), "{name} is not listed");
    }
    assert_eq!(names(&here, "scenarios"), *builtin::IDS);
    here.run("list scenarios").ok().prints(&[
        "example of: failure mode 1 (compaction loop)",
        "example of: token-budgeting pitfall 8 (",
    ]);
    assert!(names(&here, "models").contains(&"claude-sonnet-4-6".to_string()));
    for name in strategies {
        let page = here.run(&format!("show {name}")).ok();
        page.prints(&[&name, "sources", "what it does", "Overflow response"]);
    }
    let page = here.run("show codex").ok();
    page.prints(&["settings", "auto_compact_limit", "manual compaction: yes"]);
    here.run("--help").ok().prints(&["run", "gate", "compare"]);
    here.run("--version").ok().prints(&["ctxbench "]);
}

#[test]
fn imported_recording_has_the_same_figures() {
    for (format, text) in [("claude-code", CLAUDE_CODE), ("codex", CODEX)] {
        let here = CommandFolder::with("rec.jsonl", text);
        here.run("import rec.jsonl -o session.jsonl").ok();
        let printed = here.run("import rec.jsonl").ok().stdout;
        let session = here.read("session.jsonl");
        assert_eq!(printed, session, "{format}");
        let header: Value = serde_json::from_str(printed.lines().next().unwrap()).unwrap();
        assert_eq!(
            (&header["type"], &header["version"], &header["source"]["format"]),
            (&json!("session"), &json!(1), &json!(format))
        );
        here.run("run rec.jsonl --transport direct --out direct --trace direct.jsonl").ok();
        here.run("run session.jsonl --transport direct --out imported --trace imported.jsonl").ok();
        for file in ["summary.csv", "requests.csv", "compactions.csv", "facts.csv"] {
            // Without a row, there is no file.
            let of = |out: &str| here.files(out).remove(file);
            assert_eq!(of("direct"), of("imported"), "{format}: {file}");
        }
        assert_eq!(here.read("direct.jsonl"), here.read("imported.jsonl"), "{format}: the traces");
        // Four replies: Claude Code stores four messages, while the rollout joins a call and the
        // text after its result.
        // The recorded model has no context editing, which one strategy needs.
        for row in here.csv("direct/summary.csv").iter().filter(|r| r["status"] != "n/a") {
            let found = (&*row["steps_completed"], &*row["status"]);
            assert_eq!(found, ("4", "completed"), "{row:?}");
        }
    }
}

/// Imports every recording of the test data without flags, and runs it directly and as imported.
#[test]
fn recordings_of_every_format_import_and_run() {
    let here = CommandFolder::new();
    let all: Vec<(&str, usize)> =
        samples().map(|(sessions, _, path)| (path, sessions.parse().unwrap())).collect();
    for folder in std::fs::read_dir(data("recordings")).unwrap() {
        let name = folder.unwrap().file_name().into_string().unwrap();
        let tried = all.iter().any(|(path, _)| path.split('/').next() == Some(&*name));
        assert!(tried || name == "README.md", "no file of {name} is tried");
    }
    for (n, (path, sessions)) in all.into_iter().enumerate() {
        let path = match path.ends_with(".sql") {
            true => common::database(&here, path),
            false => data("recordings").join(path),
        };
        let path = path.display().to_string();
        let import = here.run("import -o s.jsonl --force").arg(&path).ok();
        import.stderr_contains(&["recordings of"]);
        let written = here.read("s.jsonl");
        let heads = written.lines().filter(|l| l.starts_with("{\"type\":\"session\"")).count();
        assert_eq!(heads, sessions, "{path}");
        let how = "--strategy none --strategy reference --window 2M --transport direct --out";
        here.run(&format!("run s.jsonl {how} imported-{n}")).ok();
        here.run(&format!("run {how} direct-{n}")).arg(&path).ok();
        let rows = here.csv(&format!("imported-{n}/summary.csv"));
        assert!(rows.len() >= 2 * sessions, "{path}");
        assert!(rows.iter().all(|r| r["status"] == "completed"), "{path}");
        let summary = |of: &str| here.read(&format!("{of}-{n}/summary.csv"));
        assert_eq!(summary("imported"), summary("direct"), "{path}");
    }
}

#[test]
fn piped_session_has_the_same_figures() {
    let here = CommandFolder::new();
    for text in [CLAUDE_CODE, CODEX] {
        here.write("stdin.jsonl", text);
        let file = here.run("import stdin.jsonl").ok().stdout;
        let piped = here.run("import -").piped(text).ok();
        piped.stderr_contains(&["note: recordings of"]);
        assert_eq!(piped.stdout, file.replace("stdin.jsonl", "stdin"));
        // A session from a pipe runs in the same way as from its file, with or without its facts.
        let how = "--strategy reference --strategy codex --transport direct --out";
        here.write("s.jsonl", &file);
        here.run(&format!("run s.jsonl {how} file")).ok();
        here.run(&format!("run - {how} pipe")).piped(&file).ok();
        here.run(&format!("run - {how} raw")).piped(text).ok();
        let summary = |out: &str| here.read(&format!("{out}/summary.csv"));
        assert_eq!(["pipe", "raw"].map(summary), ["file"; 2].map(summary));
        here.run("compact - --strategy codex --at 50%").piped(&file).ok();
    }
}

#[test]
fn import_to_folder_writes_one_file_per_session() {
    let here = CommandFolder::new();
    let three = data("recordings/openhands/output.jsonl").display().to_string();
    here.write("rec.jsonl", CLAUDE_CODE);
    let import = |out: &str| here.run("import rec.jsonl").arg(&three).arg("-o").arg(out);
    let out = import("all").ok();
    out.stderr_contains(&["4 sessions in all"]);
    assert_eq!(out.stdout.lines().count(), 4);
    assert_eq!(here.files("all").len(), 4, "{:?}", here.files("all").keys());
    // A second import writes the same files, also to another folder.
    import("all").ok();
    import("again/").ok();
    assert_eq!(here.files("all"), here.files("again"));
    // A file of many sessions is split, and existing files stay.
    here.run("import rec.jsonl").arg(&three).arg("-o").arg("one.jsonl").ok();
    here.write("apart/rec.jsonl", "mine");
    here.run("import one.jsonl -o apart").ok();
    assert_eq!(here.read("apart/rec.jsonl"), "mine");
    assert_eq!(here.read("apart/rec-2.jsonl"), here.read("all/rec.jsonl"));
    // Exports to other formats work for sessions and for recordings.
    for (to, lost) in [("atif", "ATIF cannot say: "), ("openai", "chat messages cannot say: ")] {
        here.run(&format!("import one.jsonl --to {to} -o {to}")).ok().stderr_contains(&[lost]);
        assert_eq!(here.files(to).len(), 4);
        for file in here.files(to).into_keys() {
            here.run(&format!("import {to}/{file} -o back-{to}.jsonl --force")).ok();
        }
    }
    here.run("import rec.jsonl --to anthropic").ok().prints(&["\"model\":\"claude-sonnet-4-6\""]);
}

#[test]
fn every_format_renders_to_files_and_those_of_one_file_to_the_terminal() {
    let here = CommandFolder::new();
    here.run(&format!("{FAST} --out out")).ok();
    here.refuses("report out --format html -o -", &["`-` is none"]);
    for format in FORMATS {
        let folder = format!("as-{}", format.name);
        here.run(&format!("report out --format {} -o {folder}", format.name)).ok();
        let files = here.files(&folder);
        let is_one = |f: &str| !f.ends_with('/') && f != ".ctxbench-report";
        let written: Vec<_> = files.iter().filter(|(f, _)| is_one(f)).collect();
        let is_full = !written.is_empty() && written.iter().all(|(_, b)| !b.is_empty());
        assert!(is_full, "{}", format.name);
        // A file has all tables.
        let details = if format.name == "table" { "--details" } else { "" };
        let print = here.run(&format!("report out --format {} {details}", format.name));
        if !format.prints {
            print.fails_with(2).stderr_contains(&["makes files; name a folder for them with -o"]);
        } else {
            let [(_, bytes)] = written[..] else { panic!("{}: {written:?}", format.name) };
            let (printed, file) = (print.ok().stdout, String::from_utf8_lossy(bytes));
            assert_eq!(printed.trim_end(), file.trim_end(), "{}", format.name);
        }
    }
    let report = |format: &str| here.run(&format!("report out --format {format}")).ok();
    report("json").prints(&["\"version\""]);
    assert_eq!(report("json").stdout, here.read("out/results.json"));
    report("md").prints(&["| ", "codex"]);
    report("html").prints(&["<html", "codex"]);
    assert_eq!(here.files("as-csv")["summary.csv"], here.files("out")["summary.csv"]);
    // An invalid name among valid ones is reported before anything is written.
    let line = "report out --format md --format htm -o none";
    here.refuses(line, &["htm", "did you mean html?"]);
}

#[test]
fn compare_prints_changed_and_unchanged_rows() {
    let here = CommandFolder::new();
    let run = |limit: u32, out: &str| {
        let both = "run login-bug --strategy reference --strategy codex --transport direct";
        here.run(&format!("{both} --window {limit} --out {out}")).ok();
    };
    run(200_000, "a");
    run(12_000, "b");
    here.run("compare a b").ok().prints(&["login-bug", "codex"]);
    here.run("compare a b --markdown").ok().prints(&["|", "codex"]);
    assert_ne!(here.run("compare a a").ok().stdout, here.run("compare a b").ok().stdout);
}

#[test]
fn compact_shows_the_context_before_and_after() {
    let here = CommandFolder::new();
    let out = here.run("compact login-bug --strategy codex").ok();
    out.prints(&["before", "after", " → ", " tokens", "summary"]);
    // codex keeps the user's messages, so the first one is on both sides, and drops tool output.
    let is_twice = |l: &str| l.matches("Our login page is broken").count() == 2;
    assert!(out.stdout.lines().any(is_twice), "{}", out.stdout);
    let before = out.stdout.lines().filter(|l| l.starts_with("output ")).count();
    assert_eq!(before, 8, "{}", out.stdout);
    out.lacks(&["| output "]);
    let sides = out.stdout.lines().filter(|l| l.contains(" | "));
    assert!(sides.map(|l| l.chars().count()).all(|n| n <= 80), "{}", out.stdout);
    here.run("compact login-bug --strategy none").ok().prints(&["none: it compacts nothing here"]);
}

#[test]
fn compact_at_a_turn_shows_every_strategy() {
    let here = CommandFolder::new();
    let at = "compact login-bug --at turn:2";
    let all = here.run(&format!("{at} --json")).ok().json();
    let rows = all["strategies"].as_array().unwrap();
    let of = |name: &str| rows.iter().find(|r| r["strategy"] == name).unwrap();
    // Strategies with a command make one compaction of the same history; others report that they
    // have none. pi refuses if everything fits into its reserve.
    assert!(of("pi")["compactions"].as_array().unwrap().is_empty());
    for name in ["codex", "opencode", "gemini-cli", "claude-code", "openoxide"] {
        let made = of(name)["compactions"].as_array().unwrap();
        assert_eq!(made.len(), 1, "{name}");
        let texts = |side: &str| made[0][side].to_string();
        assert!(texts("before").contains("Our login page is broken"), "{name}");
        assert!(made[0]["after_tokens"].as_u64() < made[0]["before_tokens"].as_u64(), "{name}");
        assert!(texts("after").contains("summary"), "{name}");
    }
    assert_eq!(of("aider")["why"], "it cannot be asked for a compaction, and made none by itself");
    assert!(of("aider")["compactions"].as_array().unwrap().is_empty());
    // Products without instructions for the command report it.
    let told = |name: &str| {
        let line = format!("{at} --strategy {name} --instructions port");
        here.run(&line).ok().stdout.contains("its command takes no instructions")
    };
    let of = ["codex", "opencode", "gemini-cli", "pi", "claude-code", "openoxide"];
    assert_eq!(of.map(told), [true, true, true, false, false, false]);
}

#[test]
fn json_on_standard_output_is_the_results_file() {
    let here = CommandFolder::new();
    let out = here.run(&format!("{FAST} --json --out out")).ok();
    assert_eq!(here.runs("out").len(), 3);
    assert_eq!(out.stdout, here.read("out/results.json"));
}

#[test]
fn output_to_a_pipe_has_no_colours() {
    let here = CommandFolder::new();
    here.run(&format!("{FAST} --out out")).ok().lacks(&["\u{1b}"]);
    here.run(&format!("{FAST} --out out")).env("NO_COLOR", "1").ok().lacks(&["\u{1b}"]);
}

#[cfg(target_os = "linux")]
#[test]
fn output_to_a_terminal_has_colours_unless_no_color() {
    let here = CommandFolder::new();
    let program = common::binary().display().to_string();
    let on_a_terminal = |no_color: Option<&str>| {
        let mut script = std::process::Command::new("script");
        script
            .args(["-qec", &format!("{program} {FAST} --out out 2>/dev/null"), "/dev/null"])
            .current_dir(here.path(""));
        script.env_remove("NO_COLOR").env("TERM", "xterm").stdin(Stdio::null());
        no_color.map(|v| script.env("NO_COLOR", v));
        script.output().map(|o| String::from_utf8_lossy(&o.stdout).into_owned())
    };
    let Ok(coloured) = on_a_terminal(None) else {
        println!("skipped: this system has no `script` command");
        return;
    };
    assert!(coloured.contains("codex") && coloured.contains("\u{1b}["), "{coloured}");
    let plain = on_a_terminal(Some("1")).unwrap();
    assert!(plain.contains("codex") && !plain.contains('\u{1b}'), "{plain}");
    // https://no-color.org: "when present and not an empty string".
    assert!(on_a_terminal(Some("")).unwrap().contains("\u{1b}["));
}
