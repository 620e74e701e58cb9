//! The documents: links lead somewhere, what the code cites is there, and every system that
//! competes has a page of the common form.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use ctxbench_core::strategy::Standing;
use ctxbench_reports as reports;
use ctxbench_reports::record::{Results, RunRecord};
use ctxbench_scenarios::pitfalls;
use ctxbench_strategies::{ALL, Spec};

/// Parts that the page of a system has, in this order.
const PARTS: &[&str] = &[
    "## What it does when",
    "## Before and after",
    "## Known weaknesses",
    "## Description against fact",
    "## How our strategy maps it",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the package lies in the repository")
        .to_path_buf()
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
    plain
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .map(|(target, _)| target.trim().to_string())
        .collect()
}

/// A heading as the part of an address behind `#`, as GitHub forms it.
fn slug(heading: &str) -> String {
    let kept =
        heading.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// Everything in a document that a link can point at: headings, and anchors written out.
fn anchors(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    for (_, line) in prose(text) {
        if line.starts_with('#') {
            out.push(slug(line.trim_start_matches('#')));
        }
        let written = line.split("<a id=\"").skip(1).filter_map(|rest| rest.split_once('"'));
        out.extend(written.map(|(id, _)| id.to_string()));
    }
    out
}

/// What is wrong with the links of a document.
fn broken(file: &Path, text: &str) -> Vec<String> {
    let mut out = Vec::new();
    for (number, line) in prose(text) {
        for target in targets(line) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (path, anchor) =
                target.split_once('#').map_or((target.as_str(), None), |(p, a)| (p, Some(a)));
            let to = if path.is_empty() {
                file.to_path_buf()
            } else {
                file.parent().expect("a file has a folder").join(path)
            };
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
    let mut files: Vec<PathBuf> =
        ["README.md", "ARCHITECTURE.md", "CHANGELOG.md"].iter().map(|f| root.join(f)).collect();
    markdown_below(&root.join("docs"), &mut files);
    let wrong: Vec<String> = files.iter().flat_map(|f| broken(f, &read(f))).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_broken_link_is_found() {
    let readme = root().join("README.md");
    let text = "[a](nowhere.md) ![b](docs/method.md) `[c](nowhere.md)` \
        [d](https://example.org)\n```\n[e](nowhere.md)\n```\n\
                [f](docs/method.md#one-footing) [g](docs/method.md#no-such-heading)\n";
    let wrong = broken(&readme, text);
    assert_eq!(wrong.len(), 2, "{wrong:?}");
    assert!(
        wrong[0].contains(":1: `nowhere.md`")
            && wrong[1].contains(":5: `docs/method.md#no-such-heading`"),
        "{wrong:?}"
    );
    assert_eq!(slug(" Cost, in USD: a-b "), "cost-in-usd-a-b");
}

/// Files that may cite a source: code, settings, scenarios and documents.
fn citing_files() -> Vec<PathBuf> {
    fn below(folder: &Path, out: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                let generated = ["target", "corpus", "artifacts", "conformance"];
                if !generated.contains(&name.as_str()) {
                    below(&path, out);
                }
            } else if [".rs", ".toml", ".md", ".json"].iter().any(|e| name.ends_with(e)) {
                out.push(path);
            }
        }
    }
    let root = root();
    let mut out: Vec<PathBuf> =
        ["README.md", "ARCHITECTURE.md", "CHANGELOG.md"].iter().map(|f| root.join(f)).collect();
    for folder in [
        "core",
        "harness",
        "reports",
        "scenarios",
        "strategies",
        "tests",
        "benches",
        "fuzz",
        "docs",
    ] {
        below(&root.join(folder), &mut out);
    }
    out
}

/// A text on one line: a citation may go on behind the mark of the next comment line.
fn joined(text: &str) -> String {
    let marks = ["//", "///", "//!", "#", "\\"];
    let words = text.split_whitespace().filter(|w| !marks.contains(w));
    words.collect::<Vec<_>>().join(" ")
}

/// Pages below `docs/sources` that a text names, each with the sections behind the name:
/// `codex.md §1.1, §1.2 and §3` or `codex.md §1-3`.
fn citations(text: &str) -> Vec<(String, Vec<String>)> {
    let id = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '-';
    let mut out = Vec::new();
    for rest in joined(text).split("docs/sources/").skip(1) {
        let end = rest.find(|c: char| !id(c)).unwrap_or(rest.len());
        let page = rest[..end].trim_end_matches('.');
        if !page.ends_with(".md") {
            continue;
        }
        let mut sections = Vec::new();
        let mut rest = rest[page.len()..].strip_prefix(' ').unwrap_or("");
        while let Some(section) = rest.strip_prefix('§') {
            let end = section.find(|c: char| !id(c)).unwrap_or(section.len());
            let named = section[..end].trim_end_matches('.');
            sections.extend(named.split('-').map(str::to_string));
            rest = &section[named.len()..];
            let more = [", ", "; ", " and ", " to "].iter().find_map(|s| rest.strip_prefix(s));
            rest = more.unwrap_or("");
        }
        out.push((page.to_string(), sections));
    }
    out
}

#[test]
fn citations_are_read_across_lines() {
    let text = "/// Kept (docs/sources/codex.md\n    /// §1.4, §3). See docs/sources/aider.md.\n\
                // docs/sources/opencode.md §1-3: all of it; docs/sources/README.md, §9";
    let sections = |s: &[&str]| s.iter().map(|s| (*s).to_string()).collect::<Vec<_>>();
    assert_eq!(
        citations(text),
        [
            ("codex.md".to_string(), sections(&["1.4", "3"])),
            ("aider.md".to_string(), vec![]),
            ("opencode.md".to_string(), sections(&["1", "3"])),
            ("README.md".to_string(), vec![]),
        ]
    );
}

#[test]
fn every_cited_section_is_there() {
    let sources = root().join("docs/sources");
    let mut known: BTreeMap<String, Option<Vec<String>>> = BTreeMap::new();
    let mut wrong = Vec::new();
    let mut found = 0;
    for file in citing_files().iter().filter(|f| !f.ends_with("tests/tests/docs.rs")) {
        for (page, sections) in citations(&read(file)) {
            found += 1;
            let at = known.entry(page.clone()).or_insert_with(|| {
                fs::read_to_string(sources.join(&page)).ok().map(|t| anchors(&t))
            });
            let Some(anchors) = at else {
                wrong.push(format!("{}: docs/sources/{page} does not exist", file.display()));
                continue;
            };
            for section in sections {
                if !anchors.contains(&section.replace('.', "-")) {
                    wrong
                        .push(format!("{}: docs/sources/{page} has no §{section}", file.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(found > 400, "{found}");
}

#[test]
fn every_pitfall_is_told_in_the_sources() {
    let sources = root().join("docs/sources");
    for p in pitfalls::ALL {
        let (page, anchor) = match p.code.strip_prefix("failure mode ") {
            Some(n) => ("failure-modes", format!("failure-mode-{n}")),
            None => {
                let (page, rest) = p.code.split_once(' ').expect("a page and a number");
                (page, rest.replace(' ', "-"))
            }
        };
        let told = anchors(&read(&sources.join(format!("{page}.md"))));
        assert!(told.contains(&anchor), "{}: {page}.md has no {anchor}", p.code);
    }
}

#[test]
fn nothing_cites_a_folder_that_is_not_here() {
    let mut wrong = Vec::new();
    for file in citing_files() {
        let text = joined(&read(&file));
        for folder in ["facts", "seeds"] {
            for (i, _) in text.match_indices(&format!("{folder}/")) {
                let alone =
                    !text[..i].ends_with(|c: char| c.is_alphanumeric() || "/-_$".contains(c));
                let names = text[i + folder.len() + 1..].starts_with(|c: char| c.is_alphanumeric());
                if alone && names {
                    let end = text.len().min(i + 40);
                    let shown = text.get(i..end).unwrap_or(folder);
                    wrong.push(format!("{}: {shown}", file.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_competing_strategy_has_a_page() {
    let folder = root().join("docs/systems");
    let index = read(&folder.join("README.md"));
    for d in ALL {
        assert!(
            root().join(d.page).is_file(),
            "{}: its page {} does not exist; see docs/systems/README.md",
            d.name,
            d.page
        );
    }
    for d in ALL.iter().filter(|d| d.standing == Standing::Contender) {
        let name = format!("`{}`", d.name);
        // The row of the index: it names the strategy and links its page.
        let page = prose(&index)
            .into_iter()
            .filter(|(_, l)| l.contains(&name))
            .flat_map(|(_, l)| targets(l))
            .find(|t| t.ends_with(".md"));
        let page =
            page.unwrap_or_else(|| panic!("docs/systems/README.md links no page for {name}"));
        assert_eq!(root().join(d.page), folder.join(&page), "{name}");
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
        let parts: Vec<&str> =
            prose(&text).into_iter().map(|(_, l)| l).filter(|l| l.starts_with("## ")).collect();
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
            // A list of values ends in a bracket.
            let swept = pair[1].trim_matches(['`', '\'', '"', ',', '.', ';']);
            // Of a program, its command stands behind.
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

/// The names between backticks in the first column of the tables below a heading, in their order.
fn columns_of(text: &str, heading: &str) -> Vec<String> {
    let below = prose(text)
        .into_iter()
        .map(|(_, l)| l)
        .skip_while(|l| l.trim_start_matches('#').trim() != heading)
        .skip(1);
    let rows = below.take_while(|l| !l.starts_with('#')).filter(|l| l.starts_with("| `"));
    let first = rows.filter_map(|l| l.split('|').nth(1));
    first
        .flat_map(|cell| cell.split('`').skip(1).step_by(2).map(str::to_string).collect::<Vec<_>>())
        .collect()
}

#[test]
fn every_column_of_every_csv_file_is_defined_in_order() {
    let formats = read(&root().join("docs/formats.md"));
    let seeded = Results {
        runs: vec![RunRecord { seed: Some(0), ..RunRecord::default() }],
        ..Results::default()
    };
    let files =
        reports::format("csv").unwrap().render(&seeded, &reports::Looks::default()).unwrap();
    let common = columns_of(&formats, "Columns of every CSV file");
    assert_eq!(common, ["scenario", "strategy", "model", "summariser", "seed"]);
    assert_eq!(files.len(), 9);
    for reports::Artifact { file: name, text } in files {
        let head: Vec<String> =
            text.lines().next().unwrap().split(',').map(str::to_string).collect();
        let own: Vec<&String> = head.iter().filter(|c| !common.contains(c)).collect();
        assert!(own.len() > 10 && head.last().is_some_and(|c| c == "seed"), "{name}: {head:?}");
        assert_eq!(
            columns_of(&formats, &format!("`{name}`")).iter().collect::<Vec<_>>(),
            own,
            "{name}"
        );
    }
}

#[test]
fn every_field_of_a_trace_line_is_named() {
    let formats = read(&root().join("docs/formats.md"));
    let named = columns_of(&formats, "Trace JSONL");
    let example = formats.lines().find(|l| l.starts_with("{\"seq\":")).expect("the example");
    let example: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(example).unwrap();
    // Those that not every line has.
    let some = ["agent", "phase", "ttl", "max_tokens", "params", "held", "said"];
    for field in example.keys().map(String::as_str).chain(some) {
        assert!(named.iter().any(|n| n == field), "{field}: {named:?}");
    }
    assert_eq!(named.len(), example.len() + some.len(), "{named:?}");
}
