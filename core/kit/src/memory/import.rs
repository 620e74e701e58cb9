//! `@path` in a memory file: the file it names is shown too.

use std::path::{Component, Path, PathBuf};

/// Files are followed this far: an import of a memory file is at depth 1
/// (docs/sources/chat-history.md §5.1).
pub(super) const MOST_DEPTH: usize = 5;

/// What follows each `@` that begins a word, outside of code, in order and each once.
pub(super) fn imports(text: &str) -> Vec<&str> {
    let mut out: Vec<&str> = Vec::new();
    let mut fence: Option<&str> = None;
    for line in text.lines() {
        let start = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|m| start.starts_with(m));
        match (fence, mark) {
            (None, Some(m)) => fence = Some(m),
            (Some(open), Some(m)) if open == m => fence = None,
            (None, None) => {
                for word in prose(line).flat_map(str::split_whitespace) {
                    let path = word.strip_prefix('@').map(|p| {
                        p.trim_end_matches(['.', ',', ';', ':', ')', '!', '?', '"', '\''])
                    });
                    out.extend(path.filter(|p| !p.is_empty() && !out.contains(p)));
                }
            }
            _ => {}
        }
    }
    out
}

/// The parts of a line between its code spans. A mark without a second one is a character like
/// others.
fn prose(line: &str) -> impl Iterator<Item = &str> {
    let marks = line.matches('`').count() / 2 * 2;
    let closed = line
        .match_indices('`')
        .nth(marks.saturating_sub(1))
        .filter(|_| marks > 0)
        .map_or(0, |(i, _)| i + 1);
    let (spans, rest) = line.split_at(closed);
    spans.split('`').step_by(2).chain(std::iter::once(rest))
}

/// A bare word such as `@someone` is more likely a name than a file.
pub(super) fn looks_like_a_path(import: &str) -> bool {
    import.contains(['/', '.'])
}

/// Where an import leads: beside the importing file, or in the home folder.
pub(super) fn target(by: &Path, home: &Path, import: &str) -> PathBuf {
    match import.strip_prefix("~/") {
        Some(rest) => home.join(rest),
        None => tidy(&by.parent().unwrap_or(Path::new("")).join(import)),
    }
}

/// Without `.` and with `..` carried out, so that one file has one name.
pub(super) fn tidy(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir
                if matches!(out.components().next_back(), Some(Component::Normal(_))) =>
            {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}
