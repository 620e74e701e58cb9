//! Of which sessions a part of a run is a part.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The sessions of a whole run, of which a part holds some. Who is in which part follows from their
/// order, so parts of other lists overlap or leave sessions out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionList {
    /// Number of sessions.
    pub sessions: usize,
    /// Hash of their ids in order.
    pub ids: String,
}

impl SessionList {
    /// Hash of the ids of the sessions.
    pub fn of<'a>(ids: impl IntoIterator<Item = &'a str>) -> SessionList {
        let (mut sessions, mut hash) = (0, Sha256::new());
        for id in ids {
            sessions += 1;
            hash.update((id.len() as u64).to_le_bytes());
            hash.update(id);
        }
        let ids = hash.finalize().iter().take(8).map(|b| format!("{b:02x}")).collect();
        SessionList { sessions, ids }
    }
}
