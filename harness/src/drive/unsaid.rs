//! Requests that look like the agent's own work and end with words that neither the user said nor
//! the model wrote: perhaps side requests that offer tools, which no description told apart.

use ctxbench_core::block::Role;
use ctxbench_provider::Content;

use super::agent::Purpose;
use super::director::Exchange;
use super::lived::work;
use super::plan::{Plan, What};
use super::words;

/// So much of the words is shown, characters.
const SHOWN: usize = 60;

/// What is to be said of them, if there are any.
pub(super) fn note(plan: &Plan, exchanges: &[Exchange]) -> Option<String> {
    let says = plan.moves.iter().filter_map(|m| match &m.what {
        What::Say(words) => Some(words.trim()),
        _ => None,
    });
    let says: Vec<&str> = says.filter(|w| !w.is_empty()).collect();
    let summaries = exchanges.iter().filter(|e| e.purpose == Purpose::Summary);
    let summaries = summaries.filter_map(|e| e.outcome.as_ref().ok());
    let summaries: Vec<&str> = summaries.map(|r| words(r).trim()).collect();
    let nobodys = |text: &str| {
        let told = says.iter().chain(&summaries).any(|known| text.contains(known));
        !text.trim().is_empty() && !told
    };
    let ends = work(exchanges).filter_map(|(_, prompt)| {
        let last = prompt.items.last()?;
        let of_user = last.role == Role::User && matches!(*last.content, Content::Text(_));
        of_user.then(|| last.text()).filter(|text| nobodys(text))
    });
    let ends: Vec<&str> = ends.collect();
    let whole = ends.first()?.trim();
    let mut first: String = whole.chars().take(SHOWN).collect();
    if first.len() < whole.len() {
        first.push('…');
    }
    let n = ends.len();
    let (requests, end, they) = match n {
        1 => ("request", "ends", "it is a side request"),
        _ => ("requests", "end", "they are side requests"),
    };
    Some(format!(
        "{n} {requests} of its work {end} with words that nobody said (“{first}”); if {they}, its \
         description should say so with [[side]]"
    ))
}
