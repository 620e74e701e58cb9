//! Keeps outputs private if the inputs are private.

use std::path::Path;

use ctxbench_reports::is_private;
use ctxbench_util::files;

/// Returns whether an input, or a file in an input folder, is readable by its owner only. If so,
/// all new files and folders of this process are private too. A replaced file keeps its
/// permissions.
pub(super) fn keep<P: AsRef<Path>>(inputs: impl IntoIterator<Item = P>) -> bool {
    let private = |path: &Path| match path.is_dir() {
        true => files::walk_inside(path).iter().any(|f| is_private(f)),
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

/// On other systems, new files have the permissions of their folder.
#[cfg(not(unix))]
fn from_now_on() {}
