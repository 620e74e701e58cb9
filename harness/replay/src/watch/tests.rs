use ctxbench_core::model::find;
use ctxbench_core::request::{ErrorKind, Purpose};
use ctxbench_reports::record::{RequestStatus, Status};
use ctxbench_scenarios::load;
use ctxbench_strategies::Spec;
use serde_json::Value;

use super::{Observations, Watch};
use crate::options::{Options, Replayed};
use crate::replay::replay;

fn replay_with(scenario: &str, strategy: &str, watch: Option<Watch>) -> Replayed {
    let scenario = load(scenario).unwrap().scenarios.remove(0);
    let spec = Spec::parse(strategy).unwrap();
    let options = Options { watch, ..Options::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(replay(&scenario, &spec, find("claude-sonnet-4-6").unwrap(), &options))
}

fn status(observations: &Observations) -> Vec<Value> {
    observations.status.iter().map(|l| serde_json::from_str(l).unwrap()).collect()
}

#[test]
fn monitored_run_gives_same_record_and_matching_status() {
    let plain = replay_with("login-bug-tight", "claude-code", None);
    let watched =
        replay_with("login-bug-tight", "claude-code", Some(Watch { status: true, spend: vec![] }));
    assert_eq!(plain.record, watched.record);
    let r = &watched.record;
    let lines = status(&watched.seen);
    let samples =
        r.requests.iter().filter(|q| q.purpose == Purpose::Sample && q.status == RequestStatus::Ok);
    assert_eq!(lines.len(), samples.count());
    let last = lines.last().unwrap();
    // The record is summed from the log, the status line from the meter.
    assert!((watched.seen.meter.as_ref().unwrap().cost_usd() - r.summary.cost_usd).abs() < 1e-9);
    assert_eq!(last["context_window"]["total_output_tokens"], r.summary.output_tokens);
    assert_eq!(last["context_window"]["context_window_size"], r.window);
    assert_eq!(last["session_id"], "login-bug-tight/claude-code/claude-sonnet-4-6/extractive/1");
    assert!(
        last["usage_tag"].as_str().unwrap().starts_with("<system_warning>Token usage: "),
        "Sonnet 4.6 has usage tags"
    );
    let costs: Vec<f64> =
        lines.iter().map(|l| l["cost"]["total_cost_usd"].as_f64().unwrap()).collect();
    assert!(costs.windows(2).all(|w| w[0] < w[1]), "every reply has a cost");
}

#[test]
fn spend_limit_ends_run_before_request_that_exceeds_it() {
    let whole = replay_with("login-bug-tight", "codex", None).record.summary.cost_usd;
    let limit = format!("{:.6}", whole / 2.0);
    let stopped = replay_with(
        "login-bug-tight",
        "codex",
        Some(Watch { spend: vec![limit.parse().unwrap()], ..Watch::default() }),
    );
    let r = &stopped.record;
    assert_eq!(r.status, Status::Failed);
    let error = r.error.as_deref().unwrap();
    assert!(error.starts_with("spend limit of ") && error.contains("was not sent"), "{error}");
    assert!(
        r.summary.cost_usd > 0.0 && r.summary.cost_usd <= whole / 2.0 * 1.05,
        "{} of {}",
        r.summary.cost_usd,
        whole / 2.0
    );
    assert!(r.summary.steps_completed < r.summary.steps_total);
    // A refused request is not recorded, and the user does not intervene.
    assert!(r.requests.iter().all(|q| q.status == RequestStatus::Ok));
    assert_eq!(r.summary.user_interventions, 0);
    // A refused summary request ends the run as well.
    let limit = Watch { spend: vec!["0.12".parse().unwrap()], ..Watch::default() };
    let r = replay_with("huge-next-reply", "opencode", Some(limit)).record;
    assert_eq!((r.status, r.summary.user_interventions), (Status::Failed, 0));
    assert!(r.requests.iter().all(|q| q.status != RequestStatus::Failed(ErrorKind::SessionEnd)));
    let enough = format!("{:.6}", whole * 3.0);
    let free = replay_with(
        "login-bug-tight",
        "codex",
        Some(Watch { spend: vec![enough.parse().unwrap()], ..Watch::default() }),
    );
    assert_eq!(free.record.status, Status::Completed);
}
