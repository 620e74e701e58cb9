//! Durable facts that a compaction found move into a memory file. What a person wrote there stays,
//! letter by letter and in its order.

use std::collections::HashSet;

/// Facts under a heading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Durable {
    /// Heading without its marks, such as `Project Memory`.
    pub heading: String,
    /// One line each, with or without a bullet.
    pub items: Vec<String>,
}

/// A memory file after a migration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    /// Its text.
    pub text: String,
    /// Lines added; 0 = the text is what it was.
    pub added: usize,
}

/// Adds to `current` what is not in it yet, under its heading, which is made at the end where there
/// is none.
///
/// A line counts as there if a line anywhere in the file says the same, bullets, case and spaces
/// aside: what a person moved, stays moved.
pub fn merge(current: &str, durable: &[Durable]) -> Merged {
    let mut known: HashSet<String> = current.lines().map(plain).collect();
    // Not `lines`, which would drop what else stands at the end of a line.
    let mut lines: Vec<String> = current.split_terminator('\n').map(String::from).collect();
    let mut added = 0;
    for d in durable {
        let new: Vec<String> = d
            .items
            .iter()
            .flat_map(|i| i.lines())
            .filter(|i| {
                !plain(i).is_empty() && !i.trim_start().starts_with('#') && known.insert(plain(i))
            })
            .map(|i| format!("- {}", bare(i)))
            .collect();
        if new.is_empty() {
            continue;
        }
        added += new.len();
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
    if added == 0 {
        return Merged { text: current.into(), added };
    }
    let mut text = lines.join("\n");
    text.push('\n');
    Merged { text, added }
}

/// Behind the last line of a section that is not empty.
fn end_of_section(lines: &[String], at: usize) -> usize {
    let depth = heading(&lines[at]).map_or(0, |(d, _)| d);
    let next = lines[at + 1..]
        .iter()
        .position(|l| heading(l).is_some_and(|(d, _)| d <= depth))
        .map_or(lines.len(), |n| at + 1 + n);
    lines[..next].iter().rposition(|l| !l.trim().is_empty()).map_or(next, |last| last + 1)
}

/// Depth and words of a heading.
fn heading(line: &str) -> Option<(usize, &str)> {
    let depth = line.bytes().take_while(|b| *b == b'#').count();
    let words = line[depth..].strip_prefix(' ')?.trim();
    (1..=6).contains(&depth).then_some((depth, words))
}

/// A line without its bullet.
fn bare(line: &str) -> &str {
    let line = line.trim();
    ["- ", "* ", "+ "].iter().find_map(|b| line.strip_prefix(b)).unwrap_or(line).trim()
}

/// What two lines have in common that say the same.
fn plain(line: &str) -> String {
    bare(line).split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}
