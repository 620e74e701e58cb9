use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use ctxbench_util::hash::sha256;
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

struct Fixture {
    _tmp: TempDir,
    root: PathBuf,
    store: PathBuf,
    outside: PathBuf,
}

fn fixture() -> Fixture {
    let tmp = tempfile::tempdir().unwrap();
    let at = |n: &str| tmp.path().join(n);
    fs::create_dir_all(at("root")).unwrap();
    fs::create_dir_all(at("outside")).unwrap();
    fs::write(at("outside/secret"), "keep me").unwrap();
    Fixture {
        root: at("root").canonicalize().unwrap(),
        store: at("store"),
        outside: at("outside"),
        _tmp: tmp,
    }
}

impl Fixture {
    fn edits(&self) -> EditCheckpoints {
        EditCheckpoints::open(&self.root, &self.store).unwrap()
    }

    fn scratch(&self) -> EditCheckpoints {
        EditCheckpoints::open_scratch(&self.root, &self.store).unwrap()
    }

    /// Opens the file of the checkpoints, which must not be in use.
    fn db(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.store.join("files.db")).unwrap()
    }

    /// Returns the number and size of the stored contents.
    fn contents(&self) -> (i64, i64) {
        let of = "SELECT count(*), coalesce(sum(length(bytes)), 0) FROM contents";
        self.db().query_row(of, [], |r| Ok((r.get(0)?, r.get(1)?))).unwrap()
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

fn edit(c: &mut impl Snapshots, p: &Fixture, path: &str, text: &str) {
    c.before_edit(path).unwrap();
    p.write(path, text);
}

#[test]
fn store_is_private_to_owner() {
    let p = fixture();
    drop(p.edits());
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(p.store.clone()), mode(p.store.join("files.db"))), (0o700, 0o600));
}

#[test]
fn restore_and_undo_survive_reopening() {
    let p = fixture();
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
    // Reopening finds the same checkpoints.
    let (list, busy) = (c.list().to_vec(), EditCheckpoints::open(&p.root, &p.store));
    assert!(matches!(busy, Err(CheckpointError::InUse(at)) if at == p.store));
    drop(c);
    let mut again = p.edits();
    assert_eq!(again.list(), list);
    again.restore(back.undo, 5).unwrap();
    assert_eq!(p.read("a").as_deref(), Some("three"));
}

#[test]
fn restore_sets_modes_and_equal_contents_are_stored_once() {
    let p = fixture();
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
    drop(c);
    // "same bytes" once, and "other", which the restore overwrote.
    assert_eq!(p.contents(), (2, 15));
    // From FIPS 180-4.
    assert_eq!(sha256(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

#[test]
fn restore_without_stored_content_fails_without_writing() {
    let p = fixture();
    p.write("a", "one");
    let mut c = p.edits();
    let n = c.begin("x", 0).unwrap();
    edit(&mut c, &p, "a", "two");
    drop(c);
    p.db().execute_batch("DELETE FROM contents").unwrap();
    let back = p.edits().restore(n, 1).unwrap();
    assert!(matches!(&back.files[0].1, FileOutcome::Failed(_)), "{back:?}");
    assert_eq!(p.read("a").as_deref(), Some("two"));
}

#[test]
fn write_leaves_no_other_file() {
    let p = fixture();
    let root = Root::open(&p.root).unwrap();
    for text in ["one", "two"] {
        root.write("d/a", &FileContent { bytes: text.into(), mode: 0o644 }).unwrap();
        assert_eq!(p.read("d/a").as_deref(), Some(text));
        assert_eq!(fs::read_dir(p.root.join("d")).unwrap().count(), 1);
    }
    root.remove("d/a").unwrap();
    root.remove("d/a").unwrap();
    assert_eq!((p.read("d/a"), root.read("none/a").unwrap()), (None, None));
}

#[test]
fn path_outside_folder_is_refused_with_reason() {
    let p = fixture();
    let root = Root::open(&p.root).unwrap();
    let refusal = |path: &str| root.relative(path).unwrap_err().to_string();
    assert!(refusal("../outside/secret").contains("contains `..`"));
    assert!(refusal("a/../../outside/secret").contains("contains `..`"));
    assert!(refusal("/etc/passwd").contains("is outside"));
    assert!(refusal(&format!("{}-sibling/x", p.root.display())).contains("is outside"));
    assert!(refusal("").contains("path is empty") && refusal("./").contains("path is empty"));
    assert!(refusal("a\0b").contains("zero byte"));
    assert_eq!(root.relative(&format!("{}/d/x", p.root.display())).unwrap(), "d/x");
    assert_eq!(root.relative("./d//x").unwrap(), "d/x");
}

#[test]
fn links_and_non_files_are_refused_by_every_operation() {
    let p = fixture();
    symlink(&p.outside, p.root.join("link")).unwrap();
    symlink(p.outside.join("secret"), p.root.join("file-link")).unwrap();
    fs::create_dir(p.root.join("folder")).unwrap();
    p.write("plain", "x");
    let root = Root::open(&p.root).unwrap();
    for (path, message) in [
        ("link/secret", "`link` is a symbolic link"),
        ("link/deep/new", "`link` is a symbolic link"),
        ("file-link", "`file-link` is a symbolic link"),
        ("folder", "not a regular file"),
        ("plain/x", "`plain` is not a folder"),
    ] {
        let content = FileContent { bytes: b"evil".to_vec(), mode: 0o644 };
        for error in [
            root.read(path).unwrap_err(),
            root.write(path, &content).unwrap_err(),
            root.remove(path).unwrap_err(),
        ] {
            assert!(
                error.to_string().contains(message) && error.to_string().starts_with(path),
                "{error}"
            );
            assert!(matches!(error, CheckpointError::Refused { .. }));
        }
    }
    assert_eq!(fs::read_to_string(p.outside.join("secret")).unwrap(), "keep me");
    assert_eq!(fs::read_dir(&p.outside).unwrap().count(), 1);
}

#[test]
fn restore_breaks_hard_link_to_outside() {
    let p = fixture();
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

fn shadow(p: &Fixture) -> ShadowGit {
    ShadowGit::open(&p.root, &p.store).unwrap()
}

#[test]
fn shadow_git_restores_shell_changes_except_ignored_and_large_files() {
    let p = fixture();
    let mut g = shadow(&p);
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
    assert_eq!(p.read("sed").as_deref(), Some("line\r\nline\n"), "bytes are unchanged");
    g.restore(back.undo, 2).unwrap();
    assert_eq!(Tree::read(&p.root).unwrap(), before, "the restore can be undone");
    assert_eq!(Tree::success(&before, &before, &before).pct(), None, "no file changed");
    assert!(g.stored_bytes().unwrap() > 0);
    assert!(!p.root.join(".git").exists());
}

#[test]
fn shadow_git_does_not_write_through_links() {
    let p = fixture();
    let mut g = shadow(&p);
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
enum FileOp {
    Prompt,
    Edit(usize, u8),
    /// Deletes a file by an edit tool.
    Delete(usize),
    Shell(usize, u8),
    ShellRemoves(usize),
    /// Replaces a file or folder by a link to the outside.
    Link(usize),
    Restore(usize),
}

const NAMES: [&str; 5] = ["a", "b", "d/x", "d/y", "e/f/z"];
const LINKS: [&str; 4] = ["a", "d", "e", "e/f"];

fn op(shell: bool) -> impl Strategy<Value = FileOp> {
    let safe = prop_oneof![
        2 => Just(FileOp::Prompt),
        4 => (0..NAMES.len(), any::<u8>()).prop_map(|(i, x)| FileOp::Edit(i, x % 4)),
        1 => (0..NAMES.len()).prop_map(FileOp::Delete),
        1 => (0..8_usize).prop_map(FileOp::Restore),
    ];
    let wild = prop_oneof![
        3 => (0..NAMES.len(), any::<u8>()).prop_map(|(i, x)| FileOp::Shell(i, x)),
        1 => (0..NAMES.len()).prop_map(FileOp::ShellRemoves),
        1 => (0..LINKS.len()).prop_map(FileOp::Link),
    ];
    prop_oneof![3 => safe, u32::from(shell) => wild]
}

/// Returns true if a path contains no link, so that a write stays inside the folder.
fn reachable(root: &Path, name: &str) -> bool {
    let mut at = root.to_path_buf();
    name.split('/').all(|part| {
        at.push(part);
        !fs::symlink_metadata(&at).is_ok_and(|m| m.file_type().is_symlink())
    })
}

fn set(p: &Fixture, name: &str, text: Option<&str>) {
    match text {
        Some(t) => p.write(name, t),
        None => drop(fs::remove_file(p.root.join(name))),
    }
}

/// Runs the operations. Returns for each restore the trees at the prompt, before it, after it, and
/// after undoing it.
fn run(p: &Fixture, c: &mut impl Snapshots, ops: &[FileOp]) -> Vec<[Tree; 4]> {
    let tree = || Tree::read(&p.root).unwrap();
    let mut points = vec![(c.begin("p0", 0).unwrap(), tree())];
    let mut trees = Vec::new();
    for (now, op) in ops.iter().enumerate() {
        match op {
            FileOp::Prompt => points.push((c.begin("p", now as u64).unwrap(), tree())),
            FileOp::Edit(i, _) | FileOp::Delete(i) => {
                let (known, inside) = (c.before_edit(NAMES[*i]), reachable(&p.root, NAMES[*i]));
                assert!(known.is_ok() || !inside, "{known:?}");
                if inside {
                    let text =
                        if let FileOp::Edit(_, x) = op { Some(format!("edit {x}")) } else { None };
                    set(p, NAMES[*i], text.as_deref());
                }
            }
            FileOp::Shell(i, x) if reachable(&p.root, NAMES[*i]) => {
                set(p, NAMES[*i], Some(&format!("shell {x}")))
            }
            FileOp::ShellRemoves(i) if reachable(&p.root, NAMES[*i]) => set(p, NAMES[*i], None),
            FileOp::Link(i) if reachable(&p.root, LINKS[*i]) => {
                let at = p.root.join(LINKS[*i]);
                let _ = fs::remove_dir_all(&at);
                let _ = fs::remove_file(&at);
                fs::create_dir_all(at.parent().unwrap()).unwrap();
                symlink(
                    if LINKS[*i] == "a" { p.outside.join("secret") } else { p.outside.clone() },
                    at,
                )
                .unwrap();
            }
            FileOp::Restore(k) => {
                let (to, then) = points[k % points.len()].clone();
                let before = tree();
                let back = c.restore(to, now as u64).unwrap();
                let after = tree();
                c.restore(back.undo, now as u64).unwrap();
                let undone = tree();
                c.restore(to, now as u64).unwrap();
                assert_eq!(tree(), after, "restoring again gives the same files");
                assert!(
                    back.files.iter().all(|(_, o)| !matches!(o, FileOutcome::Failed(_))),
                    "{back:?}"
                );
                trees.push([then, before, after, undone]);
            }
            _ => {}
        }
    }
    assert_eq!(
        fs::read_to_string(p.outside.join("secret")).unwrap(),
        "keep me",
        "the outside file is unchanged"
    );
    assert_eq!(fs::read_dir(&p.outside).unwrap().count(), 1, "no file was created outside");
    trees
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn restore_after_edits_only_is_complete(ops in prop::collection::vec(op(false), 1..40)) {
        let p = fixture();
        for [then, before, after, undone] in run(&p, &mut p.scratch(), &ops) {
            prop_assert_eq!(&after, &then);
            prop_assert_eq!(&undone, &before, "the restore can be undone");
        }
    }

    #[test]
    fn restore_after_shell_changes_writes_nothing_outside(ops in prop::collection::vec(op(true), 1..40)) {
        let p = fixture();
        for [_, before, _, undone] in run(&p, &mut p.scratch(), &ops) {
            prop_assert_eq!(&undone, &before, "overwritten files were saved");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    /// Runs each operation as a separate step.
    #[test]
    fn shadow_git_restores_edits_and_shell_changes(ops in prop::collection::vec((0..NAMES.len(), 0..5_u8), 1..8)) {
        let p = fixture();
        let mut g = shadow(&p);
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
