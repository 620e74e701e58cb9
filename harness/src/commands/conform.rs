//! `ctxbench conform`: recorded behaviour of the real programs against ours.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use ctxbench_harness::conform::{Case, replay};

use super::CheckFailed;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Folder of cases, searched through
    dir: PathBuf,
}

pub(crate) fn conform(args: &Args) -> anyhow::Result<()> {
    let mut files = Vec::new();
    collect(&args.dir, &mut files)?;
    files.sort();
    if files.is_empty() {
        bail!("{}: no case files (*.json) in it", args.dir.display());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let mut table: BTreeMap<(String, String), [usize; 4]> = BTreeMap::new();
    let mut out = String::new();
    let mut other = 0;
    for f in &files {
        let text = std::fs::read_to_string(f).with_context(|| format!("reading {}", f.display()))?;
        let head: serde_json::Value = serde_json::from_str(&text).with_context(|| format!("{}: not JSON", f.display()))?;
        if head["kind"] != "replay" {
            other += 1;
            continue;
        }
        let case = Case::parse(&text, &f.display().to_string())?;
        let row = table.entry((case.agent.clone(), case.version.clone())).or_default();
        row[1] += 1;
        match runtime.block_on(replay(&case)) {
            Ok(v) => {
                row[2] += v.matched;
                row[3] += v.expected;
                match v.difference {
                    None => row[0] += 1,
                    Some(d) => {
                        let item = d.item.map_or(String::new(), |i| format!(", item {i}"));
                        out += &format!("{}: request {}{item}: {}\n  - {}\n  + {}\n", f.display(), d.request, d.what, d.expected, d.got);
                    }
                }
            }
            Err(e) => out += &format!("{}: {e}\n", f.display()),
        }
    }
    out += &format!("{:<15} {:<18} {:>9} {:>12}\n", "agent", "version", "cases", "requests");
    let (mut passed, mut all) = (0, 0);
    for ((agent, version), [p, n, m, e]) in &table {
        out += &format!("{agent:<15} {version:<18} {:>9} {:>12}\n", format!("{p}/{n}"), format!("{m}/{e}"));
        passed += p;
        all += n;
    }
    if other > 0 {
        out += &format!("{other} files of other kinds were not run\n");
    }
    super::print(&out);
    if passed == all { Ok(()) } else { Err(CheckFailed(format!("{} of {all} replay cases differ", all - passed)).into()) }
}

fn collect(dir: &Path, out: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    if dir.is_file() {
        out.push(dir.to_path_buf());
        return Ok(());
    }
    for entry in std::fs::read_dir(dir).with_context(|| format!("reading {}", dir.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, out)?;
        } else if path.extension().is_some_and(|e| e == "json") {
            out.push(path);
        }
    }
    Ok(())
}
