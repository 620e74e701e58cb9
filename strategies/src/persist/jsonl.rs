//! Files that are only appended to: each entry with one write, so that a crash leaves at most one
//! torn entry, at the end.
//!
//! What a write has handed to the system survives the end of the program, killed or not. None of
//! the products is known to wait for the disk (no source in docs/sources says so), so neither is
//! waited for here: a power cut may take the newest entries.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::error::PersistError;

/// An open file.
pub(crate) struct Appender {
    path: PathBuf,
    file: File,
    /// The last line has no end: the next entry begins with one.
    torn: bool,
}

impl Appender {
    /// Opens a file with its folders, or makes it.
    pub(crate) fn open(path: &Path) -> Result<Appender, PersistError> {
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

    /// Appends a JSON object as a line.
    pub(crate) fn line(&mut self, value: &Value) -> Result<(), PersistError> {
        let start = if self.torn { "\n" } else { "" };
        self.text(&format!("{start}{value}\n"))
    }

    /// Appends text as it is.
    pub(crate) fn text(&mut self, text: &str) -> Result<(), PersistError> {
        // Half of it may be there when this fails.
        self.torn = true;
        self.file
            .write_all(text.as_bytes())
            .map_err(PersistError::io(&self.path, "append to it"))?;
        self.torn = false;
        Ok(())
    }
}

/// A file's text; bytes that are no UTF-8, as a cut inside a character leaves them, spoil only
/// their place. A missing file is empty.
pub(crate) fn text(path: &Path) -> Result<String, PersistError> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Err(e) => Err(PersistError::io(path, "read it")(e)),
    }
}

/// The objects of a file, and a note for each line that is none.
pub(crate) fn objects(path: &Path) -> Result<(Vec<Value>, Vec<String>), PersistError> {
    let text = text(path)?;
    let (mut out, mut notes) = (Vec::new(), Vec::new());
    for (i, raw) in text.split_inclusive('\n').enumerate() {
        let line = raw.trim();
        if line.is_empty() {
            continue;
        }
        match serde_json::from_str::<Value>(line) {
            Ok(v) if v.is_object() => out.push(v),
            other => {
                let what = if raw.ends_with('\n') {
                    "cannot be read"
                } else {
                    "was cut off while it was written"
                };
                let why = other.err().map_or("not an object".to_string(), |e| e.to_string());
                notes.push(format!(
                    "line {} ({} bytes) {what} and was passed over: {why}",
                    i + 1,
                    line.len()
                ));
            }
        }
    }
    Ok((out, notes))
}

/// A field of an object to be written to; what stands in the place of the object and is none, as a
/// file from elsewhere may have it, gives way to an empty one.
pub(crate) fn field<'a>(object: &'a mut Value, key: &str) -> &'a mut Value {
    if !object.is_object() {
        *object = Value::Object(serde_json::Map::new());
    }
    &mut object[key]
}

/// Bytes of a file; 0 if there is none.
pub(crate) fn size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |m| m.len())
}
