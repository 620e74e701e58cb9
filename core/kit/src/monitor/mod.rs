//! Awareness, monitoring and governance: what a model is told of its budget, what a status line
//! shows, and what stops a request before it is sent. Nothing in here edits a context or looks at a
//! clock; every time is given, in ms.

mod burst;
mod edits;
mod limits;
mod rate;
mod session;
mod status;
mod tags;

pub use burst::{Ask, Burst, burst, needed};
pub use edits::{Change, CountedEdit, changed_lines, edit_of, names as edit_names};
pub use limits::{Estimate, Period, SpendGuard, SpendLimit, SpendRefused};
pub use rate::{Band, Counted, Headroom, RATE_TABLE, RateLimit, Wait, recommended};
pub use session::{CallSample, EditCount, SessionMeter, Source};
pub use status::{CallUsage, ContextWindow, ModelName, RateStatus, SessionCost, StatusLine};
pub use tags::{Reminders, Teller, Told, budget_tag, read_tag, usage_tag};
