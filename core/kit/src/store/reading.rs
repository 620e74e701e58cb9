//! A store opened for reading: nothing is written to the file, and nothing appears beside it.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use super::error::StoreError;
use super::schema::{self, BUSY, Found};

/// A connection that reads the store, in the present format.
pub(super) fn open(path: &Path) -> Result<Connection, StoreError> {
    let sql = |e| StoreError::sql(path, "open it", e);
    let address = address(path);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    let mut db = Connection::open_with_flags(&address, flags).map_err(sql)?;
    db.busy_timeout(BUSY).map_err(sql)?;
    let look = db.transaction().map_err(sql)?;
    let found = Found::look(&look).map_err(sql)?.accept_store(path)?;
    drop(look);
    if found.is_present() {
        return Ok(db);
    }
    let mut copy = copy(&address, found.format).map_err(sql)?;
    schema::prepare(&mut copy, path)?;
    // What were written to a copy would be gone with it.
    copy.execute_batch("PRAGMA query_only = ON").map_err(sql)?;
    Ok(copy)
}

/// Everything in a store of an earlier format, in memory.
fn copy(address: &str, format: i64) -> rusqlite::Result<Connection> {
    let db = Connection::open_in_memory()?;
    db.execute_batch("PRAGMA foreign_keys = OFF")?;
    schema::make(&db, format)?;
    db.execute("ATTACH ?1 AS old", [address])?;
    let tables: Vec<String> = db
        .prepare(
            "SELECT name FROM old.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
        )?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    for table in tables {
        let name = table.replace('"', "\"\"");
        db.execute_batch(&format!("INSERT INTO main.\"{name}\" SELECT * FROM old.\"{name}\""))?;
    }
    db.execute_batch("DETACH old")?;
    Ok(db)
}

/// The file as a URI (<https://www.sqlite.org/uri.html>). A store that nobody has open has no log
/// beside it: it is read as a file that does not change, which needs neither locks nor the right to
/// write to its folder. SQLite would make files beside it otherwise, and leave them there.
fn address(path: &Path) -> String {
    let beside = |ending: &str| {
        let mut name = path.as_os_str().to_os_string();
        name.push(ending);
        PathBuf::from(name)
    };
    let in_use = ["-wal", "-journal"].iter().any(|ending| beside(ending).exists());
    let how = if in_use { "mode=ro" } else { "immutable=1" };
    let mut out = "file:".to_string();
    let text = path.as_os_str().as_encoded_bytes();
    if cfg!(windows) && text.get(1) == Some(&b':') {
        out.push('/');
    }
    for &byte in text {
        match byte {
            b'\\' if cfg!(windows) => out.push('/'),
            b'/' | b':' | b'.' | b'-' | b'_' => out.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => out.push(char::from(byte)),
            _ => out += &format!("%{byte:02X}"),
        }
    }
    format!("{out}?{how}")
}
