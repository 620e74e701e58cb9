//! The whole log of a session, which for a fork starts in its ancestors.

use super::ids::Id;
use super::load::{AFTER_ALL_IDS, LoadedMessage};
use super::{Store, StoreError};

/// SQL condition for messages `m` of the log.
pub(super) const IS_LOGGED: &str = "m.copied = 0";

/// The messages that one session contributes to its own log or to that of a fork.
pub(super) struct Segment {
    session: Id,
    /// End of the segment, exclusive.
    until: String,
    /// The fork that starts at the end; `None` for the last segment.
    fork: Option<Id>,
}

impl Segment {
    /// Returns the SQL condition for the segment's messages `m`, with [`Segment::params`]. A fork
    /// has its own list of the ancestor's messages that it excludes.
    pub(super) fn messages(&self) -> &'static str {
        match self.fork {
            Some(_) => {
                "m.session_id = ?1 AND m.id < ?2 AND m.id NOT IN \
                 (SELECT message_id FROM fork_exclusions WHERE session_id = ?3)"
            }
            None => "m.session_id = ?1 AND m.id < ?2 AND m.deleted_at IS NULL AND ?3 IS NULL",
        }
    }

    pub(super) fn params(&self) -> (Id, &str, Option<Id>) {
        (self.session, &self.until, self.fork)
    }
}

/// Two logs: their common start and the rest of each.
#[derive(Clone, Debug, PartialEq)]
pub struct Divergence {
    /// Common messages, with the ids of the first session.
    pub shared: Vec<LoadedMessage>,
    pub first: Vec<LoadedMessage>,
    pub second: Vec<LoadedMessage>,
}

impl Store {
    /// Returns every message that was not rewound, oldest first, compacted or not. For a fork this
    /// starts with the messages of its ancestors as they were when the fork was made. Pruned results
    /// are complete, and copies made by a compaction are left out. Reads the whole session.
    pub fn log(&self, session: Id) -> Result<Vec<LoadedMessage>, StoreError> {
        let _view = self.view()?;
        let mut out = Vec::new();
        for segment in self.segments(session)? {
            let messages = segment.messages();
            let query = format!(
                "SELECT id, role FROM messages m WHERE {messages} AND {IS_LOGGED} ORDER BY id"
            );
            out.extend(self.messages(&query, segment.params(), false)?);
        }
        Ok(out)
    }

    /// Returns the number of messages in a session's log, including compactions.
    pub fn count_messages(&self, session: Id) -> Result<u64, StoreError> {
        let mut n = 0;
        for segment in self.segments(session)? {
            let messages = segment.messages();
            let query = format!("SELECT count(*) FROM messages m WHERE {messages} AND {IS_LOGGED}");
            let count =
                self.rows("count messages", &query, segment.params(), |r| r.get::<_, i64>(0))?;
            n += count[0] as u64;
        }
        Ok(n)
    }

    /// Returns the segments of a session's log, from its oldest ancestor to itself.
    pub(super) fn segments(&self, session: Id) -> Result<Vec<Segment>, StoreError> {
        self.require_session(session)?;
        let mut segments = vec![Segment { session, until: AFTER_ALL_IDS.to_string(), fork: None }];
        let parent = "SELECT parent_id, log_until, id FROM sessions WHERE id = ?1 AND \
                      log_until IS NOT NULL";
        while let Some(last) = segments.last() {
            let up = self.rows("find a session's parent", parent, [last.session], |r| {
                Ok(Segment { session: r.get(0)?, until: r.get(1)?, fork: r.get(2)? })
            })?;
            if up.is_empty() {
                break;
            }
            segments.extend(up);
        }
        segments.reverse();
        Ok(segments)
    }

    /// Compares the logs of two sessions message by message. Pruning is ignored.
    pub fn compare(&self, a: Id, b: Id) -> Result<Divergence, StoreError> {
        let (mut shared, mut second) = (self.log(a)?, self.log(b)?);
        let same = shared.iter().zip(&second).take_while(|(a, b)| has_same_content(a, b)).count();
        let first = shared.split_off(same);
        second.drain(..same);
        Ok(Divergence { shared, first, second })
    }
}

fn has_same_content(a: &LoadedMessage, b: &LoadedMessage) -> bool {
    (a.role, a.is_boundary) == (b.role, b.is_boundary)
        && a.parts.iter().map(|p| &p.content).eq(b.parts.iter().map(|p| &p.content))
}
