//! Compaction while the user is away.

use super::*;

const IDLE: &str = "claude-code:cache_ttl=1h,idle_min_tokens=4000";

#[test]
fn claude_code_compacts_while_the_hour_lasts() {
    let (fixed, first) = (block(&words(2_000)), block(&words(2_000)) + block(&words(3_000)));
    // The user returns after 59 minutes. 54 minutes after the turn, a summary was requested with
    // the warm prefix (docs/sources/claude-code.md §1.5: 90 % of the lifetime).
    let r = run(&with_a_pause(59 * 60_000), IDLE);
    let [first_turn, second_turn] = [0, 1].map(|n| samples(&r)[n]);
    let asked = summaries(&r);
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].at_ms, first_turn.at_ms + first_turn.latency_ms + 54 * 60_000);
    assert_eq!(asked[0].cache_read, first, "the whole prefix is read");
    let b = only(&r);
    assert_eq!((b.fate, b.waited_ms, r.summary.blocked_ms), (Fate::InTime, 0, 0), "nobody waits");
    assert_eq!((r.summary.compactions, r.compactions[0].phase), (1, Phase::Background));
    // The fixed part was used five minutes ago, and the rest is too small.
    assert_eq!(second_turn.cache_read, fixed);
    assert!(second_turn.input_tokens < first / 2 + fixed);
    assert_eq!(second_turn.invalidated_expired_tokens, 0);

    // The user returns after ten hours: everything is cold, but smaller.
    let [small, large] = [IDLE, &format!("{IDLE},idle_compaction=false")]
        .map(|spec| samples(&run(&with_a_pause(36_000_000), spec))[1].clone());
    assert_eq!((small.cache_read, large.cache_read), (0, 0));
    let expired = [&small, &large].map(|q| q.invalidated_expired_tokens);
    assert_eq!(expired, [fixed, first]);
    assert!(small.cache_write < large.cache_write);
}

#[test]
fn small_short_or_busy_sessions_are_not_compacted() {
    let asked = |ms: u64, spec: &str| summaries(&run(&with_a_pause(ms), spec)).len();
    assert_eq!(asked(53 * 60_000, IDLE), 0, "the user is back before");
    assert_eq!(asked(36_000_000, "claude-code:cache_ttl=1h"), 0, "below 200,000 tokens");
    let short_lived = "claude-code:idle_min_tokens=4000";
    assert_eq!(asked(36_000_000, short_lived), 0, "five minutes of lifetime");
    assert_eq!(asked(36_000_000, IDLE), 1);
}

#[test]
fn user_who_returns_during_compaction_waits() {
    // One second after the 54 minutes. The summary takes longer than that.
    let r = run(&with_a_pause(54 * 60_000 + 1_500), IDLE);
    let asked = summaries(&r)[0];
    let b = only(&r);
    assert_eq!((b.fate, b.waited_ms), (Fate::LateWaited, asked.latency_ms - 1_500));
    assert_eq!(r.summary.blocked_ms, asked.latency_ms - 1_500);
}

#[test]
fn failed_summary_attempts_add_their_time() {
    let mut lines = vec![];
    for n in 0..12 {
        let at = 1_000 * n;
        lines
            .extend([user(&format!("u{n}"), &words(900), at), reply(&format!("a{n}"), "Yes.", at)]);
    }
    let mut s = session(0.04, &lines);
    s.faults.push(fault(FaultOn::Summary, 1, 2, 504, 300_000));
    let r = run(&s, "codex");
    let asked = summaries(&r);
    let failed = RequestStatus::Failed(ErrorKind::Server);
    assert_eq!([0, 1, 2].map(|n| asked[n].status), [failed, failed, RequestStatus::Ok]);
    let all: u64 = asked.iter().map(|q| q.latency_ms).sum();
    let answered: u64 = asked[2..].iter().map(|q| q.latency_ms).sum();
    assert_eq!((r.summary.blocked_ms, all), (600_000 + answered, 600_000 + answered));
    assert_eq!(r.compactions[0].blocked_ms, Some(600_000 + asked[2].latency_ms));
}

#[test]
fn baselines_survive_a_rate_limit() {
    let mut s = then_a_message(1_000);
    let plain = s.clone();
    s.faults.push(fault(FaultOn::Sample, 2, 2, 429, 20_000));
    for spec in [
        "reference",
        "none",
        "keep-nothing",
        "sliding-window",
        "observation-masking",
        "anthropic-sdk",
        "claude-code-api",
    ] {
        let (with, without) = (run(&s, spec), run(&plain, spec));
        assert_eq!(with.status, Status::Completed, "{spec}");
        let (with, without) = (with.summary, without.summary);
        assert_eq!(with.user_interventions, 0, "{spec}");
        assert_eq!(with.requests, without.requests + 2, "{spec}");
        // Two refusals of 20 s. Everything else takes the same time.
        assert_eq!(with.total_ms, without.total_ms + 40_000, "{spec}");
        assert_eq!(with.cost_usd, without.cost_usd, "{spec}: a refusal costs nothing");
    }
    // Retries are exhausted: after five more attempts the user has to repeat the request.
    s.faults = vec![fault(FaultOn::Sample, 1, 6, 429, 0)];
    assert_eq!(run(&s, "reference").summary.user_interventions, 1);
    // Permanent errors are not retried.
    s.faults = vec![fault(FaultOn::Sample, 1, 1, 400, 0)];
    assert_eq!(run(&s, "reference").summary.user_interventions, 1);
}
