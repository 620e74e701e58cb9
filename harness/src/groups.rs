//! Process groups of programs that we have started, so that none outlives us.

use std::collections::BTreeSet;
use std::sync::Mutex;

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

/// Ends all groups, for whoever ends this process.
pub(crate) fn end_all() {
    if let Ok(alive) = ALIVE.lock() {
        alive.iter().for_each(|id| end(*id));
    }
    #[cfg(target_os = "linux")]
    marked::end(None);
}

/// Processes that carry a mark of ours in their environment, however far they have gone from their
/// group: an agent's daemons leave it on purpose.
#[cfg(target_os = "linux")]
pub(crate) mod marked {
    use std::fs;

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
        let mine = std::process::id();
        let mut ended = 0;
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let Some(id) = entry.file_name().to_str().and_then(|n| n.parse::<u32>().ok()) else {
                continue;
            };
            let Ok(environment) = fs::read(entry.path().join("environ")) else { continue };
            let carries = environment.split(|b| *b == 0).any(|line| {
                let value = line.strip_prefix(MARK.as_bytes());
                let value = value.and_then(|v| v.strip_prefix(b"="));
                value.is_some_and(|v| wanted.iter().any(|w| w.as_bytes() == v))
            });
            let process = i32::try_from(id).ok().and_then(rustix::process::Pid::from_raw);
            if let (true, Some(process)) = (carries && id != mine, process) {
                let _ = rustix::process::kill_process(process, rustix::process::Signal::KILL);
                ended += 1;
            }
        }
        ended
    }
}

static MARKS: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Processes with this mark are ours.
pub(crate) fn marks(value: &str) {
    if let Ok(mut marks) = MARKS.lock() {
        marks.insert(value.to_string());
    }
}
