use ctxbench_core::model::find;
use ctxbench_core::request::ErrorKind;
use ctxbench_reports::record::{RequestStatus, Status};
use ctxbench_scenarios::load;
use ctxbench_strategies::Spec;

use super::Watch;
use crate::options::{Options, Replayed};
use crate::replay::replay;

fn replay_with(scenario: &str, strategy: &str, watch: Option<Watch>) -> Replayed {
    let scenario = load(scenario).unwrap().scenarios.remove(0);
    let spec = Spec::parse(strategy).unwrap();
    let options = Options { watch, ..Options::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(replay(&scenario, &spec, find("claude-sonnet-4-6").unwrap(), &options))
}

#[test]
fn monitored_run_gives_same_record_and_cost() {
    let plain = replay_with("login-bug-tight", "claude-code", None);
    let watch = Watch::default();
    let watched = replay_with("login-bug-tight", "claude-code", Some(watch));
    assert_eq!(plain.record, watched.record);
    let r = &watched.record;
    // The record is summed from the log, the cost from the requests.
    assert!((watched.seen.meter.as_ref().unwrap().cost_usd() - r.summary.cost_usd).abs() < 1e-9);
}

#[test]
fn spend_limit_ends_run_before_request_that_exceeds_it() {
    let whole = replay_with("login-bug-tight", "codex", None).record.summary.cost_usd;
    for (scenario, strategy, usd, ends) in [
        ("login-bug-tight", "codex", whole / 2.0, true),
        // This limit refuses the request for a summary.
        ("huge-next-reply", "opencode", 0.12, true),
        ("login-bug-tight", "codex", whole * 3.0, false),
    ] {
        let spend = vec![format!("{usd:.6}").parse().unwrap()];
        let watch = Watch { spend };
        let r = replay_with(scenario, strategy, Some(watch)).record;
        assert_eq!(r.status == Status::Failed, ends, "{strategy}: {:?}", r.error);
        assert_eq!(r.summary.user_interventions, 0, "{strategy}");
        // A refused request is not recorded.
        let refused = RequestStatus::Failed(ErrorKind::SessionEnd);
        assert!(r.requests.iter().all(|q| q.status != refused), "{strategy}");
        if strategy == "codex" {
            assert!(r.summary.cost_usd > 0.0 && r.summary.cost_usd <= usd * 1.05, "{usd}");
            assert_eq!(r.summary.steps_completed < r.summary.steps_total, ends);
            assert!(r.requests.iter().all(|q| q.status == RequestStatus::Ok));
            let error = r.error.unwrap_or_default();
            let told = error.starts_with("spend limit of ") && error.contains("was not sent");
            assert_eq!(told, ends, "{error}");
        }
    }
}
