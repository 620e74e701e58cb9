//! Log of a replay's summaries: whether one was requested, and whether one could not be written.

use std::sync::{Arc, Mutex};

#[derive(Debug, Default)]
struct DeskState {
    asked: u64,
    trouble: Option<String>,
}

/// Log shared between the provider that writes summaries and the replay. A summary that could not
/// be written is not an answer of the provider: the strategy would treat it as a failure to handle.
/// Therefore the replay checks this log and stops.
#[derive(Clone, Debug, Default)]
pub struct SummaryDesk(Arc<Mutex<DeskState>>);

impl SummaryDesk {
    /// Returns the number of the next summary, from 0.
    pub(crate) fn next(&self) -> u64 {
        self.0.lock().map_or(0, |mut s| {
            s.asked += 1;
            s.asked - 1
        })
    }

    /// Records that a summary could not be written. The first reason is kept.
    pub(crate) fn fail(&self, why: &str) {
        if let Ok(mut s) = self.0.lock() {
            s.trouble.get_or_insert_with(|| why.to_string());
        }
    }

    pub fn was_asked(&self) -> bool {
        self.0.lock().is_ok_and(|s| s.asked > 0)
    }

    /// Returns the reason why a summary could not be written.
    pub fn trouble(&self) -> Option<String> {
        self.0.lock().ok().and_then(|s| s.trouble.clone())
    }
}
