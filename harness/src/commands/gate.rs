//! `ctxbench gate` and `ctxbench compare`: compare results with a baseline or with other results.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::bail;
use ctxbench_reports::record::{Results, RunRecord, Status};
use ctxbench_reports::{self as reports, Outcome, ReadError};
use ctxbench_util::plural::pluralize;
use ctxbench_util::{files, nearest};

use super::{CheckFailed, specs};

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  ctxbench gate out --baseline baseline.json --store
      Store the baseline, once
  ctxbench gate out --baseline baseline.json --junit gate.xml
      Fail if results got worse
  ctxbench gate out --baseline baseline.json --min recall_pct=80
      Fail also if a product's recall is below 80 %
")]
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
#[command(after_help = "\
Examples:
  ctxbench compare before after --markdown
      Write a table for a pull request
  ctxbench compare a b --map codex=codex:auto_compact_limit=90k
      Compare two settings of a strategy
")]
pub(crate) struct CompareArgs {
    /// Folder or results.json of the base
    base: PathBuf,
    /// Folder or results.json of the change
    new: PathBuf,
    /// Print Markdown instead of text
    #[arg(long)]
    markdown: bool,
    /// Compare a strategy of the base with another one of the change, such as
    /// codex=codex:auto_compact_limit=90k (repeat)
    #[arg(long, value_name = "BASE=NEW")]
    map: Vec<String>,
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
    let mut base = reports::read_figures(&args.base)?;
    let mut new = reports::read_figures(&args.new)?;
    let called = mapped(&args.map, &mut base, &mut new)?;
    let yardstick = reports::record::yardstick::from_results;
    let other = reports::record::yardstick::differences(&yardstick(&base), &yardstick(&new));
    if !other.is_empty() {
        bail!(
            "the two were measured with different yardsticks, so their figures cannot be compared \
             ({}); run one of them again",
            other.join("; ")
        );
    }
    let c = reports::compare(&base, &new, &called);
    super::print(&c.to_text(args.markdown))
}

/// Renames strategies of the base according to `--map`. Returns the base labels by new label.
fn mapped(
    pairs: &[String],
    base: &mut Results,
    new: &mut Results,
) -> anyhow::Result<BTreeMap<String, String>> {
    let (old, fresh) = (labels(base), labels(new));
    let mut renamed: BTreeMap<String, String> = BTreeMap::new();
    let mut called = BTreeMap::new();
    for pair in pairs {
        let (from, to) = map(pair, &old, &fresh)?;
        if let Some(other) = renamed.insert(from.clone(), to.clone()) {
            bail!("--map {pair}: {from} is already compared with {other}; remove one of the two");
        }
        if let Some(other) = called.insert(to.clone(), from) {
            bail!("--map {pair}: {other} is already compared with {to}; remove one of the two");
        }
    }
    // Drop rows that no longer have a counterpart after the renaming.
    base.runs.retain(|r| {
        let label = &r.strategy.label;
        renamed.contains_key(label) || !called.contains_key(label)
    });
    new.runs.retain(|r| {
        let label = &r.strategy.label;
        called.contains_key(label) || !renamed.contains_key(label)
    });
    for run in &mut base.runs {
        if let Some(to) = renamed.get(&run.strategy.label) {
            run.strategy.label.clone_from(to);
        }
    }
    Ok(called)
}

fn labels(results: &Results) -> BTreeSet<String> {
    results.runs.iter().map(|r| r.strategy.label.clone()).collect()
}

/// Returns the two labels of an `OLD=NEW` pair.
fn map(
    pair: &str,
    old: &BTreeSet<String>,
    fresh: &BTreeSet<String>,
) -> anyhow::Result<(String, String)> {
    let known = |text: &str, all: &BTreeSet<String>| {
        let label = specs::parse_one(text).map_or_else(|_| text.to_string(), |spec| spec.label());
        [text.to_string(), label].into_iter().find(|l| all.contains(l))
    };
    // Settings also contain `=`. Prefer a split where both sides are labels, then one where one
    // side is.
    let parts = || pair.match_indices('=').map(|(at, _)| (&pair[..at], &pair[at + 1..]));
    let sides = || parts().map(|(from, to)| (from, known(from, old), to, known(to, fresh)));
    if let Some(both) = sides().find_map(|(_, from, _, to)| from.zip(to)) {
        return Ok(both);
    }
    let one = sides().find(|(_, from, _, to)| from.is_some() || to.is_some()).or(sides().next());
    let Some((from, known_from, to, _)) = one else {
        bail!("--map {pair}: expected BASE=NEW, such as codex=codex:auto_compact_limit=90k");
    };
    let (which, name, all) = match known_from {
        None => ("first", from, old),
        Some(_) => ("second", to, fresh),
    };
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let hint = nearest::hint(name, &all);
    bail!("--map {pair}: the {which} results have no row of `{name}`; {hint}")
}
