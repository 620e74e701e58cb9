//! Documentation matches the program: strategies on command lines, columns of CSV files, fields of
//! a trace.

use std::fs;
use std::path::{Path, PathBuf};

use ctxbench_reports as reports;
use ctxbench_reports::record::{
    CompactionRecord, Delegation, FactRecord, RequestRecord, Results, ResumeRecord, RewindRecord,
    RunRecord,
};
use ctxbench_strategies::Spec;
use ctxbench_util::files::walk;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the package lies in the repository")
        .to_path_buf()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Returns the lines outside of fenced code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        !fenced && !is_fence
    })
}

#[test]
fn documented_strategies_parse() {
    let mut files = walk(&root().join("docs")).unwrap();
    // The help in cli.md has placeholders after `--strategy`.
    files.retain(|f| f.extension().is_some_and(|e| e == "md") && !f.ends_with("cli.md"));
    files.push(root().join("README.md"));
    let mut found = 0;
    for file in files {
        let text = read(&file);
        let words: Vec<&str> = text.split_whitespace().collect();
        for pair in words.windows(2).filter(|w| w[0] == "--strategy") {
            let name = pair[1].trim_matches(|c: char| !c.is_alphanumeric());
            // Placeholders such as NAME and S.
            if name.is_empty() || name.chars().all(|c| c.is_uppercase()) {
                continue;
            }
            found += 1;
            // A list of values ends with a bracket.
            let swept = pair[1].trim_matches(['`', '\'', '"', ',', '.', ';']);
            // A program is followed by its command.
            let program = swept.split_once(':').is_some_and(|(head, _)| head.contains("=exec"))
                || swept.contains("=exec{");
            assert!(
                program || Spec::parse(name).is_ok() || Spec::sweep(swept).is_ok(),
                "{}: {name}: {:?}",
                file.display(),
                Spec::parse(name).err()
            );
        }
    }
    assert!(found > 20, "{found}");
}

/// Returns the names in backticks in the first column of the tables below a heading, in order.
fn columns_of(text: &str, heading: &str) -> Vec<String> {
    let is_heading = |l: &&str| l.trim_start_matches('#').trim() == heading;
    let below = prose(text).skip_while(|l| !is_heading(l)).skip(1);
    let rows = below.take_while(|l| !l.starts_with('#')).filter(|l| l.starts_with("| `"));
    let first = rows.filter_map(|l| l.split('|').nth(1));
    first
        .flat_map(|cell| cell.split('`').skip(1).step_by(2).map(str::to_string).collect::<Vec<_>>())
        .collect()
}

#[test]
fn csv_columns_are_documented_in_order() {
    let formats = read(&root().join("docs/results.md"));
    // A file without a row is not written.
    let run = RunRecord {
        seed: Some(0),
        requests: vec![RequestRecord::default()],
        compactions: vec![CompactionRecord::default()],
        facts: vec![FactRecord::default()],
        rewinds: vec![RewindRecord::default()],
        resume: vec![ResumeRecord::default()],
        delegation: vec![Delegation::default()],
        ..RunRecord::default()
    };
    let seeded = Results { runs: vec![run], ..Results::default() };
    let dir = tempfile::tempdir().unwrap();
    let mut files = reports::OutputFolder::new(dir.path(), false);
    let stored = reports::StoredResults::new(&seeded, &seeded.runs).unwrap();
    reports::format("csv").unwrap().write(&stored, &reports::Hues::default(), &mut files).unwrap();
    let common = columns_of(&formats, "Columns of every CSV file");
    assert_eq!(common, ["scenario", "strategy", "model", "summariser", "seed"]);
    assert_eq!(files.names.len(), 8);
    for name in files.names {
        let text = read(&dir.path().join(&name));
        let mut own: Vec<&str> = text.lines().next().unwrap().split(',').collect();
        assert_eq!(own.last(), Some(&"seed"), "{name}");
        own.retain(|column| !common.iter().any(|c| c == column));
        assert!(own.len() > 10, "{name}: {own:?}");
        assert_eq!(columns_of(&formats, &format!("`{name}`")), own, "{name}");
    }
}

#[test]
fn trace_fields_are_documented() {
    let formats = read(&root().join("docs/results.md"));
    let named = columns_of(&formats, "Trace JSONL");
    let example = formats.lines().find(|l| l.starts_with("{\"seq\":")).expect("the example");
    let example: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(example).unwrap();
    // Fields that only some lines have.
    let some = "agent same phase ttl max_tokens params held said cache_write_1h compaction_usd \
        compaction_tokens compaction_ms invalidated_expired_tokens invalidated_changed_tokens";
    let some: Vec<&str> = some.split_whitespace().collect();
    for field in example.keys().map(String::as_str).chain(some.iter().copied()) {
        assert!(named.iter().any(|n| n == field), "{field}: {named:?}");
    }
    assert_eq!(named.len(), example.len() + some.len(), "{named:?}");
}
