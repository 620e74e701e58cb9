//! Real, unmodified agents driven through sessions, and our implementations beside them.
//!
//! Runs where `.ci/agents` has installed them, into target/agents or the folder that
//! `CTXBENCH_AGENTS_DIR` names; skipped otherwise, unless `CTXBENCH_REQUIRE_AGENTS=1` forbids it.

#[allow(dead_code, reason = "each test file uses a part")]
use crate::common;

use std::path::{Path, PathBuf};

use common::Folder;
use serde_json::Value;

/// The window that agents are told of: small enough that sessions of the tests are compacted.
const WINDOW: &str = "30k";

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The folder with the agents; says so if there is none.
fn agents() -> Option<PathBuf> {
    let named = std::env::var_os("CTXBENCH_AGENTS_DIR").map(PathBuf::from);
    let dir = named.unwrap_or_else(|| root().join("target/agents"));
    if dir.join("installed").is_file() {
        return Some(dir.canonicalize().expect("it is there"));
    }
    let told = format!("not tried: no agents in {}; .ci/agents installs them", dir.display());
    assert!(std::env::var_os("CTXBENCH_REQUIRE_AGENTS").is_none(), "{told}");
    eprintln!("{told}");
    None
}

/// What came out of a drive.
struct Driven {
    rows: Vec<Value>,
    beside: Vec<Value>,
}

fn drive(dir: &Path, sessions: &str, more: &str) -> Driven {
    let here = Folder::new();
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", dir.join("bin").display());
    let line = format!("drive {sessions} --window {WINDOW} --out out {more}");
    here.run(&line).env("PATH", &path).ok();
    Driven {
        rows: here.json("out/results.json")["runs"].as_array().expect("rows").clone(),
        beside: here.json("out/drive.json").as_array().expect("drives").clone(),
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

/// Ours and the real one ask for summaries at the same requests, and input and dollars differ by
/// so many per cent at most.
fn agree(driven: &Driven, most_pct: f64) {
    assert!(!driven.beside.is_empty());
    for d in &driven.beside {
        let what = format!("{} × {}", d["session"], d["program"]);
        assert_eq!(d["status"], "completed", "{what}: {}", d["error"]);
        let beside = &d["beside"];
        assert!(beside.is_object(), "{what}: nothing to hold beside it");
        assert_eq!(
            beside["summary_requests"]["real"], beside["summary_requests"]["ours"],
            "{what}: summaries are asked for by other requests"
        );
        for name in ["input, tokens", "cost, USD"] {
            let figures = beside["figures"].as_array().expect("figures");
            let figure = figures.iter().find(|f| f["what"] == name).expect("a figure");
            let off = figure["difference_pct"].as_f64().expect("a difference");
            assert!(off.abs() <= most_pct, "{what}: {name} differs by {off:+.2} %");
        }
    }
}

fn recording() -> String {
    root().join("tests/data/recordings/opencode/s2_multiturn.export.json").display().to_string()
}

#[test]
fn codex_and_opencode_compact_where_ours_do_and_cost_the_same() {
    let Some(dir) = agents() else { return };
    let sessions = format!("login-bug ten-compactions {}", recording());
    let driven = drive(&dir, &sessions, "--agent codex --agent opencode");
    agree(&driven, 0.5);
    for agent in ["codex", "opencode"] {
        let real = driven.row("ten-compactions", &format!("real-{agent}"));
        assert!(real["summary"]["compactions"].as_u64() >= Some(3), "{agent} did not compact");
        assert_eq!(real["strategy"]["driven"], true);
        let ours = driven.row("ten-compactions", agent);
        let kept = |r: &Value| r["summary"]["needs_kept_pct"].as_f64().expect("needs");
        assert!((kept(real) - kept(ours)).abs() < 0.01, "{agent}: other facts are kept");
    }
}

#[test]
fn two_runs_of_an_agent_agree() {
    let Some(dir) = agents() else { return };
    let runs = [(); 2].map(|()| drive(&dir, "login-bug", "--agent codex"));
    let [a, b] = [&runs[0], &runs[1]].map(|d| d.row("login-bug", "real-codex"));
    for what in ["requests", "compactions", "summary_calls", "output_tokens"] {
        assert_eq!(a["summary"][what], b["summary"][what], "{what}");
    }
    let input = |r: &Value| r["summary"]["input_tokens"].as_f64().expect("tokens");
    assert!((input(a) / input(b) - 1.0).abs() < 0.001, "{} and {}", input(a), input(b));
}

#[test]
fn every_other_agent_comes_to_the_end() {
    let Some(dir) = agents() else { return };
    let own = root().join("examples/deepagents/deepagents.toml");
    let python = dir.join("deepagents/bin/python");
    let more = format!(
        "--agent pi --agent aider --agent qwen-code --agent {} --program deepagents={}",
        own.display(),
        python.display()
    );
    let driven = drive(&dir, "login-bug", &more);
    for agent in ["pi", "aider", "qwen-code", "deepagents"] {
        let row = driven.row("login-bug", &format!("real-{agent}"));
        assert_eq!(row["status"], "completed", "{agent}: {}", row["error"]);
        assert!(row["summary"]["input_tokens"].as_u64() > Some(5_000), "{agent}");
        let told = row["note"].as_str().unwrap_or_default();
        assert!(!told.contains("the provider counted"), "{agent}: {told}");
    }
}

#[test]
fn a_failing_summary_is_asked_for_again() {
    let Some(dir) = agents() else { return };
    let driven = drive(&dir, "login-bug", "--agent codex --fault summary:1:500");
    let row = driven.row("login-bug", "real-codex");
    assert_eq!(row["status"], "completed", "{}", row["error"]);
    assert_eq!(row["summary"]["compactions"], 1);
}
