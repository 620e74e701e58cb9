//! The store of ctxbench: messages and parts in SQLite, with boundaries and marks for pruned
//! results (see `ctxbench_kit::store`).
//!
//! The messages that a compaction keeps are repeated after its boundary, in the same transaction.
//! Each commit is synced to disk.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};

use ctxbench_core::{Part, Role};
use ctxbench_kit::store::{Id, IdGenerator, LoadedMessage, NewSession, Store};

use super::{
    BEGIN_MS, JournalEntry, PersistError, PersistFormat, Persistence, ReopenedSession, Result,
    StoredMessage, jsonl, pruned,
};

pub(super) const FORMAT: PersistFormat = PersistFormat {
    name: "ctxbench-store",
    open: |dir, seed| Ok(Box::new(StoreFormat::open(dir, seed)?)),
};

struct StoreFormat {
    path: PathBuf,
    store: Store,
    session: Id,
    /// Current view, with the ids of the parts of each message.
    shown: Vec<(StoredMessage, Vec<Id>)>,
}

impl StoreFormat {
    fn open(dir: &Path, seed: u64) -> Result<StoreFormat> {
        std::fs::create_dir_all(dir).map_err(PersistError::io(dir, "make the folder"))?;
        let path = dir.join("sessions.db");
        let ticks = AtomicI64::new(BEGIN_MS as i64);
        let mut store = Store::open_with(
            &path,
            IdGenerator::new(move || ticks.fetch_add(1, Ordering::Relaxed), seed),
        )?;
        let session = match store.sessions()?.first() {
            Some(session) => session.id,
            None => store.create_session(&NewSession::default())?,
        };
        let mut out = StoreFormat { path, store, session, shown: Vec::new() };
        out.refresh_shown()?;
        Ok(out)
    }

    fn refresh_shown(&mut self) -> Result<()> {
        self.shown = self.store.load_context(self.session)?.iter().filter_map(to_message).collect();
        Ok(())
    }
}

impl Persistence for StoreFormat {
    fn append(&mut self, entry: &JournalEntry) -> Result<()> {
        match entry {
            JournalEntry::Message(said) => {
                let message = (said.role, said.parts.clone());
                let ids = self.store.append_messages(self.session, &[message])?;
                self.shown.extend(ids.into_iter().map(|(_, parts)| (said.clone(), parts)));
            }
            JournalEntry::View(view) => {
                let before: Vec<_> = self.shown.iter().map(|(s, _)| s.clone()).collect();
                if let Some(marks) = pruned(&before, view) {
                    for (i, k, output) in marks {
                        self.store.prune_part(self.session, self.shown[i].1[k], output)?;
                    }
                } else {
                    // A summary at the start of the view is stored in the boundary.
                    let summary = view.first().and_then(|s| match (s.role, &s.parts[..]) {
                        (Role::User, [Part::Summary(text)]) => Some(text.clone()),
                        _ => None,
                    });
                    let rest = &view[usize::from(summary.is_some())..];
                    let rest: Vec<(Role, Vec<Part>)> =
                        rest.iter().map(|s| (s.role, s.parts.clone())).collect();
                    self.store.compact(self.session, summary.as_deref(), &rest)?;
                }
                self.refresh_shown()?;
            }
        }
        Ok(())
    }

    fn load(&self) -> Result<ReopenedSession> {
        let before = self.store.bytes_read();
        let loaded = self.store.load_context(self.session)?;
        let context = loaded.iter().filter_map(to_message).map(|(s, _)| s).collect();
        let bytes_read = self.store.bytes_read() - before;
        Ok(ReopenedSession { context, bytes_read, notes: Vec::new() })
    }

    fn log(&self) -> Result<Vec<StoredMessage>> {
        Ok(self.store.log(self.session)?.iter().filter_map(to_message).map(|(s, _)| s).collect())
    }

    fn size(&self) -> u64 {
        jsonl::size(&self.path) + jsonl::size(&self.path.with_extension("db-wal"))
    }
}

/// Returns a message with the ids of its parts. A boundary without a summary is not a message.
fn to_message(m: &LoadedMessage) -> Option<(StoredMessage, Vec<Id>)> {
    let (parts, ids): (Vec<Part>, Vec<Id>) =
        m.parts.iter().map(|p| (p.content.clone(), p.id)).unzip();
    (!parts.is_empty()).then_some((StoredMessage { role: m.role, parts }, ids))
}
