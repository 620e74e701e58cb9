//! Calls of a pi session (facts/peers-and-metrics.md §4). A reply's own time is when it was asked for.

use ctxbench_scenarios::InputError;
use serde_json::Value;

use super::content::Counted;
use super::lines::{Line, count, millis, text_of};
use super::recording::{At, Builder, Counters, Note, NoteKind, ReplyLine, Route};

const MAIN: &str = "main";

pub(super) fn read(lines: &[Line], file: &str) -> Result<(Builder, Route), InputError> {
    let mut b = Builder::default();
    let mut tip: Option<String> = None;
    // Thinking level now, and at the last call.
    let (mut level, mut level_of_call): (Option<String>, Option<String>) = (None, None);
    let mut level_line = 0;
    for line in lines {
        let o = &line.object;
        let kind = text_of(o, "type").unwrap_or_default();
        // Newer files name lines and parents; in older ones each line follows the one before.
        let id = text_of(o, "id").filter(|_| kind != "session").map_or_else(|| format!("line {}", line.number), str::to_string);
        let parent = match o.get("parentId") {
            Some(p) => p.as_str().map(str::to_string),
            None => tip.clone(),
        };
        let at = At { line: line.number, id: Some(id.clone()), parent, stamp: text_of(o, "timestamp").and_then(millis) };
        tip = Some(id);
        match kind {
            "session" => {
                level = text_of(o, "thinkingLevel").map(str::to_string);
                level_of_call.clone_from(&level);
                b.link(&at);
            }
            "thinking_level_change" => {
                level = text_of(o, "thinkingLevel").map(str::to_string);
                level_line = line.number;
                b.link(&at);
            }
            "compaction" => b.boundary(&at, MAIN, o.get("tokensBefore").and_then(Value::as_u64), None),
            "message" => {
                let Some(m) = o.get("message") else { continue };
                if m.get("role").and_then(Value::as_str) != Some("assistant") {
                    let (blocks, counted) = content(m);
                    b.input(&at, MAIN, blocks, &counted);
                    continue;
                }
                if level != level_of_call {
                    let text = format!("the thinking level changed to {}", level.as_deref().unwrap_or("none"));
                    b.note(MAIN, Note { kind: NoteKind::Settings, line: level_line, text });
                }
                level_of_call.clone_from(&level);
                reply(&mut b, m, at, file)?;
            }
            _ => b.link(&at),
        }
    }
    Ok((b, Route::Unknown("pi records no request ids".into())))
}

fn reply(b: &mut Builder, m: &Value, at: At, file: &str) -> Result<(), InputError> {
    let usage = m.get("usage").cloned().unwrap_or(Value::Null);
    let n = |key: &str| count(&usage, key, file, at.line);
    let counters = Counters { input: n("input")?, read: n("cacheRead")?, write: n("cacheWrite")?, output: n("output")?, long: None };
    if counters.prompt() == 0 {
        let why = m.get("stopReason").and_then(Value::as_str).unwrap_or("unknown");
        let text = format!("a request without counters (it ended with: {why})");
        b.note(MAIN, Note { kind: NoteKind::Uncounted, line: at.line, text });
        b.link(&at);
        return Ok(());
    }
    let (blocks, counted) = content(m);
    let asked = m.get("timestamp").and_then(Value::as_i64);
    let model = m.get("model").and_then(Value::as_str).unwrap_or_default().to_string();
    let at = At { stamp: asked.or(at.stamp), ..at };
    let response = format!("line {}", at.line);
    b.reply(ReplyLine { at, conversation: MAIN.into(), response, model, counters, sent_ms: asked, blocks, counted });
    Ok(())
}

fn content(m: &Value) -> (usize, Counted) {
    let mut c = Counted::default();
    let result = m.get("role").and_then(Value::as_str) == Some("toolResult");
    let add = |c: &mut Counted, text: &str| if result { c.output(text) } else { c.words(text) };
    match m.get("content") {
        Some(Value::String(s)) => {
            add(&mut c, s);
            (1, c)
        }
        Some(Value::Array(list)) => {
            for p in list {
                let text = |key: &str| p.get(key).and_then(Value::as_str).unwrap_or_default();
                match text("type") {
                    "text" => add(&mut c, text("text")),
                    "thinking" if !text("thinking").is_empty() => c.words(text("thinking")),
                    "toolCall" => c.call(text("name"), &p.get("arguments").map(Value::to_string).unwrap_or_default()),
                    _ => c.unknown += 1,
                }
            }
            (if result { 1 } else { list.len() }, c)
        }
        _ => (0, c),
    }
}
