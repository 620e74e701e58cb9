//! Replays recorded sessions through strategies, and measures what they do.

mod agents;
mod background;
pub mod billing;
mod compactions;
pub mod contents;
mod conversation;
mod delegation;
mod exchange;
mod facts;
pub mod inspect;
mod integrity;
pub mod keys;
pub mod memory;
pub mod models;
mod needs;
pub mod next;
mod observer;
mod options;
mod path;
mod play;
pub mod point;
mod prefix;
pub mod probe;
mod recall;
mod record;
pub mod recorded;
mod recorded_recall;
mod recording;
mod replay;
mod rereads;
mod resume;
mod rewind;
mod rewinds;
pub mod rules;
pub mod run;
mod savings;
mod scene;
mod session_cache;
mod statements;
mod subagent_index;
mod subagents;
mod texts;
mod trace;
mod twice;
pub mod validate;
pub mod versions;
pub mod watch;
mod windows;
mod world;

use ctxbench_session::Session;

pub use exchange::spaced_name;
pub use options::{Options, Replayed};
pub use path::{Move, Path, PathStep, THINK_MS, TOOLS_MS};
pub use record::{not_run, scenario_info};
pub use recording::text_of;
pub use replay::{FullReplay, replay, replay_in_full};
pub use resume::Loading;
pub use savings::with_savings;
pub use trace::TraceItem;
pub use world::{GO_ON, MAX_FAILURES, NEUTRAL};

/// Returns notes on how a session is replayed, for readers of its figures.
pub fn remarks(session: &Session) -> Vec<String> {
    [agents::remarks(session), recording::unfilled(session)].concat()
}

#[cfg(test)]
mod recall_tests;
#[cfg(test)]
mod run_tests;
