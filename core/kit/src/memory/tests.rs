use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::import::{MOST_DEPTH, imports};
use super::scope::front_matter;
use super::*;

static LAYOUT: Layout = Layout {
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

    fn site(&self) -> Site {
        Site::new(&self.path("etc"), &self.path("home"), &self.path("work/app"))
    }

    /// Folder of the automatic memory.
    fn auto(&self) -> PathBuf {
        let site = self.site();
        site.home.join(".a/projects").join(site.project_name()).join("memory")
    }

    fn load(&self) -> Levels {
        Levels::load(&LAYOUT, self.site(), BTreeSet::new(), &mut |_| false)
    }

    fn shown(&self, claude: &Levels) -> Vec<(Level, String)> {
        claude.shown().iter().map(|f| (f.level, f.text.trim().to_string())).collect()
    }
}

const PROJECT: (&str, &str) = ("work/.git/HEAD", "");

#[test]
fn six_levels_from_broad_to_specific() {
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
    assert_eq!(disk.site().root, disk.path("work"), "the folder with .git");
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
    assert_eq!(disk.shown(&claude), expected.map(|(l, t)| (l, t.to_string())));
    assert_eq!(claude.notes(), []);
}

#[test]
fn imports_are_followed_to_depth_five_and_no_further() {
    let disk = Disk::new(&[PROJECT, ("work/app/CLAUDE.md", "top @d1.md")]);
    (1..=7).for_each(|i| {
        disk.write(&format!("work/app/d{i}.md"), &format!("depth {i} @d{}.md", i + 1))
    });
    let claude = disk.load();
    assert_eq!(claude.shown().len(), 1 + MOST_DEPTH);
    assert_eq!(claude.shown().last().unwrap().text, "depth 5 @d6.md");
    assert_eq!(claude.shown()[1].imported_by, Some(disk.path("work/app/CLAUDE.md")));
    let expected = Note::TooDeep {
        by: disk.path("work/app/d5.md"),
        path: disk.path("work/app/d6.md"),
        depth: 6,
        most: 5,
    };
    assert_eq!(claude.notes(), [expected]);
}

#[test]
fn cycles_and_missing_files_are_noted_and_names_are_not() {
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
    let paths: Vec<&Path> = claude.shown().iter().map(|f| f.path.as_path()).collect();
    assert_eq!(
        paths,
        [disk.path("work/app/CLAUDE.md"), disk.path("work/app/a.md"), disk.path("work/app/b.md")]
    );
    let (a, b) = (disk.path("work/app/a.md"), disk.path("work/app/b.md"));
    // Named in two ways, told once.
    let cycle = Note::Cycle { by: b, path: a };
    let missing =
        Note::Missing { by: disk.path("work/app/CLAUDE.md"), import: "docs/none.md".into() };
    assert_eq!(claude.notes(), [missing, cycle]);
}

#[test]
fn what_lies_outside_of_the_project_is_asked_for_once() {
    let disk = Disk::new(&[
        PROJECT,
        ("work/app/CLAUDE.md", "@../../other/x.md @~/mine.md"),
        ("other/x.md", "x"),
        ("home/mine.md", "mine"),
    ]);
    let refused = disk.load();
    assert_eq!(refused.shown().len(), 1);
    assert!(matches!(refused.notes(), [Note::NotApproved { .. }, Note::NotApproved { .. }]));
    let mut asked = Vec::new();
    let mut claude = Levels::load(&LAYOUT, disk.site(), BTreeSet::new(), &mut |p| {
        asked.push(p.to_path_buf());
        p.ends_with("mine.md")
    });
    assert_eq!(asked, [disk.path("other/x.md"), disk.path("home/mine.md")]);
    assert_eq!(
        claude.shown().iter().map(|f| f.text.as_str()).collect::<Vec<_>>(),
        ["@../../other/x.md @~/mine.md", "mine"]
    );
    let mut again = Vec::new();
    claude.compacted(&mut |p| {
        again.push(p.to_path_buf());
        false
    });
    assert_eq!(again, [disk.path("other/x.md")], "what was agreed to stays agreed to");
    let later = Levels::load(&LAYOUT, disk.site(), claude.approved().clone(), &mut |_| false);
    assert_eq!(later.shown().len(), 2);
}

#[cfg(unix)]
#[test]
fn a_link_out_of_the_project_is_outside() {
    let disk =
        Disk::new(&[PROJECT, ("work/app/CLAUDE.md", "@inside.md"), ("other/secret.md", "secret")]);
    std::os::unix::fs::symlink(disk.path("other/secret.md"), disk.path("work/app/inside.md"))
        .unwrap();
    let claude = disk.load();
    assert_eq!(claude.shown().len(), 1);
    assert!(matches!(claude.notes(), [Note::NotApproved { .. }]));
}

#[test]
fn scoped_rules_and_child_folders_come_with_a_file_and_go_with_a_compaction() {
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
    assert_eq!(disk.shown(&claude), [(Level::Project, "root".into())]);
    assert_eq!(claude.touch(Path::new("src/api/v1/a.rs"), &mut |_| false), 4);
    let texts: Vec<String> = disk.shown(&claude).into_iter().map(|(_, t)| t).collect();
    assert_eq!(texts[..3], ["root", "src", "api"]);
    assert_eq!(texts[3], "api rule @more.md");
    assert_eq!(claude.touch(Path::new("src/api/v1/a.rs"), &mut |_| false), 0, "once is enough");
    assert_eq!(claude.touch(Path::new("../../etc/passwd"), &mut |_| false), 0);
    disk.write("work/CLAUDE.md", "edited");
    claude.compacted(&mut |_| false);
    assert_eq!(
        disk.shown(&claude),
        [(Level::Project, "edited".into())],
        "read again; what a path brought is gone"
    );
    assert_eq!(claude.touch(&disk.path("work/app/docs/x.md"), &mut |_| false), 1);
}

#[test]
fn the_index_is_cut_at_200_lines_or_25_kilobytes() {
    let disk = Disk::new(&[PROJECT]);
    let auto = disk.auto();
    fs::create_dir_all(&auto).unwrap();
    let index = |text: &str| {
        fs::write(auto.join("MEMORY.md"), text).unwrap();
        let claude = disk.load();
        (claude.shown()[0].text.len(), claude.shown()[0].lost(), claude.notes().len())
    };
    assert_eq!(index(&"- a fact\n".repeat(200)), (1800, None, 0));
    assert_eq!(index(&"- a fact\n".repeat(203)), (1800, Some(Lost { lines: 3, bytes: 27 }), 1));
    // 26 lines of 1,000 bytes: 25 of them are 25,000 bytes, the 26th would pass 25,600.
    let long = format!("{}\n", "x".repeat(999)).repeat(26);
    assert_eq!(index(&long), (25_000, Some(Lost { lines: 1, bytes: 1_000 }), 1));
    assert_eq!(
        index(&"é".repeat(20_000)),
        (25_600, Some(Lost { lines: 1, bytes: 14_400 }), 1),
        "one line, cut between characters"
    );
}

#[test]
fn a_bad_pattern_is_named_and_its_rule_is_kept() {
    let disk = Disk::new(&[PROJECT, ("work/.claude/rules/x.md", "---\npaths: src/{a\n---\nrule")]);
    let claude = disk.load();
    assert_eq!(disk.shown(&claude), [(Level::Rules, "rule".into())]);
    let note = claude.notes()[0].to_string();
    assert!(note.contains("src/{a") && note.contains("holds for all files"), "{note}");
}

#[test]
fn front_matter_in_each_of_its_forms() {
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
fn opencode_reads_one_name_all_the_way_up() {
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
    let mut places = OpenCode {
        config: disk.path("config"),
        home: disk.path("home"),
        directory: disk.path("out/tree/a/b"),
        worktree: disk.path("out/tree"),
        instructions: vec!["~/rules.md".into(), "docs/arch/*.md".into(), "none.md".into()],
    };
    let found = |places: &OpenCode| {
        let root = disk.path("");
        search(places, &mut Vec::new())
            .iter()
            .map(|p| p.strip_prefix(&root).unwrap().display().to_string())
            .collect::<Vec<_>>()
    };
    let rest = ["home/rules.md", "out/tree/docs/arch/one.md", "out/tree/docs/arch/two.md"];
    assert_eq!(
        found(&places)[..3],
        ["out/tree/a/b/AGENTS.md", "out/tree/AGENTS.md", "home/.claude/CLAUDE.md"]
    );
    assert_eq!(found(&places)[3..], rest);
    disk.write("config/AGENTS.md", "");
    fs::remove_file(disk.path("out/tree/AGENTS.md")).unwrap();
    fs::remove_file(disk.path("out/tree/a/b/AGENTS.md")).unwrap();
    places.instructions.clear();
    assert_eq!(found(&places), ["out/tree/a/CLAUDE.md", "config/AGENTS.md"]);
}

fn durable(heading: &str, items: &[&str]) -> Durable {
    Durable { heading: heading.into(), items: items.iter().map(|i| (*i).to_string()).collect() }
}

#[test]
fn facts_move_into_their_section_and_edits_stay() {
    let by_hand = "# Mine\n\n##  Project memory\n* The port  is 8443\n\nA sentence of mine.\n\n## \
        Other\n- the host is db1\n";
    let merged = merge(
        by_hand,
        &[durable(
            "Project Memory",
            &["- the port is 8443", "the user is root", "- The Host is db1"],
        )],
    );
    let expected = "# Mine\n\n##  Project memory\n* The port  is 8443\n\nA sentence of mine.\n- \
        the user is root\n\n## Other\n- the host is db1\n";
    assert_eq!(merged, Merged { text: expected.into(), added: 1 });
    assert_eq!(merge("", &[durable("Facts", &["a"])]).text, "## Facts\n- a\n");
    assert_eq!(
        merge("# A\r\n- x\r\n", &[durable("A", &["y"])]).text,
        "# A\r\n- x\r\n- y\n",
        "line ends of others stay"
    );
    assert_eq!(
        merge("no end", &[durable("Facts", &["", "no END"])]),
        Merged { text: "no end".into(), added: 0 }
    );
}

proptest! {
    #[test]
    fn a_migration_is_done_once_and_takes_nothing_away(
        current in "([#*-]{0,3} ?[a-c ]{0,6}\n){0,8}",
        items in prop::collection::vec("[-*]? ?[a-d]{0,3}( [a-d]{1,2})?", 0..8),
    ) {
        let d = [Durable { heading: "a b".into(), items }];
        let once = merge(&current, &d);
        let twice = merge(&once.text, &d);
        prop_assert_eq!(&twice, &Merged { text: once.text.clone(), added: 0 });
        let mut rest = once.text.lines();
        for line in current.lines() {
            prop_assert!(rest.any(|l| l == line), "{:?} is gone or moved", line);
        }
    }

    #[test]
    fn any_text_can_be_searched_for_imports(text in any::<String>()) {
        for i in imports(&text) {
            prop_assert!(!i.is_empty() && text.contains(i));
        }
        let (body, _) = front_matter(&text);
        prop_assert!(text.ends_with(body));
    }
}

#[test]
fn the_mark_of_an_encoding_hides_no_front_matter() {
    let disk = Disk::new(&[
        PROJECT,
        ("work/.claude/rules/ts.md", "\u{feff}---\npaths: src/**\n---\nfor ts"),
        ("work/CLAUDE.md", "\u{feff}project"),
    ]);
    let mut claude = disk.load();
    assert_eq!(disk.shown(&claude), [(Level::Project, "project".to_string())]);
    assert!(!claude.shown()[0].text.starts_with('\u{feff}'));
    claude.touch(&disk.path("work/src/a.ts"), &mut |_| false);
    assert_eq!(disk.shown(&claude)[1], (Level::Rules, "for ts".to_string()));
}

#[test]
fn a_file_that_imports_itself_in_two_ways_is_told_once() {
    let disk = Disk::new(&[PROJECT, ("work/app/CLAUDE.md", "me @CLAUDE.md @./CLAUDE.md")]);
    let claude = disk.load();
    let path = disk.path("work/app/CLAUDE.md");
    assert_eq!(claude.notes(), [Note::Cycle { by: path.clone(), path }]);
}

#[test]
fn a_folder_that_is_called_like_a_memory_file_is_passed_over_with_a_note() {
    let disk = Disk::new(&[PROJECT, ("work/AGENTS.md/x", ""), ("work/CLAUDE.md", "found")]);
    let mut notes = Vec::new();
    let places = OpenCode {
        config: disk.path("config"),
        home: disk.path("home"),
        directory: disk.path("work/app"),
        worktree: disk.path("work"),
        instructions: vec![],
    };
    assert_eq!(search(&places, &mut notes), [disk.path("work/CLAUDE.md")]);
    let why = "it is no file".to_string();
    assert_eq!(notes, [Note::Unreadable { path: disk.path("work/AGENTS.md"), why }]);
}
