use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

struct Place {
    _tmp: TempDir,
    root: PathBuf,
    store: PathBuf,
    outside: PathBuf,
}

fn place() -> Place {
    let tmp = tempfile::tempdir().unwrap();
    let at = |n: &str| tmp.path().join(n);
    fs::create_dir_all(at("root")).unwrap();
    fs::create_dir_all(at("outside")).unwrap();
    fs::write(at("outside/secret"), "keep me").unwrap();
    Place {
        root: at("root").canonicalize().unwrap(),
        store: at("store"),
        outside: at("outside"),
        _tmp: tmp,
    }
}

impl Place {
    fn edits(&self) -> EditCheckpoints {
        EditCheckpoints::open(&self.root, &self.store, Keep::default()).unwrap()
    }

    /// Where thousands of writes would wait for a disk that is not what is tested.
    fn scratch(&self) -> EditCheckpoints {
        EditCheckpoints::open_with(&self.root, &self.store, Keep::default(), Durability::Scratch)
            .unwrap()
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.root.join(path)).ok()
    }
}

fn edit(c: &mut impl Snapshots, p: &Place, path: &str, text: &str) {
    c.before_edit(path).unwrap();
    p.write(path, text);
}

#[test]
fn copies_of_files_are_their_owners_alone() {
    let p = place();
    p.write("secret", "former");
    fs::set_permissions(p.root.join("secret"), fs::Permissions::from_mode(0o600)).unwrap();
    let mut c = p.edits();
    c.begin("first", 0).unwrap();
    edit(&mut c, &p, "secret", "new");
    for folder in ["", "checkpoints", "blobs"] {
        let mode = fs::metadata(p.store.join(folder)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{folder}");
    }
}

#[test]
fn goes_back_to_a_prompt_and_forth_again() {
    let p = place();
    p.write("a", "one");
    let mut c = p.edits();
    let first = c.begin("first", 0).unwrap();
    edit(&mut c, &p, "a", "two");
    let second = c.begin("second", 1).unwrap();
    edit(&mut c, &p, "a", "three");
    edit(&mut c, &p, "new/b", "fresh");
    let back = c.restore(second, 2).unwrap();
    assert_eq!((p.read("a").as_deref(), p.read("new/b")), (Some("two"), None));
    assert_eq!(
        back.files,
        [("a".to_string(), FileOutcome::Restored), ("new/b".to_string(), FileOutcome::Restored)]
    );
    c.restore(back.undo, 3).unwrap();
    assert_eq!(
        (p.read("a").as_deref(), p.read("new/b").as_deref()),
        (Some("three"), Some("fresh"))
    );
    c.restore(first, 4).unwrap();
    assert_eq!((p.read("a").as_deref(), p.read("new/b")), (Some("one"), None));
    // A new program finds the same checkpoints.
    let (list, busy) =
        (c.list().to_vec(), EditCheckpoints::open(&p.root, &p.store, Keep::default()));
    assert!(matches!(busy, Err(CheckpointError::InUse(at)) if at == p.store));
    drop(c);
    let mut again = p.edits();
    assert_eq!(again.list(), list);
    again.restore(back.undo, 5).unwrap();
    assert_eq!(p.read("a").as_deref(), Some("three"));
}

#[test]
fn who_is_done_holds_nothing_even_while_another_program_starts() {
    let p = place();
    let c = p.edits();
    // What a child has between fork and exec.
    let inherited = c.lock.try_clone().unwrap();
    drop(c);
    p.edits();
    drop(inherited);
}

#[test]
fn modes_come_back_and_contents_are_kept_once() {
    let p = place();
    p.write("run.sh", "same bytes");
    p.write("copy", "same bytes");
    fs::set_permissions(p.root.join("run.sh"), fs::Permissions::from_mode(0o750)).unwrap();
    let mut c = p.edits();
    let n = c.begin("x", 0).unwrap();
    edit(&mut c, &p, "copy", "other");
    c.before_edit("run.sh").unwrap();
    fs::remove_file(p.root.join("run.sh")).unwrap();
    c.restore(n, 1).unwrap();
    assert_eq!(fs::metadata(p.root.join("run.sh")).unwrap().permissions().mode() & 0o777, 0o750);
    let blobs = Blobs::open(&p.store.join("blobs"), Durability::Synced).unwrap();
    // "same bytes" once, and "other", which the restoration overwrote. SHA-256 of "abc" by FIPS
    // 180-4.
    assert_eq!(blobs.list().unwrap().iter().map(|(_, n)| n).sum::<u64>(), 15);
    assert_eq!(
        Digest::sha256(b"abc").as_str(),
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
}

#[test]
fn a_damaged_content_is_never_written() {
    let p = place();
    p.write("a", "one");
    let mut c = p.edits();
    let n = c.begin("x", 0).unwrap();
    edit(&mut c, &p, "a", "two");
    fs::write(blob(&p, b"one"), "forged").unwrap();
    let back = c.restore(n, 1).unwrap();
    assert!(
        matches!(&back.files[0].1, FileOutcome::Failed(why) if why.contains("SHA-256")),
        "{back:?}"
    );
    assert_eq!(p.read("a").as_deref(), Some("two"));
}

#[test]
fn thirty_days_and_a_hundred_checkpoints() {
    const DAY: u64 = 86_400_000;
    let p = place();
    p.write("a", "0");
    let mut c = p.scratch();
    let old = c.begin("old", 0).unwrap();
    edit(&mut c, &p, "a", "1");
    let kept = c.begin("kept", DAY).unwrap();
    edit(&mut c, &p, "a", "22");
    assert_eq!(c.expire(30 * DAY).unwrap(), 0, "30 days are not over");
    assert_eq!(c.expire(30 * DAY + 1).unwrap(), 1, "the content \"0\" is one byte");
    assert!(matches!(c.restore(old, 0), Err(CheckpointError::Unknown(n)) if n == old));
    c.restore(kept, 31 * DAY).unwrap();
    assert_eq!(p.read("a").as_deref(), Some("1"));
    for i in 0..120 {
        c.begin(&i.to_string(), 31 * DAY).unwrap();
    }
    c.expire(31 * DAY).unwrap();
    assert_eq!(c.list().len(), 100);
    let list = c.list().to_vec();
    drop(c);
    assert_eq!(p.edits().list(), list);
}

fn blob(p: &Place, bytes: &[u8]) -> PathBuf {
    let digest = Digest::sha256(bytes);
    p.store.join("blobs").join(&digest.as_str()[..2]).join(&digest.as_str()[2..])
}

#[test]
fn a_content_that_a_power_cut_spoiled_is_kept_anew() {
    let p = place();
    let blobs = Blobs::open(&p.store.join("blobs"), Durability::Synced).unwrap();
    for left in ["", "on", "two"] {
        let digest = blobs.put(b"one").unwrap();
        fs::write(blob(&p, b"one"), left).unwrap();
        assert!(blobs.get(&digest).is_err(), "{left:?}");
        blobs.put(b"one").unwrap();
        assert_eq!(blobs.get(&digest).unwrap(), b"one", "after {left:?}");
    }
}

#[test]
fn nothing_is_overwritten_on_the_word_of_a_spoiled_content() {
    let p = place();
    p.write("a", "one");
    let mut c = p.edits();
    let n = c.begin("x", 0).unwrap();
    edit(&mut c, &p, "a", "two");
    // Kept once before, and cut by the power.
    Blobs::open(&p.store.join("blobs"), Durability::Synced).unwrap().put(b"two").unwrap();
    fs::write(blob(&p, b"two"), "").unwrap();
    let back = c.restore(n, 1).unwrap();
    assert_eq!(p.read("a").as_deref(), Some("one"));
    c.restore(back.undo, 2).unwrap();
    assert_eq!(p.read("a").as_deref(), Some("two"), "going back can be taken back");
}

#[test]
fn a_clock_that_went_back_takes_nothing_from_earlier_checkpoints() {
    const DAY: u64 = 86_400_000;
    let p = place();
    p.write("a", "zero");
    let mut c = p.edits();
    let first = c.begin("first", 10 * DAY).unwrap();
    // The clock went back; this state is all that the first checkpoint knows of the file.
    c.begin("second", 0).unwrap();
    edit(&mut c, &p, "a", "one");
    assert_eq!(
        c.expire(35 * DAY).unwrap(),
        0,
        "an older one behind a kept one stays as long as it"
    );
    c.restore(first, 35 * DAY).unwrap();
    assert_eq!(p.read("a").as_deref(), Some("zero"));
    // Both go when the first has gone.
    c.expire(41 * DAY).unwrap();
    assert_eq!(c.list().iter().map(|c| c.number).collect::<Vec<_>>(), [3]);
}

fn names_in(dir: &Path) -> Vec<String> {
    let mut out: Vec<String> =
        fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    out.sort();
    out
}

#[test]
fn what_a_killed_writer_left_is_removed_and_what_another_one_writes_is_not() {
    let p = place();
    let root = Root::open(&p.root).unwrap();
    let write = |text: &str| {
        root.write(&root.resolve("a").unwrap(), &Content { bytes: text.into(), mode: 0o644 })
    };
    p.write(".ctxbench-restore-0.tmp", "half a fi");
    write("one").unwrap();
    assert_eq!(names_in(&p.root), ["a"]);
    // A writer that lives holds its file.
    p.write(".ctxbench-restore-0.tmp", "being written");
    let held = fs::File::open(p.root.join(".ctxbench-restore-0.tmp")).unwrap();
    rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive).unwrap();
    write("two").unwrap();
    assert_eq!(names_in(&p.root), [".ctxbench-restore-0.tmp", "a"]);
    assert_eq!(
        (p.read(".ctxbench-restore-0.tmp").as_deref(), p.read("a").as_deref()),
        (Some("being written"), Some("two"))
    );
    drop(held);
    // What is no file is not touched.
    fs::remove_file(p.root.join(".ctxbench-restore-0.tmp")).unwrap();
    symlink(p.outside.join("secret"), p.root.join(".ctxbench-restore-0.tmp")).unwrap();
    fs::create_dir(p.root.join(".ctxbench-restore-1.tmp")).unwrap();
    write("three").unwrap();
    assert_eq!(names_in(&p.root), [".ctxbench-restore-0.tmp", ".ctxbench-restore-1.tmp", "a"]);
    assert_eq!(fs::read_to_string(p.outside.join("secret")).unwrap(), "keep me");
}

#[test]
fn what_a_killed_program_was_keeping_goes_when_the_next_one_has_the_folder_alone() {
    let p = place();
    p.write("a", "one");
    let mut c = p.edits();
    c.begin("first", 0).unwrap();
    edit(&mut c, &p, "a", "two");
    let blob = Digest::sha256(b"one");
    let (head, tail) = blob.as_str().split_at(2);
    let left =
        ["checkpoints/00000002.tmp-4711-0".to_string(), format!("blobs/{head}/{tail}.tmp-4711-12")];
    let mine = ["checkpoints/notes.tmp-of-mine".to_string(), format!("blobs/{head}/x.tmp")];
    for name in left.iter().chain(&mine) {
        fs::write(p.store.join(name), "half a").unwrap();
    }
    let there = |name: &String| p.store.join(name).exists();
    // Whoever is refused touches nothing: it may be what the other is writing.
    assert!(EditCheckpoints::open(&p.root, &p.store, Keep::default()).is_err());
    assert!(left.iter().chain(&mine).all(there));
    drop(c);
    let mut c = p.edits();
    assert_eq!((left.iter().any(there), mine.iter().all(there)), (false, true));
    c.restore(1, 1).unwrap();
    assert_eq!(p.read("a").as_deref(), Some("one"));
}

#[test]
fn paths_that_leave_the_folder_are_refused_with_the_reason() {
    let p = place();
    let root = Root::open(&p.root).unwrap();
    let refusal = |path: &str| root.resolve(path).unwrap_err().to_string();
    assert!(refusal("../outside/secret").contains("contains `..`"));
    assert!(refusal("a/../../outside/secret").contains("contains `..`"));
    assert!(refusal("/etc/passwd").contains("lies outside"));
    assert!(refusal(&format!("{}-sibling/x", p.root.display())).contains("lies outside"));
    assert!(refusal("").contains("names no file") && refusal("./").contains("names no file"));
    assert!(refusal("a\0b").contains("zero byte"));
    assert_eq!(root.resolve(&format!("{}/d/x", p.root.display())).unwrap().as_str(), "d/x");
    assert_eq!(root.resolve("./d//x").unwrap().as_str(), "d/x");
}

#[test]
fn links_and_devices_on_the_way_are_refused_and_nothing_is_followed() {
    let p = place();
    symlink(&p.outside, p.root.join("link")).unwrap();
    symlink(p.outside.join("secret"), p.root.join("file-link")).unwrap();
    fs::create_dir(p.root.join("folder")).unwrap();
    p.write("plain", "x");
    let root = Root::open(&p.root).unwrap();
    for (path, word) in [
        ("link/secret", "`link` is a symbolic link"),
        ("link/deep/new", "`link` is a symbolic link"),
        ("file-link", "`file-link` is a symbolic link"),
        ("folder", "not a regular file"),
        ("plain/x", "`plain` is not a folder"),
    ] {
        let safe = root.resolve(path).unwrap();
        let content = Content { bytes: b"evil".to_vec(), mode: 0o644 };
        for said in [
            root.read(&safe).unwrap_err(),
            root.write(&safe, &content).unwrap_err(),
            root.remove(&safe).unwrap_err(),
        ] {
            assert!(
                said.to_string().contains(word) && said.to_string().starts_with(path),
                "{said}"
            );
            assert!(said.is_refusal());
        }
    }
    assert_eq!(fs::read_to_string(p.outside.join("secret")).unwrap(), "keep me");
    assert_eq!(fs::read_dir(&p.outside).unwrap().count(), 1);
}

#[test]
fn a_hard_link_to_elsewhere_is_broken_and_not_written_through() {
    let p = place();
    p.write("a", "one");
    let mut c = p.edits();
    let n = c.begin("x", 0).unwrap();
    c.before_edit("a").unwrap();
    fs::remove_file(p.root.join("a")).unwrap();
    fs::hard_link(p.outside.join("secret"), p.root.join("a")).unwrap();
    c.restore(n, 1).unwrap();
    assert_eq!(p.read("a").as_deref(), Some("one"));
    assert_eq!(fs::read_to_string(p.outside.join("secret")).unwrap(), "keep me");
}

#[test]
fn the_shell_is_the_blind_spot_and_lowers_the_success() {
    let p = place();
    for name in ["edited", "sed", "removed", "idle"] {
        p.write(name, "before");
    }
    let mut c = p.edits();
    let n = c.begin("x", 0).unwrap();
    let at_prompt = Tree::read(&p.root).unwrap();
    edit(&mut c, &p, "edited", "after");
    p.write("sed", "after");
    p.write("made", "by the shell");
    fs::remove_file(p.root.join("removed")).unwrap();
    let before = Tree::read(&p.root).unwrap();
    c.restore(n, 1).unwrap();
    let s = Tree::success(&at_prompt, &before, &Tree::read(&p.root).unwrap());
    // Four files changed, one came back; the file that nobody touched does not count.
    assert_eq!(s.changed, ["edited", "made", "removed", "sed"]);
    assert_eq!(s.missed, ["made", "removed", "sed"]);
    assert_eq!(s.pct(), Some(25.0));
    assert_eq!(Tree::success(&at_prompt, &at_prompt, &at_prompt).pct(), None);
}

/// `None` and a printed line where there is no git.
fn shadow(p: &Place) -> Option<ShadowGit> {
    if git_version().is_none() {
        println!("skipped: there is no git program, so shadow-git snapshots cannot be tried");
        return None;
    }
    Some(ShadowGit::open(&p.root, &p.store).unwrap())
}

#[test]
fn shadow_git_sees_the_shell_but_not_what_is_ignored_or_large() {
    let p = place();
    let Some(mut g) = shadow(&p) else { return };
    p.write(".gitignore", "build/\n");
    p.write(".gitattributes", "* text eol=crlf\n");
    p.write("sed", "line\r\nline\n");
    p.write("removed", "before");
    p.write("build/out", "before");
    p.write("odd name [x]", "before");
    let n = g.begin("x", 0).unwrap();
    let at_prompt = Tree::read(&p.root).unwrap();
    g.step_begins().unwrap();
    p.write("sed", "after");
    p.write("odd name [x]", "after");
    p.write("build/out", "after");
    p.write("made", "by the shell");
    p.write("large", &"x".repeat(2 * 1024 * 1024 + 1));
    fs::remove_file(p.root.join("removed")).unwrap();
    g.step_ends().unwrap();
    assert_eq!(g.tracked(n).unwrap(), ["made", "odd name [x]", "removed", "sed"]);
    let before = Tree::read(&p.root).unwrap();
    let back = g.restore(n, 1).unwrap();
    assert_eq!(back.count(|o| *o == FileOutcome::Restored), 4);
    let s = Tree::success(&at_prompt, &before, &Tree::read(&p.root).unwrap());
    assert_eq!(s.missed, ["build/out", "large"]);
    assert_eq!(p.read("sed").as_deref(), Some("line\r\nline\n"), "bytes come back as they were");
    g.restore(back.undo, 2).unwrap();
    assert_eq!(Tree::read(&p.root).unwrap(), before, "the restoration can be taken back");
    let stored = g.stored().unwrap();
    assert!(stored.content_bytes > 0 && stored.disk_bytes > 0);
    assert!(!p.root.join(".git").exists());
}

#[test]
fn shadow_git_does_not_write_through_links() {
    let p = place();
    let Some(mut g) = shadow(&p) else { return };
    p.write("d/secret", "mine");
    let n = g.begin("x", 0).unwrap();
    g.step_begins().unwrap();
    fs::remove_dir_all(p.root.join("d")).unwrap();
    symlink(&p.outside, p.root.join("d")).unwrap();
    g.step_ends().unwrap();
    let back = g.restore(n, 1).unwrap();
    assert!(
        back.files.iter().any(|(f, o)| f == "d/secret" && matches!(o, FileOutcome::Refused(_))),
        "{back:?}"
    );
    assert_eq!(fs::read_to_string(p.outside.join("secret")).unwrap(), "keep me");
}

#[derive(Clone, Debug)]
enum Op {
    Prompt,
    Edit(usize, u8),
    /// By an edit tool.
    Delete(usize),
    Shell(usize, u8),
    ShellRemoves(usize),
    /// The shell puts a link to the outside in the place of a file or folder.
    Trap(usize),
    Restore(usize),
}

const NAMES: [&str; 5] = ["a", "b", "d/x", "d/y", "e/f/z"];
const SPOTS: [&str; 4] = ["a", "d", "e", "e/f"];

fn op(shell: bool) -> impl Strategy<Value = Op> {
    let safe = prop_oneof![
        2 => Just(Op::Prompt),
        4 => (0..NAMES.len(), any::<u8>()).prop_map(|(i, x)| Op::Edit(i, x % 4)),
        1 => (0..NAMES.len()).prop_map(Op::Delete),
        1 => (0..8_usize).prop_map(Op::Restore),
    ];
    let wild = prop_oneof![
        3 => (0..NAMES.len(), any::<u8>()).prop_map(|(i, x)| Op::Shell(i, x)),
        1 => (0..NAMES.len()).prop_map(Op::ShellRemoves),
        1 => (0..SPOTS.len()).prop_map(Op::Trap),
    ];
    prop_oneof![3 => safe, u32::from(shell) => wild]
}

/// Whether a path can be reached without a link, so that a tool or the shell would write inside.
fn reachable(root: &Path, name: &str) -> bool {
    let mut at = root.to_path_buf();
    name.split('/').all(|part| {
        at.push(part);
        !fs::symlink_metadata(&at).is_ok_and(|m| m.file_type().is_symlink())
    })
}

fn set(p: &Place, name: &str, text: Option<&str>) {
    match text {
        Some(t) => p.write(name, t),
        None => drop(fs::remove_file(p.root.join(name))),
    }
}

/// Carries everything out; returns for each restoration the trees at the prompt, before, after, and
/// after taking it back and going again.
fn play(p: &Place, c: &mut impl Snapshots, ops: &[Op]) -> Vec<[Tree; 4]> {
    let look = || Tree::read(&p.root).unwrap();
    let mut points = vec![(c.begin("p0", 0).unwrap(), look())];
    let mut seen = Vec::new();
    for (now, op) in ops.iter().enumerate() {
        match op {
            Op::Prompt => points.push((c.begin("p", now as u64).unwrap(), look())),
            Op::Edit(i, _) | Op::Delete(i) => {
                let (known, inside) = (c.before_edit(NAMES[*i]), reachable(&p.root, NAMES[*i]));
                assert!(known.is_ok() || !inside, "{known:?}");
                if inside {
                    let text =
                        if let Op::Edit(_, x) = op { Some(format!("edit {x}")) } else { None };
                    set(p, NAMES[*i], text.as_deref());
                }
            }
            Op::Shell(i, x) if reachable(&p.root, NAMES[*i]) => {
                set(p, NAMES[*i], Some(&format!("shell {x}")))
            }
            Op::ShellRemoves(i) if reachable(&p.root, NAMES[*i]) => set(p, NAMES[*i], None),
            Op::Trap(i) if reachable(&p.root, SPOTS[*i]) => {
                let at = p.root.join(SPOTS[*i]);
                let _ = fs::remove_dir_all(&at);
                let _ = fs::remove_file(&at);
                fs::create_dir_all(at.parent().unwrap()).unwrap();
                symlink(
                    if SPOTS[*i] == "a" { p.outside.join("secret") } else { p.outside.clone() },
                    at,
                )
                .unwrap();
            }
            Op::Restore(k) => {
                let (to, then) = points[k % points.len()].clone();
                let before = look();
                let back = c.restore(to, now as u64).unwrap();
                let after = look();
                c.restore(back.undo, now as u64).unwrap();
                let undone = look();
                c.restore(to, now as u64).unwrap();
                assert_eq!(look(), after, "the same restoration again gives the same files");
                assert!(
                    back.files.iter().all(|(_, o)| !matches!(o, FileOutcome::Failed(_))),
                    "{back:?}"
                );
                seen.push([then, before, after, undone]);
            }
            _ => {}
        }
    }
    assert_eq!(
        fs::read_to_string(p.outside.join("secret")).unwrap(),
        "keep me",
        "nothing outside was written"
    );
    assert_eq!(fs::read_dir(&p.outside).unwrap().count(), 1, "nothing outside was made");
    seen
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn with_edit_tools_alone_a_restoration_brings_everything_back(ops in prop::collection::vec(op(false), 1..40)) {
        let p = place();
        for [then, before, after, undone] in play(&p, &mut p.scratch(), &ops) {
            prop_assert_eq!(&after, &then);
            prop_assert_eq!(&undone, &before, "and can itself be taken back");
        }
    }

    #[test]
    fn whatever_the_shell_does_nothing_outside_is_written(ops in prop::collection::vec(op(true), 1..40)) {
        let p = place();
        for [_, before, _, undone] in play(&p, &mut p.scratch(), &ops) {
            prop_assert_eq!(&undone, &before, "what was overwritten was saved");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    /// Every operation as a step of its own: shadow git brings shell changes back too.
    #[test]
    fn shadow_git_brings_edits_and_shell_changes_back(ops in prop::collection::vec((0..NAMES.len(), 0..5_u8), 1..8)) {
        let p = place();
        let Some(mut g) = shadow(&p) else { return Ok(()) };
        let mut points = Vec::new();
        for (i, x) in ops {
            points.push((g.begin("p", 0).unwrap(), Tree::read(&p.root).unwrap()));
            g.step_begins().unwrap();
            set(&p, NAMES[i], (x > 0).then(|| format!("{x}")).as_deref());
            g.step_ends().unwrap();
        }
        for (n, then) in points.iter().rev() {
            g.restore(*n, 0).unwrap();
            prop_assert_eq!(&Tree::read(&p.root).unwrap(), then);
        }
    }
}
