use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;

use super::import::{MAX_IMPORT_DEPTH, imports};
use super::scope::front_matter;
use super::*;

/// Claude Code's rows, with other folders for what lies outside the project.
fn rows() -> Vec<Row> {
    vec![
        Row::new(Level::Managed, Base::Etc, &["CLAUDE.md"]),
        Row::new(Level::User, Base::Home, &[".claude/CLAUDE.md"]),
        Row::new(Level::Rules, Base::Home, &[".claude/rules/**/*.md"]),
        Row::new(Level::Project, Base::Above, &["CLAUDE.md", ".claude/CLAUDE.md"]),
        Row::new(Level::Rules, Base::Root, &[".claude/rules/**/*.md"]),
        Row::new(Level::Local, Base::Above, &["CLAUDE.local.md"]),
        Row::new(Level::Auto, Base::Home, &["auto/MEMORY.md"]),
        Row::new(Level::Project, Base::Below, &["CLAUDE.md"]),
        Row::new(Level::Local, Base::Below, &["CLAUDE.local.md"]),
    ]
}

struct Disk(tempfile::TempDir);

impl Disk {
    fn new(files: &[(&str, &str)]) -> Disk {
        let disk = Disk(tempfile::tempdir().unwrap());
        files.iter().for_each(|(path, text)| disk.write(path, text));
        disk
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(path)
    }

    fn folders(&self) -> ProjectFolders {
        ProjectFolders::new(&self.path("etc"), &self.path("home"), &self.path("work/app"))
    }

    /// Loads the files of a session that touched paths below the working directory.
    fn load(&self, touched: &[&str]) -> LoadedFiles {
        let touched: Vec<PathBuf> = touched.iter().map(PathBuf::from).collect();
        let folders = self.folders();
        let index = IndexLimit { lines: 200, bytes: Some(25 * 1024) };
        let table = MemoryTable { rows: rows(), imports: true, index };
        load(&LoadRequest { table, folders: &folders, touched: &touched }, Vec::new())
    }

    /// Returns level and text of each file, with `+` for a touched and `?` for a pending one.
    fn shown(&self, touched: &[&str]) -> Vec<String> {
        let mark = |when| match when {
            Activation::Start => "",
            Activation::Touched => "+",
            Activation::Pending => "?",
        };
        let line = |f: &MemoryFile| format!("{}{} {}", mark(f.when), f.level.name(), f.text.trim());
        self.load(touched).files.iter().map(line).collect()
    }

    /// Returns the notes with paths relative to the temporary folder.
    fn notes(&self) -> Vec<String> {
        let root = format!("{}/", self.path("").display()).replace("//", "/");
        self.load(&[]).notes.iter().map(|n| n.to_string().replace(&root, "")).collect()
    }
}

const PROJECT: (&str, &str) = ("work/.git/HEAD", "");

#[test]
fn import_deeper_than_five_is_noted() {
    let disk = Disk::new(&[PROJECT, ("work/app/CLAUDE.md", "top @d1.md")]);
    (1..=7).for_each(|i| {
        disk.write(&format!("work/app/d{i}.md"), &format!("depth {i} @d{}.md", i + 1))
    });
    let files = disk.load(&[]).files;
    assert_eq!(files.len(), 1 + MAX_IMPORT_DEPTH);
    assert_eq!(files.last().unwrap().text, "depth 5 @d6.md");
    assert_eq!(files[1].imported_by, Some(disk.path("work/app/CLAUDE.md")));
    let note = "work/app/d5.md: imports @d6.md, which is more than 5 imports deep; import it nearer \
                to the top";
    assert_eq!(disk.notes(), [note]);
}

#[test]
fn import_cycle_ends_and_missing_file_is_noted() {
    let disk = Disk::new(&[
        PROJECT,
        (
            "work/app/CLAUDE.md",
            "see @docs/none.md, @a.md. And ask @anna; mail me@b.md\n`@code.md` \
             and\n```\n@fenced.md\n```\nme @CLAUDE.md @./CLAUDE.md",
        ),
        ("work/app/a.md", "@b.md"),
        ("work/app/b.md", "@a.md @../app/./a.md"),
    ]);
    let paths: Vec<PathBuf> = disk.load(&[]).files.into_iter().map(|f| f.path).collect();
    let expected = ["CLAUDE.md", "a.md", "b.md"].map(|f| disk.path("work/app").join(f));
    assert_eq!(paths, expected);
    let missing = "work/app/CLAUDE.md: imports @docs/none.md, which does not exist; correct the path or \
                   remove the line";
    assert_eq!(disk.notes(), [missing]);
}

#[cfg(unix)]
#[test]
fn link_out_of_project_is_left_out() {
    let disk =
        Disk::new(&[PROJECT, ("work/app/CLAUDE.md", "@inside.md"), ("other/secret.md", "secret")]);
    std::os::unix::fs::symlink(disk.path("other/secret.md"), disk.path("work/app/inside.md"))
        .unwrap();
    assert_eq!(disk.shown(&[]), ["project @inside.md"]);
    let note = "work/app/CLAUDE.md: imports @inside.md, which is outside the project; products ask \
                you before they load it, so it is left out";
    assert_eq!(disk.notes(), [note]);
}

#[test]
fn scoped_rules_and_subfolders_load_on_touch() {
    let disk = Disk::new(&[
        PROJECT,
        ("work/CLAUDE.md", "\u{feff}root"),
        (
            "work/.claude/rules/api.md",
            "\u{feff}---\npaths:\n  - \"app/src/{api,db}/**/*.rs\"\n---\n\napi rule @more.md",
        ),
        ("work/.claude/rules/more.md", "---\npaths: never/*\n---\nmore"),
        ("work/app/src/CLAUDE.md", "src"),
        ("work/app/src/api/CLAUDE.md", "api"),
        ("work/app/docs/CLAUDE.md", "docs"),
    ]);
    let (rule, never) = ("rules api rule @more.md", "?rules ---\npaths: never/*\n---\nmore");
    let pending = [&format!("?{rule}"), never, "?project docs", "?project src", "?project api"];
    let rest = |touched: &[&str]| disk.shown(touched).split_off(1);
    assert_eq!(rest(&[]), pending);
    assert_eq!(rest(&["../../etc/passwd"]), pending);
    let never = "+rules ---\npaths: never/*\n---\nmore";
    let touched = ["+project src", "+project api", &format!("+{rule}"), never, "?project docs"];
    assert_eq!(rest(&["src/api/v1/a.rs"]), touched);
    assert_eq!(rest(&["src/api/v1/a.rs", "src/api/b.rs"]), touched, "loaded once");
    let full = disk.path("work/app/docs/x.md");
    let docs = ["+project docs", pending[0], pending[1], pending[3], pending[4]];
    assert_eq!(rest(&[full.to_str().unwrap()]), docs);
}

#[test]
fn index_over_200_lines_or_25_kb_is_truncated() {
    let disk = Disk::new(&[PROJECT]);
    let index = |text: &str| {
        disk.write("home/auto/MEMORY.md", text);
        let LoadedFiles { files, notes } = disk.load(&[]);
        (files[0].text.len(), files[0].cut_off(), notes.len())
    };
    assert_eq!(index(&"- a fact\n".repeat(200)), (1800, None, 0));
    assert_eq!(index(&"- a fact\n".repeat(203)), (1800, Some(CutOff { lines: 3, bytes: 27 }), 1));
    // 26 lines of 1,000 bytes: 25 lines are 25,000 bytes, and the 26th would exceed 25,600.
    let long = format!("{}\n", "x".repeat(999)).repeat(26);
    assert_eq!(index(&long), (25_000, Some(CutOff { lines: 1, bytes: 1_000 }), 1));
    assert_eq!(
        index(&"é".repeat(20_000)),
        (25_600, Some(CutOff { lines: 1, bytes: 14_400 }), 1),
        "one line, split between characters"
    );
}

#[test]
fn rule_with_invalid_pattern_applies_to_all_files() {
    let disk = Disk::new(&[PROJECT, ("work/.claude/rules/x.md", "---\npaths: src/{a\n---\nrule")]);
    assert_eq!(disk.shown(&[]), ["rules rule"]);
    let note = &disk.notes()[0];
    assert!(note.contains("src/{a") && note.contains("applies to all files"), "{note}");
}

#[test]
fn front_matter_parses_every_form() {
    let patterns = |text: &str| front_matter(text).1;
    assert_eq!(
        patterns("---\npaths:\n  - \"a/**\"\n  - b\nother: x\n  - no\n---\nx"),
        ["a/**", "b"]
    );
    assert_eq!(patterns("---\npaths: [\"a/{x,y}.ts\", 'b']\n---\n"), ["a/{x,y}.ts", "b"]);
    assert_eq!(front_matter("---\r\ntitle: t\r\n---\r\nbody"), ("body", vec![]));
    assert_eq!(front_matter("---\nnever closed"), ("---\nnever closed", vec![]));
    assert_eq!(front_matter("plain"), ("plain", vec![]));
}

#[test]
fn rows_pick_files_in_folders_up_to_the_root() {
    let disk = Disk::new(&[
        PROJECT,
        ("A.md", "above the root"),
        ("work/A.md", "a"),
        ("work/app/A.md", "aa"),
        ("work/app/B.md", "b"),
        ("home/rules.md", "rules"),
        ("work/docs/one.md", "1"),
        ("work/docs/two.md", "2"),
        ("work/docs/deep/three.md", "3"),
    ]);
    let shown = |row: Row| {
        let table = MemoryTable { rows: vec![row], ..MemoryTable::default() };
        let request = LoadRequest { table, folders: &disk.folders(), touched: &[] };
        let texts = load(&request, Vec::new()).files.into_iter().map(|f| f.text);
        texts.collect::<Vec<_>>().join(" ")
    };
    let row = |names: &[&str]| Row::new(Level::Project, Base::Project, names);
    assert_eq!(shown(row(&["A.md", "B.md"])), "a aa b");
    assert_eq!(shown(Row { nearest_first: true, ..row(&["A.md"]) }), "aa a");
    assert_eq!(shown(Row { pick: Pick::First, ..row(&["B.md", "A.md"]) }), "a b");
    assert_eq!(shown(Row { pick: Pick::OneName, ..row(&["C.md", "B.md", "A.md"]) }), "b");
    assert_eq!(shown(row(&["~/rules.md", "docs/*.md", "none.md"])), "rules 1 2");
    assert_eq!(shown(row(&["docs/**/t*.md"])), "3 2");
}

fn durable(heading: &str, items: &[&str]) -> DurableFacts {
    DurableFacts {
        heading: heading.into(),
        items: items.iter().map(|i| (*i).to_string()).collect(),
    }
}

#[test]
fn merge_adds_facts_to_their_section_and_keeps_edits() {
    let edited = "# Mine\n\n##  Project memory\n* The port  is 8443\n\nA sentence of mine.\n\n## \
        Other\n- the host is db1\n";
    let merged = merge(
        edited,
        &[durable(
            "Project Memory",
            &["- the port is 8443", "the user is root", "- The Host is db1"],
        )],
    );
    let expected = "# Mine\n\n##  Project memory\n* The port  is 8443\n\nA sentence of mine.\n- \
        the user is root\n\n## Other\n- the host is db1\n";
    assert_eq!(merged.as_deref(), Some(expected));
    assert_eq!(merge("", &[durable("Facts", &["a"])]).unwrap(), "## Facts\n- a\n");
    assert_eq!(
        merge("# A\r\n- x\r\n", &[durable("A", &["y"])]).unwrap(),
        "# A\r\n- x\r\n- y\n",
        "existing line endings stay"
    );
    assert_eq!(merge("no end", &[durable("Facts", &["", "no END"])]), None);
}

proptest! {
    #[test]
    fn merge_is_idempotent_and_removes_nothing(
        current in "([#*-]{0,3} ?[a-c ]{0,6}\n){0,8}",
        items in prop::collection::vec("[-*]? ?[a-d]{0,3}( [a-d]{1,2})?", 0..8),
    ) {
        let d = [DurableFacts { heading: "a b".into(), items }];
        let once = merge(&current, &d).unwrap_or(current.clone());
        prop_assert_eq!(merge(&once, &d), None);
        let mut rest = once.lines();
        for line in current.lines() {
            prop_assert!(rest.any(|l| l == line), "{:?} was removed or moved", line);
        }
    }

    #[test]
    fn imports_of_any_text_are_substrings(text in any::<String>()) {
        for i in imports(&text) {
            prop_assert!(!i.is_empty() && text.contains(i));
        }
        let (body, _) = front_matter(&text);
        prop_assert!(text.ends_with(body));
    }
}
