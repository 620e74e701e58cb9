//! Posts to a local server and decodes the body with only the protocol's field names.

use std::collections::BTreeMap;
use std::sync::Arc;

use ctxbench_core::model::find;
use ctxbench_core::request::{Purpose, Reply, Request, Ttl, Usage};
use ctxbench_kit::monitor::SessionMeter;
use serde::Deserialize;
use wiremock::matchers::{header, method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

use super::*;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Export {
    resource_metrics: Vec<ResourceMetrics>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ResourceMetrics {
    resource: Resource,
    scope_metrics: Vec<ScopeMetrics>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Resource {
    attributes: Vec<KeyValue>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScopeMetrics {
    scope: Scope,
    metrics: Vec<Metric>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scope {
    name: String,
    version: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Metric {
    name: String,
    unit: String,
    description: String,
    sum: Option<Sum>,
    histogram: Option<Histogram>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Sum {
    data_points: Vec<Number>,
    aggregation_temporality: u32,
    is_monotonic: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Histogram {
    data_points: Vec<HistogramPoint>,
    aggregation_temporality: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Number {
    attributes: Vec<KeyValue>,
    start_time_unix_nano: String,
    time_unix_nano: String,
    as_double: f64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct HistogramPoint {
    attributes: Vec<KeyValue>,
    start_time_unix_nano: String,
    time_unix_nano: String,
    count: String,
    sum: f64,
    bucket_counts: Vec<String>,
    explicit_bounds: Vec<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyValue {
    key: String,
    value: AnyValue,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct AnyValue {
    string_value: String,
}

fn flat(all: &[KeyValue]) -> String {
    all.iter().map(|a| format!("{}={}", a.key, a.value.string_value)).collect::<Vec<_>>().join(",")
}

/// Returns the meter of a session with one request of Sonnet 4.6.
fn session() -> SessionMeter {
    let request = Request {
        purpose: Purpose::Sample,
        phase: None,
        model: Arc::new(find("claude-sonnet-4-6").unwrap().clone()),
        max_tokens: None,
        tools: None,
        blocks: vec![],
        breakpoints: vec![],
        ttl: Ttl::FiveMinutes,
        server_edits: vec![],
        keep_messages: false,
        params: Default::default(),
        thread: None,
    };
    let usage = Usage {
        input: 1_000,
        output: 2_000,
        cache_read: 100_000,
        cache_write: 10_000,
        ..Usage::default()
    };
    let mut meter = SessionMeter::new(200_000);
    let reply = Reply { usage, billed: usage, ..Reply::default() };
    meter.observe(None, &request, &Ok(reply), 0, 12_500);
    meter
}

fn metrics() -> Metrics {
    let mut m = Metrics::default();
    m.add_session("s", &session());
    m
}

/// Runs blocking code while the server answers.
async fn blocking<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(f).await.unwrap()
}

async fn receiver(response: ResponseTemplate) -> (MockServer, Collector) {
    let server = MockServer::start().await;
    let takes = Mock::given(method("POST"))
        .and(path("/v1/metrics"))
        .and(header("content-type", "application/json"));
    takes.respond_with(response).mount(&server).await;
    let collector = server.uri().parse().unwrap();
    (server, collector)
}

const START: u64 = 1_700_000_000_000;

#[tokio::test]
async fn export_posts_all_metrics_in_otlp_json() {
    let (server, collector) = receiver(ResponseTemplate::new(200).set_body_string("{}")).await;
    blocking(move || collector.export(&metrics(), START, START + 5_000).unwrap()).await;
    let posted = server.received_requests().await.unwrap();
    assert_eq!(posted.len(), 1);
    let export: Export = serde_json::from_slice(&posted[0].body).unwrap();
    let [r] = &export.resource_metrics[..] else { panic!() };
    let version = env!("CARGO_PKG_VERSION");
    let source = format!("service.name=ctxbench,service.version={version}");
    assert_eq!(flat(&r.resource.attributes), source);
    let [s] = &r.scope_metrics[..] else { panic!() };
    assert_eq!(
        (s.scope.name.as_str(), s.scope.version.as_str()),
        ("ctxbench", env!("CARGO_PKG_VERSION"))
    );
    // By hand: 1,000×3 + 100,000×0.3 + 10,000×3.75 + 2,000×15 = 100,500 µUSD; 12.5 s.
    let model = "model=claude-sonnet-4-6,query_source=main,session.id=s";
    let expected: BTreeMap<(&str, String), (&str, f64)> = [
        ("claude_code.session.count", "session.id=s,start_type=fresh".into(), "count", 1.0),
        ("claude_code.cost.usage", model.into(), "USD", 0.1005),
        ("claude_code.token.usage", format!("{model},type=input"), "tokens", 1_000.0),
        ("claude_code.token.usage", format!("{model},type=output"), "tokens", 2_000.0),
        ("claude_code.token.usage", format!("{model},type=cacheRead"), "tokens", 100_000.0),
        ("claude_code.token.usage", format!("{model},type=cacheCreation"), "tokens", 10_000.0),
        ("claude_code.active_time.total", "session.id=s,type=cli".into(), "s", 12.5),
    ]
    .into_iter()
    .map(|(n, a, u, x)| ((n, a), (u, x)))
    .collect();
    let mut received = BTreeMap::new();
    for m in &s.metrics {
        assert!(!m.description.is_empty());
        let Some(sum) = &m.sum else { continue };
        assert!(sum.is_monotonic && sum.aggregation_temporality == 2);
        for p in &sum.data_points {
            assert_eq!(
                (p.start_time_unix_nano.as_str(), p.time_unix_nano.as_str()),
                ("1700000000000000000", "1700000005000000000")
            );
            received.insert(
                (m.name.as_str(), flat(&p.attributes)),
                (m.unit.as_str(), (p.as_double * 1e9).round() / 1e9),
            );
        }
    }
    assert_eq!(received, expected);
    let gen_ai = |name: &str| {
        let m = s.metrics.iter().find(|m| m.name == name).unwrap();
        let h = m.histogram.as_ref().unwrap();
        assert_eq!(h.aggregation_temporality, 2);
        (m.unit.clone(), &h.data_points)
    };
    let (unit, tokens) = gen_ai("gen_ai.client.token.usage");
    assert_eq!((unit.as_str(), tokens.len()), ("{token}", 2));
    let attributes = "gen_ai.operation.name=chat,gen_ai.provider.name=anthropic,gen_ai.request.model=claude-sonnet-4-6";
    assert_eq!(flat(&tokens[0].attributes), format!("{attributes},gen_ai.token.type=input"));
    // 111,000 is between 65,536 = 4^8 and 262,144 = 4^9: the tenth bucket.
    let filled: Vec<usize> = (0..15).filter(|i| tokens[0].bucket_counts[*i] == "1").collect();
    assert_eq!((filled, tokens[0].sum, tokens[0].explicit_bounds.len()), (vec![9], 111_000.0, 14));
    assert_eq!((tokens[1].count.as_str(), tokens[1].sum), ("1", 2_000.0));
    let (unit, took) = gen_ai("gen_ai.client.operation.duration");
    assert_eq!(
        (
            unit.as_str(),
            took[0].sum,
            took[0].start_time_unix_nano.len(),
            took[0].time_unix_nano.len()
        ),
        ("s", 12.5, 19, 19)
    );
}

#[tokio::test]
async fn export_rejected_by_collector_fails_with_its_response() {
    let partial = r#"{"partialSuccess":{"rejectedDataPoints":"3","errorMessage":"too old"}}"#;
    for (response, message) in [
        (ResponseTemplate::new(503).set_body_string("busy"), "503 Service Unavailable busy"),
        (
            ResponseTemplate::new(200).set_body_string(partial),
            "3 data points were rejected: too old",
        ),
    ] {
        let (_server, collector) = receiver(response).await;
        let error = blocking(move || collector.export(&metrics(), START, START).unwrap_err());
        let error = error.await.to_string();
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn resource_attributes_of_environment_take_precedence() {
    let version = env!("CARGO_PKG_VERSION").to_string();
    let own = [("service.name", "ctxbench".to_string()), ("service.version", version)];
    let own = own.map(|(k, v)| (k.to_string(), v));
    assert_eq!(resource(None), BTreeMap::from(own.clone()));
    let mut expected = BTreeMap::from(own);
    expected.insert("service.name".into(), "nightly".into());
    expected.insert("deployment.environment.name".into(), "ci".into());
    let environment = "deployment.environment.name=ci, service.name=nightly";
    assert_eq!(resource(Some(environment)), expected);
}

#[test]
fn collector_parses_url_and_adds_default_path() {
    let url = |text: &str| text.parse::<Collector>().unwrap().0.to_string();
    assert_eq!(url("http://localhost:4318"), "http://localhost:4318/v1/metrics");
    assert_eq!(url("http://c:9/x"), "http://c:9/x");
    for invalid in ["", "https://c", "c", "console"] {
        assert!(invalid.parse::<Collector>().is_err(), "{invalid}");
    }
}
