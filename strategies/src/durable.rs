//! Facts that outlast a session: extracted from a summary and merged into a memory file that later
//! sessions show.

use std::sync::Arc;

use ctxbench_core::block::{Block, BlockKind, Draft, MessageId, Role};
use ctxbench_kit::memory::{DurableFacts, merge};

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
/// change: a caller that wants the file shown in this session must do so. Returns the number of new
/// lines.
pub(crate) fn remember(
    context: &mut Vec<Arc<Block>>,
    files: &[&str],
    durable: &[DurableFacts],
) -> usize {
    let names = |b: &Arc<Block>, name: &str| {
        b.text.lines().next().and_then(|l| l.strip_prefix("# ")).map(str::trim) == Some(name)
    };
    let file = files.iter().find_map(|name| context.iter().position(|b| names(b, name)));
    let new = format!("# {}", files.first().copied().unwrap_or_default());
    let merged = merge(file.map_or(&new, |i| &context[i].text), durable);
    if merged.added > 0 {
        let text = merged.text.trim_end().to_string();
        match file {
            Some(i) => context[i] = context[i].map_draft(|d| d.text = text.into()),
            None => context.push(
                Draft::text(BlockKind::Context, Role::User, text)
                    .build(MessageId(u32::MAX), vec![]),
            ),
        }
    }
    merged.added
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let added = remember(&mut context, &files, &items(&["- keep SQLite", "- no cache"]));
        assert_eq!(added, 1);
        assert_eq!(&*context[0].text, "# docs/CLAUDE.md\n\nother", "the file of a folder");
        assert_eq!(
            &*context[1].text,
            "# CLAUDE.md\n\nRun `make ship`.\n\n## Decisions\n\n* Keep  SQLite\n- no cache"
        );
        assert_eq!(remember(&mut context, &files, &items(&["no cache"])), 0, "again");
        let mut none = Vec::new();
        remember(&mut none, &files, &items(&["no cache"]));
        assert_eq!(&*none[0].text, "# OPENOXIDE.md\n\n## Decisions\n- no cache");
    }
}
