//! Finds the model of a recorded name: exactly, or by its family.

use super::table::table;
use super::{Model, Provider, catalogue, find};

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

/// Finds the model of a recorded name: exactly, or without a date or a gateway's prefix and suffix (`claude-sonnet-4-5-20250929`, `anthropic.claude-sonnet-4-5-20250929-v1:0`,
/// `gpt-5-2025-08-07`). The longest catalogue name in it wins.
pub fn find_recorded(name: &str) -> Option<&'static Model> {
    let whole = |m: &&Model| is_name_of(name, &m.name);
    find(name).ok().or_else(|| catalogue().iter().filter(whole).max_by_key(|m| m.name.len()))
}

/// Returns whether a recorded model, listed or not, keeps the thinking of earlier turns.
pub fn keeps_thinking(recorded: &str) -> bool {
    let unlisted = || !table().leaving_thinking_out.iter().any(|m| is_name_of(recorded, m));
    find_recorded(recorded).map_or_else(unlisted, |m| m.keeps_thinking)
}

/// Returns whether a recorded name is that of a model.
fn is_name_of(recorded: &str, model: &str) -> bool {
    recorded.match_indices(model).any(|(at, found)| {
        let (before, after) = (&recorded[..at], &recorded[at + found.len()..]);
        let ends = after.is_empty()
            || after.starts_with(['@', ':', '['])
            || after.strip_prefix('-').is_some_and(begins_with_date);
        ends && (before.is_empty() || before.ends_with(['.', '/']))
    })
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
    let known = find_recorded(recorded).map(|m| m.provider);
    known.or_else(|| {
        FAMILIES.iter().find(|(family, _)| bare(recorded).starts_with(family)).map(|(_, p)| *p)
    })
}

/// Removes a gateway's prefix from a name: `openrouter/openai/`, `us.anthropic.`.
fn bare(name: &str) -> &str {
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
    let provider = provider_of(recorded)?;
    let asked = Name::parse(bare(recorded));
    catalogue().iter().filter(|m| m.provider == provider).min_by_key(|m| {
        let listed = Name::parse(&m.name);
        let shared = listed.words.iter().filter(|w| asked.words.contains(w)).count();
        let own = listed.words.len() - shared;
        let apart = asked.version.unwrap_or(u64::MAX).abs_diff(listed.version.unwrap_or(0));
        (usize::MAX - shared, own, apart)
    })
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
        assert_eq!(name("us.anthropic.claude-sonnet-4-5-20250929-v1:0"), Some("claude-sonnet-4-5"));
        assert_eq!(name("claude-opus-4-6[1m]"), Some("claude-opus-4-6"));
        assert_eq!(name("gpt-5.1"), Some("gpt-5.1"));
        assert_eq!(name("gpt-5-2025-08-07"), Some("gpt-5"));
        assert_eq!(name("gpt-5-2025"), None, "no date");
        assert_eq!(name("gpt-5.1-codex"), None, "another model of the family is not this one");
        assert_eq!(name("mystery-1"), None);
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
