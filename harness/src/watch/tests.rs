use ctxbench_core::model::find;
use ctxbench_core::request::{ErrorKind, Purpose};
use ctxbench_reports::record::{
    RequestRecord, RequestStatus, RunRecord, ScenarioInfo, Status, StrategyInfo,
};
use ctxbench_scenarios::load;
use ctxbench_strategies::Spec;
use serde_json::Value;

use super::{Seen, Team, Watch, team_section};
use crate::replay::{Options, Replayed, replay};

fn played(scenario: &str, strategy: &str, watch: Option<Watch>) -> Replayed {
    let scenario = load(scenario).unwrap().scenarios.remove(0);
    let spec = Spec::parse(strategy).unwrap();
    let options = Options { watch, ..Options::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(replay(&scenario, &spec, find("claude-sonnet-4-6").unwrap(), &options))
}

fn status(seen: &Seen) -> Vec<Value> {
    seen.status.iter().map(|l| serde_json::from_str(l).unwrap()).collect()
}

#[test]
fn a_watched_run_is_the_same_run_and_its_last_line_agrees_with_the_record() {
    let plain = played("login-bug-tight", "claude-code", None);
    let watched = played(
        "login-bug-tight",
        "claude-code",
        Some(Watch { status: true, spend: vec![], tpm: Some(300_000) }),
    );
    assert_eq!(plain.record, watched.record);
    let r = &watched.record;
    let lines = status(&watched.seen);
    let samples =
        r.requests.iter().filter(|q| q.purpose == Purpose::Sample && q.status == RequestStatus::Ok);
    assert_eq!(lines.len(), samples.count());
    let last = lines.last().unwrap();
    // The record is summed from the log, the line by the meter: two ways to one figure.
    assert!(
        (watched.seen.meter.as_ref().unwrap().snapshot().cost_usd - r.summary.cost_usd).abs()
            < 1e-9
    );
    assert_eq!(last["context_window"]["total_output_tokens"], r.summary.output_tokens);
    assert_eq!(last["context_window"]["context_window_size"], r.window);
    assert_eq!(last["session_id"], "login-bug-tight/claude-code/claude-sonnet-4-6/extractive/1");
    assert!(
        last["told"].as_str().unwrap().starts_with("<system_warning>Token usage: "),
        "Sonnet 4.6 is told"
    );
    // Five tokens come back per millisecond; the session is scaled down, the limit is not.
    let first = &r.requests[0];
    let spent = first.input_tokens - first.cache_read + first.output_tokens;
    let left = lines[0]["rate_limit"]["tokens_left"].as_u64().unwrap();
    let spent = (spent as f64 / r.scenario.scale).round() as u64;
    assert_eq!(left, (300_000 - spent + 5 * first.latency_ms).min(300_000));
    let costs: Vec<f64> =
        lines.iter().map(|l| l["cost"]["total_cost_usd"].as_f64().unwrap()).collect();
    assert!(costs.windows(2).all(|w| w[0] < w[1]), "every reply costs something");
}

#[test]
fn lines_of_scripted_sessions_by_hand() {
    let lines = |scenario: &str| {
        let meter = played(scenario, "reference", Some(Watch::default())).seen.meter.unwrap();
        (meter.changed().added, meter.changed().removed)
    };
    // The one edit of giant-result turns a line into another; that of window-32k a line into two,
    // the old one indented.
    assert_eq!(lines("giant-result"), (1, 1));
    assert_eq!(lines("window-32k"), (2, 1));
}

#[test]
fn a_spend_limit_stops_a_run_before_the_request_that_would_go_over() {
    let whole = played("login-bug-tight", "codex", None).record.summary.cost_usd;
    let limit = format!("{:.6}", whole / 2.0);
    let stopped = played(
        "login-bug-tight",
        "codex",
        Some(Watch { spend: vec![limit.parse().unwrap()], ..Watch::default() }),
    );
    let r = &stopped.record;
    assert_eq!(r.status, Status::Failed);
    let why = r.error.as_deref().unwrap();
    assert!(why.starts_with("spend limit of ") && why.contains("was not sent"), "{why}");
    assert!(
        r.summary.cost_usd > 0.0 && r.summary.cost_usd <= whole / 2.0 * 1.05,
        "{} of {}",
        r.summary.cost_usd,
        whole / 2.0
    );
    assert!(r.summary.steps_completed < r.summary.steps_total);
    // What was not sent is no request, and nobody asks to go on.
    assert!(r.requests.iter().all(|q| q.status == RequestStatus::Ok));
    assert_eq!(r.summary.user_interventions, 0);
    // The same where the refused request was one for a summary.
    let limit = Watch { spend: vec!["0.12".parse().unwrap()], ..Watch::default() };
    let r = played("huge-next-reply", "opencode", Some(limit)).record;
    assert_eq!((r.status, r.summary.user_interventions), (Status::Failed, 0));
    assert!(r.requests.iter().all(|q| q.status != RequestStatus::Failed(ErrorKind::Ended)));
    let enough = format!("{:.6}", whole * 3.0);
    let free = played(
        "login-bug-tight",
        "codex",
        Some(Watch { spend: vec![enough.parse().unwrap()], ..Watch::default() }),
    );
    assert_eq!(free.record.status, Status::Completed);
}

fn request(at_ms: u64, input_tokens: u64, cache_read: u64, output_tokens: u64) -> RequestRecord {
    let v = serde_json::json!({
        "seq": 0, "purpose": "sample", "model": "m", "step": 0, "extra": false, "input_tokens": input_tokens, "cache_read": cache_read,
        "cache_write": 0, "output_tokens": output_tokens, "context_tokens": input_tokens, "cost_usd": 0.0, "at_ms": at_ms, "latency_ms": 0,
        "common_prefix_tokens": 0, "invalidated_tokens": 0, "status": "ok",
    });
    serde_json::from_value(v).unwrap()
}

#[test]
fn the_team_section_by_hand() {
    let run = RunRecord {
        scenario: ScenarioInfo { id: "s".into(), scale: 0.5, ..Default::default() },
        strategy: StrategyInfo { label: "codex".into(), ..Default::default() },
        model: "m".into(),
        // At full size 40,000 and 10,000 tokens: (25,000 − 10,000 + 5,000) / 0.5 and (5,000 + 0) /
        // 0.5.
        requests: vec![request(0, 25_000, 10_000, 5_000), request(10_000, 5_000, 0, 0)],
        ..Default::default()
    };
    let text = team_section(std::slice::from_ref(&run), Team { users: 3, tpm: Some(60_000) });
    // The case of `three_users_at_once_by_hand` in core: 110 s of waiting in all, 80 s the longest.
    // All three ask for 150,000 in one minute.
    let row = "| codex | m | at once | 150,000 | 150,000 | 250 % | 6 | 2 | 0 | 36.7 s | 80.0 s |";
    assert!(text.contains(row), "{text}");
    // Spread over an hour, one begins every 20 minutes: three minutes with 50,000 each.
    let row = "| codex | m | in an hour | 50,000 | 50,000 | 83 % | 6 | 0 | 0 | 0.0 s | 0.0 s |";
    assert!(text.contains(row), "{text}");
    assert!(text.contains("200,000 to 300,000 per user, 600,000 to 900,000 for all"), "{text}");
    assert_eq!(Team { users: 200, tpm: None }.limit().tpm, 10_000_000);
    // Where two wrote summaries there is a line for each, and a session that asked for none counts
    // in both.
    let with = |s: &str| RunRecord {
        summariser: Some(s.into()),
        requests: vec![request(0, 30_000, 0, 0)],
        ..run.clone()
    };
    let text = team_section(
        &[run.clone(), with("extractive"), with("ideal")],
        Team { users: 2, tpm: None },
    );
    for row in [
        "| codex (extractive) | m | at once | 110,000 |",
        "| codex (ideal) | m | at once | 110,000 |",
    ] {
        assert!(text.contains(row), "{text}");
    }
}
