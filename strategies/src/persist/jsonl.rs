//! Append-only files. Each entry is written with one call, so a crash leaves at most one torn
//! entry, at the end.
//!
//! Data that was written survives the end of the program, even if it is killed. No source in
//! docs/sources says that one of the products syncs to disk, so these files do not sync either. A
//! power cut can lose the newest entries.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use ctxbench_formats::lines::LineReader;
use serde_json::Value;

use super::{JournalEntry, PersistError, Persistence, ReopenedSession, Result, StoredMessage};

/// Append-only file, opened for writing.
pub(crate) struct Appender {
    path: PathBuf,
    file: File,
    /// Whether the last line has no end, so that the next entry must begin with a newline.
    torn: bool,
}

impl Appender {
    /// Opens a file, or creates it together with its folders.
    pub(crate) fn open(path: &Path) -> Result<Appender> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(PersistError::io(folder, "make the folder"))?;
        }
        let failed = |doing| PersistError::io(path, doing);
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(path)
            .map_err(failed("open it"))?;
        let mut last = [b'\n'];
        if file.seek(SeekFrom::End(0)).map_err(failed("read it"))? > 0 {
            file.seek(SeekFrom::End(-1))
                .and_then(|_| file.read_exact(&mut last))
                .map_err(failed("read it"))?;
        }
        Ok(Appender { path: path.to_path_buf(), file, torn: last != *b"\n" })
    }

    /// Reads the file back; see [`objects`].
    pub(crate) fn objects(&self) -> Result<(Vec<Value>, Vec<String>)> {
        objects(&self.path)
    }

    /// Appends a JSON object as a line.
    pub(crate) fn line(&mut self, value: &Value) -> Result<()> {
        let start = if self.torn { "\n" } else { "" };
        self.text(&format!("{start}{value}\n"))
    }

    pub(crate) fn text(&mut self, text: &str) -> Result<()> {
        // After a failure, half of the text may be in the file.
        self.torn = true;
        self.file
            .write_all(text.as_bytes())
            .map_err(PersistError::io(&self.path, "append to it"))?;
        self.torn = false;
        Ok(())
    }
}

/// Reads a file as text. Bytes that are not UTF-8, such as a character that was cut off, are
/// replaced at their position only. A missing file is empty.
pub(crate) fn text(path: &Path) -> Result<String> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Err(e) => Err(PersistError::io(path, "read it")(e)),
    }
}

/// Returns the objects of a file, and a note for each line with other text.
pub(crate) fn objects(path: &Path) -> Result<(Vec<Value>, Vec<String>)> {
    let text = text(path)?;
    let (mut reader, mut out, mut notes) = (LineReader::default(), Vec::new(), Vec::new());
    for (i, raw) in text.split_inclusive('\n').enumerate() {
        let line = raw.trim();
        let (objects, error) = reader.objects(line);
        out.extend(objects.into_iter().map(Value::Object));
        if let Some(e) = error {
            let whole = raw.ends_with('\n');
            let what = if whole { "cannot be read" } else { "was cut off while it was written" };
            let (number, bytes) = (i + 1, line.len());
            notes.push(format!("line {number} ({bytes} bytes) {what} and was skipped: {e}"));
        }
    }
    Ok((out, notes))
}

/// Returns a field of an object for writing. Replaces the value with an empty object if it is not
/// an object, which can happen in files of other programs.
pub(crate) fn field<'a>(object: &'a mut Value, key: &str) -> &'a mut Value {
    if !object.is_object() {
        *object = Value::Object(serde_json::Map::new());
    }
    &mut object[key]
}

/// Returns the size of a file in bytes, or 0 if it does not exist.
pub(crate) fn size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |m| m.len())
}

/// A message with the ids of its lines.
pub(crate) type ShownMessage = (StoredMessage, Vec<String>);

/// What the lines of a file show to the next request, and notes for the user.
pub(crate) type FileView = (Vec<ShownMessage>, Vec<String>);

/// Format of a product's file.
pub(crate) struct LineFormat {
    /// Path of the file in the folder of a session.
    pub(crate) path: &'static str,
    /// Returns the first line, if the file has one of its own.
    pub(crate) header: fn() -> Option<Value>,
    /// Returns the id that later lines refer to.
    pub(crate) id: fn(&Value) -> Option<&str>,
    /// Returns the lines of a message. Their ids are those of the message.
    pub(crate) message: fn(&mut Cursor, &StoredMessage) -> Vec<Value>,
    /// Returns the lines of a new view. A format that expresses the view without a line changes the
    /// cursor instead.
    pub(crate) view: fn(&mut Cursor, &[StoredMessage]) -> Vec<Value>,
    /// Returns what the lines show to the next request, and notes for the user.
    pub(crate) shown: fn(&[Value]) -> FileView,
    /// Returns all messages of the lines, compacted or not.
    pub(crate) log: fn(&[Value]) -> Vec<StoredMessage>,
}

/// End of the file, where the next line is written.
#[derive(Default)]
pub(crate) struct Cursor {
    /// Distinguishes the ids of several writers.
    pub(crate) seed: u64,
    pub(crate) lines: u64,
    /// Id of the line that the next one follows.
    pub(crate) last: Option<String>,
    /// Current view.
    pub(crate) shown: Vec<ShownMessage>,
}

impl Cursor {
    /// Returns the messages of the current view.
    pub(crate) fn messages(&self) -> Vec<StoredMessage> {
        self.shown.iter().map(|(said, _)| said.clone()).collect()
    }

    /// Returns the length of the beginning that a view shares with the current one.
    pub(crate) fn shared(&self, view: &[StoredMessage]) -> usize {
        view.iter().zip(&self.shown).take_while(|(v, (s, _))| *v == s).count()
    }
}

pub(crate) struct LineSession {
    format: &'static LineFormat,
    file: Appender,
    cursor: Cursor,
}

impl LineSession {
    pub(crate) fn open(
        format: &'static LineFormat,
        dir: &Path,
        seed: u64,
    ) -> Result<Box<dyn Persistence>> {
        let mut file = Appender::open(&dir.join(format.path))?;
        let (mut lines, _) = file.objects()?;
        if let Some(header) = (format.header)().filter(|_| lines.is_empty()) {
            file.line(&header)?;
            lines.push(header);
        }
        let last = lines.iter().rev().find_map(format.id).map(str::to_string);
        let shown = (format.shown)(&lines).0;
        let cursor = Cursor { seed, lines: lines.len() as u64, last, shown };
        Ok(Box::new(LineSession { format, file, cursor }))
    }

    fn write(&mut self, lines: &[Value]) -> Result<Vec<String>> {
        lines.iter().try_for_each(|line| self.file.line(line))?;
        Ok(lines.iter().filter_map(self.format.id).map(str::to_string).collect())
    }
}

impl Persistence for LineSession {
    fn append(&mut self, entry: &JournalEntry) -> Result<()> {
        match entry {
            JournalEntry::Message(said) => {
                let lines = (self.format.message)(&mut self.cursor, said);
                let ids = self.write(&lines)?;
                self.cursor.shown.push((said.clone(), ids));
            }
            JournalEntry::View(view) => {
                let lines = (self.format.view)(&mut self.cursor, view);
                if !lines.is_empty() {
                    self.write(&lines)?;
                    self.cursor.shown = (self.format.shown)(&self.file.objects()?.0).0;
                }
            }
        }
        Ok(())
    }

    fn load(&self) -> Result<ReopenedSession> {
        let (lines, mut notes) = self.file.objects()?;
        let (shown, more) = (self.format.shown)(&lines);
        notes.extend(more);
        let context = shown.into_iter().map(|(said, _)| said).collect();
        Ok(ReopenedSession { context, bytes_read: self.size(), notes })
    }

    fn log(&self) -> Result<Vec<StoredMessage>> {
        Ok((self.format.log)(&self.file.objects()?.0))
    }

    fn size(&self) -> u64 {
        size(&self.file.path)
    }
}
