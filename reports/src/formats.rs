//! The registry of report formats: a new one is a file with a `FORMAT` and a line here.

use crate::plots::Looks;
use crate::record::Results;

use crate::{admin, bmf, csv, github_benchmark, json, junit, markdown, page, plots, table};

/// One file of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    /// Path below the output folder, `/` between parts.
    pub file: String,
    /// Its content.
    pub text: String,
}

/// A way to write results down.
#[derive(Clone, Copy)]
pub struct Format {
    /// Name on the command line.
    pub name: &'static str,
    /// Makes its files; the first is the one to print when no folder is given.
    pub render: fn(&Results, &Looks) -> Result<Vec<Artifact>, ReportError>,
}

/// All formats; names are unique.
pub const FORMATS: [Format; 10] = [
    table::FORMAT,
    json::FORMAT,
    csv::FORMAT,
    plots::FORMAT,
    page::FORMAT,
    markdown::FORMAT,
    junit::FORMAT,
    bmf::FORMAT,
    github_benchmark::FORMAT,
    admin::FORMAT,
];

/// Why a report could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// Drawing failed.
    #[error("the plot `{plot}` could not be drawn: {reason}")]
    Plot {
        /// File name of the plot.
        plot: String,
        /// What the drawing library said.
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
    /// No such format.
    #[error("there is no report format `{name}`; {hint}")]
    UnknownFormat {
        /// What was asked for.
        name: String,
        /// Names near it.
        hint: String,
    },
}

/// The format of that name; `md` is `markdown`.
pub fn format(name: &str) -> Result<&'static Format, ReportError> {
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
        for f in &FORMATS {
            let once = (f.render)(&sample::results(), &looks).unwrap();
            assert!(once.iter().all(|a| !a.text.is_empty()), "{}", f.name);
            assert_eq!(
                once,
                (f.render)(&sample::results(), &looks).unwrap(),
                "{} is not deterministic",
                f.name
            );
            (f.render)(&Results { version: 1, ..Results::default() }, &looks).unwrap();
        }
    }
}
