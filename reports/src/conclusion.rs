//! Conclusion of a report: failures, what decides, and the table of the compared sessions.

mod sentences;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::record::{Results, RunRecord, yardstick};

use crate::front::{self, Pooled};
use crate::group::grouped;
use crate::sheet::Sheet;
use crate::terms::{Terms, terms};
use crate::view::{self, ReportBlock};
use crate::{agreement, comparison, fmt, recorded, seeds};

/// Conclusion for sessions that are compared together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Conclusion {
    #[serde(rename = "about")]
    pub(crate) heading: String,
    /// A line per product that failed in the compared sessions, and one for all other sessions.
    #[serde(skip)]
    pub(crate) failures: Vec<String>,
    #[serde(skip)]
    pub(crate) table: Sheet,
    #[serde(skip)]
    pub(crate) lines: Vec<ConclusionLine>,
    /// Labels on the Pareto front over these sessions, the cheapest first.
    pub(crate) front: Vec<String>,
    /// Up to four sentences: whether anybody needed to compact, the front, the trade-off along it, and
    /// how sure these are.
    pub(crate) sentences: Vec<String>,
}

/// A labelled line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConclusionLine {
    pub(crate) label: &'static str,
    pub(crate) text: String,
}

/// Conclusions in the order of the blocks.
pub(crate) fn conclusions(results: &Results) -> Vec<Conclusion> {
    let blocks = view::blocks(results);
    let all = terms(&blocks);
    let conclusion = |terms: &Terms<'_, '_>| {
        let own = &terms.blocks;
        let pooled = Pooled::from_runs(&terms.evidence());
        let shown: Vec<&RunRecord> =
            terms.in_table().into_iter().flat_map(|b| b.runs.iter().copied()).collect();
        let compared = pooled.as_ref().map_or(&shown, |p| &p.runs);
        let recorded = recorded::cost_lines(own).into_iter();
        let mut lines: Vec<_> = recorded.map(|(label, text)| line(label, text)).collect();
        lines.extend(others(terms));
        lines.extend(not_compared(terms));
        // The conclusion of a drive is the agreement of our implementation and the real agent.
        let agreed = agreement::sentences(own);
        let sentences = match agreed.is_empty() {
            true => pooled.as_ref().and_then(sentences::sentences).unwrap_or_default(),
            false => agreed,
        };
        Conclusion {
            heading: heading(terms, compared, all.len() > 1),
            failures: comparison::failures(&shown).into_iter().chain(elsewhere(terms)).collect(),
            table: comparison::sheet(
                compared,
                pooled.as_ref(),
                results.assumptions.get(yardstick::USED),
            ),
            sentences,
            front: pooled.iter().flat_map(Pooled::labels).cloned().collect(),
            lines,
        }
    };
    all.iter().map(conclusion).collect()
}

/// Describes what failed, a line each.
pub fn failures(results: &Results) -> Vec<String> {
    let results = &*seeds::averaged(results);
    conclusions(results).into_iter().flat_map(|c| c.failures).collect()
}

/// The compared sessions and their size, with the model if there are several conclusions.
fn heading(terms: &Terms<'_, '_>, compared: &[&RunRecord], is_one_of_several: bool) -> String {
    let sessions = grouped(compared.iter().copied(), |r| &r.scenario.id);
    let largest = |of: fn(&RunRecord) -> u64| {
        sessions.iter().filter_map(|rows| rows.iter().map(|r| of(r)).max()).collect::<Vec<_>>()
    };
    let replies: u64 = largest(|r| r.summary.steps_total).iter().sum();
    let unlimited = largest(|r| match r.strategy.name == "reference" {
        true => r.summary.peak_context_tokens,
        false => 0,
    });
    let what = match &terms.in_table()[..] {
        [only] => only.title(),
        all if sessions.len() < all.len() => {
            format!("{} of {} sessions, finished by all that are ranked", sessions.len(), all.len())
        }
        all => fmt::sessions(all.len()),
    };
    let mut out = format!("{what}, {}", fmt::pluralize(replies, "reply"));
    if let Some(most) = unlimited.into_iter().max().filter(|n| *n > 0) {
        let up_to = if sessions.len() > 1 { "up to " } else { "" };
        out += &format!(", {up_to}{} tokens if never compacted", fmt::tokens(most as f64));
    }
    if sessions.len() > 1 {
        out += "; totals, and mean change and recall per session";
    }
    if is_one_of_several { format!("{}: {out}", terms.name()) } else { out }
}

/// Number of rows in other sessions up to which each failure is described.
const DESCRIBED: usize = 2;

/// Products that failed in sessions that are not in the table: how, or in how many sessions.
fn elsewhere(terms: &Terms<'_, '_>) -> Vec<String> {
    let shown = terms.in_table();
    let is_other = |b: &&&ReportBlock<'_>| !shown.iter().any(|s| std::ptr::eq(*s, **b));
    let others: Vec<_> = terms.blocks.iter().filter(is_other).collect();
    let runs = others.iter().flat_map(|b| &b.runs);
    let failed: Vec<&RunRecord> =
        runs.copied().filter(|r| r.is_contender() && !r.is_whole()).collect();
    if failed.len() <= DESCRIBED {
        let why = |r: &&RunRecord| {
            let [label, session] = [&r.strategy.label, &r.scenario.id].map(|t| fmt::one_line(t));
            Some(format!("{label}, in {session}: {}", view::failure(r)?))
        };
        return failed.iter().filter_map(why).collect();
    }
    let mut found: BTreeMap<&str, usize> = BTreeMap::new();
    for r in failed {
        *found.entry(&r.strategy.label).or_default() += 1;
    }
    let mut found: Vec<(&str, usize)> = found.into_iter().collect();
    found.sort_by_key(|(label, n)| (std::cmp::Reverse(*n), *label));
    let failed = |(label, n): &(&str, usize)| format!("{} in {n}", fmt::one_line(label));
    let failed: Vec<String> = found.iter().map(failed).collect();
    let sessions = match others.len() {
        1 => "the other session".into(),
        n => format!("the {n} other sessions"),
    };
    vec![format!("Failed in {sessions}: {}", failed.join(", "))]
}

/// Sessions that are left out of the comparison.
fn not_compared(terms: &Terms<'_, '_>) -> Option<ConclusionLine> {
    let shown = terms.in_table();
    let is_shown = |b: &ReportBlock<'_>| shown.iter().any(|s| std::ptr::eq(*s, b));
    let left_out = terms.blocks.iter().filter(|b| !is_shown(b)).map(|b| b.first());
    let mut which: BTreeMap<&str, usize> = BTreeMap::new();
    for why in left_out.filter_map(|r| r.scenario.not_compared()) {
        *which.entry(why).or_default() += 1;
    }
    let which: Vec<String> =
        which.iter().map(|(why, n)| format!("{} {why}", fmt::sessions(*n))).collect();
    (!which.is_empty()).then(|| line("not compared", which.join(", ")))
}

fn line(label: &'static str, text: String) -> ConclusionLine {
    ConclusionLine { label, text }
}

/// Number of other scripted sessions that have a line each.
const OTHERS: usize = 3;

/// Scripted sessions that are not compared with others: what compacting cost in each.
fn others(terms: &Terms<'_, '_>) -> Vec<ConclusionLine> {
    let others: Vec<&ReportBlock<'_>> = terms.others().collect();
    let mut lines: Vec<_> =
        others.iter().take(OTHERS).map(|b| line("also", cost_of_compacting(b))).collect();
    if let Some(more) = others.len().checked_sub(OTHERS).filter(|n| *n > 0) {
        lines.push(line("also", format!("{} more, see the details", fmt::sessions(more))));
    }
    lines
}

/// Range of what compacting costs in a session, the cheapest product first.
fn cost_of_compacting(block: &ReportBlock<'_>) -> String {
    let usd = |r: &RunRecord| r.summary.cost_usd;
    let reference = block.runs.iter().find(|r| r.strategy.name == "reference").map(|r| usd(r));
    let cost = |r: &RunRecord| match reference.filter(|base| *base > 0.0) {
        Some(base) => {
            format!("{} %", fmt::signed((usd(r) / base - 1.0) * 100.0, front::percent))
        }
        None => format!("${}", fmt::usd(usd(r))),
    };
    let has_compacted = |r: &&&RunRecord| r.is_contender() && r.summary.compactions > 0;
    let all = block.runs.iter().filter(has_compacted);
    let (mut compacted, failed): (Vec<&RunRecord>, Vec<&RunRecord>) =
        all.copied().partition(|r| r.is_whole());
    compacted.sort_by(|a, b| usd(a).total_cmp(&usd(b)));
    let named = |r: &RunRecord| format!("{} {}", fmt::one_line(&r.strategy.label), cost(r));
    let range = match &compacted[..] {
        [] if failed.is_empty() => "no product needed to compact".into(),
        [] => "all that compacted failed".into(),
        [only] => named(only),
        [first, .., last] => format!("{} to {}", named(first), named(last)),
    };
    let replies = fmt::pluralize(block.first().summary.steps_total, "reply");
    format!("{} ({replies}): {range}", fmt::one_line(&block.first().scenario.id))
}

#[cfg(test)]
mod tests;
