//! Atomic writes of files, checks of outputs against inputs, bounded reads, and walks of folders.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use tempfile::{NamedTempFile, TempDir};

/// A file that was not written, or a folder that was not read. Nothing on disk has changed.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("{path}: could not {action} ({source}); {advice}")]
    Io { path: PathBuf, action: &'static str, source: io::Error, advice: &'static str },
    #[error("- does not mean standard output here; name a file, or use /dev/stdout")]
    Dash,
    #[error("{0} is a folder; name a file")]
    Folder(PathBuf),
    #[error("{path} is a link to {target}, which does not exist; make that or remove the link")]
    DanglingLink { path: PathBuf, target: PathBuf },
    #[error("{path} is a link to {target}, which is not below the folder; name that folder, too")]
    LinkOut { path: PathBuf, target: PathBuf },
    #[error("{output} would overwrite the input {input} itself; name another file")]
    Input { output: PathBuf, input: PathBuf },
}

const ADVICE_READ: &str = "check that it exists and may be read";
const ADVICE_WRITE: &str =
    "check that the folder exists, may be written to and has space; nothing was changed";

fn failed(
    path: &Path,
    action: &'static str,
    advice: &'static str,
) -> impl FnOnce(io::Error) -> FileError + use<> {
    let path = path.to_path_buf();
    move |source| FileError::Io { path, action, source, advice }
}

/// Writes a file whole or not at all: a temporary file in the same folder is synced to the disk and
/// renamed. Links are followed, and a file that is replaced keeps its permissions.
///
/// Pipes and devices are written to directly.
pub fn write(path: &Path, content: impl AsRef<[u8]>) -> Result<(), FileError> {
    write_with(path, |out| out.write_all(content.as_ref()))
}

/// Writes a file like [`write()`], with content from a closure.
pub fn write_with(
    path: &Path,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), FileError> {
    prepare(path, content)?.commit()
}

/// A written file that is not in place yet; `None` if it was written directly.
pub struct PreparedFile(Option<(NamedTempFile, PathBuf)>);

/// Writes a file like [`write_with`], up to its renaming.
pub fn prepare(
    path: &Path,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<PreparedFile, FileError> {
    let write = |target| match target {
        Target::Stream => {
            let file = OpenOptions::new().append(true).open(path)?;
            buffered(&file, content).map(|()| None)
        }
        Target::Regular { path: place, mode } => {
            let file = temp_file(folder_of(&place), false)?;
            if let Some(mode) = mode {
                file.as_file().set_permissions(mode)?;
            }
            buffered(file.as_file(), content)?;
            file.as_file().sync_all()?;
            Ok(Some((file, place)))
        }
    };
    let written = write(Target::resolve(path)?);
    Ok(PreparedFile(written.map_err(failed(path, "write it", ADVICE_WRITE))?))
}

impl PreparedFile {
    /// Renames the file into its place.
    pub fn commit(self) -> Result<(), FileError> {
        let Some((file, place)) = self.0 else { return Ok(()) };
        file.persist(&place).map_err(|e| failed(&place, "write it", ADVICE_WRITE)(e.error))?;
        // Makes the new name durable, too. Some file systems cannot sync a folder.
        let _ = File::open(folder_of(&place)).and_then(|f| f.sync_all());
        Ok(())
    }
}

/// Writes a file like [`write_with`], without waiting for the disk. The file survives if the
/// process is killed, but possibly not a power failure. With `private`, only its owner can read it.
pub fn write_unsynced(
    path: &Path,
    private: bool,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), FileError> {
    let write = || -> io::Result<()> {
        let file = temp_file(folder_of(path), private)?;
        buffered(file.as_file(), content)?;
        file.persist(path)?;
        Ok(())
    };
    write().map_err(failed(path, "write it", ADVICE_WRITE))
}

fn buffered(file: &File, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = BufWriter::new(file);
    content(&mut out)?;
    out.flush()
}

/// Refuses an output that is not writable, is `-`, or is one of the inputs, even by another name (link,
/// hard link, other spelling). Call it before long work. An input folder includes all files below it.
pub fn check_output(path: &Path, inputs: &[PathBuf]) -> Result<(), FileError> {
    if path.as_os_str() == "-" {
        return Err(FileError::Dash);
    }
    for input in inputs {
        let files = if input.is_dir() { walk_inside(input) } else { vec![input.clone()] };
        if let Some(same) = files.into_iter().find(|f| same_place(f, path)) {
            return Err(FileError::Input { output: path.into(), input: same });
        }
    }
    if let Target::Regular { path: place, .. } = Target::resolve(path)? {
        let tried = temp_file(folder_of(&place), false).map(drop);
        tried.map_err(failed(path, "write it", ADVICE_WRITE))?;
    }
    Ok(())
}

/// Returns whether two paths name the same file, which need not exist.
pub fn same_place(a: &Path, b: &Path) -> bool {
    #[cfg(unix)]
    if let (Ok(a), Ok(b)) = (fs::metadata(a), fs::metadata(b)) {
        use std::os::unix::fs::MetadataExt;
        return (a.dev(), a.ino()) == (b.dev(), b.ino());
    }
    matches!((real(a), real(b)), (Ok(a), Ok(b)) if a == b)
}

/// Returns the nearest folder with `.git`, of this folder and those above it.
pub fn repository_root(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|folder| folder.join(".git").exists())
}

/// Resolves links and dots in a path; the last component need not exist.
pub fn real(path: &Path) -> io::Result<PathBuf> {
    match path.canonicalize() {
        Err(e) if e.kind() == ErrorKind::NotFound => match path.file_name() {
            Some(name) => Ok(folder_of(path).canonicalize()?.join(name)),
            None => Err(e),
        },
        other => other,
    }
}

/// Maximum number of bytes read from a pipe, which may never end.
pub const MAX_PIPE_BYTES: u64 = 1 << 30;

/// Maximum number of bytes read from a device, such as the endless `/dev/zero`.
pub const MAX_DEVICE_BYTES: u64 = 1 << 24;

/// Reads a file, or a pipe or device up to its end. Fails if that is not within [`MAX_PIPE_BYTES`] or [`MAX_DEVICE_BYTES`].
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_file() || kind.is_dir() {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        return Ok(bytes);
    }
    let max = if is_device(kind) { MAX_DEVICE_BYTES } else { MAX_PIPE_BYTES };
    read_bounded(file, max)
}

/// Reads a file like [`read()`], as UTF-8 text.
pub fn read_text(path: &Path) -> io::Result<String> {
    let invalid = |_| io::Error::new(ErrorKind::InvalidData, "it is not valid UTF-8");
    String::from_utf8(read(path)?).map_err(invalid)
}

/// Reads up to the end. Fails if that is not within `max` bytes.
pub fn read_bounded(from: impl Read, max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max {
        let what = format!("it does not end within {} MiB; name a file", max >> 20);
        return Err(io::Error::new(ErrorKind::FileTooLarge, what));
    }
    Ok(bytes)
}

#[cfg(unix)]
fn is_device(kind: fs::FileType) -> bool {
    use std::os::unix::fs::FileTypeExt;
    kind.is_char_device() || kind.is_block_device()
}

#[cfg(not(unix))]
fn is_device(_: fs::FileType) -> bool {
    false
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Converts text to a file name of 1 to 80 letters, digits, `-`, `_` and `.`, without a leading dot, and
/// not a device name of Windows.
pub fn safe_name(text: &str) -> String {
    let mapped: String = text
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' })
        .collect();
    let cut: String = mapped.trim_matches(['.', '-']).chars().take(80).collect();
    let cut = cut.trim_end_matches('.');
    let base = cut.split('.').next().unwrap_or_default().to_ascii_lowercase();
    let numbered = |device: &str| base.strip_prefix(device).is_some_and(|n| n.len() == 1);
    match &*base {
        "" => "unnamed".into(),
        "con" | "prn" | "aux" | "nul" => format!("_{cut}"),
        _ if numbered("com") || numbered("lpt") => format!("_{cut}"),
        _ => cut.to_string(),
    }
}

/// Returns all files below a folder, sorted. Follows links, and enters each folder once.
pub fn walk(folder: &Path) -> Result<Vec<PathBuf>, FileError> {
    let mut unread = None;
    let files = walk_into(folder, |_| true, |e| unread = unread.take().or(Some(e)));
    unread.map_or(Ok(files), Err)
}

/// Returns the files below a folder, without those of folders that cannot be read or lie outside.
pub fn walk_inside(folder: &Path) -> Vec<PathBuf> {
    let root = folder.canonicalize().unwrap_or_default();
    walk_into(folder, |below| link_out(&root, below).is_none(), |_| {})
}

/// Returns the error for a folder that is a link out of `root`, a resolved path. A link to `/` would
/// lead to every file of the machine.
pub fn link_out(root: &Path, folder: &Path) -> Option<FileError> {
    let target = folder.is_symlink().then(|| folder.canonicalize().unwrap_or_default())?;
    let path = folder.to_path_buf();
    (!target.starts_with(root)).then_some(FileError::LinkOut { path, target })
}

/// Walks a folder like [`walk()`], entering only subfolders that `enter` allows. Passes errors to
/// `unread`.
pub fn walk_into(
    folder: &Path,
    mut enter: impl FnMut(&Path) -> bool,
    mut unread: impl FnMut(FileError),
) -> Vec<PathBuf> {
    let (mut files, mut open, mut met) = (Vec::new(), vec![folder.to_path_buf()], BTreeSet::new());
    while let Some(folder) = open.pop() {
        let mut folders = Vec::new();
        let mut list = || -> io::Result<()> {
            if !met.insert(folder.canonicalize()?) {
                return Ok(());
            }
            for entry in fs::read_dir(&folder)? {
                let entry = entry?;
                let (path, kind) = (entry.path(), entry.file_type()?);
                let is_folder = kind.is_dir() || kind.is_symlink() && path.is_dir();
                if is_folder { &mut folders } else { &mut files }.push(path);
            }
            Ok(())
        };
        if let Err(e) = list() {
            unread(failed(&folder, "read it", ADVICE_READ)(e));
        }
        folders.retain(|path| enter(path));
        // Popped from the end, so that the first name comes first.
        folders.sort_by(|a, b| b.cmp(a));
        open.extend(folders);
    }
    files.sort();
    files
}

/// The target of a write to a path.
enum Target {
    /// A resolved path, and the permissions of an existing file.
    Regular { path: PathBuf, mode: Option<fs::Permissions> },
    /// A pipe, terminal or device, which cannot be replaced.
    Stream,
}

impl Target {
    fn resolve(path: &Path) -> Result<Target, FileError> {
        let write_failed = || failed(path, "write it", ADVICE_WRITE);
        match fs::metadata(path) {
            Ok(meta) if meta.is_dir() => Err(FileError::Folder(path.into())),
            // `/dev/stdout` may be an open regular file.
            Ok(meta) if !meta.is_file() || path.starts_with("/dev") => Ok(Target::Stream),
            Ok(meta) => {
                // A rename would ignore missing write permission.
                OpenOptions::new().write(true).open(path).map_err(write_failed())?;
                let path = path.canonicalize().map_err(write_failed())?;
                Ok(Target::Regular { path, mode: Some(meta.permissions()) })
            }
            Err(e) if e.kind() == ErrorKind::NotFound => match fs::read_link(path) {
                Ok(target) => Err(FileError::DanglingLink { path: path.into(), target }),
                Err(_) => {
                    let path = real(path).map_err(write_failed())?;
                    Ok(Target::Regular { path, mode: None })
                }
            },
            Err(e) => Err(write_failed()(e)),
        }
    }
}

/// Creates a folder and its parents; on Unix, new ones are accessible to the owner only.
pub fn create_private_dir(dir: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}

/// Creates an empty file unless it exists; on Unix, only the owner may read it.
pub fn create_private(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Err(e) if e.kind() != ErrorKind::AlreadyExists => Err(e),
        _ => Ok(()),
    }
}

/// Prefix and suffix of files and folders that are still being written.
const UNFINISHED: (&str, &str) = (".ctxbench-", ".tmp");

/// Returns whether a file name is one of an unfinished file. A kill can leave such files.
pub fn is_unfinished(name: &str) -> bool {
    name.starts_with(UNFINISHED.0) && name.ends_with(UNFINISHED.1)
}

/// Creates a folder for unfinished files in `folder`, removed on drop.
pub fn temp_dir(folder: &Path) -> Result<TempDir, FileError> {
    let (prefix, suffix) = UNFINISHED;
    let dir = tempfile::Builder::new().prefix(prefix).suffix(suffix).tempdir_in(folder);
    dir.map_err(failed(folder, "make a folder in it", ADVICE_WRITE))
}

/// Creates a file in `folder`, removed on drop unless it is persisted.
fn temp_file(folder: &Path, private: bool) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(UNFINISHED.0).suffix(UNFINISHED.1);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = if private { 0o600 } else { 0o666 };
        builder.permissions(fs::Permissions::from_mode(mode));
    }
    #[cfg(not(unix))]
    let _ = private;
    builder.tempfile_in(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prepared_file_is_in_place_only_when_committed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.txt");
        fs::write(&path, "old").unwrap();
        let prepared = prepare(&path, |out| out.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        prepared.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert!(prepare(&path, |_| Err(io::Error::other("full"))).is_err());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing else is left");
    }

    #[test]
    fn read_bounded_rejects_endless_input() {
        assert_eq!(read_bounded(&b"four"[..], 4).unwrap(), b"four");
        assert_eq!(read_bounded(&b""[..], 4).unwrap(), b"");
        let error = read_bounded(io::repeat(b'x'), 3 << 20).unwrap_err().to_string();
        assert_eq!(error, "it does not end within 3 MiB; name a file");
    }

    #[test]
    fn read_text_rejects_invalid_utf8() {
        let dir = std::env::temp_dir().join(format!("ctxbench-files-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let path = dir.join("a.txt");
        fs::write(&path, "port 8443").unwrap();
        assert_eq!(read_text(&path).unwrap(), "port 8443");
        fs::write(&path, [0xe9, b'x']).unwrap();
        assert_eq!(read_text(&path).unwrap_err().kind(), ErrorKind::InvalidData);
        fs::remove_dir_all(&dir).unwrap();
        assert_eq!(read_text(&path).unwrap_err().kind(), ErrorKind::NotFound);
    }
}
