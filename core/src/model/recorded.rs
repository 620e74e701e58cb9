//! Finds the model of a recorded name: exactly, or by its family.

use std::collections::HashMap;
use std::iter::successors;
use std::sync::{LazyLock, Mutex, PoisonError};

use super::family::{family_of, keeps_thinking_by_name, listed_in, substitute};
use super::names::{Name, bare, with_less};
use super::{Model, Prices, Provider, catalogue, unlisted};

/// Maximum number of additions that are taken off a name.
const MOST_ADDED: usize = 4;

/// Finds the model of a recorded name: exactly, or without a date or a gateway's prefix and suffix
/// (`claude-sonnet-4-5-20250929`, `anthropic.claude-sonnet-4-5-20250929-v1:0`, `gpt-5-2025-08-07`), or
/// with its version after a dot (`anthropic/claude-sonnet-4.5`).
/// The longest catalogue name in it wins, unless the price file has another price for the exact name,
/// such as that of a region, also at the end of a path (`arn:aws:…/us.anthropic.…`). A model that the
/// catalogue lacks is one of the price file. A name that ends in `:free` costs nothing.
pub fn find_recorded(name: &str) -> Option<&'static Model> {
    let paid = name.strip_suffix(":free");
    let names = successors(paid.or(Some(name)), |name| with_less(name));
    let found = names.take(MOST_ADDED + 1).find_map(find_as_it_is)?;
    Some(if paid.is_some() { free(name, found) } else { found })
}

/// Returns a model without a price under another name.
fn free(name: &str, paid: &Model) -> &'static Model {
    static MODELS: LazyLock<Mutex<HashMap<String, &'static Model>>> =
        LazyLock::new(Default::default);
    let mut models = MODELS.lock().unwrap_or_else(PoisonError::into_inner);
    models.entry(name.to_string()).or_insert_with(|| {
        let (name, prices) = (name.into(), Prices::default());
        &*Box::leak(Box::new(Model { name, prices, ..paid.clone() }))
    })
}

fn find_as_it_is(name: &str) -> Option<&'static Model> {
    if let Some(listed) = catalogue().iter().find(|m| *m.name == *name) {
        return Some(listed);
    }
    let exact = unlisted::exact(name).or_else(|| unlisted::exact(name.rsplit('/').next()?));
    match listed_in(name).or_else(|| claude(name)) {
        Some(listed) => exact.filter(|m| m.prices != listed.prices).or(Some(listed)),
        None => exact.or_else(|| variant_of(name)).or_else(|| unlisted::named(name)),
    }
}

/// Finds a model of Anthropic, whose names others write in another order, with a dot, or without the
/// family: `claude-4.5-sonnet`, `sonnet-4.5`.
fn claude(name: &str) -> Option<&'static Model> {
    let Name { mut words, version } = Name::parse(bare(name));
    words.retain(|word| word != "claude");
    let ([size], Some(version)) = (&*words, version) else {
        return None;
    };
    if !["haiku", "sonnet", "opus", "fable", "mythos"].contains(&size.as_str()) {
        return None;
    }
    let (major, minor) = (version / 100, version % 100);
    let minor = if minor > 0 { format!("-{minor}") } else { String::new() };
    let name = format!("claude-{size}-{major}{minor}");
    catalogue().iter().find(|m| *m.name == *name).or_else(|| unlisted::named(&name))
}

/// Finds a model by its name without the last word: most of Google's are listed as previews, and xAI's
/// reason unless their name denies it.
fn variant_of(name: &str) -> Option<&'static Model> {
    let (family, _) = bare(name).split_once('-')?;
    let word =
        [("gemini", "preview"), ("grok", "reasoning")].into_iter().find(|w| w.0 == family)?.1;
    let whole = format!("{name}-{word}");
    listed_in(&whole).or_else(|| unlisted::named(&whole))
}

/// Returns whether a recorded model, listed or not, keeps the thinking of earlier turns.
pub fn keeps_thinking(recorded: &str) -> bool {
    find_recorded(recorded).map_or_else(|| keeps_thinking_by_name(recorded), |m| m.keeps_thinking)
}

/// Returns the provider of a recorded model, if the name determines it.
pub fn provider_of(recorded: &str) -> Option<Provider> {
    find_recorded(recorded).map(|m| m.provider).or_else(|| family_of(recorded))
}

/// Returns the model with the prices for a recorded name: the listed model, or its substitute.
pub fn priced_as(recorded: &str) -> Option<&'static Model> {
    find_recorded(recorded).or_else(|| substitute(recorded))
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
        assert_eq!(name("anthropic/claude-sonnet-4.5"), Some("claude-sonnet-4-5"));
        assert_eq!(name("claude-opus-4.5"), Some("claude-opus-4-5"));
        assert_eq!(name("gpt-5.1"), Some("gpt-5.1"));
        assert_eq!(name("gpt-5-2025-08-07"), Some("gpt-5"));
        assert_eq!(name("claude-4.5-sonnet"), Some("claude-sonnet-4-5"));
        assert_eq!(name("sonnet-4.5"), Some("claude-sonnet-4-5"));
        assert_eq!(name("openai:gpt-5-codex-high"), Some("gpt-5-codex"));
        assert_eq!(name("gemini-2.5-pro-preview-06-05"), Some("gemini-2.5-pro"));
        // A name of any length ends.
        assert_eq!(name(&format!("x{}", "-high".repeat(100_000))), None);
        assert_eq!(name(&format!("x{}", ":free".repeat(100_000))), None);
        assert_eq!(name("gpt-5-2025"), None, "no date");
        assert_eq!(name("gpt-5.9-codex"), None, "another model of the family is not this one");
        assert_eq!(name("o3-high"), Some("o3"));
        assert_eq!([name("mystery-1"), name("claude-none")], [None, None]);
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
            ("claude-4.1-opus", "anthropic.claude-opus-4-1-20250805-v1:0", (15.0, 1.5, 75.0)),
            ("gpt-5-mini-2025-08-07", "gpt-5-mini-2025-08-07", (0.25, 0.025, 2.0)),
            ("openai/gpt-4o-mini", "gpt-4o-mini", (0.15, 0.075, 0.6)),
            ("z-ai/glm-4.6", "zai/glm-4.6", (0.6, 0.11, 2.2)),
            ("Kimi-K2.6", "moonshot/kimi-k2.6", (0.95, 0.16, 4.0)),
            // Of gateways with the same prices, one that has a price of cached tokens.
            ("moonshotai/kimi-k2-thinking", "novita/moonshotai/kimi-k2-thinking", (0.6, 0.15, 2.5)),
            (
                "anthropic/claude-3.7-sonnet",
                "vercel_ai_gateway/anthropic/claude-3.7-sonnet",
                (3.0, 0.3, 15.0),
            ),
            ("qwen3-coder-plus", "dashscope/qwen3-coder-plus", (1.0, 0.1, 5.0)),
            // A local copy costs nothing, and a row without a window has a price all the same.
            ("qwen/qwen3-coder", "vercel_ai_gateway/alibaba/qwen3-coder", (0.4, 0.4, 1.6)),
            ("gpt-5.5-cyber", "gpt-5.5-cyber", (12.5, 1.25, 75.0)),
            ("claude-3-opus-latest", "anthropic.claude-3-opus-20240229-v1:0", (15.0, 1.5, 75.0)),
            // Google lists previews, and gateways charge for cached tokens in full.
            ("gemini-3-pro", "vertex_ai/gemini-3-pro-preview", (2.0, 0.2, 12.0)),
            ("google/gemini-3.1-pro", "gemini-3.1-pro-preview", (2.0, 0.2, 12.0)),
            ("gemini-3-flash", "gemini-3-flash-preview", (0.5, 0.05, 3.0)),
            ("x-ai/grok-4-fast", "azure_ai/grok-4-fast-reasoning", (0.2, 0.2, 0.5)),
            // A day without its year.
            ("grok-4-0709", "azure_ai/grok-4", (3.0, 3.0, 15.0)),
        ] {
            let m = find_recorded(recorded).unwrap();
            let p = &m.prices;
            assert_eq!((&*m.name, (p.input, p.read, p.output)), (listed, usd), "{recorded}");
        }
        let prices = |name: &str| find_recorded(name).map(|m| (m.prices.input, m.prices.output));
        assert_eq!(prices("gpt-5-mini-high"), Some((0.25, 2.0)));
        assert_eq!(prices("deepseek/deepseek-chat:free"), Some((0.0, 0.0)));
        // A region has its own price, and all else of the model.
        let region = "us.anthropic.claude-sonnet-4-5-20250929-v1:0";
        let profile = format!("arn:aws:bedrock:us-east-1:123456789012:inference-profile/{region}");
        for name in [region, &profile] {
            let region = find_recorded(name).unwrap();
            assert_eq!((region.prices.input, region.window), (3.3, 200_000));
        }
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
