//! Reads a `results.json` session by session with an index of the rows.
//!
//! The index relies on the lines that [`crate::json`] writes: a row begins with `    {` and ends
//! with `    }`. A file with another layout is read at once.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::Deserialize;

use crate::error::ReadError;
use crate::error::ReportError;
use crate::json;
use crate::record::{Results, RunRecord, ScenarioInfo};
use crate::stored::{Rows, StoredResults, Take};

pub struct ResultsFile {
    pub path: PathBuf,
    /// All fields except the rows.
    pub head: Results,
    /// Rows of every session.
    sessions: Vec<Vec<RowPosition>>,
    /// Kept open, so that a run that replaces the file does not affect the reader.
    file: Option<Mutex<File>>,
    /// Rows of a file with another layout.
    whole: Option<Vec<RunRecord>>,
}

/// Position of a row in the file.
#[derive(Clone, Copy)]
struct RowPosition {
    offset: u64,
    bytes: usize,
    /// Line of its first byte, from 1.
    line: usize,
}

/// Part of a row that the index needs.
#[derive(Deserialize)]
struct Key {
    scenario: ScenarioInfo,
}

/// Maximum length of a row, bytes. Longer lines belong to a damaged file.
const MAX_ROW_BYTES: usize = 1 << 30;

impl ResultsFile {
    /// Opens a `results.json`, or the one in a results folder.
    pub fn open(path: &Path) -> Result<ResultsFile, ReadError> {
        let path = json::results_file(path);
        match ResultsFile::indexed(&path)? {
            Some(file) => Ok(file),
            None => {
                let all = json::read_results(&path)?;
                let head = all.without_rows();
                Ok(ResultsFile { path, head, sessions: vec![], file: None, whole: Some(all.runs) })
            }
        }
    }

    /// Indexes the rows. Returns `None` for another layout or a damaged file, which is then read at
    /// once.
    fn indexed(path: &Path) -> Result<Option<ResultsFile>, ReadError> {
        let failed = |source| ReadError::Io { path: path.into(), source };
        if !std::fs::metadata(path).map_err(failed)?.is_file() {
            // A pipe can be read only once.
            return Ok(None);
        }
        let mut file = BufReader::new(File::open(path).map_err(failed)?);
        let (mut head, mut offset, mut number) = (Vec::new(), 0, 0);
        let mut line = Vec::new();
        let mut next = |line: &mut Vec<u8>| -> Result<(u64, usize), ReadError> {
            line.clear();
            let at = offset;
            offset += file.read_until(b'\n', line).map_err(failed)? as u64;
            number += 1;
            Ok((at, number))
        };
        loop {
            next(&mut line)?;
            match &line[..] {
                b"  \"runs\": [\n" => break,
                b"" => return Ok(None),
                other => head.extend_from_slice(other),
            }
        }
        head.extend_from_slice(b"\"runs\": []}");
        let Ok(head) = String::from_utf8(head) else { return Ok(None) };
        let Ok(head) = json::parse_results(&head, path) else { return Ok(None) };
        let mut sessions: Vec<Vec<RowPosition>> = Vec::new();
        let mut places: BTreeMap<String, usize> = BTreeMap::new();
        let mut row = Vec::new();
        loop {
            let (at, number) = next(&mut line)?;
            match &line[..] {
                b"  ]\n" => break,
                b"    {\n" => row.clone_from(&line),
                _ => return Ok(None),
            }
            while !matches!(&line[..], b"    }\n" | b"    },\n") {
                next(&mut line)?;
                row.extend_from_slice(&line);
                if line.is_empty() || row.len() > MAX_ROW_BYTES {
                    return Ok(None);
                }
            }
            let json = row.strip_suffix(b",\n").unwrap_or(&row);
            let Ok(key) = serde_json::from_slice::<Key>(json) else { return Ok(None) };
            let id = key.scenario.id;
            let place = RowPosition { offset: at, bytes: json.len(), line: number };
            let session = *places.entry(id).or_insert_with(|| {
                sessions.push(vec![]);
                sessions.len() - 1
            });
            sessions[session].push(place);
        }
        next(&mut line)?;
        let ended = line == b"}\n" && {
            next(&mut line)?;
            line.is_empty()
        };
        let file = Some(Mutex::new(file.into_inner()));
        let file = ResultsFile { path: path.into(), head, sessions, file, whole: None };
        Ok(ended.then_some(file))
    }

    fn row(&self, place: RowPosition) -> Result<RunRecord, ReadError> {
        let mut text = vec![0; place.bytes];
        if let Some(file) = &self.file {
            let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
            file.seek(SeekFrom::Start(place.offset))
                .and_then(|_| file.read_exact(&mut text))
                .map_err(|source| ReadError::Io { path: self.path.clone(), source })?;
        }
        serde_json::from_slice(&text)
            .map_err(|e| json::syntax(&self.path, &e, "results", place.line - 1))
    }
}

impl Rows for ResultsFile {
    fn sessions(&self, take: &mut Take<'_>) -> Result<(), ReportError> {
        if let Some(rows) = &self.whole {
            return rows.sessions(take);
        }
        for session in &self.sessions {
            let rows = session.iter().map(|place| self.row(*place));
            take(&rows.collect::<Result<Vec<_>, _>>()?)?;
        }
        Ok(())
    }
}

/// Reads the figures of a `results.json`, or of the one in a results folder. Every row is a digest.
pub fn read_figures(path: &Path) -> Result<Results, ReportError> {
    let file = ResultsFile::open(path)?;
    Ok(StoredResults::new(&file.head, &file)?.figures)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn several() -> Results {
        let mut results = testing::results();
        results.runs.extend(testing::LABELS.iter().map(|l| testing::run("second", l, 1)));
        results.runs[1].note = Some("a line\n    }\nand \"runs\": [".into());
        results
    }

    fn read(text: &str) -> (ResultsFile, Result<Vec<RunRecord>, ReportError>) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("results.json");
        std::fs::write(&path, text).unwrap();
        let file = ResultsFile::open(&path).unwrap();
        let mut rows = vec![];
        let read = file.sessions(&mut |session| {
            assert!(session.windows(2).all(|r| r[0].scenario.id == r[1].scenario.id));
            rows.extend_from_slice(session);
            Ok(())
        });
        (file, read.map(|()| rows))
    }

    #[test]
    fn sessions_of_any_layout_are_the_written_rows() {
        for results in [several(), Results { version: 1, ..Results::default() }] {
            let text = json::results_text(&results).unwrap();
            let (file, rows) = read(&text);
            assert_eq!(file.head, results.without_rows());
            assert_eq!(rows.unwrap(), results.runs);
            assert_eq!(file.whole.is_none(), !results.runs.is_empty());
            let value: serde_json::Value = serde_json::from_str(&text).unwrap();
            let (file, rows) = read(&value.to_string());
            assert_eq!((file.head, rows.unwrap()), (results.without_rows(), results.runs));
        }
    }

    #[test]
    fn sessions_of_replaced_file_are_those_that_were_opened() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("results.json");
        std::fs::write(&path, json::results_text(&several()).unwrap()).unwrap();
        let file = ResultsFile::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "{}").unwrap();
        let mut rows = vec![];
        file.sessions(&mut |session| {
            rows.extend_from_slice(session);
            Ok(())
        })
        .unwrap();
        assert_eq!(rows, several().runs);
    }

    #[test]
    fn sessions_with_broken_row_is_an_error_with_its_line() {
        let text = json::results_text(&several()).unwrap();
        let at = text.rfind("\"window\": 200000").unwrap();
        let broken = text[..at].to_string() + "\"window\": \"wide\"" + &text[at + 16..];
        let line = text[..at].lines().count();
        let (_, rows) = read(&broken);
        let error = rows.unwrap_err().to_string();
        assert!(error.contains(&format!("line {line}, column")), "{line}: {error}");
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("results.json");
        for cut in [10, text.len() / 2, text.len() - 3] {
            std::fs::write(&path, &text[..cut]).unwrap();
            let error = ResultsFile::open(&path).err().unwrap().to_string();
            assert!(error.contains("expected results as written by"), "{error}");
        }
    }
}
