use ctxbench_core::content::ToolCall;
use ctxbench_session::{AssistantEntry, Effect, ToolEntry, UserEntry};
use serde_json::json;

use super::*;

fn user(id: &str) -> Entry {
    Entry::User(UserEntry { id: id.into(), text: Some(id.into()), ..Default::default() })
}

fn file(path: &str, text: &str) -> Entry {
    Entry::DiskFile { path: path.into(), text: text.into() }
}

fn call(id: &str, name: &str, arguments: serde_json::Value) -> Entry {
    let call =
        ToolCall { id: id.into(), name: name.into(), arguments: arguments.to_string().into() };
    Entry::Assistant(AssistantEntry {
        id: format!("a-{id}"),
        calls: vec![call],
        ..Default::default()
    })
}

fn result(id: &str, effects: Vec<Effect>) -> Entry {
    Entry::Tool(ToolEntry {
        call_id: id.into(),
        output: Some("done".into()),
        effects,
        ..Default::default()
    })
}

fn rewind(to: &str, mode: RewindMode) -> Entry {
    Entry::Rewind { to: to.into(), mode, instructions: None }
}

/// A session that edits one file by a tool and one by `sed`, removes one by the shell and creates one
/// by a tool.
fn session() -> Session {
    let effects = vec![
        Effect { path: "sed".into(), text: Some("after".into()), removed: false },
        Effect { path: "gone".into(), text: None, removed: true },
    ];
    let entries = vec![
        file("edited", "before"),
        file("sed", "before"),
        file("gone", "before"),
        user("u1"),
        Entry::Assistant(AssistantEntry {
            id: "a1".into(),
            text: Some("hello".into()),
            ..Default::default()
        }),
        user("u2"),
        call("c1", "edit_file", json!({ "path": "edited", "old": "before", "new": "after" })),
        result("c1", vec![]),
        call("c2", "bash", json!({ "command": "sed -i … sed; rm gone" })),
        result("c2", effects),
        call("c3", "write_file", json!({ "path": "made", "content": "new" })),
        result("c3", vec![]),
        rewind("a1", RewindMode::Both),
        rewind("a1", RewindMode::Conversation),
        rewind("a1", RewindMode::Code),
    ];
    Session { entries, ..Session::default() }
}

#[test]
fn edit_checkpoints_miss_shell_changes_and_shadow_git_restores_them() {
    let files = FileRewinds::replay(&session());
    let of = |way, at| files.restored(way, at);
    let first = of(SnapshotKind::EditTools, 0).unwrap();
    assert_eq!((first.tracked, first.refused, first.success.pct()), (2, 0, Some(50.0)));
    assert_eq!(first.success.changed, ["edited", "gone", "made", "sed"]);
    assert_eq!(first.success.missed, ["gone", "sed"]);
    assert_eq!(of(SnapshotKind::EditTools, 1), None, "it affects only the conversation");
    // The second restore misses the same files.
    assert_eq!(of(SnapshotKind::EditTools, 2).unwrap().success.missed, ["gone", "sed"]);
    let first = of(SnapshotKind::ShadowGit, 0).unwrap();
    assert_eq!((first.tracked, first.success.pct()), (4, Some(100.0)));
    assert_eq!(files, FileRewinds::replay(&session()), "figures are deterministic");
}

#[test]
fn session_without_disk_files_is_not_measured() {
    let mut s = session();
    s.entries.drain(..3);
    assert_eq!(FileRewinds::replay(&s), FileRewinds::default());
    let mut s = session();
    s.entries[0] = file("edited", "something else");
    let files = FileRewinds::replay(&s);
    assert_eq!(files.restored(SnapshotKind::EditTools, 0), None);
    assert!(
        files.remarks[0].contains("call c1: edited does not contain \"before\""),
        "{:?}",
        files.remarks
    );
}

/// Returns the records of the session's first two rewinds. The second one does not restore the
/// context.
fn reached(strategy: &str) -> Vec<RewindRecord> {
    let reached = [true, false].map(|equal| RewindRecord {
        status: RewindStatus::Done,
        context_before: Some(9),
        context_after: Some(4),
        context_then: Some(4),
        context_equal: Some(equal),
        ..RewindRecord::default()
    });
    let s = session();
    records(&s, &Spec::parse(strategy).unwrap(), &FileRewinds::replay(&s), &reached)
}

#[test]
fn records_contain_only_supported_parts() {
    let claude = reached("claude-code");
    assert_eq!(
        claude.iter().map(|r| r.context_equal).collect::<Vec<_>>(),
        [Some(true), Some(false)]
    );
    let code = claude[0].code.as_ref().unwrap();
    assert_eq!((code.way, code.changed, code.restored), (KeptBy::EditTools, 4, 2));
    assert_eq!((claude[1].mode, &claude[1].code), (RewindMode::Conversation, &None));
    let codex = reached("codex");
    assert_eq!(codex[0].code, None);
    assert!(codex[0].context_after.is_some() && codex[0].context_after < codex[0].context_before);
    let aider = reached("aider");
    assert_eq!(aider.len(), 2);
    assert!(aider.iter().all(|r| r.status == RewindStatus::Unsupported
        && r.context_before.is_none()
        && r.code.is_none()));
    assert!(aider.iter().all(|r| r.context_equal.is_none()));
}
