//! The request log: a JSON line per request, with the fields of the trace where they mean the same.
//! Headers are never written, so no key is.

use std::io::Write;

use ctxbench_core::model::Counting;
use ctxbench_core::{BlockKind, Usage};
use ctxbench_provider::{Item, Prompt};
use serde::Serialize;
use serde_with::skip_serializing_none;

use ctxbench_replay::TraceItem;
use ctxbench_util::hash::sha256;

/// Shorter texts are written into the log, as in traces, bytes.
const SHORT: usize = 200;

/// Texts in the lines of a log.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum LogTexts {
    /// There is no log, so that pieces are not even listed: each costs a hash of its text.
    Nothing,
    Short,
    All,
}

#[skip_serializing_none]
#[derive(Default, Serialize)]
pub(super) struct LogLine {
    pub(super) seq: u64,
    pub(super) method: String,
    pub(super) path: String,
    pub(super) model: Option<String>,
    /// The reply comes as events.
    pub(super) stream: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) items: Vec<TraceItem<'static>>,
    pub(super) tools: bool,
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) tools_tokens: u64,
    pub(super) max_tokens: Option<u64>,
    pub(super) input_tokens: u64,
    pub(super) cache_read: u64,
    pub(super) cache_write: u64,
    pub(super) output_tokens: u64,
    pub(super) cost_usd: f64,
    pub(super) at_ms: u64,
    pub(super) latency_ms: u64,
    pub(super) http: u16,
    /// `ok`, or the kind of failure.
    pub(super) status: &'static str,
    pub(super) error: Option<String>,
    pub(super) fault: Option<String>,
    /// Value of the `retry-after` header, seconds.
    #[serde(skip)]
    pub(super) retry_after: Option<u64>,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl LogLine {
    /// Records the contents of a prompt.
    pub(super) fn prompt(&mut self, prompt: &Prompt, by: &Counting, texts: LogTexts) {
        self.model = Some(prompt.model.to_string());
        self.tools = prompt.tools.is_some();
        self.max_tokens = prompt.max_tokens;
        if texts != LogTexts::Nothing {
            self.tools_tokens = prompt.tools_tokens(by);
            self.items = prompt.items.iter().map(|i| logged_item(by, i, texts)).collect();
        }
    }

    /// Records the bill; input as in traces: the whole prompt.
    pub(super) fn usage(&mut self, billed: &Usage) {
        self.input_tokens = billed.prompt();
        self.cache_read = billed.cache_read;
        self.cache_write = billed.cache_write + billed.cache_write_1h;
        self.output_tokens = billed.output;
    }
}

fn logged_item(by: &Counting, item: &Item, texts: LogTexts) -> TraceItem<'static> {
    let id = item.call.as_ref().map(|c| &c.id);
    let name = item.call.as_ref().filter(|_| item.kind == BlockKind::Call).map(|c| &c.name);
    let text = item.text();
    TraceItem {
        kind: item.kind,
        role: item.role,
        bytes: text.len(),
        tokens: item.tokens(by),
        sha256: sha256(text).into(),
        id: id.map(|s| s.to_string().into()),
        name: name.map(|s| s.to_string().into()),
        form: None,
        cache: item.cache.is_some(),
        text: (texts == LogTexts::All || text.len() < SHORT).then(|| text.to_string().into()),
    }
}

/// A log, if there is one, and the number of requests.
pub(super) struct RequestLog {
    to: Option<Box<dyn Write + Send>>,
    lines: u64,
}

impl RequestLog {
    pub(super) fn new(to: Option<Box<dyn Write + Send>>) -> Self {
        RequestLog { to, lines: 0 }
    }

    /// Numbers a line, from 1, and writes it at once, so that a reader sees it while the server
    /// runs. When that fails it is said once and logging ends.
    pub(super) fn write(&mut self, mut line: LogLine) -> u64 {
        self.lines += 1;
        line.seq = self.lines;
        if let Some(out) = &mut self.to {
            let text = serde_json::to_string(&line).expect("plain data always serialises") + "\n";
            if let Err(e) = out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
                let mut standard = std::io::stderr();
                let _ = writeln!(standard, "the request log cannot be written any more: {e}");
                self.to = None;
            }
        }
        self.lines
    }
}
