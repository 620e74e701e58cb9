//! What people can do when the system refuses to read or write a file.

use std::io::{self, ErrorKind};

/// Advice behind the system's own words. What was stored before is never touched by a refused write.
pub fn of(e: &io::Error) -> &'static str {
    match e.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            "there is no room left; what was stored before is still there, free some space and try again"
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            "you may not write there; what was stored before is still there, check the permissions"
        }
        _ => "check that the folder exists and that you may write there; what was stored before is still there",
    }
}
