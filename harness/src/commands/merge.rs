//! `ctxbench merge`: the parts of a run as one.

use std::path::{Path, PathBuf};

use crate::groups::{self, Ours};
use crate::replay::with_savings;
use crate::watch::Team;
use anyhow::{Context, bail};
use ctxbench_core::plural::pluralize;
use ctxbench_core::files;
use ctxbench_reports::{self as reports, Artifact, Merged, Stored};

use super::{number, private, run};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Folders or results.json of runs, or a folder of such: the parts of `run --shard`, or runs of
    /// other sessions or strategies under the same assumptions
    #[arg(value_name = "DIR", required = true)]
    results: Vec<PathBuf>,
    /// Folder for result files; all of them as one run would have written them, but timings.json
    #[arg(long, value_name = "DIR", default_value = "ctxbench-out")]
    out: PathBuf,
    /// Merge what there is although parts are missing
    #[arg(long)]
    partial: bool,
    /// Write team.md: what a team of N users, each with one of the sessions, needs of a shared
    /// limit of tokens per minute
    #[arg(long, value_name = "N", value_parser = number::within(1..=100_000))]
    team: Option<u64>,
    /// The shared limit for --team, tokens per minute (default: the upper recommendation for a team
    /// of that size)
    #[arg(long, value_name = "M", value_parser = run::tokens, requires = "team")]
    tpm: Option<u64>,
}

pub(crate) fn merge(args: &Args) -> anyhow::Result<()> {
    reports::restore(&args.out)?.iter().for_each(|note| tell!("note: {note}"));
    reports::check_out(&args.out)?;
    let results = args.results.iter().map(|p| below(p)).collect::<anyhow::Result<Vec<_>>>()?;
    let results = results.concat();
    let replaced = reports::results_file(&args.out);
    let is_replaced = |p: &&PathBuf| files::same_place(&reports::results_file(p), &replaced);
    if let Some(part) = results.iter().find(is_replaced) {
        bail!("--out: {} is merged, and would be replaced; name another folder", part.display());
    }
    groups::end_with_us();
    let _alone = Ours::new(|| reports::Alone::with(&args.out))?;
    groups::last_words(Some(format!(
        "broken off before {} was written; the same command begins again",
        args.out.display()
    )));
    let merged = Merged::open(&results, args.partial, with_savings)?;
    let stored = Stored::new(&merged.head, &merged)?;
    let team = |users| run::team(&stored, Team { users, tpm: args.tpm });
    let team = args.team.map(team).transpose()?;
    let beside = team.map(|text| Artifact { file: "team.md".into(), text });
    let private = private::keep(results.iter().map(|p| reports::results_file(p)));
    run::outputs::write(&args.out, &stored, beside.as_slice(), private, None)?;
    let rows = stored.figures.runs.len();
    let (rows, of) = (pluralize(rows, "row"), pluralize(results.len(), "result"));
    tell!("{rows} of {of}; files in {}/ (index.html to look at)", args.out.display());
    Ok(())
}

/// The results that a path stands for.
fn below(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if !path.is_dir() || reports::results_file(path).exists() {
        return Ok(vec![path.to_path_buf()]);
    }
    let entries = std::fs::read_dir(path).with_context(|| format!("reading {}", path.display()))?;
    let mut found: Vec<PathBuf> = entries
        .filter_map(|e| Some(e.ok()?.path()))
        .filter(|p| p.is_dir() && reports::results_file(p).exists())
        .collect();
    found.sort();
    if found.is_empty() {
        bail!("{}: no results in it; name folders that ctxbench run wrote", path.display());
    }
    Ok(found)
}
