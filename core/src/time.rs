//! Time of a session.

/// Milliseconds of session time.
pub type Millis = u64;
