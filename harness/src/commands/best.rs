//! `ctxbench best`: which row to take, and whether the sessions suffice to say so.

use std::path::PathBuf;

use ctxbench_reports::best::{Question, Verdict, best as answers, text};

use super::CheckFailed;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Folder or results.json of a run
    results: PathBuf,
    /// Column of summary.csv to choose by: the row with the best mean per session, of amounts the
    /// geometric one
    #[arg(long, value_name = "METRIC", default_value = "cost_usd")]
    by: String,
    /// Lowest allowed mean per session of a column (repeat), such as needs_kept_pct=90
    #[arg(long, value_name = "METRIC=VALUE")]
    min: Vec<String>,
    /// Highest allowed mean per session of a column (repeat), such as blocked_ms=60000
    #[arg(long, value_name = "METRIC=VALUE")]
    max: Vec<String>,
    /// For machines
    #[arg(long)]
    json: bool,
}

pub(crate) fn best(args: &Args) -> anyhow::Result<()> {
    let question = Question::new(&args.by, &args.min, &args.max)?;
    let results = ctxbench_reports::read_figures(&args.results)?;
    let answers = answers(&results, &question);
    if answers.is_empty() {
        anyhow::bail!(
            "{} holds no session to choose by: tests of a mechanism rank nobody; run more \
             sessions, such as your own recordings",
            args.results.display()
        );
    }
    if args.json {
        super::print(&(serde_json::to_string_pretty(&answers)? + "\n"))?;
    } else {
        super::print(&text(&answers))?;
    }
    if answers.iter().any(|a| a.verdict == Verdict::NoneFits) {
        return Err(CheckFailed("no row meets the conditions".into()).into());
    }
    Ok(())
}
