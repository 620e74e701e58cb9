//! The request log: a JSON line per request, with the fields of the trace where they mean the same.
//! Headers are never written, so no key is.

use std::io::Write;
use std::sync::Mutex;

use ctxbench_core::block::{BlockKind, Role};
use ctxbench_core::model::Counting;
use ctxbench_core::usage::Usage;
use ctxbench_provider::{Content, Item, Prompt};
use serde::Serialize;

use ctxbench_os::sha256;

/// Shorter texts are written into the log, as in traces, bytes.
const SHORT: usize = 200;

#[derive(Default, Serialize)]
pub(super) struct LogLine {
    pub(super) seq: u64,
    pub(super) method: String,
    pub(super) path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) model: Option<String>,
    /// The reply comes as events.
    pub(super) stream: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) items: Vec<LoggedPiece>,
    pub(super) tools: bool,
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) tools_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
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
    pub(super) status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fault: Option<String>,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

#[derive(Serialize)]
pub(super) struct LoggedPiece {
    kind: BlockKind,
    role: Role,
    bytes: usize,
    tokens: u64,
    sha256: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cache: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

impl LogLine {
    /// Records the contents of a prompt, its pieces only if a log is written: each costs a hash of
    /// its text.
    pub(super) fn prompt(&mut self, prompt: &Prompt, by: &Counting, log: &RequestLog) {
        self.model = Some(prompt.model.to_string());
        self.tools = prompt.tools.is_some();
        self.max_tokens = prompt.max_tokens;
        if log.is_read() {
            self.tools_tokens = prompt.tools_tokens(by);
            self.items = prompt.items.iter().map(|i| logged_piece(by, i, log.longest)).collect();
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

fn logged_piece(by: &Counting, item: &Item, longest: usize) -> LoggedPiece {
    let (id, name) = match &*item.content {
        Content::Call { id, name, .. } => (Some(id), Some(name)),
        Content::Output { id, .. } => (Some(id), None),
        _ => (None, None),
    };
    let text = item.text();
    LoggedPiece {
        kind: item.block_kind(),
        role: item.role,
        bytes: text.len(),
        tokens: item.tokens(by),
        sha256: sha256(text),
        id: id.map(|s| s.to_string()),
        name: name.map(|s| s.to_string()),
        cache: item.cache.is_some(),
        text: (text.len() < longest).then(|| text.to_string()),
    }
}

pub(super) struct RequestLog {
    state: Mutex<LogState>,
    /// Shorter texts are written into the lines, bytes.
    longest: usize,
}

struct LogState {
    to: Option<Box<dyn Write + Send>>,
    lines: u64,
}

impl RequestLog {
    /// `texts` = write all texts in full.
    pub(super) fn new(to: Option<Box<dyn Write + Send>>, texts: bool) -> Self {
        let longest = if texts { usize::MAX } else { SHORT };
        RequestLog { state: Mutex::new(LogState { to, lines: 0 }), longest }
    }

    pub(super) fn is_read(&self) -> bool {
        self.state.lock().is_ok_and(|s| s.to.is_some())
    }

    /// Numbers a line, from 1, and writes it at once, so that a reader sees it while the server
    /// runs. When that fails it is said once and logging ends.
    pub(super) fn write(&self, mut line: LogLine) -> u64 {
        let Ok(mut state) = self.state.lock() else { return 0 };
        state.lines += 1;
        line.seq = state.lines;
        if let Some(out) = state.to.as_mut() {
            let text = serde_json::to_string(&line).expect("plain data always serialises") + "\n";
            if let Err(e) = out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
                let mut standard = std::io::stderr();
                let _ = writeln!(standard, "the request log cannot be written any more: {e}");
                state.to = None;
            }
        }
        line.seq
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_hashed_only_for_a_reader() {
        let items = vec![Item::new(Role::User, Content::Text("hello".into()), 1, None)];
        let prompt = Prompt { max_tokens: Some(7), ..Prompt::new("m", items) };
        let noted = |log: RequestLog| {
            let mut line = LogLine::default();
            line.prompt(&prompt, &Counting::O200K, &log);
            (line.items.len(), line.max_tokens)
        };
        assert_eq!(noted(RequestLog::new(None, false)), (0, Some(7)));
        assert_eq!(noted(RequestLog::new(Some(Box::new(std::io::sink())), false)), (1, Some(7)));
    }
}
