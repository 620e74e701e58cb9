//! The registry of report formats. To add a format, write a file with a `FORMAT` and add it here.

use std::io::{self, Write};
use std::path::Path;

use crate::json::ReadError;
use crate::plots::Looks;
use crate::record::Results;
use crate::stored::{Files, InMemory, StoredResults};

use crate::{bmf, csv, github_benchmark, json, junit, markdown, page, plots, sqlite, table};

/// One file of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    /// Path below the output folder, `/` between parts.
    pub file: String,
    pub text: String,
}

/// A report format.
#[derive(Clone, Copy)]
pub struct ReportFormat {
    /// Name on the command line.
    pub name: &'static str,
    /// True for a single text file, which can be written to standard output; other formats need a
    /// folder.
    pub prints: bool,
    pub(crate) make: Make,
}

/// Function that creates the files, by its input.
#[derive(Clone, Copy)]
pub(crate) enum Make {
    /// From the figures of all rows at once.
    Figures(fn(&Results, &Looks) -> Result<Vec<Artifact>, ReportError>),
    /// From whole rows, session by session.
    Rows(fn(&StoredResults<'_>, &Looks, &mut dyn Files) -> Result<(), ReportError>),
    /// From whole rows into one binary file of this name.
    Database(&'static str, fn(&StoredResults<'_>, &Path) -> Result<(), ReportError>),
}

impl ReportFormat {
    /// Writes the files. The first is printed if no folder is given.
    pub fn write(
        &self,
        stored: &StoredResults<'_>,
        looks: &Looks,
        files: &mut dyn Files,
    ) -> Result<(), ReportError> {
        match self.make {
            Make::Figures(render) => {
                for f in render(&stored.figures, looks)? {
                    let mut out = files.create(&f.file)?;
                    out.write_all(f.text.as_bytes())?;
                    out.flush()?;
                }
                Ok(())
            }
            Make::Rows(write) => write(stored, looks, files),
            Make::Database(name, write) => write(stored, &files.create_path(name)?),
        }
    }

    /// Renders all files as text; empty for a binary format.
    pub fn render(&self, results: &Results, looks: &Looks) -> Result<Vec<Artifact>, ReportError> {
        let mut files = InMemory::default();
        self.write(&StoredResults::new(results, &results.runs)?, looks, &mut files)?;
        Ok(files.into_artifacts())
    }
}

/// All formats; names are unique.
pub const FORMATS: [ReportFormat; 10] = [
    table::FORMAT,
    json::FORMAT,
    csv::FORMAT,
    sqlite::FORMAT,
    plots::FORMAT,
    page::FORMAT,
    markdown::FORMAT,
    junit::FORMAT,
    bmf::FORMAT,
    github_benchmark::FORMAT,
];

/// Error while creating a report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// Drawing failed.
    #[error("the plot `{plot}` could not be drawn: {reason}")]
    Plot {
        /// File name of the plot.
        plot: String,
        /// Error of the drawing library.
        reason: String,
    },
    /// A figure is infinite or not a number.
    #[error(
        "{run}: `{field}` is not a finite number; whatever measured it is wrong, and nothing was \
         written for this run"
    )]
    NotFinite {
        /// Scenario × strategy × model.
        run: String,
        /// Field of the record.
        field: String,
    },
    /// A binary format without an output folder.
    #[error("{0} is no text; name a folder with -o")]
    NeedsFolder(String),
    /// Rows could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A file could not be written; contains the system's error.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The database could not be written.
    #[error("{path}: the database could not be written ({source})")]
    Database {
        /// Path of the database.
        path: std::path::PathBuf,
        /// Error of SQLite.
        source: rusqlite::Error,
    },
    /// Unknown format name.
    #[error("there is no report format `{name}`; {hint}")]
    UnknownFormat {
        name: String,
        /// Suggestion of similar names.
        hint: String,
    },
}

/// Finds a format by name; `md` is an alias of `markdown`.
pub fn format(name: &str) -> Result<&'static ReportFormat, ReportError> {
    let wanted = if name == "md" { "markdown" } else { name };
    FORMATS.iter().find(|f| f.name == wanted).ok_or_else(|| {
        let names: Vec<&str> = FORMATS.iter().map(|f| f.name).collect();
        ReportError::UnknownFormat {
            name: name.into(),
            hint: ctxbench_core::nearest::hint(name, &names),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn names_are_unique_and_found() {
        for f in &FORMATS {
            assert_eq!(FORMATS.iter().filter(|g| g.name == f.name).count(), 1);
            assert_eq!(format(f.name).unwrap().name, f.name);
        }
        assert_eq!(format("md").unwrap().name, "markdown");
        let error = format("htm").err().unwrap().to_string();
        assert!(error.contains("did you mean html"), "{error}");
    }

    #[test]
    fn every_format_renders_the_sample_and_nothing() {
        let looks = Looks::default();
        for f in FORMATS.iter().filter(|f| !matches!(f.make, Make::Database(..))) {
            let once = f.render(&sample::results(), &looks).unwrap();
            assert!(once.iter().all(|a| !a.text.is_empty()), "{}", f.name);
            assert_eq!(
                once,
                f.render(&sample::results(), &looks).unwrap(),
                "{} is not deterministic",
                f.name
            );
            f.render(&Results { version: 1, ..Results::default() }, &looks).unwrap();
        }
    }
}
