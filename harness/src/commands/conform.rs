//! `ctxbench conform`: checks the strategies against recorded cases of the real programs.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use ctxbench_conform::{Case, CaseError, replay, shorten};
use ctxbench_util::files;
use serde::Serialize;
use serde_json::{Value, json};

use super::CheckFailed;

#[derive(clap::Args)]
pub(crate) struct ConformArgs {
    /// Folder with cases, searched recursively
    dir: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Number of cases that agree, and number of all cases.
#[derive(Clone, Copy, Default, Serialize)]
struct PassCount {
    passed: usize,
    all: usize,
}

impl PassCount {
    fn add(&mut self, passed: usize, all: usize) {
        self.passed += passed;
        self.all += all;
    }
}

impl Display for PassCount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.all == 0 { f.pad("-") } else { f.pad(&format!("{}/{}", self.passed, self.all)) }
    }
}

/// A failing case and its first difference.
#[derive(Serialize)]
struct CaseFailure {
    file: String,
    case: String,
    at: String,
    expected: String,
    got: String,
}

#[derive(Default)]
struct ConformResults {
    /// Cases and requests of each agent and version.
    rows: BTreeMap<(String, String), [PassCount; 2]>,
    failures: Vec<CaseFailure>,
}

pub(crate) fn conform(args: &ConformArgs) -> anyhow::Result<()> {
    let files = case_files(&args.dir)?;
    if files.is_empty() {
        bail!("{}: no case files (*.json) in it", args.dir.display());
    }
    let mut results = ConformResults::default();
    for f in &files {
        let name = f.display().to_string();
        let text = ctxbench_util::files::read_text(f).with_context(|| format!("reading {name}"))?;
        let head: Value =
            serde_json::from_str(&text).with_context(|| format!("{name}: not JSON"))?;
        if head["kind"] != "replay" {
            bail!("{name}: not a recorded case");
        }
        results.replay(&head, &text, name);
    }
    super::print_either(args.json, &results.json(), || results.table())?;
    let [PassCount { passed, all }, _] = results.sums();
    if results.failures.is_empty() {
        Ok(())
    } else {
        Err(CheckFailed(format!("{} of {all} cases differ", all - passed)).into())
    }
}

impl ConformResults {
    /// Runs a case and counts its result.
    fn replay(&mut self, head: &Value, text: &str, file: String) {
        let run = Case::parse(text, &file).and_then(|case| Ok((replay(&case)?, case)));
        let member = |name: &str| head[name].as_str().unwrap_or("?").to_string();
        // A file that cannot be run is counted, too.
        let row = self.rows.entry((member("agent"), member("version")));
        let [cases, requests] = row.or_default();
        match run {
            Ok((v, case)) => {
                requests.add(v.matched, v.expected);
                cases.add(usize::from(v.difference.is_none()), 1);
                self.failures.extend(v.difference.map(|d| {
                    let item = d.item.map_or(String::new(), |i| format!(", item {i}"));
                    let at = format!("request {}{item}: {}", d.request, d.what);
                    let (expected, got) = (d.expected, d.got);
                    CaseFailure { file, case: case.name.clone(), at, expected, got }
                }));
            }
            Err(e) => {
                cases.add(0, 1);
                requests.add(0, head["requests"].as_array().map_or(0, Vec::len));
                let (at, expected, got) = match e {
                    CaseError::Value { at, expected, found } => (at, expected, found),
                    other => ("file".into(), "a case that can be run".into(), other.to_string()),
                };
                let case = member("name");
                self.failures.push(CaseFailure { file, case, at, expected, got });
            }
        }
    }

    /// Returns the sums of the cases and of the requests.
    fn sums(&self) -> [PassCount; 2] {
        let mut sums = [PassCount::default(); 2];
        for r in self.rows.values() {
            for (sum, s) in sums.iter_mut().zip(r) {
                sum.add(s.passed, s.all);
            }
        }
        sums
    }

    fn table(&self) -> String {
        let mut out = String::new();
        for f in &self.failures {
            let (expected, got) = shorten(&f.expected, &f.got);
            out += &format!("{}: {}: {}\n  - {expected}\n  + {got}\n", f.file, f.case, f.at);
        }
        let mut line = |agent: &str, version: &str, [cases, requests]: [&dyn Display; 2]| {
            out += &format!("{agent:<15} {version:<18} {cases:>9} {requests:>12}\n");
        };
        line("agent", "version", [&"replays", &"requests"]);
        for ((agent, version), [cases, requests]) in &self.rows {
            line(agent, version, [cases, requests]);
        }
        let [cases, requests] = self.sums();
        line("all", "", [&cases, &requests]);
        out
    }

    fn json(&self) -> Value {
        let row = |((agent, version), [cases, requests]): (&(String, String), &[PassCount; 2])| {
            json!({
                "agent": agent, "version": version, "replay_cases": cases, "requests": requests,
            })
        };
        let agents: Vec<Value> = self.rows.iter().map(row).collect();
        json!({
            "passed": self.failures.is_empty(), "agents": agents, "differences": self.failures,
        })
    }
}

/// Returns the file itself, or all `.json` files below a folder.
fn case_files(dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if dir.is_file() {
        return Ok(vec![dir.to_path_buf()]);
    }
    let mut cases = files::walk(dir)?;
    cases.retain(|path| path.extension().is_some_and(|e| e == "json"));
    Ok(cases)
}
