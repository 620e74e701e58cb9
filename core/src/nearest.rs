//! "Did you mean": the nearest known names to one that is unknown.

/// Names close to `given`, nearest first; ties keep their order.
pub fn nearest<'a>(given: &str, known: &[&'a str]) -> Vec<&'a str> {
    let mut scored: Vec<(f64, &str)> = known
        .iter()
        .map(|k| {
            let prefix = if !given.is_empty() && (k.starts_with(given) || given.starts_with(k)) {
                0.3
            } else {
                0.0
            };
            (strsim::jaro_winkler(given, k) + prefix, *k)
        })
        .filter(|(s, _)| *s > 0.75)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored.into_iter().take(3).map(|(_, k)| k).collect()
}

/// A sentence for an error: the nearest names, or all of them.
pub fn hint(given: &str, known: &[&str]) -> String {
    let near = nearest(given, known);
    if near.is_empty() {
        format!("known are {}", known.join(", "))
    } else {
        format!("did you mean {}?", near.join(" or "))
    }
}
