//! `docs/coverage.md`: where what the documents describe stands in the program. The page is made of
//! `tests/data/coverage.toml` and of the list of pitfalls; `CTXBENCH_WRITE=1 cargo test -p
//! ctxbench-tests coverage::` writes it. `.ci/coverage` carries out its commands.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use ctxbench_scenarios::{Scenario, builtin, pitfalls};
use serde::Deserialize;

/// The documents, in the order in which they were published, and what each is about.
const PAGES: [(&str, &str); 5] = [
    ("chat-history", "Description 000: chat history"),
    ("opencode-vs-claude-code", "Description 001: OpenCode against Claude Code"),
    ("login-bug", "Description 002: one login bug, three products"),
    ("token-budgeting", "Description 003: token budgeting"),
    ("openoxide", "The OpenOxide blueprint"),
];

#[derive(Deserialize)]
struct Data {
    row: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    /// Page and section.
    at: String,
    what: String,
    place: String,
    command: Option<String>,
    /// Why there is no command.
    why: Option<String>,
    /// `FILE::FUNCTION`.
    test: String,
}

impl Row {
    fn page_and_section(&self) -> (&str, &str) {
        self.at.split_once(' ').unwrap_or_else(|| panic!("{}: a page and a section", self.at))
    }
}

static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| {
    toml::from_str::<Data>(&read("tests/data/coverage.toml")).expect("rows as described").row
});

static SCENARIOS: LazyLock<Vec<Scenario>> = LazyLock::new(|| builtin::all().unwrap());

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests lie in the repository")
}

fn read(file: &str) -> String {
    fs::read_to_string(root().join(file)).unwrap_or_else(|e| panic!("{file}: {e}"))
}

/// The sections of a page that have none below them: `1`, `2.3`.
fn sections(page: &str) -> Vec<String> {
    let text = read(&format!("docs/sources/{page}.md"));
    let anchors: Vec<String> = text
        .match_indices("<a id=\"")
        .filter_map(|(i, start)| text[i + start.len()..].split('"').next())
        .filter(|id| id.split('-').all(|n| n.parse::<u8>().is_ok()))
        .map(|id| id.replace('-', "."))
        .collect();
    let has_below = |id: &str| anchors.iter().any(|a| a.starts_with(&format!("{id}.")));
    anchors.iter().filter(|id| !has_below(id)).cloned().collect()
}

/// Sections of which [`pitfalls::ALL`] has the rows, with their codes.
fn of_pitfalls(page: &str) -> BTreeMap<String, &'static pitfalls::Pitfall> {
    let number = |p: &pitfalls::Pitfall| p.code.rsplit(' ').next().map(str::to_string);
    let chapter = |code: &str| match code {
        c if c.contains("edge case") => "11",
        c if c.contains("success figure") => "12",
        _ => "7",
    };
    let of_page = pitfalls::ALL.iter().filter(|p| p.code.starts_with(&format!("{page} ")));
    of_page.filter_map(|p| Some((format!("{}.{}", chapter(p.code), number(p)?), p))).collect()
}

#[test]
fn every_section_of_every_document_has_a_row() {
    for (page, _) in PAGES {
        let rows: BTreeSet<&str> =
            ROWS.iter().map(Row::page_and_section).filter(|r| r.0 == page).map(|r| r.1).collect();
        let (known, pitfalls) = (sections(page), of_pitfalls(page));
        assert!(known.len() > 3, "{page}: {known:?}");
        let missing: Vec<&String> = known
            .iter()
            .filter(|s| !rows.contains(s.as_str()) && !pitfalls.contains_key(*s))
            .collect();
        assert!(missing.is_empty(), "tests/data/coverage.toml has no row for {page} {missing:?}");
        for row in rows {
            assert!(known.iter().any(|s| s == row), "docs/sources/{page}.md has no section {row}");
        }
    }
    for row in ROWS.iter() {
        let (page, _) = row.page_and_section();
        assert!(PAGES.iter().any(|p| p.0 == page), "{}: there is no page {page}", row.at);
    }
}

#[test]
fn places_and_tests_of_rows_are_there() {
    for row in ROWS.iter() {
        assert!(root().join(&row.place).exists(), "{}: there is no {}", row.at, row.place);
        let (file, name) = row.test.split_once("::").expect("FILE::FUNCTION");
        assert!(
            read(file).contains(&format!("fn {name}(")),
            "{}: {file} has no function {name}",
            row.at
        );
        assert!(
            row.command.is_some() != row.why.is_some(),
            "{}: either a command or the reason why there is none",
            row.at
        );
    }
}

#[test]
fn the_page_is_made_of_the_rows() {
    let (path, made) = ("docs/coverage.md", page());
    if std::env::var_os("CTXBENCH_WRITE").is_some() {
        fs::write(root().join(path), &made).unwrap();
    }
    assert!(
        read(path) == made,
        "{path} is out of date; CTXBENCH_WRITE=1 cargo test -p ctxbench-tests coverage:: writes it"
    );
}

const HEAD: &str = "# Coverage

Where what the documents behind [sources](sources/) describe stands in the program: every mechanism, \
figure, pitfall, item of a roadmap and success figure, with the command that shows it and the test \
that pins it. Made of `tests/data/coverage.toml` and the list of pitfalls \
(`CTXBENCH_WRITE=1 cargo test -p ctxbench-tests coverage::` writes it); CI checks that every section \
has a row and carries out every command (`.ci/coverage`).
";

fn page() -> String {
    let mut out = HEAD.to_string();
    for (page, title) in PAGES {
        let _ = write!(
            out,
            "\n## {title}\n\n| § | what | where | command | test |\n|---|---|---|---|---|\n"
        );
        let pitfalls = of_pitfalls(page);
        for section in sections(page) {
            for row in ROWS.iter().filter(|r| r.page_and_section() == (page, &section)) {
                let how = match (&row.command, &row.why) {
                    (Some(command), _) => format!("`{command}`"),
                    (None, why) => why.clone().unwrap_or_default(),
                };
                let _ = writeln!(
                    out,
                    "| {} | {} | {} | {how} | {} |",
                    link(page, &section),
                    row.what,
                    file(&row.place),
                    test(&row.test)
                );
            }
            if let Some(pitfall) = pitfalls.get(&section) {
                pitfall_row(&mut out, &link(page, &section), pitfall);
            }
        }
    }
    out
}

/// The scenarios that stand for it, and where a session cannot show it the tests that do.
fn pitfall_row(out: &mut String, at: &str, pitfall: &pitfalls::Pitfall) {
    let scenarios: Vec<&str> = SCENARIOS
        .iter()
        .filter(|s| s.cites.iter().any(|c| c == pitfall.code))
        .filter_map(|s| builtin::IDS.iter().copied().find(|id| *id == s.id))
        .collect();
    let command = match scenarios.as_slice() {
        [] => "no session can show it: see the test".to_string(),
        all => format!("`ctxbench run {} --verify --transport direct`", all.join(" ")),
    };
    let places: Vec<String> =
        scenarios.iter().map(|s| file(&format!("scenarios/data/{s}/scenario.toml"))).collect();
    let named: Vec<String> =
        pitfall.tests.iter().map(|(f, name)| test(&format!("{f}::{name}"))).collect();
    let tests = match named.as_slice() {
        [] => "its expected answers".to_string(),
        all => all.join(", "),
    };
    let places = if places.is_empty() { "–".to_string() } else { places.join(", ") };
    let _ = writeln!(out, "| {at} | {} | {places} | {command} | {tests} |", pitfall.name);
}

fn link(page: &str, section: &str) -> String {
    format!("[{section}](sources/{page}.md#{})", section.replace('.', "-"))
}

fn file(path: &str) -> String {
    let short = path.rsplit_once("scenarios/data/").map_or(path, |(_, rest)| rest);
    format!("[{}](../{path})", short.trim_end_matches("/scenario.toml"))
}

fn test(place: &str) -> String {
    let (file, name) = place.split_once("::").expect("FILE::FUNCTION");
    format!("[{name}](../{file})")
}
