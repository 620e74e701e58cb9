//! "Did you mean": the nearest known names to one that is unknown.

/// Names close to `given`, nearest first; ties keep their order.
pub fn nearest<'a>(given: &str, known: &[&'a str]) -> Vec<&'a str> {
    // `window` is meant for `context_window`, and hardly for `id`, however many letters they share.
    let within = |k: &str| given.len() > 3 && k.contains(given);
    let is_long = |k: &str| 2 * k.len() >= given.len();
    let mut scored: Vec<(f64, &str)> = known
        .iter()
        .map(|k| {
            let begins = !given.is_empty() && (k.starts_with(given) || given.starts_with(k));
            // One slip: the measure for longer names hardly sees that `rnu` is `run`.
            let slip = given.len() > 2 && strsim::osa_distance(given, k) == 1;
            let more = if begins || slip { 0.3 } else { 0.0 };
            (strsim::jaro_winkler(given, k) + more, *k)
        })
        .filter(|(s, k)| (*s > 0.75 && is_long(k)) || within(k))
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored.into_iter().take(3).map(|(_, k)| k).collect()
}

/// Most names that are worth reading in an error.
const MOST: usize = 20;

/// A sentence for an error: the nearest names, or all of them where they are few.
pub fn hint(given: &str, known: &[&str]) -> String {
    let all = match known.len() {
        n if n > MOST => format!("none of the {n} known names is like it"),
        _ => format!("known are {}", known.join(", ")),
    };
    hint_or(given, known, &all)
}

/// A sentence for an error: the nearest names, or else what is told instead, such as where all of
/// them stand.
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
    fn a_slip_is_near_and_a_long_list_is_not_read_out() {
        assert_eq!(hint("rnu", &["list", "run"]), "did you mean run?");
        assert_eq!(hint("claude-sonet", &["gpt", "claude-sonnet"]), "did you mean claude-sonnet?");
        assert_eq!(hint("xyz", &["list", "run"]), "known are list, run");
        let many = ["abc"; 21];
        assert_eq!(hint("xyz", &many), "none of the 21 known names is like it");
        assert_eq!(hint_or("xyz", &many, "see there"), "see there");
        assert!(nearest("ab", &["b", "cd"]).is_empty());
        assert_eq!(nearest("window", &["id", "context_window"]), ["context_window"]);
    }
}
