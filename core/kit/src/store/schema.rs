//! Tables of the store. The format number is SQLite's `user_version`.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};

use super::error::StoreError;

/// Format of the tables below.
const FORMAT: i64 = 6;

const TABLES: &str = "
CREATE TABLE sessions (
    id           TEXT PRIMARY KEY,
    parent_id    TEXT REFERENCES sessions(id),
    title        TEXT NOT NULL,
    directory    TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    compacted_at INTEGER,
    -- Last message of the parent that a fork shows; NULL in a child that is not a fork.
    forked_at    TEXT,
    -- First message of the parent that a fork copies: earlier ones are read from the parent. NULL =
    -- the fork has them all.
    log_until    TEXT
) STRICT;
CREATE INDEX sessions_of_parent ON sessions (parent_id) WHERE parent_id IS NOT NULL;
CREATE TABLE messages (
    id           TEXT PRIMARY KEY,
    session_id   TEXT NOT NULL REFERENCES sessions(id),
    role         TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    deleted_at   INTEGER,
    -- 1 = repeats an earlier message of the log, so that loading need not go back to it.
    copied       INTEGER NOT NULL
) STRICT;
CREATE INDEX messages_of_session ON messages (session_id, id);
CREATE INDEX messages_rewound ON messages (session_id, id) WHERE deleted_at IS NOT NULL;
CREATE TABLE parts (
    id           TEXT PRIMARY KEY,
    message_id   TEXT NOT NULL REFERENCES messages(id),
    session_id   TEXT NOT NULL REFERENCES sessions(id),
    kind         TEXT NOT NULL,
    data         TEXT NOT NULL,
    compacted_at INTEGER,
    -- Text shown instead of a pruned output.
    placeholder  TEXT,
    created_at   INTEGER NOT NULL
) STRICT;
CREATE INDEX parts_of_message ON parts (message_id, id);
CREATE TABLE checkpoints (
    id         TEXT PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions(id),
    message_id TEXT NOT NULL REFERENCES messages(id),
    -- Number of the files in `checkpoint::EditCheckpoints`; NULL = none.
    files      INTEGER,
    -- NULL = made for a prompt.
    name       TEXT,
    -- 0 = before its message, 1 = after it.
    is_after   INTEGER NOT NULL
) STRICT;
CREATE INDEX checkpoints_of_session ON checkpoints (session_id, id);
CREATE INDEX checkpoints_of_message ON checkpoints (message_id);
CREATE TABLE usage (
    id             TEXT PRIMARY KEY,
    session_id     TEXT NOT NULL REFERENCES sessions(id),
    message_id     TEXT REFERENCES messages(id),
    model          TEXT NOT NULL,
    created_at     INTEGER NOT NULL,
    input          INTEGER NOT NULL,
    output         INTEGER NOT NULL,
    reasoning      INTEGER NOT NULL,
    cache_read     INTEGER NOT NULL,
    cache_write    INTEGER NOT NULL,
    cache_write_1h INTEGER NOT NULL
) STRICT;
CREATE INDEX usage_of_session ON usage (session_id, id);
-- Earlier messages of the parent that were already rewound when a fork was made.
CREATE TABLE fork_exclusions (
    session_id TEXT NOT NULL REFERENCES sessions(id),
    message_id TEXT NOT NULL REFERENCES messages(id),
    PRIMARY KEY (session_id, message_id)
) STRICT, WITHOUT ROWID;
";

/// `application_id` of our files ("ctxb").
const APPLICATION_ID: i64 = 0x6374_7862;

/// Maximum time that a writer waits for another writer.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// First bytes of every SQLite file.
const HEADER: &[u8] = b"SQLite format 3\0";

/// Refuses a file that is not a database before SQLite opens it, so that it stays unchanged and
/// SQLite creates no file next to it.
pub(super) fn check_header(path: &Path) -> Result<(), StoreError> {
    let io = |source| StoreError::Io { path: path.to_path_buf(), source };
    let mut head = Vec::new();
    match File::open(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(io(e)),
        Ok(f) => f.take(HEADER.len() as u64).read_to_end(&mut head).map_err(io)?,
    };
    if head.is_empty() || head == HEADER {
        Ok(())
    } else {
        Err(StoreError::NotADatabase { path: path.to_path_buf() })
    }
}

/// Returns whether the database has our tables. Fails for a database of another program or format.
fn has_tables(db: &Connection, path: &Path) -> Result<bool, StoreError> {
    let number = |q: &str| {
        db.query_row(q, [], |r| r.get::<_, i64>(0))
            .map_err(|e| StoreError::sql(path, "read its header", e))
    };
    let path = path.to_path_buf();
    match number("PRAGMA application_id")? {
        APPLICATION_ID => match number("PRAGMA user_version")? {
            FORMAT => Ok(true),
            found => Err(StoreError::OtherFormat { path, found, known: FORMAT }),
        },
        _ if number("SELECT count(*) FROM sqlite_schema")? == 0 => Ok(false),
        _ => Err(StoreError::Foreign { path }),
    }
}

/// Configures a connection and creates the tables in an empty database.
pub(super) fn prepare(db: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let sql = |e| StoreError::sql(path, "prepare it", e);
    db.busy_timeout(BUSY_TIMEOUT).map_err(sql)?;
    // One snapshot: another program may be creating the tables.
    let snapshot = db.transaction().map_err(sql)?;
    let is_ready = has_tables(&snapshot, path)?;
    drop(snapshot);
    write_ahead(db).map_err(sql)?;
    // Each commit reaches the disk before it returns, so it survives a power cut.
    db.execute_batch("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON").map_err(sql)?;
    if is_ready {
        return Ok(());
    }
    let tx = db.transaction_with_behavior(TransactionBehavior::Immediate).map_err(sql)?;
    // Another program may have created the tables in between.
    if !has_tables(&tx, path)? {
        tx.execute_batch(TABLES).map_err(sql)?;
        tx.execute_batch(&format!(
            "PRAGMA user_version = {FORMAT}; PRAGMA application_id = {APPLICATION_ID}"
        ))
        .map_err(sql)?;
    }
    tx.commit().map_err(sql)
}

/// Turns on write-ahead logging. If two connections do this to a new file at the same time, SQLite
/// refuses one of them without waiting. That connection then waits as a writer and tries again.
fn write_ahead(db: &Connection) -> rusqlite::Result<()> {
    const MAX_ATTEMPTS: usize = 100;
    let turn_on = || db.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()));
    for _ in 1..MAX_ATTEMPTS {
        match turn_on() {
            Err(e) if e.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) => {
                db.execute_batch("BEGIN IMMEDIATE; COMMIT")?
            }
            done => return done,
        }
    }
    turn_on()
}
