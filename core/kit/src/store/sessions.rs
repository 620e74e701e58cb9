//! Sessions, and the tokens that they used.

use std::collections::BTreeMap;

use rusqlite::params;

use super::ids::Id;
use super::{NewSession, Store, StoreError};
use ctxbench_core::content::Part;
use ctxbench_core::usage::Usage;

/// A stored session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    pub id: Id,
    /// The details that it was created with.
    pub details: NewSession,
    /// Last message of the parent that a fork shows; `None` for other sessions.
    pub forked_at: Option<Id>,
}

impl Store {
    /// Returns the sessions, oldest first.
    pub fn sessions(&self) -> Result<Vec<Session>, StoreError> {
        let query = "SELECT id, parent_id, title, directory, forked_at FROM sessions \
                     ORDER BY id";
        self.rows("list sessions", query, [], |r| {
            let (parent, title, directory) = (r.get(1)?, r.get(2)?, r.get(3)?);
            let details = NewSession { parent, title, directory };
            Ok(Session { id: r.get(0)?, details, forked_at: r.get(4)? })
        })
    }

    /// Returns the details a session was created with.
    pub fn session(&self, id: Id) -> Result<NewSession, StoreError> {
        let found = self.sessions()?.into_iter().find(|s| s.id == id);
        found.map(|s| s.details).ok_or(StoreError::NoSession { path: self.path.clone(), id })
    }

    /// Returns the newest summary of the nearest ancestor that has one, with the ancestor's id
    /// (docs/sources/opencode-vs-claude-code.md §10.9). `None` for a fork, which shows its parent's
    /// context.
    pub fn inherited_summary(&self, session: Id) -> Result<Option<(Id, String)>, StoreError> {
        self.require_session(session)?;
        let all = self.sessions()?;
        let find = |id: Id| all.iter().find(|s| s.id == id);
        let mut at = find(session);
        if at.is_some_and(|s| s.forked_at.is_some()) {
            return Ok(None);
        }
        // Ids grow from parent to child, so this ends.
        while let Some(parent) =
            at.and_then(|s| s.details.parent.filter(|p| *p < s.id)).and_then(find)
        {
            let context = self.load_context(parent.id)?;
            let shown =
                context.first().filter(|m| m.is_boundary).into_iter().flat_map(|m| &m.parts);
            let summary = shown.map(|p| &p.content).find(|p| matches!(p, Part::Summary(_)));
            if let Some(summary) = summary {
                return Ok(Some((parent.id, summary.text().to_string())));
            }
            at = Some(parent);
        }
        Ok(None)
    }

    /// Stores the tokens of a response as the provider reported them.
    pub fn add_usage(&mut self, session: Id, model: &str, u: &Usage) -> Result<(), StoreError> {
        self.require_session(session)?;
        self.write("store usage", |tx, ids| {
            let n = |tokens: u64| i64::try_from(tokens).unwrap_or(i64::MAX);
            let [input, output, reasoning] = [u.input, u.output, u.reasoning].map(n);
            let [read, write, write_1h] = [u.cache_read, u.cache_write, u.cache_write_1h].map(n);
            let (id, now) = (ids.next_id(), ids.now());
            tx.execute(
                "INSERT INTO usage (id, session_id, model, created_at, input, output, reasoning, \
                 cache_read, cache_write, cache_write_1h) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
                params![id, session, model, now, input, output, reasoning, read, write, write_1h],
            )
            .map(drop)
        })
    }

    /// Returns the tokens of a session by model. Tokens spent before a fork belong to its parent.
    pub fn usage(&self, session: Id) -> Result<BTreeMap<String, Usage>, StoreError> {
        self.require_session(session)?;
        let query = "SELECT model, sum(input), sum(output), sum(reasoning), sum(cache_read), \
                     sum(cache_write), sum(cache_write_1h) FROM usage WHERE session_id = ?1 \
                     GROUP BY model";
        let all = self.rows("add up usage", query, [session], |r| {
            let n = |i: usize| r.get::<_, i64>(i).map(|v| v.max(0) as u64);
            let usage = Usage {
                input: n(1)?,
                output: n(2)?,
                reasoning: n(3)?,
                cache_read: n(4)?,
                cache_write: n(5)?,
                cache_write_1h: n(6)?,
                reported_total: None,
            };
            Ok((r.get(0)?, usage))
        })?;
        Ok(all.into_iter().collect())
    }
}
