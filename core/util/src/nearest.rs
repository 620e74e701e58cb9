//! "Did you mean" hints for unknown names.

/// Returns up to three known names similar to `given`, most similar first.
pub fn nearest<'a>(given: &str, known: &[&'a str]) -> Vec<&'a str> {
    // `window` may mean `context_window`, but not `id`.
    let within = |k: &str| given.len() > 3 && k.contains(given);
    let is_long = |k: &str| 2 * k.len() >= given.len();
    let mut scored: Vec<(f64, &str)> = known
        .iter()
        .map(|k| {
            let begins = !given.is_empty() && (k.starts_with(given) || given.starts_with(k));
            // One typing error: Jaro-Winkler rates short names such as `rnu` and `run` too low.
            let typo = given.len() > 2 && strsim::osa_distance(given, k) == 1;
            let more = if begins || typo { 0.3 } else { 0.0 };
            (strsim::jaro_winkler(given, k) + more, *k)
        })
        .filter(|(s, k)| (*s > 0.75 && is_long(k)) || within(k))
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored.into_iter().take(3).map(|(_, k)| k).collect()
}

/// Maximum number of names listed in an error.
const MAX_NAMES: usize = 20;

/// Returns a hint for an error: similar names, or all names if there are few.
pub fn hint(given: &str, known: &[&str]) -> String {
    let all = match known.len() {
        n if n > MAX_NAMES => format!("none of the {n} known names is similar"),
        _ => format!("known are {}", known.join(", ")),
    };
    hint_or(given, known, &all)
}

/// Returns a hint for an error: similar names, or else `otherwise`.
pub fn hint_or(given: &str, known: &[&str], otherwise: &str) -> String {
    match &nearest(given, known)[..] {
        [] => otherwise.to_string(),
        near => format!("did you mean {}?", near.join(" or ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hint_suggests_similar_names_or_lists_few() {
        assert_eq!(hint("rnu", &["list", "run"]), "did you mean run?");
        assert_eq!(hint("claude-sonet", &["gpt", "claude-sonnet"]), "did you mean claude-sonnet?");
        assert_eq!(hint("xyz", &["list", "run"]), "known are list, run");
        let many = ["abc"; 21];
        assert_eq!(hint("xyz", &many), "none of the 21 known names is similar");
        assert_eq!(hint_or("xyz", &many, "see there"), "see there");
        assert!(nearest("ab", &["b", "cd"]).is_empty());
        assert_eq!(nearest("window", &["id", "context_window"]), ["context_window"]);
    }
}
