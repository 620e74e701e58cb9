//! The gate: compares results with a stored baseline per scenario, strategy and model, never by a
//! mean.

mod baseline;
mod check;
mod files;
mod limits;
mod report;

pub use baseline::{Baseline, BaselineRow, read_baseline};
pub use check::gate;
pub use limits::GateOptions;
use limits::Limit;
pub use report::{Check, GateReport, Outcome};
