//! What a run prints: one table of at most 80 columns, with failures and what decides before it.

use std::collections::BTreeSet;

use crate::common::{CommandFolder, Output};
use ctxbench_strategies::Spec;

/// Checks the size of the whole output at 80 columns.
#[track_caller]
fn assert_short(out: &Output) {
    let lines = out.stdout.lines().count() + out.stderr.lines().filter(is_no_note).count();
    assert!(lines <= 40, "{lines} lines:\n{}", out.stdout);
    let wide = out.stdout.lines().find(|l| l.chars().count() > 80);
    assert_eq!(wide, None, "{}", out.stdout);
}

fn is_no_note(line: &&str) -> bool {
    !line.starts_with("note: ")
}

#[test]
fn default_run_is_one_table_on_one_screen_and_has_rows_of_every_strategy() {
    let here = CommandFolder::new();
    let out = here.run("").ok();
    assert_short(&out);
    out.stderr_contains(&["ctxbench-out/index.html"]);
    out.prints(&[
        "login-bug-marathon: ",
        " compactions\n",
        "also: login-bug (12 replies): opencode +29 % to codex +60 %\n",
    ]);
    out.prints(&["! aider failed at reply 69 of 272: prompt too long for the window\n"]);
    out.prints(&["openoxide (design) ", "never compacting "]);
    // The time that the run took is not in the files, so a second run gives the same report.
    let report = here.run("report ctxbench-out --no-redact").ok();
    let body = |text: &str| text.split_once('\n').unwrap().1.to_string();
    assert_eq!(body(&report.stdout), body(&out.stdout));
    let first = out.stdout.lines().next().unwrap();
    assert!(first.starts_with("ctxbench ") && first.ends_with(" s"), "{first}");
    let details = here.run("report ctxbench-out --details").ok();
    let strategies: Vec<String> = Spec::defaults().iter().map(Spec::label).collect();
    for name in &strategies {
        let is_row = |l: &str| l.starts_with(name.as_str());
        assert!(details.stdout.lines().any(is_row), "the table lacks {name}");
    }
    let rows = here.csv("ctxbench-out/summary.csv");
    for scenario in ["login-bug", "login-bug-marathon", "login-bug-tight"] {
        details.prints(&[&format!("── {scenario}: ")]);
        let rows: Vec<_> = rows.iter().filter(|r| r["scenario"] == scenario).collect();
        let of: BTreeSet<&String> = rows.iter().map(|r| &r["strategy"]).collect();
        assert_eq!(of, strategies.iter().collect(), "{scenario}");
        let reference = rows.iter().find(|r| r["strategy"] == "reference").unwrap();
        assert_eq!(reference["status"], "completed", "{scenario}");
        let number = |column: &str| reference[column].parse::<f64>().unwrap();
        let figures = ["prefix_stability", "saved_pct"].map(number);
        assert_eq!(figures, [1.0, 0.0], "{scenario}");
    }
    // Every strategy compacts several times in the long session, except three: the reference, none,
    // and Aider as released, which fails before.
    for row in rows.iter().filter(|r| r["scenario"] == "login-bug-marathon") {
        let n: u64 = row["compactions"].parse().unwrap();
        let is_without = ["reference", "none", "aider"].contains(&&*row["strategy"]);
        assert_eq!(n >= 3, !is_without, "{}: {n}", row["strategy"]);
    }
}

#[test]
fn details_have_every_session_and_quiet_has_the_path_and_failures() {
    let here = CommandFolder::new();
    let run = "login-bug login-bug-tight --transport direct --strategy reference --strategy aider";
    here.run(&format!("{run} --details")).ok().prints(&[
        "── login-bug: ",
        "── login-bug-tight: ",
        "login-bug × aider: a summary was written",
        "Modelled: ",
    ]);
    let run = run.replace("login-bug ", "");
    let quiet = here.run(&format!("{run} --quiet")).ok();
    let failed = "! aider failed at reply 7 of 12: prompt too long for the window\n";
    assert_eq!((quiet.stdout, &*quiet.stderr), (format!("ctxbench-out\n{failed}"), ""));
}

#[test]
fn sweep_has_todays_setting_and_rows_of_values() {
    let here = CommandFolder::new();
    let sweep = "--strategy claude-code:threshold_percent=[50,60,70]";
    let out = here.run(&format!("login-bug-marathon --transport direct {sweep}")).ok();
    assert_short(&out);
    let table = &out.stdout[out.stdout.find("\nthreshold_percent ").unwrap()..];
    let names: Vec<&str> = table.lines().skip(2).take(4).map(|l| l[..6].trim_end()).collect();
    assert_eq!(names, ["50 %", "60 %", "70 %", "today"]);
    let head: Vec<&str> = table.lines().nth(1).unwrap().split_whitespace().collect();
    let want = "threshold_percent cost today recall at risk cached wait compactions";
    assert_eq!(head.join(" "), want);
    out.lacks(&[" never "]);
}

#[test]
fn narrow_terminal_names_the_columns_that_are_left_out() {
    let here = CommandFolder::new();
    let run = here.run("login-bug-tight --transport direct --strategy reference --strategy codex");
    run.env("COLUMNS", "50").ok().prints(&["No room for: ", "compactions; widen"]);
}

#[test]
#[ignore = "nightly: slow"]
fn all_scenarios_fit_on_one_screen() {
    let here = CommandFolder::new();
    assert_short(&here.run("all --transport direct").ok());
}
