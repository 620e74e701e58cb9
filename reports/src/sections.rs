//! Sections of a report in reading order. The terminal table, Markdown and the page render the same
//! sections. Add new sections here.

use std::collections::BTreeMap;

use crate::conclusion::{self, Conclusion};
use crate::record::Results;
use crate::sheet::{ByBlock, Sheet};
use crate::stats::{self, Differences};
use crate::view::{self, ReportBlock};
use crate::{agreement, recorded, sheets, spend, sweep};

/// A part of a report with typed rows.
pub(crate) enum Section<'a> {
    /// Failures, before all figures.
    Failures(Vec<String>),
    /// Conclusion for one model.
    Conclusion(Conclusion),
    Differences(Vec<Differences>),
    /// Strategies on one session.
    Scores(ReportBlock<'a>),
    /// A small table below the scores.
    Sheet(Sheet),
    /// Explanation of the figures, and assumptions of the models by name.
    Reading(&'a BTreeMap<String, String>),
}

type Entry = fn(&Results) -> Vec<Section<'_>>;

const SECTIONS: [Entry; 12] = [
    failures,
    |r| conclusion::conclusions(r).into_iter().map(Section::Conclusion).collect(),
    |r| vec![Section::Differences(stats::over_sessions(r))],
    |r| view::blocks(r).into_iter().map(Section::Scores).collect(),
    |r| sweep::sheets(r).into_iter().map(Section::Sheet).collect(),
    |r| sheet(&agreement::SHEET, r),
    |r| sheet(&recorded::SHEET, r),
    |r| sheet(&sheets::REWIND, r),
    |r| sheet(&sheets::RESUME, r),
    |r| sheet(&sheets::DELEGATION, r),
    |r| sheet(&spend::SHEET, r),
    |r| vec![Section::Reading(&r.assumptions)],
];

/// Returns all sections with content; without runs, the iterator is empty.
pub(crate) fn all(results: &Results) -> impl Iterator<Item = Section<'_>> {
    SECTIONS.iter().flat_map(|section| section(results))
}

fn sheet(by_block: &ByBlock, results: &Results) -> Vec<Section<'static>> {
    by_block.section(results).into_iter().map(Section::Sheet).collect()
}

fn failures(results: &Results) -> Vec<Section<'_>> {
    let mut all = Vec::new();
    for block in view::blocks(results) {
        let scenario = &block.first().scenario.id;
        all.extend(view::failures(&block).into_iter().map(|f| format!("{scenario}, {f}")));
    }
    if all.is_empty() { vec![] } else { vec![Section::Failures(all)] }
}
