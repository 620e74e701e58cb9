//! Session JSONL, the canonical form: a header line, then one entry per line.

use std::io::BufRead;
use std::ops::ControlFlow;

use ctxbench_core::nearest;
use ctxbench_core::session::Header;
use serde_json::{Map, Value};

use crate::bounds;
use crate::check::{Located, assemble};
use crate::error::{InputError, LineFault, Loaded};
use crate::escapes;
use crate::fields;
use crate::formats::{millis, unread};

/// Format version that this build reads.
pub const VERSION: u32 = 1;

/// Reads a file with one session. `file` is only used in messages.
///
/// A truncated last line is left out with a warning; a broken line elsewhere is an error. Calls
/// without a result are kept with a warning. Results without a call are left out with a warning.
pub fn read(bytes: &[u8], file: &str) -> Result<Loaded, InputError> {
    let mut all = Ok(Vec::new());
    read_each(bytes, file, &mut |one| match (&mut all, one) {
        (Ok(list), Ok(loaded)) => {
            list.push(loaded);
            ControlFlow::Continue(())
        }
        (_, one) => {
            all = one.map(|_| Vec::new());
            ControlFlow::Break(())
        }
    });
    let mut all = all?;
    match all.len() {
        1 => Ok(all.remove(0)),
        n => {
            let what = format!("{n} sessions in one file");
            Err(LineFault::new(1, what, "one session", "split the file").at(file))
        }
    }
}

/// Receives sessions, or errors; `Break` ends the reading.
pub type Take<'a> = dyn FnMut(Result<Loaded, InputError>) -> ControlFlow<()> + 'a;

/// Reads the sessions of a file one at a time. After a damaged session, reading continues at the
/// next header.
pub fn read_each(mut from: impl BufRead, file: &str, take: &mut Take<'_>) {
    let mut state = ReadState::Start;
    let (mut bytes, mut line) = (Vec::new(), 0);
    loop {
        bytes.clear();
        // The session now contains a result of several megabytes, and the next line is probably
        // shorter.
        bytes.shrink_to(LINE);
        line += 1;
        let fault = match from.read_until(b'\n', &mut bytes) {
            Ok(0) => break,
            Ok(_) => match state.line(bytes.strip_prefix(MARK).unwrap_or(&bytes), line, file) {
                Ok(None) => continue,
                Ok(Some(loaded)) => {
                    if take(Ok(loaded)).is_break() {
                        return;
                    }
                    match std::mem::replace(&mut state, ReadState::Damaged) {
                        ReadState::Refused(fault) => fault.at(file),
                        open => {
                            state = open;
                            continue;
                        }
                    }
                }
                Err(fault) => fault.at(file),
            },
            Err(e) => {
                let _ = take(Err(unread(file, line, &e)));
                return;
            }
        };
        state = match std::mem::replace(&mut state, ReadState::Damaged) {
            // The header that ended a damaged session starts another one.
            ReadState::Open(open) if open.items.is_empty() && open.line == line => {
                ReadState::Open(open)
            }
            _ => ReadState::Damaged,
        };
        if take(Err(fault)).is_break() {
            return;
        }
    }
    if let Some(last) = state.end(file) {
        let _ = take(last.map_err(|f| f.at(file)));
    }
}

/// Capacity of the line buffer that is kept for the next line, bytes.
const LINE: usize = 1 << 20;

/// A byte order mark.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Session that is being read.
struct Open {
    header: Header,
    /// Line number of the header.
    line: usize,
    items: Vec<Located>,
    /// A truncated line, which is only allowed at the end.
    broken: Option<LineFault>,
}

enum ReadState {
    Start,
    Open(Box<Open>),
    /// Skipping lines until the next header.
    Damaged,
    /// The header that ended a session is invalid.
    Refused(LineFault),
}

impl ReadState {
    /// Reads a line. A header ends the previous session, which is returned.
    fn line(&mut self, bytes: &[u8], line: usize, file: &str) -> Result<Option<Loaded>, LineFault> {
        let (text, inside) = match std::str::from_utf8(bytes) {
            Ok(text) => (text, false),
            // The file ends inside a character.
            Err(e) if e.error_len().is_none() => {
                (std::str::from_utf8(&bytes[..e.valid_up_to()]).unwrap_or_default(), true)
            }
            Err(_) if matches!(self, ReadState::Damaged) => return Ok(None),
            Err(_) => {
                let what = "bytes that are not UTF-8";
                return Err(LineFault::new(line, what, "UTF-8 text", "save the file as UTF-8"));
            }
        };
        let content = text.trim();
        if content.is_empty() && !inside {
            return Ok(None);
        }
        let parsed = escapes::from_str::<Map<String, Value>>(content);
        let begins = parsed.as_ref().is_ok_and(|o| o.get("type").is_some_and(|t| t == "session"));
        match self {
            ReadState::Start if content.is_empty() => return Ok(None),
            ReadState::Damaged if !begins => return Ok(None),
            ReadState::Open(open) if !begins => {
                if let Some(fault) = open.broken.take() {
                    return Err(fault);
                }
                match parsed {
                    Ok(object) => {
                        let again = || escapes::from_str(content).unwrap_or_default();
                        open.items
                            .push(Located { line, entry: fields::entry(object, line, again)? });
                    }
                    Err(e) => {
                        let fault = LineFault::new(
                            line,
                            format!("not a JSON object: {e}"),
                            "one JSON object per line",
                            "repair or remove the line",
                        );
                        if !e.is_eof() {
                            return Err(fault);
                        }
                        open.broken = Some(fault);
                    }
                }
                return Ok(None);
            }
            _ => {}
        }
        let next = match (header(content, line), &self) {
            (Ok(header), _) => {
                ReadState::Open(Open { header, line, items: Vec::new(), broken: None }.into())
            }
            (Err(fault), ReadState::Open(open)) if open.broken.is_none() => {
                ReadState::Refused(fault)
            }
            (Err(fault), _) => return Err(fault),
        };
        match std::mem::replace(self, next) {
            ReadState::Open(open) => match open.broken {
                Some(fault) => Err(fault),
                None => assemble(open.header, open.items, file, false).map(Some),
            },
            ReadState::Start | ReadState::Damaged | ReadState::Refused(_) => Ok(None),
        }
    }

    /// Finishes the session at the end of the file.
    fn end(self, file: &str) -> Option<Result<Loaded, LineFault>> {
        let open = match self {
            ReadState::Open(open) => open,
            ReadState::Damaged | ReadState::Refused(_) => return None,
            ReadState::Start => {
                let what = "the file is empty";
                return Some(Err(LineFault::new(
                    1,
                    what,
                    HEADER,
                    "record or write a session first",
                )));
            }
        };
        let cut = open.broken.map(|f| f.line);
        let loaded = assemble(open.header, open.items, file, cut.is_some());
        Some(loaded.map(|mut loaded| {
            if let Some(last) = cut {
                let warning = format!(
                    "{file}:{last}: the last line breaks off; the lines before it are used"
                );
                loaded.warnings.insert(0, warning);
            }
            loaded
        }))
    }
}

const HEADER: &str = "a first line {\"type\":\"session\",\"version\":1,\"id\":…}";

/// Describes a field that is missing or has the wrong type.
fn absent(object: &Map<String, Value>, field: &str) -> String {
    match object.get(field) {
        None => format!("missing field {field:?}"),
        Some(other) => format!("field {field:?} is {other}"),
    }
}

fn header(content: &str, line: usize) -> Result<Header, LineFault> {
    let mut object: Map<String, Value> = escapes::from_str(content).map_err(|e| {
        LineFault::new(
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
            return Err(LineFault::new(
                line,
                format!("the first line has type {t:?}"),
                HEADER,
                fix,
            ));
        }
        _ => {
            return Err(LineFault::new(
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
            return Err(LineFault::new(line, format!("session version {v}"), "version 1", fix));
        }
        None => {
            return Err(LineFault::new(
                line,
                absent(&object, "version"),
                HEADER,
                "add \"version\":1; this build reads version 1",
            ));
        }
    }
    if object.get("id").and_then(Value::as_str).is_none_or(|id| id.trim().is_empty()) {
        return Err(LineFault::new(
            line,
            absent(&object, "id"),
            HEADER,
            "give the session a short name",
        ));
    }
    let mut header: Header = fields::fitted(object.clone(), || object.clone()).map_err(|why| {
        LineFault::new(
            line,
            format!("a header that does not fit: {why}"),
            HEADER,
            "correct the field",
        )
    })?;
    if let Some(started) = header.started.as_deref().filter(|s| millis(s).is_none()) {
        return Err(LineFault::new(
            line,
            format!("a header that does not fit: \"started\" is {started:?}"),
            "a time such as 2026-03-01T12:00:00Z",
            "correct the field or leave it out",
        ));
    }
    bounds::check(bounds::of_header(&mut header), line)?;
    Ok(header)
}

/// Returns the lines with content, numbered from 1.
pub(crate) fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(i, l)| (i + 1, l.trim())).filter(|(_, l)| !l.is_empty())
}

#[cfg(test)]
#[path = "jsonl_tests.rs"]
mod tests;
