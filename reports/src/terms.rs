//! Scope of one conclusion: the sessions that are compared together. If a session ran with several
//! models or summarisers, each of these is a scope.

use crate::fmt;
use crate::group::grouped;
use crate::record::RunRecord;
use crate::view::ReportBlock;

/// Blocks with a shared conclusion.
pub(crate) struct Terms<'b, 'a> {
    pub(crate) models: Vec<&'a str>,
    /// Summariser, if there are several.
    pub(crate) summariser: Option<&'a str>,
    pub(crate) blocks: Vec<&'b ReportBlock<'a>>,
}

impl<'b, 'a> Terms<'b, 'a> {
    /// Models and summariser, for a heading.
    pub(crate) fn name(&self) -> String {
        let summaries = self.summariser.map(|s| format!(", summaries: {}", fmt::one_line(s)));
        fmt::one_line(&self.models.join(", ")) + &summaries.unwrap_or_default()
    }

    /// Suffix of file names, as in the blocks.
    pub(crate) fn suffix(&self) -> String {
        let suffix = self.summariser.map(|s| format!("-{}", fmt::slug(s)));
        match self.models.len() {
            1 => self.blocks.iter().map(|b| b.suffix()).max_by_key(String::len),
            _ => suffix,
        }
        .unwrap_or_default()
    }

    /// Runs of the sessions that are compared together: all recordings, or without any the longest
    /// scripted session. Scripted sessions are no sample and of unlike size, so a mean over several
    /// describes none of them.
    pub(crate) fn evidence(&self) -> Vec<&'a RunRecord> {
        self.compared().into_iter().flat_map(|b| b.runs.iter().copied()).collect()
    }

    /// Blocks in the table: those of [`Terms::evidence`], or else the longest one.
    pub(crate) fn in_table(&self) -> Vec<&'b ReportBlock<'a>> {
        let steps = |b: &&ReportBlock<'_>| b.first().summary.steps_total;
        match self.compared() {
            none if none.is_empty() => {
                self.blocks.iter().copied().max_by_key(steps).into_iter().collect()
            }
            compared => compared,
        }
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

/// Scopes in the order of the blocks. Sessions without a summary belong to every summariser.
pub(crate) fn terms<'b, 'a>(blocks: &'b [ReportBlock<'a>]) -> Vec<Terms<'b, 'a>> {
    let models_of = grouped(blocks, |b| &b.first().scenario.id);
    let model = |b: &ReportBlock<'a>| b.first().model.as_str();
    // Sessions with their own model each are compared together.
    let is_mixed = models_of.iter().all(|same| same.iter().all(|b| model(b) == model(same[0])));
    let key = |b: &ReportBlock<'a>| if is_mixed { "" } else { model(b) };
    let all = blocks.iter().map(|b| (key(b), b.summariser));
    let mut keys: Vec<_> = grouped(all, |key| *key).into_iter().map(|same| same[0]).collect();
    let with_summariser =
        |model: &str| blocks.iter().any(|b| key(b) == model && b.summariser.is_some());
    keys.retain(|(model, s)| s.is_some() || !with_summariser(model));
    let of = |(own, summariser): (&str, Option<&'a str>)| {
        let is_own = |b: &&ReportBlock<'a>| {
            key(b) == own && (b.summariser == summariser || b.summariser.is_none())
        };
        let blocks: Vec<_> = blocks.iter().filter(is_own).collect();
        let models = grouped(blocks.iter().map(|b| model(b)), |m| *m);
        Terms { models: models.into_iter().map(|same| same[0]).collect(), summariser, blocks }
    };
    keys.into_iter().map(of).collect()
}
