//! Session JSONL, the canonical form: a header line, then one entry per line.

use std::io::BufRead;
use std::ops::ControlFlow;

use ctxbench_session::Header;
use serde_json::{Map, Value};

use crate::check::{Located, assemble};
use crate::error::{InputError, Loaded};
use crate::fields;
use crate::formats::source::{MARK, unread};
use crate::formats::time::millis;
use crate::{bounds, escapes};

/// Format version that this build reads.
pub const VERSION: u32 = 1;

/// Reads a file with one session. `file` is only used in messages.
///
/// A truncated last line is left out with a warning; a broken line elsewhere is an error. Calls
/// without a result are kept with a warning. Results without a call are left out with a warning.
pub fn read(bytes: &[u8], file: &str) -> Result<Loaded, InputError> {
    let mut all = Vec::new();
    read_each(bytes, file, &mut |one| {
        all.push(one);
        ControlFlow::Continue(())
    });
    let mut all = all.into_iter().collect::<Result<Vec<Loaded>, InputError>>()?;
    match all.len() {
        1 => Ok(all.remove(0)),
        n => {
            let what = format!("{n} sessions in one file");
            Err(InputError::new(1, what, "one session", "split the file").at(file))
        }
    }
}

/// Receives sessions, or errors; `Break` ends the reading.
pub type Take<'a> = dyn FnMut(Result<Loaded, InputError>) -> ControlFlow<()> + 'a;

/// Reads the sessions of a file one at a time. After a damaged session, reading continues at the
/// next header.
pub fn read_each(mut from: impl BufRead, file: &str, take: &mut Take<'_>) {
    let mut reader = SessionReader { file, begun: false, open: None };
    let (mut bytes, mut line) = (Vec::new(), 0);
    loop {
        bytes.clear();
        // The session now contains a result of several megabytes, and the next line is probably
        // shorter.
        bytes.shrink_to(LINE);
        line += 1;
        let read = match from.read_until(b'\n', &mut bytes) {
            Ok(0) => break,
            Ok(_) => reader.line(bytes.strip_prefix(MARK).unwrap_or(&bytes), line, take),
            Err(e) => {
                let _ = take(Err(unread(file, line, &e)));
                return;
            }
        };
        if read.is_break() {
            return;
        }
    }
    if let Some(open) = reader.open {
        let _ = take(open.finish(file, true));
    } else if !reader.begun {
        let fix = "record or write a session first";
        let _ = take(Err(InputError::new(1, "the file is empty", HEADER, fix).at(file)));
    }
}

/// Capacity of the line buffer that is kept for the next line, bytes.
const LINE: usize = 1 << 20;

struct Open {
    header: Header,
    items: Vec<Located>,
    /// A truncated line, which is only allowed at the end.
    broken: Option<InputError>,
}

impl Open {
    /// Adds the entry of a line. `parsed` is its content.
    fn entry(
        &mut self,
        parsed: serde_json::Result<Map<String, Value>>,
        line: usize,
    ) -> Result<(), InputError> {
        if let Some(fault) = self.broken.take() {
            return Err(fault);
        }
        match parsed {
            Ok(object) => self.items.push(Located { line, entry: fields::entry(object, line)? }),
            Err(e) => {
                let what = format!("not a JSON object: {e}");
                let expected = "one JSON object per line";
                let fault = InputError::new(line, what, expected, "repair or remove the line");
                if !e.is_eof() {
                    return Err(fault);
                }
                self.broken = Some(fault);
            }
        }
        Ok(())
    }

    /// Returns the session. A truncated line is left out with a warning if it is the last of the
    /// file.
    fn finish(self, file: &str, is_last: bool) -> Result<Loaded, InputError> {
        let Open { header, items, broken } = self;
        let cut = broken.as_ref().map(|fault| fault.line);
        if let Some(fault) = broken.filter(|_| !is_last) {
            return Err(fault.at(file));
        }
        let mut loaded = assemble(header, items, file, cut.is_some()).map_err(|f| f.at(file))?;
        let warning =
            |line| format!("{file}:{line}: the last line breaks off; the lines before it are used");
        loaded.warnings.splice(0..0, cut.map(warning));
        Ok(loaded)
    }
}

struct SessionReader<'a> {
    file: &'a str,
    /// Whether a line with content was read.
    begun: bool,
    /// `None` = before the first header, or between a damaged session and the next header.
    open: Option<Open>,
}

impl SessionReader<'_> {
    /// Reads a line. A header ends the previous session.
    fn line(&mut self, bytes: &[u8], line: usize, take: &mut Take<'_>) -> ControlFlow<()> {
        let is_damaged = self.begun && self.open.is_none();
        let (text, inside) = match std::str::from_utf8(bytes) {
            Ok(text) => (text, false),
            // The file ends inside a character.
            Err(e) if e.error_len().is_none() => {
                (std::str::from_utf8(&bytes[..e.valid_up_to()]).unwrap_or_default(), true)
            }
            Err(_) if is_damaged => return ControlFlow::Continue(()),
            Err(_) => {
                let what = "bytes that are not UTF-8";
                let fault = InputError::new(line, what, "UTF-8 text", "save the file as UTF-8");
                return self.refuse(fault, take);
            }
        };
        let content = text.trim();
        if content.is_empty() && !(inside && self.open.is_some()) {
            return ControlFlow::Continue(());
        }
        let parsed = escapes::from_str::<Map<String, Value>>(content);
        let begins = parsed.as_ref().is_ok_and(|o| o.get("type").is_some_and(|t| t == "session"));
        if self.begun && !begins {
            return match self.open.as_mut().map(|open| open.entry(parsed, line)) {
                Some(Err(fault)) => self.refuse(fault, take),
                Some(Ok(())) | None => ControlFlow::Continue(()),
            };
        }
        if let Some(open) = self.open.take() {
            take(open.finish(self.file, false))?;
        }
        match header(parsed, line) {
            Ok(header) => {
                (self.begun, self.open) =
                    (true, Some(Open { header, items: Vec::new(), broken: None }));
                ControlFlow::Continue(())
            }
            Err(fault) => self.refuse(fault, take),
        }
    }

    /// Reports a fault. The lines up to the next header are skipped.
    fn refuse(&mut self, fault: InputError, take: &mut Take<'_>) -> ControlFlow<()> {
        (self.begun, self.open) = (true, None);
        take(Err(fault.at(self.file)))
    }
}

const HEADER: &str = "a first line {\"type\":\"session\",\"version\":1,\"id\":…}";

fn header(
    parsed: serde_json::Result<Map<String, Value>>,
    line: usize,
) -> Result<Header, InputError> {
    let wrong = |what: String, fix: &str| InputError::new(line, what, HEADER, fix);
    let object = parsed.map_err(|e| {
        let what = format!("the first line is not a JSON object: {e}");
        wrong(what, "check that this is a session file")
    })?;
    let field = |key: &str| object.get(key).cloned().unwrap_or_default();
    if field("type") != "session" {
        let what = format!("the first line has the type {}", field("type"));
        let fix = "put the header first; `ctxbench import --help` lists other formats";
        return Err(wrong(what, fix));
    }
    if field("version") != VERSION {
        let what = format!("session version {}", field("version"));
        return Err(wrong(what, "this build reads version 1; use the build that wrote the file"));
    }
    if field("id").as_str().is_none_or(|id| id.trim().is_empty()) {
        let what = format!("the id {} of the session", field("id"));
        return Err(wrong(what, "give the session a short name"));
    }
    let mut header: Header = fields::fitted(object, line, "the header")?;
    if let Some(started) = header.started.as_deref().filter(|s| millis(s).is_none()) {
        let what = format!("the header does not fit: \"started\" is {started:?}");
        let expected = "a time such as 2026-03-01T12:00:00Z";
        return Err(InputError::new(line, what, expected, "correct the field or leave it out"));
    }
    bounds::check(bounds::of_header(&mut header), line)?;
    Ok(header)
}

#[cfg(test)]
#[path = "jsonl_tests.rs"]
mod tests;
