//! Worked examples of the cache rules, with the arithmetic in the comments.

use std::sync::Arc;

use super::cache::{CacheUse, PromptCache};
use super::models::CacheRule;
use super::prompt::{Content, Item, Prompt, billed_tokens};
use crate::block::{BLOCK_TOKENS, Role};
use crate::request::{ErrorKind, Ttl};

const EXPLICIT: CacheRule = CacheRule::Explicit { minimum: 1_024, breakpoints: 4, lookback: 20 };
const AUTOMATIC: CacheRule = CacheRule::Automatic { minimum: 1_024, step: 128, ttl_ms: 600_000 };
const MINUTE: u64 = 60_000;

/// A text of exactly `n` billed tokens, told apart by its first word: `id` and " x" are one token each in o200k.
fn text(id: usize, n: u64) -> Arc<str> {
    const WORDS: [&str; 10] = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];
    let words = [WORDS[id / 10 % 10], " ", WORDS[id % 10]].concat();
    let left = n - billed_tokens(&words, None, None, false);
    let text = words + &" hello".repeat(left as usize);
    assert_eq!(billed_tokens(&text, None, None, false), n);
    text.into()
}

fn prompt(sizes: &[u64], marks: &[(usize, Ttl)]) -> Prompt {
    let item = |(i, n): (usize, &u64)| {
        let cache = marks.iter().find(|(at, _)| *at == i).map(|(_, ttl)| *ttl);
        Item::new(Role::User, Content::Text(text(i, *n)), 1, cache)
    };
    let items = sizes.iter().enumerate().map(item).collect();
    Prompt { model: "m".into(), max_tokens: None, tools: None, tools_cache: None, items, server_edits: vec![], thread: None }
}

fn five(sizes: &[u64], marks: &[usize]) -> Prompt {
    prompt(sizes, &marks.iter().map(|m| (*m, Ttl::FiveMinutes)).collect::<Vec<_>>())
}

fn used(read: u64, write_5m: u64, write_1h: u64, uncached: u64) -> CacheUse {
    CacheUse { read, write_5m, write_1h, uncached }
}

#[test]
fn a_growing_conversation_reads_what_it_wrote() {
    let mut c = PromptCache::new(EXPLICIT);
    // 2,000 + 100 up to the breakpoint are written, the 50 behind it are plain input.
    assert_eq!(c.lookup_and_write(&five(&[2_000, 100, 50], &[1]), 0, 0), used(0, 2_100, 0, 50));
    // The breakpoint moved on: 2,100 are found one position before it, 50 + 300 are new.
    assert_eq!(c.lookup_and_write(&five(&[2_000, 100, 50, 300], &[3]), 1_000, 1_000), used(2_100, 350, 0, 0));
    // Another ending: position 3 differs, 50 at position 2 was never a breakpoint, so the hit is 2,100 again.
    assert_eq!(c.lookup_and_write(&five(&[2_000, 100, 50, 301], &[3]), 2_000, 2_000), used(2_100, 351, 0, 0));
}

#[test]
fn twenty_positions_are_checked_and_no_more() {
    let mut c = PromptCache::new(EXPLICIT);
    c.lookup_and_write(&five(&[2_000], &[0]), 0, 0);
    // Breakpoint at position 19 checks 19, 18, … 0: twenty positions. 19 items of 10 tokens are new.
    let mut sizes = vec![2_000];
    sizes.extend([10; 19]);
    assert_eq!(c.clone().lookup_and_write(&five(&sizes, &[19]), 0, 0), used(2_000, 190, 0, 0));
    // At position 20 the check ends at 1: everything is written anew.
    sizes.push(10);
    assert_eq!(c.clone().lookup_and_write(&five(&sizes, &[20]), 0, 0), used(0, 2_200, 0, 0));
    // A second breakpoint at the old place finds it.
    assert_eq!(c.lookup_and_write(&five(&sizes, &[0, 20]), 0, 0), used(2_000, 200, 0, 0));
}

#[test]
fn below_the_minimum_nothing_is_cached() {
    let mut c = PromptCache::new(EXPLICIT);
    for _ in 0..2 {
        assert_eq!(c.lookup_and_write(&five(&[1_000, 23], &[1]), 0, 0), used(0, 0, 0, 1_023));
    }
    // 1,024 up to the breakpoint is enough.
    assert_eq!(c.lookup_and_write(&five(&[1_000, 24], &[1]), 0, 0), used(0, 1_024, 0, 0));
    assert_eq!(c.lookup_and_write(&five(&[1_000, 24], &[1]), 0, 0), used(1_024, 0, 0, 0));
}

#[test]
fn entries_live_five_minutes_from_their_last_use() {
    let p = five(&[2_000], &[0]);
    let mut c = PromptCache::new(EXPLICIT);
    c.lookup_and_write(&p, 0, 0);
    // Used after 4 and after 8 minutes: each use begins five more.
    assert_eq!(c.lookup_and_write(&p, 4 * MINUTE, 4 * MINUTE).read, 2_000);
    assert_eq!(c.lookup_and_write(&p, 8 * MINUTE, 8 * MINUTE).read, 2_000);
    // Five minutes after the last use it is gone and written again.
    assert_eq!(c.lookup_and_write(&p, 13 * MINUTE, 13 * MINUTE), used(0, 2_000, 0, 0));
}

#[test]
fn a_system_breakpoint_outlives_a_changed_conversation() {
    let mut c = PromptCache::new(EXPLICIT);
    c.lookup_and_write(&five(&[2_000, 100], &[0, 1]), 0, 0);
    // The hit at position 1 uses position 0 too, so both live until 9 minutes.
    c.lookup_and_write(&five(&[2_000, 100], &[0, 1]), 4 * MINUTE, 4 * MINUTE);
    // A compaction put something else at position 1: 2,000 are read, 200 written.
    assert_eq!(c.lookup_and_write(&five(&[2_000, 200], &[0, 1]), 8 * MINUTE, 8 * MINUTE), used(2_000, 200, 0, 0));
}

#[test]
fn one_hour_entries_are_written_and_billed_apart() {
    let mut c = PromptCache::new(EXPLICIT);
    let p = prompt(&[2_000, 500, 50], &[(0, Ttl::OneHour), (1, Ttl::FiveMinutes)]);
    assert_eq!(c.lookup_and_write(&p, 0, 0), used(0, 500, 2_000, 50));
    // After ten minutes the five-minute part is gone.
    assert_eq!(c.lookup_and_write(&p, 10 * MINUTE, 10 * MINUTE), used(2_000, 500, 0, 50));
}

#[test]
fn an_entry_is_usable_when_its_reply_has_begun() {
    let p = five(&[2_000], &[0]);
    let mut c = PromptCache::new(EXPLICIT);
    c.lookup_and_write(&p, 0, 3_000);
    // Sent beside the first: both pay for the write.
    assert_eq!(c.lookup_and_write(&p, 2_999, 6_000), used(0, 2_000, 0, 0));
    assert_eq!(c.lookup_and_write(&p, 3_000, 4_000), used(2_000, 0, 0, 0));
}

#[test]
fn five_breakpoints_and_a_wrong_order_are_refused() {
    let c = PromptCache::new(EXPLICIT);
    let sizes = [100; 5];
    assert!(c.validate(&five(&sizes, &[0, 1, 2, 3])).is_ok());
    let e = c.validate(&five(&sizes, &[0, 1, 2, 3, 4])).unwrap_err();
    assert_eq!((e.kind, e.status), (ErrorKind::Invalid, 400));
    assert!(c.validate(&prompt(&sizes, &[(0, Ttl::FiveMinutes), (1, Ttl::OneHour)])).is_err());
    assert!(c.validate(&prompt(&sizes, &[(0, Ttl::OneHour), (1, Ttl::FiveMinutes)])).is_ok());
    assert!(PromptCache::new(AUTOMATIC).validate(&five(&sizes, &[0, 1, 2, 3, 4])).is_ok());
}

#[test]
fn tools_come_before_everything_else() {
    let with_tools = |json: &str| {
        let tools = serde_json::value::RawValue::from_string(json.into()).unwrap();
        Prompt { tools: Some(tools), ..five(&[2_000], &[0]) }
    };
    let mut c = PromptCache::new(EXPLICIT);
    let first = with_tools("[1]");
    assert_eq!(c.lookup_and_write(&first, 0, 0), used(0, first.tokens(), 0, 0));
    assert_eq!(c.lookup_and_write(&first, 0, 0).read, 2_000 + first.tools_tokens());
    assert_eq!(c.lookup_and_write(&with_tools("[2]"), 0, 0).read, 0);
}

#[test]
fn automatic_caching_hits_in_steps_from_its_minimum() {
    // OpenAI's guide: hits begin at 1,024 tokens and grow by 128: 1,024, 1,152, 1,280, …
    for (size, hit) in [(1_023, 0), (1_024, 1_024), (1_100, 1_024), (1_151, 1_024), (1_152, 1_152), (1_300, 1_280)] {
        let mut c = PromptCache::new(AUTOMATIC);
        assert_eq!(c.lookup_and_write(&prompt(&[size], &[]), 0, 0), used(0, 0, 0, size));
        // The same start, then something else: 100 more tokens are uncached in any case.
        assert_eq!(c.lookup_and_write(&prompt(&[size, 100], &[]), 1, 1), used(hit, 0, 0, size + 100 - hit));
    }
}

#[test]
fn automatic_caching_takes_the_longest_common_prefix() {
    let mut c = PromptCache::new(AUTOMATIC);
    c.lookup_and_write(&prompt(&[2_000, 500, 300], &[]), 0, 0);
    // Third item differs: 2,500 in common = 19 steps of 128 = 2,432.
    assert_eq!(c.lookup_and_write(&prompt(&[2_000, 500, 301], &[]), 1, 1), used(2_432, 0, 0, 2_801 - 2_432));
    // Idle for ten minutes since the last use of the common part: gone.
    assert_eq!(c.lookup_and_write(&prompt(&[2_000, 500, 301], &[]), 600_001, 600_001).read, 0);
    assert_eq!(c.lookup_and_write(&prompt(&[2_000, 500, 301], &[]), 1_200_000, 1_200_000).read, 2_688);
}

#[test]
fn models_share_nothing() {
    let mut c = PromptCache::new(AUTOMATIC);
    let p = prompt(&[2_000], &[]);
    c.lookup_and_write(&p, 0, 0);
    assert_eq!(c.lookup_and_write(&Prompt { model: "other".into(), ..p }, 0, 0).read, 0);
}

#[test]
fn the_test_texts_have_the_size_they_claim() {
    assert_eq!(billed_tokens("", None, None, false), BLOCK_TOKENS);
    assert_ne!(text(3, 100), text(4, 100));
}
