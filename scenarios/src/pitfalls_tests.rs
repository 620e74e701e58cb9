use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::builtin;

/// Returns the built-in scenarios by the pitfall codes that they cite.
fn cited() -> BTreeMap<String, Vec<String>> {
    let mut out: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for s in builtin::all().unwrap() {
        for code in s.cites {
            out.entry(code).or_default().push(s.id.clone());
        }
    }
    out
}

#[test]
fn built_in_scenarios_cite_known_codes_only() {
    for (code, by) in cited() {
        assert!(find(&code).is_some(), "{by:?} cite {code:?}");
    }
}

#[test]
fn there_are_as_many_codes_as_the_sources_have() {
    let count = |start: &str| ALL.iter().filter(|p| p.code.starts_with(start)).count();
    // 11 in docs/sources/chat-history.md, 14 in docs/sources/token-budgeting.md, 15 in
    // docs/sources/failure-modes.md §6.
    assert_eq!(
        [count("chat-history pitfall "), count("token-budgeting pitfall "), count("failure mode ")],
        [11, 14, 15]
    );
    // docs/sources/opencode-vs-claude-code.md §11: points 6 to 8 of its list of tasks, and the five
    // figures at its end.
    assert_eq!(
        [
            count("opencode-vs-claude-code edge case "),
            count("opencode-vs-claude-code success figure ")
        ],
        [3, 5]
    );
    assert_eq!(ALL.iter().map(|p| p.code).collect::<BTreeSet<_>>().len(), ALL.len());
    // Numbers run without a gap.
    for (i, p) in ALL.iter().filter(|p| p.code.starts_with("failure mode ")).enumerate() {
        assert_eq!(p.code, format!("failure mode {}", i + 1));
    }
}
