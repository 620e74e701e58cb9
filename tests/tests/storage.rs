//! Sessions on disk under failures: torn last lines, cut files, two writers, a full disk, missing
//! permissions.
#![cfg(unix)]

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use ctxbench_core::{Part, Role};
use ctxbench_strategies::persist::{
    JournalEntry, PersistFormat, Persistence, StoredMessage, formats, losses,
};

/// Variable with the job of [`writer_with_limits`]: format, folder, number of entries.
const JOB: &str = "CTXBENCH_WRITER_JOB";

fn format(name: &str) -> &'static PersistFormat {
    formats().into_iter().find(|f| f.name == name).unwrap()
}

fn reply(text: &str) -> StoredMessage {
    StoredMessage::text(Role::Assistant, text)
}

fn append(to: &mut dyn Persistence, message: &StoredMessage) -> Result<(), String> {
    to.append(&JournalEntry::Message(message.clone())).map_err(|e| e.to_string())
}

/// Returns the messages of a writer: texts of up to 600 bytes, which every format can store.
fn script(writer: u64, count: usize) -> Vec<StoredMessage> {
    let message = |i: usize| {
        let role = if i.is_multiple_of(2) { Role::User } else { Role::Assistant };
        let more = " \"日本\"\nand on".repeat(i % 9 * 4);
        StoredMessage::text(role, &format!("message {i} of {writer}{more}."))
    };
    (0..count).map(message).collect()
}

fn files(dir: &Path) -> Vec<PathBuf> {
    ctxbench_util::files::walk(dir).unwrap()
}

#[test]
fn torn_last_line_is_skipped_with_a_note() {
    for name in ["codex-rollout", "claude-code-jsonl"] {
        let dir = tempfile::tempdir().unwrap();
        let said = [StoredMessage::text(Role::User, "first"), reply("second «ü» 日本")];
        let mut p = (format(name).open)(dir.path(), 1).unwrap();
        said.iter().for_each(|s| append(&mut *p, s).unwrap());
        drop(p);
        let is_session = |p: &PathBuf| p.extension().is_some_and(|x| x == "jsonl");
        let file = files(dir.path()).into_iter().find(is_session).unwrap();
        let bytes = std::fs::read(&file).unwrap();
        let start = bytes[..bytes.len() - 1].iter().rposition(|b| *b == b'\n').unwrap() + 1;
        for cut in start..bytes.len() {
            std::fs::write(&file, &bytes[..cut]).unwrap();
            let mut p = (format(name).open)(dir.path(), 2).unwrap();
            let loaded = p.load().unwrap();
            // The line is complete even without its line break.
            let kept = if cut == bytes.len() - 1 { 2 } else { 1 };
            assert_eq!(loaded.context, said[..kept], "{name} at {cut}");
            let torn = cut > start && kept == 1;
            assert_eq!(loaded.notes.len(), usize::from(torn), "{name} at {cut}");
            assert!(loaded.notes.iter().all(|n| n.contains("was skipped")), "{:?}", loaded.notes);
            // The next entry is stored completely.
            append(&mut *p, &said[1]).unwrap();
            assert_eq!(p.load().unwrap().context[kept..], said[1..], "{name} at {cut}");
        }
    }
}

#[test]
fn two_writers_keep_all_entries() {
    const ENTRIES: usize = 40;
    for f in formats() {
        let dir = tempfile::tempdir().unwrap();
        drop((f.open)(dir.path(), 9).unwrap());
        std::thread::scope(|s| {
            for writer in [1, 2] {
                let path = dir.path();
                s.spawn(move || {
                    let mut p = (f.open)(path, writer).unwrap();
                    script(writer, ENTRIES).iter().for_each(|m| append(&mut *p, m).unwrap());
                });
            }
        });
        let p = (f.open)(dir.path(), 3).unwrap();
        assert_eq!(p.load().unwrap().notes, Vec::<String>::new(), "{}", f.name);
        if f.name == "aider-markdown" {
            // Messages are complete on disk, but the format does not store which reply answers
            // which message.
            let text = std::fs::read_to_string(dir.path().join(".aider.chat.history.md")).unwrap();
            for (writer, i) in [1, 2].into_iter().flat_map(|w| (0..ENTRIES).map(move |i| (w, i))) {
                let count = text.matches(&format!("message {i} of {writer}")).count();
                assert_eq!(count, 1, "{i} of {writer}");
            }
            continue;
        }
        let log = p.log().unwrap();
        for writer in [1, 2] {
            let of = |s: &&StoredMessage| matches!(&s.parts[..], [Part::Text(t), ..] if t.contains(&format!(" of {writer}")));
            let own: Vec<StoredMessage> = log.iter().filter(of).cloned().collect();
            let now = losses(&script(writer, ENTRIES), &own);
            assert!(now.equal, "{}: {now:?}", f.name);
        }
    }
}

/// Writes until an entry fails, and prints how many were stored before. Does nothing unless
/// [`written_by_another`] started it, since limits apply to a whole process.
#[test]
#[ignore = "started by other tests as a child process"]
fn writer_with_limits() {
    let Ok(job) = std::env::var(JOB) else { return };
    let [name, dir, count] = job.split('|').collect::<Vec<_>>().try_into().unwrap();
    let mut stored = 0;
    let mut write = || {
        let mut p = (format(name).open)(Path::new(dir), 2).map_err(|e| e.to_string())?;
        for message in script(2, count.parse().unwrap()) {
            append(&mut *p, &message)?;
            stored += 1;
        }
        Ok(())
    };
    let failed: Result<(), String> = write();
    println!("\nwriter|{stored}|{}", failed.unwrap_err().replace('\n', " "));
}

/// Starts [`writer_with_limits`] in a shell after a command. Returns the number of stored entries
/// and the error, which names the folder.
fn written_by_another(
    before: &str,
    name: &str,
    dir: &Path,
    count: usize,
    change: impl FnOnce(&mut Command),
) -> (usize, String) {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("{before}exec \"$0\" \"$@\""));
    command.arg(std::env::current_exe().unwrap());
    command.args(["storage::writer_with_limits", "--exact", "--ignored", "--nocapture"]);
    command.env(JOB, format!("{name}|{}|{count}", dir.display()));
    change(&mut command);
    let said = String::from_utf8(command.output().unwrap().stdout).unwrap();
    let told = said.lines().find_map(|l| l.strip_prefix("writer|")).expect(&said);
    let (stored, failed) = told.split_once('|').unwrap();
    assert!(failed.contains(&dir.display().to_string()), "{name}: {failed}");
    (stored.parse().unwrap(), failed.to_string())
}

#[test]
fn full_disk_is_an_error_and_keeps_earlier_entries() {
    for PersistFormat { name, open, .. } in formats() {
        let dir = tempfile::tempdir().unwrap();
        // In blocks of 512 bytes.
        let limit = "trap '' XFSZ; ulimit -f 300; ";
        let (stored, failed) = written_by_another(limit, name, dir.path(), 3_000, |_| {});
        assert!(stored > 0, "{name}");
        assert!(
            ["free some", "nothing was changed", "still there"].iter().any(|w| failed.contains(w)),
            "{failed}"
        );
        let mut p = open(dir.path(), 6).unwrap();
        let now = losses(&script(2, stored), &p.load().unwrap().context);
        assert_eq!(now.lost, 0, "{name}: {now:?}");
        assert!(now.garbled == 0 || *name == "aider-markdown", "{name}: {now:?}");
        // Now there is enough space again.
        append(&mut *p, &StoredMessage::text(Role::User, "goes on")).unwrap();
        let last = p.load().unwrap().context.pop().unwrap();
        assert_ne!(Some(&last), script(2, stored).last(), "{name}");
    }
}

#[test]
fn missing_permission_is_an_error_and_keeps_earlier_entries() {
    for PersistFormat { name, open, .. } in formats() {
        let dir = tempfile::tempdir().unwrap();
        let kept = StoredMessage::text(Role::User, "kept");
        append(&mut *open(dir.path(), 1).unwrap(), &kept).unwrap();
        allow_writes(dir.path(), false);
        // Permissions apply to every user except root. 65534 is the user `nobody`.
        let file = files(dir.path()).remove(0);
        let is_root = std::fs::OpenOptions::new().append(true).open(file).is_ok();
        let (stored, _) = written_by_another("", name, dir.path(), 1, |command| {
            if is_root {
                command.uid(65_534).gid(65_534);
            }
        });
        assert_eq!(stored, 0, "{name}");
        allow_writes(dir.path(), true);
        let back = open(dir.path(), 3).unwrap().load().unwrap().context;
        assert_eq!(losses(&[kept], &back).lost, 0, "{name}");
    }
}

/// Adds or removes the permission to write to a folder and everything in it. All users may read.
fn allow_writes(path: &Path, write: bool) {
    let mode = if path.is_dir() { 0o555 } else { 0o444 } | if write { 0o200 } else { 0 };
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    if path.is_dir() {
        std::fs::read_dir(path).unwrap().for_each(|e| allow_writes(&e.unwrap().path(), write));
    }
}
