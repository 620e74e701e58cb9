//! How much of each session fits into the page. Words give way first, then curves.
//!
//! Each session may take an equal share of what is left when its turn comes, so small ones leave
//! room for those behind them. The first [`Part`] that fits into the share is taken; where none
//! does, the session keeps its figures and loses what happened in it.

use super::chunk::{self, Part};
use super::overview::Overview;
use crate::view::Block;

/// Bytes of the element around a chunk.
const AROUND: usize = 64;

/// The chunks of all sessions, in their order.
#[derive(Default)]
pub(super) struct Packed {
    /// `None` = left out.
    pub(super) chunks: Vec<Option<String>>,
    parts: Vec<Option<Part>>,
}

/// Packs every session into at most `room` bytes.
pub(super) fn pack(blocks: &[Block<'_>], overview: &Overview<'_>, room: usize) -> Packed {
    let mut packed = Packed::default();
    // What the page says of parts that were left out takes room, too.
    let mut left = room.saturating_sub(NOTE);
    for (i, block) in blocks.iter().enumerate() {
        let share = (left / (blocks.len() - i)).saturating_sub(AROUND);
        let fitting = Part::ALL.into_iter().find_map(|part| {
            let chunk = chunk::pack(block, overview, part);
            (chunk.len() <= share).then_some((chunk, part))
        });
        left -= fitting.as_ref().map_or(0, |(chunk, _)| chunk.len() + AROUND);
        let (chunk, part) = fitting.unzip();
        packed.chunks.push(chunk);
        packed.parts.push(part);
    }
    packed
}

/// Bytes kept for [`Packed::note`].
const NOTE: usize = 1_000;

impl Packed {
    /// What was left out, for a reader; empty = nothing.
    pub(super) fn note(&self) -> String {
        let count = |part: Option<Part>| self.parts.iter().filter(|p| **p == part).count();
        let told = [
            (count(Some(Part::Short)), "with words that are cut short"),
            (count(Some(Part::NoTexts)), "without words"),
            (count(Some(Part::Thin)), "without words and with some of their steps only"),
            (count(None), "by their figures only"),
        ];
        let told: Vec<String> =
            told.iter().filter(|(n, _)| *n > 0).map(|(n, how)| format!("{n} {how}")).collect();
        if told.is_empty() {
            return String::new();
        }
        format!(
            "So that this page stays below {} MB, it holds some of its {} sessions in part: {}. \
             results.json has everything.",
            super::MOST_BYTES / 1_000_000,
            self.parts.len(),
            told.join(", ")
        )
    }
}
