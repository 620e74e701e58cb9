//! Hashes that identify texts in files: cases, traces, logs, cassettes.

use sha2::{Digest, Sha256};

/// SHA-256 of a text in hexadecimal.
pub fn sha256(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|b| format!("{b:02x}")).collect()
}
