//! Agents and programs from outside: agents that are driven through a session, programs that are
//! strategies, the model server and the recording proxy for any client, and recorded cases.

pub mod drive;
pub mod exec;
mod quotes;
pub mod recorder;
pub mod serve;
