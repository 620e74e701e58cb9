//! `ctxbench gate` and `ctxbench compare`: did this change cost tokens?

use std::io::ErrorKind;
use std::path::PathBuf;

use ctxbench_core::files;
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
    #[arg(long, conflicts_with_all = ["max", "min"])]
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
        return store(args, &results);
    }
    if !args.baseline.exists() {
        anyhow::bail!("there is no baseline {}; make one with --store", args.baseline.display());
    }
    let baseline = reports::read_baseline(&args.baseline)?;
    let options = reports::GateOptions::parse(&args.max, &args.min)?;
    let report = reports::gate(&results, &baseline, &options);
    super::print(&report.to_text())?;
    if report.passed() { Ok(()) } else { Err(CheckFailed(report.verdict()).into()) }
}

/// Makes the results the new baseline. Only a baseline is replaced, of whatever version.
fn store(args: &Args, results: &reports::record::Results) -> anyhow::Result<()> {
    let path = &args.baseline;
    files::check_output(path, &[reports::results_file(&args.results)])?;
    match reports::read_baseline(path) {
        Ok(_) | Err(reports::ReadError::Version { .. }) => {}
        Err(reports::ReadError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {}
        Err(_) if std::fs::read(path).is_ok_and(|text| text.is_empty()) => {}
        Err(e) => {
            let advice = "--store replaces nothing else; choose another file, or remove that one";
            return Err(anyhow::Error::new(e)
                .context(format!("{} is there and is not a baseline; {advice}", path.display())));
        }
    }
    files::write(path, reports::Baseline::from_results(results).to_text())?;
    tell!("stored {}", path.display());
    Ok(())
}

pub(crate) fn compare(args: &CompareArgs) -> anyhow::Result<()> {
    let (base, new) = (reports::read_results(&args.base)?, reports::read_results(&args.new)?);
    let yardstick = reports::record::yardstick::of;
    let other = reports::record::yardstick::differences(&yardstick(&base), &yardstick(&new));
    if !other.is_empty() {
        anyhow::bail!(
            "the two were measured with different yardsticks, so their figures cannot be compared \
             ({}); run one of them again",
            other.join("; ")
        );
    }
    let c = reports::compare(&base, &new);
    super::print(&if args.markdown { c.to_markdown() } else { c.to_text() })
}
