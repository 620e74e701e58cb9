//! `ctxbench report`: writes the results of a run in other formats.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Context, bail};
use ctxbench_os::redact::Redactor;
use ctxbench_replay::run::hues;
use ctxbench_reports as reports;
use ctxbench_reports::{
    Files, OutputFolder, ReportError, ReportFormat, ResultsFile, Rows, StoredResults, Take,
};
use ctxbench_util::files::{self, PreparedFile};

use super::private;
use super::run::print_table;

#[derive(clap::Args)]
pub(crate) struct ReportArgs {
    /// Folder or results.json of a run
    results: PathBuf,
    /// Format (repeat): table, markdown, html, csv, json, sqlite, svg
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Vec<String>,
    /// Folder for the files (default: standard output, for a format of one file)
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print all tables, and not only that of the compared sessions
    #[arg(long, conflicts_with = "out")]
    details: bool,
    /// Keep keys, passwords, mail addresses and names of home folders, which are removed by default
    #[arg(long)]
    no_redact: bool,
}

pub(crate) fn report(args: &ReportArgs) -> anyhow::Result<()> {
    let formats =
        args.format.iter().map(|name| reports::format(name)).collect::<Result<Vec<_>, _>>()?;
    if args.out.as_ref().is_some_and(|dir| dir.as_os_str() == "-") {
        bail!(
            "-o names a folder, and `-` is none; a format of one file goes to standard output \
             without -o, and a folder of this name is ./-"
        );
    }
    let source = reports::results_file(&args.results);
    let unprinted = formats.iter().find(|f| args.out.is_none() && !f.prints);
    // A missing results file is reported instead.
    if let Some(format) = unprinted.filter(|_| source.exists()) {
        bail!("--format {} makes files; name a folder for them with -o", format.name);
    }
    private::keep([source]);
    let file = ResultsFile::open(&args.results)?;
    let redacted = Redacted { rows: &file, redactor: Mutex::default() };
    let (rows, head): (&dyn Rows, _) = match args.no_redact {
        true => (&file, file.head.without_rows()),
        false => (&redacted, redacted.redactor().typed(&file.head).context(SECRETS)?),
    };
    let stored = StoredResults::new(&head, rows)?;
    if let Some(note) = redacted.redactor().note() {
        report!("{note}; --no-redact keeps them");
    }
    match &args.out {
        None => formats.iter().try_for_each(|format| match format.name {
            "table" => print_table(&stored.figures, args.details, None),
            _ => print(format, &stored),
        }),
        Some(dir) => write_files(dir, std::slice::from_ref(&file.path), |files| {
            formats.iter().try_for_each(|format| format.write(&stored, &hues(), files))
        }),
    }
}

const SECRETS: &str = "taking secrets out of the results";

/// Rows with secrets removed on reading.
struct Redacted<'a> {
    rows: &'a dyn Rows,
    redactor: Mutex<Redactor>,
}

impl Redacted<'_> {
    fn redactor(&self) -> MutexGuard<'_, Redactor> {
        self.redactor.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Rows for Redacted<'_> {
    fn sessions(&self, take: &mut Take<'_>) -> Result<(), ReportError> {
        self.rows.sessions(&mut |session| {
            let mut redactor = self.redactor();
            let rows: Result<Vec<_>, _> = session.iter().map(|r| redactor.typed(r)).collect();
            let failed = |e| io::Error::other(format!("{SECRETS}: {e}"));
            drop(redactor);
            take(&rows.map_err(failed)?)
        })
    }
}

/// File that lists the reports in a folder, one name per line after the heading.
const MARKER: &str = ".ctxbench-report";
const MARKER_HEAD: &str = "ctxbench reports 1";

/// Fills a temporary folder first, so that each file is replaced as a whole. Never replaces an input,
/// or a file that ctxbench did not write.
pub(super) fn write_files(
    dir: &Path,
    inputs: &[PathBuf],
    fill: impl FnOnce(&mut OutputFolder) -> Result<(), ReportError>,
) -> anyhow::Result<()> {
    let whole = |path: &Path| format!("making {}", path.display());
    std::fs::create_dir_all(dir).with_context(|| whole(dir))?;
    let scratch = files::temp_dir(dir)?;
    let mut made = OutputFolder::new(scratch.path(), true);
    fill(&mut made)?;
    let mut ours = listed(dir);
    for name in &made.names {
        let path = dir.join(name);
        if path.symlink_metadata().is_err() {
            continue;
        }
        files::check_output(&path, inputs)?;
        if !ours.contains(name) && !reports::is_listed(dir, name) {
            bail!(
                "{} is there and was not made by ctxbench report or advise; name another folder with \
                 -o, or move it away",
                path.display()
            );
        }
    }
    ours.extend(made.names.iter().cloned());
    let list = [MARKER_HEAD].into_iter().chain(ours.iter().map(String::as_str));
    let list: String = list.map(|line| format!("{line}\n")).collect();
    // Write the list first. If the process is killed, the next run still recognises these files as
    // reports.
    files::write(&dir.join(MARKER), list)?;
    let prepare = |name: &String| {
        let path = dir.join(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).with_context(|| whole(parent))?;
        }
        let mut from = File::open(scratch.path().join(name)).with_context(|| whole(&path))?;
        anyhow::Ok(files::prepare(&path, |out| io::copy(&mut from, out).map(drop))?)
    };
    // Only renaming is left, so that a kill seldom leaves files of two reports.
    let prepared = made.names.iter().map(prepare).collect::<anyhow::Result<Vec<_>>>()?;
    prepared.into_iter().try_for_each(PreparedFile::commit)?;
    made.names.iter().for_each(|name| report!("wrote {}", dir.join(name).display()));
    Ok(())
}

/// Returns the names of earlier reports in a folder.
fn listed(dir: &Path) -> BTreeSet<String> {
    let text = std::fs::read_to_string(dir.join(MARKER)).unwrap_or_default();
    let mut lines = text.lines();
    let is_ours = lines.next() == Some(MARKER_HEAD);
    lines.filter(|_| is_ours).map(str::to_string).collect()
}

fn print(format: &ReportFormat, stored: &StoredResults<'_>) -> anyhow::Result<()> {
    match format.write(stored, &hues(), &mut Printed) {
        Err(ReportError::Io(e)) => super::check_printed(Err(e)),
        other => Ok(other?),
    }
}

/// Standard output, for formats of one file.
struct Printed;

impl Files for Printed {
    fn create(&mut self, _: &str) -> Result<Box<dyn Write>, ReportError> {
        Ok(Box::new(io::BufWriter::new(io::stdout())))
    }

    fn create_path(&mut self, name: &str) -> Result<PathBuf, ReportError> {
        Err(ReportError::Refused(format!("{name} is no text; name a folder with -o")))
    }
}
