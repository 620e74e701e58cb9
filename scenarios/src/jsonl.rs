//! Session JSONL, the canonical form: a header line, then one entry per line.

use std::borrow::Cow;
use std::io::BufRead;
use std::ops::ControlFlow;

use ctxbench_formats::lines::LineReader;
use ctxbench_session::Header;
use serde_json::{Map, Value};

use crate::bounds;
use crate::check::{Located, assemble};
use crate::error::{InputError, Loaded};
use crate::fields;
use crate::formats::lines::damage;
use crate::formats::source::{MARK, unread};
use crate::formats::time::millis;

/// Format version that this build reads.
pub const VERSION: u32 = 1;

/// Reads a file with one session. `file` is only used in messages.
///
/// A line that is not a JSON object is left out with a warning, unless it is the header. Calls without
/// a result are kept with a warning. Results without a call are left out with a warning.
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
    let mut reader = SessionReader { file, begun: false, open: None, lines: LineReader::default() };
    let (mut bytes, mut line) = (Vec::new(), 0);
    loop {
        bytes.clear();
        line += 1;
        let read = match from.read_until(b'\n', &mut bytes) {
            Ok(0) => break,
            Ok(_) => {
                let is_last = from.fill_buf().is_ok_and(<[u8]>::is_empty);
                let text = String::from_utf8_lossy(bytes.strip_prefix(MARK).unwrap_or(&bytes));
                let is_utf8 = matches!(text, Cow::Borrowed(_));
                reader.line(text.trim(), is_utf8, (line, is_last), take)
            }
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
        let _ = take(open.finish(file));
    } else if !reader.begun {
        let fix = "record or write a session first";
        let _ = take(Err(InputError::new(1, "the file is empty", HEADER, fix).at(file)));
    }
}

struct Open {
    header: Header,
    items: Vec<Located>,
    /// Warnings about damaged lines.
    warnings: Vec<String>,
    /// Whether a line was left out.
    is_torn: bool,
}

impl Open {
    fn finish(self, file: &str) -> Result<Loaded, InputError> {
        let Open { header, items, warnings, is_torn } = self;
        let mut loaded = assemble(header, items, file, is_torn).map_err(|f| f.at(file))?;
        loaded.warnings.splice(0..0, warnings);
        Ok(loaded)
    }
}

struct SessionReader<'a> {
    file: &'a str,
    /// Whether a line with content was read.
    begun: bool,
    /// `None` = before the first header, or between a damaged session and the next header.
    open: Option<Open>,
    lines: LineReader,
}

impl SessionReader<'_> {
    /// Reads a line: an entry or a header, or several of them if their ends were lost.
    fn line(
        &mut self,
        content: &str,
        is_utf8: bool,
        (line, is_last): (usize, bool),
        take: &mut Take<'_>,
    ) -> ControlFlow<()> {
        if content.is_empty() {
            return ControlFlow::Continue(());
        }
        let (objects, error) = self.lines.objects(content);
        let is_skipped = self.begun && self.open.is_none();
        // A line that breaks off may end inside a character.
        if error.is_none() && !is_utf8 && !is_skipped {
            let what = "bytes that are not UTF-8";
            let fault = InputError::new(line, what, "UTF-8 text", "save the file as UTF-8");
            return self.refuse(fault, take);
        }
        let told = damage(objects.len(), error.as_ref(), is_last);
        objects.into_iter().try_for_each(|object| self.object(object, line, take))?;
        match (&mut self.open, error) {
            (Some(open), error) if error.is_none() || !content.starts_with(HEADER_START) => {
                open.is_torn |= error.is_some();
                open.warnings.extend(told.map(|told| format!("{}:{line}: {told}", self.file)));
            }
            (open, Some(e)) if open.is_some() || !self.begun => {
                if let Some(open) = open.take() {
                    take(open.finish(self.file))?;
                }
                let what = format!("the first line is not a JSON object: {e}");
                let fix = "check that this is a session file";
                return self.refuse(InputError::new(line, what, HEADER, fix), take);
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    /// Adds the entry of an object. A header ends the previous session.
    fn object(
        &mut self,
        object: Map<String, Value>,
        line: usize,
        take: &mut Take<'_>,
    ) -> ControlFlow<()> {
        let begins = object.get("type").is_some_and(|t| t == "session");
        if self.begun && !begins {
            let Some(open) = &mut self.open else { return ControlFlow::Continue(()) };
            return match fields::entry(object, line) {
                Ok(entry) => {
                    open.items.push(Located { line, entry });
                    ControlFlow::Continue(())
                }
                Err(fault) => self.refuse(fault, take),
            };
        }
        if let Some(open) = self.open.take() {
            take(open.finish(self.file))?;
        }
        match header(object, line) {
            Ok(header) => {
                let (items, warnings) = (Vec::new(), Vec::new());
                self.open = Some(Open { header, items, warnings, is_torn: false });
                self.begun = true;
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

/// Beginning of a header, by which a torn one is recognised.
const HEADER_START: &str = "{\"type\":\"session\"";

const HEADER: &str = "a first line {\"type\":\"session\",\"version\":1,\"id\":…}";

fn header(object: Map<String, Value>, line: usize) -> Result<Header, InputError> {
    let wrong = |what: String, fix: &str| InputError::new(line, what, HEADER, fix);
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
