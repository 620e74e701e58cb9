//! Filling a budget from the newest item back.

/// What becomes of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// It vanishes.
    No,
    /// It fits and stays as it is.
    Whole,
    /// The first that does not fit: this much of the budget is left for it.
    Cut(u64),
}

/// Walks from the newest item (the last) back; whole items are kept while they fit. The first that
/// does not fit gets what is left, if anything is left, and everything older vanishes.
pub fn newest_first(sizes: &[u64], budget: u64) -> Vec<Kept> {
    let mut out = vec![Kept::No; sizes.len()];
    let mut left = budget;
    for (slot, &size) in out.iter_mut().zip(sizes).rev() {
        if left == 0 {
            break;
        }
        if size <= left {
            *slot = Kept::Whole;
            left -= size;
        } else {
            *slot = Kept::Cut(left);
            break;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn recorded_examples() {
        // docs/sources/codex.md §1.4 d_usercap: 16,501 + 14,851 + 2 tokens in 20,000.
        assert_eq!(
            newest_first(&[16_501, 14_851, 2], 20_000),
            [Kept::Cut(5_147), Kept::Whole, Kept::Whole]
        );
        // x_exact_cap: the newest takes all, the older vanishes.
        assert_eq!(newest_first(&[5, 20_000], 20_000), [Kept::No, Kept::Whole]);
    }

    proptest! {
        #[test]
        fn never_more_than_the_budget(sizes in prop::collection::vec(0u64..50, 0..20), budget in 0u64..200) {
            let kept = newest_first(&sizes, budget);
            let used: u64 = kept.iter().zip(&sizes).map(|(k, s)| match k { Kept::No => 0, Kept::Whole => *s, Kept::Cut(n) => *n }).sum();
            prop_assert!(used <= budget);
            prop_assert!(kept.iter().filter(|k| matches!(k, Kept::Cut(_))).count() <= 1);
        }
    }
}
