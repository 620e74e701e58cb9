//! Token usage of sessions.

use std::collections::BTreeMap;

use rusqlite::params;

use super::Store;
use super::error::StoreError;
use super::ids::Ulid;
use ctxbench_core::request::Usage;

impl Store {
    /// Stores the tokens of a response as the provider reported them, with its message if it became
    /// one.
    pub fn add_usage(
        &mut self,
        session: Ulid,
        message: Option<Ulid>,
        model: &str,
        u: &Usage,
    ) -> Result<Ulid, StoreError> {
        self.require_session(session)?;
        if let Some(m) = message {
            self.require_message(session, m)?;
        }
        self.write("store usage", |tx, ids| {
            let id = ids.next_id();
            let n = |tokens: u64| i64::try_from(tokens).unwrap_or(i64::MAX);
            tx.execute(
                "INSERT INTO usage (id, session_id, message_id, model, created_at, input, output, \
                 reasoning, cache_read, cache_write,
                 cache_write_1h) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
                params![
                    id.to_string(),
                    session.to_string(),
                    message.map(|m| m.to_string()),
                    model,
                    ids.now(),
                    n(u.input),
                    n(u.output),
                    n(u.reasoning),
                    n(u.cache_read),
                    n(u.cache_write),
                    n(u.cache_write_1h),
                ],
            )?;
            Ok(id)
        })
    }

    /// Returns the tokens of a session by model. Tokens spent before a fork belong to its parent.
    pub fn usage(&self, session: Ulid) -> Result<BTreeMap<String, Usage>, StoreError> {
        self.require_session(session)?;
        self.read("add up usage", |db| {
            let mut q = db.prepare_cached(
                "SELECT model, input, output, reasoning, cache_read, cache_write, cache_write_1h \
                 FROM usage WHERE session_id = ?1",
            )?;
            let mut out: BTreeMap<String, Usage> = BTreeMap::new();
            let mut rows = q.query([session.to_string()])?;
            while let Some(r) = rows.next()? {
                let n = |i: usize| r.get::<_, i64>(i).map(|v| v.max(0) as u64);
                let one = Usage {
                    input: n(1)?,
                    output: n(2)?,
                    reasoning: n(3)?,
                    cache_read: n(4)?,
                    cache_write: n(5)?,
                    cache_write_1h: n(6)?,
                    reported_total: None,
                };
                out.entry(r.get(0)?).or_default().add(&one);
            }
            Ok(out)
        })
    }
}
