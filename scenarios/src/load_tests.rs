use ctxbench_session::Entry;
use serde_json::{Value, json};

use super::*;
use crate::formats::reading_tests::readings::readings;
use crate::formats::testing::{describe, recorded};
use crate::{Found, load, load_path};

const SESSION: &str = "{\"type\":\"session\",\"version\":1,\"id\":\"b\"}\n{\"type\":\"user\",\"id\":\"a\",\"text\":\"x\"}\n";
const TOML: &str = "id = \"a\"\n[[step]]\ntype = \"user\"\nfile = \"said.txt\"\n";
const CODEX: &str = "{\"type\":\"response_item\",\"payload\":{\"type\":\"message\",\"role\":\"user\",\"content\":\"hi\"}}\n";

#[test]
fn a_folder_gives_all_that_is_in_it_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("b.jsonl", SESSION);
    write("c.jsonl", CODEX);
    write("a/scenario.toml", TOML);
    write("a/said.txt", "hello");
    write("d.toml", "id = \"d\"\nextends = \"a\"\n");
    write("notes.md", "not read");
    let all = load_path(dir.path()).unwrap().scenarios;
    assert_eq!(all.iter().map(|s| s.id.as_str()).collect::<Vec<_>>(), ["a", "b", "c", "d"]);
    assert_eq!(all[0].session.entries, all[3].session.entries);
    // Files without a session, empty files and files without messages are reported and left out.
    // Subfolders are included.
    write("e.json", "{\"foreign\":1}");
    write("empty.jsonl", "");
    write("silent.jsonl", SESSION.lines().next().unwrap());
    write("deep/er/b.jsonl", &SESSION.replace("\"id\":\"a\"", "\"id\":\"z\""));
    write(".git/c.jsonl", CODEX);
    write(".old/a/scenario.toml", TOML);
    #[cfg(unix)]
    std::os::unix::fs::symlink("..", dir.path().join("deep/back")).unwrap();
    // Folders outside are not searched.
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("x.jsonl"), SESSION).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(outside.path(), dir.path().join("deep/out")).unwrap();
    let Found { scenarios, skipped } = load_path(dir.path()).unwrap();
    let ids: Vec<&str> = scenarios.iter().map(|s| s.id.as_str()).collect();
    assert_eq!(ids, ["a", "b", "c", "d", "deep-er-b"], "two are called b");
    let why: Vec<String> = skipped.iter().map(|(_, why)| why.to_string()).collect();
    assert_eq!(why.len(), if cfg!(unix) { 4 } else { 3 }, "{why:?}");
    assert!(!cfg!(unix) || why[3].contains("which is not below the folder"), "{why:?}");
    let other = "e.json: not a format that ctxbench reads; expected Session JSONL";
    assert!(why[0].contains(other), "{why:?}");
    assert!(why[2].contains("silent.jsonl: no messages in session \"b\""), "{why:?}");
    let bad = tempfile::tempdir().unwrap();
    std::fs::write(bad.path().join("e.json"), "{}").unwrap();
    let only = load_path(bad.path()).unwrap_err().to_string();
    assert!(only.contains("e.json: not a format that ctxbench reads"), "{only}");
    write("e.json", "");
    let told = |name: &str| {
        let told = load_path(&dir.path().join(name)).unwrap_err().to_string();
        told.replace(&format!("{}/", dir.path().display()), "")
    };
    let expected = "expected a built-in scenario's id or the path of a scenario file";
    write("f.toml", "id = \"f\"\n\nextends = \"d.toml\"\n");
    write("d.toml", "id = \"d\"\nextends = \"f.toml\"\n");
    assert_eq!(
        told("d.toml"),
        format!(
            "f.toml:3: it extends itself: d.toml extends f.toml extends d.toml; {expected}; break \
             the circle"
        )
    );
    write("d.toml", "id = \"d\"\nextends = \"g.toml\"\n");
    assert!(told("f.toml").starts_with("d.toml:2: cannot extend \"g.toml\": cannot read g.toml:"));
    write("d.toml", "idd = \"d\"\n");
    assert!(told("f.toml").starts_with("d.toml:1: unknown key `idd`"), "{}", told("f.toml"));
    let empty = tempfile::tempdir().unwrap();
    assert!(load_path(empty.path()).unwrap_err().to_string().contains("the folder is empty"));
}

/// Files with what the error of the first must contain. Each file of `tests/data/refusals` has those of a
/// kind. A file without parts of an error is read.
#[test]
fn refusals_name_place_fault_and_remedy() {
    for file in std::fs::read_dir(recorded("../refusals")).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        for case in readings(&text) {
            let dir = tempfile::tempdir().unwrap();
            for (name, lines) in &case.files {
                std::fs::write(dir.path().join(name), lines.join("\n")).unwrap();
            }
            let parts: Vec<&str> = case.sessions.concat();
            let told = load_path(&dir.path().join(case.files[0].0)).err().map(|e| e.to_string());
            assert_eq!(told.is_none(), parts.is_empty(), "{}: {told:?}", case.heading);
            for part in parts {
                assert!(told.as_ref().unwrap().contains(part), "{}: {told:?}", case.heading);
            }
        }
    }
}

#[test]
fn names_are_paths_or_built_in() {
    assert_eq!(load("login-bug").unwrap().scenarios[0].id, "login-bug");
    let all = load("all").unwrap().scenarios;
    assert_eq!(all.iter().map(|s| s.id.as_str()).collect::<Vec<_>>(), *crate::builtin::IDS);
}

#[test]
fn content_decides_what_a_file_is() {
    for (bytes, name, kind) in [
        (SESSION.as_bytes(), "x", Some(InputKind::Session)),
        (&SESSION.as_bytes()[..30], "x", Some(InputKind::Session)),
        (b"id = 1", "x.toml", Some(InputKind::Scenario)),
        (CODEX.as_bytes(), "x.jsonl", Some(InputKind::Recording("codex"))),
        (b"", "x.txt", None),
        (b"\xff\xfe", "x.json", None),
    ] {
        assert_eq!(sniff(&Source::of_bytes(bytes, name)), kind);
    }
}

/// Contents of an excerpt of a real recording, counted by a separate script: file, user messages,
/// replies, calls, and the provider's tokens of all prompts of the replies.
type Counted = (&'static str, usize, usize, usize, u64);

const COUNTED: &[Counted] = &[
    // Contains the messages of a subagent.
    ("claude-code/spotter-8463c716.jsonl", 2, 6 + 1, 7 + 3, 583_263 + 17_877),
    ("codex/codemie-rollout-019e1625.jsonl", 2, 6, 5, 119_901),
    // A 35th reply was aborted. It is empty and was not billed.
    ("pi/pi-mono-large-session.jsonl", 2, 34, 33, 32 + 1_583_867 + 13_847),
    ("swe-agent/marshmallow-1867-function-calling.traj", 1, 6, 6, 0),
    ("swe-agent/pydicom-1458-text.traj", 1, 3, 3, 0),
    ("mini-swe-agent/github_issue.traj.json", 1, 10, 10, 0),
    // The first of three sessions.
    ("openhands/output.jsonl", 1, 7, 7, 67_043),
    // One of the messages was sent twice.
    ("aider/read-only-files.aider.chat.history.md", 4, 3, 0, 20_842 + 11_077 + 14_066),
    // The program wrote two of the seven messages after compactions.
    ("opencode/s2_multiturn.export.json", 7, 11, 4, 81_690),
    ("gemini-cli/session-2026-01-16T11-01-37b7abef.json", 4, 7, 5, 72_093),
];

#[test]
fn real_recordings_import() {
    let (mut agents, mut compactions) = (Vec::new(), Vec::new());
    for &(path, users, replies, calls, prompts) in COUNTED {
        let scenario = load_path(&recorded(path)).unwrap().scenarios.remove(0);
        let s = &scenario.session;
        let (mut found, mut results) = ((0, 0, 0, 0), 0);
        for entry in &s.entries {
            agents.extend(entry.agent().map(str::to_string));
            match entry {
                Entry::User(_) => found.0 += 1,
                Entry::Assistant(a) => {
                    found.1 += 1;
                    found.2 += a.all_calls().len();
                    found.3 += a.usage.as_ref().map_or(0, |u| u.prompt());
                }
                Entry::Tool(_) => results += 1,
                Entry::RecordedCompaction(c) => {
                    let summary = c.summary.as_ref().unwrap().len();
                    let prompt = c.usage.as_ref().unwrap().prompt();
                    compactions.push((c.pre_tokens.unwrap(), summary, prompt));
                }
                _ => {}
            }
        }
        assert_eq!((found, results), ((users, replies, calls, prompts), calls), "{path}");
        assert_eq!(s.header.source.as_ref().unwrap().format, path.split_once('/').unwrap().0);
        assert_eq!(jsonl::read(s.to_jsonl().unwrap().as_bytes(), "x").unwrap().session, *s);
    }
    agents.dedup();
    assert_eq!(agents, ["a7be2f0"]);
    // Tokens before each compaction, bytes of its summary, and tokens of the prompt that asked for
    // it.
    let of_claude_code = (167_731, 12_197, 3 + 167_093 + 2_814);
    let of_opencode = [(14_010, 31, 6_000), (14_540, 31, 6_000)];
    assert_eq!(compactions, [&[of_claude_code], &of_opencode[..]].concat());
}

#[test]
fn a_session_may_be_utf_16() {
    let text = "{\"type\":\"session\",\"version\":1,\"id\":\"é\"}\n{\"type\":\"user\",\"id\":\"u\",\"text\":\"go\"}\n";
    let wide: Vec<u8> =
        [0xfeff].into_iter().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("s.jsonl"), wide).unwrap();
    assert_eq!(load_path(dir.path()).unwrap().scenarios[0].id, "é");
}

#[test]
fn subagents_in_files_beside_a_session_are_part_of_it() {
    let line = |kind: &str, id: &str, parent: Option<&str>, agent: Option<&str>, content: Value| {
        let second = ["u", "a", "x1", "x2", "r"].iter().position(|i| *i == id).unwrap();
        json!({"type": kind, "uuid": id, "parentUuid": parent, "sessionId": "s", "agentId": agent,
            "isSidechain": agent.is_some(), "timestamp": format!("2026-01-01T00:00:0{second}.000Z"),
            "message": {"id": id, "content": [content]}})
        .to_string()
    };
    let text = |t: &str| json!({"type": "text", "text": t});
    let call = json!({"type": "tool_use", "id": "t", "name": "Task", "input": {"prompt": "look"}});
    let result = json!({"type": "tool_result", "tool_use_id": "t", "content": "report"});
    let main = [
        line("user", "u", None, None, text("go")),
        line("assistant", "a", Some("u"), None, call),
        line("user", "r", Some("a"), None, result),
    ];
    let agent = [
        line("user", "x1", None, Some("x"), text("look")),
        line("assistant", "x2", Some("x1"), Some("x"), text("report")),
    ];
    let agent = |session: &str| {
        agent.join("\n").replace("\"sessionId\":\"s\"", &format!("\"sessionId\":\"{session}\""))
    };
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("s.jsonl"), main.join("\n")).unwrap();
    std::fs::write(dir.path().join("agent-x.jsonl"), agent("s")).unwrap();
    std::fs::write(dir.path().join("agent-y.jsonl"), agent("another")).unwrap();
    let all = load_path(dir.path()).unwrap().scenarios;
    // The session with its subagent, and the one of another session by itself.
    assert_eq!(all.len(), 2);
    let session = all.iter().find(|s| s.id == "s").unwrap();
    let expected = [
        "user: go",
        "model: Task[t]{\"prompt\":\"look\"}",
        "x/user: look",
        "x/model: report",
        "result[t]: report",
    ];
    assert_eq!(describe(&session.session), expected);
    assert!(session.warnings[0].contains("agent-x.jsonl"), "{:?}", session.warnings);
    // Later versions store them in a folder named after the session.
    let folder = dir.path().join("s/subagents");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::rename(dir.path().join("agent-x.jsonl"), folder.join("agent-x.jsonl")).unwrap();
    let entries = |path: &Path| load_path(path).unwrap().scenarios[0].session.entries.len();
    assert_eq!(entries(&dir.path().join("s.jsonl")), 5);
    // So does one with a mark, an empty line or a torn one at the beginning.
    for start in ["\u{feff}", "\r\n", "{\"type\":\"user\",\"uu\n"] {
        std::fs::write(folder.join("agent-x.jsonl"), start.to_string() + &agent("agent-x"))
            .unwrap();
        assert_eq!(entries(&dir.path().join("s.jsonl")), 5, "{start:?}");
    }
    // A link to a session has the same companions.
    #[cfg(unix)]
    {
        let elsewhere = tempfile::tempdir().unwrap();
        let link = elsewhere.path().join("called-otherwise.jsonl");
        std::os::unix::fs::symlink(dir.path().join("s.jsonl"), &link).unwrap();
        assert_eq!(entries(&link), 5);
        assert_eq!(entries(elsewhere.path()), 5);
    }
}

#[test]
fn a_member_of_an_archive_counts_wherever_it_lies() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("home.zip");
    let mut zip = zip::ZipWriter::new(std::fs::File::create(&path).unwrap());
    let plain = zip::write::SimpleFileOptions::default();
    let stored = plain.compression_method(zip::CompressionMethod::Stored);
    let mac = ["__MACOSX/.claude/projects/._b.jsonl", ".claude/projects/._c.jsonl", ".DS_Store"];
    for name in [".claude/projects/a.jsonl", "./d.jsonl", "/abs/e.jsonl"].iter().chain(&mac) {
        zip.start_file(*name, stored).unwrap();
        let id = format!("\"id\":\"{}\"", name.rsplit('/').next().unwrap());
        std::io::Write::write_all(&mut zip, SESSION.replace("\"id\":\"b\"", &id).as_bytes())
            .unwrap();
    }
    zip.finish().unwrap();
    let mut places = Vec::new();
    let _ = read(&path, &SearchedFolders::default(), &mut |place, one| {
        places.push((place.strip_prefix(&path).unwrap().display().to_string(), one.unwrap().id));
        ControlFlow::Continue(())
    });
    let expected = [
        ("d.jsonl", "d.jsonl"),
        (".claude/projects/a.jsonl", "a.jsonl"),
        ("abs/e.jsonl", "e.jsonl"),
    ];
    assert_eq!(places, expected.map(|(place, id)| (place.to_string(), id.to_string())));
}

#[test]
fn a_file_of_several_sessions_gives_all_of_them() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("two.jsonl");
    let second = SESSION.replace("\"id\":\"b\"", "\"id\":\"c\"");
    std::fs::write(&path, format!("{SESSION}{second}{SESSION}")).unwrap();
    let ids: Vec<String> =
        load_path(&path).unwrap().scenarios.into_iter().map(|s| s.session.header.id).collect();
    assert_eq!(ids, ["two-b-1", "c", "two-b-2"]);
    let e = parse(&std::fs::read(&path).unwrap(), "two.jsonl").unwrap_err().to_string();
    assert!(e.contains("expected one session, and not 3"), "{e}");
}
