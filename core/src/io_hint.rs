//! What people can do when the system refuses to read or write a file.

use std::io::{self, ErrorKind};

/// Advice behind the system's own words, for what is written so that a refused write touches
/// nothing that was stored before.
pub fn of(e: &io::Error) -> String {
    let (cause, remedy) = words(e);
    format!("{cause}what was stored before is still there, {remedy}")
}

/// The same for a file that was being written in its own place when the system refused.
pub fn of_cut(e: &io::Error) -> String {
    let (cause, remedy) = words(e);
    format!(
        "{cause}this format writes a file in its place, so what this one held may be cut off; all \
         others are still there, {remedy}"
    )
}

/// What is the matter, and what helps.
fn words(e: &io::Error) -> (&'static str, &'static str) {
    match e.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            ("there is no room left; ", "free some space and try again")
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            ("you may not write there; ", "check the permissions")
        }
        _ => ("", "check that the folder exists and that you may write there"),
    }
}
