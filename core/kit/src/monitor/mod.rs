//! Monitoring: the usage of a session, status lines, spend limits and reminders of the token budget.
//! All times are arguments, in ms.

mod limits;
mod session;
mod status;
mod tags;

pub use limits::{SpendGuard, SpendLimit};
pub use session::{CallSample, RequestSource, SessionMeter};
pub use status::status_line;
pub use tags::{Reminders, usage_tag};
