//! Replays the requests of an agent as a strategy, so that they are measured like those of every
//! other row.
//!
//! An item of a request is matched to the session by its call id or text. Unmatched text belongs to
//! the agent: a summary if it contains one that the model wrote.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use ctxbench_core::prelude::*;
use ctxbench_core::settings::Settings;
use ctxbench_core::tokens;
use ctxbench_provider::{Item, Prompt};
use ctxbench_strategies::Spec;
use ctxbench_strategies::descriptor::{
    About, BuildRequest, Descriptor, MemoryFiles, Product, Version,
};
use ctxbench_strategies::names::intern;

use crate::quotes::contains_summary;

/// Name of the mechanism in tables.
const MECHANISM: &str = "as sent";

/// A request of the agent.
#[derive(Clone, Debug)]
pub(super) struct Shot {
    /// Move of the session in which it was sent.
    pub(super) step: usize,
    /// True if it asks for a summary. Otherwise it is the agent's own work.
    pub(super) summary: bool,
    pub(super) prompt: Prompt,
}

#[derive(Clone, Debug, Default)]
pub(super) struct AgentRequests {
    pub(super) program: String,
    pub(super) version: String,
    /// Moves with a message of the user.
    pub(super) says: VecDeque<usize>,
    pub(super) compacts: VecDeque<usize>,
    pub(super) shots: VecDeque<Shot>,
    /// Texts of the received summaries, in order.
    pub(super) summaries: Vec<String>,
}

#[derive(Default)]
struct Player {
    /// What is left to be sent.
    sent: AgentRequests,
    /// Number of the current move.
    step: usize,
    /// Number of summaries so far.
    asked: usize,
    /// Blocks of the conversation.
    known: KnownBlocks,
    /// Number of blocks of the context that were absorbed.
    seen: usize,
    /// Blocks of items that the agent altered or added, by the hash of the item.
    made: HashMap<u64, Arc<Block>>,
    request: Option<Prompt>,
}

/// Calls and outputs by the hash of their call's id, texts by their own.
#[derive(Default)]
struct KnownBlocks(HashMap<(BlockKind, u64), Vec<Arc<Block>>>);

impl KnownBlocks {
    fn take(&mut self, block: &Arc<Block>) {
        let text = match (block.kind, block.call_id()) {
            (BlockKind::Call | BlockKind::Output, Some(id)) => id,
            (BlockKind::User | BlockKind::Assistant, _) => &*block.text,
            _ => return,
        };
        self.0.entry((block.kind, words(text))).or_default().push(block.clone());
    }

    /// Returns the blocks with the call id or the text of an item.
    fn of(&self, item: &Item) -> &[Arc<Block>] {
        let key = match (item.kind, item.call_id()) {
            (BlockKind::Call | BlockKind::Output, Some(id)) => (item.kind, words(id)),
            (BlockKind::Assistant, _) => (item.kind, words(item.text())),
            _ if item.is_text() => (BlockKind::User, words(item.text())),
            _ => return &[],
        };
        self.0.get(&key).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the newest message of the user that an item contains.
    fn within(&self, item: &Item) -> Option<&Arc<Block>> {
        if item.role != Role::User {
            return None;
        }
        let of_user = self.0.iter().filter(|((kind, _), _)| *kind == BlockKind::User);
        let all = of_user.flat_map(|(_, all)| all);
        let holds = |b: &&Arc<Block>| {
            let words = b.text.trim();
            words.len() >= MIN_TEXT_BYTES && item.text().contains(words)
        };
        all.filter(holds).max_by_key(|b| b.message)
    }
}

/// Minimum length of a message that is searched for in an item, bytes. Shorter texts match by
/// chance.
const MIN_TEXT_BYTES: usize = 12;

/// Returns whether a block is still present: a message of the user in a longer or shorter form, a
/// reply with different blanks at its ends, or a call with other blanks in its arguments.
fn is_present(b: &Block, after: &[Arc<Block>]) -> bool {
    let same = |a: &Block| match b.kind {
        BlockKind::User => a.text.contains(&*b.text) || b.text.contains(&*a.text),
        BlockKind::Assistant => a.text.trim() == b.text.trim(),
        BlockKind::Call => is_same_json(&a.text, &b.text),
        _ => false,
    };
    after.iter().any(|a| a.origin == b.origin && same(a))
}

fn is_same_json(a: &str, b: &str) -> bool {
    let value = |text| serde_json::from_str::<serde_json::Value>(text).ok();
    value(a).is_some_and(|v| Some(v) == value(b))
}

fn words(text: &str) -> u64 {
    tokens::content_hash(text.trim().as_bytes())
}

impl Player {
    /// Sends the requests for summaries that precede the next request of the agent's work.
    async fn summaries(&mut self, s: &mut Engine, phase: Phase) {
        while self.sent.shots.front().is_some_and(|shot| shot.summary && shot.step <= self.step) {
            let Some(Shot { prompt, .. }) = self.sent.shots.pop_front() else { return };
            let blocks = self.summary_blocks(&prompt);
            let mut request = s.summary_request(phase, blocks, false);
            request.tools = prompt.tools.clone();
            request.max_tokens = prompt.max_tokens;
            request.breakpoints = breakpoints(&prompt);
            self.asked += 1;
            // The provider refuses the same requests again.
            let _ = s.send(&request).await;
        }
    }

    /// Returns the blocks of a request for a summary.
    fn summary_blocks(&self, prompt: &Prompt) -> Vec<Arc<Block>> {
        let last = prompt.items.len().saturating_sub(1);
        let mut out = Vec::with_capacity(prompt.items.len());
        for (i, item) in prompt.items.iter().enumerate() {
            let message = MessageId(u32::MAX - 1 - item.message as u32);
            let mut draft = item.draft();
            if i == last && draft.kind == BlockKind::User {
                draft.kind = BlockKind::SummaryPrompt;
            }
            let origin = self.known.of(item).last().map(|b| b.origin.clone()).unwrap_or_default();
            out.push(draft.build(message, origin));
        }
        out
    }

    fn absorb(&mut self, s: &Engine) {
        let blocks = s.context.blocks();
        for block in &blocks[self.seen.min(blocks.len())..] {
            self.known.take(block);
        }
        self.seen = blocks.len();
    }

    fn set_context(&mut self, s: &mut Engine, prompt: &Prompt, phase: Phase) -> Result<(), String> {
        self.absorb(s);
        let before = s.context.blocks().to_vec();
        let mut used: HashSet<(MessageId, u64)> = HashSet::new();
        let mut after = Vec::with_capacity(prompt.items.len());
        let mut fresh = Vec::new();
        for item in &prompt.items {
            match self.existing_block(item, &mut used) {
                Some(block) => after.push(block),
                None => {
                    fresh.push(after.len());
                    after.push(self.added_block(s, item));
                }
            }
        }
        let remaining: HashSet<u64> = after.iter().map(|b| b.hash).collect();
        let gone: Vec<Arc<Block>> = before
            .iter()
            // The agent may remove text that it has added itself.
            .filter(|b| !b.origin.is_empty() || b.kind == BlockKind::Summary)
            .filter(|b| !remaining.contains(&b.hash) && !is_present(b, &after))
            .cloned()
            .collect();
        let has_summary = fresh.iter().any(|i| after[*i].kind == BlockKind::Summary);
        if has_summary {
            let origin = origins(&gone, &after);
            for i in fresh {
                let block = &after[i];
                if block.kind == BlockKind::Summary {
                    let summary = Draft::clone(block).build(block.message, origin.clone());
                    self.made.insert(prompt.items[i].hash, summary.clone());
                    after[i] = summary;
                }
            }
        }
        let done = if gone.is_empty() && !has_summary {
            s.set_view(after)
        } else {
            let origins: HashSet<Origin> =
                after.iter().flat_map(|b| b.origin.iter().copied()).collect();
            let all_altered = gone.iter().all(|b| b.origin.iter().all(|o| origins.contains(o)));
            let kind = match (has_summary, all_altered) {
                (true, _) => CompactionKind::Summarise,
                (false, true) => CompactionKind::Clear,
                (false, false) => CompactionKind::Drop,
            };
            s.compacted(kind, MECHANISM, phase, after)
        };
        self.seen = s.context.blocks().len();
        done.map_err(|e| e.to_string())
    }

    /// Returns the block of an item that the conversation or an earlier request contains.
    fn existing_block(
        &mut self,
        item: &Item,
        used: &mut HashSet<(MessageId, u64)>,
    ) -> Option<Arc<Block>> {
        let text = |b: &Arc<Block>| *b.text == *item.text();
        match item.kind {
            BlockKind::Call => {
                let known = self.known.of(item).last()?;
                if text(known) {
                    return Some(known.clone());
                }
                let same = is_same_json(&known.text, item.text());
                same.then(|| known.map_draft(|d| d.text = item.text().into()))
            }
            BlockKind::Output => {
                let known = self.known.of(item).last()?;
                if text(known) && known.is_error == item.is_error {
                    return Some(known.clone());
                }
                let made = self.made.entry(item.hash).or_insert_with(|| {
                    known.map_draft(|d| {
                        d.text = item.text().into();
                        d.is_error = item.is_error;
                        d.form = BlockForm::Truncated;
                    })
                });
                Some(made.clone())
            }
            _ if item.is_text() => {
                let all = self.known.of(item);
                let mut free = all.iter().filter(|b| !used.contains(&(b.message, b.hash)));
                if let Some(block) = free.next().filter(|b| text(b)) {
                    used.insert((block.message, block.hash));
                    return Some(block.clone());
                }
                if let Some(made) = self.made.get(&item.hash) {
                    return Some(made.clone());
                }
                // An agent may trim a text.
                let known = match all.iter().find(|b| !used.contains(&(b.message, b.hash))) {
                    Some(known) => known,
                    None => self.known.within(item).filter(|_| !self.is_summary(item))?,
                };
                let made = known.map_draft(|d| d.text = item.text().into());
                self.made.insert(item.hash, made.clone());
                Some(made)
            }
            _ => self.made.get(&item.hash).cloned(),
        }
    }

    /// Returns whether an item contains a summary by the model.
    fn is_summary(&self, item: &Item) -> bool {
        let written = &self.sent.summaries[..self.asked.min(self.sent.summaries.len())];
        item.is_text() && written.iter().any(|t| contains_summary(item.text(), t))
    }

    /// Returns a block for an item that the agent has added.
    fn added_block(&mut self, s: &mut Engine, item: &Item) -> Arc<Block> {
        let mut draft = item.draft();
        draft.form = BlockForm::Synthetic;
        if self.is_summary(item) {
            draft.kind = BlockKind::Summary;
        }
        let block = s.synthetic(draft.kind, draft.role, draft.text.clone(), vec![]);
        let block = draft.build(block.message, vec![]);
        self.made.insert(item.hash, block.clone());
        block
    }
}

/// Returns the parts of the log that removed blocks represent and that no block shows any more.
fn origins(gone: &[Arc<Block>], after: &[Arc<Block>]) -> Vec<Origin> {
    let shown: HashSet<Origin> = after.iter().flat_map(|b| b.origin.iter().copied()).collect();
    let all = gone.iter().flat_map(|b| b.origin.iter().copied()).filter(|o| !shown.contains(o));
    BTreeSet::from_iter(all).into_iter().collect()
}

fn breakpoints(prompt: &Prompt) -> Vec<usize> {
    let marked = prompt.items.iter().enumerate().filter(|(_, i)| i.cache.is_some());
    marked.map(|(i, _)| i).collect()
}

#[async_trait]
impl Strategy for Player {
    async fn on_start(&mut self, s: &mut Engine) {
        let name = self.sent.program.clone();
        s.note(Event::Program { name, version: self.sent.version.clone() });
    }

    async fn on_user(&mut self, _s: &mut Engine, _msg: &Incoming) -> Flow {
        self.step = self.sent.says.pop_front().unwrap_or(usize::MAX);
        // Requests of earlier moves must not be sent in this one.
        let step = self.step;
        self.sent.shots.retain(|shot| shot.summary || shot.step >= step);
        Flow::Proceed
    }

    async fn before_request(&mut self, s: &mut Engine) -> Flow {
        self.absorb(s);
        let first = self.request.is_none();
        let phase = if first { Phase::PreTurn } else { Phase::MidTurn };
        self.summaries(s, phase).await;
        let here = self.sent.shots.front().is_some_and(|shot| shot.step <= self.step);
        let Some(Shot { prompt, .. }) = self.sent.shots.pop_front_if(|_| here) else {
            return Flow::EndTurn;
        };
        if let Err(why) = self.set_context(s, &prompt, phase) {
            s.note(Event::StrategyFailed(format!("a request cannot be replayed: {why}")));
            return Flow::FailTurn(why);
        }
        self.request = Some(prompt);
        Flow::Proceed
    }

    fn request(&mut self, s: &Engine) -> Request {
        let mut r = s.sample_request();
        if let Some(prompt) = &self.request {
            r.tools = prompt.tools.clone();
            r.max_tokens = prompt.max_tokens;
            r.breakpoints = breakpoints(prompt);
            r.ttl = prompt
                .items
                .iter()
                .filter_map(|i| i.cache)
                .max_by_key(|t| t.millis())
                .unwrap_or(r.ttl);
        }
        r
    }

    async fn after_step(&mut self, _s: &mut Engine, had_calls: bool) -> Flow {
        let more = self.sent.shots.iter().any(|shot| !shot.summary && shot.step <= self.step);
        if more && !had_calls { Flow::Again } else { Flow::Proceed }
    }

    async fn on_error(&mut self, _s: &mut Engine, e: &ModelError, _attempt: u32) -> Flow {
        // The agent's reaction is in its next request.
        let more = self.sent.shots.front().is_some_and(|shot| shot.step <= self.step);
        if more { Flow::Again } else { Flow::FailTurn(e.to_string()) }
    }

    async fn after_turn(&mut self, s: &mut Engine) {
        self.absorb(s);
        self.summaries(s, Phase::PostTurn).await;
        self.request = None;
    }

    async fn compact(
        &mut self,
        s: &mut Engine,
        _instructions: Option<&str>,
    ) -> Result<(), Unsupported> {
        let Some(step) = self.sent.compacts.pop_front() else { return Err(Unsupported) };
        self.step = step;
        self.absorb(s);
        self.summaries(s, Phase::StandaloneTurn).await;
        Ok(())
    }
}

struct DrivenAgent {
    sent: AgentRequests,
    about: About,
}

impl Product for DrivenAgent {
    fn about(&self) -> About {
        self.about.clone()
    }

    fn build(&self, _order: &BuildRequest<'_>) -> Box<dyn Strategy> {
        Box::new(Player { sent: self.sent.clone(), ..Player::default() })
    }

    fn command(&self) -> Option<String> {
        Some(self.sent.program.to_string())
    }
}

pub(super) fn row(agent: &str, sent: AgentRequests) -> Spec {
    let version = Version::new(intern(&sent.version), "the program itself");
    let summary = format!("{} {} itself, driven by ctxbench", sent.program, sent.version);
    let about = About {
        name: intern(&format!("real-{agent}")),
        summary: intern(&summary),
        files: MemoryFiles::None("a driven program reads its own files"),
        page: "docs/drive.md",
        versions: vec![version],
        ..About::default()
    };
    let product = Box::leak(Box::new(DrivenAgent { sent, about }));
    let descriptor = Box::leak(Box::new(Descriptor::new(product)));
    let settings = Settings::defaults(&[]);
    Spec { descriptor, version, settings }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_with_other_blanks_is_still_present() {
        let call = |arguments: &str| {
            let origin = vec![Origin { message: MessageId(1), part: 0 }];
            Draft::call("c".into(), "bash".into(), arguments.into()).build(MessageId(1), origin)
        };
        let (said, sent) = (call(r#"{"command":"ls"}"#), call(r#"{ "command": "ls" }"#));
        assert!(is_present(&said, std::slice::from_ref(&sent)));
        assert!(!is_present(&said, &[call(r#"{"command":"rm"}"#), call("{")]));
        assert!(!is_present(&said, &[]));
    }
}
