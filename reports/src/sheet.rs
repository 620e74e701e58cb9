//! A small table that stands below the blocks; terminal, Markdown and page draw the same one.

use crate::record::{Results, RunRecord};

use crate::view;
use crate::{delegation, ranking, resume, rewind, steering};

/// Every sheet that has something to show, in the order of the reports.
pub(crate) fn all(results: &Results) -> Vec<Sheet> {
    [ranking::sheets, steering::sheets, rewind::sheets, resume::sheets, delegation::sheets]
        .iter()
        .flat_map(|s| s(results))
        .collect()
}

/// Title, head and rows as text; the first column is words, the others are figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sheet {
    /// What it shows.
    pub(crate) title: String,
    /// How to read it.
    pub(crate) note: String,
    /// A heading per column; `\n` where it may be broken.
    pub(crate) head: Vec<String>,
    /// The rows, by what they have in common.
    pub(crate) groups: Vec<Group>,
}

/// Rows under a line of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Group {
    /// The line above the rows: what is the same for all of them. Empty = there is none.
    pub(crate) name: String,
    /// As many cells as the head has.
    pub(crate) rows: Vec<Vec<String>>,
}

impl Sheet {
    pub(crate) fn rows(&self) -> impl Iterator<Item = &Vec<String>> {
        self.groups.iter().flat_map(|g| &g.rows)
    }
}

/// A group per block of the main table, its rows in the same order and the strategy in the first
/// column. `cells` are the others, in as many rows as a run has; blocks without any are left out.
pub(crate) fn by_block(
    results: &Results,
    cells: impl Fn(&RunRecord) -> Vec<Vec<String>>,
) -> Vec<Group> {
    told_by_block(results, |_| String::new(), cells)
}

/// The same, with what `told` says of all runs of a block behind its name.
pub(crate) fn told_by_block(
    results: &Results,
    told: impl Fn(&[&RunRecord]) -> String,
    cells: impl Fn(&RunRecord) -> Vec<Vec<String>>,
) -> Vec<Group> {
    let mut groups = Vec::new();
    for block in view::blocks(results) {
        let labelled = |r: &&RunRecord| {
            let label = r.strategy.label.clone();
            cells(r).into_iter().map(move |row| std::iter::once(label.clone()).chain(row).collect())
        };
        let rows: Vec<Vec<String>> = block.runs.iter().flat_map(labelled).collect();
        if !rows.is_empty() {
            let told = Some(told(&block.runs))
                .filter(|t| !t.is_empty())
                .map(|t| format!(": {t}"))
                .unwrap_or_default();
            groups.push(Group { name: block.name() + &told, rows });
        }
    }
    groups
}

/// The head of a sheet over strategies.
pub(crate) fn head(columns: &[&str]) -> Vec<String> {
    std::iter::once("strategy").chain(columns.iter().copied()).map(str::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn the_scenario_is_named_once_and_rows_stand_as_in_the_main_table() {
        let mut results = sample::results();
        results.runs.extend(["none", "codex", "reference"].map(|l| sample::run("second", l, 1)));
        let groups = by_block(&results, |r| {
            if r.strategy.name == "aider" { vec![] } else { vec![vec!["1".into()]] }
        });
        assert_eq!(
            groups.iter().map(|g| g.name.as_str()).collect::<Vec<_>>(),
            ["login-bug", "second"]
        );
        assert_eq!(groups[1].rows, [["reference", "1"], ["codex", "1"], ["none", "1"]]);
        assert_eq!(groups[0].rows.len(), sample::LABELS.len() - 1);
        assert!(by_block(&results, |_| vec![]).is_empty());
        results.runs[0].model = "gpt-5.4".into();
        let names: Vec<String> =
            by_block(&results, |_| vec![vec![]]).into_iter().map(|g| g.name).collect();
        assert_eq!(
            names,
            ["login-bug, gpt-5.4", "login-bug, claude-sonnet-4-6", "second, claude-sonnet-4-6"]
        );
    }
}
