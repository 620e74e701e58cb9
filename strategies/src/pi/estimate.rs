//! pi's two token estimators and the output limit of its requests (docs/sources/pi.md §1, §4).

use std::sync::Arc;

use ctxbench_core::block::Block;
use ctxbench_core::engine::Engine;
use ctxbench_core::settings::scale_tokens;
use ctxbench_core::tokens::utf16_len;

/// Minimum number of tokens that stay free in addition to input and reply (docs/sources/pi.md §4).
const MARGIN: u64 = 4_096;
/// Share of the input that is kept free if the reply still has room (docs/sources/pi.md §4).
const MARGIN_PERCENT: u64 = 15;
/// Minimum room for the reply at which that share is kept free (docs/sources/pi.md §4).
const ROOM: u64 = 32_768;

/// Estimates tokens for compaction decisions: a quarter of the characters, rounded up.
pub(super) fn quarter(chars: u64) -> u64 {
    chars.div_ceil(4)
}

/// Estimates tokens for the output limit of a request: 3.5 characters per token, rounded up.
pub(super) fn by_three_and_a_half(chars: u64) -> u64 {
    (2 * chars).div_ceil(7)
}

/// Characters of the fixed part of the context: the texts, and the tools as JSON.
pub(super) struct Base {
    pub(super) text: u64,
    pub(super) tools: u64,
}

impl Base {
    pub(super) fn from_engine(s: &Engine) -> Base {
        let f = &s.fixed;
        let blocks = f.base.iter().chain(&f.repo_map).chain(&f.context).chain(&f.files);
        Base {
            text: blocks.map(|b| utf16_len(&b.text)).sum(),
            tools: f.tools.as_ref().map_or(0, |t| utf16_len(t.json.get())),
        }
    }

    /// Estimates the tokens of a request without tools, at 3.5 characters per token.
    pub(super) fn by_blocks(blocks: &[Arc<Block>]) -> u64 {
        blocks.iter().map(|b| by_three_and_a_half(utf16_len(&b.text))).sum()
    }

    /// Estimates the tokens of the fixed part at 4 characters per token.
    pub(super) fn quarter(&self) -> u64 {
        quarter(self.text + self.tools)
    }

    /// Estimates the tokens of the fixed part at 3.5 characters per token.
    pub(super) fn by_three_and_a_half(&self) -> u64 {
        by_three_and_a_half(self.text) + by_three_and_a_half(self.tools)
    }
}

/// Returns the output limit of a request in tokens, given the estimated `input` tokens.
pub(super) fn largest_reply(window: u64, most: u64, input: u64, scale: f64) -> u64 {
    let (margin, room) = (scale_tokens(MARGIN, scale), scale_tokens(ROOM, scale));
    if window == 0 {
        return most.max(1);
    }
    let left = window.saturating_sub(input);
    let share = (input * MARGIN_PERCENT).div_ceil(100);
    let wide = left.saturating_sub(margin.max(share));
    let free = if wide < room { room.min(left.saturating_sub(margin)) } else { wide };
    most.min(free.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_estimators_round_up() {
        assert_eq!((quarter(0), quarter(1), quarter(4), quarter(5)), (0, 1, 1, 2));
        let by = by_three_and_a_half;
        assert_eq!((by(0), by(1), by(7), by(8)), (0, 1, 2, 3));
    }

    #[test]
    fn the_reply_fits_beside_the_input() {
        // docs/sources/pi.md §4: a window of 20,000 with 16,000 tokens in it leaves less than the
        // margin.
        assert_eq!(largest_reply(20_000, 2_000, 16_000, 1.0), 1);
        assert_eq!(largest_reply(20_000, 2_000, 15_903, 1.0), 1);
        assert_eq!(largest_reply(20_000, 2_000, 15_000, 1.0), 904);
        assert_eq!(largest_reply(20_000, 2_000, 5_000, 1.0), 2_000);
        // A window of 200,000 with 100,000 tokens of input: 85,000 remain after the margin of 15 %,
        // which is more than the limit of 64,000.
        assert_eq!(largest_reply(200_000, 64_000, 100_000, 1.0), 64_000);
        // With 140,000, the margin is 21,000, which leaves 39,000.
        assert_eq!(largest_reply(200_000, 64_000, 140_000, 1.0), 39_000);
        // With 150,000 the margin of 15 % would leave 27,500, so only the fixed margin is kept and
        // the limit is 32,768.
        assert_eq!(largest_reply(200_000, 64_000, 150_000, 1.0), 32_768);
        assert_eq!(largest_reply(200_000, 64_000, 190_000, 1.0), 5_904);
        assert_eq!(largest_reply(0, 64_000, 190_000, 1.0), 64_000);
    }
}
