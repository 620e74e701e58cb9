//! What cannot be read twice: standard input and other pipes.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::OnceLock;

use ctxbench_scenarios::LoadError;

/// Whether an argument names a pipe: `-` is standard input, `<(…)` a path that the shell makes.
pub(super) fn is_pipe(path: &Path) -> bool {
    path.as_os_str() == "-" || std::fs::metadata(path).is_ok_and(|m| is_fifo(&m))
}

#[cfg(unix)]
fn is_fifo(found: &std::fs::Metadata) -> bool {
    std::os::unix::fs::FileTypeExt::is_fifo(&found.file_type())
}

#[cfg(not(unix))]
fn is_fifo(_: &std::fs::Metadata) -> bool {
    false
}

/// What came through a pipe.
pub(super) fn piped(path: &Path) -> Result<Vec<u8>, LoadError> {
    static READ: OnceLock<()> = OnceLock::new();
    if path.as_os_str() != "-" {
        return File::open(path).and_then(read).map_err(|e| unread(path, e));
    }
    let read = match READ.set(()) {
        Ok(()) => read(std::io::stdin().lock()),
        Err(()) => Err(io::Error::other("it can be read only once; give - once")),
    };
    read.map_err(|e| unread(Path::new("standard input"), e))
}

/// The name that messages give to an argument, and that a session without an id gets: the number
/// under which a shell hands over `<(…)` is none.
pub(super) fn shown(path: &Path) -> String {
    if path.as_os_str() == "-" {
        return "stdin".to_string();
    }
    let folder = path.parent().and_then(Path::to_str).unwrap_or_default();
    let numbered = folder == "/dev/fd" || folder.starts_with("/proc/") && folder.ends_with("/fd");
    if numbered { "pipe".to_string() } else { path.display().to_string() }
}

fn read(mut from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.read_to_end(&mut bytes)?;
    if bytes.is_empty() {
        let what = "nothing came through; expected a session or a recording";
        return Err(io::Error::other(what));
    }
    Ok(bytes)
}

fn unread(path: &Path, source: io::Error) -> LoadError {
    LoadError::Io { path: path.to_path_buf(), source }
}
