//! A small table that stands below the blocks; terminal, Markdown and page draw the same one.

use ctxbench_core::record::Results;

use crate::{delegation, ranking, resume, rewind, steering};

/// Every sheet that has something to show, in the order of the reports.
pub(crate) fn all(results: &Results) -> Vec<Sheet> {
    [ranking::sheets, steering::sheets, rewind::sheets, resume::sheets, delegation::sheets].iter().flat_map(|s| s(results)).collect()
}

/// Title, head and rows as text; the first column is words, the others are figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sheet {
    /// What it shows.
    pub(crate) title: String,
    /// How to read it.
    pub(crate) note: String,
    /// A heading per column.
    pub(crate) head: Vec<String>,
    /// As many cells as the head has.
    pub(crate) rows: Vec<Vec<String>>,
}
