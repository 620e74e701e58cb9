//! Bias of our token counts, measured by the growth of prompts.

use serde::Serialize;

use super::calls::Calls;

/// Minimum growth for a comparison, tokens. Smaller growth measures the overhead of a message
/// instead of its text.
const SMALLEST: u64 = 100;

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
}

/// Compares the growth of each call. Skips calls after a compaction or a step back, calls of other
/// models, content that cannot be counted (images, encrypted reasoning), and growth below 100
/// tokens.
pub fn bias(r: &Calls) -> Bias {
    let previous = r.previous();
    let mut bias = Bias::default();
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
            bias.calls += 1;
            bias.ours += ours;
            bias.provider += grown;
        }
    }
    bias.ratio = (bias.ours > 0).then(|| bias.provider as f64 / bias.ours as f64);
    bias
}
