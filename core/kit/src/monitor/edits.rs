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
pub enum CountedEdit {
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

/// Longest texts that are compared line by line; beyond it every line between the first and the
/// last difference counts as changed.
const MOST_CELLS: usize = 4_000_000;

/// What edit tools call their arguments, in the products and in our scenarios. Whoever reads such a
/// call reads these names.
pub mod names {
    /// The file.
    pub const PATH: &[&str] = &["file_path", "path", "filePath"];
    /// The text that goes.
    pub const OLD: &[&str] = &["old_string", "old_str", "oldString", "oldText", "old"];
    /// The text that comes.
    pub const NEW: &[&str] = &["new_string", "new_str", "newString", "newText", "new"];
    /// The whole content of the file.
    pub const WHOLE: &[&str] = &["content", "file_text", "contents", "text"];
    /// `true` = the text goes wherever it stands.
    pub const ALL: &[&str] = &["replace_all", "replaceAll"];
    /// A patch.
    pub const PATCH: &[&str] = &["patch", "input", "diff", "patchText"];
}

use names::{NEW, OLD, PATCH, PATH, WHOLE};

/// A notebook, of which one cell is written: lines, but not the content of a file.
const CELL: (&str, &str) = ("notebook_path", "new_source");
/// A text that comes where another argument says: lines, but not where they go.
const INSERTED: &str = "insert_text";

/// Words in the names of tools that change files: `Edit`, `MultiEdit`, `edit_file`,
/// `str_replace_based_edit_tool`, `Write`, `write_file`, `create_file`, `apply_patch` and the like.
const EDITORS: [&str; 5] = ["edit", "write", "replace", "patch", "create_file"];

/// The edit that a call makes; `None` when its tool changes no file, or the arguments are of a
/// shape that is not known.
pub fn edit_of(tool: &str, arguments: &str) -> Option<CountedEdit> {
    let tool = tool.to_ascii_lowercase();
    if !EDITORS.iter().any(|w| tool.contains(w)) || tool.contains("todo") {
        return None;
    }
    let Ok(args) = serde_json::from_str::<Value>(arguments) else {
        // Some wires carry a patch as plain text.
        return is_patch(arguments).then(|| CountedEdit::Patch(patched(arguments)));
    };
    let word = |v: &Value, names: &[&str]| {
        names.iter().find_map(|n| v.get(*n)?.as_str().map(str::to_string))
    };
    let path = word(&args, PATH);
    let pair = |v: &Value| {
        let (old, new) = (word(v, OLD), word(v, NEW).or_else(|| word(v, &[INSERTED])));
        (old.is_some() || new.is_some()).then(|| (old.unwrap_or_default(), new.unwrap_or_default()))
    };
    if let Some(list) = args.get("edits").and_then(Value::as_array) {
        return Some(CountedEdit::Replace { path, pairs: list.iter().filter_map(pair).collect() });
    }
    if let Some(one) = pair(&args) {
        return Some(CountedEdit::Replace { path, pairs: vec![one] });
    }
    if let Some(text) = word(&args, &[CELL.1]) {
        return Some(CountedEdit::Write { path: path.or_else(|| word(&args, &[CELL.0])), text });
    }
    // Only who names a file writes one.
    if let Some(text) = word(&args, WHOLE).filter(|_| path.is_some()) {
        return Some(CountedEdit::Write { path, text });
    }
    word(&args, PATCH).filter(|p| is_patch(p)).map(|p| CountedEdit::Patch(patched(&p)))
}

fn is_patch(text: &str) -> bool {
    text.contains("*** Begin Patch")
        || text.starts_with("--- ")
        || text.starts_with("diff ")
        || text.contains("\n@@")
}

/// Lines with `+` and `-` of a patch.
fn patched(patch: &str) -> Change {
    if !patch.contains("*** Begin Patch") {
        return unified(patch);
    }
    let begin = |sign| patch.lines().filter(|l| l.starts_with(sign)).count() as u64;
    Change { added: begin('+'), removed: begin('-') }
}

/// The same of a unified diff, where two lines name the files: `--- old` and `+++ new`. Inside a
/// hunk lines may look the same, so these are names only where the hunk has all the lines that its
/// header announces, or announces none.
fn unified(patch: &str) -> Change {
    let mut c = Change::default();
    // Lines of either side that are still to come; `None` = in no hunk, or in one that announces
    // none.
    let mut due: Option<(u64, u64)> = None;
    let mut lines = patch.lines().peekable();
    while let Some(line) = lines.next() {
        let full = due.is_none_or(|d| d == (0, 0));
        if full
            && line.starts_with("--- ")
            && lines.peek().is_some_and(|next| next.starts_with("+++ "))
        {
            lines.next();
            due = None;
            continue;
        }
        // What ends a patch that was mailed.
        if due == Some((0, 0)) && line.trim_end() == "--" {
            due = None;
            continue;
        }
        let (old, new) = match line.as_bytes().first() {
            Some(b'+') => (0, 1),
            Some(b'-') => (1, 0),
            Some(b' ') | None => (1, 1),
            Some(b'\\') => (0, 0),
            // A hunk begins, or what stands between those of two files.
            _ => {
                due = announced(line);
                continue;
            }
        };
        c.added += u64::from((old, new) == (0, 1));
        c.removed += u64::from((old, new) == (1, 0));
        due = due.map(|(o, n)| (o.saturating_sub(old), n.saturating_sub(new)));
    }
    c
}

/// Lines of the old and of the new side that a hunk's header announces: `@@ -4,2 +4 @@`, where one
/// line goes without saying.
fn announced(header: &str) -> Option<(u64, u64)> {
    let mut words = header.strip_prefix("@@ ")?.split(' ');
    let mut side = |sign| match words.next()?.strip_prefix(sign)?.split_once(',') {
        Some((_, lines)) => lines.parse().ok(),
        None => Some(1),
    };
    Some((side('-')?, side('+')?))
}

/// Lines that differ between two texts: what is left when the longest common sequence of lines is
/// taken out.
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
        assert_eq!(
            changed_lines("a\nb\nc\nd", "a\nx\nc\ny\nd"),
            change(2, 1),
            "b became x, y came in"
        );
        assert_eq!(changed_lines("same", "same"), change(0, 0));
    }

    #[test]
    fn every_shape_of_an_edit_is_understood() {
        let replaced = |tool: &str, args: &str| match edit_of(tool, args) {
            Some(CountedEdit::Replace { pairs, .. }) => pairs,
            other => panic!("{other:?}"),
        };
        let pair = |a: &str, b: &str| vec![(a.to_string(), b.to_string())];
        assert_eq!(
            replaced("Edit", r#"{"file_path":"f","old_string":"a","new_string":"b"}"#),
            pair("a", "b")
        );
        assert_eq!(replaced("edit_file", r#"{"path":"f","old":"a","new":"b"}"#), pair("a", "b"));
        let insert = r#"{"command":"insert","path":"f","insert_line":2,"insert_text":"x"}"#;
        assert_eq!(replaced("str_replace_based_edit_tool", insert), pair("", "x"));
        let many = r#"{"file_path":"f","edits":[{"old_string":"a","new_string":"b"},{"old_string":"c","new_string":""}]}"#;
        assert_eq!(replaced("MultiEdit", many).len(), 2);
        let whole = CountedEdit::Write { path: Some("f".into()), text: "1\n2".into() };
        assert_eq!(edit_of("write_file", r#"{"path":"f","content":"1\n2"}"#), Some(whole.clone()));
        assert_eq!(
            edit_of("write", r#"{"path":"f","text":"1\n2"}"#),
            Some(whole),
            "as the scenarios write it"
        );
        assert_eq!(edit_of("write_stdin", r#"{"text":"y\n"}"#), None, "no file is named");
        let patch =
            "*** Begin Patch\n*** Update File: a\n@@\n-old\n+new\n+++ counts\n*** End Patch";
        assert_eq!(edit_of("apply_patch", patch), Some(CountedEdit::Patch(change(2, 1))));
        let unified =
            serde_json::json!({"diff": "--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new\n"}).to_string();
        assert_eq!(edit_of("patch", &unified), Some(CountedEdit::Patch(change(1, 1))));
    }

    #[test]
    fn lines_of_a_unified_diff_are_known_by_their_hunk() {
        let lines =
            |patch: &str| match edit_of("patch", &serde_json::json!({ "diff": patch }).to_string())
            {
                Some(CountedEdit::Patch(c)) => c,
                other => panic!("{other:?}"),
            };
        // SQL and Lua comments that go, a C line that comes: on the line they look like names of
        // files.
        assert_eq!(
            lines("--- a.sql\n+++ a.sql\n@@ -1,2 +1,2 @@\n--- old note\n+++ i;\n same\n"),
            change(1, 1)
        );
        let two = "diff --git a/x b/x\nindex 1..2\n--- a/x\n+++ b/x\n@@ -1 +1,2 @@ fn \
            f()\n-a\n+b\n+c\n--- a/y\n+++ b/y\n@@ -4,2 +4 @@\n z\n--- y\n";
        assert_eq!(lines(two), change(2, 2), "the second file begins where the first hunk is full");
        let bare = "--- a\n+++ b\n@@\n-old\n+new\n@@ fn g()\n+more\n";
        assert_eq!(lines(bare), change(2, 1), "models leave the numbers out");
        let short = "--- a\n+++ b\n@@ -1,9 +1,9 @@\n-old\n+new\n@@ -30 +30 @@\n-x\n+y\n";
        assert_eq!(lines(short), change(2, 2), "or get them wrong");
        let mail =
            "--- a\n+++ b\n@@ -1 +1 @@\n-old\n\\ No newline at end of file\n+new\n-- \n2.39.1\n";
        assert_eq!(lines(mail), change(1, 1), "the signature of a mailed patch is no line");
        assert_eq!(lines("--- a\n+++ b\n-old\n+new\n"), change(1, 1), "no hunk at all");
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
