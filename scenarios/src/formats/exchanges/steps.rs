//! Conversion of conversations to recordings: one session for each main conversation, with its
//! subagents and side requests.

use std::collections::HashSet;

use ctxbench_core::block::{BlockKind, Role};

use super::decode;
use super::seen::{ExchangeView, Exchanges};
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
    let mut states: Vec<ConversationState> = Vec::new();
    states.resize_with(places.len(), ConversationState::default);
    let mut out = vec![Vec::new(); sessions];
    for (i, turn) in sorted.turns.iter().enumerate() {
        let place = &places[turn.conversation];
        let (seen, is_summary) = (&all.all[i], sorted.summaries.contains(&i));
        let (state, steps) = (&mut states[turn.conversation], &mut out[place.session]);
        let mut told = Turn { all, started, seen, place, is_summary, state, steps };
        told.before(turn.relation);
        let new = told.after_reply(turn.relation, &turn.new);
        told.tail(new);
        told.reply();
    }
    out.into_iter().map(|steps| Recording { steps, ..told.clone() }).collect()
}

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
    let asked = first.items.iter().map(|p| all.content(p.hash));
    let of_user = asked.filter(|c| c.role == Role::User && c.kind == BlockKind::User);
    let asked = of_user.map(|c| c.text.trim()).filter(|text| text.len() >= 10);
    let prompts: HashSet<&str> = asked.collect();
    let words = last_words(all, own);
    let shown: HashSet<u64> = own.iter().flat_map(|i| &all.all[*i].items).map(|p| p.hash).collect();
    all.contents.iter().filter(|(hash, _)| !shown.contains(hash)).any(|(_, c)| match c.kind {
        BlockKind::Call => {
            escapes::from_str(&c.text).is_ok_and(|v: Value| contains_prompt(&v, &prompts))
        }
        BlockKind::Output => words.as_ref().is_some_and(|w| c.text.contains(w)),
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
        let exchanges = exchanges.iter().map(|i| &all.all[*i]);
        exchanges.map(|e| e.items.len() + usize::from(e.tools != 0)).sum()
    };
    let conversations = &sorted.conversations;
    let first = |c: usize| conversations[c].exchanges[0];
    let last = |c: usize| *conversations[c].exchanges.last().unwrap_or(&0);
    let all_of_them = 0..conversations.len();
    let own = all_of_them.clone().filter(|c| !is_delegated(all, sorted, *c));
    let weight = |c: &usize| (weight(&conversations[*c].exchanges), std::cmp::Reverse(*c));
    let main = own.max_by_key(weight).unwrap_or(0);
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

struct Turn<'a, 't> {
    all: &'a Exchanges,
    /// Start of the session, ms since 1970.
    started: i64,
    seen: &'a ExchangeView,
    place: &'a Owner,
    is_summary: bool,
    state: &'t mut ConversationState,
    steps: &'t mut Vec<RecordingStep>,
}

impl Turn<'_, '_> {
    fn step(&mut self, ms: u64, view: View, what: StepKind) -> usize {
        let ms = i64::try_from(ms).unwrap_or(i64::MAX);
        let stamp = time::of_millis(self.started.saturating_add(ms));
        let step = RecordingStep::new(self.seen.line, stamp, what);
        self.steps.push(RecordingStep { agent: self.place.agent.clone(), view, ..step });
        self.steps.len() - 1
    }

    /// Adds a step at the time of the request.
    fn push(&mut self, what: StepKind) {
        self.step(self.seen.at_ms, self.place.view, what);
    }

    fn note(&mut self, kind: NoteKind, text: &str) {
        self.push(StepKind::Note { kind, text: text.to_string() });
    }

    /// Converts the contents before the conversation, and the changes to it.
    fn before(&mut self, relation: Relation) {
        let (all, seen) = (self.all, self.seen);
        let standing = std::mem::replace(&mut self.state.standing, seen.standing.clone());
        let tools = std::mem::replace(&mut self.state.tools, seen.tools);
        if relation == Relation::Begins {
            for hash in &seen.standing {
                let content = all.content(*hash);
                if matches!(content.kind, BlockKind::Base | BlockKind::Context) {
                    self.push(StepKind::System(content.text.to_string()));
                }
            }
            let list = all.tools.get(&seen.tools);
            let list = list.and_then(|t| escapes::from_str::<Value>(t.json.get()).ok());
            if let Some(tools) = definitions(list.as_ref()) {
                self.push(tools);
            }
        } else {
            if standing != seen.standing {
                self.note(NoteKind::Settings, "the system prompt changed");
            }
            if tools != seen.tools {
                self.note(NoteKind::Settings, "the tools changed");
            }
        }
        match relation {
            Relation::Begins | Relation::Extends => {}
            Relation::Rewound(to) => {
                let shown = std::mem::take(&mut self.state.shown);
                let (stays, gone) = shown.into_iter().partition(|(at, _)| *at < to);
                (self.state.shown, self.state.pending) = (stays, None);
                let gone: Vec<(usize, usize)> = gone;
                gone.iter().for_each(|(_, step)| self.steps[*step].view = View::Calls);
                self.note(NoteKind::Edit, "the user went back to an earlier message");
            }
            Relation::Edited => {
                self.note(NoteKind::Edit, "the program changed earlier content");
            }
            Relation::Compacted(by) => {
                let reply = by.map(|by| Box::new(reply_of(&all.all[by])));
                let words = |r: &RecordingReply| {
                    let words = r.pieces.iter().filter_map(|p| match p {
                        MessagePart::Said(Part::Text(t)) => Some(t.to_string()),
                        _ => None,
                    });
                    words.collect::<Vec<_>>().join("\n")
                };
                let before = self.state.counters.take();
                self.state.shown.clear();
                let after = seen.reply.as_ref().ok().and_then(|r| decode::counters(&r.usage));
                self.push(StepKind::Compaction(RecordingCompaction {
                    pre_tokens: before.map(|c| c.context()),
                    post_tokens: after.map(|c| c.prompt()),
                    summary: reply.as_deref().map(words).filter(|w| !w.is_empty()),
                    reply,
                    ..RecordingCompaction::default()
                }));
            }
        }
    }

    /// Determines whether the newest reply became part of the conversation. Returns the other new
    /// items.
    fn after_reply<'n>(&mut self, relation: Relation, new: &'n [usize]) -> &'n [usize] {
        let Some(step) = self.state.pending.take() else { return new };
        let items = &self.seen.items;
        let is_said = |at: &usize| self.all.is_said(items[*at].hash);
        // Changed contents of the previous request come before the reply.
        let from = match relation {
            Relation::Edited => new.iter().position(is_said).unwrap_or(0),
            _ => 0,
        };
        let said = new[from..].iter().take_while(|at| is_said(at)).count();
        let compacted = matches!(relation, Relation::Compacted(_));
        if said == 0 && !compacted && self.steps[step].view == View::Both {
            // The request was repeated, or the program continued without the reply.
            self.steps[step].view = View::Calls;
        }
        &new[from + said..]
    }

    /// Adds messages that this request is the first to show.
    fn tail(&mut self, new: &[usize]) {
        let (all, items) = (self.all, &self.seen.items);
        let said = |at: &usize| all.is_said(items[*at].hash);
        let of_one = |a: &usize, b: &usize| {
            items[*a].message == items[*b].message && said(a) == said(b) && *b == a + 1
        };
        let piece = |at: &usize| decode::prompt_piece(all.content(items[*at].hash));
        let asks = self.is_summary && self.place.view == View::Both;
        let groups: Vec<&[usize]> = new.chunk_by(of_one).collect();
        let n = groups.len();
        for (g, group) in groups.into_iter().enumerate() {
            let mut pieces: Vec<MessagePart> = group.iter().filter_map(piece).collect();
            if pieces.is_empty() {
                continue;
            }
            let (at, view) = (group[0], self.place.view);
            if said(&at) {
                let response = format!("shown {} {at}", self.seen.number);
                let reply = RecordingReply {
                    model: Some(self.seen.model.clone()),
                    counters: Err("a reply that was not recorded".into()),
                    ..RecordingReply::new(response, pieces)
                };
                self.push_content(at, view, StepKind::Reply(reply));
                continue;
            }
            // The text that asks for a summary is not a message of the user.
            let asked = (asks && g + 1 == n)
                .then(|| pieces.iter().rposition(|p| matches!(p, MessagePart::Said(_))))
                .flatten()
                .map(|last| pieces.remove(last));
            if !pieces.is_empty() {
                self.push_content(at, view, StepKind::input(pieces));
            }
            if let Some(asked) = asked {
                self.push_content(at, View::Calls, StepKind::input(vec![asked]));
            }
        }
    }

    fn push_content(&mut self, at: usize, view: View, what: StepKind) {
        let step = self.step(self.seen.at_ms, view, what);
        self.state.shown.push((at, step));
    }

    fn reply(&mut self) {
        let seen = self.seen;
        let reply = match &seen.reply {
            Err(why) => {
                let text = format!("a request without a reply: {why}");
                return self.note(NoteKind::Uncounted, &text);
            }
            Ok(reply) => reply,
        };
        let view = if self.is_summary { View::Calls } else { self.place.view };
        let mut told = reply_of(seen);
        let usage = object_of(&seen.answer, "usage");
        let summary = messages::compaction_in(seen.answer.get("content"));
        for (of, what) in messages::take_inside(usage, summary, &mut told) {
            let view = if of == View::Both { view } else { of };
            self.step(seen.at_ms, view, what);
        }
        told.sent_ms = i64::try_from(seen.at_ms).ok().map(|ms| self.started + ms);
        let step = self.step(seen.end_ms, view, StepKind::Reply(told));
        self.state.shown.push((seen.items.len(), step));
        self.state.pending = Some(step);
        if view == View::Both {
            self.state.counters = decode::counters(&reply.usage);
        }
    }
}

fn reply_of(seen: &ExchangeView) -> RecordingReply {
    let Ok(reply) = &seen.reply else { return RecordingReply::new(None, Vec::new()) };
    let piece = |part: &Part| match part {
        Part::Compaction(_) => MessagePart::Opaque,
        part => MessagePart::Said(part.clone()),
    };
    let mut pieces: Vec<MessagePart> = reply.parts.iter().map(piece).collect();
    // Other providers count no reasoning, or do not get it again.
    if seen.wire == "openai-responses" && reply.usage.reasoning > 0 {
        weigh_reasoning(pieces.iter_mut().collect(), reply.usage.reasoning);
    }
    RecordingReply {
        model: Some(seen.model.clone()),
        counters: known(decode::counters(&reply.usage))
            .map(|counters| Counters { billing: seen.billing.clone(), ..counters }),
        ..RecordingReply::new(format!("exchange {}", seen.number), pieces)
    }
}
