//! HTTP requests to HTTP responses. Any input gets an answer in the provider's format.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, Response, header};
use ctxbench_core::request::ErrorKind;
use ctxbench_core::{BlockKind, Draft, Model, ModelError, Role, model};
use ctxbench_provider::wire::{self, Api, Endpoint, ReplyOptions, Wire, detect_api};
use ctxbench_provider::{Item, Prompt, WireError};
use ctxbench_util::escapes;
use http_body_util::BodyExt;
use serde_json::Value;

use super::desk::{ServerState, no_model};
use super::log::{LogLine, LogTexts};
use super::refuse::refused;
use super::route::{Route, route};
use super::speaker::{self, Arrived, RequestOutcome};
use super::{Clock, sse};
use ctxbench_os::accept::{foreign, response};

pub const FAULT_HEADER: &str = "x-ctxbench-fault";

pub(super) struct HandlerState {
    pub(super) body_limit: usize,
    /// Instead of every model's own, tokens.
    pub(super) window: Option<u64>,
    pub(super) clock: Clock,
    pub(super) log_texts: LogTexts,
    pub(super) desk: Mutex<ServerState>,
}

impl HandlerState {
    /// Locks a mutex, also a poisoned one: no code panics while it has the lock, and the state would
    /// still be usable.
    fn desk(&self) -> MutexGuard<'_, ServerState> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn json(body: impl Into<Body>) -> Response<Body> {
    response(200, "application/json", body)
}

/// Answers a request and notes it.
pub(super) async fn handle(shared: Arc<HandlerState>, request: Request) -> Response<Body> {
    let begin = (shared.clock)();
    let path = request.uri().path().to_string();
    if request.headers().contains_key(header::UPGRADE) {
        // The status after which clients fall back to HTTP at once.
        return response(426, "text/plain", Body::empty());
    }
    let speaker = detect_api(&path, &|name| request.headers().contains_key(name));
    let api = match route(request.method().as_str(), &path, speaker) {
        Ok(Route::Of(wire, _)) => wire.api,
        _ => speaker,
    };
    let mut line = LogLine {
        method: request.method().to_string(),
        path: path.clone(),
        at_ms: begin,
        status: "ok",
        ..LogLine::default()
    };
    let mut seen = None;
    let mut answer = match answer(&shared, request, &path, speaker, &mut line, &mut seen).await {
        Ok(answer) => answer,
        Err(error) => {
            let retry_after = line.retry_after;
            line.status = match error.kind {
                ErrorKind::Overflow => "overflow",
                ErrorKind::RateLimited => "rate_limited",
                ErrorKind::Invalid => "invalid",
                ErrorKind::Server => "server",
                ErrorKind::Stream => "stream",
                ErrorKind::SessionEnd => "ended",
            };
            let (status, body) = api.encode_refusal(&error, retry_after);
            line.error = Some(error.message.clone());
            if let Some(seen) = &mut seen {
                seen.outcome = Err(error);
            }
            let mut refused = response(status, "application/json", body);
            if let Some(seconds) = retry_after {
                refused.headers_mut().insert(header::RETRY_AFTER, seconds.into());
            }
            refused
        }
    };
    line.http = answer.status().as_u16();
    line.latency_ms = (shared.clock)().saturating_sub(begin);
    let mut desk = shared.desk();
    if let Some(seen) = seen {
        desk.speaker.saw(RequestOutcome { http: line.http, ..seen });
    }
    let number = desk.log.write(line);
    drop(desk);
    let headers = answer.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Ok(id) = format!("req_{number:06}").parse() {
        headers.insert(api.request_id_header, id);
    }
    answer
}

async fn answer(
    shared: &HandlerState,
    request: Request,
    path: &str,
    api: Api,
    line: &mut LogLine,
    seen: &mut Option<RequestOutcome>,
) -> Result<Response<Body>, ModelError> {
    if let Some(why) = foreign(request.headers()) {
        return Err(refusal(api, 403, why));
    }
    let method = request.method().to_string();
    let (wire, compact) = match route(&method, path, api) {
        Ok(Route::Models) => {
            let all = models_of(api).map(|m| (api.model)(m, shared.window)).collect();
            return Ok(json((api.model_list)(all).to_string()));
        }
        Ok(Route::Model(name)) => {
            let found = models_of(api).find(|m| *m.name == *name);
            let found = found.ok_or_else(|| no_model(api, name))?;
            return Ok(json((api.model)(found, shared.window).to_string()));
        }
        Ok(Route::Of(wire, Endpoint::Count)) => return count(shared, request, wire, line).await,
        Ok(Route::Of(wire, endpoint)) => (wire, endpoint == Endpoint::Compact),
        Err((status, why)) => return Err(refusal(api, status, why)),
    };
    let header = request.headers().get(FAULT_HEADER);
    let header = header.map(|v| String::from_utf8_lossy(v.as_bytes()).into_owned());
    let (fault, id) = {
        let faults = &mut shared.desk().faults;
        (faults.next(header.as_deref()), faults.requests)
    };
    let fault = fault.map_err(|e| ModelError::invalid(format!("{FAULT_HEADER}: {e}")))?;
    line.fault = fault.as_ref().map(|f| f.spec.clone());
    let fault = fault.unwrap_or_default();
    let (head, body) = request.into_parts();
    let seen = seen.insert(RequestOutcome {
        request: Arrived {
            id,
            wire,
            path: path.to_string(),
            headers: head.headers,
            body: Vec::new(),
            prompt: None,
            thinking: false,
            compact,
        },
        http: 0,
        on_purpose: fault.status.is_some() || fault.overflow || fault.cut.is_some(),
        outcome: Err(ModelError::invalid("no reply")),
    });
    seen.request.body = read(body, wire, shared.body_limit).await?;
    if fault.slow_ms > 0 {
        tokio::time::sleep(Duration::from_millis(fault.slow_ms)).await;
    }
    let understood = understood(shared, wire, path, &seen.request.body, line);
    seen.request.prompt = understood.as_ref().ok().map(|(prompt, ..)| prompt.clone());
    if let Some(status) = fault.status {
        line.retry_after = fault.retry_after;
        return Err(refusal(wire.api, status, "refused on purpose".into()));
    }
    let (mut prompt, asked, model) = understood?;
    if let Some(why) = refused(wire, &seen.request.headers, &seen.request.body, &prompt) {
        return Err(ModelError::invalid(why));
    }
    check(wire, &prompt, model.max_output)?;
    if fault.overflow {
        let window = model.input_limit.unwrap_or(model.window);
        let tokens = prompt.tokens(&model.counting).max(window.saturating_add(1));
        return Err((wire.overflow)(tokens, window));
    }
    let kept = compact.then(|| prompt.clone());
    if compact {
        let trigger = Draft::text(BlockKind::CompactionTrigger, Role::User, "");
        prompt.items.push(Item::new(Role::User, trigger, usize::MAX, None));
    }
    // Counts before other requests have to wait; counts are cached.
    prompt.tokens(&model.counting);
    seen.request.thinking = asked.thinking;
    let now = (shared.clock)();
    let reply = shared.desk().answer(&seen.request, prompt, model.max_output, now)?;
    seen.outcome = match fault.cut {
        None => Ok(reply.clone()),
        Some(_) => {
            let message = "the stream was cut on purpose".into();
            Err(ModelError { kind: ErrorKind::Stream, status: 200, code: None, message })
        }
    };
    line.usage(&reply.billed);
    line.cost_usd = model::cost_of_reply(&model, &reply).total();
    let whole = match &kept {
        Some(before) => wire.encode_compacted(before, &reply, &model),
        None => (wire.encode_reply)(&reply, &model),
    };
    line.stream = asked.stream && !compact;
    if line.stream {
        // A reply of ours that cannot be read back is a bug of this program.
        let events = (wire.events)(&whole, asked.usage)
            .map_err(|e| refusal(wire.api, 500, format!("the reply cannot be streamed: {e}")))?;
        let pause = Duration::from_millis(fault.pace_ms);
        let body = sse::events(events, pause, fault.cut);
        return Ok(response(200, "text/event-stream; charset=utf-8", body));
    }
    Ok(if fault.cut.is_some() { json(sse::half(whole)) } else { json(whole) })
}

async fn count(
    shared: &HandlerState,
    request: Request,
    wire: Wire,
    line: &mut LogLine,
) -> Result<Response<Body>, ModelError> {
    let path = request.uri().path().to_string();
    let body = read(request.into_body(), wire, shared.body_limit).await?;
    let (prompt, ..) = understood(shared, wire, &path, &body, line)?;
    let (tokens, original) = shared.desk().count(wire, &prompt);
    Ok(json(wire.encode_count_reply(tokens, original)))
}

/// Reads a body as the prompt of a model that exists, under the name of the catalogue.
fn understood(
    shared: &HandlerState,
    wire: Wire,
    path: &str,
    body: &[u8],
    line: &mut LogLine,
) -> Result<(Prompt, ReplyOptions, Model), ModelError> {
    let mut prompt = wire.decode(path, body).map_err(|e| unread(body, &e))?;
    let model = shared.desk().model(wire, &prompt.model);
    let counting = model.as_ref().map(|m| m.counting).unwrap_or_default();
    prompt.tools = prompt.tools.take().and_then(speaker::compact);
    line.prompt(&prompt, &counting, shared.log_texts);
    let asked = (wire.reply_options)(path, body).map_err(ModelError::invalid)?;
    let model = model?;
    prompt.model = model.name.clone();
    Ok((prompt, asked, model))
}

/// How long a client may pause within a body.
const SILENCE: Duration = Duration::from_secs(60);

/// Reads a body. A body that is too large is still read to its end, up to eight times the limit,
/// since most clients do not listen before they have sent everything.
async fn read(mut body: Body, wire: Wire, limit: usize) -> Result<Vec<u8>, ModelError> {
    // A client may announce more than it sends, so nothing is reserved.
    let (mut bytes, mut seen) = (Vec::new(), 0usize);
    loop {
        let frame = tokio::time::timeout(SILENCE, body.frame()).await.map_err(|_| {
            let seconds = SILENCE.as_secs();
            ModelError::invalid(format!("the body stopped for {seconds} s after {seen} bytes"))
        })?;
        let Some(frame) = frame else { break };
        let frame =
            frame.map_err(|e| ModelError::invalid(format!("the request body broke off: {e}")))?;
        let Ok(data) = frame.into_data() else { continue };
        seen = seen.saturating_add(data.len());
        if seen <= limit {
            bytes.extend_from_slice(&data);
        } else if seen > limit.saturating_mul(8) {
            break;
        }
    }
    if seen <= limit {
        return Ok(bytes);
    }
    let (status, message) = (wire.api.too_large)(limit);
    Err(refusal(wire.api, status, message))
}

fn models_of(api: Api) -> impl Iterator<Item = &'static Model> {
    model::catalogue().iter().filter(move |m| wire::for_model(m).api == api)
}

/// Refuses requests that the provider refuses before it looks at the conversation. `most` = the
/// model's largest reply, tokens.
fn check(wire: Wire, prompt: &Prompt, most: u64) -> Result<(), ModelError> {
    let why = match prompt.max_tokens {
        _ if prompt.items.iter().all(|i| i.message == 0) => {
            format!("{}: at least one message is required", wire.rules.conversation_field)
        }
        None if wire.rules.requires_max_tokens => "max_tokens: Field required".into(),
        Some(0) => "max_tokens: must be at least 1".into(),
        Some(n) if n > most => {
            format!("max_tokens: {n} > {most}, the most output tokens of {}", prompt.model)
        }
        _ => return Ok(()),
    };
    Err(ModelError::invalid(why))
}

/// A refusal with the code that the provider uses for its status.
fn refusal(api: Api, status: u16, message: String) -> ModelError {
    let code = api.status_code(status);
    api.refusal(status, code.map(str::to_string), message)
}

/// Error for an unreadable body. A lone surrogate, as programs in JavaScript write it, is reported
/// as Anthropic's API does, with its position.
fn unread(body: &[u8], why: &WireError) -> ModelError {
    let half = std::str::from_utf8(body).ok().and_then(|text| {
        let read = serde_json::from_str::<Value>(text);
        read.err().and_then(|_| Some((text, escapes::first_lone_surrogate(text)?)))
    });
    let Some((text, at)) = half else { return ModelError::invalid(why.to_string()) };
    let line = text[..at].matches('\n').count() + 1;
    let column = at - text[..at].rfind('\n').map_or(0, |end| end + 1) + 1;
    ModelError::invalid(format!(
        "The request body is not valid JSON: no low surrogate in string: line {line} column \
         {column} (char {at}); {:?} is half a character",
        &text[at..at + 6]
    ))
}

#[cfg(test)]
mod tests {
    use ctxbench_provider::wire::find;

    #[test]
    fn settings_of_a_body_besides_its_prompt_are_read() {
        let of = |wire: &str, body: &str| (find(wire).unwrap().reply_options)("", body.as_bytes());
        for (thinking, stream, is) in
            [("enabled", true, (true, true)), ("disabled", false, (false, false))]
        {
            let body = format!(
                r#"{{"stream":{stream},"thinking":{{"type":"{thinking}","budget_tokens":1024}}}}"#
            );
            let asked = of("anthropic-messages", &body).unwrap();
            assert_eq!((asked.stream, asked.thinking), is);
        }
        assert!(of("openai-responses", r#"{"reasoning":{"effort":"low"}}"#).unwrap().thinking);
        assert!(of("openai-responses", r#"{"previous_response_id":"r"}"#).is_err());
        assert!(of("openai-chat", r#"{"stream_options":{"include_usage":true}}"#).unwrap().usage);
        assert!(of("openai-chat", r#"{"n":2}"#).is_err());
    }
}
