//! Parser for `apply_patch`: added, deleted and updated files between `*** Begin Patch` and `*** End
//! Patch`.

/// Change of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FileChange {
    /// Creates a file.
    Add(String),
    /// Deletes the file.
    Delete,
    /// Replaces runs of lines: old and new text of each.
    Update(Vec<(String, String)>),
}

/// Parses a patch. Returns `None` if it is malformed or renames a file.
pub(super) fn parse(text: &str) -> Option<Vec<(String, FileChange)>> {
    let mut out: Vec<(String, FileChange)> = Vec::new();
    let mut lines = text.trim().lines();
    if lines.next()?.trim() != "*** Begin Patch" {
        return None;
    }
    for line in lines {
        if line.trim() == "*** End Patch" {
            return Some(out);
        }
        if let Some(path) = line.strip_prefix("*** Add File: ") {
            out.push((path.to_string(), FileChange::Add(String::new())));
        } else if let Some(path) = line.strip_prefix("*** Delete File: ") {
            out.push((path.to_string(), FileChange::Delete));
        } else if let Some(path) = line.strip_prefix("*** Update File: ") {
            out.push((path.to_string(), FileChange::Update(vec![])));
        } else if line.starts_with("*** Move to: ") {
            return None;
        } else {
            match &mut out.last_mut()?.1 {
                FileChange::Add(content) => {
                    content.push_str(line.strip_prefix('+')?);
                    content.push('\n');
                }
                FileChange::Delete => return None,
                FileChange::Update(runs) if line.starts_with("@@") => runs.push(Default::default()),
                FileChange::Update(runs) => {
                    if runs.is_empty() {
                        runs.push(Default::default());
                    }
                    let (old, new) = runs.last_mut()?;
                    let (sign, rest) =
                        (line.chars().next().unwrap_or(' '), line.get(1..).unwrap_or_default());
                    for side in [old, new]
                        .into_iter()
                        .enumerate()
                        .filter(|(i, _)| sign == ' ' || (sign == '-') == (*i == 0))
                        .map(|(_, s)| s)
                    {
                        side.push_str(rest);
                        side.push('\n');
                    }
                }
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_reads_added_deleted_and_updated_files() {
        let text = "*** Begin Patch\n*** Add File: a\n+x\n+y\n*** Delete File: b\n*** Update File: \
            c\n@@ fn f()\n one\n-two\n+2\n*** End Patch\n";
        let update = FileChange::Update(vec![("one\ntwo\n".into(), "one\n2\n".into())]);
        let want = vec![
            ("a".into(), FileChange::Add("x\ny\n".into())),
            ("b".into(), FileChange::Delete),
            ("c".into(), update),
        ];
        assert_eq!(parse(text), Some(want));
        assert_eq!(
            parse("*** Begin Patch\n*** Update File: a\n*** Move to: b\n*** End Patch"),
            None
        );
        assert_eq!(parse("*** Begin Patch\n*** Add File: a\n+x"), None, "truncated");
        assert_eq!(parse("diff --git a b"), None);
    }
}
