//! Finds the facts of a recording in the recording itself.
//!
//! A *need* is a reply that uses something that was last shown, by a tool's result or a user
//! message, at least [`GAP`] replies of its agent earlier. The agent's own text and summaries do
//! not count as showing it. Four modules find needs:
//!
//! - `literals`: paths, numbers, identifiers and quoted sentences with a use specific to the
//!   session;
//! - `lists`: the agent's own list of tasks, and commands that it reports on later;
//! - `statements`: requests and decisions that are taken up in different terms;
//! - `content`: results that the agent fetched again, unchanged, however near.
//!
//! All uses in one reply of one text of a message form one need, and thus one fact. Each agent has
//! its own window. Clearing a conversation resets it. A compaction does not: what the agent used after
//! one it needed, whether or not the recorded summary kept it.

mod content;
mod events;
mod lists;
mod literals;
mod names;
mod said;
mod statements;
mod words;

use std::collections::HashMap;

use ctxbench_session::{Fact, FactKind, Session};

use content::ContentWindow;
use events::{Agent, FactEvent};
use lists::ListWindow;
use literals::{LiteralWindow, StandingLiterals};
use said::{ArgumentValues, LongArguments};
use statements::{StatementWindow, Vocabulary};

/// Minimum number of replies from the last showing to the need.
pub const GAP: usize = 6;

/// Maximum number of needs per session. Those farthest from their last showing are kept.
pub const MAX_FACTS: usize = 4000;

/// Finds the facts of a session that has none. The result is deterministic, and the time is linear
/// in the session's size.
pub fn add(session: &mut Session) {
    if session.facts.is_empty() {
        session.facts = find(session);
    }
}

/// A use of something that was last shown long before.
#[derive(Debug, Default)]
struct Need {
    kind: FactKind,
    tokens: Vec<String>,
    words: Vec<String>,
    /// Id of the message or call that showed it last.
    origin: String,
    /// Index of its text in that message. A request shows each text on its own.
    part: usize,
    reply: String,
    /// Number of replies between.
    gap: usize,
}

impl Need {
    fn literal(token: &str, origin: &str, reply: &str, gap: usize) -> Need {
        let kind = if words::is_path(token) { FactKind::Artifact } else { FactKind::Value };
        let (origin, reply) = (origin.to_string(), reply.to_string());
        Need { kind, tokens: vec![token.to_string()], origin, reply, gap, ..Need::default() }
    }

    fn words(kind: FactKind, words: Vec<String>, origin: &str, reply: &str, gap: usize) -> Need {
        Need { kind, tokens: Vec::new(), words, ..Need::literal("", origin, reply, gap) }
    }

    /// Adds the need to those of its reply. Literals that the same text showed last make one need.
    fn add_to(self, needs: &mut Vec<Need>) {
        match needs.iter_mut().find(|n| n.origin == self.origin && n.part == self.part) {
            Some(need) => need.tokens.extend(self.tokens),
            None => needs.push(self),
        }
    }
}

/// What the window of an agent has shown so far.
#[derive(Default)]
struct Window<'a> {
    literals: LiteralWindow<'a>,
    lists: ListWindow,
    statements: StatementWindow,
    long: LongArguments,
    content: ContentWindow<'a>,
}

fn find(session: &Session) -> Vec<Fact> {
    let events = events::collect(session);
    let tools = ArgumentValues::new(said::replies(&events));
    let standing = StandingLiterals::new(session, &events);
    let (mut vocabulary, stems) = Vocabulary::new(&events);
    let mut windows: HashMap<Agent<'_>, Window<'_>> = HashMap::new();
    let [mut by_literals, mut by_lists, mut by_statements, mut by_content] =
        [const { Vec::new() }; 4];
    for ((agent, event), stems) in events.iter().zip(&stems) {
        let window = windows.entry(*agent).or_default();
        match event {
            FactEvent::ShownText(shown) => {
                window.literals.note_shown(shown);
                by_content.extend(window.content.note_result(shown));
                window.statements.note_shown(shown, stems, &mut vocabulary);
            }
            FactEvent::Reply(at, reply) => {
                let pieces = said::pieces(reply, &tools, &window.long);
                by_literals.extend(window.literals.reply(*at, reply, &pieces, &standing));
                by_lists.extend(window.lists.reply(*at, reply));
                by_statements.extend(window.statements.reply(*at, reply, pieces, &mut vocabulary));
                window.long.note(reply);
                window.content.note_reply(*at, reply);
            }
            FactEvent::Cleared => windows.clear(),
        }
    }
    let all = [by_literals, by_lists, by_statements, by_content];
    let mut needs = all.into_iter().flatten().collect();
    keep_farthest(&mut needs, MAX_FACTS);
    facts(needs)
}

/// Keeps the `most` needs that are farthest from their last showing. Of equal ones, the earlier are
/// kept.
fn keep_farthest(needs: &mut Vec<Need>, most: usize) {
    let mut by_gap: Vec<usize> = (0..needs.len()).collect();
    by_gap.sort_by_key(|&i| std::cmp::Reverse(needs[i].gap));
    let mut kept = vec![false; needs.len()];
    by_gap.into_iter().take(most).for_each(|i| kept[i] = true);
    let mut kept = kept.into_iter();
    needs.retain(|_| kept.next().unwrap_or(false));
}

/// Joins the needs of the same things from the same message into one fact.
fn facts(needs: Vec<Need>) -> Vec<Fact> {
    let mut out: Vec<Fact> = Vec::new();
    let mut known: HashMap<(Vec<String>, Vec<String>, String), usize> = HashMap::new();
    for mut need in needs {
        need.tokens.sort_unstable();
        need.tokens.dedup();
        let what = (need.tokens.clone(), need.words.clone(), need.origin.clone());
        let next = out.len();
        let at = *known.entry(what).or_insert(next);
        if at == next {
            let fact = Fact::new(format!("auto-{}", next + 1), need.kind, "", need.origin);
            out.push(Fact { tokens: need.tokens, words: need.words, ..fact });
        }
        if out[at].needs.last() != Some(&need.reply) {
            out[at].needs.push(need.reply);
        }
    }
    out
}

#[cfg(test)]
mod tests;
