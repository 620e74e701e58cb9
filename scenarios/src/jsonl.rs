//! Session JSONL, the canonical form: a header line, then one entry per line.

use ctxbench_core::nearest;
use ctxbench_core::session::Header;
use serde_json::{Map, Value};

use crate::bounds;
use crate::check::{Located, assemble};
use crate::error::{Fault, InputError, Loaded};
use crate::fields;

/// The format version that this build reads.
pub const VERSION: u32 = 1;

/// Reads a file with one session. `file` is only used in messages.
///
/// A last line that breaks off is left out with a warning; a broken line elsewhere is an error.
/// Calls without a result are kept with a warning, results without a call are left out with one.
pub fn read(bytes: &[u8], file: &str) -> Result<Loaded, InputError> {
    let mut all = read_all(bytes, file)?;
    match all.len() {
        1 => Ok(all.remove(0)),
        n => {
            let what = format!("{n} sessions in one file");
            Err(Fault::new(1, what, "one session", "split the file").at(file))
        }
    }
}

/// Reads the sessions of a file, each of which begins with its header.
pub fn read_all(bytes: &[u8], file: &str) -> Result<Vec<Loaded>, InputError> {
    read_lines(bytes, file).map_err(|f| f.at(file))
}

/// A session whose lines still come.
struct Open {
    header: Header,
    items: Vec<Located>,
}

fn read_lines(bytes: &[u8], file: &str) -> Result<Vec<Loaded>, Fault> {
    let (text, mut cut) = as_text(bytes)?;
    let mut lines = numbered(text).peekable();
    let Some((first, header_line)) = lines.next() else {
        return Err(Fault::new(1, "the file is empty", HEADER, "record or write a session first"));
    };
    let mut open = Open { header: header(header_line, first)?, items: Vec::new() };
    let mut out = Vec::new();
    let mut last = first;
    while let Some((line, content)) = lines.next() {
        last = line;
        match serde_json::from_str::<Map<String, Value>>(content) {
            Ok(object) if object.get("type").is_some_and(|t| t == "session") => {
                let next = Open { header: header(content, line)?, items: Vec::new() };
                let Open { header, items } = std::mem::replace(&mut open, next);
                out.push(assemble(header, items, file, false)?);
            }
            Ok(object) => open.items.push(Located { line, entry: fields::entry(object, line)? }),
            Err(e) if lines.peek().is_none() && e.is_eof() => cut = true,
            Err(e) => {
                return Err(Fault::new(
                    line,
                    format!("not a JSON object: {e}"),
                    "one JSON object per line",
                    "repair or remove the line",
                ));
            }
        }
    }
    let mut loaded = assemble(open.header, open.items, file, cut)?;
    if cut {
        let warning =
            format!("{file}:{last}: the last line breaks off; what stands before it is used");
        loaded.warnings.insert(0, warning);
    }
    out.push(loaded);
    Ok(out)
}

const HEADER: &str = "a first line {\"type\":\"session\",\"version\":1,\"id\":…}";

fn header(content: &str, line: usize) -> Result<Header, Fault> {
    let mut object: Map<String, Value> = serde_json::from_str(content).map_err(|e| {
        Fault::new(
            line,
            format!("the first line is not a JSON object: {e}"),
            HEADER,
            "check that this is a session file",
        )
    })?;
    match object.remove("type") {
        Some(Value::String(t)) if t == "session" => {}
        Some(Value::String(t)) => {
            let near = nearest::nearest(&t, &["session"]);
            let fix =
                if near.is_empty() { "put the header first" } else { "did you mean session?" };
            return Err(Fault::new(line, format!("the first line has type {t:?}"), HEADER, fix));
        }
        _ => {
            return Err(Fault::new(
                line,
                "the first line has no \"type\"",
                HEADER,
                "put the header first",
            ));
        }
    }
    match object.get("version").and_then(Value::as_u64) {
        Some(v) if v == u64::from(VERSION) => {}
        Some(v) => {
            let fix = "this build reads version 1; use the build that wrote the file";
            return Err(Fault::new(line, format!("session version {v}"), "version 1", fix));
        }
        None => {
            return Err(Fault::new(
                line,
                "missing field \"version\"",
                HEADER,
                "add \"version\":1; this build reads version 1",
            ));
        }
    }
    if object.get("id").and_then(Value::as_str).is_none_or(|id| id.trim().is_empty()) {
        return Err(Fault::new(
            line,
            "missing field \"id\"",
            HEADER,
            "give the session a short name",
        ));
    }
    let mut header = serde_json::from_value(Value::Object(object)).map_err(|e| {
        Fault::new(line, format!("a header that does not fit: {e}"), HEADER, "correct the field")
    })?;
    bounds::check(bounds::of_header(&mut header), line)?;
    Ok(header)
}

/// The bytes as text, and whether they end inside a character.
fn as_text(bytes: &[u8]) -> Result<(&str, bool), Fault> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok((text, false)),
        Err(e) => {
            let (good, _) = bytes.split_at(e.valid_up_to());
            let good = std::str::from_utf8(good).expect("valid up to here, says the error");
            if e.error_len().is_none() {
                return Ok((good, true));
            }
            let line = good.matches('\n').count() + 1;
            Err(Fault::new(
                line,
                "bytes that are not UTF-8",
                "UTF-8 text",
                "save the file as UTF-8",
            ))
        }
    }
}

/// Lines with content, counted from 1.
pub(crate) fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(i, l)| (i + 1, l.trim())).filter(|(_, l)| !l.is_empty())
}

#[cfg(test)]
#[path = "jsonl_tests.rs"]
mod tests;
