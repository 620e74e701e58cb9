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

impl<'b, 'a> Terms<'b, 'a> {
    /// Model and summariser, for a heading.
    pub(crate) fn name(&self) -> String {
        let summaries = self.summariser.map(|s| format!(", summaries: {}", fmt::one_line(s)));
        fmt::one_line(self.model) + &summaries.unwrap_or_default()
    }

    /// Suffix of file names, as in the blocks.
    pub(crate) fn suffix(&self) -> String {
        self.blocks.iter().map(|b| b.suffix()).max_by_key(String::len).unwrap_or_default()
    }

    /// Runs of the sessions that are compared together: all recordings, or without any the longest
    /// scripted session. Scripted sessions are no sample and of unlike size, so a mean over several
    /// describes none of them.
    pub(crate) fn evidence(&self) -> Vec<&'a RunRecord> {
        self.compared().into_iter().flat_map(|b| b.runs.iter().copied()).collect()
    }

    /// Blocks of [`Terms::evidence`].
    fn compared(&self) -> Vec<&'b ReportBlock<'a>> {
        let (recorded, scripted): (Vec<_>, Vec<_>) =
            self.evident().partition(|b| b.first().scenario.recorded);
        let steps = |b: &&ReportBlock<'_>| b.runs.iter().map(|r| r.summary.steps_total).max();
        let longest = scripted.into_iter().rev().max_by_key(steps);
        if recorded.is_empty() { longest.into_iter().collect() } else { recorded }
    }

    fn evident(&self) -> impl Iterator<Item = &'b ReportBlock<'a>> {
        self.blocks.iter().copied().filter(|b| b.first().is_evidence())
    }

    /// Scripted sessions that are not compared. Each has its own line.
    pub(crate) fn others(&self) -> impl Iterator<Item = &'b ReportBlock<'a>> {
        let compared: Vec<&str> = self.compared().iter().map(|b| &*b.first().scenario.id).collect();
        self.evident().filter(move |b| !compared.contains(&&*b.first().scenario.id))
    }

    /// The compared sessions: their number, or the name of a single one of several.
    pub(crate) fn scope(&self) -> String {
        match &self.compared()[..] {
            [only] if self.blocks.len() > 1 => fmt::one_line(&only.first().scenario.id),
            [] => fmt::sessions(self.blocks.len()),
            all => fmt::sessions(all.len()),
        }
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
