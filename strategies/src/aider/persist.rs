//! Aider's chat history: a Markdown file that is only appended to (docs/sources/aider.md §1.5).
//!
//! Each project has one file, `.aider.chat.history.md`. A compaction leaves no trace in it. With
//! `--restore-chat-history`, the whole conversation is read back, with the losses that the format
//! causes, and summarised again if it is too large. Tool output is quoted and is not read back. A
//! message that a crash cut off cannot be distinguished from a complete one.

use std::path::{Path, PathBuf};

use ctxbench_core::block::Role;
use ctxbench_core::content::Part;

use crate::aider::markdown::{MarkdownSpeaker, append, append_start, split_chat_history_markdown};
use crate::persist::jsonl::{self, Appender};
use crate::persist::{
    JournalEntry, PersistError, PersistFormat, Persistence, ReopenedSession, StoredMessage,
};

pub(crate) const FORMAT: PersistFormat = PersistFormat {
    name: "aider-markdown",
    about: "one Markdown file per project, read back whole; no marks of compactions",
    open: |dir, _| Ok(Box::new(Markdown::open(dir)?)),
};

struct Markdown {
    path: PathBuf,
    file: Appender,
}

impl Markdown {
    fn open(dir: &Path) -> Result<Markdown, PersistError> {
        let path = dir.join(".aider.chat.history.md");
        let mut file = Appender::open(&path)?;
        let mut start = String::new();
        append_start(&mut start, "2023-11-14 22:13:20");
        file.text(&start)?;
        Ok(Markdown { path, file })
    }

    fn messages(&self) -> Result<Vec<StoredMessage>, PersistError> {
        let said = |(who, text): (MarkdownSpeaker, String)| {
            StoredMessage::text(
                if who == MarkdownSpeaker::Assistant { Role::Assistant } else { Role::User },
                &text,
            )
        };
        Ok(split_chat_history_markdown(&jsonl::text(&self.path)?, false)
            .into_iter()
            .map(said)
            .collect())
    }
}

impl Persistence for Markdown {
    fn append(&mut self, entry: &JournalEntry) -> Result<(), PersistError> {
        let JournalEntry::Message(said) = entry else { return Ok(()) };
        let mut text = String::new();
        for p in &said.parts {
            match p {
                Part::Text(t) | Part::Summary(t) if said.role == Role::Assistant => {
                    append(&mut text, MarkdownSpeaker::Assistant, t)
                }
                Part::Text(t) | Part::Summary(t) => append(&mut text, MarkdownSpeaker::User, t),
                Part::Result { output, .. } => append(&mut text, MarkdownSpeaker::Tool, output),
                _ => {}
            }
        }
        self.file.text(&text)
    }

    fn load(&self) -> Result<ReopenedSession, PersistError> {
        Ok(ReopenedSession {
            context: self.messages()?,
            bytes_read: self.size(),
            notes: Vec::new(),
        })
    }

    fn log(&self) -> Result<Vec<StoredMessage>, PersistError> {
        self.messages()
    }

    fn size(&self) -> u64 {
        jsonl::size(&self.path)
    }
}
