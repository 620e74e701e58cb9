//! Choosing on one half of the sessions and looking at the other, many times.

use ctxbench_core::rng::SplitMix64;

use crate::stats::PLAN;

/// Random halves: one in 200 are then ten of them.
pub(super) const SPLITS: usize = 2_000;

/// What is chosen by: a list of sessions per row.
pub(super) struct Field {
    /// The lowest mean wins.
    pub(super) scores: Vec<Vec<f64>>,
    pub(super) conditions: Vec<Values>,
}

/// What a condition asks of, and how much.
pub(super) struct Values {
    /// A list of sessions per row; `None` = the session has no such figure.
    pub(super) values: Vec<Vec<Option<f64>>>,
    pub(super) bound: f64,
    /// Whether the mean must reach the bound, rather than not exceed it.
    pub(super) floor: bool,
}

impl Values {
    /// Mean over the sessions that have the figure.
    pub(super) fn mean(&self, row: usize, sessions: &[usize]) -> Option<f64> {
        let known = || sessions.iter().filter_map(|s| self.values[row][*s]);
        let n = known().count();
        (n > 0).then(|| known().sum::<f64>() / n as f64)
    }

    fn holds(&self, row: usize, sessions: &[usize]) -> bool {
        self.mean(row, sessions)
            .is_some_and(|x| if self.floor { x >= self.bound } else { x <= self.bound })
    }
}

impl Field {
    pub(super) fn score(&self, row: usize, sessions: &[usize]) -> f64 {
        let sum: f64 = sessions.iter().map(|s| self.scores[row][*s]).sum();
        sum / sessions.len() as f64
    }

    /// Whether a row meets all conditions on these sessions.
    pub(super) fn holds(&self, row: usize, sessions: &[usize]) -> bool {
        self.conditions.iter().all(|c| c.holds(row, sessions))
    }

    /// The row with the lowest mean of those that meet all conditions, the first of several.
    pub(super) fn choose(&self, sessions: &[usize]) -> Option<usize> {
        let fit = (0..self.scores.len()).filter(|row| self.holds(*row, sessions));
        fit.map(|row| (self.score(row, sessions), row))
            .min_by(|(a, _), (b, _)| a.total_cmp(b))
            .map(|(_, row)| row)
    }
}

/// What came of the halves.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Splits {
    /// Halves that chose each row.
    pub(super) chosen: Vec<usize>,
    /// Halves on which no row met the conditions.
    pub(super) none: usize,
    /// Halves whose choice met the conditions on the other half.
    pub(super) held: usize,
    /// The mean score of the choices on the other halves.
    pub(super) score: Option<f64>,
    /// Of choices that met the conditions on the other half: how much worse each scored there than
    /// the row that would have been chosen there. Ascending, never negative.
    pub(super) regrets: Vec<f64>,
}

/// Half of the sessions, drawn at random, chooses; the other half tells what that was worth.
/// `None` below two sessions.
pub(super) fn splits(field: &Field) -> Option<Splits> {
    let sessions = field.scores.first().map_or(0, Vec::len);
    if sessions < 2 {
        return None;
    }
    let mut out = Splits {
        chosen: vec![0; field.scores.len()],
        none: 0,
        held: 0,
        score: None,
        regrets: vec![],
    };
    let mut rng = SplitMix64::new(PLAN.seed);
    let mut order: Vec<usize> = (0..sessions).collect();
    let mut sum = 0.0;
    for _ in 0..SPLITS {
        for i in (1..sessions).rev() {
            order.swap(i, rng.below(i as u64 + 1) as usize);
        }
        let (own, other) = order.split_at(sessions.div_ceil(2));
        let Some(row) = field.choose(own) else {
            out.none += 1;
            continue;
        };
        out.chosen[row] += 1;
        let score = field.score(row, other);
        sum += score;
        if field.holds(row, other) {
            out.held += 1;
            // The choice itself meets them there, so there is a best one.
            let best = field.choose(other).map_or(score, |best| field.score(best, other));
            out.regrets.push(score - best);
        }
    }
    let choices = SPLITS - out.none;
    out.score = (choices > 0).then(|| sum / choices as f64);
    out.regrets.sort_by(f64::total_cmp);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(scores: Vec<Vec<f64>>) -> Field {
        Field { scores, conditions: vec![] }
    }

    #[test]
    fn who_is_best_everywhere_is_chosen_everywhere_and_costs_nothing() {
        let found = splits(&plain(vec![vec![2.0; 7], vec![1.0; 7], vec![3.0; 7]])).unwrap();
        assert_eq!((found.chosen, found.none, found.held), (vec![0, SPLITS, 0], 0, SPLITS));
        assert_eq!((found.score, found.regrets), (Some(1.0), vec![0.0; SPLITS]));
        assert_eq!(splits(&plain(vec![vec![1.0]])), None);
        assert_eq!(splits(&plain(vec![])), None);
    }

    #[test]
    fn two_sessions_that_disagree_are_chosen_on_evenly_and_wrongly() {
        // The half of the first session chooses row 0, which costs 5 more on the other; and back.
        let found = splits(&plain(vec![vec![1.0, 6.0], vec![6.0, 1.0]])).unwrap();
        let (first, second) = (found.chosen[0], found.chosen[1]);
        assert_eq!(first + second, SPLITS);
        // Half of 2,000 with a deviation of 22; five deviations.
        assert!(first.abs_diff(SPLITS / 2) < 112, "{first}");
        assert_eq!((found.score, found.regrets), (Some(6.0), vec![5.0; SPLITS]));
    }

    #[test]
    fn conditions_are_asked_of_the_mean_over_known_values() {
        let kept = |values: Vec<Vec<Option<f64>>>, floor| Values { values, bound: 90.0, floor };
        let mut field = plain(vec![vec![1.0, 1.0, 1.0], vec![2.0, 2.0, 2.0]]);
        let values = vec![vec![Some(80.0), None, Some(99.0)], vec![Some(95.0); 3]];
        field.conditions = vec![kept(values.clone(), true)];
        assert_eq!(field.conditions[0].mean(0, &[0, 1, 2]), Some(89.5));
        assert_eq!(field.choose(&[0, 1, 2]), Some(1));
        assert_eq!(field.choose(&[1, 2]), Some(0));
        // Unknown on all of them: not met.
        assert_eq!(field.choose(&[1]), Some(1));
        field.conditions.push(kept(values, false));
        assert_eq!(field.choose(&[0, 1, 2]), None);
    }

    #[test]
    fn a_choice_that_breaks_its_condition_on_the_other_half_is_counted_and_priced_by_none() {
        // The first row is cheaper and meets the condition in the first session only.
        let mut field = plain(vec![vec![1.0, 1.0], vec![2.0, 2.0]]);
        let values = vec![vec![Some(95.0), Some(10.0)], vec![Some(95.0); 2]];
        field.conditions = vec![Values { values, bound: 90.0, floor: true }];
        let found = splits(&field).unwrap();
        // Chosen on the first session, it fails on the second. The second row, chosen on the second
        // session, costs 1 more on the first.
        assert_eq!(found.held, found.chosen[1]);
        assert_eq!(found.regrets, vec![1.0; found.chosen[1]]);
        assert!(found.chosen.iter().all(|n| *n > 800));
    }
}
