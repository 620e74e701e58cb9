//! Programs that we have started and the folders that we have made for a while, so that none
//! outlives us.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Mutex, MutexGuard, PoisonError};

static ALIVE: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// A group has begun; its id is that of its first process.
pub(crate) fn begun(id: u32) {
    if let Ok(mut alive) = ALIVE.lock() {
        alive.insert(id);
    }
}

/// Ends a group. One that has ended already is what was wanted.
pub(crate) fn end(id: u32) {
    #[cfg(unix)]
    if let Some(group) = i32::try_from(id).ok().and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    // Elsewhere the first process alone is ended, when it is dropped.
    #[cfg(not(unix))]
    let _ = id;
}

/// A group is over: its number may be another's from now on.
pub(crate) fn over(id: u32) {
    end(id);
    if let Ok(mut alive) = ALIVE.lock() {
        alive.remove(&id);
    }
}

/// What is on the disk for a while, by its number; whoever drops it clears it away.
type Held = BTreeMap<u64, Box<dyn Send>>;
static HELD: Mutex<Held> = Mutex::new(BTreeMap::new());

fn held() -> MutexGuard<'static, Held> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// As [`held`]; a thread of a process that is ending stays here for good.
fn held_unless_ending() -> MutexGuard<'static, Held> {
    loop {
        let all = held();
        if !ENDING.load(Ordering::SeqCst) {
            return all;
        }
        drop(all);
        stay_if_ending();
    }
}

/// Something that goes when this is dropped, or with this process if it is told to end before.
#[derive(Debug)]
pub(crate) struct Ours(u64);

impl Ours {
    /// Makes something whose drop clears it away. There is no moment at which it is there and does
    /// not go with us.
    pub(crate) fn new<T: Send + 'static, E>(
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<Ours, E> {
        let mut all = held_unless_ending();
        let id = all.last_key_value().map_or(0, |(last, _)| last + 1);
        all.insert(id, Box::new(make()?));
        Ok(Ours(id))
    }

    /// Lets it become something that stays, by `put`. If this process is told to end meanwhile, it
    /// ends after that. What is left of it is cleared away.
    pub(crate) fn settle<T>(self, put: impl FnOnce() -> T) -> T {
        let mut all = held_unless_ending();
        let put = put();
        drop(all.remove(&self.0));
        drop(all);
        put
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        let it = held().remove(&self.0);
        drop(it);
        // What was done with something that went meanwhile is worth nothing.
        stay_if_ending();
    }
}

/// A folder that is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Folder(pub(crate) PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        remove(&self.0);
    }
}

/// Removes a folder. What was ended a moment ago may still be writing there.
pub(crate) fn remove(folder: &Path) {
    for _ in 0..50 {
        // Something in it may be gone before it is removed; that is no reason to leave the rest.
        if std::fs::remove_dir_all(folder).is_ok() || !folder.exists() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// This process is ending.
static ENDING: AtomicBool = AtomicBool::new(false);

/// Stays here for good if this process is ending: what looks like a program that failed was ended
/// by us.
pub(crate) fn stay_if_ending() {
    while ENDING.load(Ordering::SeqCst) {
        std::thread::park();
    }
}

/// Ends all groups and clears away all that is ours, for whoever ends this process.
fn end_all() {
    ENDING.store(true, Ordering::SeqCst);
    if let Ok(alive) = ALIVE.lock() {
        alive.iter().for_each(|id| end(*id));
    }
    #[cfg(target_os = "linux")]
    marked::end(None);
    let ours = std::mem::take(&mut *held());
    drop(ours);
}

static LAST_WORDS: Mutex<Option<String>> = Mutex::new(None);

/// What is told when this process is told to end from now on, if anything.
pub(crate) fn last_words(words: Option<String>) {
    if let Ok(mut last) = LAST_WORDS.lock() {
        *last = words;
    }
}

/// Ends every program that is still running when this process is told to end. It is told from the
/// moment on at which this returns.
pub(crate) fn end_with_us() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let (listens, ready) = mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let Ok(runtime) = runtime else { return };
            let code = runtime.block_on(told_to_end(listens));
            end_all();
            let words = LAST_WORDS.lock().ok().and_then(|mut last| last.take());
            words.inspect(|words| crate::commands::say(words));
            std::process::exit(code);
        });
        // Either it listens, or it never will and has dropped its end.
        let _ = ready.recv();
    });
}

/// Waits for a signal and gives the exit code by which a shell tells it. Drops `listens` once no
/// signal is missed any more.
#[cfg(unix)]
async fn told_to_end(listens: Sender<()>) -> i32 {
    use crate::signals::Heard;
    use tokio::signal::unix::SignalKind;
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let [interrupt, terminate, hangup] = kinds.map(|kind| Heard::of(kind).ok());
    drop(listens);
    let waits = async |signal: Option<Heard>| match signal {
        Some(mut signal) => signal.next().await,
        None => std::future::pending().await,
    };
    tokio::select! {
        () = waits(interrupt) => 130,
        () = waits(terminate) => 143,
        () = waits(hangup) => 129,
    }
}

#[cfg(not(unix))]
async fn told_to_end(listens: Sender<()>) -> i32 {
    drop(listens);
    let _ = tokio::signal::ctrl_c().await;
    130
}

/// Processes that carry a mark of ours in their environment, however far they have gone from their
/// group: an agent's daemons leave it on purpose.
#[cfg(target_os = "linux")]
pub(crate) mod marked {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    /// The variable; its value is the scratch folder of a drive.
    pub(crate) const MARK: &str = "CTXBENCH_DRIVE";

    /// Ends the processes with this mark, or all that this process has marked, and returns how many
    /// there were.
    pub(crate) fn end(of: Option<&str>) -> usize {
        let wanted = match of {
            Some(value) => vec![value.to_string()],
            None => super::MARKS.lock().map(|m| m.iter().cloned().collect()).unwrap_or_default(),
        };
        if wanted.is_empty() {
            return 0;
        }
        let (mut ended, mut over) = (0, BTreeSet::new());
        for _ in 0..MOST_LOOKS {
            let look = Look::of(Path::new("/proc"), &wanted);
            look.end();
            ended += look.ours.len();
            let last = look.ours.is_empty() && look.over.is_subset(&over);
            over = look.over;
            if last {
                break;
            }
        }
        ended
    }

    /// How often such processes are looked for, at most: one that only forks could go on for ever.
    const MOST_LOOKS: usize = 10;

    /// What one look at all processes finds. Whoever was forked meanwhile is there at the next, and
    /// what was killed forks no more; but who forked and ended during the look cannot be told from
    /// others any more.
    struct Look {
        /// Those with one of the marks.
        ours: Vec<u32>,
        /// Those that had ended when they were looked at.
        over: BTreeSet<u32>,
    }

    impl Look {
        fn of(processes: &Path, wanted: &[String]) -> Look {
            let mine = std::process::id();
            let mut look = Look { ours: Vec::new(), over: BTreeSet::new() };
            for entry in fs::read_dir(processes).into_iter().flatten().flatten() {
                let Some(id) = entry.file_name().to_str().and_then(|n| n.parse::<u32>().ok())
                else {
                    continue;
                };
                let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
                let carries = environment.split(|b| *b == 0).any(|line| {
                    let value = line.strip_prefix(MARK.as_bytes());
                    let value = value.and_then(|v| v.strip_prefix(b"="));
                    value.is_some_and(|v| wanted.iter().any(|w| w.as_bytes() == v))
                });
                if carries && id != mine {
                    look.ours.push(id);
                } else if environment.is_empty() && is_over(&entry.path()) {
                    look.over.insert(id);
                }
            }
            look
        }

        /// Ends those with a mark.
        fn end(&self) {
            for id in &self.ours {
                let process = i32::try_from(*id).ok().and_then(rustix::process::Pid::from_raw);
                if let Some(process) = process {
                    let _ = rustix::process::kill_process(process, rustix::process::Signal::KILL);
                }
            }
            // A killed process lives until the system comes to it, and may still write or listen.
            for _ in 0..200 {
                if self.ours.iter().all(|id| is_over(&Path::new("/proc").join(id.to_string()))) {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
        }
    }

    /// Whether a process does nothing any more, buried or not.
    fn is_over(process: &Path) -> bool {
        let state = fs::read_to_string(process.join("stat"));
        state.map_or(true, |s| s.rsplit(')').next().is_some_and(|s| s.starts_with(" Z")))
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn who_has_ended_may_have_forked_before() {
            let processes = tempfile::tempdir().unwrap();
            let process = |id: &str, environment: &str, state: &str| {
                let folder = processes.path().join(id);
                fs::create_dir(&folder).unwrap();
                fs::write(folder.join("environ"), environment).unwrap();
                fs::write(folder.join("stat"), format!("{id} (a) b) {state} 1")).unwrap();
            };
            process("5", "A=b\0CTXBENCH_DRIVE=/x/1\0", "S");
            process("6", "CTXBENCH_DRIVE=/x/10\0", "S");
            process("7", "", "Z");
            // A thread of the system has no environment either.
            process("8", "", "I");
            // One that was buried after it was listed.
            fs::create_dir(processes.path().join("9")).unwrap();
            fs::create_dir(processes.path().join("self")).unwrap();
            let look = Look::of(processes.path(), &["/x/1".to_string()]);
            assert_eq!((look.ours, look.over), (vec![5], BTreeSet::from([7, 9])));
        }
    }
}

static MARKS: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Processes with this mark are ours.
pub(crate) fn marks(value: &str) {
    if let Ok(mut marks) = MARKS.lock() {
        marks.insert(value.to_string());
    }
}

/// Nothing with this mark is ours any more: the folder that it names may be another's from now on.
pub(crate) fn unmarks(value: &str) {
    if let Ok(mut marks) = MARKS.lock() {
        marks.remove(value);
    }
}
