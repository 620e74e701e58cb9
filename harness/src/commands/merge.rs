//! `ctxbench merge`: the parts of a run as one.

use std::path::PathBuf;

use crate::replay::with_savings;
use crate::run::looks;
use ctxbench_reports::{self as reports, Merged, Stored};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Folders or results.json of runs: the parts of `run --shard`, or runs of other sessions or
    /// strategies under the same assumptions
    #[arg(value_name = "DIR", required = true)]
    results: Vec<PathBuf>,
    /// Folder for result files; all of them as one run would have written them, but timings.json
    #[arg(long, value_name = "DIR", default_value = "ctxbench-out")]
    out: PathBuf,
    /// Merge what there is although parts are missing
    #[arg(long)]
    partial: bool,
}

pub(crate) fn merge(args: &Args) -> anyhow::Result<()> {
    reports::restore(&args.out)?.iter().for_each(|note| tell!("note: {note}"));
    reports::check_out(&args.out)?;
    let merged = Merged::open(&args.results, args.partial, with_savings)?;
    let stored = Stored::new(&merged.head, &merged)?;
    let private = args.results.iter().any(|p| reports::is_private(&reports::results_file(p)));
    let matrix = super::list::matrix();
    reports::write_results(&args.out, &stored, &looks(), &matrix, &[], private)?;
    let rows = stored.figures.runs.len();
    let of = args.results.len();
    tell!("{rows} rows of {of} results; files in {}/ (index.html to look at)", args.out.display());
    Ok(())
}
