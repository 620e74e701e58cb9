//! `results.json`: all results, versioned. Invalid or foreign files are refused with an error that
//! gives the position and the expected kind of file.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::record::{RESULTS_VERSION, Results};
use ctxbench_util::serde_error;
use serde::ser::{Error as _, SerializeSeq};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::error::Category;

use crate::conclusion::{self, Conclusion};
use crate::error::{ReadError, ReportError};
use crate::stats::{self, Differences};
use crate::stored::StoredResults;

/// Name of the file in a results folder.
pub const RESULTS_FILE: &str = "results.json";

/// Only the version, so that an error on a file of another structure can still report it.
#[derive(Deserialize)]
struct Head {
    version: u64,
}

/// Parses a versioned file: the version first, then the rest.
pub(crate) fn versioned<T: for<'a> Deserialize<'a>>(
    text: &str,
    origin: &Path,
    what: &'static str,
    expected: u32,
) -> Result<T, ReadError> {
    if text.trim().is_empty() {
        return Err(ReadError::Empty { path: origin.into(), expected: what });
    }
    let syntax = |e: serde_json::Error| syntax(origin, &e, what, 0);
    let Head { version: found } = serde_json::from_str(text).map_err(syntax)?;
    if found != u64::from(expected) {
        let advice = match found > u64::from(expected) {
            true => "use a newer ctxbench",
            false => "run again with this ctxbench",
        };
        return Err(ReadError::Version { path: origin.into(), what, found, expected, advice });
    }
    serde_json::from_str(text).map_err(syntax)
}

/// Error of a parser for a text that begins after `before` lines of its file.
pub(crate) fn syntax(
    path: &Path,
    e: &serde_json::Error,
    expected: &'static str,
    before: usize,
) -> ReadError {
    let (line, column) = (before + e.line().max(1), e.column().max(1));
    let message = e.to_string();
    let message = message.rsplit_once(" at line ").map_or(&*message, |(m, _)| m);
    let message = match e.classify() {
        Category::Syntax | Category::Io => format!("this is no JSON ({message})"),
        Category::Eof => "the file breaks off here".to_string(),
        Category::Data => match message.strip_prefix("missing field ") {
            Some(field) => format!("{field} is missing"),
            None => serde_error::describe(message, "an object"),
        },
    };
    ReadError::Syntax { path: path.into(), line, column, message, expected }
}

/// Reads results from text; `origin` names them in errors.
pub fn parse_results(text: &str, origin: &Path) -> Result<Results, ReadError> {
    versioned(text, origin, "results", RESULTS_VERSION)
}

/// File with the results: that of a results folder, or else the path itself.
pub fn results_file(path: &Path) -> PathBuf {
    if path.is_dir() { path.join(RESULTS_FILE) } else { path.to_path_buf() }
}

/// Reads a `results.json`, or that of a results folder.
pub fn read_results(path: &Path) -> Result<Results, ReadError> {
    let path = results_file(path);
    let text = read_text(&path)?;
    parse_results(&text, &path)
}

pub(crate) fn read_text(path: &Path) -> Result<String, ReadError> {
    ctxbench_util::files::read_text(path)
        .map_err(|source| ReadError::Io { path: path.into(), source })
}

/// Formats plain data as indented JSON with a final newline.
pub(crate) fn pretty(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).expect("plain data always serialises") + "\n"
}

/// [`Results`] with derived data. Readers of records ignore `differences` and `conclusions`, which
/// are computed again.
#[derive(Serialize)]
struct ResultsFile<'a> {
    version: u32,
    generator: &'a str,
    assumptions: &'a BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    differences: Vec<Differences>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    conclusions: Vec<Conclusion>,
    runs: Streamed<'a>,
}

/// Rows that are read from storage during serialisation.
struct Streamed<'a> {
    stored: &'a StoredResults<'a>,
    /// Error while reading the rows.
    failed: &'a RefCell<Option<ReportError>>,
}

impl Serialize for Streamed<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut seq = to.serialize_seq(None)?;
        let mut unwritten = None;
        let read = self.stored.sessions(&mut |session| {
            for run in session {
                if let Err(e) = seq.serialize_element(run) {
                    unwritten = Some(e);
                    // Stops the reading; `unwritten` has the error.
                    return Err(io::Error::other("not written").into());
                }
            }
            Ok(())
        });
        match (unwritten, read) {
            (Some(e), _) => Err(e),
            (None, Err(e)) => {
                *self.failed.borrow_mut() = Some(e);
                Err(S::Error::custom("the rows could not be read"))
            }
            (None, Ok(())) => seq.end(),
        }
    }
}

/// Writes `results.json`, indented and deterministic.
pub fn write_json(stored: &StoredResults<'_>, mut out: &mut dyn Write) -> Result<(), ReportError> {
    let results = &stored.figures;
    let failed = RefCell::new(None);
    let written = ResultsFile {
        version: results.version,
        generator: &results.generator,
        assumptions: &results.assumptions,
        differences: stats::over_sessions(results)
            .into_iter()
            .filter(|d| !d.strategies.is_empty())
            .collect(),
        conclusions: conclusion::conclusions(results)
            .into_iter()
            .filter(|g| !g.sentences.is_empty())
            .collect(),
        runs: Streamed { stored, failed: &failed },
    };
    if let Err(e) = serde_json::to_writer_pretty(&mut out, &written) {
        return Err(failed.take().unwrap_or_else(|| io::Error::from(e).into()));
    }
    out.write_all(b"\n")?;
    Ok(out.flush()?)
}

/// Returns the text of `results.json`. Fails on infinite figures, which JSON cannot represent.
pub fn results_text(results: &Results) -> Result<String, ReportError> {
    let mut text = Vec::new();
    write_json(&StoredResults::new(results, &results.runs)?, &mut text)?;
    Ok(String::from_utf8(text).expect("JSON is UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<Results, ReadError> {
        parse_results(text, Path::new("r.json"))
    }

    #[test]
    fn figures_that_json_cannot_hold_are_named() {
        let mut r = testing::results();
        r.runs[0].summary.prefix_stability = Some(f64::NAN);
        let error = results_text(&r).unwrap_err().to_string();
        testing::assert_contains(&error, &["login-bug × aider", "`prefix_stability`"]);
    }

    #[test]
    fn several_sessions_have_their_differences_in_the_file_and_come_back_the_same() {
        let mut results = testing::results();
        results.runs.extend(testing::LABELS.iter().map(|l| testing::run("second", l, 1)));
        results.runs.iter_mut().for_each(|r| r.scenario.recorded = true);
        let text = results_text(&results).unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        let codex = value["differences"][0]["strategies"]
            .as_array()
            .unwrap()
            .iter()
            .find(|s| s["strategy"] == "codex")
            .unwrap();
        assert_eq!(codex["figures"][0]["column"], "cost_usd");
        assert_eq!(codex["figures"][0]["verdict"], "difference_only");
        let again = parse(&text).unwrap();
        assert_eq!(again, results);
        assert_eq!(results_text(&again).unwrap(), text);
        assert!(!results_text(&testing::results()).unwrap().contains("differences"));
    }

    #[test]
    fn front_and_sentences_stand_in_the_file() {
        let text = results_text(&testing::results()).unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        let told = &value["conclusions"][0];
        let about = "login-bug: Users are logged out at random, 120 replies, 242k tokens if never \
                     compacted";
        assert_eq!(told["about"], about);
        let front: Vec<&str> =
            told["front"].as_array().unwrap().iter().map(|l| l.as_str().unwrap()).collect();
        let sentence = told["sentences"][0].as_str().unwrap();
        assert!(!front.is_empty() && front.iter().all(|l| sentence.contains(l)), "{told}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn what_is_written_comes_back(
            label in ".{0,12}", cost in -1e12f64..1e12, saved in proptest::option::of(-1e3f64..100.0),
            tokens in any::<u64>(), seed in 0u64..20, note in proptest::option::of(".{0,20}"),
        ) {
            let mut run = testing::run("s", &label, seed);
            run.summary.cost_usd = cost;
            run.summary.saved_pct = saved;
            run.summary.input_tokens = tokens;
            run.note = note;
            let results = Results { version: RESULTS_VERSION, generator: label, runs: vec![run], ..Results::default() };
            let text = results_text(&results).unwrap();
            prop_assert_eq!(parse(&text).unwrap(), results);
        }

        #[test]
        fn garbage_never_panics(text in ".{0,200}", cut in 0usize..20_000) {
            let _ = parse(&text);
            let whole = results_text(&Results { version: 1, runs: vec![testing::run("s", "codex", 3)], ..Results::default() }).unwrap();
            let end = whole.char_indices().map(|(i, _)| i).take_while(|i| *i <= cut).last().unwrap_or(0);
            let _ = parse(&whole[..end]);
            let _ = parse(&format!("{}{text}{}", &whole[..end], &whole[end..]));
        }
    }
}
