//! The registry of report formats. To add a format, write a file and add a line here.

use crate::error::ReportError;
use crate::plots::Hues;
use crate::stored::{Files, StoredResults};

use crate::table::{TableOptions, table};
use crate::{csv, json, markdown, page, plots, sqlite};

#[derive(Clone, Copy)]
pub struct ReportFormat {
    /// Name on the command line.
    pub name: &'static str,
    /// True for a single text file, which can be written to standard output; other formats need a
    /// folder.
    pub prints: bool,
    make: Make,
}

type Make = fn(&StoredResults<'_>, &Hues, &mut dyn Files) -> Result<(), ReportError>;

impl ReportFormat {
    /// Writes the files. The first is printed if no folder is given.
    pub fn write(
        &self,
        stored: &StoredResults<'_>,
        hues: &Hues,
        files: &mut dyn Files,
    ) -> Result<(), ReportError> {
        (self.make)(stored, hues, files)
    }
}

const fn file(name: &'static str, make: Make) -> ReportFormat {
    ReportFormat { name, prints: true, make }
}

const fn folder(name: &'static str, make: Make) -> ReportFormat {
    ReportFormat { name, prints: false, make }
}

/// All formats; names are unique.
pub const FORMATS: [ReportFormat; 7] = [
    file("table", |r, _, out| {
        let options = TableOptions { details: true, ..TableOptions::default() };
        out.put("summary.txt", &table(&r.figures, &options))
    }),
    file("json", |r, _, out| json::write_json(r, &mut *out.create(json::RESULTS_FILE)?)),
    folder("csv", |r, _, out| csv::write(r, out)),
    folder("sqlite", |r, _, out| sqlite::write(r, &out.create_path(sqlite::DATABASE_FILE)?)),
    folder("svg", plots::write),
    file("html", |r, hues, out| page::write(r, hues, &[], out)),
    file("markdown", |r, _, out| out.put("summary.md", &markdown::pull_request(&r.figures))),
];

/// Finds a format by name; `md` is an alias of `markdown`.
pub fn format(name: &str) -> Result<&'static ReportFormat, ReportError> {
    let wanted = if name == "md" { "markdown" } else { name };
    FORMATS.iter().find(|f| f.name == wanted).ok_or_else(|| {
        let names: Vec<&str> = FORMATS.iter().map(|f| f.name).collect();
        let hint = ctxbench_util::nearest::hint(name, &names);
        ReportError::Refused(format!("there is no report format `{name}`; {hint}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Results;
    use crate::testing;

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
        let nothing = Results { version: 1, ..Results::default() };
        for f in FORMATS.iter().filter(|f| f.name != "sqlite") {
            let files = |results: &Results| testing::files(f.name, results).unwrap();
            let once = files(&testing::results());
            assert!(once.iter().all(|a| !a.text.is_empty()), "{}", f.name);
            assert_eq!(once, files(&testing::results()), "{} is not deterministic", f.name);
            files(&nothing);
        }
    }
}
