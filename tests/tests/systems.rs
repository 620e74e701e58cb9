//! What needs Unix has a counterpart elsewhere. CI compiles for Windows and macOS; this finds most of
//! what would not, on any machine.

use std::path::{Path, PathBuf};

/// What only Unix has.
const UNIX_ONLY: [&str; 3] = ["std::os::unix", "signal::unix", "rustix::"];
/// Folders with sources of the workspace.
const SOURCES: [&str; 7] =
    ["benches", "core", "harness", "reports", "scenarios", "strategies", "tests"];

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != "target" && name != "data" {
            sources(&path, found);
        } else if name.ends_with(".rs") {
            found.push(path);
        }
    }
}

/// Whether an attribute is about Unix: its word, and no `not(…)` around it.
fn is_of_unix(line: &str) -> bool {
    let attribute = line.trim_start().starts_with("#[cfg(");
    let word = line.contains("unix") || line.contains("target_os = \"linux\"");
    attribute && word && !line.contains("not(unix")
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Whether a line belongs to an item or a statement with such an attribute.
fn is_within(lines: &[&str], at: usize) -> bool {
    let mut at = at;
    loop {
        let depth = indent(lines[at]);
        let mut above = lines[..at].iter().rev().take_while(|l| {
            let l = l.trim_start();
            l.starts_with("#[") || l.starts_with("//")
        });
        if above.any(|l| is_of_unix(l)) {
            return true;
        }
        // The end of a signature has its attributes where the signature begins.
        let end = lines[at].trim_start().starts_with([')', ']', '>']);
        let around = |l: &str| indent(l) < depth || (end && indent(l) == depth);
        let next = (0..at).rev().find(|n| !lines[*n].trim().is_empty() && around(lines[*n]));
        match next {
            Some(next) => at = next,
            None => return false,
        }
    }
}

/// Why a source would not compile elsewhere, or does less there without a word.
fn wrong(text: &str, declared: bool) -> Vec<String> {
    if declared || text.lines().any(|l| l.starts_with("#![cfg(unix)]")) {
        return vec![];
    }
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let code = !line.trim_start().starts_with("//") && !line.contains('"');
        if code && UNIX_ONLY.iter().any(|w| line.contains(w)) && !is_within(&lines, at) {
            found.push(format!("{}: `{}` is for Unix alone", at + 1, line.trim()));
        }
    }
    let counterpart = text.contains("cfg(not(unix))") || text.contains("cfg(not(target_os");
    for (at, pair) in lines.windows(2).enumerate() {
        let item = is_of_unix(pair[0]) && indent(pair[0]) == 0;
        let test = at > 0 && lines[at - 1] == "#[test]";
        let more = ["#[", "mod ", "const ", "use "].iter().any(|w| pair[1].starts_with(w));
        if item && !test && !more && !counterpart {
            found.push(format!("{}: `{}` has no counterpart in this file", at + 2, pair[1].trim()));
        }
    }
    found
}

/// The files of modules that are declared for Unix alone.
fn declared(file: &Path, text: &str) -> Vec<PathBuf> {
    let lines: Vec<&str> = text.lines().collect();
    let folder = file.parent().unwrap();
    let stem = file.file_stem().unwrap();
    let own = ["mod", "lib", "main"].iter().any(|n| stem == *n);
    let below = if own { folder.to_path_buf() } else { folder.join(stem) };
    let name = |line: &str| {
        let rest = line.trim_start_matches("pub ").trim_start_matches("pub(crate) ");
        Some(rest.strip_prefix("mod ")?.strip_suffix(';')?.to_string())
    };
    let pairs = lines.windows(2).filter(|pair| {
        is_of_unix(pair[0]) && !pair[0].contains("not(") && !pair[0].contains("any(")
    });
    pairs.filter_map(|p| name(p[1])).map(|n| below.join(format!("{n}.rs"))).collect()
}

#[test]
fn what_needs_unix_has_a_counterpart() {
    let mut files = Vec::new();
    SOURCES.iter().for_each(|dir| sources(&root().join(dir), &mut files));
    assert!(files.len() > 300, "{}", files.len());
    let texts: Vec<String> = files.iter().map(|f| std::fs::read_to_string(f).unwrap()).collect();
    let of_unix: Vec<PathBuf> =
        files.iter().zip(&texts).flat_map(|(f, text)| declared(f, text)).collect();
    let mut found = Vec::new();
    for (file, text) in files.iter().zip(&texts) {
        let wrong = wrong(text, of_unix.contains(file));
        found.extend(wrong.into_iter().map(|w| format!("{}:{w}", file.display())));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn the_rule_finds_what_it_is_for() {
    let bare = "use std::os::unix::fs::PermissionsExt;\n";
    assert_eq!(wrong(bare, false).len(), 1);
    assert!(wrong(bare, true).is_empty());
    assert!(wrong(&format!("#![cfg(unix)]\n{bare}"), false).is_empty());
    let alone = "#[cfg(unix)]\nfn a() {\n    use std::os::unix::fs::PermissionsExt;\n}\n";
    assert_eq!(wrong(alone, false), ["2: `fn a() {` has no counterpart in this file"]);
    let both = format!("{alone}\n#[cfg(not(unix))]\nfn a() {{}}\n");
    assert!(wrong(&both, false).is_empty());
    let after = format!("{both}\nfn b() {{\n    std::os::unix::process::parent_id();\n}}\n");
    assert_eq!(wrong(&after, false).len(), 1);
    let statement = "fn c() {\n    #[cfg(unix)]\n    std::os::unix::fs::symlink(a, b);\n}\n";
    assert!(wrong(statement, false).is_empty());
    let block = "fn d() {\n    #[cfg(unix)]\n    {\n        use std::os::unix::fs::X;\n    }\n}\n";
    assert!(wrong(block, false).is_empty());
    let behind = "fn e() {\n    #[cfg(unix)]\n    f();\n    std::os::unix::fs::symlink(a, b);\n}\n";
    assert_eq!(wrong(behind, false).len(), 1);
}
