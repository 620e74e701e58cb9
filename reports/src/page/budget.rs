//! Divides the size limit of the page among sessions. Texts are dropped first, then curves.
//!
//! Each session may use an equal share of the remaining bytes, so small sessions leave room for
//! later ones. It gets the first part that fits. If none fits, only its figures remain.

use super::chunk::{self, Detail};
use super::overview::Overview;
use crate::view::ReportBlock;

/// Maximum size of a page, bytes, so that it can be sent as an attachment.
pub(super) const MAX_BYTES: usize = 20_000_000;

/// Size of the HTML element around a chunk, bytes.
const AROUND: usize = 64;

/// Bytes reserved for [`Packed::note`].
const NOTE: usize = 1_000;

/// The chunks of all sessions, in their order.
#[derive(Default)]
pub(super) struct Packed {
    /// Chunk of each session, with its level of detail; `None` = left out.
    pub(super) chunks: Vec<Option<(String, Detail)>>,
    /// Remaining budget, bytes.
    left: usize,
}

impl Packed {
    /// Creates an empty list of chunks that take at most `room` bytes together.
    pub(super) fn new(room: usize) -> Packed {
        // Reserve room for the note about omitted parts.
        Packed { left: room.saturating_sub(NOTE), ..Packed::default() }
    }

    /// Packs the next session, the first of `left` remaining ones.
    pub(super) fn add(&mut self, block: &ReportBlock<'_>, overview: &Overview<'_>, to_come: usize) {
        let share = (self.left / to_come).saturating_sub(AROUND);
        let parts = Detail::ALL.into_iter().filter(|_| share > 0);
        let fitting = parts.into_iter().find_map(|part| {
            let chunk = chunk::pack(block, overview, part);
            (chunk.len() <= share).then_some((chunk, part))
        });
        self.left -= fitting.as_ref().map_or(0, |(chunk, _)| chunk.len() + AROUND);
        self.chunks.push(fitting);
    }

    /// Note for readers about omitted parts; empty if there are none.
    pub(super) fn note(&self) -> String {
        let parts = || self.chunks.iter().map(|chunk| chunk.as_ref().map(|(_, part)| *part));
        let count = |part: Option<Detail>| parts().filter(|p| *p == part).count();
        let told = [
            (count(Some(Detail::Short)), "with words that are cut short"),
            (count(Some(Detail::NoTexts)), "without words"),
            (count(Some(Detail::Thin)), "without words and with some of their steps only"),
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
            MAX_BYTES / 1_000_000,
            self.chunks.len(),
            told.join(", ")
        )
    }
}
