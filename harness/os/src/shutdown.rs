//! Cleanup when a signal ends this process: child process groups are killed and temporary folders
//! removed before it exits.

use std::collections::BTreeSet;
use std::io;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError, mpsc};
use std::time::Duration;

use crate::signals::Signals;

/// Set once a signal has asked this process to end.
static REQUESTED: AtomicBool = AtomicBool::new(false);

/// Maximum number of times that [`end_orphans`] looks for processes.
#[cfg(target_os = "linux")]
const ROUNDS: usize = 1_000;

static CLEANUP: Mutex<Cleanup> =
    Mutex::new(Cleanup { groups: BTreeSet::new(), folders: BTreeSet::new(), message: None });

/// Everything that must not outlive this process.
struct Cleanup {
    /// Process groups, by the id of their first process.
    groups: BTreeSet<u32>,
    folders: BTreeSet<PathBuf>,
    /// Printed to standard error before the exit.
    message: Option<String>,
}

/// Blocks for good once a signal has ended this process, because the lock is kept until the exit.
fn cleanup() -> MutexGuard<'static, Cleanup> {
    CLEANUP.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns whether a signal has asked this process to end. A child that fails after that was killed
/// by us.
pub fn is_requested() -> bool {
    REQUESTED.load(Ordering::SeqCst)
}

/// Waits for the exit if a signal has asked for it, so that `main` does not return before the
/// cleanup.
pub fn wait_if_requested() {
    if is_requested() {
        drop(cleanup());
    }
}

/// Sets the message that a signal prints from now on.
pub fn set_message(message: Option<String>) {
    cleanup().message = message;
}

/// Runs `spawn` and registers the process group it starts. No group can start during the cleanup.
pub fn spawn_group<T>(spawn: impl FnOnce() -> io::Result<(Option<u32>, T)>) -> io::Result<T> {
    let mut cleanup = cleanup();
    let (id, child) = spawn()?;
    cleanup.groups.extend(id);
    Ok(child)
}

/// Kills a registered process group and unregisters it, so that no signal reaches a later group with
/// the same number. Call this before the first process is reaped.
pub fn end_group(id: u32) {
    let mut cleanup = cleanup();
    if cleanup.groups.remove(&id) {
        kill_group(id);
    }
}

#[cfg(unix)]
fn kill_group(id: u32) {
    if let Some(group) = i32::try_from(id).ok().and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
}

/// Windows has no process groups; the first process is killed when its handle is dropped.
#[cfg(not(unix))]
fn kill_group(_: u32) {}

/// Makes this process the parent of orphans of a program, such as a daemon, so that
/// [`end_orphans`] can end it. Has an effect on Linux only.
pub fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

/// Ends all child processes and those that they leave in turn, if this process adopts orphans. Call
/// it when no program is at work. An error names a process that cannot be ended.
#[cfg(target_os = "linux")]
pub fn end_orphans() -> io::Result<()> {
    use rustix::process::{Signal, WaitOptions, child_subreaper, kill_process, waitpid};
    if child_subreaper()?.is_none() {
        return Ok(());
    }
    for _ in 0..ROUNDS {
        let children = children()?;
        if children.is_empty() {
            return Ok(());
        }
        for child in children {
            kill_process(child, Signal::KILL).or_else(|e| match e {
                // Another thread has waited for it.
                rustix::io::Errno::SRCH => Ok(()),
                e => Err(io::Error::other(format!("a program left process {child:?}: {e}"))),
            })?;
            let _ = waitpid(Some(child), WaitOptions::empty());
        }
    }
    Err(io::Error::other("a program starts processes faster than they can be ended"))
}

#[cfg(not(target_os = "linux"))]
pub fn end_orphans() -> io::Result<()> {
    Ok(())
}

/// Returns the child processes, also those that have ended.
#[cfg(target_os = "linux")]
fn children() -> io::Result<Vec<rustix::process::Pid>> {
    let own = std::process::id().to_string();
    let mut children = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let entry = entry?;
        let id = entry.file_name().to_str().and_then(|name| name.parse().ok());
        let Some(id) = id.and_then(rustix::process::Pid::from_raw) else { continue };
        // A process that has ended in the meantime has no such file.
        let stat = std::fs::read(entry.path().join("stat")).unwrap_or_default();
        let stat = String::from_utf8_lossy(&stat);
        // The state and the parent follow the name, which can be any text.
        let parent = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1));
        children.extend((parent == Some(&*own)).then_some(id));
    }
    Ok(children)
}

/// A temporary folder, removed when this is dropped or a signal ends the process.
#[derive(Debug)]
pub struct TempFolder {
    path: PathBuf,
}

impl TempFolder {
    /// Creates a folder with a name of fixed length in the system's temporary folder.
    pub fn new() -> io::Result<TempFolder> {
        TempFolder::create(|| {
            let folder = tempfile::Builder::new().prefix(".ctxbench-").suffix(".tmp").tempdir()?;
            Ok(folder.keep())
        })
    }

    /// Takes ownership of the folder that `make` creates.
    pub fn create<E>(make: impl FnOnce() -> Result<PathBuf, E>) -> Result<TempFolder, E> {
        let mut cleanup = cleanup();
        let path = make()?;
        cleanup.folders.insert(path.clone());
        Ok(TempFolder { path })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Runs `publish`, which takes over the folder. A signal waits until it has returned.
    pub fn publish<T>(self, publish: impl FnOnce() -> T) -> T {
        let mut cleanup = cleanup();
        cleanup.folders.remove(&self.path);
        let published = publish();
        drop(cleanup);
        published
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        if cleanup().folders.contains(&self.path) {
            remove_folder(&self.path);
            cleanup().folders.remove(&self.path);
        }
    }
}

/// Removes a folder into which a process that was just killed may still be writing.
fn remove_folder(folder: &Path) {
    for _ in 0..50 {
        if std::fs::remove_dir_all(folder).is_ok() || !folder.exists() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Cleans up and exits on SIGINT, SIGTERM and SIGHUP from now on, with the code of a shell: 130, 143
/// or 129.
pub fn exit_on_signals() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let (ready, is_ready) = mpsc::channel::<()>();
        std::thread::spawn(move || {
            let signal = crate::block_on(async {
                let mut signals = Signals::listen();
                drop(ready);
                signals.recv().await
            });
            let Ok(signal) = signal else { return };
            REQUESTED.store(true, Ordering::SeqCst);
            let mut cleanup = cleanup();
            cleanup.groups.iter().for_each(|id| kill_group(*id));
            let _ = end_orphans();
            cleanup.folders.iter().for_each(|folder| remove_folder(folder));
            if let Some(message) = cleanup.message.take() {
                // Standard error may be closed, where `eprintln!` would panic.
                let _ = writeln!(std::io::stderr(), "{message}");
            }
            // As a shell reports it.
            std::process::exit(128 + signal);
        });
        // An error means that the thread could not listen; signals then have their default effect.
        let _ = is_ready.recv();
    });
}
