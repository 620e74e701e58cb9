//! Reopens a session: the content that each format of the product restores, and the next steps of
//! the product.
//!
//! At each restart, the session so far is written in the formats of the strategy's product, read
//! again, and compared with the earlier context. The summary calls and the waiting time are counted
//! from the restart to the first answer.

use std::time::{Duration, Instant};

use ctxbench_core::content::{Part, ToolCall};
use ctxbench_core::engine::is_server_clear;
use ctxbench_core::host::Event as Noted;
use ctxbench_reports::record::{ResumeFile, ResumeRecord};
use ctxbench_session::fact::{Fact, Match, fold};
use ctxbench_session::{Entry, Session};
use ctxbench_strategies::Spec;
use ctxbench_strategies::persist::{
    self, Journal, JournalEntry, PersistError, PersistFormat, StoredMessage, losses,
};

use super::conversation::Conversation;
use ctxbench_os::shutdown::TempFolder;

/// Time that our code needs to load a format. It depends on the machine, so it is not part of the
/// results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loading {
    /// Number of the restart, from 1.
    pub restart: u64,
    pub format: &'static str,
    /// Wall-clock duration.
    pub took: Duration,
}

/// Returns the records of all restarts, and the load times.
pub(super) fn records(
    session: &Session,
    spec: &Spec,
    conversation: &Conversation,
) -> (Vec<ResumeRecord>, Vec<Loading>) {
    let events = &conversation.noted;
    let (mut out, mut took) = (Vec::new(), Vec::new());
    let mut journal = Journal::default();
    let mut restart = 0;
    // Events after the last restart are not needed.
    let ends = events.iter().rposition(|e| matches!(e.event, Noted::Restart { .. }));
    for (i, e) in events.iter().enumerate().take(ends.map_or(0, |last| last + 1)) {
        match &e.event {
            // If the provider clears text in its own view, our view does not change.
            Noted::Compaction { mechanism, .. } if is_server_clear(mechanism) => {}
            Noted::Compaction { before, after, .. } => {
                journal.grew(persist::conversation(before));
                journal.became(persist::conversation(after));
            }
            Noted::Restart { shown } => {
                restart += 1;
                let before = persist::conversation(shown);
                journal.grew(before.clone());
                let reopened = events[i..].iter().find_map(|e| {
                    if let Noted::Reopened { shown } = &e.event { Some(shown) } else { None }
                });
                let shown_now = reopened.map(|b| persist::conversation(b)).unwrap_or_default();
                let (calls, blocked_ms) =
                    conversation.restarts.get(restart as usize - 1).copied().unwrap_or_default();
                let base = ResumeRecord {
                    restart,
                    messages: before.len() as u64,
                    shown_equal: losses(&before, &shown_now).equal,
                    resume_summary_calls: calls,
                    resume_blocked_ms: blocked_ms,
                    file: None,
                    error: None,
                };
                let facts = established(session, restart as usize);
                let formats = spec.descriptor.product.formats();
                if formats.is_empty() {
                    out.push(base.clone());
                }
                for f in formats {
                    match measure(f, &journal.entries, &before, &facts) {
                        Ok((file, time)) => {
                            out.push(ResumeRecord { file: Some(file), ..base.clone() });
                            took.push(Loading { restart, format: f.name, took: time });
                        }
                        Err(e) => out.push(ResumeRecord {
                            error: Some(format!("{}: {e}", f.name)),
                            ..base.clone()
                        }),
                    }
                }
            }
            // Later writes belong to another session.
            Noted::NewSession { .. } => journal = Journal::default(),
            Noted::Reopened { shown } => journal.grew(persist::conversation(shown)),
            _ => {}
        }
    }
    (out, took)
}

/// Returns the facts that were stated before a restart (from 1) in the session that it reopens.
fn established(session: &Session, restart: usize) -> Vec<&Fact> {
    let is = |e: &&Entry| matches!(e, Entry::Restart);
    let restarts: Vec<usize> =
        (0..session.entries.len()).filter(|&i| is(&&session.entries[i])).collect();
    let end = restarts.get(restart - 1).copied().unwrap_or(session.entries.len());
    let begin = session.entries[..end]
        .iter()
        .rposition(|e| matches!(e, Entry::NewSession))
        .unwrap_or_default();
    let ids: std::collections::HashSet<&str> =
        session.entries[begin..end].iter().filter_map(Entry::key).collect();
    session.facts.iter().filter(|f| ids.contains(f.arises.as_str())).collect()
}

fn measure(
    f: &PersistFormat,
    entries: &[JournalEntry],
    before: &[StoredMessage],
    facts: &[&Fact],
) -> Result<(ResumeFile, Duration), PersistError> {
    let dir = TempFolder::new().map_err(PersistError::scratch)?;
    let mut open = (f.open)(dir.path(), 1)?;
    for e in entries {
        open.append(e)?;
    }
    drop(open);
    let begin = Instant::now();
    let open = (f.open)(dir.path(), 2)?;
    let loaded = open.load()?;
    let took = begin.elapsed();
    let was = losses(before, &loaded.context);
    let log = open.log()?;
    let texts: Vec<(&str, String)> =
        log.iter().flat_map(|s| &s.parts).filter_map(text).map(|t| (t, fold(t))).collect();
    let held = facts
        .iter()
        .filter(|f| texts.iter().any(|(t, folded)| f.matches(t, folded) > Match::Absent))
        .count();
    let file = ResumeFile {
        format: f.name.to_string(),
        stored_bytes: open.size(),
        bytes_read: loaded.bytes_read,
        lost: was.lost as u64,
        garbled: was.garbled as u64,
        surplus: was.surplus as u64,
        context_equal: was.equal,
        recoverable_pct: (!facts.is_empty()).then(|| 100.0 * held as f64 / facts.len() as f64),
        notes: loaded.notes,
    };
    Ok((file, took))
}

/// Returns the text of a part that can state a fact.
fn text(p: &Part) -> Option<&str> {
    match p {
        Part::Text(t)
        | Part::Reasoning { text: t, .. }
        | Part::Call(ToolCall { arguments: t, .. })
        | Part::Result { output: t, .. } => Some(t),
        _ => None,
    }
}
