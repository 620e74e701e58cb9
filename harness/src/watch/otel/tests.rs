//! Against a receiver on loopback that decodes what is posted by the protocol's own field names,
//! and knows no others.

use std::collections::BTreeMap;
use std::sync::Arc;

use ctxbench_core::content::{Part, ToolCall};
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

/// One request of Sonnet 4.6 that edits a file and commits.
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
    let call = |id: &str, name: &str, arguments: &str| {
        Part::Call(ToolCall { id: id.into(), name: name.into(), arguments: Arc::from(arguments) })
    };
    let parts = vec![
        call("1", "edit_file", r#"{"path":"a.rs","old":"x","new":"y\nz"}"#),
        call("2", "bash", r#"{"command":"git commit -am x && gh pr create"}"#),
    ];
    let usage = Usage {
        input: 1_000,
        output: 2_000,
        cache_read: 100_000,
        cache_write: 10_000,
        ..Usage::default()
    };
    let mut meter = SessionMeter::new(200_000);
    meter.observe(
        &request,
        &Ok(Reply { parts, usage, billed: usage, ..Reply::default() }),
        0,
        12_500,
    );
    meter.close();
    meter
}

fn counted() -> Metrics {
    let mut m = Metrics::default();
    m.add_session("s", &session());
    m
}

/// Runs blocking work while the receiver answers.
async fn blocking<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(f).await.unwrap()
}

async fn receiver(answer: ResponseTemplate) -> (MockServer, Sink) {
    let server = MockServer::start().await;
    let takes = Mock::given(method("POST"))
        .and(path("/v1/metrics"))
        .and(header("content-type", "application/json"));
    takes.respond_with(answer).mount(&server).await;
    let sink = format!("otlp={}", server.uri()).parse().unwrap();
    (server, sink)
}

const START: u64 = 1_700_000_000_000;

#[tokio::test]
async fn otel_a_receiver_reads_the_eight_names_and_those_of_gen_ai() {
    let (server, sink) = receiver(ResponseTemplate::new(200).set_body_string("{}")).await;
    blocking(move || Exporter::new(vec![sink], START).flush(&counted(), START + 5_000).unwrap())
        .await;
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
    // By hand: 1,000×3 + 100,000×0.3 + 10,000×3.75 + 2,000×15 = 100,500 µUSD; 12.5 s; one line
    // became two.
    let model = "model=claude-sonnet-4-6,query_source=main,session.id=s";
    let expected: BTreeMap<(&str, String), (&str, f64)> = [
        ("claude_code.session.count", "session.id=s,start_type=fresh".into(), "count", 1.0),
        ("claude_code.lines_of_code.count", "session.id=s,type=added".into(), "count", 2.0),
        ("claude_code.lines_of_code.count", "session.id=s,type=removed".into(), "count", 1.0),
        ("claude_code.pull_request.count", "session.id=s".into(), "count", 1.0),
        ("claude_code.commit.count", "session.id=s".into(), "count", 1.0),
        ("claude_code.cost.usage", model.into(), "USD", 0.1005),
        ("claude_code.token.usage", format!("{model},type=input"), "tokens", 1_000.0),
        ("claude_code.token.usage", format!("{model},type=output"), "tokens", 2_000.0),
        ("claude_code.token.usage", format!("{model},type=cacheRead"), "tokens", 100_000.0),
        ("claude_code.token.usage", format!("{model},type=cacheCreation"), "tokens", 10_000.0),
        (
            "claude_code.code_edit_tool.decision",
            "decision=accept,language=rs,session.id=s,source=config,tool_name=edit_file".into(),
            "count",
            1.0,
        ),
        ("claude_code.active_time.total", "session.id=s,type=cli".into(), "s", 12.5),
    ]
    .into_iter()
    .map(|(n, a, u, x)| ((n, a), (u, x)))
    .collect();
    let mut seen = BTreeMap::new();
    for m in &s.metrics {
        assert!(!m.description.is_empty());
        let Some(sum) = &m.sum else { continue };
        assert!(sum.is_monotonic && sum.aggregation_temporality == 2);
        for p in &sum.data_points {
            assert_eq!(
                (p.start_time_unix_nano.as_str(), p.time_unix_nano.as_str()),
                ("1700000000000000000", "1700000005000000000")
            );
            seen.insert(
                (m.name.as_str(), flat(&p.attributes)),
                (m.unit.as_str(), (p.as_double * 1e9).round() / 1e9),
            );
        }
    }
    assert_eq!(seen, expected);
    let gen_ai = |name: &str| {
        let m = s.metrics.iter().find(|m| m.name == name).unwrap();
        let h = m.histogram.as_ref().unwrap();
        assert_eq!(h.aggregation_temporality, 2);
        (m.unit.clone(), &h.data_points)
    };
    let (unit, tokens) = gen_ai("gen_ai.client.token.usage");
    assert_eq!((unit.as_str(), tokens.len()), ("{token}", 2));
    let of = "gen_ai.operation.name=chat,gen_ai.provider.name=anthropic,gen_ai.request.model=claude-sonnet-4-6";
    assert_eq!(flat(&tokens[0].attributes), format!("{of},gen_ai.token.type=input"));
    // 111,000 lies between 65,536 = 4^8 and 262,144 = 4^9: the tenth bucket.
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
async fn otel_every_sixty_seconds_and_everything_since_the_start() {
    let (server, sink) = receiver(ResponseTemplate::new(200)).await;
    blocking(move || {
        let (mut e, mut m) = (Exporter::new(vec![sink], START), counted());
        assert!(!e.tick(&m, START + 59_999).unwrap());
        assert!(e.tick(&m, START + 60_000).unwrap());
        m.add_session("s", &session());
        assert!(!e.tick(&m, START + 119_999).unwrap());
        assert!(e.tick(&m, START + 120_000).unwrap());
        e.flush(&m, START + 121_000).unwrap();
    })
    .await;
    let sessions: Vec<f64> = server
        .received_requests()
        .await
        .unwrap()
        .iter()
        .map(|r| {
            let v: serde_json::Value = serde_json::from_slice(&r.body).unwrap();
            v["resourceMetrics"][0]["scopeMetrics"][0]["metrics"][0]["sum"]["dataPoints"][0]["asDouble"].as_f64().unwrap()
        })
        .collect();
    assert_eq!(sessions, [1.0, 2.0, 2.0]);
}

#[tokio::test]
async fn otel_the_interval_and_the_resource_can_be_set() {
    let (server, sink) = receiver(ResponseTemplate::new(200)).await;
    blocking(move || {
        let of = |text: &str| text.parse::<Attribute>().unwrap();
        let more = vec![of("deployment.environment.name=ci"), of("service.name=nightly=1")];
        let mut e = Exporter::new(vec![sink], START).with_interval(500).with_attributes(more);
        let m = counted();
        assert!(!e.tick(&m, START + 499).unwrap());
        assert!(e.tick(&m, START + 500).unwrap() && !e.tick(&m, START + 999).unwrap());
    })
    .await;
    let posted = server.received_requests().await.unwrap();
    let export: Export = serde_json::from_slice(&posted[0].body).unwrap();
    assert_eq!(
        flat(&export.resource_metrics[0].resource.attributes),
        format!(
            "deployment.environment.name=ci,service.name=nightly=1,service.version={}",
            env!("CARGO_PKG_VERSION")
        )
    );
    for bad in ["x", "=x", " =x"] {
        assert!(bad.parse::<Attribute>().unwrap_err().contains("expected KEY=VALUE"), "{bad}");
    }
}

#[tokio::test]
async fn otel_what_a_collector_does_not_take_is_said() {
    let partial = r#"{"partialSuccess":{"rejectedDataPoints":"3","errorMessage":"too old"}}"#;
    for (answer, words) in [
        (ResponseTemplate::new(503).set_body_string("busy"), "503 Service Unavailable busy"),
        (
            ResponseTemplate::new(200).set_body_string(partial),
            "3 data points were rejected: too old",
        ),
    ] {
        let (_server, sink) = receiver(answer).await;
        let why = blocking(move || {
            Exporter::new(vec![sink], START).flush(&counted(), START).unwrap_err().to_string()
        })
        .await;
        assert!(why.contains(words), "{why}");
    }
}

#[test]
fn otel_prometheus_text_and_the_ways_to_name_a_sink() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("ctxbench.prom");
    let sink: Sink = format!("prometheus={}", file.display()).parse().unwrap();
    Exporter::new(vec![sink], START).flush(&counted(), START).unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    for line in [
        "# TYPE claude_code_cost_usage_USD_total counter",
        r#"claude_code_session_count_total{session_id="s",start_type="fresh"} 1"#,
        r#"claude_code_active_time_seconds_total{session_id="s",type="cli"} 12.5"#,
        r#"claude_code_token_usage_tokens_total{model="claude-sonnet-4-6",query_source="main",session_id="s",type="cacheRead"} 100000"#,
        "# TYPE gen_ai_client_operation_duration_seconds histogram",
    ] {
        assert!(text.lines().any(|l| l == line), "{line}\n{text}");
    }
    // 12.5 s: above 10.24, not above 20.48; cumulative from there on.
    let buckets: Vec<&str> = text
        .lines()
        .filter(|l| l.starts_with("gen_ai_client_operation_duration_seconds_bucket"))
        .collect();
    let counts: Vec<&str> = buckets.iter().filter_map(|l| l.rsplit(' ').next()).collect();
    assert_eq!(counts, ["0", "0", "0", "0", "0", "0", "0", "0", "0", "0", "0", "1", "1", "1", "1"]);
    assert!(buckets[14].contains(r#"le="+Inf""#));
    let otlp = |text: &str| match text.parse() {
        Ok(Sink::Otlp(uri)) => uri.to_string(),
        other => panic!("{other:?}"),
    };
    assert_eq!(otlp("otlp"), "http://localhost:4318/v1/metrics");
    assert_eq!(otlp("otlp=http://c:9/x"), "http://c:9/x");
    assert_eq!("console".parse(), Ok(Sink::Console));
    for no in ["", "otlp=https://c", "otlp=c", "prometheus", "statsd=x", "console=x"] {
        assert!(no.parse::<Sink>().is_err(), "{no}");
    }
}
