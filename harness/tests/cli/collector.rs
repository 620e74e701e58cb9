//! Sends the metrics of a run to Rotel (<https://rotel.dev>), an independent OpenTelemetry
//! collector from PyPI that `.ci/sdks` installs.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::common::{CommandFolder, sdk};

/// Maximum time for the collector to start and to print a metric.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running collector. It prints the received metrics.
struct Collector {
    child: Child,
    lines: Receiver<String>,
    port: u16,
}

impl Collector {
    fn start(program: &Path, here: &CommandFolder) -> Collector {
        // Two free ports.
        let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let [port, other] = listeners.map(|l| l.local_addr().unwrap().port());
        let mut child = Command::new(program)
            .args(["start", "--exporter", "blackhole", "--disable-batching"])
            .args(["--debug-log", "metrics", "--debug-log-verbosity", "detailed"])
            .args(["--otlp-http-endpoint", &format!("127.0.0.1:{port}")])
            .args(["--otlp-grpc-endpoint", &format!("127.0.0.1:{other}")])
            .arg("--pid-file")
            .arg(here.path("collector.pid"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|e| panic!("{}: {e}", program.display()));
        let out = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begun.elapsed() < PATIENCE, "the collector does not listen on port {port}");
            std::thread::yield_now();
        }
        Collector { child, lines, port }
    }

    fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("the collector prints the received metrics")
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn program(dir: &Path) -> Option<PathBuf> {
    let versions = std::fs::read_dir(dir.join("venv/lib")).ok()?;
    let at = |v: std::fs::DirEntry| v.path().join("site-packages/rotel/rotel-agent");
    versions.flatten().map(at).find(|p| p.is_file())
}

/// Sums by metric and kind attribute, and the resource attributes, up to the last exported metric.
#[derive(Default)]
struct ReceivedMetrics {
    resource: Vec<String>,
    metrics: Vec<String>,
    values: BTreeMap<(String, String), f64>,
}

impl ReceivedMetrics {
    fn read(collector: &Collector, last: &str) -> ReceivedMetrics {
        let mut out = ReceivedMetrics::default();
        let (mut point, mut of_point) = (String::new(), false);
        loop {
            let line = collector.line();
            let line = line.trim();
            if let Some(name) = line.strip_prefix("-> Name: ") {
                out.metrics.push(name.to_string());
                of_point = false;
                if name == last {
                    return out;
                }
            } else if line.starts_with("NumberDataPoints") {
                (point, of_point) = (String::new(), true);
            } else if let Some(attribute) = line.strip_prefix("-> ") {
                match attribute.strip_prefix("type: Str(") {
                    Some(kind) if of_point => point = kind.trim_end_matches(')').to_string(),
                    _ if out.metrics.is_empty() => out.resource.push(attribute.to_string()),
                    _ => {}
                }
            } else if let Some(value) = line.strip_prefix("Value: ").filter(|_| of_point) {
                let metric = out.metrics.last().cloned().unwrap_or_default();
                *out.values.entry((metric, point.clone())).or_default() +=
                    value.parse::<f64>().unwrap();
            }
        }
    }

    fn value(&self, metric: &str, kind: &str) -> f64 {
        self.values.get(&(metric.to_string(), kind.to_string())).copied().unwrap_or_default()
    }
}

#[test]
#[ignore = "needs .ci/sdks"]
fn collector_receives_usage_and_cost_of_a_run() {
    let dir = sdk::folder();
    let program = program(&dir).expect("`.ci/sdks` installs the collector");
    let here = CommandFolder::new();
    let collector = Collector::start(&program, &here);
    let run = format!(
        "run login-bug-tight --strategy codex --transport direct --otel http://127.0.0.1:{}",
        collector.port
    );
    here.run(&run).ok();
    let received = ReceivedMetrics::read(&collector, "gen_ai.client.operation.duration");
    let version = format!("service.version: Str({})", env!("CARGO_PKG_VERSION"));
    assert_eq!(received.resource, ["service.name: Str(ctxbench)", &version]);
    assert_eq!(received.metrics.len(), 6, "{:?}", received.metrics);
    let summary = here.runs("ctxbench-out")[0]["summary"].clone();
    let figure = |name: &str| summary[name].as_f64().unwrap();
    let tokens = |kind| received.value("claude_code.token.usage", kind);
    assert_eq!(tokens("output"), figure("output_tokens"));
    assert_eq!(tokens("cacheRead"), figure("cache_read_tokens"));
    let input = ["input", "cacheRead", "cacheCreation"].map(tokens).iter().sum::<f64>();
    assert_eq!(input, figure("input_tokens"));
    let cost = received.value("claude_code.cost.usage", "");
    assert!((cost - figure("cost_usd")).abs() < 1e-9, "{cost} received");
}
