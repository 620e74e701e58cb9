//! What changes the price of a call besides its tokens: speed, service tier, region and searches of the
//! web.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use ctxbench_core::model::{Model, Provider, TERMS};
use serde::Deserialize;

use crate::Billing;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TermsFile {
    factor: Vec<FactorRule>,
    search_usd: BTreeMap<String, f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FactorRule {
    provider: Provider,
    term: String,
    /// Empty means all models of the provider.
    #[serde(default)]
    models: Vec<String>,
    factor: f64,
}

fn rules() -> &'static TermsFile {
    static RULES: OnceLock<TermsFile> = OnceLock::new();
    RULES.get_or_init(|| toml::from_str(TERMS).expect("a test reads terms.toml"))
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
    /// Reads the terms of a call of a model.
    pub fn new(model: &Model, terms: &Billing) -> Surcharge {
        let mut found = Surcharge { factor: 1.0, fees_usd: 0.0, unpriced: Vec::new() };
        let kinds =
            [("speed", &terms.speed), ("service tier", &terms.tier), ("region", &terms.region)];
        for (kind, term) in kinds {
            let Some(term) = term.as_deref() else { continue };
            let fits = |r: &&FactorRule| {
                let named = r.models.is_empty() || r.models.iter().any(|m| **m == *model.name);
                r.provider == model.provider && r.term == term && named
            };
            match rules().factor.iter().find(fits) {
                Some(rule) => found.factor *= rule.factor,
                None => found.unpriced.push(format!("{kind} {term:?}")),
            }
        }
        if terms.web_searches > 0 {
            match rules().search_usd.get(model.provider.word()) {
                Some(usd) => found.fees_usd += usd * terms.web_searches as f64,
                None => found.unpriced.push("searches of the web".into()),
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctxbench_core::model::find;

    fn surcharge(model: &str, terms: Billing) -> Surcharge {
        Surcharge::new(find(model).unwrap(), &terms)
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
}
