//! Worked examples of the cache rules, with the arithmetic in the comments.

use std::sync::Arc;

use super::cache::{Prefix, PromptCache};
use super::prompt::{Item, Prompt, plain};
use ctxbench_core::block::Role;
use ctxbench_core::model::{CacheRule, Counting, find};
use ctxbench_core::request::{ErrorKind, Tools};
use ctxbench_core::tokens::Size;
use ctxbench_core::usage::{Ttl, Usage};

const MINUTE: u64 = 60_000;

fn rule(model: &str) -> CacheRule {
    find(model).unwrap().cache
}

/// Cache of Anthropic with a minimum of 1,024 tokens.
fn anthropic() -> PromptCache {
    PromptCache::new(rule("claude-sonnet-4-6"))
}

/// Cache of OpenAI for models up to gpt-5.5.
fn openai() -> PromptCache {
    PromptCache::new(rule("gpt-5.5"))
}

/// Returns a text of exactly `n` billed tokens, distinguished by its first word: `id` and " x" are
/// one token each in o200k.
fn text(id: usize, n: u64) -> Arc<str> {
    const WORDS: [&str; 10] =
        ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];
    let words = [WORDS[id / 10 % 10], " ", WORDS[id % 10]].concat();
    let left = n - Counting::O200K.block(Size::text(&words));
    let text = words + &" hello".repeat(left as usize);
    assert_eq!(Counting::O200K.block(Size::text(&text)), n);
    text.into()
}

fn prompt(sizes: &[u64], marks: &[(usize, Ttl)]) -> Prompt {
    let item = |(i, n): (usize, &u64)| {
        let cache = marks.iter().find(|(at, _)| *at == i).map(|(_, ttl)| *ttl);
        Item::new(Role::User, plain(text(i, *n)), 1, cache)
    };
    let items = sizes.iter().enumerate().map(item).collect();
    Prompt::new("m", items)
}

fn five(sizes: &[u64], marks: &[usize]) -> Prompt {
    prompt(sizes, &marks.iter().map(|m| (*m, Ttl::FiveMinutes)).collect::<Vec<_>>())
}

/// Sends a prompt whose reply begins at once.
fn send(cache: &mut PromptCache, prompt: &Prompt, at: u64) -> Usage {
    cache.use_prefixes(&prompt.prefixes(&Counting::O200K), at, at)
}

fn used(read: u64, write_5m: u64, write_1h: u64, uncached: u64) -> Usage {
    Usage {
        input: uncached,
        cache_read: read,
        cache_write: write_5m,
        cache_write_1h: write_1h,
        ..Usage::default()
    }
}

#[test]
fn a_growing_conversation_reads_what_it_wrote() {
    let mut c = anthropic();
    // 2,000 + 100 up to the breakpoint are written, the 50 after it are plain input.
    assert_eq!(send(&mut c, &five(&[2_000, 100, 50], &[1]), 0), used(0, 2_100, 0, 50));
    // The breakpoint moved on: 2,100 are found one position before it, 50 + 300 are new.
    assert_eq!(send(&mut c, &five(&[2_000, 100, 50, 300], &[3]), 1_000), used(2_100, 350, 0, 0));
    // Another ending: position 3 differs, 50 at position 2 was never a breakpoint, so the hit is
    // 2,100 again.
    assert_eq!(send(&mut c, &five(&[2_000, 100, 50, 301], &[3]), 2_000), used(2_100, 351, 0, 0));
}

#[test]
fn twenty_positions_are_checked_and_no_more() {
    let mut c = anthropic();
    send(&mut c, &five(&[2_000], &[0]), 0);
    // Breakpoint at position 19 checks 19, 18, … 0: twenty positions. 19 items of 10 tokens are
    // new.
    let mut sizes = vec![2_000];
    sizes.extend([10; 19]);
    assert_eq!(send(&mut c.clone(), &five(&sizes, &[19]), 0), used(2_000, 190, 0, 0));
    // At position 20 the lookback ends at 1: everything is written again.
    sizes.push(10);
    assert_eq!(send(&mut c.clone(), &five(&sizes, &[20]), 0), used(0, 2_200, 0, 0));
    // A second breakpoint at the old place finds it.
    assert_eq!(send(&mut c, &five(&sizes, &[0, 20]), 0), used(2_000, 200, 0, 0));
}

#[test]
fn below_the_minimum_nothing_is_cached() {
    let mut c = anthropic();
    for _ in 0..2 {
        assert_eq!(send(&mut c, &five(&[1_000, 23], &[1]), 0), used(0, 0, 0, 1_023));
    }
    // 1,024 up to the breakpoint is enough.
    assert_eq!(send(&mut c, &five(&[1_000, 24], &[1]), 0), used(0, 1_024, 0, 0));
    assert_eq!(send(&mut c, &five(&[1_000, 24], &[1]), 0), used(1_024, 0, 0, 0));
}

#[test]
fn entries_live_five_minutes_from_their_last_use() {
    let p = five(&[2_000], &[0]);
    let mut c = anthropic();
    send(&mut c, &p, 0);
    // Used after 4 and after 8 minutes: each use begins five more.
    assert_eq!(send(&mut c, &p, 4 * MINUTE).cache_read, 2_000);
    assert_eq!(send(&mut c, &p, 8 * MINUTE).cache_read, 2_000);
    // Five minutes after the last use it has expired and is written again.
    assert_eq!(send(&mut c, &p, 13 * MINUTE), used(0, 2_000, 0, 0));
}

#[test]
fn a_system_breakpoint_outlives_a_changed_conversation() {
    let mut c = anthropic();
    send(&mut c, &five(&[2_000, 100], &[0, 1]), 0);
    // The hit at position 1 uses position 0 too, so both live until 9 minutes.
    send(&mut c, &five(&[2_000, 100], &[0, 1]), 4 * MINUTE);
    // A compaction put something else at position 1: 2,000 are read, 200 written.
    assert_eq!(send(&mut c, &five(&[2_000, 200], &[0, 1]), 8 * MINUTE), used(2_000, 200, 0, 0));
}

#[test]
fn one_hour_entries_are_written_and_billed_apart() {
    let mut c = anthropic();
    let p = prompt(&[2_000, 500, 50], &[(0, Ttl::OneHour), (1, Ttl::FiveMinutes)]);
    assert_eq!(send(&mut c, &p, 0), used(0, 500, 2_000, 50));
    // After ten minutes the five-minute part has expired.
    assert_eq!(send(&mut c, &p, 10 * MINUTE), used(2_000, 500, 0, 50));
}

#[test]
fn an_entry_is_usable_when_its_reply_has_begun() {
    let p = five(&[2_000], &[0]);
    let mut c = anthropic();
    let all = p.prefixes(&Counting::O200K);
    c.use_prefixes(&all, 0, 3_000);
    // Sent at the same time as the first: both pay for the write.
    assert_eq!(c.use_prefixes(&all, 2_999, 6_000), used(0, 2_000, 0, 0));
    assert_eq!(c.use_prefixes(&all, 3_000, 4_000), used(2_000, 0, 0, 0));
}

#[test]
fn five_breakpoints_and_a_wrong_order_are_refused() {
    let check = |c: PromptCache, p: &Prompt| c.validate(&p.prefixes(&Counting::O200K));
    let sizes = [100; 5];
    assert!(check(anthropic(), &five(&sizes, &[0, 1, 2, 3])).is_ok());
    let e = check(anthropic(), &five(&sizes, &[0, 1, 2, 3, 4])).unwrap_err();
    assert_eq!((e.kind, e.status), (ErrorKind::Invalid, 400));
    let [short, long] = [(0, Ttl::FiveMinutes), (0, Ttl::OneHour)];
    assert!(check(anthropic(), &prompt(&sizes, &[short, (1, Ttl::OneHour)])).is_err());
    assert!(check(anthropic(), &prompt(&sizes, &[long, (1, Ttl::FiveMinutes)])).is_ok());
    assert!(check(openai(), &five(&sizes, &[0, 1, 2, 3, 4])).is_ok());
    let newest = PromptCache::new(rule("gpt-6-sol"));
    assert!(check(newest, &five(&sizes, &[0, 1, 2, 3, 4])).is_err());
}

#[test]
fn tools_come_before_everything_else() {
    let with_tools = |json: &str| {
        let tools = serde_json::value::RawValue::from_string(json.into()).unwrap();
        Prompt { tools: Some(Tools::from_json(tools)), ..five(&[2_000], &[0]) }
    };
    let mut c = anthropic();
    let first = with_tools("[1]");
    assert_eq!(send(&mut c, &first, 0), used(0, first.tokens(&Counting::O200K), 0, 0));
    assert_eq!(send(&mut c, &first, 0).cache_read, 2_000 + first.tools_tokens(&Counting::O200K));
    assert_eq!(send(&mut c, &with_tools("[2]"), 0).cache_read, 0);
}

#[test]
fn automatic_caching_hits_in_steps_from_its_minimum() {
    // OpenAI's guide: hits begin at 1,024 tokens and grow by 128: 1,024, 1,152, 1,280, …
    for (size, hit) in
        [(1_023, 0), (1_024, 1_024), (1_100, 1_024), (1_151, 1_024), (1_152, 1_152), (1_300, 1_280)]
    {
        let mut c = openai();
        assert_eq!(send(&mut c, &prompt(&[size], &[]), 0), used(0, 0, 0, size));
        // The same start, then something else: 100 more tokens are uncached in any case.
        assert_eq!(send(&mut c, &prompt(&[size, 100], &[]), 1), used(hit, 0, 0, size + 100 - hit));
    }
}

#[test]
fn automatic_caching_takes_the_longest_common_prefix() {
    let mut c = openai();
    send(&mut c, &prompt(&[2_000, 500, 300], &[]), 0);
    // Third item differs: 2,500 in common = 19 steps of 128 = 2,432.
    assert_eq!(send(&mut c, &prompt(&[2_000, 500, 301], &[]), 1), used(2_432, 0, 0, 2_801 - 2_432));
    // Ten minutes after the last use of the common part it has expired.
    assert_eq!(send(&mut c, &prompt(&[2_000, 500, 301], &[]), 600_001).cache_read, 0);
    assert_eq!(send(&mut c, &prompt(&[2_000, 500, 301], &[]), 1_200_000).cache_read, 2_688);
}

/// Builds a prompt like `prompt`, with roles: `u` is the user, `a` is the model.
fn talk(pieces: &[(char, usize, u64)]) -> Prompt {
    let item = |&(who, id, n): &(char, usize, u64)| {
        let role = if who == 'a' { Role::Assistant } else { Role::User };
        Item::new(role, plain(text(id, n)), 1, None)
    };
    Prompt { items: pieces.iter().map(item).collect(), ..five(&[], &[]) }
}

#[test]
fn from_gpt_5_6_every_prompt_is_written_to_its_end_and_read_in_steps() {
    let mut c = PromptCache::new(rule("gpt-5.6-sol"));
    // No breakpoint is requested: one is at the end, everything is written.
    assert_eq!(send(&mut c, &prompt(&[2_000, 500], &[]), 0), used(0, 2_500, 0, 0));
    // 300 more: of 2,500, 19 steps of 128 are read, and the rest is written again.
    assert_eq!(send(&mut c, &prompt(&[2_000, 500, 300], &[]), 1), used(2_432, 368, 0, 0));
    // The second piece differs: 2,000 in common, but without a breakpoint there, and a shorter
    // prefix is not tried.
    assert_eq!(send(&mut c, &prompt(&[2_000, 501], &[]), 2), used(0, 2_501, 0, 0));
    // With a breakpoint after the first piece, the next change costs 582 tokens instead of 2,502.
    assert_eq!(send(&mut c, &five(&[2_000, 503], &[0]), 3), used(0, 2_503, 0, 0));
    assert_eq!(send(&mut c, &prompt(&[2_000, 502], &[]), 4), used(1_920, 582, 0, 0));
}

#[test]
fn from_gpt_5_6_breakpoints_are_limited_and_live_half_an_hour_or_twelve() {
    let new = || PromptCache::new(rule("gpt-6-sol"));
    // Four explicit breakpoints leave none at the end: the last 50 are plain input. 1,024 is the
    // minimum.
    let sizes = [1_100, 100, 100, 100, 50];
    assert_eq!(send(&mut new(), &five(&sizes, &[0, 1, 2, 3]), 0), used(0, 1_400, 0, 50));
    assert_eq!(send(&mut new(), &five(&sizes, &[0, 1, 2]), 0), used(0, 1_450, 0, 0));
    assert_eq!(send(&mut new(), &prompt(&[1_000, 23], &[]), 0), used(0, 0, 0, 1_023));
    // Thirty minutes after the last use.
    let p = prompt(&[2_000], &[]);
    let mut c = new();
    send(&mut c, &p, 0);
    assert_eq!(send(&mut c, &p, 29 * MINUTE).cache_read, 1_920);
    assert_eq!(send(&mut c, &p, 59 * MINUTE), used(0, 2_000, 0, 0));
    // Twelve hours, at 2.5 times: 2 USD per million is the input price.
    let long = prompt(&[2_000, 500], &[(0, Ttl::OneHour)]);
    let mut c = new();
    assert_eq!(send(&mut c, &long, 0), used(0, 500, 2_000, 0));
    assert_eq!(send(&mut c, &long, 11 * 60 * MINUTE), used(1_920, 500, 80, 0));
    assert_eq!(find("gpt-6-sol").unwrap().prices.write_1h, 5.0);
}

#[test]
fn from_gpt_5_6_distance_does_not_matter_and_eighty_breakpoints_are_considered() {
    let mut c = PromptCache::new(rule("gpt-5.6-sol"));
    send(&mut c, &prompt(&[2_000], &[]), 0);
    // 90 pieces of 10 further on, in one go: still found (Anthropic would check 20 positions).
    let sizes: Vec<u64> = std::iter::once(2_000).chain(std::iter::repeat_n(10, 90)).collect();
    assert_eq!(send(&mut c.clone(), &prompt(&sizes, &[]), 1), used(1_920, 980, 0, 0));
    // One prompt per piece, 30 minutes less 1 s apart, each ending the life of none: then let all
    // but the first die by keeping it alone.
    for n in 2..=81 {
        send(&mut c, &prompt(&sizes[..n], &[]), 2);
    }
    send(&mut c, &prompt(&[2_000], &[]), 20 * MINUTE);
    // At 35 minutes only the first is alive. 79 expired breakpoints (2 to 80 pieces) follow it, so
    // it is the 80th and still considered.
    assert_eq!(send(&mut c.clone(), &prompt(&sizes[..80], &[]), 35 * MINUTE).cache_read, 1_920);
    // With 80 expired breakpoints it is the 81st.
    assert_eq!(send(&mut c, &prompt(&sizes[..81], &[]), 35 * MINUTE).cache_read, 0);
}

#[test]
fn gemini_and_xai_cache_by_themselves_without_a_fee() {
    // (model, minimum, lifetime): Gemini 2.5 from 2,048; lifetimes are assumed.
    for (model, minimum, life) in
        [("gemini-2.5-pro", 2_048, 5), ("gemini-2.5-flash", 2_048, 5), ("grok-4.7", 1_024, 10)]
    {
        let mut c = PromptCache::new(rule(model));
        let p = prompt(&[minimum - 1], &[]);
        send(&mut c, &p, 0);
        assert_eq!(send(&mut c, &p, 1), used(0, 0, 0, minimum - 1), "{model} below its minimum");
        let p = prompt(&[minimum, 777], &[]);
        assert_eq!(
            send(&mut c, &p, 2),
            used(0, 0, 0, minimum + 777),
            "{model}: nothing is written at a price"
        );
        assert_eq!(send(&mut c, &p, 3), used(minimum + 777, 0, 0, 0), "{model}: no steps");
        assert_eq!(
            send(&mut c, &prompt(&[minimum, 778], &[]), 4),
            used(minimum, 0, 0, 778),
            "{model}: longest common prefix"
        );
        let late = life * MINUTE + 4;
        assert_eq!(send(&mut c, &p, late).cache_read, 0, "{model} after its lifetime");
        let prices = &find(model).unwrap().prices;
        assert_eq!((prices.write_5m, prices.write_1h), (prices.input, prices.input));
    }
}

#[test]
fn deepseek_hits_whole_units_only() {
    let mut c = PromptCache::new(rule("deepseek-chat"));
    let first = [('u', 1, 2_000), ('u', 2, 500)];
    assert_eq!(send(&mut c, &talk(&first), 0), used(0, 0, 0, 2_500));
    // The conversation continues: input (2,500) and reply (300) were stored together, the 80 after
    // them are new.
    let second = [first[0], first[1], ('a', 3, 300), ('u', 4, 80)];
    assert_eq!(send(&mut c, &talk(&second), 1), used(2_800, 0, 0, 80));
    // Another second piece: 2,000 in common, but no unit ends there.
    assert_eq!(send(&mut c, &talk(&[first[0], ('u', 5, 400)]), 2), used(0, 0, 0, 2_400));
    // The common part was detected by that: the third to begin so reads it.
    assert_eq!(send(&mut c, &talk(&[first[0], ('u', 6, 90)]), 3), used(2_000, 0, 0, 90));
    // Text of the model after a common part is not a reply to it.
    assert_eq!(send(&mut c, &talk(&[first[0], ('a', 7, 90)]), 4), used(2_000, 0, 0, 90));
    // 64 tokens are a unit, 63 are not.
    for (n, read) in [(63, 0), (64, 64)] {
        send(&mut c, &talk(&[('u', 8, n)]), 5);
        assert_eq!(send(&mut c, &talk(&[('u', 8, n)]), 6).cache_read, read);
    }
    // A day after the last use (assumed).
    let day = 24 * 60 * MINUTE;
    assert_eq!(send(&mut c, &talk(&first), day).cache_read, 2_500);
    assert_eq!(send(&mut c, &talk(&first), 2 * day + 1).cache_read, 0);
}

#[test]
fn without_lifetimes_nothing_expires() {
    let p = five(&[2_000], &[0]);
    let mut c = PromptCache::new(rule("claude-sonnet-4-6").without_lifetimes());
    send(&mut c, &p, 0);
    assert_eq!(send(&mut c, &p, 1_000_000 * MINUTE).cache_read, 2_000);
}

mod properties {
    use proptest::prelude::*;

    use super::super::cache::{Prefix, PromptCache};
    use ctxbench_core::model::{CacheRule, catalogue};
    use ctxbench_core::usage::Ttl;

    /// Steps of one prompt: (identity, tokens, breakpoint, from the model), and the time since the
    /// previous prompt.
    type Step = (u64, u64, Option<bool>, bool);

    fn steps() -> impl Strategy<Value = Vec<(Vec<Step>, u64)>> {
        let step =
            (0..3u64, 0..3_000u64, proptest::option::weighted(0.2, any::<bool>()), any::<bool>());
        proptest::collection::vec((proptest::collection::vec(step, 0..30), 0..4_000_000u64), 1..12)
    }

    /// Returns the prefixes of a prompt of these steps.
    fn prefixes(steps: &[Step], rule: &CacheRule) -> Vec<Prefix> {
        let (mut hash, mut tokens, mut marks) = (7u64, 0, 0);
        let prefix = |&(id, size, mark, reply): &Step| {
            hash = hash.wrapping_mul(1_099_511_628_211) ^ (id * 4_096 + size + 1);
            tokens += size;
            marks += usize::from(mark.is_some());
            let ttl = |long| if long { Ttl::OneHour } else { Ttl::FiveMinutes };
            let cache = mark.filter(|_| marks <= rule.breakpoints).map(ttl);
            Prefix { hash, tokens, cache, reply }
        };
        steps.iter().map(prefix).collect()
    }

    proptest! {
        /// Read + written + plain = prompt, for every rule and any row of prompts; nothing is read
        /// that was not shown before.
        #[test]
        fn the_four_kinds_add_up(prompts in steps()) {
            for model in catalogue() {
                let (mut cache, mut now) = (PromptCache::new(model.cache), 0);
                let mut shown = std::collections::HashSet::new();
                for (steps, gap) in &prompts {
                    now += gap;
                    let all = prefixes(steps, &model.cache);
                    let tokens = all.last().map_or(0, |p| p.tokens);
                    let common = all.iter().filter(|p| shown.contains(&p.hash)).map(|p| p.tokens).max().unwrap_or(0);
                    let u = cache.use_prefixes(&all, now, now + 500);
                    prop_assert_eq!(u.prompt(), tokens, "{}", &model.name);
                    let own_words = if model.cache.entries == ctxbench_core::model::Entries::Units { tokens } else { common };
                    prop_assert!(u.cache_read <= own_words, "{}: {} read of {common} \
                        shown", &model.name, u.cache_read);
                    prop_assert!(model.cache.write_fee || u.cache_write + u.cache_write_1h == 0, "{}", &model.name);
                    prop_assert_eq!(u.cache_read % model.cache.step, 0);
                    shown.extend(all.iter().map(|p| p.hash));
                }
            }
        }

        /// A prompt that begins like the one before it is billed as after an empty prompt, with which no
        /// beginning is shared.
        #[test]
        fn a_prompt_after_another_is_billed_like_one_alone(prompts in steps()) {
            for model in catalogue() {
                let (mut cache, mut anew) = (PromptCache::new(model.cache), PromptCache::new(model.cache));
                let (mut talk, mut now) = (Vec::new(), 0);
                for (steps, gap) in &prompts {
                    now += gap;
                    talk.truncate(talk.len() * (*gap as usize % 8) / 7);
                    talk.extend_from_slice(steps);
                    let all = prefixes(&talk, &model.cache);
                    anew.use_prefixes(&[], now, now);
                    prop_assert_eq!(cache.use_prefixes(&all, now, now + 500), anew.use_prefixes(&all, now, now + 500));
                    prop_assert_eq!(cache.expired(), anew.expired());
                }
            }
        }
    }
}

#[test]
fn models_share_nothing() {
    let mut c = openai();
    let p = prompt(&[2_000], &[]);
    send(&mut c, &p, 0);
    assert_eq!(send(&mut c, &Prompt { model: "other".into(), ..p }, 0).cache_read, 0);
}

#[test]
fn the_test_texts_have_the_size_they_claim() {
    assert_eq!(Counting::O200K.block(Size::default()), 4);
    assert_ne!(text(3, 100), text(4, 100));
}

#[test]
fn a_server_lets_go_of_what_is_dead_and_of_nothing_else() {
    let (mut kept, mut swept) = (anthropic(), anthropic());
    // A separate conversation per minute, each with four breakpoints; an entry lives five minutes.
    for minute in 0..4_000_u64 {
        let cache = Some(Ttl::FiveMinutes);
        let prefix = |i| Prefix { hash: minute * 4 + i, tokens: i * 2_000, cache, reply: false };
        let all: Vec<Prefix> = (1..=4).map(prefix).collect();
        let at = minute * MINUTE;
        swept.forget_expired(at);
        assert_eq!(swept.use_prefixes(&all, at, at), kept.use_prefixes(&all, at, at));
        assert_eq!(swept.use_prefixes(&all, at, at).cache_read, 8_000);
    }
    assert!(kept.len() == 16_000 && swept.len() <= 4_096 + 4, "{} {}", kept.len(), swept.len());
}
