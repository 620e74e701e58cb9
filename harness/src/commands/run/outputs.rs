//! The files of `ctxbench run`: looked at before the run, written after it, and what an earlier run
//! left of them.

use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use ctxbench_core::files;
use ctxbench_harness::run::{completed, looks};
use ctxbench_reports as reports;
use ctxbench_scenarios as scenarios;

use super::Args;

/// Enough of a file to see what it is.
const HEAD_BYTES: u64 = 1 << 20;

/// Refuses what would be overwritten or could not be written, before the run.
pub(super) fn check(args: &Args) -> anyhow::Result<()> {
    let named = args.inputs.iter().map(String::as_str);
    let scripts = args.summarizer.iter().filter_map(|s| s.strip_prefix("scripted:"));
    let inputs: Vec<PathBuf> =
        named.chain(scripts).map(PathBuf::from).filter(|p| p.exists()).collect();
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
        if *option != CASSETTE && holds_session(path) {
            bail!("{option}: {} holds a session; name another file", path.display());
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
    #[cfg(feature = "otel")]
    all.extend(args.otel.iter().filter_map(|sink| Some(("--otel", sink.file()?))));
    all
}

/// Whether a file is a session, a recording or a scenario, such as one that an input refers to.
fn holds_session(path: &Path) -> bool {
    let mut head = Vec::new();
    let regular = std::fs::metadata(path).is_ok_and(|m| m.is_file());
    let mut read = || std::fs::File::open(path)?.take(HEAD_BYTES).read_to_end(&mut head);
    regular && { read }().is_ok() && scenarios::sniff(&head, "").is_some()
}

/// Brings back what a killed run left beside `out`.
pub(super) fn restore(out: &Path) -> anyhow::Result<()> {
    reports::restore(out)?.iter().for_each(|note| eprintln!("note: {note}"));
    Ok(())
}

/// Makes results of the rows that an interrupted run finished.
pub(super) fn recover(out: &Path) -> anyhow::Result<()> {
    let Some((left, results)) = reports::interrupted(out)? else { return Ok(()) };
    let place = left.place.clone();
    let what = match results {
        Ok(results) => {
            let rows = results.runs.len();
            let matrix = crate::commands::list::matrix();
            reports::write_results(&place, &completed(results), &looks(), &matrix)?;
            left.discard()?;
            format!("the {rows} rows that it finished are in {}", place.display())
        }
        Err(e) => {
            left.move_aside()?;
            format!("what it left is in {}, which cannot be read: {e}", place.display())
        }
    };
    eprintln!("note: an earlier run into {} did not end; {what}", out.display());
    Ok(())
}

/// Writes results and what stands beside them.
pub(super) fn write(
    out: &Path,
    all: &reports::record::Results,
    timings: &str,
    team: Option<&str>,
) -> anyhow::Result<()> {
    reports::write_results(out, all, &looks(), &crate::commands::list::matrix())?;
    files::write_scratch(&out.join("timings.json"), timings)?;
    let team_file = out.join("team.md");
    match team {
        Some(text) => files::write_scratch(&team_file, text)?,
        // What an earlier run said of a team does not stay beside other figures.
        None => match std::fs::remove_file(&team_file) {
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            other => other.with_context(|| format!("removing {}", team_file.display()))?,
        },
    }
    Ok(())
}

/// Writes one line each.
pub(super) fn write_lines(path: &Path, lines: &[String]) -> Result<(), files::FileError> {
    files::write_with(path, |out| lines.iter().try_for_each(|line| writeln!(out, "{line}")))
}
