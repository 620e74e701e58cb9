//! Hints for users about I/O errors.

use std::io::{self, ErrorKind};

/// Returns a hint for a failed atomic write, which changed nothing.
pub fn write_hint(e: &io::Error) -> String {
    let (cause, remedy) = match e.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            ("the disk is full; ", "free some space and try again")
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            ("you have no permission to write there; ", "check the permissions")
        }
        _ => ("", "check that the folder exists and is writable"),
    };
    format!("{cause}nothing was changed; {remedy}")
}
