//! Numbers of things in words.

use std::fmt::Display;

/// So many things: `1 file`, `2 files`, `1 reply`, `3 replies`, `2 processes`.
pub fn many<N: Display + PartialEq + From<u8>>(n: N, thing: &str) -> String {
    if n == N::from(1) { format!("{n} {thing}") } else { format!("{n} {}", plural(thing)) }
}

fn plural(thing: &str) -> String {
    match thing.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{stem}ies"),
        _ if thing.ends_with(['s', 'x']) || thing.ends_with("ch") => format!("{thing}es"),
        _ => format!("{thing}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_told_as_one() {
        let told = ["file", "reply", "summary", "process", "branch", "key", "Aider session"];
        let ones = told.map(|thing| many(1_u64, thing));
        assert_eq!(ones[1..4], ["1 reply", "1 summary", "1 process"]);
        let expected =
            ["files", "replies", "summaries", "processes", "branches", "keys", "Aider sessions"];
        assert_eq!(told.map(|thing| many(2_usize, thing)), expected.map(|e| format!("2 {e}")));
        assert_eq!(many(0_u64, "call"), "0 calls");
    }
}
