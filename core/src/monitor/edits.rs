//! Lines added and removed by the calls of edit tools, read from their arguments.

use serde_json::Value;

/// Lines that a change adds and removes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Lines that were not there before.
    pub added: u64,
    /// Lines that are no longer there.
    pub removed: u64,
}

impl Change {
    /// Both together.
    pub fn add(&mut self, o: Change) {
        self.added += o.added;
        self.removed += o.removed;
    }
}

/// What a call of an edit tool does to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// Texts in a file are replaced by others: (old, new).
    Replace {
        /// The file, if the call names one.
        path: Option<String>,
        /// Pairs of old and new text.
        pairs: Vec<(String, String)>,
    },
    /// The file is written whole.
    Write {
        /// The file, if the call names one.
        path: Option<String>,
        /// Its new content.
        text: String,
    },
    /// A patch, which may touch several files.
    Patch(Change),
}

/// Longest texts that are compared line by line; beyond it every line between the first and the last difference counts as changed.
const MOST_CELLS: usize = 4_000_000;

const PATH: [&str; 4] = ["file_path", "path", "filePath", "notebook_path"];
const OLD: [&str; 5] = ["old_string", "old_str", "oldString", "oldText", "old"];
const NEW: [&str; 6] = ["new_string", "new_str", "newString", "newText", "new", "insert_text"];
const WHOLE: [&str; 4] = ["content", "file_text", "contents", "new_source"];
const PATCH: [&str; 4] = ["patch", "input", "diff", "patchText"];

/// Words in the names of tools that change files: `Edit`, `MultiEdit`, `edit_file`, `str_replace_based_edit_tool`, `Write`, `write_file`,
/// `create_file`, `apply_patch` and the like.
const EDITORS: [&str; 5] = ["edit", "write", "replace", "patch", "create_file"];

/// The edit that a call makes; `None` when its tool changes no file, or the arguments are of a shape that is not known.
pub fn edit_of(tool: &str, arguments: &str) -> Option<Edit> {
    let tool = tool.to_ascii_lowercase();
    if !EDITORS.iter().any(|w| tool.contains(w)) || tool.contains("todo") {
        return None;
    }
    let Ok(args) = serde_json::from_str::<Value>(arguments) else {
        // Some wires carry a patch as plain text.
        return is_patch(arguments).then(|| Edit::Patch(patched(arguments)));
    };
    let word = |v: &Value, names: &[&str]| names.iter().find_map(|n| v.get(*n)?.as_str().map(str::to_string));
    let path = word(&args, &PATH);
    let pair = |v: &Value| {
        let (old, new) = (word(v, &OLD), word(v, &NEW));
        (old.is_some() || new.is_some()).then(|| (old.unwrap_or_default(), new.unwrap_or_default()))
    };
    if let Some(list) = args.get("edits").and_then(Value::as_array) {
        return Some(Edit::Replace { path, pairs: list.iter().filter_map(pair).collect() });
    }
    if let Some(one) = pair(&args) {
        return Some(Edit::Replace { path, pairs: vec![one] });
    }
    if let Some(text) = word(&args, &WHOLE) {
        return Some(Edit::Write { path, text });
    }
    word(&args, &PATCH).filter(|p| is_patch(p)).map(|p| Edit::Patch(patched(&p)))
}

fn is_patch(text: &str) -> bool {
    text.contains("*** Begin Patch") || text.starts_with("--- ") || text.starts_with("diff ") || text.contains("\n@@")
}

/// Lines with `+` and `-` of a patch; the names of files in a unified diff are not lines.
fn patched(patch: &str) -> Change {
    let unified = !patch.contains("*** Begin Patch");
    let mut c = Change::default();
    for line in patch.lines() {
        match line.as_bytes().first() {
            Some(b'+') if !(unified && line.starts_with("+++ ")) => c.added += 1,
            Some(b'-') if !(unified && line.starts_with("--- ")) => c.removed += 1,
            _ => {}
        }
    }
    c
}

/// Lines that differ between two texts: what is left when the longest common sequence of lines is taken out.
pub fn changed_lines(old: &str, new: &str) -> Change {
    let (a, b): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let start = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
    let (a, b) = (&a[start..], &b[start..]);
    let end = a.iter().rev().zip(b.iter().rev()).take_while(|(x, y)| x == y).count();
    let (a, b) = (&a[..a.len() - end], &b[..b.len() - end]);
    let same = if a.len().saturating_mul(b.len()) > MOST_CELLS { 0 } else { common(a, b) };
    Change { added: (b.len() - same) as u64, removed: (a.len() - same) as u64 }
}

/// Length of the longest common sequence.
fn common(a: &[&str], b: &[&str]) -> usize {
    let mut row = vec![0; b.len() + 1];
    for x in a {
        let mut diagonal = 0;
        for (j, y) in b.iter().enumerate() {
            let above = row[j + 1];
            row[j + 1] = if x == y { diagonal + 1 } else { above.max(row[j]) };
            diagonal = above;
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(added: u64, removed: u64) -> Change {
        Change { added, removed }
    }

    #[test]
    fn lines_are_compared_and_not_only_counted() {
        assert_eq!(changed_lines("a\nb\nc", "a\nB\nc"), change(1, 1));
        assert_eq!(changed_lines("", "a\nb\n"), change(2, 0));
        assert_eq!(changed_lines("a\nb", ""), change(0, 2));
        assert_eq!(changed_lines("a\nb\nc\nd", "a\nx\nc\ny\nd"), change(2, 1), "b became x, y came in");
        assert_eq!(changed_lines("same", "same"), change(0, 0));
    }

    #[test]
    fn every_shape_of_an_edit_is_understood() {
        let replaced = |tool: &str, args: &str| match edit_of(tool, args) {
            Some(Edit::Replace { pairs, .. }) => pairs,
            other => panic!("{other:?}"),
        };
        let pair = |a: &str, b: &str| vec![(a.to_string(), b.to_string())];
        assert_eq!(replaced("Edit", r#"{"file_path":"f","old_string":"a","new_string":"b"}"#), pair("a", "b"));
        assert_eq!(replaced("edit_file", r#"{"path":"f","old":"a","new":"b"}"#), pair("a", "b"));
        let insert = r#"{"command":"insert","path":"f","insert_line":2,"insert_text":"x"}"#;
        assert_eq!(replaced("str_replace_based_edit_tool", insert), pair("", "x"));
        let many = r#"{"file_path":"f","edits":[{"old_string":"a","new_string":"b"},{"old_string":"c","new_string":""}]}"#;
        assert_eq!(replaced("MultiEdit", many).len(), 2);
        let whole = Edit::Write { path: Some("f".into()), text: "1\n2".into() };
        assert_eq!(edit_of("write_file", r#"{"path":"f","content":"1\n2"}"#), Some(whole));
        let patch = "*** Begin Patch\n*** Update File: a\n@@\n-old\n+new\n+++ counts\n*** End Patch";
        assert_eq!(edit_of("apply_patch", patch), Some(Edit::Patch(change(2, 1))));
        let unified = serde_json::json!({"diff": "--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new\n"}).to_string();
        assert_eq!(edit_of("patch", &unified), Some(Edit::Patch(change(1, 1))));
    }

    #[test]
    fn what_changes_no_file_is_no_edit() {
        for (tool, args) in [
            ("bash", r#"{"command":"git commit"}"#),
            ("read_file", r#"{"path":"f"}"#),
            ("str_replace_based_edit_tool", r#"{"command":"view","path":"f"}"#),
            ("TodoWrite", r#"{"content":"x"}"#),
            ("edit", "not json"),
        ] {
            assert_eq!(edit_of(tool, args), None, "{tool}");
        }
    }
}
