//! `ctxbench gate` and `ctxbench compare`: compare results with a baseline or with other results.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::bail;
use ctxbench_reports::record::{Results, RunRecord, Status};
use ctxbench_reports::{self as reports, Outcome, ReadError};
use ctxbench_util::files;
use ctxbench_util::plural::pluralize;

use super::CheckFailed;

#[derive(clap::Args)]
pub(crate) struct GateArgs {
    /// Folder or results.json of a run
    results: PathBuf,
    /// File with the baseline
    #[arg(long, value_name = "FILE")]
    baseline: PathBuf,
    /// Highest allowed value of a column of summary.csv, such as cost_usd, in addition to the
    /// baseline (repeat)
    #[arg(long, value_name = "METRIC=VALUE")]
    max: Vec<String>,
    /// Lowest allowed value of a column of summary.csv, such as recall_pct or saved_pct, in addition
    /// to the baseline (repeat)
    #[arg(long, value_name = "METRIC=VALUE")]
    min: Vec<String>,
    /// Store the results as the new baseline instead of checking them
    #[arg(long, conflicts_with_all = ["max", "min", "markdown", "junit", "annotations"])]
    store: bool,
    /// With --store: accept rows that did not finish or that broke a rule
    #[arg(long, requires = "store")]
    allow_broken: bool,
    /// With --store: accept figures that are worse than in the present baseline
    #[arg(long, requires = "store")]
    allow_worse: bool,
    /// Also write the verdict as Markdown; - prints it instead of the text
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Also write the verdict as JUnit XML, a suite per row
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Also print annotations for a GitHub workflow
    #[arg(long)]
    annotations: bool,
}

#[derive(clap::Args)]
pub(crate) struct CompareArgs {
    /// Folder or results.json of the base
    base: PathBuf,
    /// Folder or results.json of the change
    new: PathBuf,
    /// Print Markdown instead of text
    #[arg(long)]
    markdown: bool,
}

pub(crate) fn gate(args: &GateArgs) -> anyhow::Result<()> {
    super::private::keep([reports::results_file(&args.results)]);
    reports::check_finished(&args.results)?;
    let results = reports::read_figures(&args.results)?;
    if args.store {
        return store(args, &results);
    }
    if !args.baseline.exists() {
        bail!("{} does not exist; store a baseline with --store", args.baseline.display());
    }
    let baseline = reports::read_baseline(&args.baseline)?;
    let options = reports::GateOptions::parse(&args.max, &args.min)?;
    let report = reports::gate(&results, &baseline, &options);
    let inputs = [reports::results_file(&args.results), args.baseline.clone()];
    let printed = args.markdown.as_deref().is_some_and(|p| p.as_os_str() == "-");
    let markdown = args.markdown.as_deref().filter(|_| !printed).map(|p| ("--markdown", p));
    let junit = args.junit.as_deref().map(|p| ("--junit", p));
    let outputs: Vec<(&str, &Path)> = markdown.into_iter().chain(junit).collect();
    super::check_outputs(&outputs, &inputs)?;
    for (option, path) in &outputs {
        if reports::is_of_results(&args.results, path) {
            bail!("{option}: {} is a file of the results; name another file", path.display());
        }
        let beginning = if *option == "--junit" { reports::JUNIT_HEAD } else { "## ctxbench gate" };
        super::check_replaced(option, path, beginning)?;
    }
    let next = report.next_step(&args.results);
    if let Some((_, path)) = markdown {
        files::write(path, report.to_markdown(next.as_deref()))?;
    }
    if let Some((_, path)) = junit {
        files::write(path, report.to_junit())?;
    }
    let text = if printed { report.to_markdown(next.as_deref()) } else { report.to_text() };
    super::print(&text)?;
    if args.annotations {
        super::print(&report.to_annotations())?;
    }
    if report.passed() {
        return Ok(());
    }
    if let Some(next) = next.filter(|_| !printed) {
        report!("{next}");
    }
    Err(CheckFailed(report.verdict()).into())
}

/// Stores the results as the baseline. Replaces an existing file only if it is empty or a baseline,
/// and only on request if that cannot show that the results are no worse.
fn store(args: &GateArgs, results: &reports::record::Results) -> anyhow::Result<()> {
    let path = &args.baseline;
    files::check_output(path, &[reports::results_file(&args.results)])?;
    if results.runs.is_empty() {
        bail!("{} has no rows, so it would gate nothing", args.results.display());
    }
    use ReadError::{Edited, Empty, Version};
    match reports::read_baseline(path) {
        Ok(present) if !args.allow_worse => refuse_worse(results, &present)?,
        Err(e @ (Version { .. } | Empty { .. } | Edited { .. })) if !args.allow_worse => {
            bail!(
                "{e}\nnothing shows whether these results are worse; restore the file, remove it to \
                 begin anew, or add --allow-worse"
            )
        }
        Ok(_) | Err(Version { .. } | Empty { .. } | Edited { .. }) => {}
        Err(ReadError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {}
        Err(e) => {
            let advice = "--store replaces nothing else; choose another file, or remove that one";
            return Err(anyhow::Error::new(e)
                .context(format!("{} is there and is not a baseline; {advice}", path.display())));
        }
    }
    let broken = broken_rows(results);
    if !args.allow_broken && !broken.is_empty() {
        bail!(
            "{} did not finish or broke a rule, so the baseline would accept that from now on:\n  \
             {}\nrun only the strategies that you gate (run --strategy), mend these rows, or add \
             --allow-broken",
            pluralize(broken.len(), "row"),
            broken.join("\n  ")
        );
    }
    files::write(path, reports::Baseline::from_results(results).to_text())?;
    report!("stored {}: {}", path.display(), pluralize(results.runs.len(), "row"));
    let is_lost = |r: &&RunRecord| r.summary.recall_pct == Some(0.0) && r.is_contender();
    for r in results.runs.iter().filter(is_lost) {
        let (session, label) = (&r.scenario.id, &r.strategy.label);
        report!("note: {session} × {label} has recall 0 %, which cannot fall");
    }
    Ok(())
}

/// Fails if a figure is worse than in the present baseline. A change within the tolerance passes
/// the gate, but many of them stored one after the other would be a regression that nobody sees.
fn refuse_worse(results: &Results, present: &reports::Baseline) -> anyhow::Result<()> {
    let report = reports::gate(results, present, &reports::GateOptions::exact());
    if report.passed() {
        return Ok(());
    }
    let worse = report.with_outcome(Outcome::Fail).map(reports::Check::sentence);
    let worse: Vec<String> = report.faults.iter().cloned().chain(worse).collect();
    bail!(
        "the present baseline does not show that these results are no worse:\n  {}\nlook at the \
         change, and add --allow-worse if you accept it",
        worse.join("\n  ")
    )
}

/// Describes the rows that did not finish, or that broke a rule.
fn broken_rows(results: &Results) -> Vec<String> {
    let is_broken = |r: &&RunRecord| !r.is_whole() && r.status != Status::NotApplicable;
    let describe = |r: &RunRecord| {
        let (id, label) = (&r.scenario.id, &r.strategy.label);
        let rules = match r.broken_rules() {
            0 => String::new(),
            n => format!(", {}", pluralize(n as usize, "broken rule")),
        };
        format!("{id} × {label} × {}: {}{rules}", r.model, r.status.word())
    };
    results.runs.iter().filter(is_broken).map(describe).collect()
}

pub(crate) fn compare(args: &CompareArgs) -> anyhow::Result<()> {
    [&args.base, &args.new].into_iter().try_for_each(|path| reports::check_finished(path))?;
    let (base, new) = (reports::read_figures(&args.base)?, reports::read_figures(&args.new)?);
    let yardstick = reports::record::yardstick::from_results;
    let other = reports::record::yardstick::differences(&yardstick(&base), &yardstick(&new));
    if !other.is_empty() {
        bail!(
            "the two were measured with different yardsticks, so their figures cannot be compared \
             ({}); run one of them again",
            other.join("; ")
        );
    }
    super::print(&reports::compare(&base, &new).to_text(args.markdown))
}
