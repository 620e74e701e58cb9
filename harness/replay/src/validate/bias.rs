//! Bias of our token counts, measured by the growth of prompts.

use serde::Serialize;

use super::calls::Calls;

/// Minimum growth for a comparison, tokens. Smaller growth measures the overhead of a message
/// instead of its text.
const SMALLEST: u64 = 100;

/// Cost of a token and of a content block, by weighted least squares over all compared calls.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Fit {
    /// Provider's tokens per token that we count.
    pub factor: f64,
    /// Provider's tokens per content block beyond its text.
    pub per_block: f64,
}

/// Bias of our counts for a recording.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Bias {
    pub calls: usize,
    /// Our count of the added content, tokens.
    pub ours: u64,
    /// Growth by the provider's counters, tokens.
    pub provider: u64,
    /// provider ÷ ours over all compared calls.
    pub ratio: Option<f64>,
    /// Text and overhead, fitted separately. `None` with fewer than ten calls.
    pub fit: Option<Fit>,
}

/// Compares the growth of each call. Skips calls after a compaction or a step back, calls of other
/// models, content that cannot be counted (images, encrypted reasoning), and growth below 100
/// tokens.
pub fn bias(r: &Calls) -> Bias {
    let previous = r.previous();
    let mut samples: Vec<Sample> = Vec::new();
    for (i, c) in r.calls.iter().enumerate() {
        let Some(p) = previous[i]
            .filter(|p| c.before == Some(*p) && r.calls[*p].model == c.model && !c.adopted)
        else {
            continue;
        };
        let before = &r.calls[p];
        let (ours, unknown) =
            (before.reply.tokens + c.inputs.tokens, before.reply.unknown + c.inputs.unknown);
        let grown = c.counters.prompt().saturating_sub(before.counters.prompt());
        if unknown == 0 && ours > 0 && grown >= SMALLEST {
            let blocks = (before.reply_blocks + c.input_blocks) as f64;
            samples.push(Sample { ours, grown, blocks });
        }
    }
    let (ours, provider) = samples.iter().fold((0, 0), |(a, b), s| (a + s.ours, b + s.grown));
    Bias {
        calls: samples.len(),
        ours,
        provider,
        ratio: (ours > 0).then(|| provider as f64 / ours as f64),
        fit: fit(&samples),
    }
}

struct Sample {
    ours: u64,
    grown: u64,
    blocks: f64,
}

/// Fits `grown = factor · ours + per_block · blocks` by least squares. Each call has the weight 1 /
/// grown², so small and large calls count equally. The second pass drops calls with an error above
/// three times the median, because they contain text that the file lacks.
fn fit(samples: &[Sample]) -> Option<Fit> {
    const FEWEST: usize = 10;
    let solve = |of: &[&Sample]| {
        let (mut xx, mut xb, mut bb, mut xy, mut by) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for s in of {
            let (x, b, y, w) =
                (s.ours as f64, s.blocks, s.grown as f64, 1.0 / (s.grown as f64).powi(2));
            xx += w * x * x;
            xb += w * x * b;
            bb += w * b * b;
            xy += w * x * y;
            by += w * b * y;
        }
        let d = xx * bb - xb * xb;
        (of.len() >= FEWEST && d.abs() > 1e-12)
            .then(|| Fit { factor: (xy * bb - by * xb) / d, per_block: (by * xx - xy * xb) / d })
    };
    let all: Vec<&Sample> = samples.iter().collect();
    let first = solve(&all)?;
    let off = |s: &Sample| {
        (first.factor * s.ours as f64 + first.per_block * s.blocks - s.grown as f64).abs()
            / s.grown as f64
    };
    let limit = 3.0 * median(samples.iter().map(off).collect())?;
    let near: Vec<&Sample> = samples.iter().filter(|s| off(s) <= limit).collect();
    solve(&near).or(Some(first))
}

fn median(mut v: Vec<f64>) -> Option<f64> {
    v.sort_by(f64::total_cmp);
    let (n, m) = (v.len(), v.len() / 2);
    match n {
        0 => None,
        _ if n % 2 == 1 => Some(v[m]),
        _ => Some((v[m - 1] + v[m]) / 2.0),
    }
}

#[cfg(test)]
mod tests {
    use super::{Sample, fit, median};

    #[test]
    fn the_fit_finds_the_factor_and_the_overhead() {
        // Generated with 1.25 per token and 8 per block, and one call with 10,000 hidden tokens,
        // which must not affect the fit.
        let sample = |ours: u64, blocks: f64, hidden: u64| Sample {
            ours,
            grown: (1.25 * ours as f64 + 8.0 * blocks) as u64 + hidden,
            blocks,
        };
        let mut samples: Vec<Sample> =
            (1..=20).map(|n| sample(n * 100, (n % 4 + 1) as f64, 0)).collect();
        samples.push(sample(400, 2.0, 10_000));
        let f = fit(&samples).unwrap();
        assert!((f.factor - 1.25).abs() < 1e-3 && (f.per_block - 8.0).abs() < 0.5, "{f:?}");
        assert_eq!(fit(&samples[..9]), None);
    }

    #[test]
    fn the_median_of_an_even_row_is_between_its_middles() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }
}
