//! Lists of sessions.

use std::collections::BTreeMap;

use super::error::StoreError;
use super::ids::Ulid;
use super::load::IS_LOGGED;
use super::part::PartKind;
use super::{Millis, NewSession, Store};

/// A session as a list shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overview {
    pub id: Ulid,
    pub session: NewSession,
    /// Last message of the parent that a fork shows; `None` for other sessions.
    pub forked_at: Option<Ulid>,
    /// ms since 1970.
    pub created_at: Millis,
    /// Time of the last message, compaction or rewind, ms since 1970.
    pub updated_at: Millis,
    /// Time of the newest compaction, ms since 1970.
    pub compacted_at: Option<Millis>,
    /// Number of messages in its log, including compactions.
    pub messages: u64,
    /// Forks and sessions of subagents, oldest first.
    pub children: Vec<Ulid>,
}

impl Store {
    /// Returns the sessions, oldest first.
    pub fn sessions(&self) -> Result<Vec<(Ulid, NewSession)>, StoreError> {
        Ok(self.rows()?.into_iter().map(|o| (o.id, o.session)).collect())
    }

    /// Returns the details a session was created with.
    pub fn session(&self, session: Ulid) -> Result<NewSession, StoreError> {
        let missing = || StoreError::NoSession { path: self.path.clone(), id: session };
        let all = self.sessions()?;
        all.into_iter().find(|(id, _)| *id == session).map(|(_, s)| s).ok_or_else(missing)
    }

    /// Returns the newest summary of the nearest ancestor that has one, with the ancestor's id
    /// (docs/sources/opencode-vs-claude-code.md §10.9). `None` for a fork, which shows its parent's
    /// context.
    pub fn inherited_summary(&self, session: Ulid) -> Result<Option<(Ulid, String)>, StoreError> {
        let all = self.rows()?;
        let find = |id: Ulid| all.iter().find(|o| o.id == id);
        let missing = || StoreError::NoSession { path: self.path.clone(), id: session };
        let mut at = find(session).ok_or_else(missing)?;
        if at.forked_at.is_some() {
            return Ok(None);
        }
        // Ids grow from parent to child, so this ends.
        while let Some(parent) = at.session.parent.filter(|p| *p < at.id).and_then(find) {
            let context = self.load_context(parent.id)?;
            let summary = context.first().filter(|m| m.is_boundary).and_then(|m| {
                let part = m.parts.iter().find(|p| p.kind == PartKind::Summary)?;
                part.data["text"].as_str().map(str::to_string)
            });
            if let Some(text) = summary {
                return Ok(Some((parent.id, text)));
            }
            at = parent;
        }
        Ok(None)
    }

    /// Returns the sessions, oldest first, with message counts and children.
    pub fn overview(&self) -> Result<Vec<Overview>, StoreError> {
        let _view = self.view()?;
        let mut out = self.rows()?;
        let mut children: BTreeMap<Ulid, Vec<Ulid>> = BTreeMap::new();
        for o in &mut out {
            o.messages = self.count_messages(o.id)?;
            if let Some(parent) = o.session.parent {
                children.entry(parent).or_default().push(o.id);
            }
        }
        for o in &mut out {
            o.children = children.remove(&o.id).unwrap_or_default();
        }
        Ok(out)
    }

    fn rows(&self) -> Result<Vec<Overview>, StoreError> {
        type Raw = (
            (String, String, Option<String>, String, String),
            (Option<String>, Millis, Millis, Option<Millis>),
        );
        let raw: Vec<Raw> = self.read("list sessions", |db| {
            let mut q = db.prepare_cached(
                "SELECT id, project_id, parent_id, title, directory, forked_at, created_at, \
                 updated_at, compacted_at FROM sessions ORDER BY id",
            )?;
            q.query_map([], |r| {
                Ok((
                    (r.get(0)?, r.get(1)?, r.get(2)?, r.get(3)?, r.get(4)?),
                    (r.get(5)?, r.get(6)?, r.get(7)?, r.get(8)?),
                ))
            })?
            .collect()
        })?;
        let mut out = Vec::with_capacity(raw.len());
        for ((key, project, parent, title, directory), (forked_at, created, updated, compacted)) in
            raw
        {
            let ulid = |text: &str| text.parse::<Ulid>().map_err(|e| self.bad(&key, e));
            let id = ulid(&key)?;
            let parent = parent.as_deref().map(ulid).transpose()?;
            out.push(Overview {
                id,
                session: NewSession { project, parent, title, directory },
                forked_at: forked_at.as_deref().map(ulid).transpose()?,
                created_at: created,
                updated_at: updated,
                compacted_at: compacted,
                messages: 0,
                children: Vec::new(),
            });
        }
        Ok(out)
    }

    fn count_messages(&self, session: Ulid) -> Result<u64, StoreError> {
        let mut n = 0;
        for segment in self.segments(session)? {
            n += self.read("count messages", |db| {
                let of = format!(
                    "SELECT count(*) FROM messages m WHERE {} AND {IS_LOGGED}",
                    segment.messages()
                );
                db.prepare_cached(&of)?.query_row(segment.params(), |r| r.get::<_, i64>(0))
            })? as u64;
        }
        Ok(n)
    }
}
