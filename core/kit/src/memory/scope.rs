//! Path patterns of a rule.

use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// A set of path patterns. `*` matches within a folder, `**` across folders, `{a,b}` either one.
#[derive(Clone, Debug)]
pub struct PathScope {
    patterns: Vec<String>,
    set: GlobSet,
}

impl PathScope {
    /// Compiles patterns. The error contains the first invalid pattern and the reason.
    pub fn new(
        patterns: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Self, (String, String)> {
        let patterns: Vec<String> = patterns.into_iter().map(Into::into).collect();
        let mut set = GlobSetBuilder::new();
        for p in &patterns {
            let glob = GlobBuilder::new(p)
                .literal_separator(true)
                .build()
                .map_err(|e| (p.clone(), e.kind().to_string()))?;
            set.add(glob);
        }
        let set = set.build().map_err(|e| (patterns.join(", "), e.to_string()))?;
        Ok(PathScope { patterns, set })
    }

    /// Matches every file in a folder.
    pub fn for_folder(folder: &str) -> Option<Self> {
        PathScope::new([format!("{}/**", globset::escape(folder))]).ok()
    }

    pub fn patterns(&self) -> &[String] {
        &self.patterns
    }

    /// Returns true if a path relative to the project root matches.
    pub fn matches(&self, path: &Path) -> bool {
        self.set.is_match(path.strip_prefix(".").unwrap_or(path))
    }

    /// Returns true if a path from a tool call matches. An absolute path matches if any of its
    /// suffixes does, because the project root is unknown.
    pub fn matches_any_suffix(&self, path: &str) -> bool {
        if !path.starts_with('/') {
            return self.matches(Path::new(path));
        }
        path.char_indices()
            .filter(|(_, c)| *c == '/')
            .any(|(i, _)| self.set.is_match(&path[i + 1..]))
    }
}

/// Splits a rule into its text without front matter and the patterns of `paths:`, written as a
/// list, in brackets or as one value.
pub fn front_matter(text: &str) -> (&str, Vec<String>) {
    let fence = |l: &str| l.trim_end() == "---";
    let mut lines = text.split_inclusive('\n');
    if !lines.next().is_some_and(fence) {
        return (text, Vec::new());
    }
    let start = text.find('\n').map_or(text.len(), |i| i + 1);
    let mut end = start;
    let Some(front) = lines.find_map(|l| {
        let front = fence(l).then(|| &text[start..end]);
        end += l.len();
        front
    }) else {
        // A `---` without a closing `---` is a horizontal rule.
        return (text, Vec::new());
    };
    let mut patterns = Vec::new();
    let mut listed = false;
    for line in front.lines() {
        let value = match (line.strip_prefix("paths:"), line.trim_start().strip_prefix('-')) {
            (Some(v), _) => {
                listed = true;
                v
            }
            (None, Some(v)) if listed => v,
            _ => {
                listed = listed && line.trim().is_empty();
                continue;
            }
        };
        patterns.extend(values(value));
    }
    (text[end..].trim_start_matches(['\r', '\n']), patterns)
}

/// Splits at commas outside braces and strips brackets and quotes.
fn values(text: &str) -> Vec<String> {
    let text = text.trim();
    let text = text.strip_prefix('[').map_or(text, |t| t.strip_suffix(']').unwrap_or(t));
    let mut depth = 0_i32;
    let parts = text.split(|c: char| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth <= 0
    });
    parts
        .map(|p| p.trim().trim_matches(['"', '\'']).to_string())
        .filter(|p| !p.is_empty())
        .collect()
}
