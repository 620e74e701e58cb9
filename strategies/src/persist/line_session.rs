//! A session in a file with a JSON object on each line.

use std::path::Path;

use serde_json::Value;

use super::jsonl::Appender;
use super::{JournalEntry, PersistError, Persistence, ReopenedSession, StoredMessage};

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
    /// Number of lines.
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
    ) -> Result<Box<dyn Persistence>, PersistError> {
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

    fn write(&mut self, lines: &[Value]) -> Result<Vec<String>, PersistError> {
        lines.iter().try_for_each(|line| self.file.line(line))?;
        Ok(lines.iter().filter_map(self.format.id).map(str::to_string).collect())
    }
}

impl Persistence for LineSession {
    fn append(&mut self, entry: &JournalEntry) -> Result<(), PersistError> {
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

    fn load(&self) -> Result<ReopenedSession, PersistError> {
        let (lines, mut notes) = self.file.objects()?;
        let (shown, more) = (self.format.shown)(&lines);
        notes.extend(more);
        let context = shown.into_iter().map(|(said, _)| said).collect();
        Ok(ReopenedSession { context, bytes_read: self.size(), notes })
    }

    fn log(&self) -> Result<Vec<StoredMessage>, PersistError> {
        Ok((self.format.log)(&self.file.objects()?.0))
    }

    fn size(&self) -> u64 {
        self.file.size()
    }
}
