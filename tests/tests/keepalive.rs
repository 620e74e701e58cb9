//! Keep-alive requests against the simulated cache: the cost of a pause with and without them, by
//! hand calculation.

use ctxbench_core::request::Purpose;
use ctxbench_core::tokens::o200k;
use ctxbench_reports::record::{RequestRecord, RunRecord};
use ctxbench_scenarios::{Scenario, builtin};

use crate::common::replayed::{self, requests_with, samples};
use crate::common::{session_of, words};

/// Returns the tokens of Aider's text without shared files and of its reply, which end the cached
/// prefix. A block has four tokens more than its text.
fn no_files() -> u64 {
    o200k("So far no file is part of the chat that you may change.") + o200k("Ok.") + 8
}

/// Returns a system prompt of 2,000 copies of `word`, and the size of the cached prefix.
fn system() -> (String, u64) {
    let text = words(2_000);
    let tokens = o200k(&text) + 4 + no_files();
    (text, tokens)
}

/// Two turns with a pause of `ms` between them, as an idle entry or as times of the messages.
fn session(ms: u64, idle: bool) -> Scenario {
    session_with(&system().0, ms, idle)
}

fn session_with(system: &str, ms: u64, idle: bool) -> Scenario {
    let at = |n: u64| if idle { String::new() } else { format!(r#","at":{n}"#) };
    let pause = if idle { format!("{{\"type\":\"idle\",\"ms\":{ms}}}\n") } else { String::new() };
    let (first, second) = (at(0), at(ms));
    session_of(&format!(
        r#"{{"type":"system","text":"{system}"}}
{{"type":"user","id":"u1","text":"hello"{first}}}
{{"type":"assistant","id":"a1","text":"yes"{first}}}
{pause}{{"type":"user","id":"u2","text":"again"{second}}}
{{"type":"assistant","id":"a2","text":"done"{second}}}"#
    ))
}

fn pings(record: &RunRecord) -> Vec<&RequestRecord> {
    requests_with(record, Purpose::Ping)
}

fn run(scenario: &Scenario, settings: &str) -> RunRecord {
    replayed::run(scenario, &format!("aider:cache_prompts=true{settings}"))
}

#[test]
fn pings_keep_the_prefix_warm_over_twenty_minutes() {
    let (_, prefix) = system();
    for idle in [true, false] {
        let scenario = session(1_200_000, idle);
        let cold = run(&scenario, "");
        assert_eq!((samples(&cold).len(), pings(&cold).len()), (2, 0));
        let late = samples(&cold)[1];
        // After five minutes it has expired.
        assert_eq!((late.cache_read, late.cache_write), (0, prefix));

        let warm = run(&scenario, ",keepalive_pings=4");
        // The first ping is sent 295 s after the request, and every next one 295 s after the
        // previous one.
        let at: Vec<u64> = pings(&warm).iter().map(|p| p.at_ms).collect();
        assert_eq!(at, [295_000, 590_000, 885_000, 1_180_000], "idle {idle}");
        for p in pings(&warm) {
            assert_eq!((p.cache_read, p.cache_write, p.input_tokens), (prefix, 0, prefix));
        }
        // No turn waits for pings: the second turn begins at the same time as without them.
        let second = samples(&warm)[1];
        assert_eq!((second.cache_read, second.cache_write), (prefix, 0));
        assert_eq!(second.at_ms, late.at_ms);
        // Four reads at 0.30 USD per million, and a read instead of a write at 3.75.
        let saved = prefix as f64 * (3.75 - 0.30 - 4.0 * 0.30) / 1e6;
        let (cold, warm) = (cold.summary.cost_usd, warm.summary.cost_usd);
        assert!((cold - warm - saved).abs() < 1e-9, "{cold} {warm}");
    }
}

/// The program ignores the size, and Anthropic caches nothing below 1,024 tokens.
#[test]
fn pings_below_the_smallest_cached_prompt_read_nothing() {
    for (marked, cached) in [(1_023, 0), (1_024, 1_024)] {
        let system = words((marked - 4 - no_files()) as usize);
        let r = run(&session_with(&system, 1_200_000, true), ",keepalive_pings=4");
        assert_eq!(pings(&r).len(), 4);
        for p in pings(&r) {
            assert_eq!((p.cache_read, p.input_tokens), (cached, marked));
        }
    }
}

#[test]
fn too_few_pings_only_cost() {
    // Two pings end at 590 s, so the prefix expires at 890 s and everything is written again.
    let (_, prefix) = system();
    let r = run(&session(1_200_000, true), ",keepalive_pings=2");
    let second = samples(&r)[1];
    assert_eq!((pings(&r).len(), second.cache_read, second.cache_write), (2, 0, prefix));
    // The cache survives this pause without pings, and no ping is due.
    let short = run(&session(200_000, true), ",keepalive_pings=4");
    assert!(pings(&short).is_empty());
}

/// Pauses of 8, 20 and 120 minutes, and half a minute to type. The cost of the prefix is one write,
/// unless pings at 295 s, 590 s, … read it in between, the last of them at most five minutes
/// before. Pings by hand, for one, four and 24 places in the three pauses.
#[test]
fn day_with_breaks_is_cheapest_with_pings_for_a_meeting() {
    let day = builtin::by_id("day-with-breaks").unwrap();
    let cold = run(&day, "");
    let prefix = samples(&cold)[0].cache_write;
    assert!(prefix > 1_024, "{prefix}");
    let paid =
        [(1, 3, 1), (2, 5, 1), (4, 9, 2), (12, 17, 2), (30, 29, 3)].map(|(count, sent, warm)| {
            let row = run(&day, &format!(",keepalive_pings={count}"));
            assert_eq!(pings(&row).len(), sent, "{count}");
            let read = |r: &&RequestRecord| r.cache_read == prefix;
            assert_eq!(samples(&row).into_iter().filter(read).count(), warm, "{count}");
            let more = prefix as f64 * (sent as f64 * 0.30 - warm as f64 * (3.75 - 0.30)) / 1e6;
            let usd = row.summary.cost_usd;
            assert!((usd - cold.summary.cost_usd - more).abs() < 1e-9, "{count}: {usd}");
            usd
        });
    assert!(paid.iter().all(|usd| *usd >= paid[2] && *usd < cold.summary.cost_usd), "{paid:?}");
    // Without caching, the prefix is plain input, which costs less than a write without a read.
    let plain = replayed::run(&day, "aider").summary.cost_usd;
    let fee = 4.0 * prefix as f64 * 0.75 / 1e6;
    assert!((cold.summary.cost_usd - plain - fee).abs() < 1e-9, "{plain}");
    assert!(paid[2] < plain && plain < paid[0]);
}

/// Ten seconds too late, each ping pays for a write instead of a read.
#[test]
fn pings_after_cache_expiry_write_it_again() {
    let (_, prefix) = system();
    let pause = session(1_000_000, true);
    let cold = run(&pause, "");
    let late = run(&pause, ",keepalive_pings=4,keepalive_delay_ms=310000");
    let at: Vec<u64> = pings(&late).iter().map(|p| p.at_ms).collect();
    assert_eq!(at, [310_000, 620_000, 930_000]);
    assert!(pings(&late).iter().all(|p| (p.cache_read, p.cache_write) == (0, prefix)));
    // Three writes at 3.75 USD per million tokens, and the message after them is read instead of
    // written.
    let more = prefix as f64 * (3.0 * 3.75 - (3.75 - 0.30)) / 1e6;
    assert!((late.summary.cost_usd - cold.summary.cost_usd - more).abs() < 1e-9);
}
