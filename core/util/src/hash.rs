//! Hashes that identify texts and files: in cases, traces, logs, cassettes and checkpoints.

use sha2::{Digest, Sha256};

/// SHA-256 in hexadecimal, 64 digits.
pub fn sha256(content: impl AsRef<[u8]>) -> String {
    format!("{:x}", Sha256::digest(content))
}
