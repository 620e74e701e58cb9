//! Sections of a report in reading order: failures, what decides and the table first, then the
//! details. The terminal, Markdown and the page render the same sections. Add new sections here.

use crate::conclusion::{self, Conclusion};
use crate::record::{Results, RunRecord};
use crate::sheet::{ByBlock, Sheet};
use crate::stats::{self, Differences};
use crate::{agreement, fmt, recorded, sheets, spend, sweep, view};

/// A part of a report with typed rows.
pub(crate) enum Section {
    /// Failures, sentences and the table of the compared sessions.
    Conclusion(Conclusion),
    Differences(Vec<Differences>),
    /// Every strategy on each session; the page has views of the sessions instead.
    Scores(Sheet),
    /// Another small table.
    Sheet(Sheet),
    /// Remarks on the rows; the page has them in its views, too.
    Notes(Vec<String>),
}

type Entry = fn(&Results) -> Vec<Section>;

const SECTIONS: [Entry; 11] = [
    |r| conclusion::conclusions(r).into_iter().map(Section::Conclusion).collect(),
    |r| vec![Section::Differences(stats::over_sessions(r))],
    |r| sheets::SCORES.section(r).into_iter().map(Section::Scores).collect(),
    |r| sweep::sheets(r).into_iter().map(Section::Sheet).collect(),
    |r| sheet(&agreement::SHEET, r),
    |r| sheet(&recorded::SHEET, r),
    |r| sheet(&sheets::REWIND, r),
    |r| sheet(&sheets::RESUME, r),
    |r| sheet(&sheets::DELEGATION, r),
    |r| sheet(&spend::SHEET, r),
    |r| vec![Section::Notes(notes(r))],
];

/// Returns all sections with content; without runs, the iterator is empty.
pub(crate) fn all(results: &Results) -> impl Iterator<Item = Section> {
    SECTIONS.iter().flat_map(|section| section(results))
}

fn sheet(by_block: &ByBlock, results: &Results) -> Vec<Section> {
    by_block.section(results).into_iter().map(Section::Sheet).collect()
}

fn notes(results: &Results) -> Vec<String> {
    let several_models = view::models(results).len() > 1;
    let note = |r: &RunRecord| {
        let row = view::name(&r.scenario.id, &r.strategy.label, &r.model, several_models);
        let notes = view::notes(r).join("; ");
        (!notes.is_empty()).then(|| format!("{}: {notes}", fmt::one_line(&row)))
    };
    results.runs.iter().filter_map(note).collect()
}
