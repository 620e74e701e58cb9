use super::*;

#[test]
fn the_catalogue_is_sound() {
    let mut names: Vec<&str> = catalogue().iter().map(|m| &*m.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), catalogue().len(), "names are unique");
    let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
    for m in catalogue() {
        let check = |holds: bool, what: &str| assert!(holds, "{}: {what}", m.name);
        let (weak, p) = (find(&m.weak).unwrap(), &m.prices);
        check(weak.provider == m.provider && m.is_priced() && !m.source.is_empty(), "weak, priced");
        let all = [p.input, p.write_5m, p.write_1h, p.read, p.output];
        check(all.iter().all(|x| *x > 0.0), "prices are above 0");
        check(p.read < p.input && p.input < p.output, "order of prices");
        check(m.max_output <= m.window && m.input_limit.is_none_or(|l| l < m.window), "limits");
        check(
            weak.prices.input <= p.input && weak.prices.output <= p.output,
            "side work is dearer",
        );
        check(weak.retired().is_none() || m.retired().is_some(), "side work by a retired model");
        check(m.cache.needs_breakpoints() == (m.provider == Provider::Anthropic), "breakpoints");
        check(m.cache.minimum > 0 && m.cache.step > 0 && m.cache.short_ms > 0, "cache");
        // docs/sources/anthropic-api.md §2.1 and docs/sources/providers.md §3: 1.25 times for
        // the short lifetime; twice (Anthropic) or 2.5 times (OpenAI) for the long.
        let (short, long) = match (m.cache.write_fee, m.provider) {
            (true, Provider::Anthropic) => (1.25, 2.0),
            (true, _) => (1.25, 2.5),
            (false, _) => (1.0, 1.0),
        };
        check(close(p.write_5m, short * p.input) && close(p.write_1h, long * p.input), "writes");
    }
    let default = find(DEFAULT_MODEL).unwrap();
    assert_eq!((default.window, &default.deprecated), (200_000, &None));
    assert!(find("claude-sonet-4-6").unwrap_err().to_string().contains(DEFAULT_MODEL));
}

#[test]
fn thinking_of_earlier_turns_is_left_out_by_the_older_models() {
    let names = |keeps: bool| -> Vec<&str> {
        let claude = catalogue().iter().filter(|m| m.provider == Provider::Anthropic);
        claude.filter(|m| m.keeps_thinking == keeps).map(|m| &*m.name).collect()
    };
    assert_eq!(names(false), ["claude-sonnet-4-5", "claude-haiku-4-5"]);
    for kept in ["claude-opus-4-5", "claude-opus-4-6", "claude-sonnet-4-6", "claude-haiku-5-5"] {
        assert!(names(true).contains(&kept) && keeps_thinking(kept), "{kept}");
    }
    for m in catalogue().iter().filter(|m| m.provider != Provider::Anthropic) {
        let older = ["gpt-4", "gpt-5.", "gpt-5-", "o3", "o4"].iter().any(|n| m.name.starts_with(n));
        let older = (older || &*m.name == "gpt-5") && !m.name.starts_with("gpt-5.6");
        assert_eq!(m.keeps_thinking, !older, "{}", m.name);
    }
    // Names in recordings, of models that the catalogue does not list, too.
    for (name, keeps) in [
        ("claude-sonnet-4-5-20250929", false),
        ("us.anthropic.claude-opus-4-1-20250805-v1:0", false),
        ("claude-opus-4-20250514", false),
        ("claude-3-7-sonnet-latest", false),
        ("claude-opus-4-5-20251101", true),
        ("claude-opus-4-9", true),
        ("gpt-5.5", false),
        ("openai/gpt-5.3-codex-2026-02-01", false),
        ("gpt-5.6-sol", true),
        ("gpt-6-astra", true),
        ("codex-next", true),
    ] {
        assert_eq!(keeps_thinking(name), keeps, "{name}");
    }
}

#[test]
fn every_price_list_of_the_facts_is_there() {
    // docs/sources/providers.md §3 and §4: in / cached / out.
    for (name, input, read, output) in [
        ("gpt-6-astra", 10.0, 1.0, 50.0),
        ("gpt-6.1-sol", 2.0, 0.1, 10.0),
        ("gpt-5.6-luna", 0.2, 0.02, 1.2),
        ("gemini-2.5-pro", 1.25, 0.125, 10.0),
        ("gemini-3.5-flash", 1.5, 0.15, 9.0),
        ("gemini-3.8-flash", 0.75, 0.075, 3.75),
        ("deepseek-v4-flash", 0.3, 0.006, 1.2),
        ("deepseek-chat", 0.28, 0.028, 0.42),
        ("grok-4.7", 2.0, 0.5, 6.0),
        ("grok-code-fast-1", 1.0, 0.2, 2.0),
    ] {
        let p = find(name).unwrap().prices.clone();
        assert_eq!((p.input, p.read, p.output), (input, read, output), "{name}");
    }
}

#[test]
fn limits_tiers_and_retirements_are_those_of_the_sources() {
    // https://platform.claude.com/docs/en/build-with-claude/prompt-caching: 512 of the 5.5
    // generation; https://ai.google.dev/gemini-api/docs/caching.
    for (name, minimum) in [
        ("claude-sonnet-5-5", 512),
        ("claude-opus-5-5", 512),
        ("claude-haiku-5-5", 512),
        ("claude-sonnet-5", 1_024),
        ("gemini-2.5-pro", 2_048),
        ("gemini-2.5-flash", 2_048),
        ("gemini-3-flash-preview", 4_096),
        ("gemini-3.5-flash", 4_096),
        ("gemini-3.8-flash", 4_096),
    ] {
        assert_eq!(find(name).unwrap().cache.minimum, minimum, "{name}");
    }
    for (name, output) in
        [("deepseek-v4-pro", 393_216), ("grok-4.7", 500_000), ("grok-code-fast-1", 256_000)]
    {
        assert_eq!(find(name).unwrap().max_output, output, "{name}");
    }
    for name in ["grok-4.5", "grok-code-fast-1"] {
        let p = find(name).unwrap().prices.clone();
        let tier = LongPrice { from: 200_000, input_factor: 2.0, output_factor: 2.0 };
        assert_eq!(p.long, [tier], "{name}");
    }
    let retired: Vec<&str> =
        catalogue().iter().filter(|m| m.retired().is_some()).map(|m| &*m.name).collect();
    assert_eq!(
        retired,
        [
            "gpt-5-codex",
            "o4-mini",
            "gemini-2.5-pro",
            "gemini-2.5-flash",
            "deepseek-chat",
            "grok-code-fast-1"
        ]
    );
    assert_eq!(find("gpt-5-codex").unwrap().retired(), Some("2026-07-23"));
    let announced = find("gpt-5").unwrap();
    assert_eq!((announced.deprecated.as_deref(), announced.retired()), (Some("2026-12-11"), None));
}

#[test]
fn the_table_says_which_one_it_is() {
    let (origin, hash) = price_table().split_once(" + overrides, ").unwrap();
    assert_eq!(origin, "litellm 1.109.1");
    assert!(hash.len() == 8 && hash.bytes().all(|b| b.is_ascii_hexdigit()), "{hash}");
}

#[test]
fn the_assumed_latency_fits_the_compactions_that_were_timed() {
    let l = find(DEFAULT_MODEL).unwrap().latency;
    // Warm, 186,805 tokens in, 4,413 out: 25-28 s seen.
    let warm = l.a_ms + l.c_ms * 186_805.0 + l.d_ms * 4_413.0;
    assert!((24_000.0..29_000.0).contains(&warm), "{warm}");
}

#[test]
fn the_hash_of_the_table_covers_the_terms_of_calls() {
    let texts = [include_str!("models.toml"), include_str!("rules.toml")];
    let hash = |texts: &[&str]| {
        format!("{:08x}", crate::tokens::content_hash(texts.join("\n").as_bytes()) >> 32)
    };
    let named = |terms: &str| hash(&[texts[0], texts[1], terms, table::OTHERS]);
    assert!(price_table().ends_with(&named(TERMS)));
    assert_ne!(named(TERMS), named(&TERMS.replace("factor = 0.5", "factor = 0.4")));
}
