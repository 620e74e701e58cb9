//! HTTP requests to HTTP responses. Any input gets an answer in the provider's format.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Response, header};
use ctxbench_core::block::Role;
use ctxbench_core::model::{self, Model};
use ctxbench_core::request::{ErrorKind, ModelError, Reply};
use ctxbench_provider::wire::{Api, Endpoint, ReplyOptions, Wire, detect_api};
use ctxbench_provider::{Content, Item, Prompt};
use http_body_util::BodyExt;

use super::desk::{self, ServerState};
use super::faults::{Fault, Faults};
use super::log::{LogLine, RequestLog};
use super::route::{NoRoute, Route, route};
use super::speaker::{self, Arrived, RequestOutcome};
use super::{Clock, asked, errors, local, models, sse};
use ctxbench_os::accept::response;

pub const FAULT_HEADER: &str = "x-ctxbench-fault";

pub(super) struct HandlerState {
    pub(super) api: Option<Api>,
    pub(super) body_limit: usize,
    /// Instead of every model's own, tokens.
    pub(super) window: Option<u64>,
    pub(super) clock: Clock,
    pub(super) desk: Mutex<ServerState>,
    pub(super) faults: Mutex<Faults>,
    pub(super) log: RequestLog,
    pub(super) arrived: AtomicU64,
}

fn json(body: impl Into<Body>) -> Response<Body> {
    response(200, "application/json", body)
}

/// Refusal with everything it needs in addition to its message.
pub(super) struct Refused {
    error: ModelError,
    retry_after: Option<u64>,
}

impl From<ModelError> for Refused {
    fn from(error: ModelError) -> Self {
        Refused { error, retry_after: None }
    }
}

/// Locks a mutex, also a poisoned one: no code panics while it has a lock, and the state would
/// still be usable.
pub(super) fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
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
    let api = match route(None, request.method().as_str(), &path, speaker) {
        Ok(Route::Of(wire, _)) => wire.api,
        _ => speaker,
    };
    let mut line = LogLine {
        method: request.method().to_string(),
        path: path.clone(),
        at_ms: begin,
        status: "ok".into(),
        ..LogLine::default()
    };
    let mut seen = None;
    let mut answer = match answer(&shared, request, &path, speaker, &mut line, &mut seen).await {
        Ok(answer) => answer,
        Err(Refused { error, retry_after }) => {
            line.status = word(error.kind).into();
            let (status, body) = api.encode_refusal(&error, retry_after);
            line.error = Some(error.message.clone());
            if let Some(seen) = &mut seen {
                seen.outcome = Some(Err(error));
            }
            let mut refused = response(status, "application/json", body);
            if let Some(seconds) = retry_after {
                refused.headers_mut().insert(header::RETRY_AFTER, seconds.into());
            }
            refused
        }
    };
    let http = answer.status().as_u16();
    line.http = http;
    if let Some(seen) = seen {
        lock(&shared.desk).saw(RequestOutcome { http, ..seen });
    }
    line.latency_ms = (shared.clock)().saturating_sub(begin);
    let number = shared.log.write(line);
    let headers = answer.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Ok(id) = format!("req_{number:06}").parse() {
        headers.insert(api.request_id_header, id);
    }
    answer
}

fn word(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Overflow => "overflow",
        ErrorKind::RateLimited => "rate_limited",
        ErrorKind::Invalid => "invalid",
        ErrorKind::Server => "server",
        ErrorKind::Stream => "stream",
        ErrorKind::SessionEnd => "ended",
    }
}

async fn answer(
    shared: &HandlerState,
    request: Request,
    path: &str,
    api: Api,
    line: &mut LogLine,
    seen: &mut Option<RequestOutcome>,
) -> Result<Response<Body>, Refused> {
    if let Some(why) = local::foreign(request.headers()) {
        return Err(errors::refusal(api, 403, why).into());
    }
    let method = request.method().to_string();
    let (wire, compact) = match route(shared.api, &method, path, api) {
        Ok(Route::Models) => return Ok(json(models::list(api, shared.window).to_string())),
        Ok(Route::Model(name)) => {
            let found = models::find(api, name, shared.window)
                .ok_or_else(|| errors::no_model(api, name))?;
            return Ok(json(found.to_string()));
        }
        Ok(Route::Of(wire, Endpoint::Count)) => return count(shared, request, wire, line).await,
        Ok(Route::Of(wire, endpoint)) => (wire, endpoint == Endpoint::Compact),
        Err(NoRoute::Path) => {
            let message = format!("{method} {path} does not exist here");
            return Err(errors::refusal(api, 404, message).into());
        }
        Err(NoRoute::Method(m)) => {
            let message = format!("{path} takes {m}, not {method}");
            return Err(errors::refusal(api, 405, message).into());
        }
    };
    let fault = asked_fault(shared, request.headers(), line)?;
    let id = shared.arrived.fetch_add(1, Ordering::Relaxed);
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
        outcome: None,
    });
    seen.request.body = read(body, wire, shared.body_limit).await?;
    if fault.slow_ms > 0 {
        tokio::time::sleep(Duration::from_millis(fault.slow_ms)).await;
    }
    let understood = understood(shared, wire, path, &seen.request.body, line);
    seen.request.prompt = understood.as_ref().ok().map(|(prompt, ..)| prompt.clone());
    if let Some(status) = fault.status {
        let error = errors::refusal(wire.api, status, "refused on purpose".into());
        return Err(Refused { error, retry_after: fault.retry_after });
    }
    let (mut prompt, asked, model) = understood?;
    asked::check(wire, &prompt, model.max_output)?;
    if fault.overflow {
        return Err(desk::overflow(wire, &prompt, &model).into());
    }
    let kept = compact.then(|| prompt.clone());
    if compact {
        let trigger = Content::CompactionTrigger("".into());
        prompt.items.push(Item::new(Role::User, trigger, usize::MAX, None));
    }
    // Counts before other requests have to wait; counts are cached.
    prompt.tokens(&model.counting);
    seen.request.thinking = asked.thinking;
    let now = (shared.clock)();
    let reply = lock(&shared.desk).answer(&seen.request, prompt, model.max_output, now)?;
    let whole = fault.cut.is_none();
    seen.outcome = Some(if whole { Ok(reply.clone()) } else { Err(errors::cut()) });
    line.usage(&reply.billed);
    line.cost_usd = model::cost_of_reply(&model, &reply).total();
    let whole = match &kept {
        Some(before) => wire.encode_compacted(before, &reply, &model),
        None => (wire.encode_reply)(&reply, &model),
    };
    line.stream = asked.stream && !compact;
    if line.stream {
        let events = (wire.events)(&whole, asked.usage).map_err(|e| broken(&reply, &e))?;
        let pause = Duration::from_millis(fault.pace_ms);
        let body = sse::events(events, pause, fault.cut);
        return Ok(response(200, "text/event-stream; charset=utf-8", body));
    }
    Ok(if fault.cut.is_some() { json(sse::half(whole)) } else { json(whole) })
}

/// Reports a reply of ours that cannot be read back, which is a bug of this program, as a provider
/// error.
fn broken(reply: &Reply, e: &serde_json::Error) -> ModelError {
    let message = format!("a reply of {} parts cannot be streamed: {e}", reply.parts.len());
    ModelError { kind: ErrorKind::Server, status: 500, ..ModelError::invalid(message) }
}

async fn count(
    shared: &HandlerState,
    request: Request,
    wire: Wire,
    line: &mut LogLine,
) -> Result<Response<Body>, Refused> {
    let path = request.uri().path().to_string();
    let body = read(request.into_body(), wire, shared.body_limit).await?;
    let (prompt, ..) = understood(shared, wire, &path, &body, line)?;
    let (tokens, original) = lock(&shared.desk).count(wire, &prompt);
    Ok(json(wire.encode_count_reply(tokens, original)))
}

fn asked_fault(
    shared: &HandlerState,
    headers: &HeaderMap,
    line: &mut LogLine,
) -> Result<Fault, ModelError> {
    let header = headers.get(FAULT_HEADER).map(|v| String::from_utf8_lossy(v.as_bytes()));
    let fault = lock(&shared.faults)
        .next(header.as_deref())
        .map_err(|e| ModelError::invalid(format!("{FAULT_HEADER}: {e}")))?;
    line.fault = fault.as_ref().map(ToString::to_string);
    Ok(fault.unwrap_or_default())
}

/// Reads a body as the prompt of a model that exists, under the name of the catalogue.
fn understood(
    shared: &HandlerState,
    wire: Wire,
    path: &str,
    body: &[u8],
    line: &mut LogLine,
) -> Result<(Prompt, ReplyOptions, Model), ModelError> {
    let mut prompt = wire.decode(path, body).map_err(|e| errors::unread(body, &e))?;
    let model = lock(&shared.desk).model(wire, &prompt.model);
    let counting = model.as_ref().map(|m| m.counting).unwrap_or_default();
    prompt.tools = prompt.tools.take().and_then(speaker::compact);
    line.prompt(&prompt, &counting, &shared.log);
    let asked = (wire.reply_options)(path, body).map_err(ModelError::invalid)?;
    let model = model?;
    prompt.model = model.name.clone();
    Ok((prompt, asked, model))
}

/// How long a client may pause within a body.
const SILENCE: Duration = Duration::from_secs(60);

/// Reads a body. A body that is too large is still read to its end, up to eight times the limit,
/// since most clients do not listen before they have sent everything.
pub(super) async fn read(mut body: Body, wire: Wire, limit: usize) -> Result<Vec<u8>, ModelError> {
    let expected = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    let (mut bytes, mut seen) = (Vec::with_capacity(expected.min(limit)), 0usize);
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
    if seen > limit { Err(errors::too_large(wire.api, limit)) } else { Ok(bytes) }
}
