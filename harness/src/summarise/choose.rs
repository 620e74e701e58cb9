//! Chooses candidates under a budget.

use super::collect::Unit;
use super::topic::Topic;

/// Indices of the chosen candidates, best first, whose guessed tokens together stay within `budget`.
///
/// Weight counts less for what is long. A first pass keeps every topic within its share; a second fills what is left.
pub(super) fn choose(units: &[Unit<'_>], budget: u64) -> Vec<usize> {
    let rank = |u: &Unit<'_>| u.score / (1.0 + u.tokens as f32 / 150.0);
    let mut order: Vec<usize> = (0..units.len()).collect();
    order.sort_by(|&a, &b| rank(&units[b]).total_cmp(&rank(&units[a])).then(units[a].order.cmp(&units[b].order)));
    let mut used = [0u64; Topic::ALL.len()];
    let mut left = budget;
    let mut taken = vec![false; units.len()];
    let mut out = Vec::new();
    for capped in [true, false] {
        for &i in &order {
            let u = &units[i];
            let cost = u64::from(u.tokens);
            let spent = &mut used[u.topic as usize];
            let full = capped && (*spent + cost) as f64 > u.topic.share() * budget as f64;
            if taken[i] || full || cost > left {
                continue;
            }
            taken[i] = true;
            *spent += cost;
            left -= cost;
            out.push(i);
        }
    }
    out
}
