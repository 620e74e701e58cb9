//! Drives real, unmodified agents through sessions and compares them with our implementations.
//!
//! `.ci/agents --test` installs the agents and runs these tests.

use std::path::{Path, PathBuf};

use crate::common::{CommandFolder, repository};
use serde_json::Value;

/// Window of the agents, small enough that the test sessions are compacted.
const NARROW: &str = "30k";
/// Window of pi, which keeps 20,000 tokens and a reserve of 16,384.
const WIDE: &str = "60k";

/// Returns the folder with the agents: `CTXBENCH_AGENTS_DIR`, or `target/agents`.
fn agents() -> PathBuf {
    let named = std::env::var_os("CTXBENCH_AGENTS_DIR").map(PathBuf::from);
    let dir = named.unwrap_or_else(|| repository("target/agents"));
    let installed = dir.join("installed").is_file();
    assert!(installed, "no agents in {}: run .ci/agents", dir.display());
    dir.canonicalize().unwrap()
}

struct Driven {
    rows: Vec<Value>,
    beside: Vec<Value>,
    here: CommandFolder,
}

fn drive(dir: &Path, sessions: &str, window: &str, more: &str) -> Driven {
    let here = CommandFolder::new();
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", dir.join("bin").display());
    let line = format!("drive {sessions} --window {window} --out out {more}");
    here.run(&line).env("PATH", &path).ok();
    Driven {
        rows: here.runs("out"),
        beside: here.json("out/drive.json").as_array().expect("drives").clone(),
        here,
    }
}

impl Driven {
    fn row(&self, session: &str, label: &str) -> &Value {
        let found = self.rows.iter().find(|r| {
            r["scenario"]["id"] == session && r["strategy"]["label"].as_str() == Some(label)
        });
        found.unwrap_or_else(|| panic!("no row {session} × {label}"))
    }
}

/// Checks that both request summaries at the same requests, and that input and cost differ by at
/// most `most_pct` percent.
fn agree(driven: &Driven, most_pct: f64) {
    assert!(!driven.beside.is_empty());
    for d in &driven.beside {
        let pair = format!("{} × {}", d["session"], d["program"]);
        assert_eq!(d["status"], "completed", "{pair}: {}", d["error"]);
        let beside = &d["beside"];
        assert!(beside.is_object(), "{pair}: no comparison");
        assert_eq!(
            beside["summary_requests"]["real"], beside["summary_requests"]["ours"],
            "{pair}: summaries are requested elsewhere"
        );
        for name in ["input, tokens", "cost, USD"] {
            let figures = beside["figures"].as_array().expect("figures");
            let figure = figures.iter().find(|f| f["what"] == name).expect("a figure");
            let [real, ours] = ["real", "ours"].map(|of| figure[of].as_f64().expect("a number"));
            let off = 100.0 * (ours / real - 1.0);
            assert!(off.abs() <= most_pct, "{pair}: {name} differs by {off:+.2} %");
        }
    }
}

#[test]
#[ignore = "needs .ci/agents"]
fn real_agents_compact_and_cost_like_ours() {
    let dir = agents();
    let recording = repository("tests/data/recordings/opencode/s2_multiturn.export.json");
    let sessions = format!("login-bug ten-compactions {}", recording.display());
    for (agent, window, most_pct) in [
        ("codex", NARROW, 0.5),
        ("opencode", NARROW, 0.5),
        ("gemini-cli", NARROW, 2.0),
        ("pi", WIDE, 2.0),
        ("aider", NARROW, 2.0),
    ] {
        let driven = drive(&dir, &sessions, window, &format!("--agent {agent}"));
        agree(&driven, most_pct);
        if agent == "aider" {
            continue;
        }
        // `ten-compactions` is compacted, and both keep the same facts.
        let real = driven.row("ten-compactions", &format!("real-{agent}"));
        assert_eq!(real["strategy"]["driven"], true);
        assert!(real["summary"]["compactions"].as_u64() >= Some(3), "{agent} did not compact");
        let ours = driven.row("ten-compactions", agent);
        let kept = |r: &Value| r["summary"]["recall_pct"].as_f64().expect("needs");
        assert!((kept(real) - kept(ours)).abs() < 0.01, "{agent}: other facts are kept");
    }
}

#[test]
#[ignore = "needs .ci/agents"]
fn two_runs_of_an_agent_agree() {
    let dir = agents();
    let agents = "--agent codex --agent opencode";
    let runs = [(); 2].map(|()| drive(&dir, "login-bug", NARROW, agents));
    for label in ["real-codex", "real-opencode"] {
        let [a, b] = [&runs[0], &runs[1]].map(|d| d.row("login-bug", label));
        for pair in ["requests", "compactions", "summary_calls", "output_tokens"] {
            assert_eq!(a["summary"][pair], b["summary"][pair], "{label}: {pair}");
        }
        let input = |r: &Value| r["summary"]["input_tokens"].as_f64().expect("tokens");
        let (a, b) = (input(a), input(b));
        assert!((a / b - 1.0).abs() < 0.001, "{label}: {a} and {b}");
    }
}

#[test]
#[ignore = "needs .ci/agents"]
fn agents_without_implementation_complete() {
    let dir = agents();
    let own = repository("examples/deepagents/deepagents.toml");
    let python = dir.join("deepagents/bin/python");
    let (own, python) = (own.display(), python.display());
    let more = format!("--agent qwen-code --agent {own} --program deepagents={python}");
    let driven = drive(&dir, "login-bug", NARROW, &more);
    for agent in ["qwen-code", "deepagents"] {
        let row = driven.row("login-bug", &format!("real-{agent}"));
        assert_eq!(row["status"], "completed", "{agent}: {}", row["error"]);
        assert!(row["summary"]["input_tokens"].as_u64() > Some(5_000), "{agent}");
        let told = row["note"].as_str().unwrap_or_default();
        assert!(!told.contains("the provider counted"), "{agent}: {told}");
    }
}

#[test]
#[ignore = "needs .ci/agents"]
fn recorded_drive_replays_exactly() {
    let dir = agents();
    let agents = "--agent codex --agent opencode --agent gemini-cli --agent pi";
    let driven = drive(&dir, "login-bug", NARROW, &format!("{agents} --record cases"));
    let told = driven.here.run("conform cases").ok().stdout;
    assert!(told.contains("4/4"), "{told}");
}

#[test]
#[ignore = "needs .ci/agents"]
fn real_pi_compactions_end_like_ours() {
    let dir = agents();
    // The program repeats a failed summary three times, so nine refusals are two failed compactions
    // and a third one that succeeded.
    for (fault, made, failed) in [
        ("70:overflow", vec!["threshold", "overflow", "threshold", "threshold"], vec![]),
        ("summary:1-9:500", vec!["threshold"; 3], vec!["threshold"; 2]),
    ] {
        let more = format!("--agent pi --fault {fault} --record cases");
        let driven = drive(&dir, "ten-compactions", WIDE, &more);
        let files = driven.here.files("cases").into_keys();
        let cases: Vec<String> = files.filter(|f| f.ends_with(".json")).collect();
        let [case] = cases.as_slice() else { panic!("{cases:?}") };
        let outcome = driven.here.json(&format!("cases/{case}"))["outcome"].clone();
        let compactions = outcome["compactions"].as_array().expect("compactions");
        let reasons: Vec<&Value> = compactions.iter().map(|c| &c["reason"]).collect();
        assert_eq!(reasons, made, "{fault}");
        assert_eq!(outcome["failed"], serde_json::json!(failed), "{fault}");
    }
}

#[test]
#[ignore = "needs .ci/agents"]
fn real_agents_handle_faults_like_ours() {
    let dir = agents();
    for (agent, fault, expected) in [
        ("codex", "3:cut=2", [13, 1, 0]),
        ("codex", "summary:1:500", [13, 1, 0]),
        ("codex", "5:overflow", [13, 1, 1]),
        ("opencode", "5:overflow", [13, 2, 0]),
    ] {
        let driven = drive(&dir, "login-bug", NARROW, &format!("--agent {agent} --fault {fault}"));
        for label in [format!("real-{agent}"), agent.to_string()] {
            let row = driven.row("login-bug", &label);
            assert_eq!(row["status"], "completed", "{label}: {}", row["error"]);
            // Steps, compactions and continuation prompts.
            let counters = ["steps_completed", "compactions", "user_interventions"]
                .map(|name| row["summary"][name].as_u64().expect(name));
            assert_eq!(counters, expected, "{label} × {fault}");
        }
    }
}
