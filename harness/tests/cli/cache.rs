//! The row cache: shards, concurrent runs, damaged files. All ways to compute results give the same
//! bytes as a single run without a cache.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::common::{CommandFolder, data};
use crate::determinism::assert_same;

/// Copies recordings of three programs and returns the command that runs them with built-in sessions.
fn sessions(here: &CommandFolder) -> String {
    for format in ["claude-code", "codex", "pi"] {
        let all = std::fs::read_dir(data("recordings").join(format)).unwrap();
        let files = all.map(|e| e.unwrap().path());
        let first = files.filter(|f| f.extension().is_some_and(|x| x == "jsonl")).min().unwrap();
        here.write(&format!("corpus/{format}.jsonl"), std::fs::read(first).unwrap());
    }
    "run corpus login-bug login-bug-tight --transport direct".into()
}

const FOUR: &str = "--strategy reference --strategy codex --strategy opencode --strategy none";

fn rows(dir: &Path) -> Vec<PathBuf> {
    let mut files = ctxbench_util::files::walk(dir).unwrap();
    files.retain(|f| f.parent() != Some(dir));
    files
}

#[test]
fn shards_in_one_cache_are_assembled_to_the_whole() {
    let here = CommandFolder::new();
    let run = format!("{} {FOUR}", sessions(&here));
    here.run(&format!("{run} --out whole")).ok();
    here.refuses(&format!("{run} --shard 1/3"), &["--cache"]);
    for part in ["1/3", "1+1/3", "3/3"] {
        let out = here.run(&format!("{run} --shard {part} --cache cache --out part")).ok();
        out.stderr_contains(&[
            "of 3: ",
            " in cache. The same command without --shard writes the results.",
        ]);
        assert!(!here.path("part").exists(), "a shard writes no results");
    }
    let known = rows(&here.path("cache")).len();
    here.run(&format!("{run} --cache cache --out out")).ok().stderr_contains(&["rows from cache"]);
    assert_eq!(rows(&here.path("cache")).len(), known, "nothing was left to compute");
    assert_same(&here, "whole", "out");
}

#[test]
fn cache_with_missing_shard_computes_its_rows() {
    let here = CommandFolder::new();
    let run = format!("{} {FOUR}", sessions(&here));
    here.run(&format!("{run} --shard 2/3 --cache cache")).ok();
    here.run(&format!("{run} --cache cache --out out")).ok().stderr_contains(&["rows from cache"]);
    here.run(&format!("{run} --out whole")).ok();
    assert_same(&here, "whole", "out");
}

#[test]
fn second_run_reuses_rows_of_unchanged_strategies_only() {
    let here = CommandFolder::new();
    let run = "run login-bug login-bug-tight --transport direct";
    here.run(&format!("{run} --strategy reference --strategy codex --out out")).ok();
    let out = here.run(&format!("{run} {FOUR} --out out")).ok();
    out.stderr_contains(&["reused 4 rows from out/.rows"]);
    here.run(&format!("{run} {FOUR} --out fresh")).ok();
    assert_same(&here, "out", "fresh");
    for changed in ["--window 100k", "--model gpt-5.4", "--calibrate off", "--no-rereads"] {
        let line = format!("{run} --strategy codex {changed}");
        here.run(&format!("{line} --out out")).ok().lacks(&["reused"]);
        here.run(&format!("{line} --out plain")).ok();
        assert_same(&here, "out", "plain");
    }
}

#[test]
fn damaged_row_is_computed_again() {
    let here = CommandFolder::new();
    let line = format!("run login-bug login-bug-tight --transport direct {FOUR}");
    here.run(&format!("{line} --out fresh")).ok();
    here.run(&format!("{line} --cache cache --out out")).ok();
    let files = rows(&here.path("cache"));
    let whole = std::fs::read_to_string(&files[0]).unwrap();
    let cost = whole.find("\"cost_usd\":0.").unwrap() + "\"cost_usd\":0.".len();
    let digit = if whole[cost..].starts_with('7') { "8" } else { "7" };
    let damaged: [Vec<u8>; 4] = [
        format!("{}{digit}{}", &whole[..cost], &whole[cost + 1..]).into(),
        vec![],
        whole.as_bytes()[..whole.len() / 2].to_vec(),
        std::fs::read(&files[1]).unwrap(),
    ];
    for bytes in damaged {
        std::fs::write(&files[0], &bytes).unwrap();
        let out = here.run(&format!("{line} --cache cache --out out")).ok();
        out.stderr_contains(&[&format!("reused {} rows from cache", files.len() - 1)]);
        assert_same(&here, "out", "fresh");
    }
}

#[test]
fn cache_in_foreign_folder_is_refused() {
    let here = CommandFolder::with("mine/thesis.tex", "years of work");
    let line = "run login-bug --strategy codex --transport direct --cache mine";
    here.refuses(line, &["is not a ctxbench cache"]);
}

#[test]
fn runs_at_once_share_a_new_cache_and_a_folder() {
    let here = CommandFolder::new();
    let line = "run login-bug --strategy codex --strategy none --transport direct";
    here.run(&format!("{line} --out fresh")).ok();
    for options in ["--cache cache --out out", "--out both"] {
        let start = |_| {
            let run = here.run(&format!("{line} {options}"));
            run.command().stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
        };
        let all: Vec<_> = (0..6).map(start).collect();
        for run in all {
            let out = run.wait_with_output().unwrap();
            assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        }
    }
    assert_same(&here, "out", "fresh");
    assert_same(&here, "both", "fresh");
    let siblings = here.files("").into_keys().filter(|name| name.starts_with('.'));
    assert_eq!(siblings.collect::<Vec<_>>(), Vec::<String>::new());
}

#[test]
fn row_with_error_is_computed_again() {
    let here = CommandFolder::with("none.jsonl", "{\"type\":\"cassette\",\"version\":1}\n");
    let server = "--summarizer openai+http://127.0.0.1:9/v1#m --cassette offline:none.jsonl";
    let line = "run login-bug-tight --strategy codex --strategy none --transport direct";
    for round in 0..2 {
        let messages = here.run(&format!("{line} --cache cache {server}")).output().stderr;
        assert_eq!(messages.contains("reused 1 row "), round == 1, "{messages}");
        let rows = here.csv("ctxbench-out/summary.csv");
        assert_eq!(rows.iter().filter(|r| r["status"] == "error").count(), 1);
    }
    assert_eq!(rows(&here.path("cache")).len(), 1);
}
