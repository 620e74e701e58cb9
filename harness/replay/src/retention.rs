//! Tracks which facts the model can see during a replay: at their needs, and through compactions.

use std::sync::Arc;

use ctxbench_core::block::{Block, BlockKind, MessageId};
use ctxbench_core::context_editing;
use ctxbench_core::host::Incoming;
use ctxbench_core::request::Request;
use ctxbench_reports::record::{CompactionRecord, FactPlace, FactRecord};
use ctxbench_session::Session;
use ctxbench_session::fact::Match;

use super::conversation::SharedConversation;
use super::fact_exposure::{Exposure, Showings};
use super::fact_losses::LossTracker;
use super::fact_timeline;
use super::facts::{FactBook, Sighting};
use super::needs::Needs;
use super::path::Path;
use super::rereads::{Reread, Rereads};
use super::session_cache::SessionCache;

/// State of a session's facts in one replay.
pub(super) struct Retention {
    log: SharedConversation,
    book: FactBook,
    needs: Needs,
    exposure: Exposure,
    rereads: Rereads,
    drift: LossTracker,
    /// Keys of user messages that no request has shown yet.
    arriving: Vec<Arc<str>>,
    compactions_seen: u64,
    visible: Vec<Option<Sighting>>,
    /// Facts that were visible since the last summary.
    lately: Vec<bool>,
}

impl Retention {
    pub(super) fn new(
        session: &Session,
        known: Arc<SessionCache>,
        path: &Path,
        log: SharedConversation,
    ) -> Self {
        let facts = known.facts.len();
        let showings = Arc::new(Showings::new(&Path::recorded(session), &known));
        let needs = Needs::new(known.clone(), path, showings.clone());
        Retention {
            log,
            exposure: Exposure::new(showings, needs.open()),
            needs,
            rereads: Rereads::new(path),
            drift: LossTracker::new(facts),
            lately: vec![false; facts],
            arriving: Vec::new(),
            compactions_seen: 0,
            visible: Vec::new(),
            book: FactBook::new(known),
        }
    }

    /// Returns the records of all pairs that are not checked yet.
    pub(super) fn pairs(&self) -> Vec<FactRecord> {
        self.needs.pairs()
    }

    /// Begins a turn with these user messages.
    pub(super) fn begin(&mut self, keys: &[Arc<str>]) {
        self.needs.begin(keys);
        self.arriving = keys.to_vec();
    }

    /// Records that the provider compacted this prompt. Its summary is not in the history yet.
    pub(super) fn provider_compacted(&mut self, shown: &[Arc<Block>]) {
        self.book.license_provider(MessageId(u32::MAX), shown);
    }

    /// Records the blocks of a normal request. `answers` = the recorded reply to it, or the reply
    /// that follows a re-read.
    pub(super) fn record_request(
        &mut self,
        seq: u64,
        logical: &[Arc<Block>],
        answers: Option<&str>,
        reread: Option<&Incoming>,
    ) {
        if let Some(step) = answers {
            self.exposure.request(step, logical, &mut self.book);
            self.measure_needs(seq, step, logical);
        }
        if let Some(tokens) = self.rereads.tokens_shown(logical) {
            self.log.lock().reread_tokens += tokens;
        }
        if let Some(result) = reread {
            self.rereads.record_result(result);
        }
        self.visible = self.book.sightings(logical, None);
        self.note_shown(seq);
    }

    /// Returns the call that fetches the first fact that the next recorded reply needs and the
    /// context no longer shows.
    pub(super) fn lost_at(&mut self, step: &str, request: &Request) -> Option<Reread> {
        let (by_user, by_step) = self.needs.due(step);
        if by_user.is_empty() && by_step.is_empty() {
            return None;
        }
        let shown = context_editing::edited_view(request, context_editing::will_apply(request));
        let newest = newest_user(&request.blocks);
        let seen = self.book.sightings(&shown, None);
        // Without a user message, `newest` leaves nothing out.
        let seen_without = self.book.sightings(&shown, newest);
        let by_user = by_user.into_iter().filter(|f| seen_without[*f].is_none());
        let by_step = by_step.into_iter().filter(|f| seen[*f].is_none());
        let known = &self.book.known;
        by_user.chain(by_step).find_map(|f| {
            let carries = |text: &str| {
                known.brought.contains(&f) || known.carried(text).facts().any(|(fact, _)| fact == f)
            };
            self.rereads.again(&known.facts[f].arises, carries)
        })
    }

    /// Checks the facts that are needed now against the blocks that the model was shown.
    fn measure_needs(&mut self, request: u64, step: &str, shown: &[Arc<Block>]) {
        for (key, facts, by_user) in self.needs.take(step) {
            self.measure(request, &key, &facts, shown, newest_user(shown).filter(|_| by_user));
        }
    }

    fn measure(
        &mut self,
        request: u64,
        need: &Arc<str>,
        facts: &[usize],
        shown: &[Arc<Block>],
        without: Option<MessageId>,
    ) {
        let seen = self.book.sightings(shown, without);
        for &f in facts {
            let found = seen[f].map_or(Match::Absent, |s| s.tier);
            let absent = found == Match::Absent;
            let old_there = self.book.old_there(f, &seen);
            let record = FactRecord {
                request: Some(request),
                found,
                place: seen[f].map_or(FactPlace::Nowhere, |s| s.place),
                stale: absent && old_there,
                both: !absent && old_there,
                exposed: self.exposure.exposed(need, f),
                compactions_before: self.compactions_seen,
                ..self.needs.unreached(need, f)
            };
            self.log.lock().needed.push(record);
        }
    }

    /// Updates the state after a request showed these blocks.
    fn note_shown(&mut self, seq: u64) {
        for key in std::mem::take(&mut self.arriving) {
            self.drift.record_message(&self.book.known, &key);
        }
        let visible = &self.visible;
        self.lately.iter_mut().zip(visible).for_each(|(l, s)| *l |= s.is_some());
        self.drift.record_request(visible);
        fact_timeline::record_shown(&mut self.log.lock().lives, seq, visible);
        let facts = &self.book.known.facts;
        for (f, _) in facts.iter().zip(visible).filter(|(_, s)| s.is_some()) {
            self.rereads.mark_visible(&f.arises);
        }
    }

    /// Records that the reply to the last normal request entered the history.
    pub(super) fn recorded(&mut self, key: &str, message: MessageId) {
        let visible = std::mem::take(&mut self.visible);
        self.book.license(message, key, &visible);
        self.visible = visible;
        self.exposure.recorded(key, message);
        self.rereads.ran(key);
        let book = &self.book;
        self.drift.record_message(&book.known, key);
        let results: Vec<Arc<str>> = self.rereads.results(key).collect();
        results.iter().for_each(|r| self.drift.record_message(&book.known, r));
    }

    /// Begins another session. Its summary may repeat facts that were visible in the previous one.
    pub(super) fn crossed(&mut self, shown: &[Arc<Block>]) {
        self.book.license_summaries(shown, &self.lately);
        self.lately.fill(false);
    }

    /// Adds the facts that a compaction removed and kept to its record.
    pub(super) fn compacted(
        &mut self,
        before: &[Arc<Block>],
        after: &[Arc<Block>],
        record: &mut CompactionRecord,
    ) {
        let old = self.book.sightings(before, None);
        let old_verbatim = self.book.seen_verbatim(before);
        self.lately.iter_mut().zip(&old).for_each(|(l, s)| *l |= s.is_some());
        if self.book.license_summaries(after, &self.lately) {
            self.lately.fill(false);
        }
        let new = self.book.sightings(after, None);
        let new_verbatim = self.book.seen_verbatim(after);
        let later = self.needs.later(self.book.known.facts.len());
        let seen = self.compactions_seen;
        let mut log = self.log.lock();
        fact_timeline::record_moves(
            &mut log.lives,
            seen,
            &mut self.book,
            (before, &old),
            (after, &new),
        );
        drop(log);
        self.compactions_seen += 1;
        self.drift.compacted(&later, [&old, &old_verbatim], [&new, &new_verbatim], record);
    }
}

/// Returns the newest user message of a view.
fn newest_user(blocks: &[Arc<Block>]) -> Option<MessageId> {
    blocks
        .iter()
        .rfind(|b| matches!(b.kind, BlockKind::User | BlockKind::ReplayedUser))
        .map(|b| b.message)
}
