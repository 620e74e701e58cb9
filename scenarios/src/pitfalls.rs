//! Pitfalls described by the sources, by code. Scenarios cite them, and the built-in scenarios must
//! cover all of them. The code of a pitfall is the name of its list and its number there, such as
//! `token-budgeting pitfall 7`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use ctxbench_util::nearest;

/// All pitfalls: lists by name, in the order of the sources.
static ALL: LazyLock<BTreeMap<String, Vec<String>>> = LazyLock::new(|| {
    toml::from_str(include_str!("pitfalls.toml")).expect("a test reads pitfalls.toml")
});

pub fn find(code: &str) -> Option<&'static str> {
    let (list, number) = code.rsplit_once(' ')?;
    ALL.get(list)?.get(number.parse::<usize>().ok()?.checked_sub(1)?).map(String::as_str)
}

fn codes() -> impl Iterator<Item = String> {
    ALL.iter().flat_map(|(list, names)| (1..=names.len()).map(move |n| format!("{list} {n}")))
}

/// Returns the problem and the advice for a citation that looks like a code but is not one. Other
/// citations, such as a ticket, are allowed.
pub(crate) fn wrong(code: &str) -> Option<(String, String)> {
    if code.trim().is_empty() {
        let fix = "cite the mistake that the scenario shows, or leave it out";
        return Some(("an empty citation".into(), fix.into()));
    }
    if !ALL.keys().any(|list| code.starts_with(list)) || find(code).is_some() {
        return None;
    }
    let codes: Vec<String> = codes().collect();
    let codes: Vec<&str> = codes.iter().map(String::as_str).collect();
    Some((format!("unknown citation {code:?}"), nearest::hint(code, &codes)))
}

#[cfg(test)]
#[path = "pitfalls_tests.rs"]
mod tests;
