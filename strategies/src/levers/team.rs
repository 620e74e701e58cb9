//! A team of agents: each member has a window of its own and does a share of the session's steps
//! there, from the beginning on; the lead does the session and gets each member's last words
//! (docs/sources/token-budgeting.md §7.14).
//!
//! A member's steps are those of the session, since no session of a team is published. So the
//! figure is one of sizes: what a team costs whose members work as long as their share says. Each
//! is told who it is, so that no member reads from the prompt cache what another one wrote, but for
//! what all of them begin with.

use std::fmt;
use std::sync::Arc;

use ctxbench_core::content::{ToolCall, joined_text};
use ctxbench_core::session::{AssistantEntry, Entry, ToolEntry, UserEntry};

use super::free_id;

/// Who works on the session beside its lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Team {
    /// Members beside the lead, at least 1.
    pub members: u32,
    /// Steps of the session that each does, in per cent of them, 1 to 100.
    pub share_pct: u32,
}

/// What a member whose steps hold no words reports.
const NO_WORDS: &str = "done";
/// Most members, a bound on nonsense; ours.
const MOST: u32 = 100;

impl Team {
    /// What is read.
    pub(super) const SHAPE: &str = "members and the share of the session that each does, such as \
                                    6 or 6x50% (1 to 100 members, 1 to 100 %)";

    pub(super) fn parse(text: &str) -> Option<Team> {
        let (members, share) = text.split_once('x').unwrap_or((text, "100%"));
        let members = members.parse().ok().filter(|n| (1..=MOST).contains(n))?;
        let share = share.strip_suffix('%')?;
        let share_pct = share.parse().ok().filter(|n| (1..=100).contains(n))?;
        Some(Team { members, share_pct })
    }

    /// The session with the team at work: its members begin with the lead's first reply.
    pub(super) fn joined(self, mut entries: Vec<Entry>) -> Vec<Entry> {
        let of_lead = |e: &Entry| matches!(e, Entry::Assistant(a) if a.agent.is_none());
        let Some(first) = entries.iter().position(of_lead) else { return entries };
        let steps = entries.iter().filter(|e| of_lead(e)).count();
        let own = own_part(&entries, (steps * self.share_pct as usize).div_ceil(100));
        let said = own.iter().rev().find_map(|e| match e {
            Entry::Assistant(a) => Some(joined_text(&a.content(), "")).filter(|t| !t.is_empty()),
            _ => None,
        });
        let said: Arc<str> = said.unwrap_or_else(|| NO_WORDS.to_string()).into();
        let (mut calls, mut theirs, mut reports) = (Vec::new(), Vec::new(), Vec::new());
        for n in 1..=self.members {
            let member = free_id(&entries, &format!("member-{n}"));
            calls.push(ToolCall {
                id: member.as_str().into(),
                name: "Agent".into(),
                arguments: format!(r#"{{"prompt":"part {n} of the task"}}"#).into(),
            });
            theirs.push(Entry::User(UserEntry {
                id: free_id(&entries, &format!("{member}.begin")),
                text: Some(format!("You are {member} of a team.").into()),
                agent: Some(member.clone()),
                ..UserEntry::default()
            }));
            theirs.extend(own.iter().map(|e| of_member(e.clone(), &member)));
            reports.push(Entry::Tool(ToolEntry {
                call_id: member,
                name: Some("Agent".into()),
                output: Some(said.clone()),
                ..ToolEntry::default()
            }));
        }
        let id = free_id(&entries, "team");
        let begun = Entry::Assistant(AssistantEntry { id, calls, ..AssistantEntry::default() });
        entries.splice(first..first, std::iter::once(begun).chain(theirs).chain(reports));
        entries
    }
}

impl fmt::Display for Team {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}%", self.members, self.share_pct)
    }
}

/// What the main conversation says up to its n-th reply and the results of that.
fn own_part(entries: &[Entry], steps: usize) -> Vec<Entry> {
    let (mut replies, mut out) = (0, Vec::new());
    for e in entries.iter().filter(|e| e.agent().is_none()) {
        match e {
            Entry::Assistant(_) if replies == steps => break,
            Entry::Assistant(_) => replies += 1,
            Entry::User(_) if replies == steps => break,
            Entry::User(_) | Entry::Tool(_) => {}
            _ => continue,
        }
        out.push(e.clone());
    }
    out
}

/// The same message in a member's window.
fn of_member(mut e: Entry, member: &str) -> Entry {
    let own = |id: &str| format!("{member}.{id}");
    match &mut e {
        Entry::User(u) => (u.id, u.agent) = (own(&u.id), Some(member.into())),
        Entry::Tool(t) => (t.call_id, t.agent) = (own(&t.call_id), Some(member.into())),
        Entry::Assistant(a) => {
            (a.id, a.agent) = (own(&a.id), Some(member.into()));
            a.calls.iter_mut().for_each(|c| c.id = own(&c.id).into());
            for p in a.parts.iter_mut().flatten() {
                if let ctxbench_core::content::Part::Call(c) = p {
                    c.id = own(&c.id).into();
                }
            }
        }
        _ => {}
    }
    e
}
