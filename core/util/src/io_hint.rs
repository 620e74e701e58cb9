//! Hints for users about I/O errors.

use std::io::{self, ErrorKind};

/// Returns a hint for a failed atomic write, which changed nothing.
pub fn write_hint(e: &io::Error) -> String {
    let (cause, remedy) = cause_and_remedy(e);
    format!("{cause}nothing was changed; {remedy}")
}

/// Returns a hint for a failed write in place, which may have cut off the file.
pub fn partial_write_hint(e: &io::Error) -> String {
    let (cause, remedy) = cause_and_remedy(e);
    format!(
        "{cause}this file was written in place and may be incomplete, all others are unchanged; {remedy}"
    )
}

fn cause_and_remedy(e: &io::Error) -> (&'static str, &'static str) {
    match e.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            ("the disk is full; ", "free some space and try again")
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            ("you have no permission to write there; ", "check the permissions")
        }
        _ => ("", "check that the folder exists and is writable"),
    }
}
