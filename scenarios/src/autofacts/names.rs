//! Classification of names by their context: names of the project, or names of a language,
//! framework or product that the model knows.

use ctxbench_core::compaction::tools::without_line_number;

/// Keywords before a defined name.
const DEFINES: &str = "async class const def defmacro defmodule defp enum fn func function impl interface let mod \
    module object private protected public record static struct trait type val var";

/// Returns whether the word at `start..end` belongs to the project, and is not only a call or
/// import of something foreign. `setInterval(…)` and `import { existsSync } from 'fs'` are foreign;
/// `function load(…)`, `load: true` and `import { load } from './store'` are not.
pub(super) fn is_own(text: &str, start: usize, end: usize) -> bool {
    if follows_definer(near_before(text, start)) {
        return true;
    }
    let behind = &text[end..];
    let behind = behind.strip_prefix(['?', '!']).unwrap_or(behind);
    !behind.starts_with('(') && !line_at(text, start).is_some_and(is_foreign_import)
}

/// Returns whether the word at `start..end` is defined there: `class Store`, `defmodule App.Store`,
/// `Store = …`, `Store: { … }`.
pub(super) fn is_defined(text: &str, start: usize, end: usize) -> bool {
    let is_qualifier = |c: char| c.is_alphanumeric() || "_.:".contains(c);
    if follows_definer(near_before(text, start).trim_end_matches(is_qualifier)) {
        return true;
    }
    let behind = text[end..].trim_start_matches(' ');
    match behind.strip_prefix('=') {
        Some(rest) => !rest.starts_with('='),
        None => behind
            .strip_prefix(':')
            .is_some_and(|r| r.trim_start_matches(' ').starts_with(['{', '(', '['])),
    }
}

/// Returns whether the word at `start` is a variable or member that is declared or set there.
pub(super) fn is_variable(text: &str, start: usize, word: &str) -> bool {
    let is_member = word.starts_with("this.") || word.starts_with("self.");
    let behind = &text[start + word.len()..];
    ["const ", "let ", "mut ", "val ", "var "].iter().any(|d| text[..start].ends_with(d))
        || is_member && behind.starts_with(" = ")
        || behind.starts_with(" := ")
}

/// Returns whether the word at `start` is in a line of comment, which is prose.
pub(super) fn is_in_comment(text: &str, start: usize) -> bool {
    let line = near_before(text, start).rsplit('\n').next().unwrap_or("").trim_start();
    ["//", "#", "* ", "-- "].iter().any(|mark| line.starts_with(mark))
}

/// Returns whether a word is written like a product or type in prose: `TypeScript`, `SessionStore`.
pub(super) fn is_proper(word: &str) -> bool {
    let humps = word.bytes().filter(u8::is_ascii_uppercase).count();
    let bytes = word.as_bytes();
    humps >= 2
        && bytes[0].is_ascii_uppercase()
        && bytes.iter().all(u8::is_ascii_alphabetic)
        && bytes.windows(2).all(|w| !(w[0].is_ascii_uppercase() && w[1].is_ascii_uppercase()))
        && bytes.last().is_some_and(u8::is_ascii_lowercase)
}

fn follows_definer(before: &str) -> bool {
    let trimmed = before.trim_end_matches([' ', '\t']);
    let word = trimmed.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("");
    trimmed.len() < before.len() && DEFINES.split(' ').any(|definer| definer == word)
}

/// Number of bytes searched on each side of a name. Definitions and imports are not longer, and a
/// file with a single line can contain many names.
const NEAR: usize = 1_000;

fn near_before(text: &str, at: usize) -> &str {
    &text[text.ceil_char_boundary(at.saturating_sub(NEAR))..at]
}

/// Returns the line at a position, or `None` if it is too long to be an import.
fn line_at(text: &str, at: usize) -> Option<&str> {
    let before = near_before(text, at);
    let start = match before.rfind('\n') {
        Some(i) => at - before.len() + i + 1,
        None => (before.len() == at).then_some(0)?,
    };
    let behind = &text[at..text.floor_char_boundary(at + NEAR)];
    let end = match behind.find('\n') {
        Some(i) => at + i,
        None => (at + behind.len() == text.len()).then_some(text.len())?,
    };
    Some(&text[start..end])
}

/// Returns whether a line, with or without a line number, imports from something other than a path.
fn is_foreign_import(line: &str) -> bool {
    let line = without_line_number(line);
    let first = line.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("");
    let imports = match first {
        "import" | "use" | "require" => true,
        "from" => line.contains(" import"),
        "const" | "let" | "var" => line.contains("require("),
        _ => false,
    };
    let own = ["'.", "\".", "'@/", "\"@/", "'~/", "\"~/"];
    imports && !own.iter().any(|p| line.contains(p))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str, word: &str) -> (usize, usize) {
        let start = text.find(word).unwrap();
        (start, start + word.len())
    }

    #[test]
    fn a_line_is_known_as_far_as_one_looks() {
        assert_eq!(line_at("a\nbé c\nd", 5), Some("bé c"));
        assert_eq!((line_at("ab", 1), line_at("", 0)), (Some("ab"), Some("")));
        let long = "é".repeat(NEAR / 2);
        assert_eq!(line_at(&long, 2), Some(&*long));
        let long = format!("{long}{long}x{long}{long}");
        assert_eq!(line_at(&long, 2 * NEAR), None);
        assert_eq!(line_at(&format!("{long}\n"), 2 * NEAR), None);
        assert_eq!(line_at(&format!("\nx{long}"), 1), None);
    }

    #[test]
    fn calls_and_foreign_imports_are_not_a_projects_own() {
        let own = |text: &str, word: &str| {
            let (start, end) = at(text, word);
            is_own(text, start, end)
        };
        assert!(!own("  x = setInterval(f)", "setInterval"));
        assert!(!own("MapSet.member?(kinds, x)", "MapSet.member"));
        assert!(!own("  3→import { existsSync } from 'fs';", "existsSync"));
        assert!(!own("from pathlib import PurePath_x", "PurePath_x"));
        assert!(own("import { loadAll } from './store.js'", "loadAll"));
        assert!(own("  defp load_all(x) do", "load_all"));
        assert!(own("{ retryCount: 0 }", "retryCount"));
    }

    #[test]
    fn definitions() {
        let defined = |text: &str, word: &str| {
            let (start, end) = at(text, word);
            is_defined(text, start, end)
        };
        assert!(defined("defmodule App.SessionLive do", "SessionLive"));
        assert!(defined("Hooks.TextPicker = {", "TextPicker"));
        assert!(defined("  TextPicker: { mounted", "TextPicker"));
        assert!(!defined("use Phoenix.LiveView", "LiveView"));
        assert!(!defined("if (OpenCode == x)", "OpenCode"));
        assert!(!defined("displayName: 'OpenCode',", "OpenCode"));
    }

    #[test]
    fn proper_names() {
        assert!(is_proper("TypeScript") && is_proper("MyTextPicker"));
        assert!(!is_proper("typeScript") && !is_proper("JSONParser") && !is_proper("Store_A"));
        assert!(!is_proper("Typescript"));
    }
}
