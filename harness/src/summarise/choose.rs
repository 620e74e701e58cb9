//! Selection of candidates under a token budget.

use super::collect::SummaryCandidate;
use super::topic::Topic;

/// Passes over the candidates.
#[derive(Clone, Copy)]
enum Pass {
    Asked,
    Best,
    Share,
    Rest,
}

/// Returns the indices of the chosen candidates, best first. The sum of their estimated tokens is
/// at most `budget`.
///
/// Long candidates have less weight. Text on the user's focus comes first, within half of the
/// budget: a model with such an instruction writes mainly about it, and does not drop the rest.
/// This is an assumption; no figure is published. Then every topic gets its best candidate, so that
/// no heading stays empty without need. Then topics fill up within their shares, and the rest is
/// chosen by weight alone.
pub(super) fn choose(units: &[SummaryCandidate<'_>], budget: u64) -> Vec<usize> {
    let rank = |u: &SummaryCandidate<'_>| u.score / (1.0 + u.tokens as f32 / 150.0);
    let mut order: Vec<usize> = (0..units.len()).collect();
    order.sort_by(|&a, &b| {
        rank(&units[b]).total_cmp(&rank(&units[a])).then(units[a].order.cmp(&units[b].order))
    });
    let mut used = [0u64; Topic::ALL.len()];
    let mut asked = 0;
    let mut left = budget;
    let mut taken = vec![false; units.len()];
    let mut out = Vec::new();
    for pass in [Pass::Asked, Pass::Best, Pass::Share, Pass::Rest] {
        for &i in &order {
            let u = &units[i];
            let cost = u64::from(u.tokens);
            let spent = &mut used[u.topic as usize];
            let full = match pass {
                Pass::Asked => !u.asked || asked + cost > budget / 2,
                Pass::Best => *spent > 0 || cost > budget / 10,
                Pass::Share => (*spent + cost) as f64 > u.topic.share() * budget as f64,
                Pass::Rest => false,
            };
            if taken[i] || full || cost > left {
                continue;
            }
            taken[i] = true;
            *spent += cost;
            asked += if u.asked { cost } else { 0 };
            left -= cost;
            out.push(i);
        }
    }
    out
}
