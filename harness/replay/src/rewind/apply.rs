//! Parses the arguments of edit tools and applies them to files.

use std::path::Path;

use ctxbench_core::compaction::tools::{folded, is_edit};
use serde_json::{Map, Value};

/// Argument names of edit tools in the products and in our scenarios.
const PATH: &[&str] = &["file_path", "path", "filePath"];
const OLD: &[&str] = &["old_string", "old_str", "oldString", "oldText", "old"];
const NEW: &[&str] = &["new_string", "new_str", "newString", "newText", "new"];
const CONTENT: &[&str] = &["content", "file_text", "contents", "text"];
const REPLACE_ALL: &[&str] = &["replace_all", "replaceAll"];
const PATCH: &[&str] = &["patch", "input", "diff", "patchText"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileEdit {
    /// Path as given to the tool.
    pub path: String,
    pub operation: Operation,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// Replaces the whole content.
    Write(String),
    /// Replaces texts in order: old, new, and whether to replace every occurrence.
    Replace(Vec<(String, String, bool)>),
    Delete,
}

/// Parses the edits of a call. Returns none for a tool that does not change files, and an error for
/// unknown arguments.
pub(super) fn edits(name: &str, arguments: &str) -> Result<Vec<FileEdit>, String> {
    if !is_edit(name) {
        return Ok(Vec::new());
    }
    let unknown = || format!("unknown arguments of `{name}`");
    let args = serde_json::from_str::<Value>(arguments)
        .unwrap_or_else(|_| Value::String(arguments.to_string()));
    if folded(name) == "applypatch" {
        let text = args.as_str().or_else(|| text(args.as_object()?, PATCH)).ok_or_else(unknown)?;
        return patch(text).ok_or_else(unknown);
    }
    let args = args.as_object().ok_or_else(unknown)?;
    let path = text(args, PATH).ok_or_else(unknown)?.to_string();
    let operation = match (text(args, CONTENT), args.get("edits").and_then(Value::as_array)) {
        (Some(content), _) => Operation::Write(content.to_string()),
        (None, Some(list)) => Operation::Replace(
            list.iter()
                .map(|e| replacement(e.as_object()?))
                .collect::<Option<_>>()
                .ok_or_else(unknown)?,
        ),
        (None, None) => Operation::Replace(vec![replacement(args).ok_or_else(unknown)?]),
    };
    Ok(vec![FileEdit { path, operation }])
}

/// Parses a patch of `apply_patch`: added, deleted and updated files between `*** Begin Patch` and `***
/// End Patch`. Returns `None` if it is malformed or renames a file.
fn patch(text: &str) -> Option<Vec<FileEdit>> {
    let mut out: Vec<FileEdit> = Vec::new();
    let add = |out: &mut Vec<FileEdit>, path: &str, operation| {
        out.push(FileEdit { path: path.to_string(), operation });
    };
    let mut lines = text.trim().lines();
    if lines.next()?.trim() != "*** Begin Patch" {
        return None;
    }
    for line in lines {
        if line.trim() == "*** End Patch" {
            return Some(out);
        }
        if let Some(path) = line.strip_prefix("*** Add File: ") {
            add(&mut out, path, Operation::Write(String::new()));
        } else if let Some(path) = line.strip_prefix("*** Delete File: ") {
            add(&mut out, path, Operation::Delete);
        } else if let Some(path) = line.strip_prefix("*** Update File: ") {
            add(&mut out, path, Operation::Replace(vec![]));
        } else if line.starts_with("*** Move to: ") {
            return None;
        } else {
            match &mut out.last_mut()?.operation {
                Operation::Write(content) => {
                    content.push_str(line.strip_prefix('+')?);
                    content.push('\n');
                }
                Operation::Delete => return None,
                Operation::Replace(runs) => {
                    if runs.is_empty() || line.starts_with("@@") {
                        runs.push(Default::default());
                    }
                    if line.starts_with("@@") {
                        continue;
                    }
                    let (old, new, _) = runs.last_mut()?;
                    let (sign, rest) =
                        (line.chars().next().unwrap_or(' '), line.get(1..).unwrap_or_default());
                    for (side, has) in [(old, matches!(sign, ' ' | '-')), (new, sign != '-')] {
                        if has {
                            side.push_str(rest);
                            side.push('\n');
                        }
                    }
                }
            }
        }
    }
    None
}

fn text<'a>(args: &'a Map<String, Value>, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|n| args.get(*n)?.as_str())
}

fn replacement(args: &Map<String, Value>) -> Option<(String, String, bool)> {
    let all = REPLACE_ALL.iter().any(|n| args.get(*n) == Some(&Value::Bool(true)));
    Some((text(args, OLD)?.to_string(), text(args, NEW)?.to_string(), all))
}

impl FileEdit {
    /// Applies the edit to the content `current`; `None` means no file.
    ///
    /// # Errors
    ///
    /// If the old text does not occur, as in the tool itself.
    pub(super) fn apply(&self, current: Option<&str>) -> Result<Option<String>, String> {
        let pairs = match &self.operation {
            Operation::Write(content) => return Ok(Some(content.clone())),
            Operation::Delete => return Ok(None),
            Operation::Replace(pairs) => pairs,
        };
        let mut text = match current {
            Some(t) => t.to_string(),
            // Replacing an empty text creates a file.
            None if pairs.iter().all(|(old, ..)| old.is_empty()) => String::new(),
            None => {
                return Err(format!(
                    "{} does not exist; add a `disk_file` with its content",
                    self.path
                ));
            }
        };
        for (old, new, all) in pairs {
            text = match (old.is_empty(), all) {
                (true, _) => text + new,
                (false, _) if !text.contains(old.as_str()) => {
                    return Err(format!("{} does not contain {old:?}", self.path));
                }
                (false, true) => text.replace(old.as_str(), new),
                (false, false) => text.replacen(old.as_str(), new, 1),
            };
        }
        Ok(Some(text))
    }

    /// Returns the path if it is relative and without `..`.
    pub(super) fn inside(&self) -> Option<&Path> {
        let path = Path::new(&self.path);
        path.components()
            .all(|c| matches!(c, std::path::Component::Normal(_) | std::path::Component::CurDir))
            .then_some(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(name: &str, args: &str, current: Option<&str>) -> Result<Option<String>, String> {
        edits(name, args).unwrap()[0].apply(current)
    }

    #[test]
    fn edits_of_all_products_are_parsed() {
        let content = |t: &str| Ok(Some(t.to_string()));
        assert_eq!(apply("write_file", r#"{"path":"a","content":"x"}"#, None), content("x"));
        assert_eq!(
            apply("Edit", r#"{"file_path":"a","old_string":"b","new_string":"c"}"#, Some("abb")),
            content("acb")
        );
        assert_eq!(
            apply(
                "edit",
                r#"{"filePath":"a","oldString":"b","newString":"c","replaceAll":true}"#,
                Some("abb")
            ),
            content("acc")
        );
        let multi = r#"{"file_path":"a","edits":[{"old_string":"a","new_string":"b"},{"old_string":"b","new_string":"c"}]}"#;
        assert_eq!(apply("MultiEdit", multi, Some("ab")), content("cb"));
        let patch = "*** Begin Patch\n*** Update File: a\n-x\n+y\n*** End Patch";
        assert_eq!(
            apply("apply_patch", &serde_json::json!({ "input": patch }).to_string(), Some("x\n")),
            content("y\n")
        );
        assert_eq!(
            apply("apply_patch", patch, Some("x\n")),
            content("y\n"),
            "as a freeform tool call"
        );
        assert_eq!(edits("bash", "{}"), Ok(vec![]));
    }

    #[test]
    fn edit_that_does_not_apply_fails_with_reason() {
        assert!(edits("edit_file", r#"{"path":"a"}"#).unwrap_err().contains("edit_file"));
        assert!(
            apply("edit_file", r#"{"path":"a","old":"x","new":"y"}"#, Some("z"))
                .unwrap_err()
                .contains("does not contain")
        );
        assert!(
            apply("edit_file", r#"{"path":"a","old":"x","new":"y"}"#, None)
                .unwrap_err()
                .contains("disk_file")
        );
    }

    #[test]
    fn a_patch_reads_added_deleted_and_updated_files() {
        let text = "*** Begin Patch\n*** Add File: a\n+x\n+y\n*** Delete File: b\n*** Update File: \
            c\n@@ fn f()\n one\n-two\n+2\n*** End Patch\n";
        let update = Operation::Replace(vec![("one\ntwo\n".into(), "one\n2\n".into(), false)]);
        let want =
            [("a", Operation::Write("x\ny\n".into())), ("b", Operation::Delete), ("c", update)];
        let want = want.map(|(path, operation)| FileEdit { path: path.into(), operation }).to_vec();
        assert_eq!(patch(text), Some(want));
        assert_eq!(
            patch("*** Begin Patch\n*** Update File: a\n*** Move to: b\n*** End Patch"),
            None
        );
        assert_eq!(patch("*** Begin Patch\n*** Add File: a\n+x"), None, "truncated");
        assert_eq!(patch("diff --git a b"), None);
    }
}
