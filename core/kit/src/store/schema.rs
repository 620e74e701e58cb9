//! Tables and their migrations. The number of migrations applied is SQLite's `user_version`.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, MAIN_DB, TransactionBehavior};

use super::error::StoreError;

/// One step each; a released step is never changed, only followed by another.
const MIGRATIONS: &[&str] = &[
    "
CREATE TABLE sessions (
    id           TEXT PRIMARY KEY,
    project_id   TEXT NOT NULL,
    parent_id    TEXT REFERENCES sessions(id),
    title        TEXT NOT NULL,
    directory    TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    compacted_at INTEGER,
    deleted_at   INTEGER
) STRICT;
CREATE TABLE messages (
    id           TEXT PRIMARY KEY,
    session_id   TEXT NOT NULL REFERENCES sessions(id),
    role         TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    completed_at INTEGER,
    deleted_at   INTEGER
) STRICT;
CREATE INDEX messages_of_session ON messages (session_id, id);
CREATE TABLE parts (
    id           TEXT PRIMARY KEY,
    message_id   TEXT NOT NULL REFERENCES messages(id),
    session_id   TEXT NOT NULL REFERENCES sessions(id),
    kind         TEXT NOT NULL,
    data         TEXT NOT NULL,
    compacted_at INTEGER,
    created_at   INTEGER NOT NULL
) STRICT;
CREATE INDEX parts_of_message ON parts (message_id, id);
",
    "
-- The last message of the parent that a fork shows; null in a child that is no fork, such as the \
session of a subagent.
ALTER TABLE sessions ADD COLUMN forked_at TEXT;
CREATE INDEX sessions_of_parent ON sessions (parent_id) WHERE parent_id IS NOT NULL;
-- 1 = said earlier in the log already, and repeated so that loading need not go back to it.
ALTER TABLE messages ADD COLUMN copied INTEGER NOT NULL DEFAULT 0;
-- What stands in the place of a pruned output; null = the usual words.
ALTER TABLE parts ADD COLUMN placeholder TEXT;
CREATE TABLE checkpoints (
    id         TEXT PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions(id),
    message_id TEXT NOT NULL REFERENCES messages(id),
    created_at INTEGER NOT NULL,
    manifest   TEXT NOT NULL
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
CREATE INDEX usage_of_message ON usage (message_id) WHERE message_id IS NOT NULL;
",
    "
-- The first message of the parent that a fork repeats: what lies before it is read in the parent. \
Null = the fork has it all.
ALTER TABLE sessions ADD COLUMN log_until TEXT;
-- What lies before it, but had been taken back, or was a compaction under way, when the fork was \
made.
CREATE TABLE fork_lacks (
    session_id TEXT NOT NULL REFERENCES sessions(id),
    message_id TEXT NOT NULL REFERENCES messages(id),
    PRIMARY KEY (session_id, message_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX fork_lacks_of_message ON fork_lacks (message_id);
-- So that a fork finds those without going through the history.
CREATE INDEX messages_taken_back ON messages (session_id, id) WHERE deleted_at IS NOT NULL OR \
completed_at IS NULL;
-- Forks made before: their first messages, up to the first that was said in them, are the \
repeated ones. They stand for the parent's
-- from now on. What a compaction had repeated in the parent cannot be told from them, and comes \
twice in the log of such a fork.
UPDATE messages SET copied = 0 WHERE id IN (
    SELECT m.id FROM messages m JOIN sessions s ON s.id = m.session_id WHERE s.forked_at IS NOT \
    NULL AND m.copied = 1
    AND NOT EXISTS (SELECT 1 FROM messages o WHERE o.session_id = m.session_id AND o.id < m.id AND \
    o.copied = 0)
);
UPDATE sessions SET log_until = (
    SELECT m.id FROM messages m WHERE m.session_id = sessions.parent_id AND m.id <= \
    sessions.forked_at
    AND m.completed_at <= sessions.created_at AND (m.deleted_at IS NULL OR m.deleted_at >= \
    sessions.created_at)
    AND EXISTS (SELECT 1 FROM parts p WHERE p.message_id = m.id AND p.kind = 'marker') ORDER BY \
    m.id DESC LIMIT 1
) WHERE forked_at IS NOT NULL;
INSERT INTO fork_lacks SELECT s.id, m.id FROM sessions s JOIN messages m ON m.session_id = \
s.parent_id AND m.id < s.log_until
    WHERE m.copied = 0 AND (m.deleted_at < s.created_at OR m.completed_at IS NULL OR \
    m.completed_at > s.created_at);
",
    "
-- What a person calls it; null = made for a prompt, without a name.
ALTER TABLE checkpoints ADD COLUMN name TEXT;
-- A JSON array of words, sorted.
ALTER TABLE checkpoints ADD COLUMN tags TEXT NOT NULL DEFAULT '[]';
-- 0 = stands before its message, 1 = behind it.
ALTER TABLE checkpoints ADD COLUMN behind INTEGER NOT NULL DEFAULT 0;
",
];

/// Marks the file as ours ("ctxb").
const APPLICATION_ID: i64 = 0x6374_7862;

/// How long a writer waits for another one.
pub(super) const BUSY: Duration = Duration::from_secs(5);

/// First bytes of every SQLite file.
const HEADER: &[u8] = b"SQLite format 3\0";

/// Refuses a file that is no database before SQLite opens it, so that it stays untouched and
/// nothing appears beside it.
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

/// What a file says of itself.
pub(super) struct Found {
    ours: bool,
    empty: bool,
    /// Migrations that were applied to it.
    pub(super) format: i64,
}

impl Found {
    /// Called inside a transaction: between two looks another program may bring a new file into its
    /// format.
    pub(super) fn look(db: &Connection) -> rusqlite::Result<Found> {
        let number = |q: &str| db.query_row(q, [], |r| r.get::<_, i64>(0));
        Ok(Found {
            ours: number("PRAGMA application_id")? == APPLICATION_ID,
            empty: number("SELECT count(*) FROM sqlite_schema")? == 0,
            format: number("PRAGMA user_version")?,
        })
    }

    /// Whether it is in the format of this version.
    pub(super) fn is_present(&self) -> bool {
        self.format == MIGRATIONS.len() as i64
    }

    /// The same as [`Found::accept`] where nothing may be made of an empty file.
    pub(super) fn accept_store(self, path: &Path) -> Result<Found, StoreError> {
        match self.ours {
            true => self.accept(path),
            false => Err(StoreError::Foreign { path: path.to_path_buf() }),
        }
    }

    /// Refuses the file of another program, and that of a later version of this one.
    fn accept(self, path: &Path) -> Result<Found, StoreError> {
        let known = MIGRATIONS.len() as i64;
        match self {
            Found { ours: false, empty: false, .. } => {
                Err(StoreError::Foreign { path: path.to_path_buf() })
            }
            Found { format, .. } if format > known => {
                Err(StoreError::Newer { path: path.to_path_buf(), found: format, known })
            }
            found => Ok(found),
        }
    }
}

/// Makes the tables of an earlier format in an empty database.
pub(super) fn make(db: &Connection, format: i64) -> rusqlite::Result<()> {
    for step in MIGRATIONS.iter().take(usize::try_from(format).unwrap_or_default()) {
        db.execute_batch(step)?;
    }
    db.execute_batch(&format!(
        "PRAGMA user_version = {format}; PRAGMA application_id = {APPLICATION_ID}"
    ))
}

/// Brings a database to the newest format.
pub(super) fn prepare(db: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let sql = |e| StoreError::sql(path, "prepare it", e);
    let known = MIGRATIONS.len() as i64;
    db.busy_timeout(BUSY).map_err(sql)?;
    let tx = db.transaction().map_err(sql)?;
    let found = Found::look(&tx).map_err(sql)?.accept(path)?;
    drop(tx);
    if db.is_readonly(MAIN_DB).map_err(sql)? {
        // Nothing can be brought up to date, so the format must be the present one.
        let old =
            StoreError::OldAndReadOnly { path: path.to_path_buf(), found: found.format, known };
        return if found.format == known { Ok(()) } else { Err(old) };
    }
    write_ahead(db).map_err(sql)?;
    // Each commit reaches the disk before it returns: what was acknowledged survives a power cut
    // too.
    db.execute_batch("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON").map_err(sql)?;
    if found.format == known && found.ours {
        // Up to date: opening takes no lock from those who write.
        return Ok(());
    }
    let tx = db.transaction_with_behavior(TransactionBehavior::Immediate).map_err(sql)?;
    // Another program may have migrated in between.
    let found = Found::look(&tx).map_err(sql)?.accept(path)?;
    for step in &MIGRATIONS[found.format.clamp(0, known) as usize..] {
        tx.execute_batch(step).map_err(sql)?;
    }
    tx.execute_batch(&format!(
        "PRAGMA user_version = {known}; PRAGMA application_id = {APPLICATION_ID}"
    ))
    .map_err(sql)?;
    tx.commit().map_err(sql)
}

/// Turns write-ahead logging on. Of two that do so to a new file at once SQLite refuses one without
/// a wait, lest both wait for each other; that one queues as a writer, which does wait, and tries
/// again.
fn write_ahead(db: &Connection) -> rusqlite::Result<()> {
    const TRIES: usize = 100;
    let turn_on = || db.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()));
    for _ in 1..TRIES {
        match turn_on() {
            Err(e) if e.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) => {
                db.execute_batch("BEGIN IMMEDIATE; COMMIT")?
            }
            done => return done,
        }
    }
    turn_on()
}

/// A file as the first format left it, with one message.
#[cfg(test)]
pub(super) fn first_format(path: &Path) {
    let db = Connection::open(path).unwrap();
    db.execute_batch(MIGRATIONS[0]).unwrap();
    db.execute_batch(&format!(
        "PRAGMA user_version = 1; PRAGMA application_id = {APPLICATION_ID};
         INSERT INTO sessions VALUES ('01ARYZ6S410000000000000000', 'p', NULL, 't', '/', 1, 1, \
         NULL, NULL);
         INSERT INTO messages VALUES ('01ARYZ6S410000000000000001', '01ARYZ6S410000000000000000', \
         'user', 1, 1, NULL);
         INSERT INTO parts VALUES ('01ARYZ6S410000000000000002', '01ARYZ6S410000000000000001', \
         '01ARYZ6S410000000000000000', 'text',
                                   '{{\"text\":\"from the first format\"}}', NULL, 1);"
    ))
    .unwrap();
}

/// A file as the second format left it: a session that was compacted, and a fork of it that repeats
/// the boundary and what follows.
#[cfg(test)]
pub(super) fn second_format(path: &Path) {
    let db = Connection::open(path).unwrap();
    db.execute_batch(MIGRATIONS[0]).unwrap();
    db.execute_batch(MIGRATIONS[1]).unwrap();
    db.execute_batch(&format!("PRAGMA user_version = 2; PRAGMA application_id = {APPLICATION_ID}"))
        .unwrap();
    let session = |n: u32, parent: &str, forked: &str, at: u32| {
        let (id, own) =
            (format!("'01ARYZ6S41000000000000{n:04}'"), format!("{at}, {at}, NULL, NULL"));
        db.execute_batch(&format!(
            "INSERT INTO sessions VALUES ({id}, 'p', {parent}, 't', '/', {own}, {forked})"
        ))
        .unwrap();
        id
    };
    let say = |n: u32, session: &str, kind: &str, text: &str, deleted: &str, copied: u32| {
        let id = format!("'01ARYZ6S41000000000000{n:04}'");
        let part = format!(
            "'01ARYZ6S41000000000001{n:04}', {id}, {session}, '{kind}', '{{\"text\":\"{text}\"}}', \
             NULL, {n}, NULL"
        );
        db.execute_batch(&format!(
            "INSERT INTO messages VALUES ({id}, {session}, 'user', {n}, {n}, {deleted}, {copied}); \
             INSERT INTO parts VALUES ({part})"
        ))
        .unwrap();
        id
    };
    let parent = session(1, "NULL", "NULL", 1);
    say(2, &parent, "text", "a", "NULL", 0);
    say(3, &parent, "text", "taken back before", "4", 0);
    say(5, &parent, "text", "taken back after", "90", 0);
    say(6, &parent, "marker", "S", "NULL", 0);
    let c = say(7, &parent, "text", "c", "NULL", 0);
    let fork = session(10, &parent, &c, 10);
    say(11, &fork, "marker", "S", "NULL", 1);
    say(12, &fork, "text", "c", "NULL", 1);
    say(13, &fork, "text", "in the fork", "NULL", 0);
    say(14, &fork, "marker", "S2", "NULL", 0);
    say(15, &fork, "text", "in the fork", "NULL", 1);
}
