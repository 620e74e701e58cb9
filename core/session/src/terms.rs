//! What changes the price of a call besides its tokens: speed, service tier, region and searches of the
//! web.

use std::sync::OnceLock;

use ctxbench_core::model::{Model, Provider, TERMS};
use serde::Deserialize;

use crate::RecordedUsage;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TermsFile {
    rule: Vec<Rule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    provider: Provider,
    term: String,
    /// Empty means all models of the provider.
    #[serde(default)]
    models: Vec<String>,
    factor: Option<f64>,
    /// Fee for each time.
    #[serde(default)]
    usd: f64,
}

impl Rule {
    fn is_for(&self, model: &Model) -> bool {
        // A dated version has the terms of its model.
        let named = |m: &String| {
            let rest = model.name.strip_prefix(m.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("-20"))
        };
        self.provider == model.provider && (self.models.is_empty() || self.models.iter().any(named))
    }
}

fn rules() -> &'static [Rule] {
    static RULES: OnceLock<TermsFile> = OnceLock::new();
    &RULES.get_or_init(|| toml::from_str(TERMS).expect("a test reads terms.toml")).rule
}

/// Effect of a call's terms on its price.
#[derive(Clone, Debug, PartialEq)]
pub struct Surcharge {
    /// Factor on the prices of tokens.
    pub factor: f64,
    /// Fees in USD that do not depend on tokens.
    pub fees_usd: f64,
    /// Terms without a known price, for people; the list price is taken.
    pub unpriced: Vec<String>,
}

impl Surcharge {
    pub fn new(model: &Model, call: &RecordedUsage) -> Surcharge {
        let mut found = Surcharge { factor: 1.0, fees_usd: 0.0, unpriced: Vec::new() };
        let terms = &call.billing;
        let mut add = |term: &str, times: u64, told: &dyn Fn() -> String| match rules()
            .iter()
            .find(|r| r.term == term && r.is_for(model))
        {
            Some(rule) => {
                found.factor *= rule.factor.unwrap_or(1.0);
                found.fees_usd += rule.usd * times as f64;
            }
            None => found.unpriced.push(told()),
        };
        let kinds =
            [("speed", &terms.speed), ("service tier", &terms.tier), ("region", &terms.region)];
        for (kind, term) in kinds {
            if let Some(term) = term.as_deref() {
                add(term, 1, &|| format!("{kind} {term:?}"));
            }
        }
        if terms.web_searches > 0 {
            add("search", terms.web_searches, &|| "searches of the web".into());
        }
        // OpenAI writes to its cache unasked, and newer models charge for it.
        let charges = model.provider == Provider::Openai && model.cache.write_fee;
        if charges && call.cache_write + call.cache_write_1h == 0 && call.input > 0 {
            found.unpriced.push(format!("the cache writes of {}", model.name));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Billing;
    use ctxbench_core::model::find;

    fn surcharge(model: &str, billing: Billing) -> Surcharge {
        let call = RecordedUsage { billing, ..RecordedUsage::default() };
        Surcharge::new(find(model).unwrap(), &call)
    }

    #[test]
    fn terms_are_multiplied_and_what_has_no_price_is_told() {
        let fast = |name: &str| {
            surcharge(name, Billing { speed: Some("fast".into()), ..Billing::default() })
        };
        assert_eq!(fast("claude-opus-4-6").factor, 6.0);
        assert_eq!(fast("claude-opus-4-8").factor, 2.0);
        let unknown = fast("claude-sonnet-4-6");
        assert_eq!((unknown.factor, &unknown.unpriced[..]), (1.0, &["speed \"fast\"".into()][..]));
        let terms = Billing {
            tier: Some("batch".into()),
            region: Some("us".into()),
            web_searches: 3,
            ..Billing::default()
        };
        let both = surcharge("claude-opus-5", terms.clone());
        assert!((both.factor - 0.55).abs() < 1e-12 && (both.fees_usd - 0.03).abs() < 1e-12);
        assert_eq!(
            surcharge("gemini-2.5-pro", terms).unpriced,
            ["region \"us\"", "searches of the web"]
        );
    }

    #[test]
    fn dated_versions_have_the_terms_of_their_model() {
        let tier = |model: &str| {
            surcharge(model, Billing { tier: Some("priority".into()), ..Billing::default() }).factor
        };
        for (model, factor) in [
            ("gpt-5-mini-2025-08-07", 1.8),
            ("gpt-4o-2024-05-13", 1.75),
            ("gpt-4o-2024-11-20", 1.7),
            ("gpt-4o-mini", 1.6667),
            ("gpt-4.1-nano", 2.0),
            // The price file has no such price.
            ("gpt-5-codex", 1.0),
        ] {
            assert_eq!(tier(model), factor, "{model}");
        }
        let search = |model: &str| {
            surcharge(model, Billing { web_searches: 2, ..Billing::default() }).fees_usd
        };
        assert_eq!((search("gpt-5.4"), search("gpt-4.1-2025-04-14")), (0.02, 0.05));
    }

    #[test]
    fn a_cache_that_charges_for_writes_has_to_count_them() {
        let told = |model: &str, usage: RecordedUsage| {
            Surcharge::new(find(model).unwrap(), &usage).unpriced
        };
        let usage = RecordedUsage { input: 9, ..RecordedUsage::default() };
        let expected = "the cache writes of gpt-5.6-sol";
        assert_eq!(told("gpt-5.6-sol", usage.clone()), [expected]);
        let counted = RecordedUsage { cache_write: 9, ..usage.clone() };
        assert!(told("gpt-5.6-sol", counted).is_empty());
        assert!(told("gpt-5.5", usage.clone()).is_empty());
        assert!(told("claude-sonnet-4-6", usage).is_empty());
    }
}
