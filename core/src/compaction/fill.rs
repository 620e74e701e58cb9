//! Filling a budget from the newest item backwards.

/// The decision about one item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    Drop,
    /// Keep it whole.
    Full,
    /// Cut it to this size, the rest of the budget.
    Truncate(u64),
}

/// Walks from the newest item (the last) backwards and keeps items while they fit. The first one that
/// does not fit is cut to the rest of the budget, and everything older is dropped.
pub fn newest_first(sizes: &[u64], budget: u64) -> Vec<Keep> {
    let mut out = vec![Keep::Drop; sizes.len()];
    let mut left = budget;
    for (slot, &size) in out.iter_mut().zip(sizes).rev() {
        if left == 0 {
            break;
        }
        if size <= left {
            *slot = Keep::Full;
            left -= size;
        } else {
            *slot = Keep::Truncate(left);
            break;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn newest_first_never_exceeds_the_budget(sizes in prop::collection::vec(0u64..50, 0..20), budget in 0u64..200) {
            let kept = newest_first(&sizes, budget);
            let used: u64 = kept.iter().zip(&sizes).map(|(k, s)| match k { Keep::Drop => 0, Keep::Full => *s, Keep::Truncate(n) => *n }).sum();
            prop_assert!(used <= budget);
            prop_assert!(kept.iter().filter(|k| matches!(k, Keep::Truncate(_))).count() <= 1);
        }
    }
}
