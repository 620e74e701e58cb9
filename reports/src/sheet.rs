//! Small tables below the scores.

use std::iter;

use crate::record::{Results, RunRecord};
use crate::view::{self, ReportBlock};

/// Heading of a column, and its cell in a row of type `T`.
pub(crate) type Column<T, C = String> = (&'static str, fn(&T) -> C);

pub(crate) fn heads<T, C>(columns: &[Column<T, C>]) -> Vec<&'static str> {
    columns.iter().map(|(head, _)| *head).collect()
}

pub(crate) fn cells<T, C>(columns: &[Column<T, C>], row: &T) -> Vec<C> {
    columns.iter().map(|(_, cell)| cell(row)).collect()
}

/// Title, head and rows as text. The first column is text, the others are figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sheet {
    pub(crate) title: String,
    /// Explanation below the title.
    pub(crate) note: String,
    /// A heading per column; `\n` marks a line break.
    pub(crate) head: Vec<String>,
    pub(crate) groups: Vec<Group>,
}

/// Rows below a heading.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Group {
    /// Heading of the group: the common part of its rows; empty if there is none.
    pub(crate) name: String,
    /// Rows with as many cells as the head.
    pub(crate) rows: Vec<Vec<String>>,
}

impl Sheet {
    pub(crate) fn rows(&self) -> impl Iterator<Item = &Vec<String>> {
        self.groups.iter().flat_map(|g| &g.rows)
    }
}

/// A sheet with a group per block of scores, in the same order, with the strategy in the first
/// column.
pub(crate) struct ByBlock {
    pub(crate) title: &'static str,
    pub(crate) note: &'static str,
    /// Headings after the strategy.
    pub(crate) head: fn() -> Vec<&'static str>,
    /// Suffix for the name of a block, common to all its runs.
    pub(crate) told: fn(&ReportBlock<'_>) -> Option<String>,
    /// Rows of cells after the strategy; a run may have any number of rows.
    pub(crate) rows: fn(&RunRecord) -> Vec<Vec<String>>,
}

impl ByBlock {
    /// Builds the sheet, if any run has a row.
    pub(crate) fn section(&self, results: &Results) -> Option<Sheet> {
        let groups = self.groups(results);
        if groups.is_empty() {
            return None;
        }
        let head = iter::once("strategy").chain((self.head)()).map(String::from).collect();
        let (title, note) = (self.title.into(), self.note.into());
        Some(Sheet { title, note, head, groups })
    }

    pub(crate) fn groups(&self, results: &Results) -> Vec<Group> {
        let mut groups = Vec::new();
        for block in view::blocks(results) {
            let mut rows = Vec::new();
            for run in &block.runs {
                for mut row in (self.rows)(run) {
                    row.insert(0, run.strategy.label.clone());
                    rows.push(row);
                }
            }
            if !rows.is_empty() {
                let mut name = block.name();
                name.extend((self.told)(&block).map(|t| format!(": {t}")));
                groups.push(Group { name, rows });
            }
        }
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn the_scenario_is_named_once_and_rows_stand_as_in_the_main_table() {
        let sheet = |rows| ByBlock { title: "", note: "", head: Vec::new, told: |_| None, rows };
        let mut results = testing::results();
        results.runs.extend(["none", "codex", "reference"].map(|l| testing::run("second", l, 1)));
        let rows = |r: &RunRecord| {
            if r.strategy.name == "aider" { vec![] } else { vec![vec!["1".into()]] }
        };
        let groups = sheet(rows).groups(&results);
        assert_eq!(
            groups.iter().map(|g| g.name.as_str()).collect::<Vec<_>>(),
            ["login-bug", "second"]
        );
        assert_eq!(groups[1].rows, [["reference", "1"], ["codex", "1"], ["none", "1"]]);
        assert_eq!(groups[0].rows.len(), testing::LABELS.len() - 1);
        assert!(sheet(|_| vec![]).section(&results).is_none());
        results.runs[0].model = "gpt-5.4".into();
        let names: Vec<String> =
            sheet(|_| vec![vec![]]).groups(&results).into_iter().map(|g| g.name).collect();
        assert_eq!(
            names,
            ["login-bug, gpt-5.4", "login-bug, claude-sonnet-4-6", "second, claude-sonnet-4-6"]
        );
    }
}
