//! The gate end to end: a stored baseline, one figure made worse at a time, and the exit code with
//! its reason.

use crate::common::CommandFolder;
use serde_json::{Value, json};

/// A run of three strategies on two scenarios.
const RUN: &str = "run login-bug login-bug-tight --strategy reference --strategy codex \
                   --strategy observation-masking --transport direct";

/// Creates the results of [`RUN`] in `out`, and their baseline in `base.json`.
fn measured() -> CommandFolder {
    let here = CommandFolder::new();
    here.run(&format!("{RUN} --out out")).ok();
    here.run("gate out --baseline base.json --store --allow-broken")
        .ok()
        .stderr_contains(&["base.json"]);
    here
}

fn record<'a>(results: &'a mut Value, scenario: &str, strategy: &str) -> &'a mut Value {
    let runs = results["runs"].as_array_mut().unwrap();
    runs.iter_mut()
        .find(|r| r["scenario"]["id"] == scenario && r["strategy"]["label"] == strategy)
        .unwrap()
}

fn add(record: &mut Value, metric: &str, by: f64) {
    let old = record["summary"][metric]
        .as_f64()
        .unwrap_or_else(|| panic!("{metric} is no number in {}", record["summary"]));
    record["summary"][metric] = json!(old + by);
}

/// Writes the results with one change for codex on login-bug-tight.
fn changed(here: &CommandFolder, change: impl FnOnce(&mut Value)) {
    let mut results = here.json("out/results.json");
    change(record(&mut results, "login-bug-tight", "codex"));
    here.write("new.json", results.to_string());
}

#[test]
fn worse_gated_metric_fails_and_names_its_row() {
    let here = measured();
    // A figure that becomes unknown is worse, too.
    type Change = (&'static str, &'static str, fn(&mut Value));
    let changes: [Change; 2] = [
        ("status", "status completed → overflow", |r| r["status"] = json!("overflow")),
        ("recall_pct", "n/a", |r| r["summary"]["recall_pct"] = Value::Null),
    ];
    for (metric, told, change) in changes {
        changed(&here, change);
        let out = here.run("gate new.json --baseline base.json").fails_with(1);
        let reasons: Vec<&str> = out.stdout.lines().filter(|l| l.starts_with("FAIL")).collect();
        assert_eq!(reasons.len(), 1, "{metric}: {}", out.stdout);
        for word in ["login-bug-tight × codex", told] {
            assert!(reasons[0].contains(word), "{metric}: {word:?} is missing in {}", reasons[0]);
        }
        let (what, next) = match metric {
            "recall_pct" => (
                "Lost facts",
                "explain new.json --scenario login-bug-tight --strategy codex --lost",
            ),
            _ => ("All figures", "report new.json --details"),
        };
        out.stderr_contains(&["gate failed", &format!("{what}: ctxbench {next}")]);
        out.lacks(&["--store"]);
        here.run(next).ok();
    }
}

#[test]
fn a_row_that_is_missing_fails_and_a_new_one_is_only_noted() {
    let here = measured();
    let mut fewer = here.json("out/results.json");
    fewer["runs"]
        .as_array_mut()
        .unwrap()
        .retain(|r| r["scenario"]["id"] == "login-bug" || r["strategy"]["label"] != "codex");
    here.write("fewer.json", fewer.to_string());
    let out = here.run("gate fewer.json --baseline base.json").fails_with(1);
    out.prints(&["login-bug-tight × codex: is in the baseline"]);
    here.run("gate fewer.json --baseline fewer-base.json --store --allow-broken").ok();
    let out = here.run("gate out --baseline fewer-base.json").ok();
    out.prints(&["note", "login-bug-tight × codex: is new"]);
}

#[test]
fn absolute_limits_hold_for_products() {
    let here = measured();
    // The first row is the one of `login-bug`.
    let cost: f64 = here.row("out", "codex")["cost_usd"].parse().unwrap();
    let gate = "gate out --baseline base.json";
    here.run(&format!("{gate} --max cost_usd=1000 --min steps_completed=1")).ok();
    let out = here.run(&format!("{gate} --max cost_usd={}", cost / 2.0)).fails_with(1);
    out.prints(&["login-bug × codex: cost_usd is", "ceiling"]);
    let out = here.run(&format!("{gate} --min saved_pct=99.9")).fails_with(1);
    out.prints(&["login-bug × codex: saved_pct is", "floor"]);
    // The reference is not a product.
    out.lacks(&["× reference: saved_pct is"]);
}

#[test]
fn other_version_or_broken_file_exits_with_2() {
    let here = measured();
    let mut other = here.json("base.json");
    other["version"] = json!(other["version"].as_u64().unwrap() + 1);
    let mut old = here.json("out/results.json");
    old["version"] = json!(0);
    let text = here.read("base.json");
    let slip = text.replacen("saved_pct", "saved_pctt", 1);
    let cases: [(&str, &str, &[&str]); 4] = [
        ("out --baseline other.json", &other.to_string(), &["other.json", "version", "expected"]),
        (
            "old.json --baseline base.json",
            &old.to_string(),
            &["old.json", "version 0", "run again"],
        ),
        ("out --baseline slip.json", &slip, &["slip.json", "the baseline was edited", "restore"]),
        ("out --baseline half.json", &text[..40], &["half.json, line"]),
    ];
    for (arguments, content, words) in cases {
        let file = words[0].split(',').next().unwrap();
        here.write(file, content);
        here.refuses(&format!("gate {arguments}"), words);
    }
}

#[test]
fn checking_writes_nothing() {
    let here = measured();
    changed(&here, |r| add(r, "saved_pct", -1.0));
    let before = here.files("");
    here.run("gate new.json --baseline base.json").fails_with(1);
    here.run("gate out --baseline base.json").ok().prints(&["gate passed"]);
    here.run("gate out/results.json --baseline base.json").ok();
    assert_eq!(before, here.files(""));
}

#[test]
fn an_edited_baseline_is_refused() {
    let here = measured();
    let text = here.read("base.json");
    let (row, next) = (text.find("    {").unwrap(), text.find("    },\n").unwrap() + 7);
    let edited = [
        text.replacen("\"cost_usd\": ", "\"cost_usd\": 1", 1),
        text.replacen("\"status\": \"completed\"", "\"status\": \"error\"", 1),
        [&text[..row], &text[next..]].concat(),
    ];
    for edited in edited {
        here.write("edited.json", edited);
        here.refuses("gate out --baseline edited.json", &["edited.json", "was edited"]);
        let store = "gate out --baseline edited.json --store --allow-broken";
        here.refuses(store, &["was edited", "--allow-worse"]);
    }
}

#[test]
fn empty_baseline_gates_nothing_and_is_replaced_on_request_only() {
    let here = measured();
    let mut other = here.json("base.json");
    let rows = std::mem::take(&mut other["rows"]);
    other["rows"] = json!([]);
    here.write("none.json", other.to_string());
    here.write("empty.json", "");
    other["rows"] = rows;
    other["version"] = json!(0);
    here.write("old.json", other.to_string());
    here.refuses("gate out --baseline none.json --max cost_usd=1000", &["none.json", "edited"]);
    here.refuses("gate out --baseline empty.json --max cost_usd=1000", &["empty.json", "empty"]);
    for name in ["none.json", "empty.json", "old.json"] {
        let before = here.read(name);
        let line = format!("gate out --baseline {name} --store --allow-broken");
        here.refuses(&line, &["--allow-worse"]);
        assert_eq!(here.read(name), before);
        here.run(&format!("{line} --allow-worse")).ok();
        assert_eq!(here.read(name), here.read("base.json"));
    }
    // Results without a row are no baseline.
    let mut results = here.json("out/results.json");
    results["runs"] = json!([]);
    here.write("none.json", results.to_string());
    here.refuses("gate none.json --baseline fresh.json --store", &["none.json has no rows"]);
}

#[test]
fn results_of_before_do_not_pass_for_those_of_a_run_that_failed() {
    let here = measured();
    let gate = "gate out --baseline base.json";
    let words = "out/results.json has the results of an earlier run";
    for line in ["run nothing-of-this-name --out out", "run login-bug --strategy nobody --out out"]
    {
        here.run(line).fails_with(2);
        here.refuses(gate, &[words, "run again"]);
        here.refuses("gate out/results.json --baseline new.json --store", &[words]);
        here.refuses("compare out out", &[words]);
        here.run(&format!("{RUN} --out out")).ok();
        here.run(gate).ok();
    }
}

#[test]
fn session_with_another_title_and_date_is_the_same_one() {
    let here = CommandFolder::new();
    here.run("import login-bug -o s.jsonl").ok();
    let run = "run s.jsonl --strategy reference --strategy codex --transport direct --out out";
    here.run(run).ok();
    here.run("gate out --baseline base.json --store").ok();
    let text = here.read("s.jsonl");
    let (head, rest) = text.split_once('\n').unwrap();
    let mut head: Value = serde_json::from_str(head).unwrap();
    head["title"] = json!("another title");
    head["started"] = json!("2031-02-03T04:05:06Z");
    here.write("s.jsonl", format!("{head}\n{rest}"));
    here.run(run).ok();
    here.run("gate out --baseline base.json").ok();
    here.write("s.jsonl", format!("{head}\n{}", rest.replacen("login", "logon", 1)));
    here.run(run).ok();
    here.run("gate out --baseline base.json").fails_with(1).prints(&["another session"]);
}

/// Ways to let a regression pass, tried on a row of codex that costs 5 % more.
#[test]
fn a_regression_does_not_pass_by_limits_or_other_measurements() {
    let here = measured();
    changed(&here, |r| {
        let cost = r["summary"]["cost_usd"].as_f64().unwrap();
        add(r, "cost_usd", cost * 0.05);
    });
    let refused = |results: &str, options: &str, words: &[&str]| {
        let line = format!("gate {results} --baseline base.json {options}");
        let out = here.run(&line).fails_with(1);
        out.prints(words);
        assert!(!(out.stdout + &out.stderr).contains("--store"), "{line}");
    };
    let cost = "login-bug-tight × codex: cost ";
    for limit in ["--max cost_usd=20", "--min cost_usd=0", "--max integrity_failures=99"] {
        refused("new.json", limit, &[cost, "(allowed +1 %)"]);
    }
    for (options, words) in [
        ("--summarizer ideal", "another yardstick"),
        ("--no-rereads", "another yardstick"),
        ("--calibrate off", "another yardstick"),
        ("--summary-model claude-haiku-4-5", "another yardstick"),
        ("--memory .", "another yardstick"),
        ("--window 1M", "another window than in the baseline"),
        ("--model claude-opus-4-6", "is in the baseline but not in the new results"),
        ("--limit 1", "is in the baseline but not in the new results"),
    ] {
        here.run(&format!("{RUN} {options} --out other")).ok();
        refused("other", "", &[words]);
    }
    here.run(&format!("{} --out fewer", RUN.replace("--strategy codex ", ""))).ok();
    refused("fewer", "", &["codex: is in the baseline but not in the new results"]);
}

#[test]
fn broken_rows_become_a_baseline_only_on_request() {
    let here = measured();
    changed(&here, |r| r["status"] = json!("overflow"));
    let line = "gate new.json --baseline fresh.json --store";
    here.run(line).fails_with(2).stderr_contains(&[
        "2 rows did not finish or broke a rule",
        "login-bug-tight × codex × claude-sonnet-4-6: overflow",
        "--allow-broken",
    ]);
    assert!(!here.path("fresh.json").exists());
    here.run(&format!("{line} --allow-broken")).ok();
}

/// Drift in small steps: each change is within the tolerance, and would be the next baseline.
#[test]
fn worse_figures_become_a_baseline_only_on_request() {
    let here = measured();
    changed(&here, |r| {
        let cost = r["summary"]["cost_usd"].as_f64().unwrap();
        add(r, "cost_usd", cost * 0.005);
    });
    here.run("gate new.json --baseline base.json").ok();
    let before = here.read("base.json");
    let line = "gate new.json --baseline base.json --store --allow-broken";
    here.run(line).fails_with(2).stderr_contains(&[
        "the present baseline does not show that these results are no worse",
        "login-bug-tight × codex: cost ",
        "--allow-worse",
    ]);
    assert_eq!(here.read("base.json"), before);
    here.run(&format!("{line} --allow-worse")).ok();
    // Better results need no permission.
    here.run("gate out --baseline base.json --store --allow-broken").ok();
    assert_eq!(here.read("base.json"), before);
}
