//! Sessions: the file format, the facts that a session establishes, and estimates of the text that a
//! recording lacks.

pub mod calibration;
pub mod fact;
mod format;
pub mod gist;
pub mod matcher;
mod recorded;
mod terms;

pub use fact::{Fact, FactKind, Match};
pub use format::{
    AssistantEntry, Effect, Entry, FileMode, Header, Session, Source, ToolEntry, UnwritableSession,
    UserEntry,
};
pub use recorded::{Billing, RecordedCall, RecordedCompaction, RecordedUsage, Trigger};
pub use terms::Surcharge;
