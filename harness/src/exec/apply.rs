//! What an answer to `context` does to what is shown.

use std::collections::HashSet;
use std::sync::Arc;

use ctxbench_core::block::{Block, BlockKind, Draft, Form, Origin, Role};
use ctxbench_core::compaction::CompactionKind;
use ctxbench_core::content::{Part, ToolCall};
use ctxbench_core::engine::Engine;
use ctxbench_core::strategy::is_system;
use ctxbench_strategies::names::kept;
use serde_json::value::RawValue;

use super::dialect::Message;
use super::protocol::{Breakpoint, Compaction, Entry as Given, Scope, Shown, Trigger};
use super::state::{Entry, State, id_of};
use super::strategy::{Exec, Wanted};

/// The id of what always stands before the conversation.
const SYSTEM: &str = "system";
/// Longest name that a program may give to a check or a mechanism, bytes.
const NAME_BYTES: usize = 64;

/// A new text of an answer, so that the next answer may repeat it.
pub(super) struct Made {
    pub(super) id: Arc<str>,
    json: Box<RawValue>,
    entry: Entry,
}

/// An element of `keep` on its way.
enum Element {
    Known(Entry),
    /// A new text of the last answer.
    Again(Entry, Box<RawValue>),
    New(Box<RawValue>),
}

impl Exec {
    /// Shows what the program wants shown. Returns whether something of what the last request
    /// showed is gone or with_text.
    pub(super) fn apply(&mut self, s: &mut Engine, shown: Shown) -> Result<bool, String> {
        let Shown { unchanged, keep, scope, compaction, trigger, breakpoints, params, fail } =
            shown;
        if let Some(Trigger { check, believed, limit }) = trigger {
            s.trigger(name(&check)?, believed, limit);
        }
        self.given_up = fail;
        let changed = match (unchanged, keep) {
            (false, None) if self.given_up.is_some() => false,
            (true, None) => {
                self.made.clear();
                self.show_state(s)?;
                false
            }
            (false, Some(keep)) => self.keep(s, &keep, scope, compaction)?,
            (true, Some(_)) => return Err("it says both `unchanged` and `keep`".into()),
            (false, None) => return Err("it says none of `unchanged`, `keep` and `fail`".into()),
        };
        let ttl = breakpoints.iter().flatten().filter_map(|b| b.ttl).max_by_key(|t| t.millis());
        let places = breakpoints.map(|all| self.places(s, &all)).transpose()?;
        self.wanted = Wanted { breakpoints: places, ttl, params };
        Ok(changed)
    }

    fn keep(
        &mut self,
        s: &mut Engine,
        keep: &[Box<RawValue>],
        scope: Scope,
        compaction: Option<Compaction>,
    ) -> Result<bool, String> {
        let elements = self.repeated(self.elements(keep)?);
        let named: HashSet<&str> = elements
            .iter()
            .filter_map(|e| if let Element::Known(e) = e { Some(&*e.id) } else { None })
            .collect();
        let gone: Vec<&Entry> =
            self.state.entries().iter().filter(|e| !named.contains(&*e.id)).collect();
        let has_new = elements.iter().any(|e| matches!(e, Element::New(_)));
        let Compaction { kind, mechanism, ids } =
            compaction.unwrap_or(Compaction { kind: None, mechanism: None, ids: None });
        let stands_for = match &ids {
            None => gone.clone(),
            Some(ids) => ids.iter().map(|id| self.known(id)).collect::<Result<_, _>>()?,
        };
        let origin = origin(&stands_for);
        let summarises = match kind {
            Some(kind) => kind == CompactionKind::Summarise,
            None => has_new && !gone.is_empty(),
        };
        let drops = !gone.is_empty();
        let (entries, made) = self.build(s, elements, &origin, summarises)?;
        if entries.is_empty() {
            return Err("`keep` is empty, and no provider takes a request without messages".into());
        }
        whole_pairs(&self.state, &entries)?;
        let before = s.context.blocks().to_vec();
        let head = before[..self.head].iter().cloned();
        let view = entries.iter().flat_map(|e| e.message.blocks.iter().cloned());
        let after: Vec<Arc<Block>> = head.chain(view).collect();
        let stands: HashSet<u64> = after.iter().map(|b| b.hash).collect();
        let with_text = before.iter().any(|b| !stands.contains(&b.hash));
        if with_text || (summarises && has_new) {
            let kind = kind.unwrap_or_else(|| found_kind(summarises, drops, &after));
            let mechanism = match &mechanism {
                Some(mechanism) => name(mechanism)?,
                None => word(kind),
            };
            s.compacted(kind, mechanism, self.phase, after)
        } else {
            s.context.set(after)
        }
        .map_err(|e| e.to_string())?;
        self.known = s.context.blocks().len();
        self.shows_state = scope == Scope::State;
        if self.shows_state {
            self.state = State::new(entries);
        }
        self.made = made;
        Ok(with_text)
    }

    fn known(&self, id: &str) -> Result<&Entry, String> {
        self.state.get(id).ok_or_else(|| {
            format!("no message `{id}` is part of the present state; it was left out before, or never sent")
        })
    }

    /// Reads a list of messages of the program.
    fn elements(&self, list: &[Box<RawValue>]) -> Result<Vec<Element>, String> {
        let dialect = self.dialect.as_ref().ok_or("no dialect was chosen")?;
        let mut seen = HashSet::new();
        let mut out = Vec::with_capacity(list.len());
        for raw in list {
            let (id, message) = match Given::read(raw)? {
                Given::New(message) => {
                    out.push(Element::New(message));
                    continue;
                }
                Given::Kept(id) => (id, None),
                Given::Altered(id, message) => (id, Some(message)),
            };
            let entry = self.known(&id)?;
            if !seen.insert(entry.id.clone()) {
                return Err(format!("message `{id}` stands twice in the list"));
            }
            out.push(Element::Known(match message {
                None => entry.clone(),
                Some(message) => {
                    let blocks = dialect.with_text(&entry.message, &message)?;
                    let message = Message { json: message.into(), blocks };
                    Entry { id: entry.id.clone(), message }
                }
            }));
        }
        Ok(out)
    }

    /// Finds the new texts of the last answer among those of this one. Each is found once: the
    /// same words beside it are a message of their own.
    fn repeated(&self, elements: Vec<Element>) -> Vec<Element> {
        let known = elements.iter().filter_map(|e| match e {
            Element::Known(entry) => Some(entry.id.clone()),
            _ => None,
        });
        let mut taken: HashSet<Arc<str>> = known.collect();
        let again = |e| match e {
            Element::New(json) => {
                let same = |m: &&Made| m.json.get() == json.get() && !taken.contains(&m.id);
                match self.made.iter().find(same) {
                    Some(made) => {
                        taken.insert(made.id.clone());
                        Element::Again(made.entry.clone(), json)
                    }
                    None => Element::New(json),
                }
            }
            e => e,
        };
        elements.into_iter().map(again).collect()
    }

    /// Gives new text its place in the log and an id.
    fn build(
        &mut self,
        s: &mut Engine,
        elements: Vec<Element>,
        origin: &[Origin],
        summarises: bool,
    ) -> Result<(Vec<Entry>, Vec<Made>), String> {
        let dialect = self.dialect.as_ref().ok_or("no dialect was chosen")?;
        let kind = if summarises { BlockKind::Summary } else { BlockKind::Reminder };
        let mut drafted = Vec::new();
        for e in elements {
            drafted.push(match e {
                Element::Known(entry) => (Some(entry), None),
                Element::Again(entry, json) => (Some(entry), Some((json, vec![]))),
                Element::New(json) => {
                    let drafts = dialect.drafts(&json, kind)?;
                    (None, Some((json, drafts)))
                }
            });
        }
        let new = || drafted.iter().filter_map(|(_, new)| new.as_ref());
        let told_by_user =
            new().flat_map(|(_, drafts)| drafts).any(|d| d.kind == BlockKind::Summary);
        let (mut entries, mut made) = (Vec::new(), Vec::new());
        for (entry, new) in drafted {
            let entry = match (entry, &new) {
                (Some(entry), _) => entry,
                (None, Some((json, drafts))) => {
                    let mut drafts = drafts.clone();
                    if summarises && !told_by_user {
                        said_by_model(&mut drafts);
                    }
                    entry_of(s, json, drafts, if summarises { origin } else { &[] })
                }
                (None, None) => continue,
            };
            if let Some((json, _)) = new {
                made.push(Made { id: entry.id.clone(), json, entry: entry.clone() });
            }
            entries.push(entry);
        }
        Ok((entries, made))
    }

    /// Where breakpoints stand in the context.
    fn places(&self, s: &Engine, all: &[Breakpoint]) -> Result<Vec<usize>, String> {
        let blocks = s.context.blocks();
        let mut out = Vec::new();
        for b in all {
            if b.id == SYSTEM {
                let system = blocks.iter().take_while(|b| is_system(b)).count();
                out.extend(system.checked_sub(1));
                continue;
            }
            let entry = self.known(&b.id)?;
            let stands = |shown: &Arc<Block>| {
                let last = entry.message.blocks.last();
                last.is_some_and(|l| l.message == shown.message && l.origin == shown.origin)
            };
            let at = blocks.iter().rposition(stands);
            out.push(at.ok_or_else(|| format!("breakpoint after `{}`, which is not shown", b.id))?);
        }
        out.sort_unstable();
        out.dedup();
        Ok(out)
    }

    /// Blocks of a list of messages that are sent and never shown in the conversation; the last new
    /// text asks.
    pub(super) fn side_blocks(&self, list: &[Box<RawValue>]) -> Result<Vec<Arc<Block>>, String> {
        let dialect = self.dialect.as_ref().ok_or("no dialect was chosen")?;
        let elements = self.elements(list)?;
        let last = elements.len().wrapping_sub(1);
        let mut out: Vec<Arc<Block>> = Vec::new();
        for (i, e) in elements.into_iter().enumerate() {
            match e {
                Element::Known(entry) | Element::Again(entry, _) => {
                    out.extend(entry.message.blocks);
                }
                Element::New(json) => {
                    let kind = if i == last { BlockKind::SummaryPrompt } else { BlockKind::User };
                    let message = ctxbench_core::block::MessageId(u32::MAX - i as u32 - 1);
                    let drafts = dialect.drafts(&json, kind)?;
                    out.extend(drafts.into_iter().map(|d| d.build(message, vec![])));
                }
            }
        }
        Ok(out)
    }
}

/// A call stands with its result, and a result behind its call.
fn whole_pairs(before: &State, after: &[Entry]) -> Result<(), String> {
    let blocks = || after.iter().flat_map(|e| &e.message.blocks);
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

/// Where no new text is the user's, the model's tells what went before.
fn said_by_model(drafts: &mut [Draft]) {
    for d in drafts.iter_mut().filter(|d| d.kind == BlockKind::Assistant) {
        d.kind = BlockKind::Summary;
    }
}

/// Records new text in the log and gives it an id.
fn entry_of(s: &mut Engine, json: &RawValue, drafts: Vec<Draft>, origin: &[Origin]) -> Entry {
    let role = drafts.first().map_or(Role::User, |d| d.role);
    let parts = drafts.iter().map(part).collect();
    let id = s.history.append("", role, parts, true);
    let blocks = drafts
        .into_iter()
        .map(|d| {
            let stands = d.kind == BlockKind::Summary;
            let origin = if stands { origin.to_vec() } else { vec![] };
            Draft { form: Form::Synthetic, ..d }.build(id, origin)
        })
        .collect();
    Entry { id: id_of(id, 0), message: Message { json: json.to_owned().into(), blocks } }
}

/// What the log keeps of new text.
fn part(d: &Draft) -> Part {
    let call = d.call.as_ref().map(|c| (Arc::<str>::from(&*c.id), Arc::<str>::from(&*c.name)));
    match (d.kind, call) {
        (BlockKind::Summary, _) => Part::Summary(d.text.clone()),
        (BlockKind::Reasoning, _) => {
            Part::Reasoning { text: d.text.clone(), encrypted: d.opaque.clone() }
        }
        (BlockKind::Call, Some((id, name))) => {
            Part::Call(ToolCall { id, name, arguments: d.text.clone() })
        }
        (BlockKind::Output, Some((id, name))) => {
            Part::Result { id, name, output: d.text.clone(), is_error: d.is_error }
        }
        _ => match &d.media {
            Some(media) => Part::Image((**media).clone()),
            None => Part::Text(d.text.clone()),
        },
    }
}

/// The parts of the log that messages stand for, in order.
fn origin(entries: &[&Entry]) -> Vec<Origin> {
    let blocks = entries.iter().flat_map(|e| &e.message.blocks);
    let mut out: Vec<Origin> = blocks.flat_map(|b| b.origin.iter().copied()).collect();
    out.sort_unstable();
    out.dedup();
    out
}

/// The kind of a compaction that the program does not name.
fn found_kind(summarises: bool, drops: bool, after: &[Arc<Block>]) -> CompactionKind {
    match (summarises, drops) {
        (true, _) => CompactionKind::Summarise,
        (_, true) => CompactionKind::Drop,
        _ if after.iter().any(|b| b.form == Form::Truncated) => CompactionKind::Truncate,
        _ => CompactionKind::Clear,
    }
}

fn word(kind: CompactionKind) -> &'static str {
    match kind {
        CompactionKind::Clear => "clear",
        CompactionKind::Truncate => "truncate",
        CompactionKind::Drop => "drop",
        CompactionKind::Summarise => "summarise",
    }
}

/// A name of the program's for a check or a mechanism.
fn name(given: &str) -> Result<&'static str, String> {
    if given.is_empty() || given.len() > NAME_BYTES || given.chars().any(char::is_control) {
        let found = super::protocol::clipped(given);
        return Err(format!("{found:?} is no name: 1 to {NAME_BYTES} bytes of text are"));
    }
    Ok(kept(given))
}
