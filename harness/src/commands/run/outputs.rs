//! The files of `ctxbench run`: looked at before the run, written after it, and what an earlier run
//! left of them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::groups::{self, Ours};
use crate::replay::with_savings;
use crate::run::looks;
use anyhow::bail;
use ctxbench_core::plural::pluralize;
use ctxbench_reports as reports;
use ctxbench_reports::{Artifact, Left, Placing, ReportError, Row, Rows, Stored, Take};
use ctxbench_scenarios::Scenario;

use super::Args;
use super::rows::RunRows;
use crate::commands::{check_outputs, not_a_session};

/// Refuses what would be overwritten or could not be written, before the run.
pub(super) fn check(args: &Args, read: &[Scenario]) -> anyhow::Result<()> {
    let named = args.inputs.iter().map(String::as_str);
    let scripts = args.summarizer.iter().filter_map(|s| s.strip_prefix("scripted:"));
    let named = named.chain(scripts).map(PathBuf::from).filter(|p| p.exists());
    let inputs: Vec<PathBuf> = named.chain(read.iter().flat_map(|s| s.files.clone())).collect();
    let outputs = outputs(args);
    check_outputs(&outputs, &inputs)?;
    for (option, path) in &outputs {
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

/// Makes results of the rows that earlier runs finished and this one had no use for.
pub(super) fn recover(out: &Path, left: Left) -> anyhow::Result<()> {
    if left.is_empty() {
        return Ok(());
    }
    let place = left.place(out);
    let rows = left.rows;
    let what = if rows > 0 {
        let completed = Completed(&left);
        let stored = Stored::new(&left.head(), &completed)?;
        write(&place, &stored, &[], true, None)?;
        let torn = match &left.unreadable {
            Some(e) => format!("; others cannot be read: {e}"),
            None => String::new(),
        };
        left.discard()?;
        let are = if rows == 1 { "is" } else { "are" };
        let rows = pluralize(rows, "row");
        format!("the {rows} that it finished {are} in {}{torn}", place.display())
    } else {
        let why = left.unreadable.as_ref().map(ToString::to_string).unwrap_or_default();
        left.move_aside(&place)?;
        format!("what it left is in {}, which cannot be read: {why}", place.display())
    };
    tell!("note: an earlier run into {} did not end; {what}", out.display());
    Ok(())
}

/// Rows with what follows from comparing them.
struct Completed<'a>(&'a Left);

impl Rows for Completed<'_> {
    fn sessions(&self, take: &mut Take<'_>) -> Result<(), ReportError> {
        self.0.sessions(&mut |session| take(&with_savings(session.to_vec())))
    }
}

/// Writes results and what stands beside them. Once they are in their place, `words` are what a
/// command says that is broken off.
pub(in crate::commands) fn write(
    out: &Path,
    stored: &Stored<'_>,
    beside: &[Artifact],
    private: bool,
    words: Option<String>,
) -> anyhow::Result<()> {
    let matrix = crate::commands::list::matrix();
    let mut new = Placing::into_folder(out)?;
    // What is not in its place when we are told to end goes with us.
    let unfinished = Ours::new(|| new.begin().map(groups::Folder))?;
    new.fill(stored, &looks(), &matrix, beside, private)?;
    unfinished.settle(|| {
        new.put()?;
        groups::last_words(words);
        Ok(())
    })
}

/// The text of `timings.json`: how long each row took when it was computed.
pub(super) fn timings(rows: &RunRows<'_>, total: Duration) -> anyhow::Result<String> {
    let mut out = format!("{{\n  \"total_ms\": {},\n  \"pairs\": [", total.as_millis());
    let mut first = true;
    for at in rows.order() {
        rows.session(at, &mut |row| {
            if !row.timing.is_null() {
                out += if first { "\n    " } else { ",\n    " };
                out += &row.timing.to_string();
                first = false;
            }
        })?;
    }
    Ok(out + "\n  ]\n}\n")
}

/// An option, its file, and where a row has the lines for it.
type Lines<'a> = (&'static str, &'a Path, fn(&Row) -> &[String]);

/// The options whose files hold lines of every row, with the file and where a row has them.
pub(super) fn lines(args: &Args) -> Vec<Lines<'_>> {
    let mut all: Vec<Lines<'_>> = Vec::new();
    all.extend(
        args.trace.as_deref().map(|p| ("--trace", p, (|r| &r.trace) as fn(&Row) -> &[String])),
    );
    all.extend(
        args.status.as_deref().map(|p| ("--status", p, (|r| &r.status) as fn(&Row) -> &[String])),
    );
    all
}

/// What a run says that is broken off when its results are in their place and these files are still
/// to be written.
pub(super) fn unwritten(out: &Path, lines: &[Lines<'_>]) -> Option<String> {
    let files: Vec<String> =
        lines.iter().map(|(option, path, _)| format!("{option} {}", path.display())).collect();
    let (were, them) = if files.len() == 1 { ("was", "it") } else { ("were", "them") };
    (!files.is_empty()).then(|| {
        format!(
            "broken off when the results were in {}; {} {were} not written, and the same command \
             writes {them}",
            out.display(),
            files.join(" and ")
        )
    })
}
