//! Output folder with one file per session.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::Context;
use ctxbench_util::files;

/// Returns whether an output path denotes a folder.
pub(super) fn is_one(path: &Path) -> bool {
    let ends = path.as_os_str().as_encoded_bytes().last();
    path.is_dir()
        || ends.is_some_and(|b| *b == b'/' || char::from(*b) == std::path::MAIN_SEPARATOR)
        || (path.extension().is_none() && !path.exists())
}

/// Files of a folder, named by session id. Existing files are never overwritten.
pub(super) struct ImportFolder<'a> {
    path: &'a Path,
    /// Number of uses of each name, in lower case because of case-insensitive file systems.
    used: HashMap<String, usize>,
}

impl<'a> ImportFolder<'a> {
    pub(super) fn new(path: &'a Path) -> ImportFolder<'a> {
        ImportFolder { path, used: HashMap::new() }
    }

    /// Writes a session and returns its path. Keeps an existing file if it is identical.
    pub(super) fn write(&mut self, id: &str, ending: &str, text: &str) -> anyhow::Result<PathBuf> {
        std::fs::create_dir_all(self.path)
            .with_context(|| format!("-o: cannot make the folder {}", self.path.display()))?;
        let name = files::safe_name(id);
        let mut n = self.used.get(&name.to_lowercase()).copied().unwrap_or_default();
        loop {
            n += 1;
            let numbered = if n == 1 { name.clone() } else { format!("{name}-{n}") };
            if n > 1 && self.used.contains_key(&numbered.to_lowercase()) {
                continue;
            }
            let path = self.path.join(format!("{numbered}.{ending}"));
            let free = std::fs::symlink_metadata(&path).is_err();
            let same = || std::fs::read(&path).is_ok_and(|there| there == text.as_bytes());
            if free {
                files::write(&path, text)?;
            } else if !same() {
                continue;
            }
            self.used.insert(name.to_lowercase(), n);
            self.used.entry(numbered.to_lowercase()).or_insert(1);
            return Ok(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_and_unique_and_nothing_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        std::fs::create_dir(&out).unwrap();
        std::fs::write(out.join("b.jsonl"), "mine").unwrap();
        let mut folder = ImportFolder::new(&out);
        let mut put = |id: &str, text: &str| {
            let path = folder.write(id, "jsonl", text).unwrap();
            assert_eq!(path.parent(), Some(&*out));
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
            path.file_name().unwrap().to_str().unwrap().to_string()
        };
        let ids = ["a", "a", "A", "a-2", "b", "../../etc/passwd", "/", "", "nul", "é\u{0}x", "..."];
        let names: Vec<String> =
            ids.iter().zip(1..).map(|(id, n)| put(id, &format!("{n}"))).collect();
        assert_eq!(
            names,
            [
                "a.jsonl",
                "a-2.jsonl",
                "A-3.jsonl",
                "a-2-2.jsonl",
                "b-2.jsonl",
                "etc-passwd.jsonl",
                "unnamed.jsonl",
                "unnamed-2.jsonl",
                "_nul.jsonl",
                "x.jsonl",
                "unnamed-3.jsonl"
            ]
        );
        assert_eq!(std::fs::read_to_string(out.join("b.jsonl")).unwrap(), "mine");
        // A second import finds all files.
        let mut folder = ImportFolder::new(&out);
        let path = folder.write("a", "jsonl", "1").unwrap();
        assert_eq!(path, out.join("a.jsonl"));
    }

    #[test]
    fn a_folder_is_told_by_its_name() {
        let dir = tempfile::tempdir().unwrap();
        assert!(is_one(dir.path()) && is_one(Path::new("new/")) && is_one(Path::new("no/such")));
        assert!(!is_one(Path::new("new.jsonl")) && !is_one(Path::new("/dev/null")));
    }
}
