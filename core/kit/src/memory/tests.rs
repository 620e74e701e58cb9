use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::import::{MAX_IMPORT_DEPTH, imports};
use super::scope::front_matter;
use super::*;

static LAYOUT: MemoryLayout = MemoryLayout {
    order: &[
        Level::Managed,
        Level::User,
        Level::Project,
        Level::Rules,
        Level::Settings,
        Level::Local,
        Level::Auto,
    ],
    managed: "CLAUDE.md",
    user: ".claude/CLAUDE.md",
    user_rules: Some(".claude/rules"),
    project: &["CLAUDE.md", ".claude/CLAUDE.md"],
    rules: ".claude/rules",
    local: "CLAUDE.local.md",
    below: &[(Level::Project, "CLAUDE.md"), (Level::Local, "CLAUDE.local.md")],
    settings: Some(".claude/settings.json"),
    projects: ".a/projects",
    index: IndexLimit { lines: 200, bytes: Some(25 * 1024) },
};

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

    /// Returns the folder of the automatic memory.
    fn auto(&self) -> PathBuf {
        let folders = self.folders();
        folders.home.join(".a/projects").join(folders.project_name()).join("memory")
    }

    fn load(&self) -> Levels {
        Levels::load(&LAYOUT, self.folders(), BTreeSet::new(), &mut |_| false)
    }

    fn texts(&self, claude: &Levels) -> Vec<(Level, String)> {
        claude.files().iter().map(|f| (f.level, f.text.trim().to_string())).collect()
    }
}

const PROJECT: (&str, &str) = ("work/.git/HEAD", "");

#[test]
fn load_orders_levels_from_broad_to_specific() {
    let disk = Disk::new(&[
        PROJECT,
        ("etc/CLAUDE.md", "managed"),
        ("home/.claude/CLAUDE.md", "user"),
        ("work/CLAUDE.md", "above"),
        ("work/app/.claude/CLAUDE.md", "here"),
        ("work/.claude/rules/style.md", "rule"),
        ("work/.claude/rules/deep/tests.md", "deep rule"),
        ("work/.claude/rules/notes.txt", "no rule"),
        ("work/app/CLAUDE.local.md", "local"),
    ]);
    assert_eq!(disk.folders().root, disk.path("work"), "the folder with .git");
    fs::create_dir_all(disk.auto()).unwrap();
    fs::write(disk.auto().join("MEMORY.md"), "auto").unwrap();
    let claude = disk.load();
    use Level::{Auto, Local, Managed, Project, Rules, User};
    let expected = [
        (Managed, "managed"),
        (User, "user"),
        (Project, "above"),
        (Project, "here"),
        (Rules, "deep rule"),
        (Rules, "rule"),
        (Local, "local"),
        (Auto, "auto"),
    ];
    assert_eq!(disk.texts(&claude), expected.map(|(l, t)| (l, t.to_string())));
    assert_eq!(claude.notes(), []);
}

#[test]
fn import_deeper_than_five_is_noted() {
    let disk = Disk::new(&[PROJECT, ("work/app/CLAUDE.md", "top @d1.md")]);
    (1..=7).for_each(|i| {
        disk.write(&format!("work/app/d{i}.md"), &format!("depth {i} @d{}.md", i + 1))
    });
    let claude = disk.load();
    assert_eq!(claude.files().len(), 1 + MAX_IMPORT_DEPTH);
    assert_eq!(claude.files().last().unwrap().text, "depth 5 @d6.md");
    assert_eq!(claude.files()[1].imported_by, Some(disk.path("work/app/CLAUDE.md")));
    let expected = Note::TooDeep {
        by: disk.path("work/app/d5.md"),
        path: disk.path("work/app/d6.md"),
        depth: 6,
        max: 5,
    };
    assert_eq!(claude.notes(), [expected]);
}

#[test]
fn import_cycle_and_missing_file_are_noted() {
    let disk = Disk::new(&[
        PROJECT,
        (
            "work/app/CLAUDE.md",
            "see @docs/none.md, @a.md. And ask @anna; mail me@b.md\n`@code.md` \
             and\n```\n@fenced.md\n```\n",
        ),
        ("work/app/a.md", "@b.md"),
        ("work/app/b.md", "@a.md @../app/./a.md"),
    ]);
    let claude = disk.load();
    let paths: Vec<&Path> = claude.files().iter().map(|f| f.path.as_path()).collect();
    assert_eq!(
        paths,
        [disk.path("work/app/CLAUDE.md"), disk.path("work/app/a.md"), disk.path("work/app/b.md")]
    );
    let (a, b) = (disk.path("work/app/a.md"), disk.path("work/app/b.md"));
    // Imported by two spellings, noted once.
    let cycle = Note::Cycle { by: b, path: a };
    let missing =
        Note::Missing { by: disk.path("work/app/CLAUDE.md"), import: "docs/none.md".into() };
    assert_eq!(claude.notes(), [missing, cycle]);
}

#[test]
fn import_outside_project_asks_for_approval_once() {
    let disk = Disk::new(&[
        PROJECT,
        ("work/app/CLAUDE.md", "@../../other/x.md @~/mine.md"),
        ("other/x.md", "x"),
        ("home/mine.md", "mine"),
    ]);
    let refused = disk.load();
    assert_eq!(refused.files().len(), 1);
    assert!(matches!(refused.notes(), [Note::NotApproved { .. }, Note::NotApproved { .. }]));
    let mut asked = Vec::new();
    let mut claude = Levels::load(&LAYOUT, disk.folders(), BTreeSet::new(), &mut |p| {
        asked.push(p.to_path_buf());
        p.ends_with("mine.md")
    });
    assert_eq!(asked, [disk.path("other/x.md"), disk.path("home/mine.md")]);
    assert_eq!(
        claude.files().iter().map(|f| f.text.as_str()).collect::<Vec<_>>(),
        ["@../../other/x.md @~/mine.md", "mine"]
    );
    let mut again = Vec::new();
    claude.reload(&mut |p| {
        again.push(p.to_path_buf());
        false
    });
    assert_eq!(again, [disk.path("other/x.md")], "an approval stays valid");
    let later = Levels::load(&LAYOUT, disk.folders(), claude.approved().clone(), &mut |_| false);
    assert_eq!(later.files().len(), 2);
}

#[cfg(unix)]
#[test]
fn link_out_of_project_needs_approval() {
    let disk =
        Disk::new(&[PROJECT, ("work/app/CLAUDE.md", "@inside.md"), ("other/secret.md", "secret")]);
    std::os::unix::fs::symlink(disk.path("other/secret.md"), disk.path("work/app/inside.md"))
        .unwrap();
    let claude = disk.load();
    assert_eq!(claude.files().len(), 1);
    assert!(matches!(claude.notes(), [Note::NotApproved { .. }]));
}

#[test]
fn scoped_rules_and_subfolders_load_on_touch_and_drop_on_reload() {
    let disk = Disk::new(&[
        PROJECT,
        ("work/CLAUDE.md", "root"),
        (
            "work/.claude/rules/api.md",
            "---\npaths:\n  - \"app/src/{api,db}/**/*.rs\"\n---\n\napi rule @more.md",
        ),
        ("work/.claude/rules/more.md", "---\npaths: never/*\n---\nmore"),
        ("work/app/src/CLAUDE.md", "src"),
        ("work/app/src/api/CLAUDE.md", "api"),
        ("work/app/docs/CLAUDE.md", "docs"),
    ]);
    let mut claude = disk.load();
    assert_eq!(disk.texts(&claude), [(Level::Project, "root".into())]);
    assert_eq!(claude.touch(Path::new("src/api/v1/a.rs"), &mut |_| false), 4);
    let texts: Vec<String> = disk.texts(&claude).into_iter().map(|(_, t)| t).collect();
    assert_eq!(texts[..3], ["root", "src", "api"]);
    assert_eq!(texts[3], "api rule @more.md");
    assert_eq!(claude.touch(Path::new("src/api/v1/a.rs"), &mut |_| false), 0, "loaded once");
    assert_eq!(claude.touch(Path::new("../../etc/passwd"), &mut |_| false), 0);
    disk.write("work/CLAUDE.md", "edited");
    claude.reload(&mut |_| false);
    assert_eq!(
        disk.texts(&claude),
        [(Level::Project, "edited".into())],
        "reloaded; files loaded for a path are dropped"
    );
    assert_eq!(claude.touch(&disk.path("work/app/docs/x.md"), &mut |_| false), 1);
}

#[test]
fn index_over_200_lines_or_25_kb_is_truncated() {
    let disk = Disk::new(&[PROJECT]);
    let auto = disk.auto();
    fs::create_dir_all(&auto).unwrap();
    let index = |text: &str| {
        fs::write(auto.join("MEMORY.md"), text).unwrap();
        let claude = disk.load();
        (claude.files()[0].text.len(), claude.files()[0].cut_off(), claude.notes().len())
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
    let claude = disk.load();
    assert_eq!(disk.texts(&claude), [(Level::Rules, "rule".into())]);
    let note = claude.notes()[0].to_string();
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
fn opencode_search_reads_one_name_up_to_the_root() {
    let disk = Disk::new(&[
        ("out/AGENTS.md", ""),
        ("out/tree/AGENTS.md", ""),
        ("out/tree/a/b/AGENTS.md", ""),
        ("out/tree/a/CLAUDE.md", ""),
        ("home/.claude/CLAUDE.md", ""),
        ("home/rules.md", ""),
        ("out/tree/docs/arch/one.md", ""),
        ("out/tree/docs/arch/two.md", ""),
        ("out/tree/docs/arch/deep/three.md", ""),
    ]);
    let mut folders = OpenCodeFolders {
        config: disk.path("config"),
        home: disk.path("home"),
        directory: disk.path("out/tree/a/b"),
        worktree: disk.path("out/tree"),
        instructions: vec!["~/rules.md".into(), "docs/arch/*.md".into(), "none.md".into()],
    };
    let found = |folders: &OpenCodeFolders| {
        let root = disk.path("");
        search(folders, &mut Vec::new())
            .iter()
            .map(|p| p.strip_prefix(&root).unwrap().display().to_string())
            .collect::<Vec<_>>()
    };
    let rest = ["home/rules.md", "out/tree/docs/arch/one.md", "out/tree/docs/arch/two.md"];
    assert_eq!(
        found(&folders)[..3],
        ["out/tree/a/b/AGENTS.md", "out/tree/AGENTS.md", "home/.claude/CLAUDE.md"]
    );
    assert_eq!(found(&folders)[3..], rest);
    disk.write("config/AGENTS.md", "");
    fs::remove_file(disk.path("out/tree/AGENTS.md")).unwrap();
    fs::remove_file(disk.path("out/tree/a/b/AGENTS.md")).unwrap();
    folders.instructions.clear();
    assert_eq!(found(&folders), ["out/tree/a/CLAUDE.md", "config/AGENTS.md"]);
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
    assert_eq!(merged, MergeResult { text: expected.into(), added: 1 });
    assert_eq!(merge("", &[durable("Facts", &["a"])]).text, "## Facts\n- a\n");
    assert_eq!(
        merge("# A\r\n- x\r\n", &[durable("A", &["y"])]).text,
        "# A\r\n- x\r\n- y\n",
        "existing line endings stay"
    );
    assert_eq!(
        merge("no end", &[durable("Facts", &["", "no END"])]),
        MergeResult { text: "no end".into(), added: 0 }
    );
}

proptest! {
    #[test]
    fn merge_is_idempotent_and_removes_nothing(
        current in "([#*-]{0,3} ?[a-c ]{0,6}\n){0,8}",
        items in prop::collection::vec("[-*]? ?[a-d]{0,3}( [a-d]{1,2})?", 0..8),
    ) {
        let d = [DurableFacts { heading: "a b".into(), items }];
        let once = merge(&current, &d);
        let twice = merge(&once.text, &d);
        prop_assert_eq!(&twice, &MergeResult { text: once.text.clone(), added: 0 });
        let mut rest = once.text.lines();
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

#[test]
fn byte_order_mark_is_stripped_before_front_matter() {
    let disk = Disk::new(&[
        PROJECT,
        ("work/.claude/rules/ts.md", "\u{feff}---\npaths: src/**\n---\nfor ts"),
        ("work/CLAUDE.md", "\u{feff}project"),
    ]);
    let mut claude = disk.load();
    assert_eq!(disk.texts(&claude), [(Level::Project, "project".to_string())]);
    assert!(!claude.files()[0].text.starts_with('\u{feff}'));
    claude.touch(&disk.path("work/src/a.ts"), &mut |_| false);
    assert_eq!(disk.texts(&claude)[1], (Level::Rules, "for ts".to_string()));
}

#[test]
fn file_that_imports_itself_is_noted_once() {
    let disk = Disk::new(&[PROJECT, ("work/app/CLAUDE.md", "me @CLAUDE.md @./CLAUDE.md")]);
    let claude = disk.load();
    let path = disk.path("work/app/CLAUDE.md");
    assert_eq!(claude.notes(), [Note::Cycle { by: path.clone(), path }]);
}

#[test]
fn folder_with_memory_file_name_is_skipped_with_note() {
    let disk = Disk::new(&[PROJECT, ("work/AGENTS.md/x", ""), ("work/CLAUDE.md", "found")]);
    let mut notes = Vec::new();
    let folders = OpenCodeFolders {
        config: disk.path("config"),
        home: disk.path("home"),
        directory: disk.path("work/app"),
        worktree: disk.path("work"),
        instructions: vec![],
    };
    assert_eq!(search(&folders, &mut notes), [disk.path("work/CLAUDE.md")]);
    let reason = "not a regular file".to_string();
    assert_eq!(notes, [Note::Unreadable { path: disk.path("work/AGENTS.md"), reason }]);
}
