//! Inputs that can be read only once: standard input and other pipes.

use std::io;
use std::path::Path;
use std::sync::OnceLock;

use ctxbench_scenarios::LoadError;
use ctxbench_util::files;

/// Returns whether a path is a pipe or a device: `-` is standard input, and `<(…)` is a path from
/// the shell.
pub(super) fn is_pipe(path: &Path) -> bool {
    let found = std::fs::metadata(path);
    path.as_os_str() == "-" || found.is_ok_and(|m| !m.is_file() && !m.is_dir())
}

/// Reads a pipe. Fails if it is empty, or if standard input was already read.
pub(super) fn piped(path: &Path) -> Result<Vec<u8>, LoadError> {
    static READ: OnceLock<()> = OnceLock::new();
    if path.as_os_str() != "-" {
        return files::read(path).and_then(something).map_err(|e| unread(path, e));
    }
    let read = match READ.set(()) {
        Ok(()) => files::read_bounded(io::stdin().lock(), files::MAX_PIPE_BYTES),
        Err(()) => Err(io::Error::other("it can be read only once; give - once")),
    };
    read.and_then(something).map_err(|e| unread(Path::new("standard input"), e))
}

/// Returns the name of an argument for messages, and for sessions without an id. A path from `<(…)`
/// is shown as `pipe`.
pub(super) fn display_name(path: &Path) -> String {
    if path.as_os_str() == "-" {
        return "stdin".to_string();
    }
    let folder = path.parent().and_then(Path::to_str).unwrap_or_default();
    let numbered = folder == "/dev/fd" || folder.starts_with("/proc/") && folder.ends_with("/fd");
    if numbered { "pipe".to_string() } else { path.display().to_string() }
}

fn something(bytes: Vec<u8>) -> io::Result<Vec<u8>> {
    if bytes.is_empty() {
        let what = "nothing came through; expected a session or a recording";
        return Err(io::Error::other(what));
    }
    Ok(bytes)
}

fn unread(path: &Path, source: io::Error) -> LoadError {
    LoadError::Io { path: path.to_path_buf(), source }
}
