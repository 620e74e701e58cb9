//! The session as an agent lived it: its own system prompt and tools, its own tool's outputs, the
//! user's words as it showed them. On that session our implementation is held beside the agent.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use ctxbench_core::block::Role;
use ctxbench_core::content::Part;
use ctxbench_core::session::{Entry, Session, UserEntry};
use ctxbench_provider::{Content, Item, Prompt};
use serde_json::Value;

use super::agent::Purpose;
use super::director::Exchange;
use super::plan::{Plan, Planned, What};

/// The prompts of an agent's own work that were answered, in order.
pub(super) fn work(exchanges: &[Exchange]) -> impl Iterator<Item = (&Exchange, &Prompt)> {
    let own = exchanges.iter().filter(|e| e.purpose == Purpose::Work && e.outcome.is_ok());
    own.filter_map(|e| Some((e, e.prompt.as_ref()?)))
}

/// How much of a session there is in the session that was lived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// All of it.
    Whole,
    /// The replies that the agent asked for.
    Asked,
    /// The same, and nothing of what the user would have said then.
    UpToTheEnd,
}

/// The session as it was lived.
pub(super) fn lived(
    session: &Session,
    plan: &Plan,
    exchanges: &[Exchange],
    max_output: u64,
    extent: Extent,
) -> Session {
    let asked: HashSet<&str> = exchanges.iter().filter_map(|e| e.key.as_deref()).collect();
    let mut left = asked.len();
    let mut out = session.clone();
    out.header.max_output = Some(max_output);
    out.header.prefix_tokens = None;
    out.entries = prefix(plan, exchanges);
    let shown = outputs(exchanges);
    let replies: HashMap<&str, &Planned> =
        plan.moves.iter().flat_map(|m| &m.replies).map(|r| (&*r.key, r)).collect();
    let mut moves = Words::of(plan, exchanges);
    for e in &session.entries {
        match e {
            Entry::User(_) if extent == Extent::UpToTheEnd && left == 0 => break,
            Entry::User(u) if u.agent.is_none() => out.entries.extend(moves.entry(u)),
            Entry::Assistant(a) if a.agent.is_none() => {
                let Some(reply) = replies.get(a.id.as_str()) else { continue };
                moves.replied();
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
                out.entries.extend(reply.parts.iter().filter_map(|p| result(p, plan, &shown)));
            }
            Entry::Compact { .. } | Entry::Idle { .. } | Entry::Fact(_) => {
                out.entries.push(e.clone());
            }
            Entry::RecordedCompaction(_) if e.compact_command().is_some() => {
                out.entries.push(e.clone());
            }
            _ => {}
        }
    }
    out
}

/// The result of a call as the agent showed it; what it never showed is what the tool printed.
fn result(part: &Part, plan: &Plan, shown: &HashMap<&str, &Item>) -> Option<Entry> {
    let Part::Call(call) = part else { return None };
    let number = call.id.rsplit('_').next().and_then(|n| n.parse::<usize>().ok())?;
    let printed = || plan.outputs.get(number).cloned().unwrap_or_default();
    let (output, is_error) = match shown.get(&*call.id).map(|i| &i.content) {
        Some(Content::Output { text, is_error, .. }) => (text.clone(), *is_error),
        _ => (printed(), false),
    };
    Some(Entry::Tool(ctxbench_core::session::ToolEntry {
        call_id: call.id.to_string(),
        name: Some(call.name.to_string()),
        output: Some(output.to_string()),
        is_error: Some(is_error),
        ..Default::default()
    }))
}

/// Every tool output as it was first shown.
fn outputs(exchanges: &[Exchange]) -> HashMap<&str, &Item> {
    let mut all = HashMap::new();
    for item in work(exchanges).flat_map(|(_, p)| &p.items) {
        if let Content::Output { id, .. } = &item.content {
            all.entry(&**id).or_insert(item);
        }
    }
    all
}

/// System prompt and tools: all that the first request shows before the user's words.
fn prefix(plan: &Plan, exchanges: &[Exchange]) -> Vec<Entry> {
    let Some((_, first)) = work(exchanges).next() else { return vec![] };
    let words = plan.moves.iter().find_map(said).unwrap_or_default();
    let of_user = first.items.iter().rposition(|i| says(i, words));
    let head = &first.items[..of_user.unwrap_or(0)];
    let texts: Vec<&str> = head.iter().map(Item::text).filter(|t| !t.is_empty()).collect();
    let extra = Default::default;
    let mut out = vec![Entry::System { text: texts.join("\n\n"), agent: None, extra: extra() }];
    let tools = first.tools.as_ref().and_then(|t| serde_json::from_str(t.get()).ok());
    if let Some(definitions) = tools {
        let definitions: Vec<Value> = definitions;
        out.push(Entry::Tools { definitions, agent: None, extra: extra() });
    }
    out
}

fn said(step: &super::plan::Step) -> Option<&str> {
    match &step.what {
        What::Say(words) => Some(words),
        _ => None,
    }
}

fn says(item: &Item, words: &str) -> bool {
    item.role == Role::User
        && matches!(item.content, Content::Text(_))
        && item.text().contains(words.trim())
}

/// The user's words of each move as the agent showed them.
struct Words<'a> {
    moves: std::vec::IntoIter<Option<&'a str>>,
    /// The next message of the user begins a move.
    fresh: bool,
}

impl<'a> Words<'a> {
    fn of(plan: &'a Plan, exchanges: &'a [Exchange]) -> Words<'a> {
        let shown = |(i, step): (usize, &'a super::plan::Step)| {
            let words = said(step)?;
            let first = work(exchanges).find(|(e, _)| e.step == i);
            let item = first.and_then(|(_, p)| p.items.iter().rev().find(|i| says(i, words)));
            Some(item.map_or(words, Item::text))
        };
        let all: Vec<_> =
            plan.moves.iter().enumerate().filter(|(_, s)| said(s).is_some()).map(shown).collect();
        Words { moves: all.into_iter(), fresh: true }
    }

    /// A message of the user; those that were answered together are one.
    fn entry(&mut self, of: &UserEntry) -> Option<Entry> {
        if !std::mem::take(&mut self.fresh) {
            return None;
        }
        let text: Arc<str> = self.moves.next()??.into();
        let (id, at) = (of.id.clone(), of.at);
        let entry = UserEntry { id, at, text: Some(text.to_string()), ..Default::default() };
        Some(Entry::User(entry))
    }

    fn replied(&mut self) {
        self.fresh = true;
    }
}
