//! The session as the agent saw it: its system prompt and tools, the outputs of its tool, and the
//! user's messages as it sent them. Our implementation runs on this session for comparison.

use std::collections::{HashMap, HashSet};

use ctxbench_core::engine::Fixed;
use ctxbench_core::prelude::*;
use ctxbench_provider::{Item, Prompt};
use ctxbench_session::{Entry, Fact, Session, UserEntry};

use super::Driven;
use super::agent::Purpose;
use super::director::Exchange;
use super::plan::{DrivePlan, Planned};

/// Returns the answered requests of an agent's work, in order.
pub(super) fn work(exchanges: &[Exchange]) -> impl Iterator<Item = (&Exchange, &Prompt)> {
    let own = exchanges.iter().filter(|e| e.purpose == Purpose::Work && e.outcome.is_ok());
    own.filter_map(|e| Some((e, e.prompt.as_ref()?)))
}

/// Part of the session that is included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// All replies and messages of the session.
    Whole,
    /// Replies that the agent requested.
    Asked,
    /// Replies that the agent requested, without later messages of the user.
    UpToTheEnd,
}

pub(super) fn observed(driven: &Driven, extent: Extent) -> Session {
    let Driven { session, plan, exchanges, .. } = driven;
    let asked: HashSet<&str> = exchanges.iter().filter_map(|e| e.key.as_deref()).collect();
    let mut left = asked.len();
    let mut out = session.clone();
    out.header.max_output = Some(driven.max_output);
    out.header.prefix_tokens = None;
    out.entries = prefix(driven);
    out.facts.iter_mut().for_each(|f| f.arises = arises(plan, f));
    let shown = outputs(exchanges);
    let context = context_texts(driven);
    let replies: HashMap<&str, &Planned> =
        plan.moves.iter().flat_map(|m| &m.replies).map(|r| (&*r.key, r)).collect();
    let mut messages = user_messages(driven);
    // True if the next message of the user begins a move. Messages with one answer are joined.
    let mut fresh = true;
    for e in &session.entries {
        match e {
            Entry::User(_) if extent == Extent::UpToTheEnd && left == 0 => break,
            Entry::User(u) if u.agent.is_none() => {
                let parts = std::mem::take(&mut fresh).then(|| messages.next()).flatten();
                out.entries.extend(parts.map(|parts| {
                    let (id, parts) = (u.id.clone(), Some(parts));
                    Entry::User(UserEntry { id, at: u.at, parts, ..Default::default() })
                }));
            }
            Entry::Assistant(a) if a.agent.is_none() => {
                let Some(reply) = replies.get(a.id.as_str()) else { continue };
                fresh = true;
                let known = asked.contains(a.id.as_str());
                left = left.saturating_sub(usize::from(known));
                if !known && extent != Extent::Whole {
                    continue;
                }
                let mut a = a.clone();
                (a.text, a.reasoning, a.usage) = (None, None, None);
                a.calls.clear();
                a.parts = Some(reply.parts.clone());
                out.entries.push(Entry::Assistant(a));
                let results = reply.parts.iter().filter_map(|p| result(p, plan, &shown, &context));
                out.entries.extend(results);
            }
            Entry::Fact(f) => {
                out.entries.push(Entry::Fact(Fact { arises: arises(plan, f), ..f.clone() }));
            }
            Entry::Compact { .. } | Entry::RecordedCompaction(_) if plan.left_out > 0 => {}
            Entry::Compact { .. } | Entry::Idle { .. } => out.entries.push(e.clone()),
            Entry::RecordedCompaction(_) if e.compact_command().is_some() => {
                out.entries.push(e.clone());
            }
            _ => {}
        }
    }
    out
}

/// Returns the id at which a fact arises: that of the reply that replaces its original.
fn arises(plan: &DrivePlan, fact: &Fact) -> String {
    let replies = || plan.moves.iter().flat_map(|m| &m.replies);
    let reply = replies().find(|r| r.replaces.iter().any(|id| **id == *fact.arises));
    reply.map_or(&*fact.arises, |r| &*r.key).to_string()
}

/// Returns the result of a call as the agent sent it, else the output of the tool. An agent may repeat
/// its context behind a result after a compaction; our implementation shows it anyway.
fn result(
    part: &Part,
    plan: &DrivePlan,
    shown: &HashMap<&str, &Item>,
    context: &[&str],
) -> Option<Entry> {
    let Part::Call(call) = part else { return None };
    let (output, is_error) = match shown.get(&*call.id) {
        Some(item) => {
            let without = |text: String, again: &&str| text.replace(again, "");
            (context.iter().fold(item.text.to_string(), without).into(), item.is_error)
        }
        None => (plan.printed(&call.id).unwrap_or_default().into(), false),
    };
    Some(Entry::Tool(ctxbench_session::ToolEntry {
        call_id: call.id.to_string(),
        name: Some(call.name.to_string()),
        output: Some(output),
        is_error: Some(is_error),
        ..Default::default()
    }))
}

/// Returns all tool outputs as they were first sent.
fn outputs(exchanges: &[Exchange]) -> HashMap<&str, &Item> {
    let mut all = HashMap::new();
    for item in work(exchanges).flat_map(|(_, p)| &p.items) {
        if let (BlockKind::Output, Some(id)) = (item.kind, item.call_id()) {
            all.entry(id).or_insert(item);
        }
    }
    all
}

/// Returns the texts of its context, which it may send again after a compaction.
fn context_texts(driven: &Driven) -> Vec<&str> {
    let head = head(driven).map_or(&[][..], |(_, head)| head);
    let context = head.iter().filter(|i| i.role == Role::User && !is_of_messages(i, driven));
    context.map(|i| i.text().trim()).filter(|t| !t.is_empty()).collect()
}

/// Returns whether the agent adds this text to each message of the user: a request shows it again.
fn is_of_messages(item: &Item, driven: &Driven) -> bool {
    let is_same = |i: &&Item| i.role == item.role && i.text().trim() == item.text().trim();
    let shows_again = |p: &Prompt| p.items.iter().filter(is_same).count() > 1;
    item.role == Role::User && work(&driven.exchanges).any(|(_, p)| shows_again(p))
}

/// Returns the fixed part of its requests, block by block: everything before the first message of
/// the user, and a different system prompt of its summaries.
pub(super) fn fixed(driven: &Driven) -> Fixed {
    let Some((first, head)) = head(driven) else { return Fixed::default() };
    let exchanges = &driven.exchanges;
    let instructs = |i: &Item| matches!(i.role, Role::Instructions | Role::System);
    // An agent without a system role begins with a developer's message.
    let base = head.iter().take_while(|i| instructs(i)).count().max(1).min(head.len());
    let block = |kind, i: &Item| -> Arc<Block> {
        Draft { kind, ..i.draft() }.build(MessageId(u32::MAX), vec![])
    };
    let blocks = |kind, items: &[Item]| items.iter().map(|i| block(kind, i)).collect();
    // Examples in the form of a dialogue belong to the system prompt if all requests contain them.
    let examples = head[base..].iter().any(|i| i.role == Role::Assistant);
    let same = |p: &Prompt| p.items.iter().zip(head).take_while(|(a, b)| a.hash == b.hash).count();
    let common = || work(exchanges).map(|(_, p)| same(p)).min().unwrap_or_default();
    let base = if examples { common() } else { base };
    let context = head[base..].iter().filter(|i| !examples && !is_of_messages(i, driven));
    let context = context.map(|i| block(BlockKind::Context, i)).collect();
    let summary = exchanges.iter().find(|e| e.purpose == Purpose::Summary);
    let asks = summary.and_then(|e| e.prompt.as_ref()).map_or(&[][..], |p| &p.items);
    let asks = &asks[..asks.iter().take_while(|i| instructs(i)).count()];
    let same = asks.iter().zip(head).all(|(a, b)| a.hash == b.hash);
    Fixed {
        summary_base: if same { vec![] } else { blocks(BlockKind::Base, asks) },
        base: blocks(BlockKind::Base, &head[..base]),
        context,
        reminder: reminder(driven),
        tools: first.tools.clone(),
        ..Fixed::default()
    }
}

/// Returns the text that the agent adds only to the newest message of the user.
fn reminder(driven: &Driven) -> Option<Arc<str>> {
    let MessageForms { words, first, later } = message_forms(driven).next()?;
    let after =
        |texts: Vec<&str>| Some(texts.last()?.split_once(words.trim())?.1.trim().to_string());
    let (first, later) = (after(first?)?, after(later?)?);
    (!first.is_empty() && later.is_empty()).then(|| first.into())
}

/// A message of the user, and its texts in requests: those that the agent adds before it, and it.
struct MessageForms<'a> {
    words: &'a str,
    /// In the first request of its move.
    first: Option<Vec<&'a str>>,
    /// In the first request of a later move.
    later: Option<Vec<&'a str>>,
}

fn message_forms<'a>(driven: &'a Driven) -> impl Iterator<Item = MessageForms<'a>> {
    let context = context_texts(driven);
    driven.plan.messages().enumerate().map(move |(nth, (i, words))| {
        let of = |(_, p): (_, &'a Prompt)| {
            let (until, from) =
                p.items.split_at(p.items.iter().rposition(|item| contains_message(item, words))?);
            let reply = until.iter().rposition(|i| i.role != Role::User || !i.is_text());
            // Before the first message is the system prompt, before others may be a summary.
            let reply = reply.filter(|&i| nth == 0 || until[i].role == Role::Assistant);
            let added =
                until[reply.map_or(until.len(), |i| i + 1)..].iter().map(|i| i.text().trim());
            let added = added.filter(|text| !context.contains(text));
            Some(added.chain([from[0].text()]).collect())
        };
        let first = work(&driven.exchanges).find(|(e, _)| e.step == i).and_then(of);
        let later = work(&driven.exchanges).filter(|(e, _)| e.step > i).find_map(of);
        MessageForms { words, first, later }
    })
}

/// Returns the messages of the user as later requests show them. Text that an agent adds only to the
/// newest message, such as a reminder, is left out.
fn user_messages(driven: &Driven) -> impl Iterator<Item = Vec<Part>> {
    let forms: Vec<MessageForms<'_>> = message_forms(driven).collect();
    let passing = forms.iter().any(|f| f.later.is_some() && f.first != f.later);
    forms.into_iter().map(move |MessageForms { words, first, later }| {
        let texts = later.or(first.filter(|_| !passing)).unwrap_or_else(|| vec![words]);
        texts.into_iter().map(|t| Part::Text(t.into())).collect()
    })
}

/// Returns the first request, and everything in it before the message of the user.
fn head(driven: &Driven) -> Option<(&Prompt, &[Item])> {
    let (_, first) = work(&driven.exchanges).next()?;
    let words = driven.plan.messages().next().map_or("", |(_, words)| words);
    let of_user = first.items.iter().rposition(|i| contains_message(i, words));
    Some((first, &first.items[..of_user.unwrap_or(0)]))
}

/// Returns system prompt and tools as entries.
fn prefix(driven: &Driven) -> Vec<Entry> {
    let Some((first, head)) = head(driven) else { return vec![] };
    let texts: Vec<&str> = head.iter().map(Item::text).filter(|t| !t.is_empty()).collect();
    let mut out = vec![Entry::System { text: texts.join("\n\n"), agent: None }];
    let tools = first.tools.as_ref().and_then(|t| serde_json::from_str(t.json.get()).ok());
    out.extend(tools.map(|definitions| Entry::Tools { definitions, agent: None }));
    out
}

fn contains_message(item: &Item, words: &str) -> bool {
    item.role == Role::User && item.is_text() && item.text().contains(words.trim())
}
