//! Claude Code's transcript (docs/sources/claude-code.md §1.6): JSONL with one line per content
//! block, each with the id of its parent line (`parentUuid`). A registry, `~/.claude.json`,
//! contains the last session of each folder (docs/sources/opencode-vs-claude-code.md §3).
//!
//! A compaction is a `compact_boundary` line without a parent, followed by a user line with the
//! summary. `preservedMessages` lists the lines that it keeps. Reading follows the parents from the
//! last line back to the boundary. A crash between the two lines leaves a boundary without a
//! summary. Such a boundary is ignored: reading continues at its `logicalParentUuid` and adds a
//! note (the product's behaviour in this case is not known). No source describes a mark for results
//! that were only cleared, so none is written, and these results are restored in full.

use std::collections::HashMap;
use std::path::Path;

use ctxbench_core::prelude::*;
use ctxbench_formats::claude_code::{block, part};
use ctxbench_util::plural::pluralize;
use serde_json::{Value, json};

use crate::persist::jsonl::{Cursor, LineFormat, LineSession, ShownMessage};
use crate::persist::{
    BEGIN, CWD, PersistError, PersistFormat, Result, SESSION, StoredMessage, jsonl, name_results,
    pruned,
};

pub(crate) const FORMAT: PersistFormat = PersistFormat {
    name: "claude-code-jsonl",
    open: |dir, seed| {
        let session = LineSession::open(&LINES, dir, seed)?;
        register(&dir.join(".claude.json"))?;
        Ok(session)
    },
};

static LINES: LineFormat = LineFormat {
    // Every character of the folder's path except letters and digits becomes a hyphen.
    path: ".claude/projects/-work-project/00000000-0000-4000-8000-000000000001.jsonl",
    header: || None,
    id: |line| line["uuid"].as_str(),
    message: |at, said| message(at, said, None),
    view,
    shown: |lines| {
        let (shown, unfinished) = chain(lines);
        let passed = pluralize(unfinished, "compaction");
        let note = (unfinished > 0).then(|| format!("passed over {passed} with no summary"));
        (shown, note.into_iter().collect())
    },
    log: |lines| messages(lines.iter()).into_iter().map(|(said, _)| said).collect(),
};

/// Gives a line its id, parent and the properties of the session.
fn placed(at: &mut Cursor, mut line: Value) -> Value {
    at.lines += 1;
    let (n, seed) = (at.lines & 0xffff_ffff, at.seed & 0xffff_ffff_ffff);
    let id = format!("{n:08x}-0000-4000-8000-{seed:012x}");
    let parent = at.last.replace(id.clone());
    if line.get("parentUuid").is_none() {
        line["parentUuid"] = parent.into();
    }
    for (key, value) in [
        ("uuid", json!(id)),
        ("sessionId", SESSION.into()),
        ("cwd", CWD.into()),
        ("version", "2.1.0".into()),
        ("isSidechain", false.into()),
        ("timestamp", BEGIN.into()),
    ] {
        line[key] = value;
    }
    line
}

fn message(at: &mut Cursor, said: &StoredMessage, flag: Option<&str>) -> Vec<Value> {
    let flagged = |mut line: Value| {
        if let Some(flag) = flag {
            line[flag] = true.into();
            line["isVisibleInTranscriptOnly"] = (flag == "isCompactSummary").into();
        }
        line
    };
    let content = said.parts.iter().filter_map(block);
    if said.role != Role::Assistant {
        let message = json!({"role": "user", "content": content.collect::<Vec<_>>()});
        return vec![placed(at, flagged(json!({"type": "user", "message": message})))];
    }
    let id = format!("msg_{:x}_{}", at.seed, at.lines);
    let line = |content: Value| {
        let message = json!({"id": id, "role": "assistant", "content": [content], "usage": {}});
        placed(at, flagged(json!({"type": "assistant", "requestId": id, "message": message})))
    };
    content.map(line).collect()
}

/// Writes a compaction. Other changes of the view are not recorded.
fn view(at: &mut Cursor, view: &[StoredMessage]) -> Vec<Value> {
    let Some(summary) = view
        .iter()
        .position(StoredMessage::is_summary)
        .filter(|_| pruned(&at.messages(), view).is_none())
    else {
        return Vec::new();
    };
    // Unchanged messages after the summary are listed, and all others are written again.
    let tail = &view[summary + 1..];
    let known = |s: &StoredMessage| at.shown.iter().rev().find(|(w, _)| w == s);
    let kept: Vec<&[String]> = tail.iter().map_while(known).map(|(_, ids)| &ids[..]).collect();
    let named = kept.len();
    let preserved = (named > 0).then(|| json!({"anchorUuid": null, "uuids": kept.concat()}));
    let boundary = json!({
        "type": "system", "subtype": "compact_boundary", "parentUuid": null,
        "logicalParentUuid": at.last, "content": "Conversation compacted",
        "compactMetadata": {"trigger": "auto", "preservedMessages": preserved},
    });
    let mut out = vec![placed(at, boundary)];
    let flags = view
        .iter()
        .enumerate()
        .map(|(i, s)| (s, if i == summary { "isCompactSummary" } else { "isMeta" }));
    for (said, flag) in flags.take(summary + 1).chain(tail[named..].iter().map(|s| (s, "isMeta"))) {
        out.extend(message(at, said, Some(flag)));
    }
    out
}

/// Records the session in the registry by renaming a new file into place. Of two programs the later
/// one wins, and no reader sees a partial file. An unreadable registry is replaced, because only
/// the transcripts matter.
fn register(path: &Path) -> Result<()> {
    let mut all: Value = serde_json::from_str(&jsonl::text(path)?).unwrap_or_default();
    let folder = jsonl::field(jsonl::field(&mut all, "projects"), CWD);
    *jsonl::field(folder, "lastSessionId") = SESSION.into();
    let fresh = path.with_extension(format!("json.{}", std::process::id()));
    std::fs::write(&fresh, all.to_string()).map_err(PersistError::io(&fresh, "write it"))?;
    std::fs::rename(&fresh, path).map_err(PersistError::io(path, "move it into place"))
}

/// Follows the chain of parents from the last line back to the newest boundary with a summary, plus
/// the lines preserved after it. Also returns the number of boundaries skipped. A parent lost in a
/// crash is replaced by the line before it.
fn chain(lines: &[Value]) -> (Vec<ShownMessage>, usize) {
    let place: HashMap<&str, usize> =
        lines.iter().enumerate().filter_map(|(i, l)| Some((l["uuid"].as_str()?, i))).collect();
    let mut out = Vec::new();
    let mut next = lines.iter().rposition(|l| l["uuid"].is_string());
    let mut preserved = Vec::new();
    let (mut summarised, mut unfinished) = (false, 0);
    while let Some(i) = next {
        let line = &lines[i];
        let boundary = line["subtype"] == "compact_boundary";
        if boundary && summarised {
            let uuids = line["compactMetadata"]["preservedMessages"]["uuids"].as_array();
            preserved = uuids
                .into_iter()
                .flatten()
                .filter_map(|u| place.get(u.as_str()?))
                .map(|&i| &lines[i])
                .collect();
            break;
        }
        unfinished += usize::from(boundary);
        summarised |= line["isCompactSummary"] == true;
        out.push(line);
        let parent = line[if boundary { "logicalParentUuid" } else { "parentUuid" }].as_str();
        next = parent.and_then(|p| place.get(p).copied().or(i.checked_sub(1)));
        // A chain that does not lead back would never end.
        next = next.filter(|n| *n < i);
    }
    out.reverse();
    let anchor = out.iter().position(|l| l["isCompactSummary"] == true).map_or(0, |i| i + 1);
    out.splice(anchor..anchor, preserved);
    (messages(out.into_iter()), unfinished)
}

/// Converts lines to messages. Lines of one response form one message.
fn messages<'a>(lines: impl Iterator<Item = &'a Value>) -> Vec<ShownMessage> {
    let mut out: Vec<ShownMessage> = Vec::new();
    let mut response: Option<&str> = None;
    for line in lines {
        let kind = line["type"].as_str().unwrap_or_default();
        if !matches!(kind, "user" | "assistant") {
            continue;
        }
        let summary = line["isCompactSummary"] == true;
        let parts: Vec<Part> = line["message"]["content"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|b| parse(b, summary))
            .collect();
        let id = line["uuid"].as_str().unwrap_or_default().to_string();
        let own = line["message"]["id"].as_str();
        match out.last_mut() {
            Some((said, ids)) if own.is_some() && own == response => {
                said.parts.extend(parts);
                ids.push(id);
            }
            _ => {
                let result = parts.iter().any(|p| matches!(p, Part::Result { .. }));
                let role = match kind {
                    "assistant" => Role::Assistant,
                    _ if result => Role::Tool,
                    _ => Role::User,
                };
                out.push((StoredMessage { role, parts }, vec![id]));
            }
        }
        response = own;
    }
    name_results(out.iter_mut().map(|(said, _)| said));
    out
}

fn parse(b: &Value, summary: bool) -> Option<Part> {
    let text = |key: &str| -> std::sync::Arc<str> { b[key].as_str().unwrap_or_default().into() };
    Some(match (b["type"].as_str()?, part(b.as_object()?)) {
        (_, Some(Part::Text(said))) if summary => Part::Summary(said),
        (_, Some(part)) => part,
        ("tool_result", None) => Part::Result {
            id: text("tool_use_id"),
            name: "".into(),
            output: text("content"),
            is_error: b["is_error"].as_bool().unwrap_or_default(),
        },
        ("compaction", None) => Part::Compaction(Some(text("content"))),
        _ => return None,
    })
}
