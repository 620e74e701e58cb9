use ctxbench_core::session::{Entry, Session};

use super::*;

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
    let Found { scenarios, skipped } = load_path(dir.path()).unwrap();
    let ids: Vec<&str> = scenarios.iter().map(|s| s.id.as_str()).collect();
    assert_eq!(ids, ["a", "b", "c", "d", "deep-er-b"], "two are called b");
    let why: Vec<String> = skipped.iter().map(|(_, why)| why.to_string()).collect();
    assert_eq!(why.len(), 3, "{why:?}");
    assert!(why[0].contains("e.json: not a known format; expected Session JSONL"), "{why:?}");
    assert!(why[2].contains("silent.jsonl: no messages in session \"b\""), "{why:?}");
    let bad = tempfile::tempdir().unwrap();
    std::fs::write(bad.path().join("e.json"), "{}").unwrap();
    let only = load_path(bad.path()).unwrap_err().to_string();
    assert!(only.contains("e.json: not a known format"), "{only}");
    write("e.json", "");
    write("d.toml", "id = \"d\"\nextends = \"d.toml\"\n");
    let told = |name: &str| {
        let told = load_path(&dir.path().join(name)).unwrap_err().to_string();
        told.replace(&format!("{}/", dir.path().display()), "")
    };
    let expected = "expected a built-in scenario's id or the path of a scenario file";
    let circle = |place: &str, files: &str| {
        format!("{place}: it extends itself: {files}; {expected}; break the circle")
    };
    assert_eq!(told("d.toml"), circle("d.toml:2", "d.toml extends d.toml"));
    write("f.toml", "id = \"f\"\n\nextends = \"d.toml\"\n");
    write("d.toml", "id = \"d\"\nextends = \"f.toml\"\n");
    assert_eq!(told("d.toml"), circle("f.toml:3", "d.toml extends f.toml extends d.toml"));
    write("d.toml", "id = \"d\"\nextends = \"g.toml\"\n");
    assert!(told("f.toml").starts_with("d.toml:2: cannot extend \"g.toml\": cannot read g.toml:"));
    write("d.toml", "idd = \"d\"\n");
    assert!(told("f.toml").starts_with("d.toml:1: unknown key \"idd\""), "{}", told("f.toml"));
    let empty = tempfile::tempdir().unwrap();
    assert!(load_path(empty.path()).unwrap_err().to_string().contains("a folder with .toml"));
}

#[test]
fn names_are_paths_or_built_in() {
    assert_eq!(load("login-bug").unwrap().scenarios[0].id, "login-bug");
    assert_eq!(
        load("all").unwrap().scenarios.iter().map(|s| s.id.as_str()).collect::<Vec<_>>(),
        crate::builtin::IDS
    );
    assert!(load("login-bgu").unwrap_err().to_string().contains("did you mean login-bug"));
    assert!(load("gone.jsonl").unwrap_err().to_string().contains("cannot read gone.jsonl"));
}

#[test]
fn content_decides_what_a_file_is() {
    assert_eq!(sniff(&Source::of_bytes(SESSION.as_bytes(), "x")), Some(InputKind::Session));
    assert_eq!(sniff(&Source::of_bytes(&SESSION.as_bytes()[..30], "x")), Some(InputKind::Session));
    assert_eq!(sniff(&Source::of_bytes(b"id = 1", "x.toml")), Some(InputKind::Scenario));
    assert_eq!(
        sniff(&Source::of_bytes(CODEX.as_bytes(), "x.jsonl")),
        Some(InputKind::Recording("codex"))
    );
    assert_eq!(sniff(&Source::of_bytes(b"", "x.txt")), None);
    assert_eq!(sniff(&Source::of_bytes(b"\xff\xfe", "x.json")), None);
}

fn count(s: &Session, of: fn(&Entry) -> usize) -> usize {
    s.entries.iter().map(of).sum()
}

/// Contents of an excerpt of a real recording, counted by a separate script.
struct ExpectedSession {
    path: &'static str,
    users: usize,
    replies: usize,
    calls: usize,
    /// Provider's tokens of all prompts of the replies.
    prompts: u64,
    agents: &'static [&'static str],
    /// Tokens before each compaction, bytes of its summary, and tokens of the prompt that requested
    /// it, if that request was recorded.
    compactions: &'static [(u64, usize, Option<u64>)],
}

#[test]
fn real_recordings_import() {
    let all = [
        ExpectedSession {
            path: "claude-code/spotter-8463c716.jsonl",
            // One user message each in the session and in its subagent.
            users: 2,
            replies: 6 + 1,
            calls: 7 + 3,
            prompts: (10 + 544_822 + 38_431) + (3 + 15_511 + 2_363),
            agents: &["a7be2f0"],
            compactions: &[(167_731, 12_197, Some(3 + 167_093 + 2_814))],
        },
        ExpectedSession {
            path: "codex/codemie-rollout-019e1625.jsonl",
            users: 2,
            replies: 6,
            calls: 5,
            prompts: 18_703 + 18_911 + 20_292 + 20_419 + 20_745 + 20_831,
            agents: &[],
            compactions: &[],
        },
        ExpectedSession {
            path: "pi/pi-mono-large-session.jsonl",
            users: 2,
            // A 35th reply was aborted. It is empty and was not billed.
            replies: 34,
            calls: 33,
            prompts: 32 + 1_583_867 + 13_847,
            agents: &[],
            compactions: &[],
        },
        ExpectedSession {
            path: "swe-agent/marshmallow-1867-function-calling.traj",
            users: 1,
            replies: 6,
            calls: 6,
            prompts: 0,
            agents: &[],
            compactions: &[],
        },
        ExpectedSession {
            path: "swe-agent/pydicom-1458-text.traj",
            users: 1,
            replies: 3,
            calls: 3,
            prompts: 0,
            agents: &[],
            compactions: &[],
        },
        ExpectedSession {
            path: "mini-swe-agent/github_issue.traj.json",
            users: 1,
            replies: 10,
            calls: 10,
            prompts: 0,
            agents: &[],
            compactions: &[],
        },
        ExpectedSession {
            path: "openhands/output.jsonl",
            // The first of three sessions.
            users: 1,
            replies: 7,
            calls: 7,
            prompts: 67_043,
            agents: &[],
            compactions: &[],
        },
        ExpectedSession {
            path: "aider/read-only-files.aider.chat.history.md",
            // One of the messages was sent twice.
            users: 4,
            replies: 3,
            calls: 0,
            prompts: 20_842 + 11_077 + 14_066,
            agents: &[],
            compactions: &[],
        },
        ExpectedSession {
            path: "opencode/s2_multiturn.export.json",
            // The program wrote two of the seven messages after compactions.
            users: 7,
            replies: 11,
            calls: 4,
            prompts: 81_690,
            agents: &[],
            compactions: &[(14_010, 31, Some(6_000)), (14_540, 31, Some(6_000))],
        },
        ExpectedSession {
            path: "gemini-cli/session-2026-01-16T11-01-37b7abef.json",
            users: 4,
            replies: 7,
            calls: 5,
            prompts: 72_093,
            agents: &[],
            compactions: &[],
        },
    ];
    for held in &all {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/recordings").join(held.path);
        let scenario = load_path(&path).unwrap().scenarios.remove(0);
        let s = &scenario.session;
        let mut agents = Vec::new();
        for e in &s.entries {
            let agent = match e {
                Entry::User(m) => m.agent.clone(),
                Entry::Assistant(m) => m.agent.clone(),
                Entry::Tool(m) => m.agent.clone(),
                _ => None,
            };
            agents.extend(agent);
        }
        agents.sort();
        agents.dedup();
        let prompts = |e: &Entry| match e {
            Entry::Assistant(a) => a.usage.map_or(0, |u| u.prompt()),
            _ => 0,
        };
        let compactions: Vec<(u64, usize, Option<u64>)> = s
            .entries
            .iter()
            .filter_map(|e| match e {
                Entry::RecordedCompaction(c) => {
                    let summary = c.summary.as_ref().unwrap().len();
                    Some((c.pre_tokens.unwrap(), summary, c.usage.map(|u| u.prompt())))
                }
                _ => None,
            })
            .collect();
        let calls = |e: &Entry| if let Entry::Assistant(a) = e { a.all_calls().len() } else { 0 };
        assert_eq!(s.header.source.as_ref().unwrap().format, held.path.split_once('/').unwrap().0);
        assert_eq!(count(s, |e| usize::from(matches!(e, Entry::User(_)))), held.users);
        assert_eq!(count(s, |e| usize::from(matches!(e, Entry::Assistant(_)))), held.replies);
        assert_eq!(count(s, calls), held.calls);
        assert_eq!(count(s, |e| usize::from(matches!(e, Entry::Tool(_)))), held.calls);
        assert_eq!(s.entries.iter().map(prompts).sum::<u64>(), held.prompts, "{}", held.path);
        assert_eq!(
            (agents, compactions),
            (held.agents.iter().map(|a| a.to_string()).collect(), held.compactions.to_vec(),)
        );
        assert_eq!(jsonl::read(s.to_jsonl().unwrap().as_bytes(), "x").unwrap().session, *s);
    }
}

#[test]
fn subagents_in_files_beside_a_session_are_part_of_it() {
    let line = |kind: &str, id: &str, side: bool, second: u32, content: &str| {
        format!(
            r#"{{"type":"{kind}","uuid":"{id}","parentUuid":null,"sessionId":"s","isSidechain":{side},"timestamp":"2026-01-01T00:00:{second:02}.000Z","message":{{"id":"{id}","content":[{content}]}}}}"#
        )
    };
    let chained = |l: String, parent: &str| {
        l.replace("\"parentUuid\":null", &format!("\"parentUuid\":\"{parent}\""))
    };
    let text = |t: &str| format!(r#"{{"type":"text","text":"{t}"}}"#);
    let main = [
        line("user", "u", false, 0, &text("go")),
        chained(
            line(
                "assistant",
                "a",
                false,
                1,
                r#"{"type":"tool_use","id":"t","name":"Task","input":{"prompt":"look"}}"#,
            ),
            "u",
        ),
        chained(
            line(
                "user",
                "r",
                false,
                9,
                r#"{"type":"tool_result","tool_use_id":"t","content":"report"}"#,
            ),
            "a",
        ),
    ];
    let agent = |session: &str| {
        let first = line("user", "x1", true, 2, &text("look"))
            .replace("\"sessionId\":\"s\"", &format!("\"sessionId\":\"{session}\""));
        let lines = [first, chained(line("assistant", "x2", true, 8, &text("report")), "x1")];
        lines.map(|l| l.replace("\"isSidechain\"", "\"agentId\":\"x\",\"isSidechain\"")).join("\n")
    };
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("s.jsonl"), main.join("\n")).unwrap();
    std::fs::write(dir.path().join("agent-x.jsonl"), agent("s")).unwrap();
    std::fs::write(dir.path().join("agent-y.jsonl"), agent("another")).unwrap();
    let all = load_path(dir.path()).unwrap().scenarios;
    assert_eq!(
        all.len(),
        2,
        "the session with its subagent, and the one of another session by itself"
    );
    let session = all
        .iter()
        .find(|s| s.session.entries.iter().any(|e| matches!(e, Entry::User(u) if u.id == "u")))
        .unwrap();
    let order: Vec<(String, Option<&str>)> = session
        .session
        .entries
        .iter()
        .filter_map(|e| match e {
            Entry::User(u) => Some((u.id.clone(), u.agent.as_deref())),
            Entry::Assistant(a) => Some((a.id.clone(), a.agent.as_deref())),
            Entry::Tool(t) => Some((t.call_id.clone(), t.agent.as_deref())),
            _ => None,
        })
        .collect();
    let x = Some("x");
    assert_eq!(
        order,
        [("u", None), ("a", None), ("x1", x), ("x2", x), ("t", None)]
            .map(|(id, agent)| (id.to_string(), agent))
    );
    assert!(session.warnings[0].contains("agent-x.jsonl"), "{:?}", session.warnings);
    // Later versions store them in a folder named after the session.
    let folder = dir.path().join("s/subagents");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::rename(dir.path().join("agent-x.jsonl"), folder.join("agent-x.jsonl")).unwrap();
    let entries = |path: &Path| load_path(path).unwrap().scenarios[0].session.entries.len();
    assert_eq!(entries(&dir.path().join("s.jsonl")), 5);
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
    let _ = corpus::read(&path, &mut |place, one| {
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
