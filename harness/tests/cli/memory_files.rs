//! `ctxbench memory` on three projects: files, order and token counts of each product.
//!
//! Expected tokens are counted by hand: in o200k each word of these texts is one token, as are a
//! comma and a full stop with its newline.

use crate::common::{CommandFolder, Output, data};
use serde_json::Value;

/// Returns a text of `n` tokens and `4n - 1` bytes.
fn long(n: usize) -> String {
    format!("the{}", " the".repeat(n - 1))
}

/// Returns index lines of five tokens each.
fn index(lines: usize) -> String {
    "- a note here\n".repeat(lines)
}

/// Copies a project from tests/data/memory-trees to `NAME/` and adds `.git`, `home/` and `etc/`.
fn project(name: &str) -> CommandFolder {
    let here = CommandFolder::new();
    let trees = data("memory-trees");
    for file in ctxbench_util::files::walk(&trees.join(name)).unwrap() {
        let to = file.strip_prefix(&trees).unwrap().to_str().unwrap();
        here.write(to, std::fs::read(&file).unwrap());
    }
    here.write(&format!("{name}/.git/HEAD"), "");
    here.write("home/.keep", "");
    here.write("etc/.keep", "");
    here
}

/// Returns the folder of a project's automatic memory below `projects`.
fn auto(here: &CommandFolder, name: &str, projects: &str) -> String {
    let root = here.path(name).canonicalize().unwrap();
    let name = root.to_str().unwrap().replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    format!("home/{projects}/{name}/memory")
}

const FOLDERS: &str = "--home home --etc etc";

fn memory(here: &CommandFolder, line: &str) -> Output {
    here.run(&format!("memory {line} {FOLDERS}")).ok()
}

fn product(here: &CommandFolder, line: &str) -> Value {
    memory(here, &format!("{line} --json")).json()["products"][0].clone()
}

/// Formats each file as `level path`, indented by import depth; `+` = loaded for a touched file,
/// `?` = pending.
fn files(product: &Value) -> Vec<String> {
    let line = |f: &Value| {
        let mark = match f["when"].as_str().unwrap() {
            "start" => "",
            "touched" => "+",
            _ => "?",
        };
        let depth = "  ".repeat(f["depth"].as_u64().unwrap() as usize);
        format!("{depth}{mark}{} {}", f["level"].as_str().unwrap(), f["path"].as_str().unwrap())
    };
    product["files"].as_array().unwrap().iter().map(line).collect()
}

fn tokens(product: &Value, path: &str) -> u64 {
    let files = product["files"].as_array().unwrap();
    files.iter().find(|f| f["path"] == path).unwrap()["tokens"].as_u64().unwrap()
}

fn notes(product: &Value) -> Vec<&str> {
    product["notes"].as_array().unwrap().iter().map(|n| n.as_str().unwrap()).collect()
}

/// Builds a project with Claude Code's files at every level.
fn shop() -> CommandFolder {
    let here = project("shop");
    here.write("shop/docs/guide.md", long(30_000));
    here.write("home/.claude/CLAUDE.md", "Answer in short sentences.\n");
    here.write("etc/claude-code/CLAUDE.md", "No secrets in code.\n");
    let auto = auto(&here, "shop", ".claude/projects");
    here.write(&format!("{auto}/MEMORY.md"), index(230));
    here
}

#[test]
fn memory_claude_code_reads_six_levels_and_their_imports() {
    let here = shop();
    let c = product(&here, "shop --product claude-code");
    let index = auto(&here, "shop", "~/.claude/projects").replace("home/~", "~") + "/MEMORY.md";
    let managed = here.path("etc").join("claude-code/CLAUDE.md");
    let expected = [
        format!("managed {}", managed.strip_prefix(here.path("")).unwrap().display()),
        "user ~/.claude/CLAUDE.md".into(),
        "project CLAUDE.md".into(),
        "  project docs/flow.md".into(),
        "    project docs/terms.md".into(),
        "  project docs/guide.md".into(),
        "rules .claude/rules/style.md".into(),
        "local CLAUDE.local.md".into(),
        format!("auto {index}"),
        "?rules .claude/rules/queries.md".into(),
        "?project src/api/CLAUDE.md".into(),
    ];
    assert_eq!(files(&c), expected);
    assert_eq!(tokens(&c, "docs/guide.md"), 30_000);
    assert_eq!(tokens(&c, "~/.claude/CLAUDE.md"), 5);
    assert_eq!(tokens(&c, ".claude/rules/style.md"), 5);
    assert_eq!(tokens(&c, ".claude/rules/queries.md"), 6, "without its front matter");
    assert_eq!(tokens(&c, "CLAUDE.local.md"), 8);
    assert_eq!(tokens(&c, "src/api/CLAUDE.md"), 9);
    // 200 of 230 lines are loaded.
    assert_eq!(tokens(&c, &index), 1_000);
    assert_eq!((&c["tokens"]["lost"], &c["tokens"]["waits"]), (&150.into(), &15.into()));
    let notes = notes(&c);
    assert_eq!(notes.len(), 2, "{notes:?}");
    let missing = "CLAUDE.md: imports @docs/testing.md, which does not exist";
    let cut = "first 200 lines and 25600 bytes are loaded, the last 30 lines (420 bytes)";
    assert!(notes[0].starts_with(missing) && notes[1].contains(cut), "{notes:?}");
}

#[test]
fn memory_codex_truncates_at_byte_limit_and_opencode_reads_one_name() {
    let here = project("fleet");
    // 119,999 bytes.
    here.write("fleet/services/AGENTS.md", long(30_000));
    let dir = "fleet/services/billing";
    let c = product(&here, &format!("{dir} --product codex"));
    let expected =
        ["project ../../AGENTS.md", "project ../AGENTS.md", "project AGENTS.override.md"];
    assert_eq!(files(&c), expected);
    // 32,768 bytes minus 29 of the first file leave 32,739 = 4 · 8,185 - 1.
    assert_eq!(tokens(&c, "../../AGENTS.md"), 6);
    assert_eq!(tokens(&c, "../AGENTS.md"), 8_185);
    assert_eq!(tokens(&c, "AGENTS.override.md"), 0, "the limit is used up before the nearest file");
    assert_eq!(c["tokens"]["start"], 8_191);
    // 30,000 - 8,185 tokens of the long file, and all 14 of the nearest.
    assert_eq!(c["tokens"]["lost"], 21_815 + 14);
    let cut =
        "last 1 line (87260 bytes) are not loaded, because all files of a project may have 32768";
    assert!(notes(&c)[0].contains(cut), "{:?}", notes(&c));

    here.write("home/.codex/config.toml", "project_doc_max_bytes = 200_000\n");
    let c = product(&here, &format!("{dir} --product codex"));
    assert_eq!((&c["tokens"]["start"], &c["tokens"]["lost"]), (&30_020.into(), &0.into()));

    let c = product(&here, &format!("{dir} --product opencode --file ledger/book.rs"));
    let expected = [
        "project AGENTS.md",
        "project ../AGENTS.md",
        "project ../../AGENTS.md",
        "settings ../../docs/style.md",
        "+project ledger/AGENTS.md",
    ];
    assert_eq!(files(&c), expected);
    assert_eq!(c["tokens"]["start"], 8 + 30_000 + 6 + 5);
    assert_eq!(c["tokens"]["touched"], 9);
    assert!(notes(&c)[0].contains("https://wiki.example/rules.md"), "{:?}", notes(&c));
    assert_eq!(files(&product(&here, &format!("{dir} --product claude-code"))), [""; 0]);

    // A folder with the name of a memory file is skipped with a note.
    std::fs::create_dir(here.path("fleet/services/billing/CLAUDE.md")).unwrap();
    std::fs::remove_file(here.path("fleet/services/AGENTS.md")).unwrap();
    std::fs::create_dir(here.path("fleet/services/AGENTS.md")).unwrap();
    for name in ["codex", "opencode"] {
        let c = product(&here, &format!("{dir} --product {name}"));
        let is_of_folder = |n: &&&str| n.contains("../AGENTS.md: could not read it");
        assert_eq!(notes(&c).iter().filter(is_of_folder).count(), 1, "{name}: {:?}", notes(&c));
    }
}

#[test]
fn memory_openoxide_reads_levels_and_files_from_settings() {
    let here = project("vault");
    here.write("home/.openoxide/MEMORY.md", "Answer in short sentences.\n");
    let auto = auto(&here, "vault", ".openoxide/projects");
    here.write(&format!("{auto}/MEMORY.md"), index(250));
    let c = product(&here, "vault --product openoxide --file store/disk/log.rs");
    let expected = [
        "project OPENOXIDE.md",
        "  project docs/plan.md",
        "user ~/.openoxide/MEMORY.md",
        "settings docs/parts.md",
        "local OPENOXIDE.local.md",
        &format!("auto {}/MEMORY.md", auto.replacen("home", "~", 1)),
        "+project store/MEMORY.md",
        "+rules .openoxide/rules/store.md",
    ];
    assert_eq!(files(&c), expected);
    assert_eq!(tokens(&c, "docs/parts.md"), 9);
    assert_eq!(tokens(&c, "OPENOXIDE.local.md"), 8);
    assert_eq!(c["tokens"]["touched"], 6 + 8);
    assert_eq!(c["tokens"]["lost"], 250, "50 index lines");
    assert!(notes(&c)[0].contains("lists docs/dangers.md, which does not exist"));
    assert!(notes(&c)[1].contains("first 200 lines are loaded"));
}

#[test]
fn memory_import_outside_project_is_left_out() {
    let here = project("vault");
    here.write("home/common.md", "Answer in short sentences.\n");
    let c = product(&here, "vault --product claude-code");
    assert_eq!(files(&c), ["project CLAUDE.md"]);
    let note = &notes(&c)[0];
    assert!(note.contains("imports @~/common.md, which is outside the project"), "{note}");
    // The user's own file may import others of the user.
    here.write("home/.claude/CLAUDE.md", "See @~/common.md.\n");
    let c = product(&here, "vault --product claude-code");
    assert_eq!(files(&c)[..2], ["user ~/.claude/CLAUDE.md", "  user ~/common.md"]);
}

#[test]
fn memory_without_product_prints_all_side_by_side() {
    let here = shop();
    let out = memory(&here, "shop --file src/db/list.sql");
    let lines: Vec<Vec<&str>> =
        out.stdout.lines().map(|l| l.split_whitespace().collect()).collect();
    let products = ["tokens", "codex", "opencode", "pi", "gemini-cli", "claude-code", "openoxide"];
    assert_eq!(lines[0], products);
    let row = |path: &str| lines.iter().find(|l| l.first() == Some(&path)).unwrap()[1..].to_vec();
    assert_eq!(row("AGENTS.md"), ["5", "5", "5", "–", "–", "–"]);
    assert_eq!(row("docs/guide.md"), ["–", "–", "–", "–", "30,000", "–"]);
    assert_eq!(row("src/api/CLAUDE.md"), ["–", "(9)", "–", "–", "(9)", "–"]);
    assert_eq!(row(".claude/rules/queries.md"), ["–", "–", "–", "–", "+6", "–"]);
    // OpenCode reads Claude Code's user file if it has no user file itself.
    assert_eq!(row("~/.claude/CLAUDE.md"), ["–", "5", "–", "–", "5", "–"]);
    out.prints(&[
        "no memory files: aider: ",
        "no memory files: anthropic-sdk: ",
        "note: claude-code: CLAUDE.md: imports @docs/testing.md",
        "counted by o200k",
    ]);
    let claude = memory(&here, "shop --product claude-code --model claude-sonnet-4-6");
    // 1.17 tokens per o200k token.
    claude.prints(&["    docs/terms.md", "35,100", "waits for src/{api,db}/**/*.{ts,sql}"]);
    memory(&here, "shop --product aider").prints(&["aider reads no memory files: "]);
}

#[test]
fn memory_bad_file_is_noted() {
    let here = CommandFolder::new();
    here.write("home/.keep", "");
    here.write("p/.git/HEAD", "");
    here.write("p/CLAUDE.md", b"caf\xe9");
    std::fs::create_dir(here.path("p/CLAUDE.local.md")).unwrap();
    here.write("p/AGENTS.md", "");
    let huge = std::fs::File::options().write(true).open(here.path("p/AGENTS.md")).unwrap();
    huge.set_len((8 << 20) + 1).unwrap();
    here.write("p/opencode.json", "{");
    here.write("home/.codex/config.toml", "x = ");
    let out = memory(&here, "p");
    out.prints(&[
        "CLAUDE.md: not UTF-8",
        "CLAUDE.local.md: could not read it (not a regular file)",
        "AGENTS.md: has 8388609 bytes",
        "opencode.json: ignored (invalid JSON",
        "~/.codex/config.toml: ignored (invalid TOML",
    ]);
}

#[cfg(unix)]
#[test]
fn memory_link_cycle_is_noted() {
    use std::os::unix::fs::symlink;
    let here = project("shop");
    std::fs::remove_file(here.path("shop/CLAUDE.md")).unwrap();
    symlink("CLAUDE.md", here.path("shop/CLAUDE.md")).unwrap();
    symlink("..", here.path("shop/.claude/rules/up")).unwrap();
    symlink("..", here.path("shop/src/up")).unwrap();
    let out = memory(&here, "shop");
    out.prints(&["claude-code: CLAUDE.md: could not read it", ".claude/rules/style.md"]);
}

/// A session that reads a file, is compacted and then needs facts from memory files.
const SESSION: &str = include_str!("../data/needs-memory.toml");

#[test]
fn run_with_memory_has_project_files_in_prompts() {
    let here = shop();
    let auto = auto(&here, "shop", ".claude/projects");
    here.write(&format!("{auto}/MEMORY.md"), index(200) + "- the door is green\n");
    here.write("needs.toml", SESSION);
    let strategies = "--strategy claude-code --strategy codex --strategy opencode \
                      --strategy aider --strategy reference";
    let line = format!("run needs.toml --transport direct --window 200k {strategies}");
    here.run(&format!("{line} --out without")).ok();
    let out = here.run(&format!("{line} --memory shop {FOLDERS} --out with --details")).ok();
    out.stderr_contains(&["note: claude-code: CLAUDE.md: imports @docs/testing.md"]);
    // 11 files. All except the rule and the folder's file are loaded at the start.
    let summary = here.json("with/results.json")["assumptions"]["memory files"].to_string();
    let files = [
        "from shop: claude-code 11 files, ",
        "2 of them for certain paths only",
        "codex 1 file, 5 tokens",
        "opencode 2 files, 10 tokens at the start, 1 more for certain paths left out",
        "none for aider, reference",
    ];
    assert!(files.iter().all(|w| summary.contains(w)), "{summary}");
    assert!(out.stdout.replace('\n', " ").contains("memory files = from shop"), "{}", out.stdout);
    let places = |strategy: &str, out: &str| -> Vec<String> {
        let rows = here.csv(&format!("{out}/facts.csv"));
        let rows = rows.iter().filter(|r| r["strategy"] == strategy);
        rows.map(|r| format!("{}@{}={}", r["fact"], r["need"], r["place"])).collect()
    };
    let expected = [
        "agents@u3=nowhere",
        "index-end@u3=nowhere",
        "local@u3=memory",
        "rule@u2=memory",
        "rule@u3=nowhere",
    ];
    assert_eq!(places("claude-code", "with"), expected);
    let codex = places("codex", "with");
    assert!(codex.contains(&"agents@u3=memory".into()), "{codex:?}");
    assert!(codex.contains(&"local@u3=nowhere".into()), "{codex:?}");
    for (strategy, out) in [("claude-code", "without"), ("aider", "with"), ("reference", "with")] {
        assert!(places(strategy, out).iter().all(|p| !p.ends_with("=memory")), "{strategy}");
    }
}
