//! What an edit tool's arguments do to files. Arguments have the names that lines are counted by,
//! too (`ctxbench_kit::monitor`).

use std::path::Path;

use ctxbench_core::compaction::tools::{folded, is_edit};
use ctxbench_kit::monitor::edit_names::{ALL, NEW, OLD, PATCH, PATH, WHOLE};
use serde_json::{Map, Value};

use super::patch::{self, Change};

/// An edit of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileEdit {
    /// Path as the tool gave it.
    pub path: String,
    pub how: How,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// The whole content.
    Write(String),
    /// Texts in the place of others, one after the other; with `true` wherever it stands.
    Replace(Vec<(String, String, bool)>),
    /// The file goes.
    Delete,
}

/// The edits of a call: none for a tool that changes no files, an error for one whose arguments
/// cannot be read.
pub(super) fn edits(name: &str, arguments: &str) -> Result<Vec<FileEdit>, String> {
    if !is_edit(name) {
        return Ok(Vec::new());
    }
    let unread = || format!("the arguments of `{name}` do not say what it changes");
    let args = serde_json::from_str::<Value>(arguments)
        .unwrap_or_else(|_| Value::String(arguments.to_string()));
    if folded(name) == "applypatch" {
        let text = args.as_str().or_else(|| text(args.as_object()?, PATCH)).ok_or_else(unread)?;
        return Ok(patch::read(text).ok_or_else(unread)?.into_iter().map(of_patch).collect());
    }
    let args = args.as_object().ok_or_else(unread)?;
    let path = text(args, PATH).ok_or_else(unread)?.to_string();
    let how = match (text(args, WHOLE), args.get("edits").and_then(Value::as_array)) {
        (Some(content), _) => How::Write(content.to_string()),
        (None, Some(list)) => How::Replace(
            list.iter()
                .map(|e| replacement(e.as_object()?))
                .collect::<Option<_>>()
                .ok_or_else(unread)?,
        ),
        (None, None) => How::Replace(vec![replacement(args).ok_or_else(unread)?]),
    };
    Ok(vec![FileEdit { path, how }])
}

fn of_patch((path, change): (String, Change)) -> FileEdit {
    let how = match change {
        Change::Add(content) => How::Write(content),
        Change::Delete => How::Delete,
        Change::Update(runs) => {
            How::Replace(runs.into_iter().map(|(old, new)| (old, new, false)).collect())
        }
    };
    FileEdit { path, how }
}

fn text<'a>(args: &'a Map<String, Value>, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|n| args.get(*n)?.as_str())
}

fn replacement(args: &Map<String, Value>) -> Option<(String, String, bool)> {
    let all = ALL.iter().any(|n| args.get(*n) == Some(&Value::Bool(true)));
    Some((text(args, OLD)?.to_string(), text(args, NEW)?.to_string(), all))
}

impl FileEdit {
    /// The content after the edit; `None` = the file goes. An edit that does not match is an error,
    /// as it would be for the tool.
    pub(super) fn after(&self, now: Option<&str>) -> Result<Option<String>, String> {
        let pairs = match &self.how {
            How::Write(content) => return Ok(Some(content.clone())),
            How::Delete => return Ok(None),
            How::Replace(pairs) => pairs,
        };
        let mut text = match now {
            Some(t) => t.to_string(),
            // An edit of nothing into something makes a file.
            None if pairs.iter().all(|(old, ..)| old.is_empty()) => String::new(),
            None => {
                return Err(format!(
                    "{} does not exist; say what it holds with a `disk_file`",
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

    /// The path below the session's folder, if it names one there.
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

    fn after(name: &str, args: &str, now: Option<&str>) -> Result<Option<String>, String> {
        edits(name, args).unwrap()[0].after(now)
    }

    #[test]
    fn the_spellings_of_products_are_one() {
        let done = |t: &str| Ok(Some(t.to_string()));
        assert_eq!(after("write_file", r#"{"path":"a","content":"x"}"#, None), done("x"));
        assert_eq!(
            after("Edit", r#"{"file_path":"a","old_string":"b","new_string":"c"}"#, Some("abb")),
            done("acb")
        );
        assert_eq!(
            after(
                "edit",
                r#"{"filePath":"a","oldString":"b","newString":"c","replaceAll":true}"#,
                Some("abb")
            ),
            done("acc")
        );
        let multi = r#"{"file_path":"a","edits":[{"old_string":"a","new_string":"b"},{"old_string":"b","new_string":"c"}]}"#;
        assert_eq!(after("MultiEdit", multi, Some("ab")), done("cb"));
        let patch = "*** Begin Patch\n*** Update File: a\n-x\n+y\n*** End Patch";
        assert_eq!(
            after("apply_patch", &serde_json::json!({ "input": patch }).to_string(), Some("x\n")),
            done("y\n")
        );
        assert_eq!(
            after("apply_patch", patch, Some("x\n")),
            done("y\n"),
            "as a freeform tool gets it"
        );
        assert_eq!(edits("bash", "{}"), Ok(vec![]));
    }

    /// Whatever can be carried out is counted, and the other way round but for what does not say
    /// where it goes.
    #[test]
    fn what_is_carried_out_is_counted() {
        use ctxbench_kit::monitor::{CountedEdit as Counted, edit_names, edit_of};
        let mut calls: Vec<(&str, serde_json::Value)> = Vec::new();
        for path in edit_names::PATH {
            calls.extend(
                edit_names::WHOLE
                    .iter()
                    .map(|w| ("write", serde_json::json!({ *path: "a", *w: "x" }))),
            );
            for (old, new) in
                edit_names::OLD.iter().flat_map(|o| edit_names::NEW.iter().map(move |n| (*o, *n)))
            {
                calls.push(("edit", serde_json::json!({ *path: "a", old: "b", new: "c" })));
                calls.push((
                    "multi_edit",
                    serde_json::json!({ *path: "a", "edits": [{ old: "b", new: "c" }] }),
                ));
            }
        }
        let patch = "*** Begin Patch\n*** Update File: a\n-b\n+c\n*** End Patch";
        calls.extend(
            edit_names::PATCH.iter().map(|p| ("apply_patch", serde_json::json!({ *p: patch }))),
        );
        for (tool, args) in calls {
            let args = args.to_string();
            let (carried, counted) = (edits(tool, &args).unwrap(), edit_of(tool, &args));
            let (path, how) = (&carried[0].path, &carried[0].how);
            assert_eq!(path, "a", "{args}");
            match (how, counted) {
                (How::Write(text), Some(Counted::Write { path, text: same })) => {
                    assert_eq!((path.as_deref(), text), (Some("a"), &same))
                }
                (How::Replace(pairs), Some(Counted::Replace { pairs: same, .. })) => {
                    assert_eq!(
                        vec![(&*pairs[0].0, &*pairs[0].1)],
                        same.iter().map(|(o, n)| (&**o, &**n)).collect::<Vec<_>>()
                    )
                }
                (How::Replace(_), Some(Counted::Patch(c))) => {
                    assert_eq!((c.added, c.removed), (1, 1))
                }
                other => panic!("{tool} {args}: {other:?}"),
            }
        }
        // A cell of a notebook and an insertion count, but nobody knows where they would go.
        for args in [
            r#"{"notebook_path":"a","new_source":"x"}"#,
            r#"{"path":"a","insert_line":2,"insert_text":"x"}"#,
        ] {
            assert!(edit_of("edit", args).is_some() && edits("edit", args).is_err(), "{args}");
        }
    }

    #[test]
    fn what_does_not_fit_is_told() {
        assert!(edits("edit_file", r#"{"path":"a"}"#).unwrap_err().contains("edit_file"));
        assert!(
            after("edit_file", r#"{"path":"a","old":"x","new":"y"}"#, Some("z"))
                .unwrap_err()
                .contains("does not contain")
        );
        assert!(
            after("edit_file", r#"{"path":"a","old":"x","new":"y"}"#, None)
                .unwrap_err()
                .contains("disk_file")
        );
    }
}
