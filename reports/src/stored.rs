//! Results with rows that are read one session at a time, as often as a report needs them. Memory
//! use does not depend on the number of rows.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::error::{ReportError, unwritten};
use crate::metrics::METRICS;
use crate::record::{BreakEven, Results, RunRecord};
use crate::view;

/// One file of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    /// Path below the output folder, `/` between parts.
    pub file: String,
    pub text: String,
}

/// Callback for the rows of one session.
pub type Take<'a> = dyn FnMut(&[RunRecord]) -> Result<(), ReportError> + 'a;

/// Rows that can be read repeatedly, also by several threads at once.
pub trait Rows: Sync {
    /// Passes the rows of each session together, always in the same order.
    fn sessions(&self, take: &mut Take<'_>) -> Result<(), ReportError>;
}

/// Rows in memory; the rows of a session must be adjacent.
impl Rows for Vec<RunRecord> {
    fn sessions(&self, take: &mut Take<'_>) -> Result<(), ReportError> {
        self.chunk_by(|a, b| a.scenario.id == b.scenario.id).try_for_each(take)
    }
}

/// Results with figures in memory and rows in storage.
pub struct StoredResults<'a> {
    /// Every row as a [digest](RunRecord::digested).
    pub figures: Results,
    rows: &'a dyn Rows,
}

impl<'a> StoredResults<'a> {
    /// Reads the rows once. Rows in `head` are ignored. Fails on infinite figures, which files
    /// cannot contain.
    pub fn new(head: &Results, rows: &'a dyn Rows) -> Result<StoredResults<'a>, ReportError> {
        let mut runs = Vec::new();
        rows.sessions(&mut |session| {
            session.iter().try_for_each(check_finite)?;
            runs.extend(session.iter().map(|r| r.clone().digested()));
            Ok(())
        })?;
        Ok(StoredResults { figures: Results { runs, ..head.without_rows() }, rows })
    }

    /// Reads the whole rows, session by session.
    pub fn sessions(&self, take: &mut Take<'_>) -> Result<(), ReportError> {
        self.rows.sessions(take)
    }
}

impl Results {
    pub fn without_rows(&self) -> Results {
        Results {
            version: self.version,
            generator: self.generator.clone(),
            assumptions: self.assumptions.clone(),
            runs: vec![],
        }
    }
}

/// Fails with the name of the first figure of a run that is infinite or not a number.
fn check_finite(run: &RunRecord) -> Result<(), ReportError> {
    let mut all: Vec<(&str, f64)> = vec![("scenario.scale", run.scenario.scale)];
    all.extend(METRICS.iter().filter_map(|m| Some((m.column, m.measured(run).number()?))));
    all.extend(run.requests.iter().map(|q| ("requests.cost_usd", q.cost_usd)));
    all.extend(run.delegation.iter().map(|d| ("delegation.cost_usd", d.cost_usd)));
    for c in &run.compactions {
        all.extend(c.cost_usd.map(|x| ("compactions.cost_usd", x)));
        let even = c.break_even_calls.and_then(BreakEven::calls);
        all.extend(even.map(|x| ("compactions.break_even_calls", x)));
        all.extend(c.retained_pct.map(|x| ("compactions.retained_pct", x)));
    }
    match all.iter().find(|(_, x)| !x.is_finite()) {
        None => Ok(()),
        Some((field, _)) => Err(ReportError::Refused(format!(
            "{}: `{field}` is not a finite number; whatever measured it is wrong, and nothing was \
             written for this run",
            view::name(&run.scenario.id, &run.strategy.label, &run.model, true)
        ))),
    }
}

/// Destination of the files of a report.
pub trait Files {
    /// Creates a file; `name` is relative to the output folder, with `/` between parts. The caller
    /// flushes it.
    fn create(&mut self, name: &str) -> Result<Box<dyn Write>, ReportError>;

    fn put(&mut self, name: &str, text: &str) -> Result<(), ReportError> {
        let mut out = self.create(name)?;
        out.write_all(text.as_bytes())?;
        Ok(out.flush()?)
    }

    /// Path of a new file, for writers that open files themselves.
    fn create_path(&mut self, name: &str) -> Result<PathBuf, ReportError>;
}

pub struct OutputFolder {
    dir: PathBuf,
    private: bool,
    /// Created files, in order.
    pub names: Vec<String>,
}

impl OutputFolder {
    /// Creates files in an existing folder. If `private` is set, only the owner may read them.
    pub fn new(dir: &Path, private: bool) -> OutputFolder {
        OutputFolder { dir: dir.into(), private, names: vec![] }
    }
}

impl Files for OutputFolder {
    fn create(&mut self, name: &str) -> Result<Box<dyn Write>, ReportError> {
        let path = self.create_path(name)?;
        let file = File::create(&path).map_err(unwritten(&path, "write it"))?;
        Ok(Box::new(Named { out: BufWriter::new(file), path }))
    }

    fn create_path(&mut self, name: &str) -> Result<PathBuf, ReportError> {
        let path = self.dir.join(name);
        let folder = path.parent().unwrap_or(&self.dir);
        // Do not create the folder itself again if it was removed.
        if folder != self.dir && !folder.is_dir() {
            fs::create_dir(folder).map_err(unwritten(folder, "write it"))?;
        }
        if self.private {
            keep_private(&self.dir, &path).map_err(unwritten(&path, "write it"))?;
        }
        self.names.push(name.into());
        Ok(path)
    }
}

/// Restricts a folder and a new file in it to their owner.
#[cfg(unix)]
fn keep_private(dir: &Path, file: &Path) -> io::Result<()> {
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
    fs::set_permissions(dir, fs::Permissions::from_mode(0o700))?;
    fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(file).map(drop)
}

/// A file has the permissions of its folder on other systems.
#[cfg(not(unix))]
fn keep_private(_: &Path, _: &Path) -> io::Result<()> {
    Ok(())
}

/// A file that adds its name to errors.
struct Named {
    out: BufWriter<File>,
    path: PathBuf,
}

impl Named {
    fn named(&self, e: io::Error) -> io::Error {
        io::Error::new(e.kind(), unwritten(&self.path, "write it")(e))
    }
}

impl Write for Named {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes).map_err(|e| self.named(e))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush().map_err(|e| self.named(e))
    }
}
