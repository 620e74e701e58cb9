//! Tracks which facts the model can see during a replay: at their needs, and through compactions.

use ctxbench_core::context_editing;
use ctxbench_core::prelude::*;
use ctxbench_reports::record::{CompactionRecord, FactMove, FactPlace, FactRecord};
use ctxbench_session::fact::{FactKind, Match};

use super::conversation::{Conversation, SharedConversation};
use super::facts::{FactBook, Sightings, fact_place, readable};
use super::needs::Needs;
use super::path::Path;
use super::rereads::{Reread, Rereads};
use super::session_cache::SessionCache;
use super::texts::{Lines, nearest};

/// Maximum number of recorded moves per fact; later ones are dropped.
const MOVES: usize = 8;

/// State of a session's facts in one replay.
pub(super) struct RecallTracker {
    log: SharedConversation,
    book: FactBook,
    needs: Needs,
    rereads: Rereads,
    /// Facts that were established so far.
    established: Vec<bool>,
    /// Keys of user messages that no request has shown yet.
    arriving: Vec<Arc<str>>,
    compactions_seen: u64,
    visible: Option<Sightings>,
    /// Units of facts that were visible since the last summary.
    lately: Vec<bool>,
}

impl RecallTracker {
    /// Begins a replay of a path. Also returns the records of all pairs, which the conversation
    /// keeps.
    pub(super) fn new(
        known: Arc<SessionCache>,
        path: &Path,
        log: SharedConversation,
    ) -> (RecallTracker, Vec<FactRecord>) {
        let facts = known.facts.len();
        let (needs, records) = Needs::new(&known, path);
        let recall = RecallTracker {
            log,
            needs,
            rereads: Rereads::new(path),
            established: vec![false; facts],
            lately: vec![false; known.fact_of().len()],
            arriving: Vec::new(),
            compactions_seen: 0,
            visible: None,
            book: FactBook::new(known),
        };
        (recall, records)
    }

    /// Begins a turn with these user messages.
    pub(super) fn begin(&mut self, keys: &[Arc<str>]) {
        self.needs.begin(keys);
        keys.iter().for_each(|key| self.book.arrives(key));
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
            self.needs.request(step, logical, &mut self.book);
            self.measure_needs(seq, step, logical);
        }
        if let Some(tokens) = self.rereads.tokens_shown(logical) {
            self.log.lock().reread_tokens += tokens;
        }
        if let Some(result) = reread {
            self.rereads.record_result(result);
        }
        let seen = self.book.sightings(logical, None);
        self.note_shown(seq, &seen);
        self.visible = Some(seen);
    }

    /// Returns the call that fetches the first fact that the next recorded reply needs and the
    /// context no longer shows.
    pub(super) fn lost_at(&mut self, step: &str, request: &Request) -> Option<Reread> {
        let (by_user, mut by_step) = self.needs.due(step);
        // The reply itself fetches its content.
        by_step.retain(|&f| self.book.known.facts[f].kind != FactKind::Content);
        if by_user.is_empty() && by_step.is_empty() {
            return None;
        }
        let shown = context_editing::edited_view(request, context_editing::will_apply(request));
        let newest = newest_user(&request.blocks);
        let seen = self.book.sightings(&shown, None);
        // Without a user message, `newest` leaves nothing out.
        let seen_without = self.book.sightings(&shown, newest);
        let by_user = by_user.into_iter().filter(|f| seen_without.fact(*f).is_none());
        let by_step = by_step.into_iter().filter(|f| seen.fact(*f).is_none());
        let known = &self.book.known;
        by_user.chain(by_step).find_map(|f| {
            let carries = |text: &str| {
                known.brought.contains(&f) || known.facts_in(&known.carried(text)).contains(&f)
            };
            self.rereads.again(&known.facts[f].arises, carries)
        })
    }

    /// Checks the facts that are needed now against the blocks that the model was shown.
    fn measure_needs(&mut self, request: u64, step: &str, shown: &[Arc<Block>]) {
        for (pairs, by_user) in self.needs.take(step) {
            let without = newest_user(shown).filter(|_| by_user);
            let seen = self.book.sightings(shown, without);
            self.keep_contexts(&pairs, shown, without);
            for at in pairs {
                let pair = self.needs.pair(at);
                let sighting = seen.fact(pair.fact);
                let found = sighting.map_or(Match::Absent, |s| s.tier);
                let absent = found == Match::Absent;
                let old_there = self.book.old_there(pair.fact, &seen);
                let mut log = self.log.lock();
                let record = &mut log.facts[at];
                record.request = Some(request);
                record.found = found;
                record.share = seen.share(pair.fact);
                record.place = sighting.map_or(FactPlace::Nowhere, |s| s.place);
                record.stale = absent && old_there;
                record.both = !absent && old_there;
                record.exposed = pair.exposed;
                record.compactions_before = self.compactions_seen;
            }
        }
    }

    /// Keeps the context at these pairs, if the replay keeps contexts.
    fn keep_contexts(&self, pairs: &[usize], shown: &[Arc<Block>], without: Option<MessageId>) {
        let mut log = self.log.lock();
        let Conversation { contexts: Some(contexts), facts, .. } = &mut *log else { return };
        let is_shown = |b: &&Arc<Block>| Some(b.message) != without;
        let context: Arc<[Arc<Block>]> = shown.iter().filter(is_shown).cloned().collect();
        for record in pairs.iter().map(|at| &facts[*at]) {
            contexts.insert((record.fact.clone(), record.need.clone()), context.clone());
        }
    }

    /// Notes the facts that arise in a message or result.
    fn arises(&mut self, key: &str) {
        self.book.known.arising(key).iter().for_each(|&i| self.established[i] = true);
    }

    /// Updates the state after a request showed these blocks.
    fn note_shown(&mut self, seq: u64, seen: &Sightings) {
        for key in std::mem::take(&mut self.arriving) {
            self.arises(&key);
        }
        let mut log = self.log.lock();
        self.lately.iter_mut().zip(seen.units()).for_each(|(lately, seen)| *lately |= seen);
        for fact in (0..self.established.len()).filter(|fact| seen.fact(*fact).is_some()) {
            self.established[fact] = true;
            // Subagents have no lives.
            if let Some(life) = log.lives.get_mut(fact) {
                life.first_shown.get_or_insert(seq);
            }
            self.rereads.mark_visible(&self.book.known.facts[fact].arises);
        }
    }

    /// Records that the reply to the last normal request entered the history.
    pub(super) fn recorded(&mut self, key: &str, message: MessageId) {
        self.book.license(message, key, self.visible.as_ref());
        self.needs.recorded(key, message);
        self.arises(key);
        for result in self.rereads.ran(key) {
            self.book.arrives(&result);
            self.arises(&result);
        }
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
        self.lately.iter_mut().zip(old.units()).for_each(|(lately, seen)| *lately |= seen);
        if self.book.license_summaries(after, &self.lately) {
            self.lately.fill(false);
        }
        let new = self.book.sightings(after, None);
        let new_verbatim = self.book.seen_verbatim(after);
        self.record_moves((before, &old), (after, &new));
        self.compactions_seen += 1;
        let facts = 0..self.established.len();
        facts.clone().for_each(|i| self.established[i] |= old.fact(i).is_some());
        let later = self.needs.later(facts.len());
        let kept =
            |facts: &[usize]| facts.iter().filter(|&&i| new.fact(i).is_some()).count() as u64;
        let lost = facts
            .clone()
            .filter(|&i| old_verbatim.fact(i).is_some() && new_verbatim.fact(i).is_none());
        let lost: Vec<usize> = lost.collect();
        let wanted: Vec<usize> = facts.filter(|&i| self.established[i] && later[i]).collect();
        record.facts_lost_verbatim = Some(lost.len() as u64);
        record.facts_carried = Some(kept(&lost));
        record.facts_needed_later = Some(wanted.len() as u64);
        record.retained_pct =
            (!wanted.is_empty()).then(|| 100.0 * kept(&wanted) as f64 / wanted.len() as f64);
    }

    /// Records the facts that a compaction moved.
    fn record_moves(
        &mut self,
        (before, old): (&[Arc<Block>], &Sightings),
        (after, new): (&[Arc<Block>], &Sightings),
    ) {
        let mut log = self.log.lock();
        let lives = &mut log.lives;
        let place = |seen: &Sightings, fact: usize| seen.fact(fact).map(|s| s.place);
        let moved: Vec<(usize, FactPlace, Option<FactPlace>)> = (0..lives.len())
            .filter(|&fact| lives[fact].moves.len() < MOVES)
            .filter_map(|fact| Some((fact, place(old, fact)?, place(new, fact))))
            .filter(|(_, from, to)| Some(*from) != *to)
            .collect();
        if moved.is_empty() {
            return;
        }
        let carrying = [before, after].map(|blocks| self.book.carriers(blocks));
        let known = &self.book.known;
        let summaries = after.iter().filter(|b| fact_place(b) == FactPlace::Summary);
        let summaries = Lines::from_lines(summaries.flat_map(|b| readable(b).lines()));
        for (fact, from, to) in moved {
            let [words, now] = [0, 1].map(|side: usize| {
                let block = carrying[side][fact].filter(|_| side == 0 || to.is_some());
                block.map(|b| known.words_around(fact, b.hash, readable(b))).unwrap_or_default()
            });
            let after = match to {
                Some(_) => now,
                None => nearest(&known.facts[fact], &words, &summaries).into(),
            };
            let (compaction, to) = (self.compactions_seen, to.unwrap_or_default());
            lives[fact].moves.push(FactMove { compaction, from, to, before: words, after });
        }
    }
}

fn newest_user(blocks: &[Arc<Block>]) -> Option<MessageId> {
    blocks
        .iter()
        .rfind(|b| matches!(b.kind, BlockKind::User | BlockKind::ReplayedUser))
        .map(|b| b.message)
}
