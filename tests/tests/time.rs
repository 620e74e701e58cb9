//! Hand calculations of time: background summaries with fast and slow users, pauses longer than the
//! lifetime of the cache, late refusals.

mod idle;

use ctxbench_core::request::{ErrorKind, Phase, Purpose};
use ctxbench_core::tokens::o200k;
use ctxbench_mock::Transport;
use ctxbench_replay::Options;
use ctxbench_reports::record::{
    BackgroundRecord, Fate, RequestRecord, RequestStatus, RunRecord, Status,
};
use ctxbench_scenarios::{FaultOn, ProviderFault, Scenario};

use crate::common::replayed::{MODEL, as_told, requests_with, run, run_with, samples, summaries};
use crate::common::{session_of, words};

/// Builds a scenario with this scale from the lines of a session.
fn session(scale: f64, lines: &[String]) -> Scenario {
    Scenario { scale, ..session_of(&lines.join("\n")) }
}

fn system(n: usize) -> String {
    format!(r#"{{"type":"system","text":"{}"}}"#, words(n))
}

fn user(id: &str, text: &str, at: u64) -> String {
    format!(r#"{{"type":"user","id":"{id}","text":"{text}","at":{at}}}"#)
}

fn reply(id: &str, text: &str, at: u64) -> String {
    format!(r#"{{"type":"assistant","id":"{id}","text":"{text}","at":{at}}}"#)
}

/// A reply with the call of a tool, and its result.
fn call(n: u64, text: &str, tool: &str, output: &str, at: [u64; 2]) -> [String; 2] {
    let [asked, done] = at;
    let call = format!(r#"{{"id":"c{n}","name":"{tool}","arguments":"{{}}"}}"#);
    [
        format!(
            r#"{{"type":"assistant","id":"e{n}","text":"{text}","at":{asked},"calls":[{call}]}}"#
        ),
        format!(r#"{{"type":"tool","call_id":"c{n}","output":"{output}","at":{done}}}"#),
    ]
}

fn fault(on: FaultOn, nth: u64, times: u64, status: u16, after_ms: u64) -> ProviderFault {
    ProviderFault { times, status: Some(status), after_ms, ..ProviderFault::new(on, nth) }
}

fn only(record: &RunRecord) -> BackgroundRecord {
    assert_eq!(record.background.len(), 1, "{:?}", record.background);
    record.background[0].clone()
}

/// Latency of a summary by Haiku 4.5 in ms: 500, 0.015 per input token, 4 per output token.
fn haiku_ms(r: &RequestRecord) -> u64 {
    assert_eq!((&*r.model, r.cache_read), ("claude-haiku-4-5", 0));
    (500.0 + 0.015 * r.input_tokens as f64).round() as u64 + 4 * r.output_tokens
}

const AIDER: &str = "aider@intended:max_chat_history_tokens=100,history_least=0";

/// A turn that changes a file and ends at 10 s, with a result of 200 tokens.
fn edit_turn() -> Vec<String> {
    let [asks, result] = call(1, "I do.", "edit_file", &words(200), [7_000, 9_000]);
    vec![user("u1", "change it", 6_000), asks, result, reply("d1", "Done.", 10_000)]
}

/// That turn, and a message `think` ms later.
fn then_a_message(think: u64) -> Scenario {
    let mut lines = edit_turn();
    lines.push(user("u2", "thanks", 10_000 + think));
    lines.push(reply("a2", "Welcome.", 12_000 + think));
    session(1.0, &lines)
}

#[test]
fn a_slow_user_finds_the_summary_in_time() {
    let r = run(&then_a_message(20_000), AIDER);
    let asked = summaries(&r)[0];
    let took = haiku_ms(asked);
    // The result is polled once per second.
    let found = asked.at_ms + took.div_ceil(1_000) * 1_000;
    let want = BackgroundRecord {
        request: asked.seq,
        spawned_ms: asked.at_ms,
        requests: 1,
        before_request: Some(asked.seq + 1),
        delivered_ms: Some(found),
        waited_ms: 0,
        fate: Fate::InTime,
    };
    assert_eq!(only(&r), want);
    let found = (r.summary.blocked_ms, r.summary.compactions, r.compactions[0].blocked_ms);
    assert_eq!(found, (0, 1, Some(0)));
    // The turn ended with its last reply; the user returned twenty seconds later.
    let samples = samples(&r);
    assert_eq!(asked.at_ms, samples[1].at_ms + samples[1].latency_ms);
    assert_eq!(samples[2].at_ms, asked.at_ms + 20_000);
}

#[test]
fn a_fast_user_waits_for_aider() {
    let r = run(&then_a_message(100), AIDER);
    let asked = summaries(&r)[0];
    let took = haiku_ms(asked);
    let b = only(&r);
    let found = (b.fate, b.waited_ms, b.delivered_ms);
    assert_eq!(found, (Fate::LateWaited, took - 100, Some(asked.at_ms + took)));
    assert_eq!((r.summary.blocked_ms, r.compactions[0].blocked_ms), (took - 100, Some(took - 100)));
    assert_eq!(samples(&r)[2].at_ms, asked.at_ms + took);
}

#[test]
fn released_aider_waits_and_throws_away() {
    // Two messages are appended while the worker runs (docs/sources/aider.md §1.2, surprise 1).
    let r = run(&then_a_message(100), &AIDER.replacen("@intended", "", 1));
    let b = only(&r);
    assert_eq!((b.fate, r.summary.compactions), (Fate::Stale, 0));
    // Waiting for nothing is waiting.
    assert_eq!([b.waited_ms, r.summary.blocked_ms], [haiku_ms(summaries(&r)[0]) - 100; 2]);
}

#[test]
fn race_is_ended_early_by_events() {
    let end = |line: &str| {
        let mut lines = edit_turn();
        if !line.is_empty() {
            let thanks = [user("u2", "thanks", 10_100), reply("a2", "Welcome.", 12_000)];
            lines.extend([line.to_string()].into_iter().chain(thanks));
        }
        session(1.0, &lines)
    };
    // The session ends before the summary is collected.
    let b = only(&run(&end(""), AIDER));
    assert_eq!((b.fate, b.before_request, b.delivered_ms), (Fate::Cancelled, None, None));
    // The program ends.
    assert_eq!(only(&run(&end(r#"{"type":"restart"}"#), AIDER)).fate, Fate::Cancelled);
    // Neither a clear nor a rewind stops Aider's worker. The next request waits for it, but the
    // summary no longer fits the history.
    for line in [r#"{"type":"clear"}"#, r#"{"type":"rewind","to":"u1","mode":"conversation"}"#] {
        let r = run(&end(line), AIDER);
        let b = only(&r);
        assert_eq!((b.fate, r.summary.compactions), (Fate::Stale, 0), "{line}");
        assert_eq!(b.waited_ms, haiku_ms(summaries(&r)[0]) - 100, "{line}");
    }
}

#[test]
fn refused_summary_fails_the_race() {
    let mut s = then_a_message(100);
    s.faults.push(fault(FaultOn::Summary, 1, 2, 500, 3_000));
    let r = run(&s, AIDER);
    let b = only(&r);
    // The weak and the main model each refuse after three seconds. The user returned after 0.1 s.
    assert_eq!((b.fate, b.requests, b.waited_ms), (Fate::Failed, 2, 5_900));
    assert_eq!(r.summary.blocked_ms, 5_900);
    let latencies: Vec<u64> = summaries(&r).iter().map(|q| q.latency_ms).collect();
    assert_eq!(latencies, [3_000, 3_000]);
}

/// Three short turns after one of 300 tokens, in a window of 2,000 tokens.
fn for_openoxide(first: u64, second: u64) -> Scenario {
    let lines = [
        system(20),
        user("u1", "explain", 1_000),
        reply("a1", &words(300), 5_000),
        user("u2", "and then?", 5_000 + first),
        reply("a2", "That is all.", 6_000 + first),
        user("u3", "good", 6_000 + first + second),
        reply("a3", "Fine.", 7_000 + first + second),
    ];
    session(0.01, &lines)
}

#[test]
fn a_fast_user_overtakes_openoxide() {
    let r = run(&for_openoxide(100, 30_000), "openoxide");
    let samples = samples(&r);
    let b = r.background[0].clone();
    assert_eq!((b.fate, b.waited_ms, r.summary.blocked_ms), (Fate::LateProceeded, 0, 0));
    // Requested after the first request, not ready for the second, and shown in the third.
    assert_eq!((b.request, b.before_request), (1, Some(3)), "{:?}", r.background);
    assert_eq!(samples[1].at_ms, samples[0].at_ms + samples[0].latency_ms + 100);
    assert!(samples[1].context_tokens > 300 && samples[2].context_tokens < 300);
    // The summary is ready as soon as its request is answered, because the user returned later.
    assert!(samples[2].at_ms > b.spawned_ms + haiku_ms(summaries(&r)[0]));
    let slow = run(&for_openoxide(30_000, 30_000), "openoxide").background[0].clone();
    assert_eq!((slow.fate, slow.before_request), (Fate::InTime, Some(2)));
}

#[test]
fn going_back_cancels_the_summary_of_openoxide() {
    let lines = [
        system(20),
        user("u1", "explain", 1_000),
        reply("a1", &words(300), 5_000),
        r#"{"type":"rewind","to":"u1","mode":"conversation"}"#.into(),
        user("u2", "again", 5_100),
        reply("a2", "Yes.", 6_000),
    ];
    let r = run(&session(0.01, &lines), "openoxide");
    let b = only(&r);
    assert_eq!((b.fate, b.delivered_ms), (Fate::Cancelled, None));
}

#[test]
fn claude_code_does_not_wait_for_a_precomputed_summary() {
    // Window 2,000: the warning level is at 1,470 tokens, the threshold at 1,670
    // (docs/sources/claude-code.md §1.1, scaled).
    let with = |think: u64| {
        let lines = [
            system(20),
            user("u1", &words(1_100), 1_000),
            reply("a1", &words(400), 5_000),
            user("u2", &words(120), 5_000 + think),
            reply("a2", "Fine.", 9_000 + think),
        ];
        run(&session(0.01, &lines), "claude-code:precompute=true,microcompact=off")
    };
    let slow = with(60_000);
    assert_eq!(only(&slow).fate, Fate::InTime);
    assert_eq!((slow.summary.blocked_ms, slow.summary.compactions), (0, 1));
    assert_eq!(summaries(&slow).len(), 1);
    let fast = with(100);
    let b = only(&fast);
    assert_eq!((b.fate, b.delivered_ms, b.waited_ms), (Fate::LateProceeded, None, 0));
    // A second summary is requested, and the strategy waits for it.
    let asked = summaries(&fast);
    assert_eq!(asked.len(), 2);
    assert_eq!([0, 1].map(|n| asked[n].phase.unwrap()), [Phase::Background, Phase::MidTurn]);
    assert_eq!(fast.summary.blocked_ms, asked[1].latency_ms);
}

/// A long answer, a pause of `ms`, and another message.
fn with_a_pause(ms: u64) -> Scenario {
    let lines = [
        system(2_000),
        user("u1", &words(3_000), 1_000),
        reply("a1", &words(1_000), 5_000),
        user("u2", "again", 5_000 + ms),
        reply("a2", "Done.", 6_000 + ms),
    ];
    session(1.0, &lines)
}

/// Returns the tokens of a prompt's prefix that had to be written again, those of them that had
/// expired, and those that had changed.
fn invalidated(q: &RequestRecord) -> [u64; 3] {
    [q.invalidated_tokens, q.invalidated_expired_tokens, q.invalidated_changed_tokens]
}

/// Returns the tokens of a block with this text.
fn block(text: &str) -> u64 {
    o200k(text) + 4
}

#[test]
fn a_pause_beyond_the_lifetime_is_paid_for_and_has_its_cause() {
    let first = block(&words(2_000)) + block(&words(3_000));
    let second = first + block(&words(1_000)) + block("again");
    for (spec, lifetime) in
        [("reference", 300_000), ("claude-code:cache_ttl=1h,idle_compaction=false", 3_600_000)]
    {
        let cold = run(&with_a_pause(lifetime + 60_000), spec);
        let q = samples(&cold)[1];
        assert_eq!((q.cache_read, q.cache_write, q.input_tokens), (0, second, second), "{spec}");
        assert_eq!(invalidated(q), [first, first, 0], "{spec}");
        assert_eq!(cold.summary.invalidated_tokens, first, "{spec}");
        let warm = run(&with_a_pause(lifetime - 60_000), spec);
        let q = samples(&warm)[1];
        let found = (q.cache_read, q.cache_write, q.invalidated_tokens);
        assert_eq!(found, (first, second - first, 0), "{spec}");
    }
    // Both transports report it.
    let options = Options { transport: Transport::Http, ..as_told() };
    let http = run_with(MODEL, &with_a_pause(3_600_000), "reference", &options);
    assert_eq!(samples(&http)[1].invalidated_expired_tokens, first);
}

#[test]
fn provider_summary_prompt_expires_like_any_prompt() {
    let lines = [
        system(2_000),
        user("u1", &words(45_000), 1_000),
        reply("a1", &words(1_000), 5_000),
        user("u2", &words(10_000), 605_000),
        reply("a2", "Done.", 606_000),
    ];
    let first = block(&words(2_000)) + block(&words(45_000));
    let scenario = session(1.0, &lines);
    for more in ["", ",pause=true,keep_last=1", ",compact=off"] {
        for transport in [Transport::Direct, Transport::Http] {
            let spec = format!("claude-code-api:compact_trigger=50000{more}");
            let options = Options { transport, ..as_told() };
            let r = run_with(MODEL, &scenario, &spec, &options);
            assert_eq!(r.summary.compactions, u64::from(more != ",compact=off"), "{spec}");
            assert_eq!(invalidated(samples(&r)[1]), [first, first, 0], "{spec}");
        }
    }
}

/// Turns of 10,000 tokens, five of them above the compaction threshold.
fn long_turns() -> Scenario {
    let mut lines = vec![system(2_000)];
    for n in 1..=8 {
        lines.push(user(&format!("u{n}"), &words(10_000), 10_000 * n));
        lines.push(reply(&format!("a{n}"), "Seen.", 10_000 * n + 5_000));
    }
    session(1.0, &lines)
}

#[test]
fn provider_summary_time_counts_once() {
    for more in ["", ",pause=true,keep_last=1", ",compact=on_demand"] {
        let r = run(&long_turns(), &format!("claude-code-api:compact_trigger=50000{more}"));
        let s = &r.summary;
        assert!(s.compactions > 0 && s.summary_calls == s.compactions, "{more}");
        let each: Vec<u64> = r.compactions.iter().map(|c| c.blocked_ms.unwrap()).collect();
        assert_eq!(s.blocked_ms, each.iter().sum::<u64>(), "{more}");
        if more == ",compact=on_demand" {
            let asked = summaries(&r);
            assert_eq!(each, asked.iter().map(|q| q.latency_ms).collect::<Vec<_>>());
            assert!(asked.iter().all(|q| q.compaction_ms == 0));
        }
    }
}

#[test]
fn counting_by_provider_usage_has_no_trigger_error() {
    for spec in [
        "claude-code-api:compact_trigger=50000",
        "claude-code-api:compact_trigger=50000,compact=on_demand",
        "anthropic-sdk:threshold=50000",
    ] {
        let r = run(&long_turns(), spec);
        assert!(r.summary.compactions > 0, "{spec}");
        assert_eq!(r.summary.trigger_error_tokens, Some(0.0), "{spec}");
    }
}

#[test]
fn request_with_summary_shows_the_summarised_text() {
    let turn = block(&words(10_000)) + block("Seen.");
    let system = block(&words(2_000));
    // The fifth message is the first with 50,000 tokens before it.
    let fifth = system + 5 * turn - block("Seen.");
    for (more, purpose) in
        [(",pause=true,keep_last=1", Purpose::Sample), (",compact=on_demand", Purpose::Summary)]
    {
        let r = run(&long_turns(), &format!("claude-code-api:compact_trigger=50000{more}"));
        let shows = |q: &&RequestRecord| purpose == Purpose::Summary || q.extra;
        let q = requests_with(&r, purpose).into_iter().find(shows).unwrap();
        assert_eq!(q.context_tokens, q.input_tokens, "{more}");
        if purpose == Purpose::Sample {
            let found = (q.context_tokens, q.common_prefix_tokens);
            assert_eq!(found, (fifth, 4 * turn - block("Seen.")));
            assert_eq!(r.summary.peak_context_tokens, fifth);
        }
    }
    // If the provider answers in the same request, the larger of its two prompts counts.
    let r = run(&long_turns(), "claude-code-api:compact_trigger=50000");
    assert_eq!(r.summary.peak_context_tokens, fifth);
}

#[test]
fn tool_definitions_expire_with_the_prefix() {
    let words = words(2_000);
    let tools = format!(
        r#"{{"type":"tools","definitions":[{{"name":"read_file","description":"{words}","input_schema":{{"type":"object"}}}}]}}"#
    );
    let lines = [
        system(500),
        tools,
        user("u1", "look", 1_000),
        reply("a1", "Seen.", 5_000),
        user("u2", "again", 905_000),
        reply("a2", "Done.", 906_000),
    ];
    let r = run(&session(1.0, &lines), "reference");
    let [first, q] = [0, 1].map(|n| samples(&r)[n].clone());
    assert!(first.context_tokens > block(&words));
    assert_eq!((q.cache_read, q.invalidated_tokens), (0, first.context_tokens));
    assert_eq!(q.invalidated_expired_tokens, first.context_tokens);
}

#[test]
fn an_edit_of_the_prefix_is_the_other_cause() {
    let mut lines = vec![system(2_000), user("u1", "look", 0)];
    for n in 0..4 {
        let output = format!("{n} {}", words(500));
        lines.extend(call(n, &format!("Part {n}."), "read_file", &output, [1_000 * n; 2]));
    }
    lines.push(reply("end", "Done.", 5_000));
    let r = run(&session(1.0, &lines), "observation-masking:keep=2,breakpoints=ends");
    let asks = |n: u64| block(&format!("Part {n}.")) + block("{}") + o200k("read_file");
    let result = |n: u64| block(&format!("{n} {}", words(500)));
    let masked = block("(this output was left out to save space)");
    let causes = |n: usize| {
        let [all, expired, changed] = invalidated(samples(&r)[n]);
        (expired, changed, all - expired - changed)
    };
    assert_eq!([causes(0), causes(1), causes(2)], [(0, 0, 0); 3]);
    // The fourth request masks the first result, so the second step after it is written again.
    // Breakpoints are after the last two messages, so the cache still has everything up to the
    // first call.
    assert_eq!(causes(3), (0, asks(1) + result(1), 0));
    // The fifth request masks the second result as well. The text before it is unchanged, but no
    // breakpoint of the fourth request ended there: everything from the first result on is written
    // again.
    assert_eq!(causes(4), (0, asks(2) + result(2), masked + asks(1)));
    // With a breakpoint before the oldest shown result, a breakpoint ended there.
    let r = run(&session(1.0, &lines), "observation-masking:keep=2");
    let changed = asks(2) + result(2);
    assert_eq!(invalidated(samples(&r)[4]), [changed, 0, changed]);
}

#[test]
fn partly_served_block_counts_only_the_rest() {
    // This cache serves steps of 128 tokens, so blocks are cut at the end of a step.
    let causes = |pause: u64| {
        let r = run_with("gpt-5.5", &with_a_pause(pause), "reference", &as_told());
        let [first, q] = [0, 1].map(|n| samples(&r)[n].clone());
        let served_at_best = first.context_tokens / 128 * 128;
        // Shown before and not served.
        assert_eq!(first.context_tokens - q.cache_read, q.invalidated_tokens);
        (first.context_tokens, served_at_best, q)
    };
    let (shown, served, warm) = causes(1_000);
    assert!(shown > served, "the last block ends within a step");
    assert_eq!((warm.cache_read, invalidated(&warm)), (served, [shown - served, 0, 0]));
    // A cache without lifetimes would have served as much as in the warm run.
    let (_, _, cold) = causes(48 * 3_600_000);
    assert_eq!((cold.cache_read, invalidated(&cold)), (0, [shown, served, 0]));
}
