//! Finds requests that look like the agent's work but end with a text that neither the user nor the
//! model wrote: perhaps side requests with tools that no rule of the description matches. A rule with
//! the purpose `work` names texts that belong there.

use ctxbench_core::block::Role;

use super::agent::{Agent, Purpose};
use super::director::Exchange;
use super::observed_session::work;
use super::plan::DrivePlan;
use super::words;
use crate::quotes::contains_summary;

/// Length of the excerpt, characters.
const EXCERPT_CHARS: usize = 60;

/// Returns a note about such requests.
pub(super) fn note(agent: &Agent, plan: &DrivePlan, exchanges: &[Exchange]) -> Option<String> {
    let rules = agent.side.iter().filter(|s| s.purpose == Purpose::Work);
    let described: Vec<&str> = rules.filter_map(|s| s.last.as_deref()).collect();
    let says = plan.messages().map(|(_, words)| words.trim());
    let says: Vec<&str> = says.filter(|words| !words.is_empty()).collect();
    let summaries = exchanges.iter().filter(|e| e.purpose == Purpose::Summary);
    let summaries = summaries.filter_map(|e| e.outcome.as_ref().ok());
    let summaries: Vec<&str> = summaries.map(|r| words(r).trim()).collect();
    let is_unknown = |text: &str| {
        let is_known = says.iter().chain(&described).any(|known| text.contains(known))
            || summaries.iter().any(|s| contains_summary(text, s));
        !text.trim().is_empty() && !is_known
    };
    let ends = work(exchanges).filter_map(|(_, prompt)| {
        let last = prompt.items.last()?;
        let of_user = last.role == Role::User && last.is_text();
        of_user.then(|| last.text()).filter(|text| is_unknown(text))
    });
    let ends: Vec<&str> = ends.collect();
    let whole = ends.first()?.trim();
    let mut first: String = whole.chars().take(EXCERPT_CHARS).collect();
    if first.len() < whole.len() {
        first.push('…');
    }
    let n = ends.len();
    let (requests, end, they) = match n {
        1 => ("request", "ends", "it is a side request"),
        _ => ("requests", "end", "they are side requests"),
    };
    Some(format!(
        "{n} {requests} of its work {end} with an unknown text (“{first}”); if {they}, add a [[side]] \
         rule to its description; if a call ends its turn, an [end] table"
    ))
}
