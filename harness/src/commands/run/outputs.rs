//! The files of `ctxbench run`: looked at before the run, written after it, and what an earlier run
//! left of them.

use std::path::{Path, PathBuf};

use crate::run::{completed, looks};
use anyhow::{Context, bail};
use ctxbench_core::files;
use ctxbench_reports as reports;
use ctxbench_reports::Artifact;
use ctxbench_scenarios::Scenario;

use super::Args;
use crate::commands::not_a_session;

/// Refuses what would be overwritten or could not be written, before the run.
pub(super) fn check(args: &Args, read: &[Scenario]) -> anyhow::Result<()> {
    let named = args.inputs.iter().map(String::as_str);
    let scripts = args.summarizer.iter().filter_map(|s| s.strip_prefix("scripted:"));
    let goals = args.goals.as_deref();
    let named = named.chain(scripts).chain(goals).map(PathBuf::from).filter(|p| p.exists());
    let inputs: Vec<PathBuf> = named.chain(read.iter().flat_map(|s| s.files.clone())).collect();
    let outputs = outputs(args);
    for (i, (option, path)) in outputs.iter().enumerate() {
        files::check_output(path, &inputs).with_context(|| option.to_string())?;
        if let Some((other, _)) = outputs[..i].iter().find(|(_, p)| files::same_place(p, path)) {
            bail!(
                "{other} and {option} both name {}, and one would overwrite the other; name two \
                 files",
                path.display()
            );
        }
        if reports::is_of_results(&args.out, path) {
            bail!("{option}: {} is a file of --out; name another file", path.display());
        }
        if *option != CASSETTE {
            not_a_session(option, path)?;
        }
    }
    Ok(())
}

const CASSETTE: &str = "--cassette";

/// The files that a run writes beside its results, by option.
fn outputs(args: &Args) -> Vec<(&'static str, &Path)> {
    let mut all: Vec<(&'static str, &Path)> = Vec::new();
    all.extend(args.trace.as_deref().map(|p| ("--trace", p)));
    all.extend(args.status.as_deref().map(|p| ("--status", p)));
    all.extend(args.cassette.as_deref().filter(|_| !args.offline).map(|p| (CASSETTE, p)));
    all.extend(args.otel.sinks.iter().filter_map(|sink| Some(("--otel", sink.file()?))));
    all
}

/// Brings back what a killed run left beside `out`.
pub(in crate::commands) fn restore(out: &Path) -> anyhow::Result<()> {
    reports::restore(out)?.iter().for_each(|note| tell!("note: {note}"));
    Ok(())
}

/// Makes results of the rows that an interrupted run finished.
pub(in crate::commands) fn recover(out: &Path) -> anyhow::Result<()> {
    let Some((left, results)) = reports::interrupted(out)? else { return Ok(()) };
    let place = left.place.clone();
    let what = match results {
        Ok(results) => {
            let rows = results.runs.len();
            let matrix = crate::commands::list::matrix();
            reports::write_results(&place, &completed(results), &looks(), &matrix, vec![])?;
            left.discard()?;
            format!("the {rows} rows that it finished are in {}", place.display())
        }
        Err(e) => {
            left.move_aside()?;
            format!("what it left is in {}, which cannot be read: {e}", place.display())
        }
    };
    tell!("note: an earlier run into {} did not end; {what}", out.display());
    Ok(())
}

/// Writes results and what stands beside them.
pub(in crate::commands) fn write(
    out: &Path,
    all: &reports::record::Results,
    beside: Vec<Artifact>,
) -> anyhow::Result<()> {
    let matrix = crate::commands::list::matrix();
    Ok(reports::write_results(out, all, &looks(), &matrix, beside)?)
}

/// Writes one line each.
pub(super) fn write_lines(path: &Path, lines: &[String]) -> Result<(), files::FileError> {
    files::write_with(path, |out| lines.iter().try_for_each(|line| writeln!(out, "{line}")))
}
