//! OpenCode's older tree of files (docs/sources/peers-and-metrics.md §4):
//! `storage/session/<project>/<session>.json`, `storage/message/<session>/<message>.json`,
//! `storage/part/<message>/<part>.json`.
//!
//! Files are written in place, so a crash or a full disk can leave an unreadable file, which is
//! skipped with a note. A result that does not fit loses the call in the same file. Names sort by
//! time, so loading starts with the newest as in the tables; the folders have to be listed
//! completely.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::persist::{Drawer, OpenCodeStore, SESSION, StoredRow};
use crate::persist::{PersistError, PersistFormat, jsonl};

pub(crate) const FORMAT: PersistFormat = PersistFormat {
    name: "opencode-files",
    about: "a JSON file per message and per part (older versions)",
    open: |dir, seed| Ok(Box::new(OpenCodeStore::new(FileTree::open(dir)?, seed)?)),
};

/// Number of messages read at a time, as in the tables.
const PAGE: usize = 50;

struct FileTree {
    root: PathBuf,
}

impl FileTree {
    fn open(dir: &Path) -> Result<FileTree, PersistError> {
        let root = dir.join("storage");
        let session = root.join("session/global").join(format!("{SESSION}.json"));
        for folder in
            [root.join("session/global"), root.join("message").join(SESSION), root.join("part")]
        {
            std::fs::create_dir_all(&folder)
                .map_err(PersistError::io(&folder, "make the folder"))?;
        }
        if !session.exists() {
            write(
                &session,
                &json!({"id": SESSION, "projectID": "global", "directory": "/", "title": "session", "version": "1.0"}),
            )?;
        }
        Ok(FileTree { root })
    }

    fn message(&self, id: &str) -> PathBuf {
        self.root.join("message").join(SESSION).join(format!("{id}.json"))
    }

    fn walk(&self, found: &mut impl FnMut(&Path)) {
        let mut open = vec![self.root.clone()];
        while let Some(dir) = open.pop() {
            for e in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
                if e.path().is_dir() { open.push(e.path()) } else { found(&e.path()) }
            }
        }
    }
}

/// Writes in place: opening truncates the file, and the error says so.
fn write(path: &Path, value: &Value) -> Result<(), PersistError> {
    let mut file = File::create(path).map_err(PersistError::io(path, "open it"))?;
    file.write_all(value.to_string().as_bytes()).map_err(PersistError::cut(path, "write it"))
}

/// Returns the names of the `.json` files of a folder without the extension, sorted. Empty if the
/// folder is missing.
fn names(dir: &Path) -> Vec<String> {
    let name =
        |e: std::fs::DirEntry| e.file_name().to_str()?.strip_suffix(".json").map(str::to_string);
    let mut out: Vec<String> =
        std::fs::read_dir(dir).into_iter().flatten().flatten().filter_map(name).collect();
    out.sort();
    out
}

impl Drawer for FileTree {
    fn put(
        &mut self,
        id: &str,
        message: Option<&str>,
        _: u64,
        object: &Value,
    ) -> Result<(), PersistError> {
        let Some(message) = message else { return write(&self.message(id), object) };
        let dir = self.root.join("part").join(message);
        std::fs::create_dir_all(&dir).map_err(PersistError::io(&dir, "make the folder"))?;
        write(&dir.join(format!("{id}.json")), object)
    }

    fn page(&self, before: Option<&str>) -> Result<(Vec<StoredRow>, u64), PersistError> {
        let mut bytes = 0;
        let mut read = |path: &Path| -> Result<Option<Value>, PersistError> {
            let text = jsonl::text(path)?;
            bytes += text.len() as u64;
            Ok(serde_json::from_str(&text).ok())
        };
        let mut out = Vec::new();
        let ids = names(&self.root.join("message").join(SESSION));
        for id in
            ids.into_iter().rev().filter(|id| before.is_none_or(|b| id.as_str() < b)).take(PAGE)
        {
            let info = read(&self.message(&id))?.unwrap_or_default();
            let dir = self.root.join("part").join(&id);
            let mut parts = Vec::new();
            for p in names(&dir) {
                if let Some(v) = read(&dir.join(format!("{p}.json")))? {
                    parts.push((p, v));
                }
            }
            out.push(StoredRow { id, info, parts });
        }
        Ok((out, bytes))
    }

    fn notes(&self) -> Vec<String> {
        let mut out = Vec::new();
        self.walk(&mut |path| {
            let text = jsonl::text(path).unwrap_or_default();
            if let Err(e) = serde_json::from_str::<Value>(&text) {
                let name = path.strip_prefix(&self.root).unwrap_or(path).display().to_string();
                out.push(format!(
                    "{name} ({} bytes) was cut off while it was written and was skipped: {e}",
                    text.len()
                ));
            }
        });
        out.sort();
        out
    }

    fn size(&self) -> u64 {
        let mut sum = 0;
        self.walk(&mut |path| sum += jsonl::size(path));
        sum
    }
}
