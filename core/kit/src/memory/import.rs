//! Imports: `@path` in a memory file loads the file at that path as well.

use std::path::{Component, Path, PathBuf};

/// Maximum import depth. An import of a top-level memory file has depth 1
/// (docs/sources/chat-history.md §5.1).
pub(super) const MAX_IMPORT_DEPTH: usize = 5;

/// Returns each distinct `@path` at the start of a word, outside code, in order.
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
                for word in outside_code(line).into_iter().flat_map(str::split_whitespace) {
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

/// Returns the parts of a line outside its code spans. A span starts and ends with the same number
/// of backticks (<https://spec.commonmark.org/0.31.2/#code-spans>). Unmatched backticks are text.
fn outside_code(line: &str) -> Vec<&str> {
    let marks = |from: usize| line[from..].bytes().take_while(|b| *b == b'`').count();
    let (mut out, mut begin, mut at) = (Vec::new(), 0, 0);
    while let Some(open) = line[at..].find('`').map(|i| at + i) {
        let n = marks(open);
        at = open + n;
        let mut look = at;
        while let Some(close) = line[look..].find('`').map(|i| look + i) {
            let m = marks(close);
            look = close + m;
            if m == n {
                out.push(&line[begin..open]);
                (begin, at) = (look, look);
                break;
            }
        }
    }
    out.push(&line[begin..]);
    out
}

/// Returns true if an import looks like a file. A bare word such as `@someone` is likely a person.
pub(super) fn looks_like_a_path(import: &str) -> bool {
    import.contains(['/', '.'])
}

/// Resolves a path relative to a folder, or to the home folder with `~/`.
pub(super) fn resolve(folder: &Path, home: &Path, path: &str) -> PathBuf {
    normalize(&path.strip_prefix("~/").map_or_else(|| folder.join(path), |rest| home.join(rest)))
}

/// Resolves `.` and `..`, so that each file has one path.
pub(super) fn normalize(path: &Path) -> PathBuf {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_inside_code_span_are_ignored() {
        let found = |text: &str| imports(text).join(" ");
        assert_eq!(found("@a.md `@b.md` @c.md"), "a.md c.md");
        assert_eq!(found("``@b.md`` and ``a ` @b.md`` then @c.md"), "c.md");
        assert_eq!(
            found("``` @b.md ``` @c.md"),
            "",
            "three backticks at the start of a line open a fence"
        );
        assert_eq!(found("see ``` @b.md ``` @c.md"), "c.md");
        assert_eq!(found("an ` open @a.md"), "a.md");
        assert_eq!(found("an `` open @a.md ` one @b.md"), "a.md b.md");
    }
}
