//! Finds models of the catalogue by recorded names.

use super::names::{Name, bare, is_name_of};
use super::table::table;
use super::{Model, Provider, catalogue};

/// Prefixes of model names, and their providers.
const FAMILIES: [(&str, Provider); 9] = [
    ("claude", Provider::Anthropic),
    ("gpt", Provider::Openai),
    ("codex", Provider::Openai),
    ("o1", Provider::Openai),
    ("o3", Provider::Openai),
    ("o4", Provider::Openai),
    ("gemini", Provider::Gemini),
    ("deepseek", Provider::Deepseek),
    ("grok", Provider::Xai),
];

/// Returns the model of the catalogue with the longest name that a recorded name contains.
pub(super) fn listed_in(name: &str) -> Option<&'static Model> {
    let whole = |m: &&Model| is_name_of(name, &m.name);
    catalogue().iter().filter(whole).max_by_key(|m| m.name.len())
}

/// Returns whether no rule about thinking is for the model.
pub(super) fn keeps_thinking_by_name(recorded: &str) -> bool {
    table().rules.thinking.keeps(family_of(recorded), recorded)
}

/// Returns the provider of a listed model or of a known family.
pub(super) fn family_of(recorded: &str) -> Option<Provider> {
    let family = |(prefix, _): &&(&str, Provider)| bare(recorded).starts_with(prefix);
    let listed = listed_in(recorded).map(|m| m.provider);
    listed.or_else(|| FAMILIES.iter().find(family).map(|(_, provider)| *provider))
}

/// Returns a substitute for a recorded model outside the catalogue, if its name determines the
/// provider. The candidates are this provider's models. The order of preference is: most name parts
/// in common (`gpt`, `codex`, `sonnet`), fewest other parts, nearest version, first in the
/// catalogue. A name without a version counts as the newest.
pub fn substitute(recorded: &str) -> Option<&'static Model> {
    let provider = family_of(recorded)?;
    let asked = Name::parse(bare(recorded));
    catalogue().iter().filter(|m| m.provider == provider).min_by_key(|m| {
        let listed = Name::parse(&m.name);
        let shared = listed.words.iter().filter(|w| asked.words.contains(w)).count();
        let own = listed.words.len() - shared;
        let apart = asked.version.unwrap_or(u64::MAX).abs_diff(listed.version.unwrap_or(0));
        (usize::MAX - shared, own, apart)
    })
}
