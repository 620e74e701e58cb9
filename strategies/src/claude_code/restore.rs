//! What Claude Code shows again after a compaction: files, skills, the plan; and rules that hold
//! for some paths only (docs/sources/claude-code.md §1.4).

use std::collections::HashSet;
use std::sync::Arc;

use ctxbench_core::block::{Block, BlockKind, Form, Origin, Role};
use ctxbench_core::compaction::{file_path, recent_files, text_argument};
use ctxbench_core::content::{Part, ToolCall};
use ctxbench_core::engine::Engine;
use ctxbench_core::history::History;
use ctxbench_core::tokens::bytes_div4_up;
use ctxbench_kit::memory::{Scope, cut_index, front_matter};

use super::rules::{Restored, restorable};
use super::settings::ClaudeCodeSettings;
use ctxbench_core::compaction::tools::folded;

/// How much comes back, tokens.
pub(crate) struct Restore {
    files: usize,
    file_tokens: u64,
    files_tokens: u64,
    skill_tokens: u64,
    skills_tokens: u64,
    plan: bool,
}

impl Restore {
    pub fn of(s: &ClaudeCodeSettings) -> Self {
        Restore {
            files: s.restore_files as usize,
            file_tokens: s.restore_file_tokens,
            files_tokens: s.restore_total_tokens,
            skill_tokens: s.restore_skill_tokens,
            skills_tokens: s.restore_skills_tokens,
            plan: s.restore_plan,
        }
    }

    /// The blocks that come back beside what is still shown in `tail`.
    pub fn blocks(&self, s: &mut Engine, tail: &[Arc<Block>]) -> Vec<Arc<Block>> {
        let mut found = self.recent(&s.history, tail);
        found.extend(self.skills(&s.history));
        found.extend(self.plan.then(|| plan(&s.history)).flatten());
        found
            .into_iter()
            .map(|(text, origin)| s.synthetic(BlockKind::File, Role::User, text, origin))
            .collect()
    }

    /// The files worked on last, newest first, as far as the budget goes.
    fn recent(&self, history: &History, tail: &[Arc<Block>]) -> Vec<(String, Vec<Origin>)> {
        let standing = |t: &Arc<str>| {
            tail.iter()
                .any(|b| b.form == Form::Verbatim && b.kind == BlockKind::Output && b.text == *t)
        };
        let mut files = recent_files(history, self.files);
        files.retain(|f| !f.text.as_ref().is_some_and(standing));
        let sizes: Vec<Option<u64>> =
            files.iter().map(|f| f.text.as_ref().map(|t| bytes_div4_up(t))).collect();
        let shown = restorable(&sizes, self.file_tokens, self.files_tokens);
        let mut out = Vec::new();
        for (f, how) in files.iter().zip(shown) {
            out.push(match (how, &f.text) {
                (Restored::Nothing, _) => continue,
                (Restored::Whole, Some(t)) => {
                    (format!("{} as it was read before:\n{t}", f.path), origin_of(history, t))
                }
                _ => (
                    format!("{} was worked on before; read it again if it is needed.", f.path),
                    Vec::new(),
                ),
            });
        }
        out
    }

    /// The skills invoked last, newest first, the beginning of each, as far as the budget goes.
    fn skills(&self, history: &History) -> Vec<(String, Vec<Origin>)> {
        let (mut left, mut seen, mut out) = (self.skills_tokens, HashSet::new(), Vec::new());
        for (id, name, arguments) in calls(history) {
            if folded(name) != "skill" || !seen.insert(arguments) {
                continue;
            }
            let Some(text) = history.result(id) else { continue };
            let most = usize::try_from(self.skill_tokens.min(left).saturating_mul(4))
                .unwrap_or(usize::MAX);
            let shown = &text[..text.floor_char_boundary(most)];
            if shown.is_empty() {
                break;
            }
            left -= bytes_div4_up(shown).min(left);
            out.push((format!("A skill in use ({arguments}):\n{shown}"), origin_of(history, text)));
        }
        out
    }
}

/// The newest plan that was written in plan mode.
fn plan(history: &History) -> Option<(String, Vec<Origin>)> {
    let plan = calls(history).find(|(_, name, _)| folded(name) == "exitplanmode")?;
    let text = text_argument(plan.2, &["plan"])?;
    Some((format!("The plan that the user saw:\n{text}"), Vec::new()))
}

/// Id, name and arguments of every call, newest first.
fn calls(history: &History) -> impl Iterator<Item = (&Arc<str>, &Arc<str>, &Arc<str>)> {
    history.messages().iter().rev().flat_map(|m| m.parts.iter().rev()).filter_map(|p| match p {
        Part::Call(ToolCall { id, name, arguments }) => Some((id, name, arguments)),
        _ => None,
    })
}

/// The result that a restored text comes from.
fn origin_of(history: &History, text: &Arc<str>) -> Vec<Origin> {
    for m in history.messages().iter().rev() {
        for (i, p) in m.parts.iter().enumerate() {
            if matches!(p, Part::Result { output, .. } if Arc::ptr_eq(output, text)) {
                return vec![Origin { message: m.id, part: i as u32 }];
            }
        }
    }
    Vec::new()
}

/// Memory files that are shown only once a file that they hold for was read: rules with `paths:`,
/// and CLAUDE.md of a folder.
#[derive(Default)]
pub(crate) struct Scoped(Vec<(Scope, Arc<Block>)>);

impl Scoped {
    /// Takes the files with a scope out of the view at the beginning of a session.
    pub fn set_aside(s: &mut Engine) -> Self {
        let scoped: Vec<_> =
            s.fixed.context.iter().filter_map(|b| Some((scope(&b.text)?, b.clone()))).collect();
        let out = Scoped(scoped);
        let shown = s.context.blocks().iter().filter(|b| !out.holds(b)).cloned().collect();
        // Memory files hold no calls.
        let _ = s.context.set(shown);
        out
    }

    /// Whether a block is one of these files.
    pub fn holds(&self, block: &Arc<Block>) -> bool {
        self.0.iter().any(|(_, b)| Arc::ptr_eq(b, block))
    }

    /// Shows the files whose scope a call in the view touches.
    pub fn show(&self, s: &mut Engine) {
        for (scope, file) in &self.0 {
            let blocks = s.context.blocks();
            let there = blocks.iter().any(|b| Arc::ptr_eq(b, file));
            let path_of = |b: &Arc<Block>| {
                (b.kind == BlockKind::Call)
                    .then(|| file_path(&b.call.as_ref()?.name, &b.text))
                    .flatten()
            };
            let touched =
                || blocks.iter().filter_map(path_of).any(|path| scope.holds_somewhere(&path));
            if !there && touched() {
                s.context.push(file.clone());
            }
        }
    }
}

/// Cuts the index of the automatic memory where the product does (docs/sources/claude-code.md
/// §1.5); what lies behind is not in the context.
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
        if let (shown, Some(lost)) = cut_index(body) {
            let text = format!(
                "# {path}\n\n{}\n[{} more lines of this file are not shown]",
                shown.trim_end(),
                lost.lines
            );
            *block = block.redraft(|d| d.text = text.into());
        }
    }
}

/// The files that a memory file holds for, `None` = all. Its text begins with its path as a
/// heading.
fn scope(text: &str) -> Option<Scope> {
    let (path, body) = text.strip_prefix("# ")?.split_once('\n')?;
    let path = path.trim();
    if path.contains(".claude/rules/") {
        let (_, patterns) = front_matter(body.trim_start());
        // A rule whose patterns cannot be understood holds for all files.
        return Scope::new(patterns).ok().filter(|s| !s.patterns().is_empty());
    }
    let folder = path.strip_suffix("/CLAUDE.md")?;
    let nested = !folder.starts_with(['/', '~', '.']) && !folder.contains(':');
    nested.then(|| Scope::new([format!("{}/**", folder.replace('[', "[[]"))]).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_read_from_path_and_front_matter() {
        let patterns = |text: &str| scope(text).map(|s| s.patterns().to_vec());
        assert_eq!(patterns("# CLAUDE.md\n\nx"), None);
        assert_eq!(patterns("# /home/me/work/CLAUDE.md\n\nx"), None);
        assert_eq!(
            patterns("# src/api/CLAUDE.md\n\nx").as_deref(),
            Some(&["src/api/**".to_string()][..])
        );
        assert_eq!(patterns("# .claude/rules/all.md\n\nx"), None);
        let listed = "# .claude/rules/ts.md\n\n---\npaths:\n  - \"**/*.ts\"\n  - lib/*.js\n---\nx";
        assert_eq!(patterns(listed), Some(vec!["**/*.ts".into(), "lib/*.js".into()]));
        assert_eq!(
            patterns("# .claude/rules/ts.md\n\n---\npaths: src/**\n---\nx"),
            Some(vec!["src/**".into()])
        );
    }

    #[test]
    fn a_scope_is_tried_on_paths_as_tools_name_them() {
        let holds = |glob: &str, path: &str| Scope::new([glob]).unwrap().holds_somewhere(path);
        assert!(holds("src/api/**", "./src/api/v1/a.rs") && !holds("src/api/**", "src/apix/a.rs"));
        assert!(
            holds("**/*.ts", "a.ts") && holds("**/*.ts", "x/y/a.ts") && !holds("**/*.ts", "a.tsx")
        );
        assert!(
            holds("src/*.rs", "/home/me/work/src/a.rs") && !holds("src/*.rs", "other/src/a.rs")
        );
        assert!(scope("# app/[id]/CLAUDE.md\n\nx").unwrap().holds_somewhere("app/[id]/page.tsx"));
    }
}
