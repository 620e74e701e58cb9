//! Paired sign-flip test: the probability that the mean is as far from 0 if the labels of each pair
//! are exchanged at random.

use ctxbench_util::rng::SplitMix64;

use super::Sampling;

/// Maximum number of sessions for which all sign patterns are enumerated: 2^19 without mirror
/// images.
const EXACT: usize = 20;

/// Relative tolerance for sums, as a share of Σ|d|: sums of the same numbers in another order have
/// other rounding errors.
const TIE: f64 = 1e-9;

/// Two-sided p-value of the hypothesis "each difference is as likely to have the other sign". The
/// statistic is |mean|.
///
/// Exact up to 20 sessions, as a multiple of `2^(1 − n)`. Beyond that, random patterns are drawn
/// and p = `(1 + hits) ÷ (1 + draws)`. The observed pattern counts as one draw, so p is never 0.
pub(crate) fn p_value(differences: &[f64], plan: &Sampling) -> f64 {
    let n = differences.len();
    if n == 0 {
        return 1.0;
    }
    let observed = differences.iter().sum::<f64>().abs();
    let near = observed - TIE * differences.iter().map(|d| d.abs()).sum::<f64>();
    let tables: Vec<[f64; 256]> = differences.chunks(8).map(signed_sums).collect();
    let sum = |bytes: &mut dyn FnMut() -> u8| {
        tables.iter().map(|t| t[usize::from(bytes())]).sum::<f64>().abs()
    };
    if n <= EXACT {
        let patterns = 1_u32 << (n - 1);
        let hits = (0..patterns).filter(|pattern| sum(&mut bytes_of(*pattern)) >= near).count();
        return hits as f64 / f64::from(patterns);
    }
    let mut rng = SplitMix64::new(plan.seed);
    let hits = (0..plan.draws)
        .filter(|_| {
            let (mut left, mut word) = (0, 0);
            let mut byte = || {
                if left == 0 {
                    (left, word) = (8, rng.bits());
                }
                left -= 1;
                word = word.rotate_left(8);
                word as u8
            };
            sum(&mut byte) >= near
        })
        .count();
    (1 + hits) as f64 / (1 + plan.draws) as f64
}

/// The bytes of a pattern, the lowest first.
fn bytes_of(mut pattern: u32) -> impl FnMut() -> u8 {
    move || {
        let byte = pattern as u8;
        pattern >>= 8;
        byte
    }
}

/// Σ ±d of up to eight differences for each pattern of signs, a set bit for minus.
fn signed_sums(differences: &[f64]) -> [f64; 256] {
    std::array::from_fn(|pattern| {
        differences
            .iter()
            .enumerate()
            .map(|(i, d)| if pattern >> i & 1 == 0 { *d } else { -*d })
            .sum()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::PLAN;

    #[test]
    fn small_cases_by_hand() {
        // Signs of 1, 2, 3: |sum| is 6, 4, 2, 0 and again by mirror; two of eight patterns reach 6.
        assert_eq!(p_value(&[1.0, 2.0, 3.0], &PLAN), 0.25);
        // −1 + 2 + 3 = 4: four of eight.
        assert_eq!(p_value(&[-1.0, 2.0, 3.0], &PLAN), 0.5);
        assert_eq!(p_value(&[5.0], &PLAN), 1.0);
        assert_eq!(p_value(&[], &PLAN), 1.0);
        assert_eq!(p_value(&[0.0; 12], &PLAN), 1.0);
    }

    #[test]
    fn ten_of_one_sign_reach_the_smallest_p_and_zeros_do_not_help() {
        let ten: Vec<f64> = (1..=10).map(|i| -0.1 * f64::from(i)).collect();
        assert_eq!(p_value(&ten, &PLAN), 2.0 / 1024.0);
        let zeros: Vec<f64> = ten.iter().copied().chain([0.0; 7]).collect();
        assert_eq!(p_value(&zeros, &PLAN), 2.0 / 1024.0);
    }

    #[test]
    fn darwins_maize() {
        // Fisher (1935), The Design of Experiments §21: 15 pairs, eighths of an inch; 863 of 32,768
        // patterns are as far on one side, including ties with the observed sum, hence 1,726 on
        // both.
        let darwin = [
            49.0, -67.0, 8.0, 16.0, 6.0, 23.0, 28.0, 41.0, 14.0, 29.0, 56.0, 24.0, 75.0, 60.0,
            -48.0,
        ];
        assert_eq!(p_value(&darwin, &PLAN), 1_726.0 / 32_768.0);
    }

    #[test]
    fn random_patterns_agree_with_all_of_them() {
        let twenty: Vec<f64> = (0..20).map(|i| f64::from(i * 7 % 20) - 6.0).collect();
        let exact = p_value(&twenty, &PLAN);
        // Six sessions without a difference do not change the distribution, but make it 26
        // sessions.
        let longer: Vec<f64> = twenty.iter().copied().chain([0.0; 6]).collect();
        let drawn = p_value(&longer, &PLAN);
        let deviation = (exact * (1.0 - exact) / PLAN.draws as f64).sqrt();
        assert!(
            (drawn - exact).abs() < 4.0 * deviation + 1.0 / PLAN.draws as f64,
            "{exact} {drawn}"
        );
        assert!(exact > 0.0 && exact < 0.2, "{exact}: a case with something to miss");
        // No drawn pattern is as far: only the observed pattern counts.
        assert_eq!(p_value(&[1.0; 40], &PLAN), 1.0 / 20_001.0);
    }

    #[test]
    fn equal_sums_in_another_order_are_ties() {
        // 0.1 + 0.2 − 0.3 is not 0 in floating point; every pattern reaches a sum of 0.
        assert_eq!(p_value(&[0.1, 0.2, -0.3], &PLAN), 1.0);
    }
}
