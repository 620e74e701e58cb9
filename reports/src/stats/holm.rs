//! Holm's step-down correction for comparing many strategies at once.

/// Adjusted p-values in the given order: the i-th smallest of m times `m − i + 1`, at most 1, and
/// never below the adjusted value of a smaller one.
///
/// If adjusted values up to 5 % are significant, the family-wise error rate is at most 5 %, for any
/// dependence between the strategies.
pub(crate) fn adjusted(ps: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..ps.len()).collect();
    order.sort_by(|a, b| ps[*a].total_cmp(&ps[*b]));
    let mut out = vec![1.0; ps.len()];
    let mut so_far = 0.0_f64;
    for (done, i) in order.into_iter().enumerate() {
        so_far = so_far.max(ps[i] * (ps.len() - done) as f64).min(1.0);
        out[i] = so_far;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_by_hand() {
        // Sorted 0.01, 0.02, 0.03, 0.04 × 4, 3, 2, 1 = 0.04, 0.06, 0.06, 0.04 → the last may not
        // fall below 0.06.
        let found = adjusted(&[0.04, 0.01, 0.03, 0.02]);
        let expected = [0.06, 0.04, 0.06, 0.06];
        assert!(found.iter().zip(expected).all(|(f, e)| (f - e).abs() < 1e-12), "{found:?}");
        assert_eq!(adjusted(&[0.6, 0.7]), [1.0, 1.0]);
        assert_eq!(adjusted(&[]), Vec::<f64>::new());
        assert_eq!(adjusted(&[0.03]), [0.03]);
    }
}
