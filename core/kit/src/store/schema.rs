//! Tables of the store. The format number is SQLite's `user_version`.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};

use super::error::StoreError;

/// Format of [`TABLES`].
const FORMAT: i64 = 8;

/// A fork has copies of its parent's rows with the same ids, so a session is part of every key.
const TABLES: &str = include_str!("schema.sql");

/// `application_id` of our files ("ctxb").
const APPLICATION_ID: i64 = 0x6374_7862;

/// Maximum time that a writer waits for another writer.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Configures a connection and creates the tables in an empty database. Refuses a database of another
/// program or format without changing it.
pub(super) fn prepare(db: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let sql = |e| StoreError::sql(path, "open it", &e);
    db.busy_timeout(BUSY_TIMEOUT).map_err(sql)?;
    let tx = db.transaction_with_behavior(TransactionBehavior::Immediate).map_err(sql)?;
    let number = |query: &str| tx.query_row(query, [], |r| r.get::<_, i64>(0)).map_err(sql);
    match number("PRAGMA application_id")? {
        APPLICATION_ID => match number("PRAGMA user_version")? {
            FORMAT => {}
            found => {
                let problem = format!(
                    "it has format {found}, this program reads format {FORMAT}; use the program \
                     that wrote it or another path"
                );
                return Err(StoreError::new(path, problem));
            }
        },
        _ if number("SELECT count(*) FROM sqlite_schema")? > 0 => {
            let problem = "a database of another program; it was not changed, give another path";
            return Err(StoreError::new(path, problem));
        }
        _ => {
            let pragmas = format!(
                "PRAGMA user_version = {FORMAT}; PRAGMA application_id = {APPLICATION_ID};"
            );
            tx.execute_batch(&format!("{TABLES} {pragmas}")).map_err(sql)?;
        }
    }
    tx.commit().map_err(sql)?;
    // Each commit reaches the disk before it returns, so it survives a power cut.
    let pragmas = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON";
    db.execute_batch(pragmas).map_err(sql)
}
