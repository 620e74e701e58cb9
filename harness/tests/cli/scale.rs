//! Runs that are divided, broken off and repeated: whatever way results came about, every file of
//! them has the bytes of one run that went through.
//!
//! `CTXBENCH_KILLS=200 cargo test --test cli -- scale::killed --nocapture` kills
//! more often, and prints at which points.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use ctxbench_core::rng::SplitMix64;

use crate::common::Folder;

/// Sessions of several kinds: scripted, a recording with counters, one with subagents.
fn sessions(here: &Folder) -> String {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/recordings");
    let mut n = 0;
    for format in ["claude-code", "codex", "pi"] {
        let all = std::fs::read_dir(format!("{data}/{format}")).unwrap();
        let mut files: Vec<PathBuf> = all.map(|e| e.unwrap().path()).collect();
        files.retain(|f| f.extension().is_some_and(|x| x == "jsonl"));
        files.sort();
        for file in files.iter().take(2) {
            n += 1;
            here.write(&format!("corpus/{n}-{format}.jsonl"), std::fs::read(file).unwrap());
        }
    }
    assert!(n >= 3, "{n} recordings");
    "run corpus login-bug login-bug-tight --transport direct".into()
}

const FOUR: &str = "--strategy reference --strategy codex --strategy opencode --strategy none";

/// The files of results but the one that holds times of the machine.
fn results(here: &Folder, out: &str) -> BTreeMap<String, Vec<u8>> {
    let mut files = here.files(out);
    files.remove("timings.json");
    if let Some(list) = files.get_mut(".ctxbench") {
        *list = String::from_utf8_lossy(list).replace("timings.json\n", "").into();
    }
    files
}

fn same(here: &Folder, a: &str, b: &str) {
    let (a_files, b_files) = (results(here, a), results(here, b));
    let names = |f: &BTreeMap<String, Vec<u8>>| f.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&a_files), names(&b_files), "{a} and {b}");
    for (name, bytes) in &a_files {
        assert!(*bytes == b_files[name], "{name} differs in {a} and {b}");
    }
}

/// Files of finished rows in a folder and below.
fn rows(dir: &Path) -> Vec<PathBuf> {
    let mut found = vec![];
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(rows(&path));
        } else if path.to_string_lossy().ends_with(".run.json") {
            found.push(path);
        }
    }
    found.sort();
    found
}

#[test]
fn the_parts_of_a_run_make_the_whole() {
    let here = Folder::new();
    let run = format!("{} {FOUR}", sessions(&here));
    here.run(&format!("{run} --out whole")).ok();
    for i in 1..=3 {
        here.run(&format!("{run} --shard {i}/3 --out part-{i} --jobs {i}")).ok();
    }
    let ids = |out: &str| {
        let rows = here.csv(&format!("{out}/summary.csv")).into_iter();
        rows.map(|r| r["scenario"].clone()).collect::<std::collections::BTreeSet<_>>()
    };
    let parts = [ids("part-1"), ids("part-2"), ids("part-3")];
    assert!(parts.iter().all(|p| !p.is_empty()));
    assert_eq!(parts.iter().map(|p| p.len()).sum::<usize>(), ids("whole").len());
    // Savings stand in each part, since a session stands whole in one.
    for row in here.csv("part-2/summary.csv") {
        let saves = row["strategy"] == "codex" && row["status"] == "completed";
        assert!(!saves || row["saved_pct"] != "n/a", "{row:?}");
    }
    here.run("merge part-3 part-1 part-2 --out merged").ok();
    same(&here, "whole", "merged");
    for i in 0..3 {
        // As an engine has it that counts from 0, in a folder of parts.
        here.run(&format!("{run} --shard {i}+1/3 --out parts/{i}")).ok();
    }
    here.run("merge parts --out again").ok();
    same(&here, "whole", "again");
    here.run("merge whole --out again").ok();
    same(&here, "whole", "again");

    here.run("merge part-1 part-3 --out lacking")
        .fails_with(2)
        .says(&["part 2/3 of the run is missing", "--partial"]);
    assert!(!here.path("lacking").exists());
    here.run("merge part-1 part-3 --partial --out lacking").ok();
    for own in ["merge part-1 part-2 part-3 --out part-1", "merge parts --out ./parts/0/"] {
        here.run(own).fails_with(2).says(&["is merged, and would be replaced", "--out"]);
    }
    here.run("merge part-3 part-1 part-2 --out again").ok();
    same(&here, "whole", "again");
    here.run("merge part-1 whole --out no").fails_with(2).says(&["is a part of 3 and"]);
    here.run("merge nowhere").fails_with(2).says(&["nowhere", "cannot be read"]);
    here.write("empty/x", "");
    here.run("merge empty").fails_with(2).says(&["empty: no results in it"]);
    here.run("merge").fails_with(2).says(&["DIR"]);
}

#[test]
fn what_a_team_needs_is_told_by_the_whole_and_by_no_part() {
    let here = Folder::new();
    let run = "run login-bug login-bug-tight ten-compactions --strategy codex --strategy opencode";
    let run = format!("{run} --transport direct --team 5 --tpm 40k");
    here.run(&format!("{run} --out whole")).ok();
    for i in 1..=2 {
        let part = here.run(&format!("{run} --shard {i}/2 --out part-{i}")).ok();
        part.says(&["--team: a part of a run has no team.md", "ctxbench merge"]);
        assert!(!part.stdout.contains("tokens per minute") && here.path("whole/team.md").exists());
        assert!(!here.path(&format!("part-{i}/team.md")).exists());
    }
    here.run("merge part-1 part-2 --team 5 --tpm 40k --out merged").ok();
    same(&here, "whole", "merged");
    here.run("merge part-1 part-2 --tpm 40k").fails_with(2).says(&["--team"]);
}

#[test]
fn parts_between_which_the_list_of_sessions_changed_are_not_put_together() {
    let here = Folder::new();
    let line = |i: u64| {
        let text = format!("Question {i}");
        [
            serde_json::json!({"type": "session", "version": 1, "id": format!("s{i}")}),
            serde_json::json!({"type": "user", "id": "u1", "text": text}),
            serde_json::json!({"type": "assistant", "id": "a1", "text": "Done."}),
        ]
    };
    let add = |i: u64| {
        let text: String = line(i).iter().map(|l| format!("{l}\n")).collect();
        here.write(&format!("corpus/{i}.jsonl"), text);
    };
    (1..=4).for_each(add);
    let run = "run corpus --strategy none --transport direct";
    here.run(&format!("{run} --shard 1/2 --out p1")).ok();
    here.run(&format!("{run} --shard 2/2 --out p2")).ok();
    here.run(&format!("{run} --shard 2/2 --limit 3 --out fewer")).ok();
    here.run("merge p1 p2 --out all").ok();
    assert_eq!(here.json("p1/results.json")["list"]["sessions"], 4);
    assert!(here.json("all/results.json").get("list").is_none());
    add(0);
    here.run(&format!("{run} --shard 2/2 --out more")).ok();
    for (other, n) in [("more", "5 sessions"), ("fewer", "3 sessions")] {
        let said = here.run(&format!("merge p1 {other} --out out")).fails_with(2);
        said.says(&["part 1/2 in p1", "4 sessions", &format!("part 2/2 in {other}"), n]);
        assert!(!here.path("out").exists());
    }
}

#[test]
fn runs_of_other_strategies_are_put_together_too() {
    let here = Folder::new();
    let run = sessions(&here);
    here.run(&format!("{run} {FOUR} --out whole")).ok();
    here.run(&format!("{run} --strategy codex --strategy none --out a")).ok();
    here.run(&format!("{run} --strategy reference --strategy opencode --out b")).ok();
    assert!(here.csv("a/summary.csv").iter().all(|r| r["saved_pct"] == "n/a"));
    // Savings follow from both.
    here.run("merge a b --out merged").ok();
    same(&here, "whole", "merged");
    here.run(&format!("{run} --strategy codex --window 100k --out c")).ok();
    here.run("merge a c --out no").fails_with(2).says(&["codex", "with other figures"]);
}

#[test]
fn finished_rows_are_found_by_a_second_run_with_one_strategy_changed() {
    let here = Folder::new();
    let run = sessions(&here);
    let (codex, other) = ("--strategy reference --strategy codex", "--strategy opencode");
    here.run(&format!("{run} {codex} --cache cache --out first")).ok();
    let known = rows(&here.path("cache")).len();
    let second = format!("{run} {codex} {other}");
    let said = here.run(&format!("{second} --cache cache --out second")).ok().stderr;
    // What was recorded is no work and is not counted.
    let found: usize = said
        .split(" rows that are in cache")
        .next()
        .unwrap()
        .rsplit(' ')
        .next()
        .unwrap()
        .parse()
        .unwrap_or_else(|_| panic!("{said}"));
    assert!(found > 0 && found <= known, "{found} of {known}");
    here.run(&format!("{second} --out fresh")).ok();
    same(&here, "second", "fresh");
    // Another setting, model or session is another row.
    for changed in ["--window 100k", "--model gpt-5.4", "--calibrate off", "--no-rereads"] {
        let line = format!("run login-bug --transport direct {codex} {changed}");
        let said = here.run(&format!("{line} --cache cache --out changed")).ok().stderr;
        assert!(!said.contains("not computed again"), "{changed}: {said}");
        here.run(&format!("{line} --out plain")).ok();
        same(&here, "changed", "plain");
    }
}

#[test]
fn a_cache_that_was_torn_or_meddled_with_changes_no_figure() {
    let here = Folder::new();
    let line = format!("run login-bug login-bug-tight --transport direct {FOUR}");
    here.run(&format!("{line} --out fresh")).ok();
    here.run(&format!("{line} --cache cache --out out")).ok();
    let files = rows(&here.path("cache"));
    let (a, b) = (std::fs::read(&files[0]).unwrap(), std::fs::read(&files[1]).unwrap());
    let text = String::from_utf8(a.clone()).unwrap();
    let cost = text.find("\"cost_usd\":0.").unwrap() + "\"cost_usd\":0.".len();
    let digit = if text[cost..].starts_with('7') { "8" } else { "7" };
    let damage: [Vec<u8>; 6] = [
        format!("{}{digit}{}", &text[..cost], &text[cost + 1..]).into(),
        vec![],
        a[..a.len() / 2].to_vec(),
        b,
        text.replacen("\"version\":1", "\"version\":0", 1).into(),
        text.replacen("\"input_tokens\":", "\"input_tokens\":true,\"x\":", 1).into(),
    ];
    for bytes in damage {
        std::fs::write(&files[0], &bytes).unwrap();
        std::fs::write(here.path("cache/.ctxbench-1-1.tmp"), "half").unwrap();
        let said = here.run(&format!("{line} --cache cache --out out")).ok().stderr;
        assert!(said.contains(&format!("{} rows that are in cache", files.len() - 1)), "{said}");
        same(&here, "out", "fresh");
        assert!(!here.path("cache/.ctxbench-1-1.tmp").exists());
    }
    here.write("mine/thesis.tex", "years of work");
    let refused = here.run(&format!("{line} --cache mine")).fails_with(2);
    refused.says(&["--cache", "is no cache of ctxbench"]);
    assert_eq!(here.files("mine").len(), 1);
}

#[test]
fn runs_that_begin_at_once_begin_one_cache() {
    let here = Folder::new();
    // One is just writing what makes the folder a cache.
    here.write("cache/.ctxbench-1-0.tmp", "half");
    let held = std::fs::File::open(here.path("cache/.ctxbench-1-0.tmp")).unwrap();
    held.lock().unwrap();
    let line = "run login-bug --strategy codex --transport direct";
    here.run(&format!("{line} --cache cache --out fresh")).ok();
    assert!(here.path("cache/.ctxbench-1-0.tmp").exists());
    drop(held);
    for round in 0..3 {
        let start = |n| {
            let run = here.run(&format!("{line} --cache cache-{round} --out out-{n}"));
            run.command().stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
        };
        let all: Vec<_> = (0..4).map(start).collect();
        for run in all {
            let out = run.wait_with_output().unwrap();
            assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        }
        (0..4).for_each(|n| same(&here, &format!("out-{n}"), "fresh"));
    }
}

#[test]
fn rows_that_failed_are_computed_again() {
    let here = Folder::new();
    here.write("none.jsonl", "{\"type\":\"cassette\",\"version\":1}\n");
    let server = "--summarizer openai+http://127.0.0.1:9/v1#m --cassette offline:none.jsonl";
    let line = "run login-bug-tight --strategy codex --strategy none --transport direct";
    let line = format!("{line} --cache cache {server}");
    for _ in 0..2 {
        let said = here.run(&line).ok().stderr;
        assert!(!said.contains("2 rows that are"), "{said}");
        let rows = here.csv("ctxbench-out/summary.csv");
        assert_eq!(rows.iter().filter(|r| r["status"] == "error").count(), 1);
    }
    assert_eq!(rows(&here.path("cache")).len(), 1, "{:?}", rows(&here.path("cache")));
}

fn kills() -> u64 {
    let given = std::env::var("CTXBENCH_KILLS").ok();
    given.map_or(24, |n| n.parse().expect("CTXBENCH_KILLS is a number"))
}

/// Starts a run and kills it when it has stored so many rows and gone on for a while. Whether it
/// was killed before it ended.
fn kill(here: &Folder, line: &str, after_rows: usize, spins: u64) -> bool {
    let mut command = here.run(line).command();
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let began = rows(&here.path("out.partial")).len();
    loop {
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        if rows(&here.path("out.partial")).len() >= began + after_rows {
            break;
        }
        std::thread::yield_now();
    }
    for i in 0..spins {
        std::hint::black_box(i);
    }
    child.kill().unwrap();
    child.wait().unwrap().code().is_none()
}

#[test]
#[ignore = "nightly: slow"]
fn killed_anywhere_a_run_goes_on_and_ends_as_if_nothing_had_happened() {
    let here = Folder::new();
    let line = format!("{} {FOUR} --jobs 2", sessions(&here));
    here.run(&format!("{line} --out fresh")).ok();
    let all =
        here.csv("fresh/summary.csv").iter().filter(|r| r["strategy"] != "as-recorded").count();
    let mut random = SplitMix64::new(7);
    let (mut killed, mut ended, mut found) = (0, 0, 0);
    while killed < kills() {
        // Some right after each other, before anything ends.
        for _ in 0..=random.below(3) {
            let most = (all as u64).min(12);
            let (rows, spins) = (random.below(most) as usize, random.below(40_000_000));
            match kill(&here, &format!("{line} --out out"), rows, spins) {
                true => killed += 1,
                false => ended += 1,
            }
        }
        let left = rows(&here.path("out.partial")).len();
        let said = here.run(&format!("{line} --out out")).ok().stderr;
        if said.contains("were not computed again") {
            found += 1;
        }
        assert!(left == 0 || !said.contains("out.interrupted"), "{said}");
        same(&here, "out", "fresh");
        let beside: Vec<String> = here.files("").into_keys().filter(|f| !f.contains('/')).collect();
        assert_eq!(beside, Vec::<String>::new(), "files left beside the results");
        assert!(!here.path("out.partial").exists());
        if random.below(2) == 0 {
            std::fs::remove_dir_all(here.path("out")).unwrap();
        }
    }
    println!("{killed} kills, {ended} runs ended before theirs; rows found after {found} of them");
    assert!(found > 0);
}

#[test]
fn a_run_that_broke_off_is_taken_up_by_the_same_run_and_kept_for_another() {
    let here = Folder::new();
    let line = format!("{} {FOUR} --jobs 1 --out out", sessions(&here));
    while !kill(&here, &line, 4, 0) {}
    let left = rows(&here.path("out.partial")).len();
    assert!(left >= 4, "{left}");
    // Another run has no use for them, and makes results of them.
    let other = "run login-bug-tight --strategy aider --transport direct --out out";
    here.run(other).ok().says(&["an earlier run into out did not end", "are in out.interrupted"]);
    assert_eq!(here.json("out.interrupted/results.json")["runs"].as_array().unwrap().len(), left);
    assert!(!here.path("out.partial").exists());
}

#[cfg(unix)]
#[test]
fn what_is_private_stays_private() {
    use std::os::unix::fs::PermissionsExt;
    let mode = |p: &Path| std::fs::metadata(p).unwrap().permissions().mode() & 0o777;
    let here = Folder::new();
    sessions(&here);
    let run = "run corpus/1-claude-code.jsonl corpus/2-codex.jsonl --transport direct";
    let run = format!("{run} --strategy codex --strategy none --cache cache");
    here.run(&format!("{run} --out open")).ok();
    let open = rows(&here.path("cache"));
    assert!(open.iter().all(|f| mode(f) & 0o044 != 0));
    std::fs::remove_dir_all(here.path("cache")).unwrap();
    let secret = here.path("corpus/1-claude-code.jsonl");
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).unwrap();
    here.run(&format!("{run} --out out")).ok();
    same(&here, "open", "out");
    let modes: Vec<u32> = rows(&here.path("cache")).iter().map(|f| mode(f)).collect();
    assert!(!modes.is_empty() && modes.iter().all(|m| *m == 0o600), "{modes:?}");
    assert_eq!((mode(&here.path("out")), mode(&here.path("out/results.json"))), (0o700, 0o600));
    here.run("merge out --out merged").ok();
    assert_eq!(mode(&here.path("merged/results.sqlite")), 0o600);
}

#[test]
fn traces_are_whole_however_the_rows_came_about() {
    let here = Folder::new();
    let line = format!("{} {FOUR} --jobs 2", sessions(&here));
    let with = |n: &str| format!("{line} --trace t{n}.jsonl --status s{n}.jsonl");
    here.run(&format!("{} --out fresh", with("1"))).ok();
    here.run(&format!("{line} --cache cache --out plain")).ok();
    // Rows without lines are of no use to who wants lines.
    let said = here.run(&format!("{} --cache cache --out a", with("2"))).ok().stderr;
    assert!(!said.contains("not computed again"), "{said}");
    here.run(&format!("{} --cache cache --out b", with("3"))).ok().says(&["not computed again"]);
    for n in ["2", "3"] {
        assert!(here.read(&format!("t{n}.jsonl")) == here.read("t1.jsonl"));
        assert!(here.read(&format!("s{n}.jsonl")) == here.read("s1.jsonl"));
    }
    assert!(here.read("t1.jsonl").lines().count() > 50);
}
