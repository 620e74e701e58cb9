//! Contents that clients store: created, listed, read, extended, deleted. The log reports their
//! cost: input at creation, and storage for their lifetime; a deletion refunds the rest.

use axum::extract::Request;
use ctxbench_core::model::{cost, storage_cost};
use ctxbench_core::request::ModelError;
use ctxbench_core::usage::Usage;
use ctxbench_provider::wire::{StoredContents, Wire};
use serde_json::{Value, json};

use super::handle::{HandlerState, Refused, lock, read};
use super::log::LogLine;
use super::{errors, speaker};

/// Answers a request about stored contents.
pub(super) async fn answer(
    shared: &HandlerState,
    request: Request,
    wire: Wire,
    path: &str,
    line: &mut LogLine,
) -> Result<Value, Refused> {
    let (method, now) = (request.method().to_string(), (shared.clock)());
    let wrong = |e: &dyn std::fmt::Display| ModelError::invalid(e.to_string());
    let Some(format) = &wire.store else {
        let message = format!("{path} is not an address of this API");
        return Err(errors::refusal(wire.api, 404, message).into());
    };
    let name = (format.name)(path);
    let storing = match &*method {
        "POST" | "PATCH" => {
            let body = read(request.into_body(), wire, shared.body_limit).await?;
            Some((format.decode)(&body).map_err(|e| wrong(&e))?)
        }
        _ => None,
    };
    let mut desk = lock(&shared.desk);
    match (&*method, name, storing) {
        ("POST", None, Some(mut storing)) => {
            let model = desk.model(wire, &storing.prompt.model)?;
            let prompt = &mut storing.prompt;
            prompt.tools = prompt.tools.take().and_then(speaker::compact);
            prompt.model = model.name.clone();
            line.prompt(prompt, &model.counting, &shared.log);
            let stored = desk.store(wire).create(storing, &model, now)?;
            let input = Usage { input: stored.tokens, ..Usage::default() };
            line.usage(&input);
            let life = stored.expires_ms - now;
            line.cost_usd =
                cost(&model, &input).total() + storage_cost(&model, stored.tokens, life);
            Ok((format.encode)(&stored))
        }
        ("GET", None, _) => {
            let all = desk.store(wire).all(now).map(|s| (format.encode)(s)).collect();
            Ok((format.list)(all))
        }
        ("GET", Some(name), _) => Ok((format.encode)(desk.store(wire).get(name, now)?)),
        ("PATCH", Some(name), Some(storing)) => {
            let before = desk.store(wire).get(name, now)?.clone();
            let stored = desk.store(wire).keep(name, storing.ttl_ms, now)?;
            let model = desk.model(wire, &stored.model)?;
            let rest = |s: &StoredContents| storage_cost(&model, s.tokens, s.expires_ms - now);
            line.cost_usd = rest(&stored) - rest(&before);
            Ok((format.encode)(&stored))
        }
        ("DELETE", Some(name), _) => {
            let stored = desk.store(wire).remove(name, now)?;
            let model = desk.model(wire, &stored.model)?;
            line.cost_usd = -storage_cost(&model, stored.tokens, stored.expires_ms - now);
            Ok(json!({}))
        }
        _ => {
            let takes = if name.is_some() { "GET, PATCH or DELETE" } else { "GET or POST" };
            let message = format!("{path} takes {takes}, not {method}");
            Err(errors::refusal(wire.api, 405, message).into())
        }
    }
}
