//! Counts with nouns, such as `2 files`.

use std::fmt::Display;

/// Formats a count with its noun: `1 file`, `2 files`, `3 replies`, `2 processes`.
pub fn pluralize<N: Display + PartialEq + From<u8>>(n: N, noun: &str) -> String {
    if n == N::from(1) { format!("{n} {noun}") } else { format!("{n} {}", plural(noun)) }
}

fn plural(noun: &str) -> String {
    match noun.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{stem}ies"),
        _ if noun.ends_with(['s', 'x']) || noun.ends_with("ch") => format!("{noun}es"),
        _ => format!("{noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pluralize_inflects_nouns() {
        let nouns = ["file", "reply", "summary", "process", "branch", "key", "Aider session"];
        let ones = nouns.map(|noun| pluralize(1_u64, noun));
        assert_eq!(ones[1..4], ["1 reply", "1 summary", "1 process"]);
        let expected =
            ["files", "replies", "summaries", "processes", "branches", "keys", "Aider sessions"];
        assert_eq!(nouns.map(|noun| pluralize(2_usize, noun)), expected.map(|e| format!("2 {e}")));
        assert_eq!(pluralize(0_u64, "call"), "0 calls");
    }
}
