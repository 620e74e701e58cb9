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
