//! What there is: the sessions of a store with what a list of them shows.

use std::collections::BTreeMap;

use super::error::StoreError;
use super::load::LOGGED;
use super::part::PartKind;
use super::ulid::Ulid;
use super::{At, NewSession, Store};

/// A session from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overview {
    /// Its id.
    pub id: Ulid,
    /// What was known of it when it began.
    pub session: NewSession,
    /// Of a fork the last message of its parent that it shows.
    pub forked_at: Option<Ulid>,
    /// When it began, ms.
    pub created_at: At,
    /// When it last changed, ms: something was said, compacted or taken back.
    pub updated_at: At,
    /// When the compaction was finished at which loading stops, ms.
    pub compacted_at: Option<At>,
    /// Messages in its log, compactions among them.
    pub messages: u64,
    /// Forks and sessions of subagents that stand below it, oldest first.
    pub children: Vec<Ulid>,
}

impl Store {
    /// Sessions that are not deleted, oldest first.
    pub fn sessions(&self) -> Result<Vec<(Ulid, NewSession)>, StoreError> {
        Ok(self.rows()?.into_iter().map(|o| (o.id, o.session)).collect())
    }

    /// What was known of a session when it began.
    pub fn session(&self, session: Ulid) -> Result<NewSession, StoreError> {
        let missing = || StoreError::NoSession { path: self.path.clone(), id: session };
        let all = self.sessions()?;
        all.into_iter().find(|(id, _)| *id == session).map(|(_, s)| s).ok_or_else(missing)
    }

    /// What a session may be told of the one that it follows: the newest summary of the nearest
    /// ancestor that has one, and whose it is (docs/sources/opencode-vs-claude-code.md §10.9). None
    /// for a fork, which shows what its parent shows.
    pub fn inherited(&self, session: Ulid) -> Result<Option<(Ulid, String)>, StoreError> {
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
            let summary = context.first().filter(|m| m.boundary).and_then(|m| {
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

    /// Sessions that are not deleted, oldest first, with how large they are and how they hang
    /// together.
    pub fn overview(&self) -> Result<Vec<Overview>, StoreError> {
        let _view = self.view()?;
        let mut out = self.rows()?;
        let mut children: BTreeMap<Ulid, Vec<Ulid>> = BTreeMap::new();
        for o in &mut out {
            o.messages = self.messages(o.id)?;
            if let Some(parent) = o.session.parent {
                children.entry(parent).or_default().push(o.id);
            }
        }
        for o in &mut out {
            o.children = children.remove(&o.id).unwrap_or_default();
        }
        Ok(out)
    }

    /// Without what is counted over several rows.
    fn rows(&self) -> Result<Vec<Overview>, StoreError> {
        type Raw = (
            (String, String, Option<String>, String, String),
            (Option<String>, At, At, Option<At>),
        );
        let raw: Vec<Raw> = self.read("list sessions", |db| {
            let mut q = db.prepare_cached(
                "SELECT id, project_id, parent_id, title, directory, forked_at, created_at, \
                 updated_at, compacted_at FROM sessions WHERE deleted_at IS NULL ORDER BY id",
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

    fn messages(&self, session: Ulid) -> Result<u64, StoreError> {
        let mut n = 0;
        for stretch in self.line(session)? {
            n += self.read("count messages", |db| {
                let of = format!(
                    "SELECT count(*) FROM messages m WHERE {} AND {LOGGED}",
                    stretch.messages()
                );
                db.prepare_cached(&of)?.query_row(stretch.params(), |r| r.get::<_, i64>(0))
            })? as u64;
        }
        Ok(n)
    }
}
