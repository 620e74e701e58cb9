//! Conversion of conversations to recordings: one session for each main conversation, with its
//! subagents and side requests.

use std::collections::{HashMap, HashSet};

use ctxbench_core::block::Role;
use ctxbench_core::model;
use ctxbench_core::request::Reply;
use ctxbench_provider::Content;

use super::decode;
use super::seen::{ExchangeView, Exchanges, Placed};
use super::sorted::{Relation, Sorted, of_a_kind};
use crate::formats::prelude::*;

/// Session and role of a conversation.
struct Owner {
    session: usize,
    /// Name of a subagent, or of a request outside the work, such as one for a title. `None` = the
    /// main conversation.
    agent: Option<String>,
    view: View,
}

/// Returns the recordings of a file. Each gets a copy of the notes on the file.
pub(super) fn recordings(all: &Exchanges, sorted: &Sorted, told: &Recording) -> Vec<Recording> {
    let places = places(all, sorted);
    let sessions = places.iter().map(|p| p.session + 1).max().unwrap_or(0);
    let started = time::millis(&all.header.started).unwrap_or(0);
    let mut out: Vec<Teller<'_>> = (0..sessions)
        .map(|_| Teller { all, sorted, started, steps: Vec::new(), states: HashMap::new() })
        .collect();
    for (i, (conversation, relation)) in sorted.turns.iter().enumerate() {
        let place = &places[*conversation];
        out[place.session].turn(i, *conversation, place, relation);
    }
    let recording = |t: Teller<'_>| Recording { steps: t.steps, ..told.clone() };
    out.into_iter().map(recording).collect()
}

/// Returns the text of a conversation's last reply.
fn last_words(all: &Exchanges, exchanges: &[usize]) -> Option<String> {
    let reply = exchanges.iter().rev().find_map(|i| all.all[*i].reply.as_ref().ok())?;
    let words: Vec<&str> = reply.parts.iter().filter_map(Part::as_text).collect();
    Some(words.join("\n").trim().to_string()).filter(|w| w.len() >= 20)
}

/// Returns whether a call of another conversation started this one: its first text is in the
/// arguments, or its last text came back as a result.
fn is_delegated(all: &Exchanges, sorted: &Sorted, conversation: usize) -> bool {
    let own = &sorted.conversations[conversation].exchanges;
    let first = &all.all[own[0]];
    let mut prompts =
        first.items.iter().map(|p| all.content(p.hash)).filter_map(|(r, c)| match c {
            Content::Text(t) if r == Role::User && t.trim().len() >= 10 => Some(t.trim()),
            _ => None,
        });
    let prompts: HashSet<&str> = prompts.by_ref().collect();
    let words = last_words(all, own);
    let shown: HashSet<u64> = own.iter().flat_map(|i| &all.all[*i].items).map(|p| p.hash).collect();
    all.contents.iter().filter(|(hash, _)| !shown.contains(hash)).any(|(_, (_, c))| match &**c {
        Content::Call { arguments, .. } => {
            escapes::from_str(arguments).is_ok_and(|v: Value| contains_prompt(&v, &prompts))
        }
        Content::Output { text, .. } => words.as_ref().is_some_and(|w| text.contains(w)),
        _ => false,
    })
}

fn contains_prompt(value: &Value, prompts: &HashSet<&str>) -> bool {
    match value {
        Value::String(text) => prompts.contains(text.trim()),
        Value::Array(all) => all.iter().any(|v| contains_prompt(v, prompts)),
        Value::Object(all) => all.values().any(|v| contains_prompt(v, prompts)),
        _ => false,
    }
}

fn places(all: &Exchanges, sorted: &Sorted) -> Vec<Owner> {
    let weight = |exchanges: &[usize]| -> usize {
        exchanges
            .iter()
            .map(|i| all.all[*i].items.len() + usize::from(all.all[*i].tools != 0))
            .sum()
    };
    let conversations = &sorted.conversations;
    let first = |c: usize| conversations[c].exchanges[0];
    let last = |c: usize| *conversations[c].exchanges.last().unwrap_or(&0);
    let all_of_them = 0..conversations.len();
    let heaviest = all_of_them
        .clone()
        .filter(|c| !is_delegated(all, sorted, *c))
        .max_by_key(|c| (weight(&conversations[*c].exchanges), std::cmp::Reverse(*c)));
    let main = heaviest.unwrap_or(0);
    let is_main = |c: usize| {
        let kind = || of_a_kind(all, &all.all[first(main)], &all.all[first(c)]);
        let wrote = conversations[c].exchanges.iter().any(|i| sorted.summaries.contains(i));
        // A conversation that only wrote a summary belongs to the conversation that shows it.
        let only_wrote = wrote && conversations[c].exchanges.len() == 1;
        c == main || (!only_wrote && kind() && !is_delegated(all, sorted, c))
    };
    let mains: Vec<usize> = all_of_them.clone().filter(|c| is_main(*c)).collect();
    let (mut agents, mut sides) = (vec![0; mains.len()], vec![0; mains.len()]);
    all_of_them
        .map(|c| {
            if let Some(session) = mains.iter().position(|m| *m == c) {
                return Owner { session, agent: None, view: View::Both };
            }
            // The active conversation, or else the newest earlier one, or else the next one.
            let spans = |m: &usize| first(*m) <= first(c) && last(*m) >= first(c);
            let session = mains.iter().rposition(spans);
            let session = session.or_else(|| mains.iter().rposition(|m| first(*m) <= first(c)));
            let session = session.unwrap_or(0);
            let own = &conversations[c].exchanges;
            let offers = own.iter().any(|i| all.all[*i].tools != 0);
            let wrote = own.iter().any(|i| sorted.summaries.contains(i));
            if !wrote && (offers || own.len() > 1 || is_delegated(all, sorted, c)) {
                agents[session] += 1;
                let agent = Some(format!("agent-{}", agents[session]));
                return Owner { session, agent, view: View::Both };
            }
            sides[session] += 1;
            let word = if wrote { "summary" } else { "side" };
            let agent = Some(format!("{word}-{}", sides[session]));
            Owner { session, agent, view: View::Calls }
        })
        .collect()
}

/// State of a conversation.
#[derive(Default)]
struct ConversationState {
    standing: Vec<u64>,
    tools: u64,
    /// Steps of the contents that the newest request shows.
    shown: Vec<(usize, usize)>,
    /// Step of the newest reply, until a request shows that the program used it.
    pending: Option<usize>,
    counters: Option<Counters>,
}

/// Builder of a session's steps.
struct Teller<'a> {
    all: &'a Exchanges,
    sorted: &'a Sorted,
    /// Start of the session, ms since 1970.
    started: i64,
    steps: Vec<RecordingStep>,
    states: HashMap<usize, ConversationState>,
}

/// Exchange that is being converted.
struct PendingExchange<'a> {
    seen: &'a ExchangeView,
    conversation: usize,
    agent: Option<String>,
    view: View,
    /// Whether the exchange requested a summary at the end of its own conversation.
    asks: bool,
}

impl Teller<'_> {
    fn turn(&mut self, i: usize, conversation: usize, place: &Owner, relation: &Relation) {
        let seen = &self.all.all[i];
        let (agent, view) = (place.agent.clone(), place.view);
        let asks = view == View::Both && self.sorted.summaries.contains(&i);
        let turn = PendingExchange { seen, conversation, agent, view, asks };
        self.before(&turn, relation);
        let new: Vec<usize> = match relation {
            Relation::Begins => (0..seen.items.len()).collect(),
            Relation::Extends { new }
            | Relation::Rewound { new, .. }
            | Relation::Edited { new } => (*new..seen.items.len()).collect(),
            Relation::Compacted { new, .. } => new.clone(),
        };
        let new = self.after_reply(&turn, relation, new);
        self.tail(&turn, &new);
        self.reply(&turn, i);
    }

    fn step(&mut self, turn: &PendingExchange<'_>, ms: u64, view: View, what: StepKind) -> usize {
        let ms = i64::try_from(ms).unwrap_or(i64::MAX);
        let stamp = time::of_millis(self.started.saturating_add(ms));
        let step = RecordingStep::new(turn.seen.line, stamp, what);
        self.steps.push(RecordingStep { agent: turn.agent.clone(), view, ..step });
        self.steps.len() - 1
    }

    fn note(&mut self, turn: &PendingExchange<'_>, kind: NoteKind, text: &str) {
        let what = StepKind::Note { kind, text: text.to_string() };
        self.step(turn, turn.seen.at_ms, turn.view, what);
    }

    /// Converts the contents before the conversation, and the changes to it.
    fn before(&mut self, turn: &PendingExchange<'_>, relation: &Relation) {
        let seen = turn.seen;
        let state = self.states.entry(turn.conversation).or_default();
        let standing = std::mem::replace(&mut state.standing, seen.standing.clone());
        let tools = std::mem::replace(&mut state.tools, seen.tools);
        if *relation == Relation::Begins {
            let texts = seen.standing.iter().map(|h| self.all.content(*h).1);
            let texts: Vec<String> = texts
                .filter_map(|c| if let Content::Text(t) = c { Some(t.to_string()) } else { None })
                .collect();
            for text in texts {
                self.step(turn, seen.at_ms, turn.view, StepKind::System(text));
            }
            let list = self.all.tools.get(&seen.tools);
            let list = list.and_then(|t| escapes::from_str::<Value>(t.json.get()).ok());
            if let Some(tools) = definitions(list.as_ref()) {
                self.step(turn, seen.at_ms, turn.view, tools);
            }
        } else {
            if standing != seen.standing {
                self.note(turn, NoteKind::Settings, "the system prompt changed");
            }
            if tools != seen.tools {
                self.note(turn, NoteKind::Settings, "the tools changed");
            }
        }
        match relation {
            Relation::Begins | Relation::Extends { .. } => {}
            Relation::Rewound { to, .. } => {
                let state = self.states.entry(turn.conversation).or_default();
                let (stays, gone) = state.shown.iter().partition(|(at, _)| at < to);
                state.shown = stays;
                state.pending = None;
                let gone: Vec<(usize, usize)> = gone;
                gone.iter().for_each(|(_, step)| self.steps[*step].view = View::Calls);
                self.note(turn, NoteKind::Edit, "the user went back to an earlier message");
            }
            Relation::Edited { .. } => {
                self.note(turn, NoteKind::Edit, "the program changed earlier content");
            }
            Relation::Compacted { by, .. } => {
                let reply = by.as_ref().map(|summary| {
                    let of = &self.all.all[summary.by];
                    Box::new(reply_of(of))
                });
                let words = |r: &RecordingReply| {
                    let words = r.pieces.iter().filter_map(|p| match p {
                        MessagePart::Said(Part::Text(t)) => Some(t.to_string()),
                        _ => None,
                    });
                    words.collect::<Vec<_>>().join("\n")
                };
                let summary = reply.as_deref().map(words).filter(|w| !w.is_empty());
                let state = self.states.entry(turn.conversation).or_default();
                let before = state.counters.take();
                state.shown.clear();
                let pre_tokens = before.map(|c| c.prompt().saturating_add(c.output));
                let after = seen.reply.as_ref().ok().and_then(|r| decode::counters(&r.usage));
                let post_tokens = after.map(|c| c.prompt());
                let compaction = RecordingCompaction {
                    pre_tokens,
                    post_tokens,
                    summary,
                    reply,
                    ..RecordingCompaction::default()
                };
                self.step(turn, seen.at_ms, turn.view, StepKind::Compaction(compaction));
            }
        }
    }

    /// Determines whether the newest reply became part of the conversation. Returns the other new
    /// items.
    fn after_reply(
        &mut self,
        turn: &PendingExchange<'_>,
        relation: &Relation,
        new: Vec<usize>,
    ) -> Vec<usize> {
        let state = self.states.entry(turn.conversation).or_default();
        let Some(step) = state.pending.take() else { return new };
        let items = &turn.seen.items;
        let is_said = |at: &usize| self.all.is_said(items[*at].hash);
        // Changed contents of the previous request come before the reply.
        let from = match relation {
            Relation::Edited { .. } => new.iter().position(is_said).unwrap_or(0),
            _ => 0,
        };
        let said = new[from..].iter().take_while(|at| is_said(at)).count();
        let compacted = matches!(relation, Relation::Compacted { .. });
        if said == 0 && !compacted && self.steps[step].view == View::Both {
            // The request was repeated, or the program continued without the reply.
            self.steps[step].view = View::Calls;
        }
        new[from + said..].to_vec()
    }

    /// Adds messages that this request is the first to show.
    fn tail(&mut self, turn: &PendingExchange<'_>, new: &[usize]) {
        let items = &turn.seen.items;
        let said = |at: &usize| self.all.is_said(items[*at].hash);
        let of_one = |a: &usize, b: &usize| {
            items[*a].message == items[*b].message && said(a) == said(b) && *b == a + 1
        };
        let groups: Vec<&[usize]> = new.chunk_by(of_one).collect();
        let n = groups.len();
        for (g, group) in groups.into_iter().enumerate() {
            let mut pieces: Vec<MessagePart> =
                group.iter().filter_map(|at| self.piece(&items[*at])).collect();
            if pieces.is_empty() {
                continue;
            }
            let (at, view) = (group[0], turn.view);
            if said(&at) {
                let response = format!("shown {} {at}", turn.seen.number);
                let reply = RecordingReply {
                    model: Some(turn.seen.model.clone()),
                    counters: Err("a reply that was not recorded".into()),
                    ..RecordingReply::new(response, pieces)
                };
                self.push_content(turn, at, view, StepKind::Reply(reply));
                continue;
            }
            // The text that asks for a summary is not a message of the user.
            let asked = (turn.asks && g + 1 == n)
                .then(|| pieces.iter().rposition(|p| matches!(p, MessagePart::Said(_))))
                .flatten()
                .map(|last| pieces.remove(last));
            if !pieces.is_empty() {
                self.push_content(turn, at, view, StepKind::input(pieces));
            }
            if let Some(asked) = asked {
                self.push_content(turn, at, View::Calls, StepKind::input(vec![asked]));
            }
        }
    }

    fn push_content(&mut self, turn: &PendingExchange<'_>, at: usize, view: View, what: StepKind) {
        let step = self.step(turn, turn.seen.at_ms, view, what);
        self.states.entry(turn.conversation).or_default().shown.push((at, step));
    }

    fn piece(&self, placed: &Placed) -> Option<MessagePart> {
        let (role, content) = self.all.content(placed.hash);
        decode::prompt_piece(content, role)
    }

    fn reply(&mut self, turn: &PendingExchange<'_>, i: usize) {
        let seen = turn.seen;
        match &seen.reply {
            Err(why) => {
                let text = format!("a request without a reply: {why}");
                self.note(turn, NoteKind::Uncounted, &text);
            }
            Ok(reply) => {
                let view = if self.sorted.summaries.contains(&i) { View::Calls } else { turn.view };
                let counters = decode::counters(&reply.usage);
                if let Some(compaction) = compaction_inside(seen, reply) {
                    self.step(turn, seen.at_ms, view, StepKind::Compaction(compaction));
                }
                let mut told = reply_of(seen);
                told.sent_ms = i64::try_from(seen.at_ms).ok().map(|ms| self.started + ms);
                let step = self.step(turn, seen.end_ms, view, StepKind::Reply(told));
                let state = self.states.entry(turn.conversation).or_default();
                state.shown.push((seen.items.len(), step));
                state.pending = Some(step);
                if view == View::Both {
                    state.counters = counters;
                }
            }
        }
    }
}

/// Returns the compaction that the provider made inside a reply, if any.
fn compaction_inside(seen: &ExchangeView, reply: &Reply) -> Option<RecordingCompaction> {
    if reply.billed == reply.usage {
        return None;
    }
    let counters = decode::counters(&model::iterations(reply).next()?)?;
    let summary = reply.parts.iter().rev().find_map(|p| match p {
        Part::Compaction(text) => text.as_deref().map(str::to_string),
        _ => None,
    });
    Some(RecordingCompaction {
        pre_tokens: Some(counters.prompt()),
        summary,
        trigger: Some(Trigger::Auto),
        reply: Some(Box::new(RecordingReply {
            model: Some(seen.model.clone()),
            counters: Ok(counters),
            ..RecordingReply::new(format!("exchange {} compaction", seen.number), vec![])
        })),
        ..RecordingCompaction::default()
    })
}

/// Converts the reply of an exchange.
fn reply_of(seen: &ExchangeView) -> RecordingReply {
    let Ok(reply) = &seen.reply else { return RecordingReply::new(None, Vec::new()) };
    let mut pieces: Vec<_> = reply.parts.iter().cloned().map(decode::reply_piece).collect();
    // Other providers count no reasoning, or do not get it again.
    if seen.wire == "openai-responses" && reply.usage.reasoning > 0 {
        weigh_reasoning(pieces.iter_mut().collect(), reply.usage.reasoning);
    }
    RecordingReply {
        model: Some(seen.model.clone()),
        counters: known(decode::counters(&reply.usage)),
        ..RecordingReply::new(format!("exchange {}", seen.number), pieces)
    }
}
