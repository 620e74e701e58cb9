//! What is made of private files is private, too.

use std::path::Path;

use ctxbench_core::files;
use ctxbench_reports::is_private;

/// Where one of these, or a file in one of these folders, may be read by its owner alone, so may
/// every file and folder that this process makes from now on. A file that is replaced keeps the
/// permissions that somebody gave it. Returns whether one is.
pub(super) fn keep<P: AsRef<Path>>(inputs: impl IntoIterator<Item = P>) -> bool {
    let private = |path: &Path| match path.is_dir() {
        true => files::walk(path).unwrap_or_default().iter().any(|f| is_private(f)),
        false => is_private(path),
    };
    let any = inputs.into_iter().any(|path| private(path.as_ref()));
    if any {
        from_now_on();
    }
    any
}

#[cfg(unix)]
fn from_now_on() {
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
}

/// Elsewhere a file has the permissions of its folder.
#[cfg(not(unix))]
fn from_now_on() {}
