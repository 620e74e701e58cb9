//! Files created by the model. Aider adds them to the chat with their whole current content
//! (docs/sources/aider.md §1.4, chat_files).

use std::collections::BTreeMap;

use ctxbench_core::compaction::tools::is_edit;
use ctxbench_core::compaction::{file_path, text_argument};

/// Returns the path and the new content of a file if a call writes the whole file.
pub(super) fn written(tool: &str, arguments: &str) -> Option<(String, String)> {
    let path = is_edit(tool).then(|| file_path(tool, arguments)).flatten()?;
    let text = text_argument(arguments, &["content", "contents", "file_text", "text"])?;
    Some((path, text))
}

/// Formats a written file as the edit block of a reply.
pub(super) fn block((path, text): &(String, String)) -> String {
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("\n{path}\n```\n<<<<<<< SEARCH\n=======\n{text}{end}>>>>>>> REPLACE\n```\n")
}

/// Contents of the created files in the chat, by path.
#[derive(Default)]
pub(super) struct Created(BTreeMap<String, String>);

impl Created {
    /// Applies a call to the files. Returns whether a file changed.
    pub(super) fn take(&mut self, tool: &str, arguments: &str) -> bool {
        if let Some((path, text)) = written(tool, arguments) {
            return self.0.insert(path, text.clone()) != Some(text);
        }
        let path = is_edit(tool).then(|| file_path(tool, arguments)).flatten();
        let Some(held) = path.and_then(|p| self.0.get_mut(&p)) else { return false };
        let argument = |names: &[&str]| text_argument(arguments, names);
        let (Some(old), Some(new)) = (
            argument(&["old_string", "oldString", "old_str", "old"]),
            argument(&["new_string", "newString", "new_str", "new"]),
        ) else {
            return false;
        };
        let changed = held.replacen(&old, &new, 1);
        let differs = changed != *held;
        *held = changed;
        differs
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Formats all files for the prompt.
    pub(super) fn listing(&self) -> String {
        let one = |(path, text): (&String, &String)| {
            let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
            format!("\n{path}\n```\n{text}{end}```\n")
        };
        self.0.iter().map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_stands_in_the_chat_and_follows_edits() {
        let mut files = Created::default();
        assert!(files.take("write_file", r#"{"path":"b.rs","content":"fn b() {}"}"#));
        assert!(files.take("Write", r#"{"file_path":"a.rs","content":"one\ntwo\n"}"#));
        let edit = r#"{"file_path":"a.rs","old_string":"two","new_string":"three"}"#;
        assert!(files.take("Edit", edit));
        assert!(!files.take("Edit", edit), "it is not there any more");
        let unknown = r#"{"file_path":"c.rs","old_string":"x","new_string":"y"}"#;
        assert!(!files.take("Edit", unknown), "nobody knows what the rest of it is");
        assert!(!files.take("read_file", r#"{"path":"b.rs"}"#));
        let want = "\na.rs\n```\none\nthree\n```\n\nb.rs\n```\nfn b() {}\n```\n";
        assert_eq!(files.listing(), want);
    }
}
