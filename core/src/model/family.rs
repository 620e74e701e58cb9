//! Finds the model of a recorded name: exactly, or by its family.

use super::table::table;
use super::{Model, Provider, catalogue, unlisted};

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

/// Finds the model of a recorded name: exactly, or without a date or a gateway's prefix and suffix
/// (`claude-sonnet-4-5-20250929`, `anthropic.claude-sonnet-4-5-20250929-v1:0`, `gpt-5-2025-08-07`).
/// The longest catalogue name in it wins, unless the price file has another price for the exact name,
/// such as that of a region. A model that the catalogue lacks is one of the price file.
pub fn find_recorded(name: &str) -> Option<&'static Model> {
    if let Some(listed) = catalogue().iter().find(|m| *m.name == *name) {
        return Some(listed);
    }
    let exact = unlisted::exact(name);
    match listed_in(name) {
        Some(listed) => exact.filter(|m| m.prices != listed.prices).or(Some(listed)),
        None => exact.or_else(|| unlisted::named(name)),
    }
}

/// Returns the model of the catalogue with the longest name that a recorded name contains.
pub(super) fn listed_in(name: &str) -> Option<&'static Model> {
    let whole = |m: &&Model| is_name_of(name, &m.name);
    catalogue().iter().filter(whole).max_by_key(|m| m.name.len())
}

/// Returns whether a recorded model, listed or not, keeps the thinking of earlier turns.
pub fn keeps_thinking(recorded: &str) -> bool {
    find_recorded(recorded).map_or_else(|| keeps_thinking_by_name(recorded), |m| m.keeps_thinking)
}

/// Returns whether no rule about thinking is for the model.
pub(super) fn keeps_thinking_by_name(recorded: &str) -> bool {
    table().thinking.keeps(family_of(recorded), recorded)
}

/// Returns whether a recorded name is that of a model.
pub(super) fn is_name_of(recorded: &str, model: &str) -> bool {
    recorded.match_indices(model).any(|(at, found)| {
        let (before, after) = (&recorded[..at], &recorded[at + found.len()..]);
        let ends = after.is_empty()
            || after.starts_with(['@', ':', '['])
            || after.strip_prefix('-').is_some_and(begins_with_date);
        ends && (before.is_empty() || before.ends_with(['.', '/']))
    })
}

/// Returns a recorded name in lower case, without a gateway's prefix, version and date.
pub(super) fn base_name(recorded: &str) -> String {
    let name = recorded.to_ascii_lowercase();
    let name = bare(&name).split(['@', ':', '[']).next().unwrap_or_default();
    let name = name.strip_suffix("-v1").unwrap_or(name);
    let date = |(at, _): &(usize, &str)| begins_with_date(&name[at + 1..]);
    let end = name.match_indices('-').find(date).map_or(name.len(), |(at, _)| at);
    name[..end].to_string()
}

/// Returns whether a text begins with a date such as `20250929` or `2025-09-29`.
fn begins_with_date(text: &str) -> bool {
    let shaped = |shape: &str| {
        text.len() >= shape.len()
            && text.bytes().zip(shape.bytes()).all(|(c, s)| match s {
                b'0' => c.is_ascii_digit(),
                s => c == s,
            })
    };
    shaped("00000000") || shaped("0000-00-00")
}

/// Returns the provider of a recorded model, if the name determines it.
pub fn provider_of(recorded: &str) -> Option<Provider> {
    find_recorded(recorded).map(|m| m.provider).or_else(|| family_of(recorded))
}

/// Returns the provider of a listed model or of a known family.
fn family_of(recorded: &str) -> Option<Provider> {
    let family = |(prefix, _): &&(&str, Provider)| bare(recorded).starts_with(prefix);
    let listed = listed_in(recorded).map(|m| m.provider);
    listed.or_else(|| FAMILIES.iter().find(family).map(|(_, provider)| *provider))
}

/// Removes a gateway's prefix from a name: `openrouter/openai/`, `us.anthropic.`.
pub(super) fn bare(name: &str) -> &str {
    let mut bare = name.rsplit('/').next().unwrap_or(name);
    while let Some((head, tail)) = bare.split_once('.')
        && head.chars().all(char::is_alphabetic)
    {
        bare = tail;
    }
    // `chatgpt-4o-latest` is a GPT model.
    bare.strip_prefix("chat").filter(|b| b.starts_with("gpt")).unwrap_or(bare)
}

/// Returns the model with the prices for a recorded name: the listed model, or its substitute.
pub fn priced_as(recorded: &str) -> Option<&'static Model> {
    find_recorded(recorded).or_else(|| substitute(recorded))
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

/// Returns the version in a name, such as 405 for `claude-sonnet-4-5`.
pub(super) fn version(name: &str) -> Option<u64> {
    Name::parse(bare(name)).version
}

/// Parts of a name, and its version: `claude-sonnet-4-5` becomes `claude`, `sonnet` and 405.
struct Name {
    words: Vec<String>,
    version: Option<u64>,
}

impl Name {
    fn parse(name: &str) -> Name {
        let name = name.split(['@', ':', '[']).next().unwrap_or_default().to_ascii_lowercase();
        let mut words: Vec<String> = Vec::new();
        let mut numbers: Vec<u64> = Vec::new();
        for part in name.split(['-', '.', '_']) {
            // `4o` and `v3` contain a number and a word.
            let digits: String = part.chars().filter(char::is_ascii_digit).collect();
            let word: String = part.chars().filter(|c| !c.is_ascii_digit()).collect();
            if !word.is_empty() {
                words.push(word);
            }
            // Longer ones are dates.
            if (1..=2).contains(&digits.len()) && numbers.len() < 2 {
                numbers.extend(digits.parse::<u64>());
            } else if digits.len() > 2 {
                // A date is not a version.
                break;
            }
        }
        let version = numbers.first().map(|major| major * 100 + numbers.get(1).unwrap_or(&0));
        Name { words, version }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn find_recorded_ignores_dates_and_gateways() {
        let name = |n: &str| find_recorded(n).map(|m| &*m.name);
        assert_eq!(name("claude-sonnet-4-5-20250929"), Some("claude-sonnet-4-5"));
        assert_eq!(name("anthropic.claude-sonnet-4-5-20250929-v1:0"), Some("claude-sonnet-4-5"));
        assert_eq!(name("claude-opus-4-6[1m]"), Some("claude-opus-4-6"));
        assert_eq!(name("gpt-5.1"), Some("gpt-5.1"));
        assert_eq!(name("gpt-5-2025-08-07"), Some("gpt-5"));
        assert_eq!(name("gpt-5-2025"), None, "no date");
        assert_eq!(name("gpt-5.9-codex"), None, "another model of the family is not this one");
        assert_eq!(name("mystery-1"), None);
    }

    #[test]
    fn exact_names_come_before_relatives() {
        // Prices of the price file's version, in / read / out, by hand.
        for (recorded, listed, usd) in [
            // Only entries of gateways are left of a model that Anthropic retired.
            (
                "claude-opus-4-1-20250805",
                "anthropic.claude-opus-4-1-20250805-v1:0",
                (15.0, 1.5, 75.0),
            ),
            ("claude-opus-4-1", "anthropic.claude-opus-4-1-20250805-v1:0", (15.0, 1.5, 75.0)),
            ("gpt-5-mini-2025-08-07", "gpt-5-mini-2025-08-07", (0.25, 0.025, 2.0)),
            ("openai/gpt-4o-mini", "gpt-4o-mini", (0.15, 0.075, 0.6)),
            ("z-ai/glm-4.6", "zai/glm-4.6", (0.6, 0.11, 2.2)),
            ("Kimi-K2.6", "moonshot/kimi-k2.6", (0.95, 0.16, 4.0)),
            ("qwen3-coder-plus", "dashscope/qwen3-coder-plus", (1.0, 0.1, 5.0)),
        ] {
            let m = find_recorded(recorded).unwrap();
            let p = &m.prices;
            assert_eq!((&*m.name, (p.input, p.read, p.output)), (listed, usd), "{recorded}");
        }
        // A region has its own price, and all else of the model.
        let region = find_recorded("us.anthropic.claude-sonnet-4-5-20250929-v1:0").unwrap();
        assert_eq!((region.prices.input, region.window), (3.3, 200_000));
    }

    #[test]
    fn long_prompts_pay_the_tier_that_they_reach() {
        let m = find_recorded("qwen3-coder-plus").unwrap();
        let tiers: Vec<_> = m.prices.long.iter().map(|t| (t.from, t.input_factor)).collect();
        assert_eq!(tiers, [(32_000, 1.8), (128_000, 3.0), (256_000, 6.0)]);
        let usd = |input| {
            let usage = crate::usage::Usage { input, ..Default::default() };
            crate::model::cost(m, &usage).total()
        };
        assert!((usd(32_000) - 0.032).abs() < 1e-9);
        assert!((usd(100_000) - 0.18).abs() < 1e-9);
        assert!((usd(200_000) - 0.6).abs() < 1e-9);
    }

    #[test]
    fn the_vocabulary_of_claude_changed_with_opus_4_7() {
        use crate::model::Counting;
        for (recorded, counting) in [
            ("claude-opus-4-6", Counting::CLAUDE),
            ("claude-3-7-sonnet-20250219", Counting::CLAUDE),
            ("claude-opus-4-7", Counting::CLAUDE_4_7),
            ("us.anthropic.claude-opus-4-8", Counting::CLAUDE_4_7),
            ("claude-sonnet-5", Counting::CLAUDE_4_7),
            ("claude-fable-5-1", Counting::CLAUDE_4_7),
            ("claude-opus-9", Counting::CLAUDE_4_7),
        ] {
            assert_eq!(priced_as(recorded).unwrap().counting, counting, "{recorded}");
        }
    }

    #[test]
    fn provider_of_recognises_families() {
        use Provider::{Anthropic, Openai};
        for (name, provider) in [
            ("claude-x-9", Some(Anthropic)),
            ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", Some(Anthropic)),
            ("gpt-9", Some(Openai)),
            ("openrouter/openai/o1-preview", Some(Openai)),
            ("m", None),
        ] {
            assert_eq!(provider_of(name), provider, "{name}");
        }
    }

    #[test]
    fn substitute_is_nearest_of_the_family() {
        for (recorded, listed) in [
            ("gpt-5.9-foo", Some("gpt-5.5")),
            ("gpt-5.2-codex", Some("gpt-5.3-codex")),
            ("gpt-5-mini-2025-08-07", Some("gpt-5.4-mini")),
            ("openai/gpt-4o-2024-11-20", Some("gpt-4.1")),
            ("o1", Some("o3")),
            ("chatgpt-4o-latest", Some("gpt-4.1")),
            ("claude-3-5-haiku-20241022", Some("claude-haiku-4-5")),
            ("us.anthropic.claude-opus-4-20250514-v1:0", Some("claude-opus-4-5")),
            ("claude-sonnet-4-7", Some("claude-sonnet-4-6")),
            ("claude-sonnet-latest", Some("claude-sonnet-5-5")),
            ("gemini-2.0-flash", Some("gemini-2.5-flash")),
            ("grok-code-fast-2", Some("grok-code-fast-1")),
            ("qwen3-coder", None),
        ] {
            assert_eq!(substitute(recorded).map(|m| &*m.name), listed, "{recorded}");
        }
    }
}
