//! `ctxbench gate` and `ctxbench compare`: did this change cost tokens?

use std::path::PathBuf;

use anyhow::Context;
use ctxbench_reports as reports;

use super::CheckFailed;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Folder or results.json of a run
    results: PathBuf,
    /// Stored baseline
    #[arg(long, value_name = "FILE")]
    baseline: PathBuf,
    /// Highest allowed value of a summary column (repeat)
    #[arg(long, value_name = "METRIC=VALUE")]
    max: Vec<String>,
    /// Lowest allowed value of a summary column (repeat)
    #[arg(long, value_name = "METRIC=VALUE")]
    min: Vec<String>,
    /// Write the results as the new baseline instead of checking
    #[arg(long)]
    store: bool,
}

#[derive(clap::Args)]
pub(crate) struct CompareArgs {
    /// Folder or results.json before
    base: PathBuf,
    /// Folder or results.json after
    new: PathBuf,
    /// Markdown instead of text
    #[arg(long)]
    markdown: bool,
}

pub(crate) fn gate(args: &Args) -> anyhow::Result<()> {
    let results = reports::read_results(&args.results)?;
    if args.store {
        let text = reports::Baseline::from_results(&results).to_text();
        std::fs::write(&args.baseline, text).with_context(|| format!("writing {}", args.baseline.display()))?;
        eprintln!("stored {}", args.baseline.display());
        return Ok(());
    }
    if !args.baseline.exists() {
        anyhow::bail!("there is no baseline {}; make one with --store", args.baseline.display());
    }
    let baseline = reports::read_baseline(&args.baseline)?;
    let options = reports::GateOptions::parse(&args.max, &args.min)?;
    let report = reports::gate(&results, &baseline, &options);
    super::print(&report.to_text());
    if report.passed() { Ok(()) } else { Err(CheckFailed(report.verdict()).into()) }
}

pub(crate) fn compare(args: &CompareArgs) -> anyhow::Result<()> {
    let c = reports::compare(&reports::read_results(&args.base)?, &reports::read_results(&args.new)?);
    super::print(&if args.markdown { c.to_markdown() } else { c.to_text() });
    Ok(())
}
