//! The documents: links lead somewhere, and every system that competes has a page of the common form.

use std::fs;
use std::path::{Path, PathBuf};

use ctxbench_core::descriptor::Standing;
use ctxbench_core::record::{Results, RunRecord};
use ctxbench_reports as reports;
use ctxbench_strategies::{ALL, Spec};

/// Parts that the page of a system has, in this order.
const PARTS: &[&str] =
    &["## What it does when", "## Before and after", "## Known weaknesses", "## Description against fact", "## How our strategy maps it"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package lies in the repository").to_path_buf()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn markdown_below(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            markdown_below(&path, out);
        } else if path.extension().is_some_and(|e| e == "md") {
            out.push(path);
        }
    }
}

/// Lines outside of fenced code, each with its number from 1.
fn prose(text: &str) -> Vec<(usize, &str)> {
    let mut fenced = false;
    let mut out = Vec::new();
    for (i, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            out.push((i + 1, line));
        }
    }
    out
}

/// Targets of the links and images of a line; code between backticks does not count.
fn targets(line: &str) -> Vec<String> {
    let plain: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
    plain.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target.trim().to_string()).collect()
}

/// A heading as the part of an address behind `#`, as GitHub forms it.
fn slug(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

fn anchors(text: &str) -> Vec<String> {
    let heading = |l: &str| l.starts_with('#').then(|| slug(l.trim_start_matches('#')));
    prose(text).into_iter().filter_map(|(_, l)| heading(l)).collect()
}

/// What is wrong with the links of a document.
fn broken(file: &Path, text: &str) -> Vec<String> {
    let mut out = Vec::new();
    for (number, line) in prose(text) {
        for target in targets(line) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (path, anchor) = target.split_once('#').map_or((target.as_str(), None), |(p, a)| (p, Some(a)));
            let to = if path.is_empty() { file.to_path_buf() } else { file.parent().expect("a file has a folder").join(path) };
            let at = format!("{}:{number}: `{target}`", file.display());
            if !to.exists() {
                out.push(format!("{at} does not exist"));
            } else if let Some(anchor) = anchor
                && !anchors(&read(&to)).iter().any(|a| a == anchor)
            {
                out.push(format!("{at} has no such heading"));
            }
        }
    }
    out
}

#[test]
fn every_relative_link_leads_somewhere() {
    let root = root();
    let mut files: Vec<PathBuf> = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md"].iter().map(|f| root.join(f)).collect();
    markdown_below(&root.join("docs"), &mut files);
    let wrong: Vec<String> = files.iter().flat_map(|f| broken(f, &read(f))).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_broken_link_is_found() {
    let readme = root().join("README.md");
    let text = "[a](nowhere.md) ![b](docs/method.md) `[c](nowhere.md)` [d](https://example.org)\n```\n[e](nowhere.md)\n```\n\
                [f](docs/method.md#one-footing) [g](docs/method.md#no-such-heading)\n";
    let wrong = broken(&readme, text);
    assert_eq!(wrong.len(), 2, "{wrong:?}");
    assert!(wrong[0].contains(":1: `nowhere.md`") && wrong[1].contains(":5: `docs/method.md#no-such-heading`"), "{wrong:?}");
    assert_eq!(slug(" Cost, in USD: a-b "), "cost-in-usd-a-b");
}

#[test]
fn every_competing_strategy_has_a_page() {
    let folder = root().join("docs/systems");
    let index = read(&folder.join("README.md"));
    for d in ALL.iter().filter(|d| d.standing == Standing::Contender) {
        let name = format!("`{}`", d.name);
        // The row of the index: it names the strategy and links its page.
        let page = prose(&index).into_iter().filter(|(_, l)| l.contains(&name)).flat_map(|(_, l)| targets(l)).find(|t| t.ends_with(".md"));
        let page = page.unwrap_or_else(|| panic!("docs/systems/README.md links no page for {name}"));
        assert!(read(&folder.join(&page)).contains(d.name), "{page} does not speak of {name}");
    }
}

#[test]
fn pages_of_systems_have_the_same_parts() {
    let folder = root().join("docs/systems");
    let mut files = Vec::new();
    markdown_below(&folder, &mut files);
    files.retain(|f| !f.ends_with("README.md") && !f.ends_with("techniques.md"));
    assert!(!files.is_empty());
    for f in files {
        let text = read(&f);
        let parts: Vec<&str> = prose(&text).into_iter().map(|(_, l)| l).filter(|l| l.starts_with("## ")).collect();
        assert_eq!(parts, PARTS, "{}", f.display());
    }
}

#[test]
fn every_strategy_on_a_command_line_can_be_run() {
    let mut files = vec![root().join("README.md")];
    markdown_below(&root().join("docs"), &mut files);
    let mut found = 0;
    for file in files {
        let text = read(&file);
        let words: Vec<&str> = text.split_whitespace().collect();
        for pair in words.windows(2).filter(|w| w[0] == "--strategy") {
            let name = pair[1].trim_matches(|c: char| !c.is_alphanumeric());
            // Stand-ins such as NAME and S are for the reader.
            if name.is_empty() || name.chars().all(|c| c.is_uppercase()) {
                continue;
            }
            found += 1;
            assert!(Spec::parse(name).is_ok(), "{}: {name}: {:?}", file.display(), Spec::parse(name).err());
        }
    }
    assert!(found > 20, "{found}");
}

/// The names between backticks in the first column of the tables below a heading, in their order.
fn columns_of(text: &str, heading: &str) -> Vec<String> {
    let below = prose(text).into_iter().map(|(_, l)| l).skip_while(|l| l.trim_start_matches('#').trim() != heading).skip(1);
    let rows = below.take_while(|l| !l.starts_with('#')).filter(|l| l.starts_with("| `"));
    let first = rows.filter_map(|l| l.split('|').nth(1));
    first.flat_map(|cell| cell.split('`').skip(1).step_by(2).map(str::to_string).collect::<Vec<_>>()).collect()
}

#[test]
fn every_column_of_every_csv_file_is_defined_in_order() {
    let formats = read(&root().join("docs/formats.md"));
    let seeded = Results { runs: vec![RunRecord { seed: Some(0), ..RunRecord::default() }], ..Results::default() };
    let files = (reports::format("csv").unwrap().render)(&seeded).unwrap();
    let common = columns_of(&formats, "Columns of every CSV file");
    assert_eq!(common, ["scenario", "strategy", "model", "summariser", "seed"]);
    assert_eq!(files.len(), 7);
    for reports::Artifact { file: name, text } in files {
        let head: Vec<String> = text.lines().next().unwrap().split(',').map(str::to_string).collect();
        let own: Vec<&String> = head.iter().filter(|c| !common.contains(c)).collect();
        assert!(own.len() > 10 && head.last().is_some_and(|c| c == "seed"), "{name}: {head:?}");
        assert_eq!(columns_of(&formats, &format!("`{name}`")).iter().collect::<Vec<_>>(), own, "{name}");
    }
}

#[test]
fn every_field_of_a_trace_line_is_named() {
    let formats = read(&root().join("docs/formats.md"));
    let named = columns_of(&formats, "Trace JSONL");
    let example = formats.lines().find(|l| l.starts_with("{\"seq\":")).expect("the example");
    let example: serde_json::Map<String, serde_json::Value> = serde_json::from_str(example).unwrap();
    // Those that not every line has.
    let some = ["agent", "phase", "max_tokens", "params", "held"];
    for field in example.keys().map(String::as_str).chain(some) {
        assert!(named.iter().any(|n| n == field), "{field}: {named:?}");
    }
    assert_eq!(named.len(), example.len() + some.len(), "{named:?}");
}
