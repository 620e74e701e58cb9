//! Export to ATIF 1.8, a trajectory on one line. The importer in `formats/atif` reads it back.
//!
//! Times count from 1970 if the session has no start time. Subagents are trajectories inside the
//! document, and the result that follows them names them.

use ctxbench_core::{Millis, Part};
use ctxbench_session::{AssistantEntry, Billing, Session, ToolEntry};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use serde_with::skip_serializing_none;

use super::conversation::{
    ExportConversation, ExportTurn, arguments, as_function, conversations, in_places,
    texts_and_images,
};
use super::{Export, ExportLosses};
use crate::formats::time::{millis, of_millis};

pub(super) const EXPORT: Export = Export {
    title: "ATIF",
    name: "atif",
    ending: "json",
    several: false,
    write: |session, lost| Ok(trajectory(session, lost) + "\n"),
};

const VERSION: &str = "ATIF-v1.8";

/// Image types that the format supports.
const IMAGES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

#[skip_serializing_none]
#[derive(Serialize)]
struct Trajectory<'a> {
    schema_version: &'static str,
    session_id: Option<&'a str>,
    trajectory_id: &'a str,
    agent: AtifAgent<'a>,
    steps: Vec<AtifStep<'a>>,
    notes: Option<&'static str>,
    final_metrics: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    subagent_trajectories: Vec<Trajectory<'a>>,
}

#[skip_serializing_none]
#[derive(Serialize)]
struct AtifAgent<'a> {
    name: &'a str,
    version: &'static str,
    model_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_definitions: Vec<Value>,
}

#[skip_serializing_none]
#[derive(Default, Serialize)]
struct AtifStep<'a> {
    step_id: usize,
    timestamp: Option<String>,
    source: &'static str,
    model_name: Option<&'a str>,
    message: Value,
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<AtifCall>,
    observation: Option<Value>,
    metrics: Option<Value>,
}

#[derive(Serialize)]
struct AtifCall {
    tool_call_id: String,
    function_name: String,
    arguments: Box<RawValue>,
}

fn trajectory(session: &Session, lost: &mut ExportLosses) -> String {
    let all = conversations(session, lost);
    let (main, agents) = all.split_at(1);
    let header = &session.header;
    let mut whole = write_window(session, &main[0], agents, lost);
    whole.session_id = Some(&header.id);
    whole.trajectory_id = &header.id;
    let timed = whole.steps.iter().chain(whole.subagent_trajectories.iter().flat_map(|t| &t.steps));
    if timed.into_iter().any(|s| s.timestamp.is_some()) {
        whole.notes = Some("Times count from the beginning of the session, as if it was 1970.");
    }
    let limits = [header.context_window, header.max_output, header.prefix_tokens];
    limits.iter().flatten().for_each(|_| lost.add("sizes of window, reply and prefix"));
    serde_json::to_string(&whole).expect("texts, numbers and lists can be written")
}

/// Writes a window as a trajectory. `agents` are the windows inside it.
fn write_window<'a>(
    session: &'a Session,
    window: &ExportConversation<'a>,
    agents: &[ExportConversation<'a>],
    lost: &mut ExportLosses,
) -> Trajectory<'a> {
    let of_call = |call: Option<&str>| -> Vec<Value> {
        let before = agents.iter().filter(|a| a.before == call).filter_map(|a| a.agent);
        before.map(|id| json!({"trajectory_id": id})).collect()
    };
    let mut steps: Vec<AtifStep<'_>> = Vec::new();
    for turn in &window.turns {
        steps.push(match turn {
            ExportTurn::Standing(text) => {
                AtifStep { source: "system", message: text.as_str().into(), ..AtifStep::default() }
            }
            ExportTurn::User(user) => AtifStep {
                source: "user",
                timestamp: time(session, user.at),
                message: content(&user.content(), lost),
                ..AtifStep::default()
            },
            ExportTurn::Reply(reply, results) => {
                let results = results.iter().map(|r| result(r, of_call(Some(&r.call_id)), lost));
                let results: Vec<Value> = results.collect();
                let observation = (!results.is_empty()).then(|| json!({"results": results}));
                let timestamp = time(session, reply.at);
                AtifStep { observation, timestamp, ..reply_step(reply, lost) }
            }
        });
    }
    // Windows without a result are written last.
    let rest = of_call(None);
    if !rest.is_empty() {
        let observation = Some(json!({"results": [{"subagent_trajectory_ref": rest}]}));
        steps.push(AtifStep {
            source: "system",
            message: "".into(),
            observation,
            ..AtifStep::default()
        });
    }
    for (n, step) in steps.iter_mut().enumerate() {
        step.step_id = n + 1;
    }
    let source = session.header.source.as_ref();
    Trajectory {
        schema_version: VERSION,
        session_id: None,
        trajectory_id: window.agent.unwrap_or_default(),
        agent: AtifAgent {
            name: source.map_or("unknown", |s| &s.format),
            version: "unknown",
            model_name: session.header.model.as_deref(),
            tool_definitions: window.tools.iter().map(as_function).collect(),
        },
        final_metrics: sums(window, steps.len()),
        steps,
        notes: None,
        subagent_trajectories: agents.iter().map(|a| write_window(session, a, &[], lost)).collect(),
    }
}

fn reply_step<'a>(reply: &'a AssistantEntry, lost: &mut ExportLosses) -> AtifStep<'a> {
    let parts = reply.content();
    lost.add_if(!in_places(&parts), "places of parts within a reply");
    let mut thoughts = Vec::new();
    let mut tool_calls = Vec::new();
    let mut rest = Vec::new();
    for part in parts {
        match part {
            Part::Reasoning { text, encrypted } => {
                lost.add_if(encrypted.is_some(), "encrypted reasoning");
                thoughts.extend((!text.is_empty()).then_some(text));
            }
            Part::Call(call) => tool_calls.push(AtifCall {
                tool_call_id: call.id.to_string(),
                function_name: call.name.to_string(),
                arguments: arguments(&call, lost),
            }),
            other => rest.push(other),
        }
    }
    AtifStep {
        source: "agent",
        model_name: reply.model.as_deref(),
        message: content(&rest, lost),
        reasoning_content: (!thoughts.is_empty()).then(|| thoughts.join("\n\n")),
        tool_calls,
        metrics: metrics(reply, lost),
        ..AtifStep::default()
    }
}

/// Returns the counters of a reply. The prompt includes the tokens read from and written to the
/// cache.
fn metrics(reply: &AssistantEntry, lost: &mut ExportLosses) -> Option<Value> {
    let usage = reply.usage.as_ref()?;
    lost.add_if(usage.output_estimate.is_some(), "estimates of output that was not counted");
    lost.add_if(usage.cache_write_1h > 0, "lifetimes of cache writes");
    let Billing { speed, tier, region, web_searches, told_usd, .. } = &usage.billing;
    let has_terms = [speed, tier, region].iter().any(|term| term.is_some()) || *web_searches > 0;
    lost.add_if(has_terms || told_usd.is_some(), "terms and dollars of a call");
    let written = usage.cache_write.saturating_add(usage.cache_write_1h);
    let mut metrics = json!({
        "prompt_tokens": usage.prompt(),
        "completion_tokens": usage.output,
        "cached_tokens": usage.cache_read,
    });
    if written > 0 {
        metrics["extra"] = json!({"cache_creation_input_tokens": written});
    }
    Some(metrics)
}

/// Returns the sums of a window, or `None` if a reply has no counters.
fn sums(window: &ExportConversation<'_>, steps: usize) -> Option<Value> {
    let replies = window.turns.iter().filter_map(|t| match t {
        ExportTurn::Reply(reply, _) => Some(reply.usage.as_ref()),
        _ => None,
    });
    let usages = replies.collect::<Option<Vec<_>>>().filter(|u| !u.is_empty())?;
    let sum = |of: fn(&ctxbench_session::RecordedUsage) -> u64| {
        usages.iter().map(|u| of(u)).fold(0, u64::saturating_add)
    };
    Some(json!({
        "total_prompt_tokens": sum(|u| u.prompt()),
        "total_completion_tokens": sum(|u| u.output),
        "total_cached_tokens": sum(|u| u.cache_read),
        "total_steps": steps,
    }))
}

fn result(result: &ToolEntry, agents: Vec<Value>, lost: &mut ExportLosses) -> Value {
    lost.add_if(result.at.is_some(), "times of results");
    let mut out = json!({
        "source_call_id": result.call_id,
        "content": content(&result.content(), lost),
    });
    if !agents.is_empty() {
        out["subagent_trajectory_ref"] = agents.into();
    }
    if result.is_error == Some(true) {
        out["extra"] = json!({"is_error": true});
    }
    out
}

fn content(parts: &[Part], lost: &mut ExportLosses) -> Value {
    texts_and_images(parts, lost, "files that are not JPEG, PNG, GIF or WebP", |media| {
        let source = json!({"media_type": media.media_type, "path": media.url});
        let is_image = IMAGES.contains(&media.media_type.as_str());
        is_image.then(|| json!({"type": "image", "source": source}))
    })
}

/// Returns a time of the session, counted from 1970 if its start is unknown.
fn time(session: &Session, at: Option<Millis>) -> Option<String> {
    let began = session.header.started.as_deref().and_then(millis).unwrap_or_default();
    of_millis(began.saturating_add(i64::try_from(at?).ok()?))
}
