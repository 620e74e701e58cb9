//! Applies an answer to `context` to the conversation.

use std::collections::{BTreeSet, HashSet, VecDeque};

use ctxbench_core::prelude::*;
use ctxbench_strategies::names::intern;
use serde_json::json;
use serde_json::value::RawValue;

use super::protocol::{
    Breakpoint, CompactionNote, ContextAnswer, Message, MessageEntry, Scope, TriggerNote, clipped,
};
use super::state::{Exec, ExecState, RequestOptions, message_id};

/// Id of the part before the conversation.
const SYSTEM: &str = "system";
/// Maximum length of a check or mechanism name, bytes.
const NAME_BYTES: usize = 64;

enum Element {
    Known(Message),
    /// New text of the last answer.
    Repeated(Message),
    New(Box<RawValue>),
}

impl Exec {
    /// Applies an answer. Returns whether it removes or alters a block of the last request.
    pub(super) fn apply(&mut self, s: &mut Engine, shown: ContextAnswer) -> Result<bool, String> {
        if let Some(TriggerNote { check, believed, limit }) = shown.trigger {
            s.trigger(name(&check)?, believed, limit);
        }
        self.given_up = shown.fail;
        let changed = match (shown.unchanged, shown.keep) {
            (false, None) if self.given_up.is_some() => false,
            (true, None) => {
                self.new_messages.clear();
                self.show_state(s)?;
                false
            }
            (false, Some(keep)) => self.keep(s, &keep, shown.scope, shown.compaction)?,
            (true, Some(_)) => return Err("the answer has both `unchanged` and `keep`".into()),
            (false, None) => {
                return Err("the answer has none of `unchanged`, `keep` and `fail`".into());
            }
        };
        let given = shown.breakpoints;
        let ttl = given.iter().flatten().filter_map(|b| b.ttl).max_by_key(|t| t.millis());
        let breakpoints = given.map(|all| self.places(s, &all)).transpose()?;
        self.wanted = RequestOptions { breakpoints, ttl, params: shown.params };
        Ok(changed)
    }

    fn keep(
        &mut self,
        s: &mut Engine,
        keep: &[Box<RawValue>],
        scope: Scope,
        compaction: Option<CompactionNote>,
    ) -> Result<bool, String> {
        let mut elements = self.elements(keep)?;
        self.find_repeated(&mut elements);
        let named = named(&elements);
        let all = self.state.messages().iter();
        let gone: Vec<&Message> = all.filter(|m| !named.contains(&m.id)).collect();
        let has_new = elements.iter().any(|e| matches!(e, Element::New(_)));
        let CompactionNote { kind, mechanism, ids } = compaction.unwrap_or_default();
        let represented = match &ids {
            None => gone.clone(),
            Some(ids) => ids.iter().map(|id| self.entry(id)).collect::<Result<_, _>>()?,
        };
        let origin = origin(&represented);
        let summarises = match kind {
            Some(kind) => kind == CompactionKind::Summarise,
            None => has_new && !gone.is_empty(),
        };
        let drops = !gone.is_empty();
        let (messages, new_messages) = self.build(s, elements, &origin, summarises)?;
        if messages.is_empty() {
            return Err("`keep` is empty, and no provider takes a request without messages".into());
        }
        whole_pairs(&self.state, &messages)?;
        let before = s.context.blocks().to_vec();
        let head = before[..self.head].iter().cloned();
        let view = messages.iter().flat_map(|m| m.blocks.iter().cloned());
        let after: Vec<Arc<Block>> = head.chain(view).collect();
        let shown: HashSet<u64> = after.iter().map(|b| b.hash).collect();
        let altered = before.iter().any(|b| !shown.contains(&b.hash));
        if altered || (summarises && has_new) {
            let kind = kind.unwrap_or_else(|| found_kind(summarises, drops, &after));
            let mechanism = match &mechanism {
                Some(mechanism) => name(mechanism)?,
                None => intern(json!(kind).as_str().unwrap_or_default()),
            };
            s.compacted(kind, mechanism, self.phase, after)
        } else {
            s.set_view(after)
        }
        .map_err(|e| e.to_string())?;
        self.known = s.context.blocks().len();
        self.shows_state = scope == Scope::State;
        if self.shows_state {
            self.state = ExecState::new(messages);
        }
        self.new_messages = new_messages;
        Ok(altered)
    }

    fn entry(&self, id: &str) -> Result<&Message, String> {
        self.state.get(id).ok_or_else(|| {
            format!(
                "message `{id}` is not in the current state; it was left out before, or never sent"
            )
        })
    }

    fn elements(&self, list: &[Box<RawValue>]) -> Result<Vec<Element>, String> {
        let dialect = self.dialect.as_ref().ok_or("no dialect was chosen")?;
        let mut seen = HashSet::new();
        let mut out = Vec::with_capacity(list.len());
        for raw in list {
            out.push(match MessageEntry::read(raw)? {
                MessageEntry { id: None, message } => Element::New(message.unwrap_or_default()),
                MessageEntry { id: Some(id), message } => {
                    let mut known = self.entry(&id)?.clone();
                    if let Some(message) = message {
                        known.blocks = dialect.with_text(&known.blocks, &message)?;
                        known.json = message.into();
                    }
                    if !seen.insert(known.id.clone()) {
                        return Err(format!("message `{id}` is in the list twice"));
                    }
                    Element::Known(known)
                }
            });
        }
        Ok(out)
    }

    /// Recognises the new texts of the last answer. Each matches once; a second copy is a new message.
    fn find_repeated(&self, elements: &mut [Element]) {
        let mut taken = named(elements);
        for element in elements {
            let Element::New(json) = element else { continue };
            let same = |m: &&Message| m.json.get() == json.get() && !taken.contains(&m.id);
            if let Some(message) = self.new_messages.iter().find(same) {
                taken.insert(message.id.clone());
                *element = Element::Repeated(message.clone());
            }
        }
    }

    /// Adds new text to the log and gives it an id. Returns all messages, and the new ones.
    fn build(
        &self,
        s: &mut Engine,
        elements: Vec<Element>,
        origin: &[Origin],
        summarises: bool,
    ) -> Result<(Vec<Message>, Vec<Message>), String> {
        let dialect = self.dialect.as_ref().ok_or("no dialect was chosen")?;
        let kind = if summarises { BlockKind::Summary } else { BlockKind::Reminder };
        let drafts = elements.iter().filter_map(|e| match e {
            Element::New(json) => Some(dialect.drafts(json, kind)),
            _ => None,
        });
        let mut drafts = drafts.collect::<Result<VecDeque<_>, _>>()?;
        if summarises && !drafts.iter().flatten().any(|d| d.kind == BlockKind::Summary) {
            // Without new text of the user, that of the model is the summary.
            let of_model = drafts.iter_mut().flatten().filter(|d| d.kind == BlockKind::Assistant);
            of_model.for_each(|d| d.kind = BlockKind::Summary);
        }
        let (mut messages, mut new_messages) = (Vec::new(), Vec::new());
        for element in elements {
            let message = match element {
                Element::Known(message) => {
                    messages.push(message);
                    continue;
                }
                Element::Repeated(message) => message,
                Element::New(json) => {
                    recorded(s, json, drafts.pop_front().unwrap_or_default(), origin)
                }
            };
            new_messages.push(message.clone());
            messages.push(message);
        }
        Ok((messages, new_messages))
    }

    fn places(&self, s: &Engine, all: &[Breakpoint]) -> Result<Vec<usize>, String> {
        let blocks = s.context.blocks();
        let mut out = Vec::new();
        for b in all {
            if b.id == SYSTEM {
                let system = blocks.iter().take_while(|b| is_system(b)).count();
                out.extend(system.checked_sub(1));
                continue;
            }
            let entry = self.entry(&b.id)?;
            let is_last = |shown: &Arc<Block>| {
                let last = entry.blocks.last();
                last.is_some_and(|l| l.message == shown.message && l.origin == shown.origin)
            };
            let at = blocks.iter().rposition(is_last);
            out.push(at.ok_or_else(|| format!("breakpoint after `{}`, which is not shown", b.id))?);
        }
        out.sort_unstable();
        out.dedup();
        Ok(out)
    }

    /// Returns the blocks of messages for a side request. The last new text is its prompt.
    pub(super) fn side_blocks(&self, list: &[Box<RawValue>]) -> Result<Vec<Arc<Block>>, String> {
        let dialect = self.dialect.as_ref().ok_or("no dialect was chosen")?;
        let elements = self.elements(list)?;
        let last = elements.len().wrapping_sub(1);
        let mut out: Vec<Arc<Block>> = Vec::new();
        for (i, e) in elements.into_iter().enumerate() {
            match e {
                Element::Known(message) | Element::Repeated(message) => out.extend(message.blocks),
                Element::New(json) => {
                    let kind = if i == last { BlockKind::SummaryPrompt } else { BlockKind::User };
                    let message = MessageId(u32::MAX - i as u32 - 1);
                    let drafts = dialect.drafts(&json, kind)?;
                    out.extend(drafts.into_iter().map(|d| d.build(message, vec![])));
                }
            }
        }
        Ok(out)
    }
}

/// Returns the ids of the messages that an answer names.
fn named(elements: &[Element]) -> HashSet<Arc<str>> {
    let ids = elements.iter().filter_map(|e| match e {
        Element::Known(message) => Some(message.id.clone()),
        _ => None,
    });
    ids.collect()
}

/// Checks that every call has its result, and every result its call before it.
fn whole_pairs(before: &ExecState, after: &[Message]) -> Result<(), String> {
    let blocks = || after.iter().flat_map(|m| &m.blocks);
    let (mut called, mut answered) = (HashSet::new(), HashSet::new());
    for (b, id) in blocks().filter_map(|b| Some((b, b.call_id()?))) {
        match b.kind {
            BlockKind::Call => drop(called.insert(id)),
            BlockKind::Output if called.contains(id) => drop(answered.insert(id)),
            BlockKind::Output => {
                return Err(format!(
                    "the result of call `{id}` is shown without its call before it"
                ));
            }
            _ => {}
        }
    }
    let known: Vec<Arc<Block>> = before.blocks().collect();
    let had = known.iter().filter(|b| b.kind == BlockKind::Output).filter_map(|b| b.call_id());
    match had.into_iter().find(|id| called.contains(id) && !answered.contains(id)) {
        Some(id) => Err(format!("call `{id}` is shown without the result that it has")),
        None => Ok(()),
    }
}

/// Records new text in the log. Summaries represent `origin`.
fn recorded(s: &mut Engine, json: Box<RawValue>, drafts: Vec<Draft>, origin: &[Origin]) -> Message {
    let role = drafts.first().map_or(Role::User, |d| d.role);
    let id = s.append(role, drafts.iter().map(Part::from).collect());
    let block = |d: Draft| {
        let is_summary = d.kind == BlockKind::Summary;
        let origin = if is_summary { origin.to_vec() } else { vec![] };
        Draft { form: BlockForm::Synthetic, ..d }.build(id, origin)
    };
    let blocks = drafts.into_iter().map(block).collect();
    Message { id: message_id(id, 0), json: json.into(), blocks }
}

/// Returns the parts of the log that messages represent, in order.
fn origin(messages: &[&Message]) -> Vec<Origin> {
    let blocks = messages.iter().flat_map(|m| &m.blocks);
    let all: BTreeSet<Origin> = blocks.flat_map(|b| b.origin.iter().copied()).collect();
    all.into_iter().collect()
}

/// Returns the kind of a compaction for which the program gives none.
fn found_kind(summarises: bool, drops: bool, after: &[Arc<Block>]) -> CompactionKind {
    match (summarises, drops) {
        (true, _) => CompactionKind::Summarise,
        (_, true) => CompactionKind::Drop,
        _ if after.iter().any(|b| b.form == BlockForm::Truncated) => CompactionKind::Truncate,
        _ => CompactionKind::Clear,
    }
}

/// A name of the program's for a check or a mechanism.
fn name(given: &str) -> Result<&'static str, String> {
    if given.is_empty() || given.len() > NAME_BYTES || given.chars().any(char::is_control) {
        let found = clipped(given);
        return Err(format!("{found:?} is not a name: expected 1 to {NAME_BYTES} bytes of text"));
    }
    Ok(intern(given))
}
