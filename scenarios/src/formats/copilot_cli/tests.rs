use std::path::Path;

use super::super::testing::{counted, describe, import, recorded};
use super::*;
use crate::Loaded;

const SESSION: &str = "0c0c0c0c-0000-4000-8000-000000000002";

fn compaction_usage(loaded: &Loaded) -> [u64; 4] {
    let usage = loaded.session.entries.iter().find_map(|e| match e {
        ctxbench_session::Entry::RecordedCompaction(c) => c.usage.clone(),
        _ => None,
    });
    let u = usage.unwrap();
    [u.input, u.cache_read, u.cache_write, u.output]
}

/// Writes a database with a row for each call of the sample, and one for a title.
fn write_store(path: &Path) {
    let db = rusqlite::Connection::open(path).unwrap();
    db.execute_batch(
        "CREATE TABLE assistant_usage_events(id integer primary key, session_id text, model text, \
         input_tokens int, output_tokens int, cache_read_tokens int, cache_write_tokens int, \
         created_at text)",
    )
    .unwrap();
    let rows = [
        ("claude-sonnet-4.5", [13_000, 41, 0, 12_900], "2025-11-28T16:00:05.000Z"),
        ("gpt-4.1-mini", [500, 5, 0, 0], "2025-11-28T16:00:06.000Z"),
        ("claude-haiku-4.5", [3_000, 8, 0, 0], "2025-11-28T16:00:10.000Z"),
        ("claude-sonnet-4.5", [13_900, 12, 12_900, 900], "2025-11-28T16:00:13.000Z"),
        ("claude-sonnet-4.5", [14_100, 150, 13_000, 0], "2025-11-28T16:00:16.000Z"),
        ("claude-sonnet-4.5", [13_300, 9, 13_000, 200], "2025-11-28T16:00:19.000Z"),
    ];
    for (model, [input, output, read, write], at) in rows {
        let sql = "INSERT INTO assistant_usage_events(session_id, model, input_tokens, output_tokens, \
                   cache_read_tokens, cache_write_tokens, created_at) VALUES(?1,?2,?3,?4,?5,?6,?7)";
        let row = rusqlite::params![SESSION, model, input, output, read, write, at];
        db.execute(sql, row).unwrap();
    }
}

#[test]
fn the_database_has_the_counters_of_each_call() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("session-state").join(SESSION);
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("events.jsonl");
    std::fs::copy(recorded("copilot-cli/events.jsonl"), &path).unwrap();
    write_store(&home.path().join("session-store.db"));
    let loaded = import("copilot-cli", &Source::at(&path)).remove(0);
    let s = &loaded.session;
    // Fresh: 13,000 - 12,900; 3,000; 13,900 - 12,900 - 900; 13,300 - 13,000 - 200.
    let calls =
        [[100, 0, 12_900, 41], [3_000, 0, 0, 8], [100, 12_900, 900, 12], [100, 13_000, 200, 9]];
    assert_eq!(counted(s), calls.map(Some));
    assert_eq!(compaction_usage(&loaded), [1_100, 13_000, 0, 150]);
    // The title. The compaction is billed once.
    let others: Vec<String> = describe(s).into_iter().filter(|l| l.starts_with("call")).collect();
    assert_eq!(others, ["call: 500"]);
    let first = s.entries.iter().find_map(|e| e.as_reply()?.usage.clone()).unwrap();
    let name = format!("{SESSION} api-1 100+0+12900");
    assert_eq!(first.billing.call_id.as_deref(), Some(&*name));
    assert_eq!(loaded.warnings.len(), 1, "{:?}", loaded.warnings);
}
