//! Memory files that appear only once a matching file was touched: rules with `paths:`, and
//! instructions of a folder. Facts that outlast a session, extracted from a summary and merged into a
//! memory file that later sessions show.

use ctxbench_core::prelude::*;
use ctxbench_kit::memory::{DurableFacts, PathScope, front_matter, merge};

#[derive(Default)]
pub(crate) struct Scoped(Vec<(PathScope, Arc<Block>)>);

impl Scoped {
    /// Takes the scoped files out of the view when a session starts. `of_folders` are the names of
    /// files that apply to their folder.
    pub fn set_aside(s: &mut Engine, of_folders: &[&str]) -> Self {
        let scoped = |b: &Arc<Block>| Some((scope(&b.text, of_folders)?, b.clone()));
        let out = Scoped(s.fixed.context.iter().filter_map(scoped).collect());
        let shown = s.context.blocks().iter().filter(|b| !out.holds(b)).cloned().collect();
        // Memory files contain no calls.
        let _ = s.set_view(shown);
        out
    }

    /// Returns true if a block is one of these files.
    pub fn holds(&self, block: &Arc<Block>) -> bool {
        self.0.iter().any(|(_, b)| Arc::ptr_eq(b, block))
    }

    /// Shows the files with a scope that a call in the view touches.
    pub fn add_to_view(&self, s: &mut Engine) {
        for (scope, file) in &self.0 {
            let blocks = s.context.blocks();
            if !blocks.iter().any(|b| Arc::ptr_eq(b, file)) && touched(scope, blocks) {
                s.show(file.clone());
            }
        }
    }

    /// Shows the files in scope, and hides those that no call in the view touches any more.
    pub fn follow(&self, s: &mut Engine) {
        let blocks = s.context.blocks();
        let idle = |b: &Arc<Block>| {
            self.0.iter().any(|(scope, f)| Arc::ptr_eq(f, b) && !touched(scope, blocks))
        };
        let kept: Vec<_> = blocks.iter().filter(|b| !idle(b)).cloned().collect();
        if kept.len() < blocks.len() {
            let _ = s.set_view(kept);
        }
        self.add_to_view(s);
    }
}

fn touched(scope: &PathScope, blocks: &[Arc<Block>]) -> bool {
    let path_of = |b: &Arc<Block>| {
        (b.kind == BlockKind::Call).then(|| file_path(&b.call.as_ref()?.name, &b.text)).flatten()
    };
    blocks.iter().filter_map(path_of).any(|path| scope.matches_any_suffix(&path))
}

/// Returns the files to which a memory file applies; `None` = all. Its text begins with its path as
/// a heading.
fn scope(text: &str, of_folders: &[&str]) -> Option<PathScope> {
    let (path, body) = text.strip_prefix("# ")?.split_once('\n')?;
    let path = path.trim();
    if is_rule(path) {
        let (_, patterns) = front_matter(body.trim_start());
        // A rule with invalid patterns applies to all files.
        return PathScope::new(patterns).ok().filter(|s| !s.patterns().is_empty());
    }
    let (folder, name) = path.rsplit_once('/')?;
    let nested = !folder.starts_with(['/', '~', '.']) && !folder.contains(':');
    // The index of an automatic memory applies to the whole project.
    let index = name == "MEMORY.md" && folder.rsplit('/').next() == Some("memory");
    (nested && !index && of_folders.contains(&name))
        .then(|| PathScope::for_folder(folder))
        .flatten()
}

/// Returns true if a path contains `.PRODUCT/rules/`.
fn is_rule(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    parts.windows(2).any(|w| w[0].starts_with('.') && w[0].len() > 2 && w[1] == "rules")
}

/// Returns the sections of a summary that have one of these headings, in the summary's order. A
/// heading line begins with `#`; its level, case and a trailing `:` are ignored. Empty sections are
/// omitted.
pub(crate) fn sections(summary: &str, headings: &[&str]) -> Vec<DurableFacts> {
    let mut out: Vec<DurableFacts> = Vec::new();
    let mut open = false;
    for line in summary.lines().map(str::trim).filter(|l| !l.is_empty()) {
        if let Some(name) = line.strip_prefix('#') {
            let name = name.trim_start_matches('#').trim().trim_end_matches(':');
            let wanted = headings.iter().find(|h| h.eq_ignore_ascii_case(name));
            open = wanted.is_some();
            out.extend(wanted.map(|h| DurableFacts { heading: h.to_string(), items: Vec::new() }));
        } else if let Some(section) = out.last_mut().filter(|_| open && !says_nothing(line)) {
            section.items.push(line.to_string());
        }
    }
    out.retain(|section| !section.items.is_empty());
    out
}

/// Returns true if a line is only a filler of an empty section.
fn says_nothing(line: &str) -> bool {
    let words = line.trim_matches(|c: char| !c.is_alphanumeric() && c != '/').to_lowercase();
    ["", "none", "nothing", "n/a", "empty"].contains(&words.as_str())
}

/// Merges lines into the first of these memory files among the fixed blocks, or creates the first
/// name. A session has a file as a heading with its path, followed by the text. The view does not
/// change: a caller that wants the file shown in this session must do so.
pub(crate) fn remember(context: &mut Vec<Arc<Block>>, files: &[&str], durable: &[DurableFacts]) {
    let names = |b: &Arc<Block>, name: &str| {
        b.text.lines().next().and_then(|l| l.strip_prefix("# ")).map(str::trim) == Some(name)
    };
    let file = files.iter().find_map(|name| context.iter().position(|b| names(b, name)));
    let new = format!("# {}", files.first().copied().unwrap_or_default());
    let Some(text) = merge(file.map_or(&new, |i| &context[i].text), durable) else { return };
    let text = text.trim_end().to_string();
    match file {
        Some(i) => context[i] = context[i].map_draft(|d| d.text = text.into()),
        None => context.push(Draft::text(BlockKind::Context, Role::User, text).ephemeral()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(text: &str) -> Option<PathScope> {
        super::scope(text, &["CLAUDE.md", "MEMORY.md"])
    }

    #[test]
    fn scopes_are_read_from_path_and_front_matter() {
        let listed = "---\npaths:\n  - \"**/*.ts\"\n  - lib/*.js\n---\nx";
        for (path, text, patterns) in [
            ("CLAUDE.md", "x", None),
            ("/home/me/work/CLAUDE.md", "x", None),
            ("../CLAUDE.md", "x", None),
            ("src/api/README.md", "x", None),
            ("notes/memory/MEMORY.md", "x", None),
            ("src/api/CLAUDE.md", "x", Some(&["src/api/**"][..])),
            (".claude/rules/all.md", "x", None),
            (".claude/rules/ts.md", listed, Some(&["**/*.ts", "lib/*.js"])),
            ("../.openoxide/rules/ts.md", "---\npaths: src/**\n---\nx", Some(&["src/**"])),
        ] {
            let found = scope(&format!("# {path}\n\n{text}")).map(|s| s.patterns().to_vec());
            let expected = patterns.map(|p| p.iter().map(|p| p.to_string()).collect());
            assert_eq!(found, expected, "{path}");
        }
    }

    #[test]
    fn a_scope_is_tried_on_paths_as_tools_name_them() {
        for (glob, path, holds) in [
            ("src/api/**", "./src/api/v1/a.rs", true),
            ("src/api/**", "src/apix/a.rs", false),
            ("**/*.ts", "a.ts", true),
            ("**/*.ts", "x/y/a.ts", true),
            ("**/*.ts", "a.tsx", false),
            ("src/*.rs", "/home/me/work/src/a.rs", true),
            ("src/*.rs", "other/src/a.rs", false),
        ] {
            let scope = PathScope::new([glob]).unwrap();
            assert_eq!(scope.matches_any_suffix(path), holds, "{glob} {path}");
        }
        let scope = scope("# app/[id]/CLAUDE.md\n\nx").unwrap();
        assert!(scope.matches_any_suffix("app/[id]/page.tsx"));
    }

    #[test]
    fn sections_are_found_by_their_names() {
        let summary = "## Goal\n- ship it\n\n## Decisions and why:\n- keep SQLite\n- no cache\n\
            ## Next steps\n- (none)\n\n## Exact values\n- 7443\n";
        let found = sections(summary, &["Next steps", "Decisions and why"]);
        let expected = DurableFacts {
            heading: "Decisions and why".into(),
            items: vec!["- keep SQLite".into(), "- no cache".into()],
        };
        assert_eq!(found, [expected], "an empty section is none");
        assert_eq!(sections("no headings at all", &["Goal"]), []);
    }

    #[test]
    fn what_a_person_wrote_stays_and_nothing_is_written_twice() {
        let block = |text: &str| {
            Draft::text(BlockKind::Context, Role::User, text).build(MessageId(0), vec![])
        };
        let mut context = vec![
            block("# docs/CLAUDE.md\n\nother"),
            block("# CLAUDE.md\n\nRun `make ship`.\n\n## Decisions\n\n* Keep  SQLite\n"),
        ];
        let items = |items: &[&str]| {
            let items = items.iter().map(|i| i.to_string()).collect();
            vec![DurableFacts { heading: "Decisions".into(), items }]
        };
        let files = ["OPENOXIDE.md", "CLAUDE.md"];
        remember(&mut context, &files, &items(&["- keep SQLite", "- no cache"]));
        assert_eq!(&*context[0].text, "# docs/CLAUDE.md\n\nother", "the file of a folder");
        assert_eq!(
            &*context[1].text,
            "# CLAUDE.md\n\nRun `make ship`.\n\n## Decisions\n\n* Keep  SQLite\n- no cache"
        );
        let before = context.clone();
        remember(&mut context, &files, &items(&["no cache"]));
        assert_eq!(context[1].text, before[1].text, "again");
        let mut none = Vec::new();
        remember(&mut none, &files, &items(&["no cache"]));
        assert_eq!(&*none[0].text, "# OPENOXIDE.md\n\n## Decisions\n- no cache");
    }
}
