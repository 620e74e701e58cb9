//! A module per product with recorded cases: its settings, constants and requests.

mod anthropic_sdk;
mod codex;
mod gemini_cli;
mod opencode;
mod pi;

use ctxbench_core::strategy::Strategy;
use ctxbench_strategies::Spec;
use ctxbench_strategies::descriptor::{BuildRequest, release_numbers};
use serde_json::Value;

use crate::Replay;
use crate::case::CaseError;

/// Returns the replay of a product's recorded sessions, if there are any.
pub fn find(product: &str) -> Option<&'static Replay> {
    match product {
        "codex" => Some(&codex::REPLAY),
        "opencode" => Some(&opencode::REPLAY),
        "pi" => Some(&pi::REPLAY),
        "gemini-cli" => Some(&gemini_cli::REPLAY),
        "anthropic-sdk" => Some(&anthropic_sdk::REPLAY),
        _ => None,
    }
}

/// Builds the strategy that a case is compared with: our newest release that is not newer than the
/// recorded one, so that a new release of the program is tested before it is described here. Settings
/// that are null have their defaults. `texts` replace the texts of the product; those that are
/// missing are empty.
fn build(
    product: &str,
    recorded: &str,
    settings: &Value,
    texts: &Value,
) -> Result<Box<dyn Strategy>, CaseError> {
    let product = Spec::parse(product).map_err(|_| CaseError::unknown("agent", product))?;
    let wanted = release_numbers(recorded);
    let releases =
        product.descriptor.versions.iter().filter_map(|v| Some((release_numbers(v.name)?, v)));
    let older = releases.filter(|(n, _)| wanted.as_ref().is_some_and(|w| n <= w));
    let newest = older.max_by(|(a, _), (b, _)| a.cmp(b));
    let (_, version) = newest.ok_or_else(|| CaseError::unknown("version", recorded))?;
    let mut spec = Spec { version: *version, ..product };
    for (name, value) in settings.as_object().into_iter().flatten().filter(|(_, v)| !v.is_null()) {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_string);
        spec = spec.with(name, &text).map_err(|e| CaseError::Value {
            at: "settings".into(),
            expected: e.to_string(),
            found: text,
        })?;
    }
    let about = spec.descriptor;
    let texts = texts.as_object().map_or_else(|| about.words.clone(), |t| about.texts(t));
    let (version, settings) = (spec.version, &spec.settings);
    let request = BuildRequest { version, settings, scale: 1.0, texts: &texts };
    Ok(spec.descriptor.product.build(&request))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_of_a_new_release_of_each_product_have_a_strategy() {
        let with_cases: Vec<&str> = ctxbench_strategies::all()
            .map(|d| d.name)
            .filter(|name| find(name).is_some())
            .collect();
        assert_eq!(with_cases.len(), 5, "{with_cases:?}");
        for product in with_cases {
            let built = |version| build(product, version, &Value::Null, &Value::Null).is_ok();
            assert!(built("99.0.0") && built("99.1.0-preview.2"), "{product}");
            assert!(!built("0.0.0") && !built("newest"), "{product}");
        }
    }
}
