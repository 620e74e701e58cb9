use super::*;
use crate::testing;

const KEY: &str = "00aa00aa00aa00aa00aa00aa00aa00aa";
const OTHER: &str = "ffaa00aa00aa00aa00aa00aa00aa00aa";

fn row(label: &str) -> Row {
    Row { run: testing::run("s", label, 1), trace: vec!["{}".into()], ..Row::default() }
}

fn open(dir: &Path) -> RowCache {
    RowCache::open(dir).unwrap()
}

#[test]
fn find_torn_foreign_or_other_version_is_none() {
    let dir = tempfile::tempdir().unwrap();
    open(dir.path()).store(KEY, row("codex"), false).unwrap();
    let path = open(dir.path()).path(KEY);
    let whole = fs::read_to_string(&path).unwrap();
    let cuts = (0..whole.len()).step_by(whole.len() / 50).map(|at| whole[..at].to_string());
    let json = whole.lines().next().unwrap();
    let others = [json.replacen("[1,", "[2,", 1), json.replacen(KEY, OTHER, 1), "{}".into()];
    let with_checksum = |json: String| {
        let mut crc = flate2::Crc::new();
        crc.update(json.as_bytes());
        format!("{json}\n{:08x}\n", crc.sum())
    };
    let cost = whole.find("\"cost_usd\":").unwrap() + "\"cost_usd\":".len();
    let digit = if whole[cost..].starts_with('7') { "8" } else { "7" };
    let other_cost = format!("{}{digit}{}", &whole[..cost], &whole[cost + 1..]);
    assert_ne!(other_cost, whole);
    let damaged = cuts.chain(others.map(with_checksum)).chain([json.to_string(), other_cost]);
    for text in damaged {
        fs::write(&path, &text).unwrap();
        assert!(open(dir.path()).find(KEY).is_none(), "{text}");
    }
    fs::write(&path, &whole).unwrap();
    assert!(open(dir.path()).find(KEY).is_some());
}

#[test]
fn open_with_unfinished_marker_of_other_run_succeeds() {
    let dir = tempfile::tempdir().unwrap();
    let unfinished = dir.path().join(".ctxbench-1a.tmp");
    fs::write(&unfinished, CACHE_TEXT).unwrap();
    let cache = open(dir.path());
    fs::rename(&unfinished, dir.path().join(CACHE_MARKER)).unwrap();
    cache.store(KEY, row("codex"), false).unwrap();
    assert!(open(dir.path()).find(KEY).is_some());
}

#[cfg(unix)]
#[test]
fn put_private_row_only_owner_can_read() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let cache = open(dir.path());
    for (key, private) in [(KEY, true), (OTHER, false)] {
        cache.store(key, row("codex"), private).unwrap();
        let mode = fs::metadata(cache.path(key)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777 == 0o600, private, "{mode:o}");
    }
}
