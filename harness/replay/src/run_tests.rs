//! Tests of whole runs with several summarisers, and with a recorded server.

use std::path::Path;
use std::sync::Arc;

use ctxbench_core::model::find;
use ctxbench_reports::record::{Results, Status};
use ctxbench_scenarios::load;
use ctxbench_strategies::Spec;
use serde_json::json;
use wiremock::matchers::any;
use wiremock::{Mock, MockServer, Request, ResponseTemplate};

use crate::options::Options;
use crate::run::{Plan, results};
use ctxbench_mock::Transport;
use ctxbench_mock::summarise::Summariser;
use ctxbench_mock::summarise::endpoint::{Address, Cassette, Endpoint};

const STRATEGIES: [&str; 5] =
    ["reference", "sliding-window", "codex", "claude-code", "anthropic-sdk"];

fn run(summarisers: Vec<Summariser>, jobs: usize, transport: Transport) -> Results {
    let plan = Plan {
        scenarios: load("login-bug-tight").unwrap().scenarios,
        specs: STRATEGIES.iter().map(|s| Spec::parse(s).unwrap()).collect(),
        models: vec![find("claude-sonnet-4-6").unwrap()],
        options: Options { transport, ..Options::default() },
        summarisers,
        jobs,
        ..Plan::default()
    };
    results(&plan, plan.run(&|_| {}))
}

fn rows(r: &Results) -> Vec<(&str, Option<&str>)> {
    r.runs.iter().map(|r| (r.strategy.label.as_str(), r.summariser.as_deref())).collect()
}

#[test]
fn who_asks_for_no_summary_runs_once() {
    let both = run(vec![Summariser::Extractive, Summariser::Ideal], 2, Transport::Direct);
    let (e, i) = (Some("extractive"), Some("ideal"));
    let want = [
        ("anthropic-sdk", e),
        ("anthropic-sdk", i),
        ("claude-code", e),
        ("claude-code", i),
        ("codex", e),
        ("codex", i),
        ("reference", None),
        ("sliding-window", None),
    ];
    assert_eq!(rows(&both), want);
    // Each row is the same as in a run with a single summariser. Savings are relative to the only
    // reference.
    let alone = run(vec![Summariser::Ideal], 1, Transport::Direct);
    for r in &alone.runs {
        assert!(both.runs.contains(r), "{} {:?}", r.strategy.label, r.summariser);
    }
}

fn endpoint(url: &str, cassette: &Path, offline: bool) -> Vec<Summariser> {
    let cassette = Arc::new(Cassette::open(cassette, offline).unwrap());
    let address = Address::parse(url).unwrap();
    vec![Summariser::Endpoint(Arc::new(Endpoint::new(address, None, cassette).unwrap()))]
}

#[test]
fn a_recorded_model_gives_the_same_bytes_offline_whatever_the_door_and_the_threads() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(MockServer::start());
    // The summary depends on the request, so the test fails if two requests are mixed up.
    let reply = |r: &Request| {
        let text =
            format!("I read {} bytes. The cookie is hs_sid, until 2026-03-31.", r.body.len());
        ResponseTemplate::new(200).set_body_json(
            json!({"content": [{"type": "text", "text": text}], "stop_reason": "end_turn"}),
        )
    };
    runtime.block_on(Mock::given(any()).respond_with(reply).mount(&server));
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("cassette.jsonl");
    let live =
        run(endpoint(&format!("anthropic+{}", server.uri()), &file, false), 3, Transport::Direct);
    assert!(
        live.runs.iter().all(|r| r.status != Status::Error),
        "{:?}",
        live.runs.iter().map(|r| &r.error).collect::<Vec<_>>()
    );
    assert!(live.runs.iter().filter(|r| r.summariser.as_deref() == Some("endpoint")).count() >= 3);
    let asked = runtime.block_on(server.received_requests()).unwrap().len();
    let recorded = std::fs::read_to_string(&file).unwrap();
    assert_eq!(recorded.lines().count(), asked + 1, "each request is asked and stored once");
    drop(server);
    for (jobs, transport) in [(1, Transport::Direct), (2, Transport::Http)] {
        assert_eq!(
            run(endpoint("anthropic+https://nowhere.invalid", &file, true), jobs, transport),
            live
        );
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), recorded);
    // Recording with one thread gives the same cassette.
    let again = runtime.block_on(MockServer::start());
    runtime.block_on(Mock::given(any()).respond_with(reply).mount(&again));
    let second = dir.path().join("second.jsonl");
    run(endpoint(&format!("anthropic+{}", again.uri()), &second, false), 1, Transport::Direct);
    assert_eq!(std::fs::read_to_string(&second).unwrap(), recorded);
}

#[test]
fn a_missing_answer_is_an_error_of_its_row_and_names_request_and_strategy() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("cassette.jsonl");
    std::fs::write(&file, "{\"type\":\"cassette\",\"version\":1}\n").unwrap();
    for transport in [Transport::Direct, Transport::Http] {
        let all = run(endpoint("anthropic+https://nowhere.invalid", &file, true), 2, transport);
        for r in &all.runs {
            let name = r.strategy.label.as_str();
            let asks = !matches!(name, "reference" | "sliding-window");
            assert_eq!(r.status == Status::Error, asks, "{name}: {:?}", r.error);
            if asks {
                let why = r.error.as_deref().unwrap();
                assert!(
                    why.starts_with(&format!("{name}: no summary for request "))
                        && why.contains("offline"),
                    "{why}"
                );
            }
        }
    }
}

#[test]
fn a_script_that_runs_out_is_an_error_of_its_row() {
    // The session is scripted by hand and has no recorded summary.
    let all = run(vec![Summariser::Scripted], 1, Transport::Direct);
    let codex = all.runs.iter().find(|r| r.strategy.label == "codex").unwrap();
    assert_eq!(
        (codex.status, codex.error.as_deref()),
        (Status::Error, Some("codex: summary 1 is requested, and the script has 0"))
    );
    let enough = vec!["Keep the cookie.".to_string(); 200];
    let all = run(vec![Summariser::Again(enough.into(), Box::default())], 1, Transport::Direct);
    let codex = all.runs.iter().find(|r| r.strategy.label == "codex").unwrap();
    assert_eq!(codex.status, Status::Completed, "{:?}", codex.error);
}
