//! Reports of ctxbench: measured records in; tables, CSV, plots, pages and CI formats out. Also the
//! results folder, the gate and comparisons.
//!
//! [`FORMATS`] lists all formats. To add one, write a file and add a line to the list.
//! This crate measures nothing, and its output does not depend on the clock or the machine: the
//! same results give the same bytes.

pub mod advise;
pub mod agreement;
mod compare;
mod comparison;
mod conclusion;
pub mod contents;
mod csv;
mod error;
mod explain;
mod fmt;
mod formats;
mod front;
mod gate;
mod grid;
mod group;
mod json;
mod junit;
mod lost;
mod markdown;
mod metrics;
pub mod next;
mod page;
mod plots;
pub mod probe;
pub mod record;
mod recorded;
mod results_file;
mod row_cache;
pub mod rules;
mod sections;
mod seeds;
mod sheet;
mod sheets;
mod spend;
mod sqlite;
mod stats;
mod stored;
mod sweep;
mod table;
mod terms;
#[cfg(test)]
mod testing;
mod view;
mod write;

pub use compare::compare;
pub use conclusion::failures;
pub use error::{ReadError, ReportError};
pub use explain::{Filter, explain};
pub use fmt::{one_line, printable, uncounted};
pub use formats::{FORMATS, ReportFormat, format};
pub use gate::{Baseline, Check, GateOptions, Outcome, gate, read_baseline};
pub use grid::{draw as text_table, markdown as markdown_table};
pub use json::{parse_results, read_results, results_file, results_text, write_json};
pub use junit::JUNIT_HEAD;
pub use lost::{LostNeed, LostNeeds, lost, to_json as lost_to_json, to_text as lost_to_text};
pub use metrics::Cell;
pub use plots::Hues;
pub use recorded::cache_shares;
pub use results_file::{ResultsFile, read_figures};
pub use row_cache::{Row, RowCache, sort_runs};
pub use stored::{Artifact, Files, OutputFolder, Rows, StoredResults, Take};
pub use table::{TableOptions, table};
pub use write::{
    NewResults, check_finished, check_out, default_cache, is_listed, is_of_results, is_private,
    mark_unfinished,
};
