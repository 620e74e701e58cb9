//! Posts to a local server and compares the whole body.

use std::collections::BTreeMap;
use std::sync::Arc;

use ctxbench_core::model::find;
use ctxbench_core::{Reply, Request, Usage};
use ctxbench_kit::monitor::SessionMeter;
use serde_json::{Value, json};
use wiremock::matchers::{header, method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

use super::*;

/// Returns the meter of a session with one request of Sonnet 4.6.
fn session() -> SessionMeter {
    let model = find("claude-sonnet-4-6").unwrap().clone();
    let request = Request::new(Arc::new(model), vec![]);
    let usage = Usage {
        input: 1_000,
        output: 2_000,
        cache_read: 100_000,
        cache_write: 10_000,
        ..Usage::default()
    };
    let mut meter = SessionMeter::default();
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

/// Returns a metric with one data point for each of these fields, with their attributes as
/// `name=value,…`.
fn metric(name: &str, unit: &str, help: &str, kind: &str, points: Vec<(String, Value)>) -> Value {
    let points: Vec<Value> = points
        .into_iter()
        .map(|(attributes, mut point)| {
            point["attributes"] = attributes_of(&attributes);
            point["startTimeUnixNano"] = "1700000000000000000".into();
            point["timeUnixNano"] = "1700000005000000000".into();
            point
        })
        .collect();
    let mut data = json!({"dataPoints": points, "aggregationTemporality": 2});
    if kind == "sum" {
        data["isMonotonic"] = true.into();
    }
    json!({"name": name, "unit": unit, "description": help, kind: data})
}

fn attributes_of(text: &str) -> Value {
    let pairs = text.split(',').map(|pair| pair.split_once('=').unwrap());
    pairs.map(|(k, v)| json!({"key": k, "value": {"stringValue": v}})).collect()
}

/// Returns a data point of a histogram with one value.
fn one_value(bounds: &[f64], bucket: usize, sum: f64) -> Value {
    let counts: Vec<&str> =
        (0..=bounds.len()).map(|i| if i == bucket { "1" } else { "0" }).collect();
    json!({"count": "1", "sum": sum, "bucketCounts": counts, "explicitBounds": bounds})
}

#[tokio::test]
async fn export_posts_all_metrics_in_otlp_json() {
    let (server, collector) = receiver(ResponseTemplate::new(200).set_body_string("{}")).await;
    blocking(move || collector.export(&metrics(), START, START + 5_000).unwrap()).await;
    let posted = server.received_requests().await.unwrap();
    assert_eq!(posted.len(), 1);
    let mut export: Value = serde_json::from_slice(&posted[0].body).unwrap();
    let cost = "/resourceMetrics/0/scopeMetrics/0/metrics/1/sum/dataPoints/0/asDouble";
    let cost = export.pointer_mut(cost).unwrap();
    *cost = json!((cost.as_f64().unwrap() * 1e9).round() / 1e9);
    let of = "model=claude-sonnet-4-6,query_source=main,session.id=s";
    let tokens = |kind: &str, n: f64| (format!("{of},type={kind}"), json!({"asDouble": n}));
    let one = |attributes: &str, x: f64| vec![(attributes.to_string(), json!({"asDouble": x}))];
    let call = "gen_ai.operation.name=chat,gen_ai.provider.name=anthropic,\
                gen_ai.request.model=claude-sonnet-4-6";
    let powers: Vec<f64> = (0..14).map(|n| 4_f64.powi(n)).collect();
    let seconds: Vec<f64> = (0..14).map(|n| 0.01 * 2_f64.powi(n)).collect();
    // 111,000 is between 65,536 = 4^8 and 262,144 = 4^9: the tenth bucket.
    let sizes = [("input", 9, 111_000.0), ("output", 6, 2_000.0)].map(|(kind, bucket, sum)| {
        (format!("{call},gen_ai.token.type={kind}"), one_value(&powers, bucket, sum))
    });
    // By hand: 1,000×3 + 100,000×0.3 + 10,000×3.75 + 2,000×15 = 100,500 µUSD; 12.5 s.
    let used = [
        tokens("cacheCreation", 10_000.0),
        tokens("cacheRead", 100_000.0),
        tokens("input", 1_000.0),
        tokens("output", 2_000.0),
    ];
    let took = vec![(call.to_string(), one_value(&seconds, 11, 12.5))];
    let begun = one("session.id=s,start_type=fresh", 1.0);
    let active = one("session.id=s,type=cli", 12.5);
    let all = [
        metric("claude_code.session.count", "count", "Sessions", "sum", begun),
        metric("claude_code.cost.usage", "USD", "Cost of requests", "sum", one(of, 0.1005)),
        metric("claude_code.token.usage", "tokens", "Tokens of requests", "sum", used.into()),
        metric("claude_code.active_time.total", "s", "Working time of the agent", "sum", active),
        metric(
            "gen_ai.client.token.usage",
            "{token}",
            "Tokens per request",
            "histogram",
            sizes.into(),
        ),
        metric("gen_ai.client.operation.duration", "s", "Duration per request", "histogram", took),
    ];
    let version = env!("CARGO_PKG_VERSION");
    let source = attributes_of(&format!("service.name=ctxbench,service.version={version}"));
    let scope = json!({"name": "ctxbench", "version": version});
    let expected = json!({"resourceMetrics": [{
        "resource": {"attributes": source},
        "scopeMetrics": [{"scope": scope, "metrics": all}],
    }]});
    assert_eq!(export, expected);
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
