use super::*;
use crate::builtin;

#[test]
fn built_in_scenarios_cite_known_codes_only() {
    for scenario in builtin::all().unwrap() {
        for code in &scenario.cites {
            assert!(find(code).is_some(), "{} cites {code:?}", scenario.id);
        }
    }
}

#[test]
fn there_are_as_many_codes_as_the_sources_have() {
    // 11 in docs/sources/chat-history.md, 14 in docs/sources/token-budgeting.md, points 6 to 8 of a
    // list of tasks and five figures in docs/sources/opencode-vs-claude-code.md §11, and 15 in
    // docs/sources/failure-modes.md §6.
    let counts: Vec<usize> = ALL.values().map(Vec::len).collect();
    assert_eq!(counts, [11, 15, 3, 5, 14]);
    assert_eq!(find("failure mode 6"), Some("pruning busts the cache: fewer tokens, more money"));
    assert!(codes().all(|code| find(&code).is_some()) && find("failure mode 0").is_none());
}
