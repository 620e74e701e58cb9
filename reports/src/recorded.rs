//! Compares the recorded behaviour of a product with our implementation, and shows the cost of its
//! compactions.

use ctxbench_core::request::Purpose;
use ctxbench_core::strategy::Standing;

use crate::fmt;
use crate::record::{CompactionRecord, RunRecord, Summary};
use crate::sheet::ByBlock;
use crate::view::ReportBlock;

pub(crate) const SHEET: ByBlock = ByBlock {
    title: "As recorded, and our implementation of the product on the same session",
    note: "Every compaction: the reply of the main conversation before which it happened, counted \
        from 0, the context before and after, \
        the summary, and the dollars of the request that wrote it. As recorded: the provider's \
        counters; a summary whose request is not in the recording costs n/a, and one of which only \
        a stub is counted about (~) what its visible text costs. Beside it the dollars of the \
        whole session.",
    head: || {
        vec!["compaction", "before reply", "tokens before", "after", "summary", "its $", "all $"]
    },
    told: |_| None,
    rows: |r| if is_of_product(r) { rows(r) } else { vec![] },
};

/// Formats dollars that may be an estimate.
fn about(usd: f64, is_estimate: bool) -> String {
    format!("{}{}", if is_estimate { "~" } else { "" }, fmt::usd(usd))
}

pub(crate) fn is_of_product(r: &RunRecord) -> bool {
    let own = r.scenario.product.as_deref() == Some(&*r.strategy.name);
    r.strategy.standing == Standing::Recorded || (own && r.sent().requests > 0)
}

fn rows(r: &RunRecord) -> Vec<Vec<String>> {
    let all = fmt::usd(r.summary.cost_usd);
    let tokens = |n: u64| fmt::tokens(n as f64);
    let row = |(c, replies): (&CompactionRecord, usize)| {
        vec![
            (c.seq + 1).to_string(),
            replies.to_string(),
            tokens(c.before_tokens),
            fmt::known(c.after_tokens, tokens),
            tokens(c.summary_tokens),
            fmt::known(c.cost_usd, |usd| about(usd, c.cost_is_estimate)),
            all.clone(),
        ]
    };
    if r.compactions.is_empty() {
        let mut none = vec!["none".to_string()];
        none.extend(["–"; 5].map(str::to_string));
        none.push(all.clone());
        return vec![none];
    }
    let replies = |(i, c)| match &r.digest {
        Some(digest) => digest.replies[i],
        None => before_reply(r, c),
    };
    let all = r.compactions.iter().enumerate().map(replies);
    r.compactions.iter().zip(all).map(row).collect()
}

/// Number of replies of the main conversation before a compaction. Requests of subagents and
/// requests for summaries do not count.
pub(crate) fn before_reply(r: &RunRecord, c: &CompactionRecord) -> usize {
    let before = r.requests.iter().take(c.before_request as usize);
    before.filter(|q| q.agent.is_none() && q.purpose == Purpose::Sample).count()
}

/// Cost of the recorded sessions that are compared, or of all if none is.
pub(crate) fn cost_lines(blocks: &[&ReportBlock<'_>]) -> Vec<(&'static str, String)> {
    let (mut recorded, mut others): (Vec<_>, Vec<_>) = blocks
        .iter()
        .filter_map(|b| Some((*b, *b.runs.iter().find(|r| is_recorded(r))?)))
        .partition(|(_, r)| r.is_evidence());
    if recorded.is_empty() {
        std::mem::swap(&mut recorded, &mut others);
    }
    if recorded.is_empty() {
        return vec![];
    }
    let sum = |of: fn(&RunRecord) -> f64| recorded.iter().map(|(_, r)| of(r)).sum::<f64>();
    let paid = sum(|r| r.summary.cost_usd);
    let likely = sum(|r| r.summary.cost_estimate_usd.unwrap_or(r.summary.cost_usd));
    let compactions: Vec<&CompactionRecord> =
        recorded.iter().flat_map(|(_, r)| &r.compactions).collect();
    let mut text = format!("${} in {}", fmt::usd(paid), fmt::sessions(recorded.len()));
    let lacking = |r: &RunRecord| r.summary.steps_total.saturating_sub(r.summary.steps_completed);
    let uncounted: u64 = recorded.iter().map(|(_, r)| lacking(r)).sum();
    let unbilled = compactions.iter().any(|c| c.cost_usd.is_none());
    let unpriced = recorded.iter().any(|(_, r)| r.summary.cost_estimate_usd.is_none());
    if likely > paid || uncounted > 0 || unbilled || unpriced {
        text += " at least";
    }
    if likely > paid {
        text += &format!("; about ${} with the visible output", fmt::usd(likely));
    }
    if uncounted > 0 {
        text += &format!("; {}", fmt::uncounted(uncounted));
    }
    text += &match compactions.len() {
        0 => "; no compaction".to_string(),
        n => {
            let billed: Vec<f64> = compactions.iter().filter_map(|c| c.cost_usd).collect();
            let about = if compactions.iter().any(|c| c.cost_is_estimate) { "about " } else { "" };
            let summaries = match (billed.len(), n - billed.len()) {
                (0, _) => "whose summary calls are not in these dollars".to_string(),
                (_, 0) => format!("their summaries {about}${}", fmt::usd(billed.iter().sum())),
                (_, lacking) => {
                    let asked = fmt::usd(billed.iter().sum());
                    format!("their summaries {about}${asked} at least, {lacking} not in it")
                }
            };
            format!("; {}, {summaries}", fmt::pluralize(n, "compaction"))
        }
    };
    let usd: f64 = others.iter().map(|(_, r)| r.summary.cost_usd).sum();
    if usd > 0.0 {
        let more = fmt::pluralize(others.len(), "other session");
        text += &format!("; {more}, not compared, cost ${} besides", fmt::usd(usd));
    }
    let cache = another_cache(&recorded).map(|text| ("cache", text));
    [("as recorded", text)].into_iter().chain(cache).collect()
}

/// Minimum difference, as a share of the prompts, from which a cache is another one.
const ANOTHER: f64 = 0.1;

/// Returns the shares of the prompts that the recorded cache and the simulated one served, if they are
/// so far apart that the dollars of a recording differ from all policies for this reason.
pub fn cache_shares(recorded: &Summary, reference: &Summary) -> Option<(f64, f64)> {
    let share = |s: &Summary| s.cache_read_tokens as f64 / s.input_tokens.max(1) as f64;
    let (real, simulated) = (share(recorded), share(reference));
    ((real - simulated).abs() > ANOTHER).then_some((real, simulated))
}

/// Describes recorded caches that served much less or more than the simulated one, and what the same
/// calls would have cost with that one. No policy saves this.
fn another_cache(recorded: &[(&ReportBlock<'_>, &RunRecord)]) -> Option<String> {
    let unlimited = |r: &&&RunRecord| r.strategy.standing == Standing::Hypothetical;
    let other = |(b, r): &(&ReportBlock<'_>, &RunRecord)| {
        let reference = b.runs.iter().find(unlimited)?;
        cache_shares(&r.summary, &reference.summary).map(|shares| (r.summary.clone(), shares))
    };
    let others: Vec<(Summary, (f64, f64))> = recorded.iter().filter_map(other).collect();
    let prompts = others.iter().map(|(r, _)| r.input_tokens as f64).sum::<f64>();
    let share = |of: fn(&(f64, f64)) -> f64| {
        let all = others.iter().map(|(r, shares)| r.input_tokens as f64 * of(shares));
        100.0 * all.sum::<f64>() / prompts
    };
    let usd = others.iter().map(|(r, _)| r.cost_usd).sum();
    let there: Option<f64> = others.iter().map(|(r, _)| r.cost_with_cache_usd).sum();
    (!others.is_empty()).then(|| {
        format!(
            "served {:.0} % of the prompts in {}, where the simulated one serves {:.0} %; with that \
             one, the recorded calls cost about ${}, not ${}",
            share(|s| s.0),
            fmt::sessions(others.len()),
            share(|s| s.1),
            fmt::known(there, fmt::usd),
            fmt::usd(usd)
        )
    })
}

fn is_recorded(r: &RunRecord) -> bool {
    r.strategy.standing == Standing::Recorded
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{testing, view};

    #[test]
    fn dollars_without_all_replies_are_a_lower_bound() {
        let told_of = |completed: u64| {
            let mut run = testing::run("s", "as-recorded", 1);
            run.strategy.standing = Standing::Recorded;
            (run.summary.cost_usd, run.summary.cost_estimate_usd) = (2.0, Some(2.0));
            (run.summary.steps_completed, run.summary.steps_total) = (completed, 14);
            let results = testing::of(vec![run]);
            let blocks = view::blocks(&results);
            cost_lines(&blocks.iter().collect::<Vec<_>>())[0].1.clone()
        };
        let whole = told_of(14);
        assert!(whole.starts_with("$2.000 in 1 session;"), "{whole}");
        let part = told_of(11);
        let want = "$2.000 in 1 session at least; 3 replies without counters not in it;";
        assert!(part.starts_with(want), "{part}");
    }

    #[test]
    fn another_cache_is_told_where_it_decides() {
        let told_of = |read: u64| {
            let mut results =
                testing::of(["as-recorded", "reference"].map(|s| testing::run("s", s, 1)));
            results.runs[0].strategy.standing = Standing::Recorded;
            for (run, read) in results.runs.iter_mut().zip([read, 900]) {
                (run.summary.input_tokens, run.summary.cache_read_tokens) = (1_000, read);
            }
            let blocks = view::blocks(&results);
            cost_lines(&blocks.iter().collect::<Vec<_>>()).get(1).map(|(_, text)| text.clone())
        };
        let other = told_of(400).unwrap();
        assert!(other.contains("served 40 % of the prompts in 1 session, where"), "{other}");
        assert!(other.contains("the simulated one serves 90 %"), "{other}");
        assert_eq!(told_of(850), None);
    }
}
