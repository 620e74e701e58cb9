//! Calls of a Codex rollout (facts/peers-and-metrics.md §4, facts/codex.md).
//!
//! What is said comes before its counters: a `token_count` closes the call whose parts stand before it. Counters that repeat the total
//! of the ones before are a reminder and no call.

use ctxbench_scenarios::InputError;
use serde_json::{Map, Value};

use super::content::Counted;
use super::lines::{Line, count, millis, text_of};
use super::recording::{At, Builder, Counters, Note, NoteKind, ReplyLine, Route};

const MAIN: &str = "main";

/// A call whose parts come in and whose counters are still to come.
#[derive(Default)]
struct Open {
    began: Option<i64>,
    line: usize,
    blocks: usize,
    counted: Counted,
}

struct Reader {
    b: Builder,
    open: Open,
    model: String,
    effort: Option<String>,
    total: Option<u64>,
    /// Name of the newest line that a next one hangs on.
    tip: Option<String>,
    /// Tip before each user turn, for rolling back.
    turns: Vec<Option<String>>,
}

pub(super) fn read(lines: &[Line], file: &str) -> Result<(Builder, Route), InputError> {
    let mut r = Reader {
        b: Builder::default(),
        open: Open::default(),
        model: String::new(),
        effort: None,
        total: None,
        tip: None,
        turns: Vec::new(),
    };
    let mut route = Route::Unknown("the recording names no provider".into());
    for line in lines {
        let stamp = text_of(&line.object, "timestamp").and_then(millis);
        let empty = Map::new();
        let payload = line.object.get("payload").and_then(Value::as_object).unwrap_or(&empty);
        let kind = text_of(payload, "type").unwrap_or_default();
        match text_of(&line.object, "type").unwrap_or_default() {
            "session_meta" => {
                route = match text_of(payload, "model_provider") {
                    Some("openai") => Route::Direct("session_meta names the provider openai".into()),
                    Some(other) => Route::Gateway(format!("session_meta names the provider {other}")),
                    None => route,
                }
            }
            "turn_context" => r.turn(payload, line.number),
            "response_item" => r.item(kind, payload, line.number, stamp),
            "compacted" => r.compacted(line.number, stamp),
            "event_msg" if kind == "token_count" => r.counters(payload, line.number, stamp, file)?,
            "event_msg" if kind == "thread_rolled_back" => {
                let n = payload.get("num_turns").and_then(Value::as_u64).unwrap_or(1).max(1);
                for _ in 0..n {
                    if let Some(tip) = r.turns.pop() {
                        r.tip = tip;
                    }
                }
            }
            _ => {}
        }
    }
    Ok((r.b, route))
}

impl Reader {
    /// A new place behind the newest one.
    fn next(&mut self, line: usize, stamp: Option<i64>) -> At {
        let id = Some(format!("line {line}"));
        At { line, parent: std::mem::replace(&mut self.tip, id.clone()), id, stamp }
    }

    fn turn(&mut self, payload: &Map<String, Value>, line: usize) {
        if let Some(m) = text_of(payload, "model") {
            self.model = m.to_string();
        }
        let effort = text_of(payload, "effort").map(str::to_string);
        if self.effort.is_some() && effort != self.effort {
            let text = "the reasoning effort changed".to_string();
            self.b.note(MAIN, Note { kind: NoteKind::Settings, line, text });
        }
        self.effort = effort;
    }

    fn item(&mut self, kind: &str, p: &Map<String, Value>, line: usize, stamp: Option<i64>) {
        let mut c = Counted::default();
        let text = |key: &str| text_of(p, key).unwrap_or_default();
        let parts = || p.get("content").and_then(Value::as_array).into_iter().flatten();
        let own = match kind {
            "message" => {
                for part in parts() {
                    match part.get("text").and_then(Value::as_str) {
                        Some(t) => c.words(t),
                        None => c.unknown += 1,
                    }
                }
                text("role") == "assistant"
            }
            "reasoning" => {
                // The readable summary is not what is sent again; the encrypted part is, and nobody can count it.
                c.unknown += 1;
                true
            }
            "function_call" | "custom_tool_call" | "local_shell_call" | "web_search_call" => {
                c.call(text("name"), if text("arguments").is_empty() { text("input") } else { text("arguments") });
                true
            }
            "function_call_output" | "custom_tool_call_output" => {
                match p.get("output") {
                    Some(Value::String(s)) => c.output(s),
                    Some(other) => c.output(&other.to_string()),
                    None => {}
                }
                false
            }
            _ => return,
        };
        if own {
            self.open.began = self.open.began.or(stamp);
            self.open.line = if self.open.line == 0 { line } else { self.open.line };
            self.open.blocks += 1;
            self.open.counted.add(&c);
        } else {
            if kind == "message" && text("role") == "user" {
                self.turns.push(self.tip.clone());
            }
            let at = self.next(line, stamp);
            self.b.input(&at, MAIN, 1, &c);
        }
    }

    fn compacted(&mut self, line: usize, stamp: Option<i64>) {
        let at = self.next(line, stamp);
        let pre = self.b.last(MAIN).map(|i| self.b.calls[i].counters.prompt() + self.b.calls[i].counters.output);
        self.b.boundary(&at, MAIN, pre, None);
    }

    fn counters(&mut self, payload: &Map<String, Value>, line: usize, stamp: Option<i64>, file: &str) -> Result<(), InputError> {
        let Some(info) = payload.get("info").filter(|i| !i.is_null()) else { return Ok(()) };
        let total = info.get("total_token_usage").and_then(|t| t.get("total_tokens")).and_then(Value::as_u64);
        let Some(last) = info.get("last_token_usage") else { return Ok(()) };
        if total.is_some() && total == self.total {
            return Ok(());
        }
        self.total = total;
        let n = |key: &str| count(last, key, file, line);
        let (prompt, read, write) = (n("input_tokens")?, n("cached_input_tokens")?, n("cache_write_input_tokens")?);
        let input = prompt.saturating_sub(read).saturating_sub(write);
        let counters = Counters { input, read, write, output: n("output_tokens")?, long: None };
        let open = std::mem::take(&mut self.open);
        let at = self.next(line, open.began.or(stamp));
        let response = format!("line {line}");
        let (blocks, counted) = (open.blocks, open.counted);
        let (conversation, model) = (MAIN.to_string(), self.model.clone());
        self.b.reply(ReplyLine { at, conversation, response, model, counters, sent_ms: None, blocks, counted });
        Ok(())
    }
}
