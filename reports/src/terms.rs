//! Scope of one conclusion: the sessions of one model, with one summariser if there are several.

use crate::fmt;
use crate::group::grouped;
use crate::record::RunRecord;
use crate::view::ReportBlock;

/// Blocks with a shared conclusion.
pub(crate) struct Terms<'b, 'a> {
    pub(crate) model: &'a str,
    /// Summariser, if there are several.
    pub(crate) summariser: Option<&'a str>,
    pub(crate) blocks: Vec<&'b ReportBlock<'a>>,
}

impl<'a> Terms<'_, 'a> {
    /// Model and summariser, for a heading.
    pub(crate) fn name(&self) -> String {
        let summaries = self.summariser.map(|s| format!(", summaries: {}", fmt::one_line(s)));
        fmt::one_line(self.model) + &summaries.unwrap_or_default()
    }

    /// Suffix of file names, as in the blocks.
    pub(crate) fn suffix(&self) -> String {
        self.blocks.iter().map(|b| b.suffix()).max_by_key(String::len).unwrap_or_default()
    }

    /// Runs of sessions that are evidence.
    pub(crate) fn evidence(&self) -> Vec<&'a RunRecord> {
        let blocks = self.blocks.iter().filter(|b| b.first().is_evidence());
        blocks.flat_map(|b| b.runs.iter().copied()).collect()
    }
}

/// Each model with each summariser, in the order of the blocks. Sessions without a summary belong
/// to every summariser of their model.
pub(crate) fn terms<'b, 'a>(blocks: &'b [ReportBlock<'a>]) -> Vec<Terms<'b, 'a>> {
    let all = blocks.iter().map(|b| (b.first().model.as_str(), b.summariser));
    let mut keys: Vec<_> = grouped(all, |key| *key).into_iter().map(|same| same[0]).collect();
    let with_summariser =
        |model: &str| blocks.iter().any(|b| b.first().model == model && b.summariser.is_some());
    keys.retain(|(model, s)| s.is_some() || !with_summariser(model));
    let of = |(model, summariser): (&'a str, Option<&'a str>)| {
        let own = |b: &&ReportBlock<'a>| {
            b.first().model == model && (b.summariser == summariser || b.summariser.is_none())
        };
        Terms { model, summariser, blocks: blocks.iter().filter(own).collect() }
    };
    keys.into_iter().map(of).collect()
}
