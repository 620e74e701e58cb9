//! Assumptions that two measurements must share. `compare` requires the same counting model,
//! calibration and price table, the gate all assumptions.

use std::collections::BTreeMap;

use super::Results;
use crate::fmt::one_line;

/// Name of the assumption with the calibration of token counts.
pub const CALIBRATION: &str = "calibration";
/// Name of the assumption with the memory files that the prompts contain in addition to those of
/// the sessions.
pub const MEMORY: &str = "memory files";
/// Name of the assumption with the price table.
pub const PRICES: &str = "price table";
/// Name of the assumption with the share of what is present that a model uses.
pub const USED: &str = "use of what is present";
/// Prefix of the names of the assumptions with the token counting of each model.
pub(crate) const TOKENS: &str = "tokens of ";

/// Name of the assumption with the token counting of a model.
pub fn tokens_of(model: &str) -> String {
    format!("{TOKENS}{model}")
}

/// Assumptions by name.
pub type Yardstick = BTreeMap<String, String>;

/// Returns the counting models, calibration and price table of results.
pub fn from_results(results: &Results) -> Yardstick {
    let part = |name: &str| name == CALIBRATION || name == PRICES || name.starts_with(TOKENS);
    let all = results.assumptions.iter().filter(|(name, _)| part(name));
    all.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Prefixes of the assumptions about one model.
const OF_MODEL: [&str; 3] = [TOKENS, "latency of ", "prices of "];

/// Differences between two yardsticks. A model in only one of them is not a difference.
pub fn differences(base: &Yardstick, new: &Yardstick) -> Vec<String> {
    let both = |name: &str| base.contains_key(name) && new.contains_key(name);
    let of_model = |name: &str| OF_MODEL.iter().any(|prefix| name.starts_with(prefix));
    let all = changes(base, new).filter(|(name, _)| both(name) || !of_model(name));
    all.map(|(name, change)| format!("{name}: {change}")).collect()
}

/// Names of assumptions that differ, each with its two values in one line.
pub(crate) fn changes<'a>(
    base: &'a BTreeMap<String, String>,
    new: &'a BTreeMap<String, String>,
) -> impl Iterator<Item = (&'a str, String)> {
    let names = base.keys().chain(new.keys().filter(move |n| !base.contains_key(*n)));
    let told = |value: Option<&String>| value.map_or("not stated".into(), |v| one_line(v));
    names.filter(move |name| base.get(*name) != new.get(*name)).map(move |name| {
        (name.as_str(), format!("{} → {}", told(base.get(name)), told(new.get(name))))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn yardstick(all: &[(&str, &str)]) -> Yardstick {
        all.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect()
    }

    #[test]
    fn another_model_is_no_difference_and_another_count_is() {
        let a = yardstick(&[("calibration", "family"), ("price table", "1"), ("tokens of m", "x")]);
        let mut b = a.clone();
        b.insert("tokens of n".into(), "y".into());
        assert_eq!(differences(&a, &b), Vec::<String>::new());
        b.insert("tokens of m".into(), "z".into());
        b.remove("price table");
        assert_eq!(differences(&a, &b), ["price table: 1 → not stated", "tokens of m: x → z"]);
    }
}
