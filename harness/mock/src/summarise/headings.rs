//! Headings that an instruction asks for, and the lines that belong under each.

use super::request::Author;

/// Returns the headings of an instruction as lines: those with `##`, or else the names of a
/// numbered list. Text after a colon explains the heading.
pub(super) fn headings(instruction: &str) -> Vec<String> {
    let lines = || instruction.lines().map(|l| l.trim().split_once(": ").unwrap_or((l.trim(), "")));
    let marked = lines().filter(|(name, _)| name.starts_with("##"));
    let marked: Vec<String> = marked.map(|(name, _)| name.to_string()).collect();
    if !marked.is_empty() {
        return marked;
    }
    let is_numbered = |name: &str| name.split_once(". ").is_some_and(|n| n.0.parse::<u8>().is_ok());
    let listed = lines().filter(|(name, note)| !note.is_empty() && is_numbered(name));
    listed.map(|(name, _)| format!("{name}:")).collect()
}

/// Returns the number of the heading for a line: one about its topic, or else about details, or
/// else the first. The headings are in lower case.
pub(super) fn heading_of(headings: &[String], who: Author, line: &str) -> usize {
    let is_about = |term: &&str| headings.iter().position(|h| h.contains(*term));
    topic(who, line).iter().chain(&["detail"]).find_map(is_about).unwrap_or(0)
}

/// Returns terms of the headings about the topic of a line, best first. The topic depends on the
/// author and on some English words; of another language, only the author counts.
fn topic(who: Author, line: &str) -> &'static [&'static str] {
    let low = format!(" {} ", line.to_lowercase());
    let says = |words: &[&str]| words.iter().any(|w| low.contains(w));
    match who {
        Author::Call => &["file"],
        Author::User if says(&[" must ", " never ", " not ", "n't ", " only "]) => {
            &["wish", "constraint", "instruction", "memory", "message", "context"]
        }
        Author::User => &["request", "goal", "objective", "overview", "task"],
        _ if says(&[" error", " fail"]) => &["error", "discover", "finding"],
        Author::Output => &["value", "concept", "finding", "context"],
        _ if says(&[" later", " next ", " remain", " todo"]) => &["pending", "next", "open"],
        _ if says(&[" decid", " because ", " cause", " reason", " instead"]) => {
            &["decision", "memory", "discover", "finding", "solving", "context"]
        }
        _ => &["done", "complet", "accomplish", "state", "progress"],
    }
}
