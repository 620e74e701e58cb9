//! Merges durable facts from a compaction into a memory file. Existing text and its order do not
//! change.

use std::collections::HashSet;

/// Facts to add under a heading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DurableFacts {
    /// Heading text without `#`, such as `Project Memory`.
    pub heading: String,
    /// Facts, one per line, with or without a bullet.
    pub items: Vec<String>,
}

/// Adds new facts to `current` under their headings. Appends a missing heading at the end. Returns
/// `None` if nothing is new.
///
/// Skips a fact that appears anywhere in the file, ignoring bullets, case and white space, so that
/// facts moved by the user are not added again.
pub fn merge(current: &str, durable: &[DurableFacts]) -> Option<String> {
    let mut known: HashSet<String> = current.lines().map(normalize).collect();
    // `str::lines` would strip `\r`.
    let mut lines: Vec<String> = current.split_terminator('\n').map(String::from).collect();
    let mut changed = false;
    for d in durable {
        let new: Vec<String> = d
            .items
            .iter()
            .flat_map(|i| i.lines())
            .filter(|i| {
                !normalize(i).is_empty()
                    && !i.trim_start().starts_with('#')
                    && known.insert(normalize(i))
            })
            .map(|i| format!("- {}", strip_bullet(i)))
            .collect();
        if new.is_empty() {
            continue;
        }
        changed = true;
        let at = match lines
            .iter()
            .position(|l| heading(l).is_some_and(|(_, h)| h.eq_ignore_ascii_case(d.heading.trim())))
        {
            Some(at) => end_of_section(&lines, at),
            None => {
                if lines.last().is_some_and(|l| !l.trim().is_empty()) {
                    lines.push(String::new());
                }
                lines.push(format!("## {}", d.heading.trim()));
                lines.len()
            }
        };
        lines.splice(at..at, new);
    }
    changed.then(|| lines.join("\n") + "\n")
}

/// Returns the index after the last non-empty line of the section that starts at `at`.
fn end_of_section(lines: &[String], at: usize) -> usize {
    let depth = heading(&lines[at]).map_or(0, |(d, _)| d);
    let next = lines[at + 1..]
        .iter()
        .position(|l| heading(l).is_some_and(|(d, _)| d <= depth))
        .map_or(lines.len(), |n| at + 1 + n);
    lines[..next].iter().rposition(|l| !l.trim().is_empty()).map_or(next, |last| last + 1)
}

/// Parses a heading into its depth and text.
fn heading(line: &str) -> Option<(usize, &str)> {
    let depth = line.bytes().take_while(|b| *b == b'#').count();
    let text = line[depth..].strip_prefix(' ')?.trim();
    (1..=6).contains(&depth).then_some((depth, text))
}

/// Strips the bullet of a list item.
fn strip_bullet(line: &str) -> &str {
    let line = line.trim();
    ["- ", "* ", "+ "].iter().find_map(|b| line.strip_prefix(b)).unwrap_or(line).trim()
}

fn normalize(line: &str) -> String {
    strip_bullet(line).split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}
