//! Sessions on disk under failures: killed programs, torn last lines, two writers, a full disk,
//! missing permissions. The writer is this test binary, started as a child process that prints each
//! stored entry. Kills are seeded, and no test sleeps.
//!
//! `CTXBENCH_KILLS=500 cargo test --test all -- crash:: --nocapture` prints the figures of
//! docs/method.md.
#![cfg(unix)]

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use ctxbench_core::block::Role;
use ctxbench_core::content::{Part, ToolCall};
use ctxbench_core::rng::SplitMix64;
use ctxbench_strategies::persist::{
    Journal, JournalEntry, PersistFormat, StoredMessage, formats, losses,
};

/// Variable with the child's job: format, folder, seed, maximum number of entries, kind of entries.
const JOB: &str = "CTXBENCH_CRASH_JOB";
/// Number of kills per format in a normal test run.
const KILLS: u64 = 25;
/// Maximum number of entries that are acknowledged before a kill.
const MOST: u64 = 24;

/// Formats that must not lose acknowledged entries.
const STRICT: [&str; 2] = ["codex-rollout", "claude-code-jsonl"];

fn format(name: &str) -> &'static PersistFormat {
    formats().into_iter().find(|f| f.name == name).unwrap()
}

/// The entries of a session. Each is a function of seed and index, so that parent and child agree
/// without communication.
struct CrashScript {
    seed: u64,
    journal: Journal,
    context: Vec<StoredMessage>,
    at: u64,
    /// Whether the session contains only texts, which every format can store, and no compaction.
    plain: bool,
}

impl CrashScript {
    fn new(seed: u64, plain: bool) -> CrashScript {
        CrashScript { seed, journal: Journal::default(), context: Vec::new(), at: 0, plain }
    }

    fn text(&self, i: u64) -> String {
        let mut random = SplitMix64::new(self.seed << 20 | i);
        let mut out = format!("message {i} of {}", self.seed);
        for _ in 0..random.bits() % 80 {
            let words = [
                "one",
                "two and three",
                "four\nfive",
                "\"six\"",
                "seven \\ eight",
                "nine\n# ten",
                "日本",
            ];
            out.push(' ');
            out.push_str(words[random.below(words.len() as u64) as usize]);
        }
        out + "."
    }

    /// Returns the next entry. [`Script::context`] is then the context after it.
    fn next(&mut self) -> JournalEntry {
        let i = self.at;
        self.at += 1;
        let text = self.text(i);
        let call = |k: u64| -> std::sync::Arc<str> { format!("call {k}").into() };
        match i % 10 {
            // A compaction that keeps the last message, or the last call with its result.
            8 if !self.plain => {
                let tail = self.context.split_off(self.context.len().saturating_sub(1));
                let summary = StoredMessage {
                    role: Role::Assistant,
                    parts: vec![Part::Summary(text.into())],
                };
                self.context =
                    [vec![StoredMessage::text(Role::User, "What was it about?"), summary], tail]
                        .concat();
                self.journal.became(self.context.clone());
            }
            3 if !self.plain => {
                let call = Part::Call(ToolCall {
                    id: call(i),
                    name: "read".into(),
                    arguments: "{\"path\":\"a\"}".into(),
                });
                self.context.push(StoredMessage {
                    role: Role::Assistant,
                    parts: vec![Part::Text(text.into()), call],
                });
            }
            4 if !self.plain => {
                let result = Part::Result {
                    id: call(i - 1),
                    name: "read".into(),
                    output: text.into(),
                    is_error: false,
                };
                self.context.push(StoredMessage { role: Role::Tool, parts: vec![result] });
            }
            _ => self.context.push(StoredMessage::text(
                if i.is_multiple_of(2) { Role::User } else { Role::Assistant },
                &text,
            )),
        }
        self.journal.grew(self.context.clone());
        self.journal.entries.last().cloned().unwrap()
    }
}

/// The writer. Does nothing unless it was started as a child.
#[test]
#[ignore = "started by other tests as a child process"]
fn child() {
    let Ok(job) = std::env::var(JOB) else { return };
    let [name, dir, seed, most, plain] = job.split('|').collect::<Vec<_>>().try_into().unwrap();
    let mut script = CrashScript::new(seed.parse().unwrap(), plain == "plain");
    let mut out = std::io::stdout();
    let mut work = || -> Result<(), String> {
        let mut p = (format(name).open)(Path::new(dir), seed.parse().unwrap())
            .map_err(|e| e.to_string())?;
        for i in 0..most.parse::<u64>().unwrap() {
            p.append(&script.next()).map_err(|e| e.to_string())?;
            // The entry is durable, so it may be acknowledged.
            writeln!(out, "\nack {i}").and_then(|()| out.flush()).map_err(|e| e.to_string())?;
        }
        Ok(())
    };
    if let Err(e) = work() {
        println!("\nfailed {}", e.replace('\n', " "));
    }
}

struct KilledWriter {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
    acknowledged: u64,
    failed: Option<String>,
}

fn command(
    shell: Option<&str>,
    name: &str,
    dir: &Path,
    seed: u64,
    most: u64,
    plain: bool,
) -> Command {
    let this = std::env::current_exe().unwrap();
    let mut c = match shell {
        Some(before) => {
            let mut c = Command::new("sh");
            c.arg("-c").arg(format!("{before}; exec \"$0\" \"$@\"")).arg(&this);
            c
        }
        None => Command::new(&this),
    };
    c.args(["crash::child", "--exact", "--ignored", "--nocapture", "--test-threads=1"]);
    c.env(
        JOB,
        format!("{name}|{}|{seed}|{most}|{}", dir.display(), if plain { "plain" } else { "all" }),
    );
    c.stdout(Stdio::piped()).stderr(Stdio::null());
    c
}

impl KilledWriter {
    fn start(mut command: Command) -> KilledWriter {
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        KilledWriter { child, lines, acknowledged: 0, failed: None }
    }

    /// Reads one line. Returns false at the end.
    fn step(&mut self) -> bool {
        let Some(Ok(line)) = self.lines.next() else { return false };
        if let Some(n) = line.strip_prefix("ack ") {
            // A line that was cut off by the kill is ignored.
            assert_eq!(n.parse::<u64>().ok(), Some(self.acknowledged));
            self.acknowledged += 1;
        } else if let Some(e) = line.strip_prefix("failed ") {
            self.failed = Some(e.to_string());
        }
        true
    }

    /// Kills the writer some instructions after it acknowledged this many entries. Returns the
    /// final number of acknowledged entries.
    fn kill_after(mut self, acks: u64, spins: u64) -> u64 {
        while self.acknowledged < acks && self.step() {}
        assert_eq!(self.failed, None);
        (0..spins).for_each(|i| {
            std::hint::black_box(i);
        });
        self.child.kill().unwrap();
        // Lines that were printed before the kill count.
        while self.step() {}
        self.child.wait().unwrap();
        self.acknowledged
    }

    fn finish(mut self) -> (u64, Option<String>) {
        while self.step() {}
        self.child.wait().unwrap();
        (self.acknowledged, self.failed)
    }
}

#[derive(Default)]
struct CrashFigures {
    kills: u64,
    acknowledged: u64,
    lost: u64,
    garbled: u64,
    surplus: u64,
    torn: u64,
}

fn kills() -> u64 {
    std::env::var("CTXBENCH_KILLS")
        .ok()
        .map_or(KILLS, |n| n.parse().expect("CTXBENCH_KILLS is a number"))
}

/// Kills a writer repeatedly, each time in a fresh folder, and counts lost entries.
fn kill_often(name: &str, plain: bool) -> CrashFigures {
    let mut random = SplitMix64::new(name.bytes().map(u64::from).sum());
    let mut out = CrashFigures::default();
    for seed in 1..=kills() {
        let dir = tempfile::tempdir().unwrap();
        let (acks, spins) = (random.bits() % MOST, random.bits() % 300_000);
        let acknowledged = KilledWriter::start(command(None, name, dir.path(), seed, 1_000, plain))
            .kill_after(acks, spins);
        let mut script = CrashScript::new(seed, plain);
        for _ in 0..acknowledged {
            script.next();
        }
        let mut p = (format(name).open)(dir.path(), seed + 1_000_000).unwrap();
        let loaded = p.load().unwrap();
        let was = losses(&script.context, &loaded.context);
        let whole = script.context.clone();
        // The entry in progress at the kill may be stored too, and may have been a compaction.
        script.next();
        let is = losses(&script.context, &loaded.context);
        let (now, shown) = if is.equal || (is.lost, is.garbled) < (was.lost, was.garbled) {
            (is, &script.context)
        } else {
            (was, &whole)
        };
        if STRICT.contains(&name) {
            assert_eq!(
                (now.lost, now.garbled),
                (0, 0),
                "{name}, seed {seed}, {acknowledged} acknowledged: {shown:#?}\n{:#?}",
                loaded.context
            );
        }
        out.kills += 1;
        out.acknowledged += acknowledged;
        out.lost += now.lost as u64;
        out.garbled += now.garbled as u64;
        out.surplus += now.surplus as u64;
        out.torn += loaded.notes.len() as u64;
        // The session accepts new entries.
        let more = StoredMessage::text(Role::User, "after the crash");
        p.append(&JournalEntry::Message(more.clone())).unwrap();
        drop(p);
        let last = (format(name).open)(dir.path(), 7).unwrap().load().unwrap().context;
        let after = last.last().cloned();
        assert!(
            losses(&[more], &after.into_iter().collect::<Vec<_>>()).lost == 0,
            "{name}, seed {seed}: {:?}",
            last.last()
        );
    }
    println!(
        "{name}: {} kills, {} entries acknowledged, {} messages lost, {} garbled, {} nobody said, \
         {} torn entries passed over with a note",
        out.kills, out.acknowledged, out.lost, out.garbled, out.surplus, out.torn
    );
    out
}

#[test]
#[ignore = "nightly: kills at random moments"]
fn killed_jsonl_writer_keeps_acknowledged_entries() {
    for name in ["codex-rollout", "claude-code-jsonl"] {
        assert!(kill_often(name, false).acknowledged > 0);
    }
}

#[test]
#[ignore = "nightly: kills at random moments"]
fn killed_file_tree_writer_can_continue() {
    assert!(kill_often("opencode-files", false).acknowledged > 0);
}

/// Returns the only file to which lines are appended.
fn lines_file(dir: &Path) -> PathBuf {
    let mut open = vec![dir.to_path_buf()];
    while let Some(d) = open.pop() {
        for e in std::fs::read_dir(d).unwrap().map(Result::unwrap) {
            let path = e.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|x| x == "jsonl")
                && !path.ends_with("history.jsonl")
            {
                return path;
            }
        }
    }
    panic!("no file of lines");
}

#[test]
fn torn_last_line_is_skipped_with_a_note() {
    for name in ["codex-rollout", "claude-code-jsonl"] {
        let dir = tempfile::tempdir().unwrap();
        let said = [
            StoredMessage::text(Role::User, "first"),
            StoredMessage::text(Role::Assistant, "second «ü» 日本"),
        ];
        let mut p = (format(name).open)(dir.path(), 1).unwrap();
        said.iter().for_each(|s| p.append(&JournalEntry::Message(s.clone())).unwrap());
        drop(p);
        let file = lines_file(dir.path());
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
            assert_eq!(
                loaded.notes.len(),
                usize::from(torn),
                "{name} at {cut}: {:?}",
                loaded.notes
            );
            if torn {
                assert!(loaded.notes[0].contains("was skipped"), "{:?}", loaded.notes);
            }
            // The next entry is stored completely.
            p.append(&JournalEntry::Message(said[1].clone())).unwrap();
            let after = p.load().unwrap();
            assert_eq!(after.context[kept..], said[1..], "{name} at {cut}");
        }
    }
}

#[test]
fn two_writers_keep_all_entries() {
    const KILLS_PER_FORMAT: u64 = 40;
    for f in formats() {
        let dir = tempfile::tempdir().unwrap();
        drop((f.open)(dir.path(), 9).unwrap());
        let writers: Vec<KilledWriter> = [1, 2]
            .map(|seed| {
                KilledWriter::start(command(None, f.name, dir.path(), seed, KILLS_PER_FORMAT, true))
            })
            .into();
        for w in writers {
            assert_eq!(w.finish(), (KILLS_PER_FORMAT, None), "{}", f.name);
        }
        let p = (f.open)(dir.path(), 3).unwrap();
        assert_eq!(p.load().unwrap().notes, Vec::<String>::new(), "{}", f.name);
        let log = p.log().unwrap();
        for seed in [1, 2] {
            let mut script = CrashScript::new(seed, true);
            (0..KILLS_PER_FORMAT).for_each(|_| drop(script.next()));
            let of = |s: &&StoredMessage| matches!(&s.parts[..], [Part::Text(t), ..] if t.contains(&format!(" of {seed}")));
            let own: Vec<StoredMessage> = log.iter().filter(of).cloned().collect();
            let now = losses(&script.context, &own);
            if f.name == "aider-markdown" {
                // Messages are complete on disk, but the format does not store which reply answers
                // which message.
                let text =
                    std::fs::read_to_string(dir.path().join(".aider.chat.history.md")).unwrap();
                (0..KILLS_PER_FORMAT).for_each(|i| {
                    assert_eq!(
                        text.matches(&format!("message {i} of {seed}")).count(),
                        1,
                        "{i} of {seed}"
                    )
                });
            } else {
                assert!(now.equal, "{}: {now:?}", f.name);
            }
        }
    }
}

/// Formats and the maximum file size, in blocks of 512 bytes. A format with one file reaches it
/// late; a tree of files reaches the smallest size with its first long message.
const ROOM: [(&str, u32); 8] = [
    ("ctxbench-store", 300),
    ("aider-markdown", 300),
    ("codex-rollout", 300),
    ("opencode-tables", 300),
    ("pi-jsonl", 300),
    ("gemini-cli-jsonl", 300),
    ("claude-code-jsonl", 300),
    ("opencode-files", 1),
];

fn no_room(blocks: u32) -> String {
    format!("trap '' XFSZ; ulimit -f {blocks}")
}

#[test]
fn full_disk_is_an_error_and_keeps_earlier_entries() {
    for (name, blocks) in ROOM {
        let dir = tempfile::tempdir().unwrap();
        let shell = no_room(blocks);
        let (acknowledged, failed) =
            KilledWriter::start(command(Some(&shell), name, dir.path(), 5, 3_000, true)).finish();
        assert!(acknowledged > 0, "{name}");
        let failed = failed.unwrap_or_else(|| panic!("{name}: {acknowledged} entries fitted"));
        assert!(failed.contains(&dir.path().display().to_string()), "{failed}");
        assert_eq!(failed.contains("may be incomplete"), name == "opencode-files", "{failed}");
        assert!(
            ["free some", "nothing was changed", "still there"].iter().any(|w| failed.contains(w)),
            "{failed}"
        );
        let mut script = CrashScript::new(5, true);
        (0..acknowledged).for_each(|_| drop(script.next()));
        let mut p = (format(name).open)(dir.path(), 6).unwrap();
        let now = losses(&script.context, &p.load().unwrap().context);
        assert_eq!(now.lost, 0, "{name}: {now:?}");
        if name != "aider-markdown" {
            assert_eq!(now.garbled, 0, "{name}");
        }
        // Now there is enough space again.
        p.append(&JournalEntry::Message(StoredMessage::text(Role::User, "goes on"))).unwrap();
        assert!(
            p.load()
                .unwrap()
                .context
                .last()
                .is_some_and(|s| *s != script.context[script.context.len() - 1]),
            "{name}"
        );
    }
}

#[test]
fn full_disk_loses_only_the_current_part_of_a_file_tree() {
    // A result is written to the file of its call. With few seeds such a result is the first
    // message that does not fit.
    let name = "opencode-files";
    let mut cut = 0;
    for seed in 1..=40 {
        let dir = tempfile::tempdir().unwrap();
        let (acknowledged, failed) =
            KilledWriter::start(command(Some(&no_room(1)), name, dir.path(), seed, 3_000, false))
                .finish();
        let mut script = CrashScript::new(seed, false);
        (0..acknowledged).for_each(|_| drop(script.next()));
        let mut p = (format(name).open)(dir.path(), seed).unwrap();
        let loaded = p.load().unwrap();
        let now = losses(&script.context, &loaded.context);
        let failed = failed.unwrap_or_else(|| panic!("seed {seed}: {acknowledged} entries fitted"));
        if matches!(script.next(), JournalEntry::Message(StoredMessage { role: Role::Tool, .. })) {
            cut += 1;
            assert!(failed.contains("may be incomplete"), "{failed}");
            assert_eq!(
                (now.lost + now.garbled, loaded.notes.len()),
                (1, 1),
                "seed {seed}: {now:?}, {:?}",
                loaded.notes
            );
        } else {
            assert_eq!((now.lost, now.garbled), (0, 0), "seed {seed}: {now:?}");
        }
        p.append(&JournalEntry::Message(StoredMessage::text(Role::User, "goes on"))).unwrap();
        assert_eq!(
            p.load().unwrap().context.last(),
            Some(&StoredMessage::text(Role::User, "goes on")),
            "seed {seed}"
        );
    }
    assert!(cut > 0);
}

#[test]
fn missing_permission_is_an_error_and_keeps_earlier_entries() {
    for (name, _) in ROOM {
        let dir = tempfile::tempdir().unwrap();
        let mut p = (format(name).open)(dir.path(), 1).unwrap();
        p.append(&JournalEntry::Message(StoredMessage::text(Role::User, "kept"))).unwrap();
        drop(p);
        lock(dir.path(), false);
        let mut c = command(None, name, dir.path(), 2, 1, true);
        // Permissions apply to every user except root. 65534 is the user `nobody`.
        if std::fs::OpenOptions::new().append(true).open(first_file(dir.path())).is_ok() {
            c.uid(65_534).gid(65_534);
        }
        let (acknowledged, failed) = KilledWriter::start(c).finish();
        assert_eq!(acknowledged, 0, "{name}");
        let failed = failed.unwrap_or_else(|| panic!("{name} wrote to a read-only file"));
        assert!(failed.contains(&dir.path().display().to_string()), "{failed}");
        lock(dir.path(), true);
        let back = (format(name).open)(dir.path(), 3).unwrap().load().unwrap().context;
        assert_eq!(losses(&[StoredMessage::text(Role::User, "kept")], &back).lost, 0, "{name}");
    }
}

fn all_below(dir: &Path) -> Vec<PathBuf> {
    let mut out = vec![dir.to_path_buf()];
    let mut at = 0;
    while at < out.len() {
        if out[at].is_dir() {
            out.extend(std::fs::read_dir(&out[at]).unwrap().map(|e| e.unwrap().path()));
        }
        at += 1;
    }
    out
}

fn first_file(dir: &Path) -> PathBuf {
    all_below(dir).into_iter().find(|p| p.is_file()).unwrap()
}

/// Removes or restores write permission. All users may read.
fn lock(dir: &Path, write: bool) {
    let mut all = all_below(dir);
    if write {
        all.reverse();
        all.sort_by_key(|p| p.components().count());
    }
    for p in all {
        let mode = match (p.is_dir(), write) {
            (true, true) => 0o755,
            (true, false) => 0o555,
            (false, true) => 0o644,
            (false, false) => 0o444,
        };
        std::fs::set_permissions(&p, std::fs::Permissions::from_mode(mode)).unwrap();
    }
}
