//! The blocks that Claude Code restores after a compaction: files, skills, the plan, and the beginning of
//! its memory index (docs/sources/claude-code.md §1.4, §1.5).

use std::collections::HashSet;

use ctxbench_core::compaction::tools::{folded, is_read};
use ctxbench_core::history::History;
use ctxbench_core::prelude::*;
use ctxbench_kit::memory::{CutOff, IndexLimit, cut_index};

use super::rules::{ClaudeCodeSettings, Restored, restorable};

/// Returns the restored blocks, without those that are still in `tail`.
pub(crate) fn restored(
    set: &ClaudeCodeSettings,
    s: &mut Engine,
    tail: &[Arc<Block>],
) -> Vec<Arc<Block>> {
    let mut found = recent(set, &s.history, tail);
    found.extend(skills(set, &s.history));
    found.extend(set.restore_plan.then(|| plan(&s.history)).flatten());
    found.extend(fetched_tools(&s.history, tail));
    found
        .into_iter()
        .map(|(text, origin)| s.synthetic(BlockKind::File, Role::User, text, origin))
        .collect()
}

/// Returns the most recently used files within the budget, newest first. The contents are those of
/// the newest read, since a replay has no disk.
fn recent(
    set: &ClaudeCodeSettings,
    history: &History,
    tail: &[Arc<Block>],
) -> Vec<(String, Vec<Origin>)> {
    let standing = |t: &Arc<str>| {
        tail.iter()
            .any(|b| b.form == BlockForm::Verbatim && b.kind == BlockKind::Output && b.text == *t)
    };
    let read = |path: &str| {
        let reads = calls(history).filter(|(_, name, arguments)| {
            is_read(name) && file_path(name, arguments).as_deref() == Some(path)
        });
        reads.filter_map(|(id, ..)| history.result(id)).next()
    };
    let mut seen = HashSet::new();
    let files = calls(history).filter_map(|(_, name, arguments)| file_path(name, arguments));
    let files = files.filter(|path| seen.insert(path.clone())).take(set.restore_files as usize);
    let mut files: Vec<_> = files.map(|path| (read(&path), path)).collect();
    files.retain(|(read, _)| !read.is_some_and(|(_, t)| standing(t)));
    let sizes: Vec<Option<u64>> =
        files.iter().map(|(read, _)| read.map(|(_, t)| bytes_div4_up(t))).collect();
    let shown = restorable(&sizes, set.restore_file_tokens, set.restore_total_tokens);
    let mut out = Vec::new();
    for ((read, path), how) in files.into_iter().zip(shown) {
        out.push(match (how, read) {
            (Restored::Nothing, _) => continue,
            (Restored::Whole, Some((origin, t))) => {
                (format!("{path} as it was read before:\n{t}"), vec![origin])
            }
            _ => (format!("{path} was worked on before; read it again if it is needed."), vec![]),
        });
    }
    out
}

/// Returns the beginnings of the most recently invoked skills within the budget, newest first.
fn skills(set: &ClaudeCodeSettings, history: &History) -> Vec<(String, Vec<Origin>)> {
    let (mut left, mut seen, mut out) = (set.restore_skills_tokens, HashSet::new(), Vec::new());
    for (id, name, arguments) in calls(history) {
        if folded(name) != "skill" || !seen.insert(arguments) {
            continue;
        }
        let Some((origin, text)) = history.result(id) else { continue };
        let most = usize::try_from(set.restore_skill_tokens.min(left).saturating_mul(4))
            .unwrap_or(usize::MAX);
        let shown = &text[..text.floor_char_boundary(most)];
        if shown.is_empty() {
            break;
        }
        left -= bytes_div4_up(shown).min(left);
        out.push((format!("A skill in use ({arguments}):\n{shown}"), vec![origin]));
    }
    out
}

/// Returns the newest plan written in plan mode.
fn plan(history: &History) -> Option<(String, Vec<Origin>)> {
    let plan = calls(history).find(|(_, name, _)| folded(name) == "exitplanmode")?;
    let text = text_argument(plan.2, &["plan"])?;
    Some((format!("The plan that the user saw:\n{text}"), Vec::new()))
}

/// Returns the definitions of tools that were looked up and are not in `tail`, without duplicates
/// (since 2.1.76, docs/sources/claude-code.md §1.4).
fn fetched_tools(history: &History, tail: &[Arc<Block>]) -> Vec<(String, Vec<Origin>)> {
    let mut seen = HashSet::new();
    let looked_up = calls(history).filter(|(_, name, _)| folded(name) == "toolsearch");
    looked_up
        .filter_map(|(id, ..)| history.result(id))
        .filter(|(_, text)| seen.insert(&***text) && !tail.iter().any(|b| b.text == **text))
        .map(|(origin, text)| (format!("Tools that were looked up:\n{text}"), vec![origin]))
        .collect()
}

/// Returns id, name and arguments of every call, newest first.
fn calls(history: &History) -> impl Iterator<Item = (&Arc<str>, &Arc<str>, &Arc<str>)> {
    history.messages().iter().rev().flat_map(|m| m.parts.iter().rev()).filter_map(|p| match p {
        Part::Call(ToolCall { id, name, arguments }) => Some((id, name, arguments)),
        _ => None,
    })
}

/// Cuts the index of the automatic memory at the product's limit (docs/sources/claude-code.md
/// §1.5).
pub(crate) fn cut_indexes(s: &mut Engine) {
    for block in &mut s.fixed.context {
        let Some((path, body)) = block.text.strip_prefix("# ").and_then(|t| t.split_once('\n'))
        else {
            continue;
        };
        if path.trim().rsplit('/').next() != Some("MEMORY.md") {
            continue;
        }
        let body = body.trim_start_matches('\n');
        let (shown, rest) = cut_index(body, INDEX);
        if let Some(lost) = CutOff::measure(rest) {
            let text = format!(
                "# {path}\n\n{}\n[{} more lines of this file are not shown]",
                shown.trim_end(),
                lost.lines
            );
            *block = block.map_draft(|d| d.text = text.into());
        }
    }
}

/// Memory files that apply to their folder.
pub(super) const OF_FOLDERS: [&str; 2] = ["CLAUDE.md", "CLAUDE.local.md"];

/// Part of `MEMORY.md` that is shown: 200 lines or 25 KB (docs/sources/claude-code.md §1.5, grade
/// A), taken as 25 × 1,024 bytes.
const INDEX: IndexLimit = IndexLimit { lines: 200, bytes: Some(25 * 1024) };
