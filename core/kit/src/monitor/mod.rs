//! Monitoring: the usage of a session, spend limits and reminders of the token budget.
//! All times are arguments, in ms.

mod limits;
mod reminders;
mod session;

pub use limits::{SpendGuard, SpendLimit};
pub use reminders::Reminders;
pub use session::{CallSample, RequestSource, SessionMeter};
