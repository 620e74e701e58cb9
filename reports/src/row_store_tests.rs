use super::*;
use crate::record::Results;
use crate::sample;
use crate::stored::Stored;

const KEY: &str = "00aa00aa00aa00aa00aa00aa00aa00aa";
const OTHER: &str = "ffaa00aa00aa00aa00aa00aa00aa00aa";

fn row(label: &str) -> Row {
    Row { run: sample::run("s", label, 1), trace: vec!["{}".into()], ..Row::default() }
}

fn begin(out: &Path) -> RowStore {
    RowStore::begin(out, "ctxbench 9", &BTreeMap::from([("seed".into(), "1".into())])).unwrap()
}

/// As a kill leaves it: nothing is cleared away.
fn broken_off(out: &Path, rows: &[(&str, Row)]) {
    let store = begin(out);
    rows.iter().for_each(|(key, row)| store.put(key, row.clone(), false).unwrap());
}

#[test]
fn a_run_goes_on_from_what_an_earlier_one_left() {
    let tmp = tempfile::tempdir().unwrap();
    let out = tmp.path().join("out");
    broken_off(&out, &[(KEY, row("codex"))]);
    let store = begin(&out);
    assert!(store.find(OTHER).is_none());
    let found = store.find(KEY).unwrap();
    assert_eq!((&found.run, &found.trace), (&row("codex").run, &row("codex").trace));
    assert!(store.end().unwrap().is_empty());
    assert!(!progress_dir(&out).exists());
}

#[test]
fn a_run_that_is_going_on_keeps_its_rows_and_its_folder() {
    let tmp = tempfile::tempdir().unwrap();
    let out = tmp.path().join("out");
    let first = begin(&out);
    first.put(KEY, row("codex"), false).unwrap();
    let second = RowStore::begin(&out, "ctxbench 9", &BTreeMap::new());
    let why = second.err().unwrap().to_string();
    assert!(why.starts_with("another run into this folder is going on"), "{why}");
    assert!(first.get(KEY).is_some());
    assert!(first.end().unwrap().is_empty() && !progress_dir(&out).exists());
}

#[test]
fn who_stores_no_rows_keeps_others_out_as_well() {
    let tmp = tempfile::tempdir().unwrap();
    let out = tmp.path().join("out");
    let alone = Alone::with(&out).unwrap();
    for second in [
        Alone::with(&out).err().unwrap(),
        RowStore::begin(&out, "ctxbench 9", &BTreeMap::new()).err().unwrap(),
    ] {
        assert!(second.to_string().starts_with("another run into this folder is going on"));
    }
    drop(alone);
    assert!(!progress_dir(&out).exists());
    let killed = progress_dir(&out).join("run-1-1");
    std::fs::create_dir_all(&killed).unwrap();
    drop(Alone::with(&out).unwrap());
    assert!(!progress_dir(&out).exists(), "what a killed one left goes");
    broken_off(&out, &[(KEY, row("codex"))]);
    drop(Alone::with(&out).unwrap());
    assert!(begin(&out).find(KEY).is_some(), "what others left stays");
}

#[test]
fn an_error_is_computed_again() {
    let tmp = tempfile::tempdir().unwrap();
    for store in [RowStore::cache(&tmp.path().join("c")).unwrap(), begin(&tmp.path().join("out"))] {
        let mut failed = row("codex");
        failed.run.status = Status::Error;
        store.put(KEY, failed.clone(), false).unwrap();
        assert!(store.find(KEY).is_none());
        assert_eq!(store.get(KEY).unwrap().run, failed.run);
        store.end().unwrap();
    }
    assert!(RowStore::cache(&tmp.path().join("c")).unwrap().get(KEY).is_none());
}

#[test]
fn what_is_torn_foreign_or_of_another_version_is_not_believed() {
    let tmp = tempfile::tempdir().unwrap();
    let fresh = || RowStore::cache(tmp.path().join("cache").as_path()).unwrap();
    fresh().put(KEY, row("codex"), false).unwrap();
    assert!(fresh().find(KEY).is_some());
    let path = fresh().place(KEY, ENDING);
    let whole = fs::read_to_string(&path).unwrap();
    let cuts = (0..whole.len()).step_by(whole.len() / 50).map(|at| whole[..at].to_string());
    let json = whole.lines().next().unwrap();
    let others = [
        json.replacen("\"version\":1", "\"version\":2", 1),
        json.replacen(KEY, OTHER, 1),
        "{}".into(),
    ];
    // As they would be stored.
    let others = others.map(|json| {
        let mut crc = flate2::Crc::new();
        crc.update(json.as_bytes());
        format!("{json}\n{:08x}\n", crc.sum())
    });
    let cost = whole.find("\"cost_usd\":").unwrap() + "\"cost_usd\":".len();
    let digit = if whole[cost..].starts_with('7') { "8" } else { "7" };
    let dearer = format!("{}{digit}{}", &whole[..cost], &whole[cost + 1..]);
    assert_ne!(dearer, whole);
    for text in cuts.chain(others).chain([json.to_string(), dearer]) {
        fs::write(&path, &text).unwrap();
        assert!(fresh().find(KEY).is_none() && fresh().get(KEY).is_none(), "{text}");
    }
    fs::write(&path, &whole).unwrap();
    assert!(fresh().find(KEY).is_some());
}

#[test]
fn a_folder_of_others_is_no_cache() {
    let tmp = tempfile::tempdir().unwrap();
    fs::write(tmp.path().join("thesis.tex"), "years of work").unwrap();
    let error = RowStore::cache(tmp.path()).err().unwrap().to_string();
    assert!(error.contains("is no cache of ctxbench"), "{error}");
    assert_eq!(fs::read_dir(tmp.path()).unwrap().count(), 1);
}

#[test]
fn rows_that_nobody_wants_are_made_into_results() {
    let tmp = tempfile::tempdir().unwrap();
    let out = tmp.path().join("out");
    broken_off(&out, &[(KEY, row("codex")), (OTHER, row("aider"))]);
    fs::create_dir(tmp.path().join("out.interrupted")).unwrap();
    let store = begin(&out);
    assert!(store.find(KEY).is_some());
    let left = store.end().unwrap();
    assert_eq!((left.rows, left.unreadable.is_none()), (1, true));
    assert_eq!(left.place(&out), tmp.path().join("out.interrupted-2"));
    let head = left.head();
    assert_eq!((&*head.generator, &*head.assumptions["seed"]), ("ctxbench 9", "1"));
    let found = Stored::new(&head, &left).unwrap().figures;
    assert_eq!(found, Results { runs: vec![row("aider").run.digested()], ..head });
    left.discard().unwrap();
    assert!(!progress_dir(&out).exists());
}

#[test]
fn what_is_not_ours_stays() {
    let tmp = tempfile::tempdir().unwrap();
    let out = tmp.path().join("out");
    broken_off(&out, &[(KEY, row("codex"))]);
    fs::write(progress_dir(&out).join("notes.txt"), "mine").unwrap();
    fs::write(progress_dir(&out).join(format!("old{ENDING}")), "{\"version\":1,").unwrap();
    let left = begin(&out).end().unwrap();
    assert_eq!(left.rows, 1);
    let said = left.unreadable.as_ref().unwrap().to_string();
    assert!(said.contains("old.run.json, line 1"), "{said}");
    left.move_aside(&tmp.path().join("aside")).unwrap();
    assert_eq!(fs::read_dir(tmp.path().join("aside")).unwrap().count(), 2);
    assert_eq!(fs::read_dir(progress_dir(&out)).unwrap().count(), 1);
}

#[cfg(unix)]
#[test]
fn a_private_row_is_read_by_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let tmp = tempfile::tempdir().unwrap();
    let cache = RowStore::cache(&tmp.path().join("cache")).unwrap();
    for (key, private) in [(KEY, true), (OTHER, false)] {
        cache.put(key, row("codex"), private).unwrap();
        let mode = fs::metadata(cache.place(key, ENDING)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777 == 0o600, private, "{mode:o}");
    }
}

#[test]
fn a_new_cache_in_which_another_run_is_writing_its_marker_is_no_foreign_folder() {
    let tmp = tempfile::tempdir().unwrap();
    let dir = tmp.path().join("cache");
    std::fs::create_dir(&dir).unwrap();
    let writing = dir.join(".ctxbench-1-0.tmp");
    std::fs::write(&writing, CACHE_HEAD).unwrap();
    let held = File::open(&writing).unwrap();
    held.lock().unwrap();
    let ours = RowStore::cache(&dir).unwrap();
    std::fs::rename(&writing, dir.join(CACHE_MARKER)).unwrap();
    ours.put(KEY, row("codex"), false).unwrap();
    assert!(RowStore::cache(&dir).unwrap().find(KEY).is_some());
}
