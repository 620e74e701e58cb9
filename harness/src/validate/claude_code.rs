//! Calls of a Claude Code transcript (facts/claude-code-and-apis.md §1.6).

use ctxbench_scenarios::InputError;
use serde_json::{Map, Value};

use super::content::Counted;
use super::lines::{Line, count, flag, millis, text_of};
use super::recording::{At, Builder, Counters, Note, NoteKind, ReplyLine, Route};

const MAIN: &str = "main";

pub(super) fn read(lines: &[Line], file: &str) -> Result<(Builder, Route), InputError> {
    let mut b = Builder::default();
    let mut ids = Ids::default();
    let mut version: Option<String> = None;
    for line in lines {
        let o = &line.object;
        let at = At {
            line: line.number,
            id: text_of(o, "uuid").map(str::to_string),
            parent: text_of(o, "parentUuid").map(str::to_string),
            stamp: text_of(o, "timestamp").and_then(millis),
        };
        let conversation = conversation(&b, o, &at);
        if let Some(v) = text_of(o, "version") {
            if version.as_deref().is_some_and(|old| old != v) {
                let text = format!("the client changed from {} to {v}", version.as_deref().unwrap_or_default());
                b.note(&conversation, Note { kind: NoteKind::Settings, line: line.number, text });
            }
            version = Some(v.to_string());
        }
        match text_of(o, "type").unwrap_or_default() {
            "assistant" => assistant(&mut b, &mut ids, o, at, conversation, file)?,
            "user" | "attachment" => {
                let (blocks, counted) = if flag(o, "isVisibleInTranscriptOnly") && !flag(o, "isCompactSummary") {
                    (0, Counted::default())
                } else {
                    content(o.get("message").and_then(|m| m.get("content")).or_else(|| o.get("attachment").and_then(|a| a.get("prompt"))))
                };
                b.input(&at, &conversation, blocks, &counted);
            }
            "system" => system(&mut b, o, &at, &conversation),
            _ => b.link(&at),
        }
    }
    let route = ids.route();
    Ok((b, route))
}

/// The main conversation, or a subagent's by its id, or by the line it began with.
fn conversation(b: &Builder, o: &Map<String, Value>, at: &At) -> String {
    if !flag(o, "isSidechain") {
        return MAIN.into();
    }
    text_of(o, "agentId").map(str::to_string).or_else(|| b.root(at)).unwrap_or_else(|| "side".into())
}

fn system(b: &mut Builder, o: &Map<String, Value>, at: &At, conversation: &str) {
    match text_of(o, "subtype").unwrap_or_default() {
        "compact_boundary" => {
            let meta = o.get("compactMetadata");
            let tokens = |key: &str| meta.and_then(|m| m.get(key)).and_then(Value::as_u64);
            b.boundary(at, conversation, tokens("preTokens"), tokens("postTokens"));
        }
        // Clearing of old results, by whatever name: earlier content is no longer what it was.
        other if other.contains("compact") => {
            b.link(at);
            let text = format!("the program cleared earlier content ({other})");
            b.note(conversation, Note { kind: NoteKind::Edit, line: at.line, text });
        }
        _ => b.link(at),
    }
}

fn assistant(b: &mut Builder, ids: &mut Ids, o: &Map<String, Value>, at: At, conversation: String, file: &str) -> Result<(), InputError> {
    let Some(m) = o.get("message").and_then(Value::as_object) else {
        b.link(&at);
        return Ok(());
    };
    let model = text_of(m, "model").unwrap_or_default();
    if flag(o, "isApiErrorMessage") || model == "<synthetic>" {
        let kind = NoteKind::Uncounted;
        b.note(&conversation, Note { kind, line: at.line, text: "a request that failed or was cut short, without counters".into() });
        b.link(&at);
        return Ok(());
    }
    let Some(u) = m.get("usage").filter(|u| !u.is_null()) else {
        b.note(&conversation, Note { kind: NoteKind::Uncounted, line: at.line, text: "a reply without counters".into() });
        b.link(&at);
        return Ok(());
    };
    let n = |key: &str| count(u, key, file, at.line);
    let hour = u.get("cache_creation").and_then(|c| c.get("ephemeral_1h_input_tokens")).and_then(Value::as_u64);
    let five = u.get("cache_creation").and_then(|c| c.get("ephemeral_5m_input_tokens")).and_then(Value::as_u64);
    let counters = Counters {
        input: n("input_tokens")?,
        read: n("cache_read_input_tokens")?,
        write: n("cache_creation_input_tokens")?,
        output: n("output_tokens")?,
        long: if hour.unwrap_or(0) > 0 { Some(true) } else { five.filter(|n| *n > 0).map(|_| false) },
    };
    let (id, request) = (text_of(m, "id").unwrap_or_default(), text_of(o, "requestId").unwrap_or_default());
    ids.add(id, request);
    let response = if id.is_empty() { format!("line {}", at.line) } else { format!("{id} {request}") };
    let (blocks, counted) = content(m.get("content"));
    b.reply(ReplyLine { at, conversation, response, model: model.to_string(), counters, sent_ms: None, blocks, counted });
    Ok(())
}

/// Blocks of a message and our count of them.
fn content(content: Option<&Value>) -> (usize, Counted) {
    let mut c = Counted::default();
    let blocks = match content {
        Some(Value::String(s)) => {
            c.words(s);
            1
        }
        Some(Value::Array(list)) => {
            list.iter().for_each(|b| block(b, &mut c));
            list.len()
        }
        _ => 0,
    };
    (blocks, c)
}

fn block(b: &Value, c: &mut Counted) {
    let text = |key: &str| b.get(key).and_then(Value::as_str).unwrap_or_default();
    match text("type") {
        "text" => c.words(text("text")),
        "thinking" if !text("thinking").is_empty() => c.words(text("thinking")),
        "tool_use" => c.call(text("name"), &b.get("input").map(Value::to_string).unwrap_or_default()),
        "tool_result" => match b.get("content") {
            Some(Value::String(s)) => c.output(s),
            Some(Value::Array(list)) => {
                for part in list {
                    match part.get("text").and_then(Value::as_str) {
                        Some(s) => c.output(s),
                        None => c.unknown += 1,
                    }
                }
            }
            _ => {}
        },
        _ => c.unknown += 1,
    }
}

/// Names that servers give to replies and requests, by where they come from.
#[derive(Default)]
struct Ids {
    all: usize,
    own: usize,
    foreign: Option<String>,
    foreign_count: usize,
    without_request: usize,
}

impl Ids {
    /// The provider's own API names replies `msg_01…` and requests `req_…`; Bedrock, Vertex and proxies do not.
    fn add(&mut self, message: &str, request: &str) {
        self.all += 1;
        if message.starts_with("msg_") && !message.starts_with("msg_bdrk") && !message.starts_with("msg_vrtx") {
            self.own += usize::from(request.starts_with("req_"));
        } else if !message.is_empty() {
            self.foreign_count += 1;
            self.foreign.get_or_insert_with(|| message.chars().take(9).collect());
        }
        self.without_request += usize::from(!request.starts_with("req_"));
    }

    fn route(&self) -> Route {
        let all = self.all;
        let requests = format!("{} of {all} reply lines carry no request id", self.without_request);
        match &self.foreign {
            Some(id) if self.foreign_count * 2 > all => {
                Route::Gateway(format!("{} of {all} reply lines have ids like {id}…, and {requests}", self.foreign_count))
            }
            _ if self.own * 2 > all => {
                Route::Direct(format!("{} of {all} reply lines have the API's own message and request ids", self.own))
            }
            _ if all > 0 => Route::Unknown(requests),
            _ => Route::Unknown("no calls".into()),
        }
    }
}
