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
                for word in prose(line).into_iter().flat_map(str::split_whitespace) {
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

/// The parts of a line between its code spans. A span ends with as many marks as it begins with
/// (<https://spec.commonmark.org/0.31.2/#code-spans>); marks without such an end are characters like
/// others.
fn prose(line: &str) -> Vec<&str> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_of_any_number_of_marks_imports_nothing() {
        let of = |text: &str| imports(text).join(" ");
        assert_eq!(of("@a.md `@b.md` @c.md"), "a.md c.md");
        assert_eq!(of("``@b.md`` and ``a ` @b.md`` then @c.md"), "c.md");
        assert_eq!(of("``` @b.md ``` @c.md"), "", "a line that begins with three is a fence");
        assert_eq!(of("see ``` @b.md ``` @c.md"), "c.md");
        assert_eq!(of("an ` open @a.md"), "a.md");
        assert_eq!(of("an `` open @a.md ` one @b.md"), "a.md b.md");
    }
}
