//! Status lines: JSON with the fields of Claude Code's status line, so that scripts written for it
//! work with a replay.
//!
//! Field names: docs/sources/token-budgeting.md §5.6 and docs/sources/chat-history.md §5.6
//! (`context_window`, `cost.total_cost_usd`, `exceeds_200k_tokens`), and Claude Code's documentation
//! of the status line (`model`, the other fields of `cost`).

use serde::Serialize;

use super::session::SessionMeter;
use super::tags::usage_tag;
use ctxbench_core::model;
use ctxbench_core::usage::Usage;

/// Data of a status line.
#[derive(Clone, Debug, Serialize)]
pub struct StatusLine {
    /// Session name.
    pub session_id: String,
    /// Model of the conversation.
    pub model: ModelName,
    pub context_window: ContextWindow,
    /// Whether the last prompt had more than 200,000 tokens. Independent of the context window.
    pub exceeds_200k_tokens: bool,
    pub cost: SessionCost,
    /// Usage tag that the provider adds to the context; absent for models without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage_tag: Option<String>,
}

/// Names of a model.
#[derive(Clone, Debug, Serialize)]
pub struct ModelName {
    /// Name in the API.
    pub id: String,
    pub display_name: String,
}

/// Usage of the context window.
#[derive(Clone, Debug, Serialize)]
pub struct ContextWindow {
    /// Input tokens of all requests; may exceed the window.
    pub total_input_tokens: u64,
    /// Output tokens of all requests.
    pub total_output_tokens: u64,
    /// Window size in tokens.
    pub context_window_size: u64,
    /// Input of the last request as a percentage of the window; `None` before the first reply.
    pub used_percentage: Option<f64>,
    /// 100 minus `used_percentage`, at least 0.
    pub remaining_percentage: Option<f64>,
    /// Token usage of the last reply.
    pub current_usage: Option<CallUsage>,
}

/// Token usage of a reply.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CallUsage {
    /// Input tokens neither read from nor written to the cache.
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Input tokens written to the cache.
    pub cache_creation_input_tokens: u64,
    /// Input tokens read from the cache.
    pub cache_read_input_tokens: u64,
}

impl From<Usage> for CallUsage {
    fn from(u: Usage) -> Self {
        CallUsage {
            input_tokens: u.input,
            output_tokens: u.output,
            cache_creation_input_tokens: u.cache_write + u.cache_write_1h,
            cache_read_input_tokens: u.cache_read,
        }
    }
}

/// Cost and time of a session.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SessionCost {
    /// USD, side requests included.
    pub total_cost_usd: f64,
    /// Time since the start in ms.
    pub total_duration_ms: u64,
    /// Time of requests in ms.
    pub total_api_duration_ms: u64,
}

impl StatusLine {
    /// Creates a status line from the state of a meter. `model` is the model of the conversation.
    pub fn from_meter(session: &str, model: &str, meter: &SessionMeter) -> Self {
        let s = meter.snapshot();
        let percentage = s.last_call.map(|_| s.percentage);
        let has_tag = model::find(model).is_ok_and(|m| m.capabilities.awareness);
        StatusLine {
            session_id: session.to_string(),
            model: ModelName { id: model.to_string(), display_name: display_name(model) },
            context_window: ContextWindow {
                total_input_tokens: s.total_input,
                total_output_tokens: s.total_output,
                context_window_size: s.window,
                used_percentage: percentage,
                remaining_percentage: percentage.map(|p| (100.0 - p).max(0.0)),
                current_usage: s.last_call.map(CallUsage::from),
            },
            exceeds_200k_tokens: meter.exceeds_200k(),
            cost: SessionCost {
                total_cost_usd: s.cost_usd,
                total_duration_ms: s.duration_ms,
                total_api_duration_ms: meter.api_ms(),
            },
            usage_tag: has_tag.then(|| usage_tag(s.used, s.window)),
        }
    }
}

/// Formats `claude-sonnet-4-6` as `Sonnet 4.6`; returns other names unchanged.
fn display_name(id: &str) -> String {
    let Some(rest) = id.strip_prefix("claude-") else { return id.to_string() };
    let mut parts = rest.split('-');
    let family = parts.next().unwrap_or(rest);
    let version: Vec<&str> = parts.collect();
    let mut name: String =
        family.chars().take(1).flat_map(char::to_uppercase).chain(family.chars().skip(1)).collect();
    if !version.is_empty() {
        name = format!("{name} {}", version.join("."));
    }
    name
}

#[cfg(test)]
mod tests {
    use super::super::session::tests::{reply, request};
    use super::*;

    #[test]
    fn status_line_has_fields_of_claude_code() {
        let mut meter = SessionMeter::new(200_000);
        let empty =
            serde_json::to_value(StatusLine::from_meter("s", "claude-sonnet-4-6", &meter)).unwrap();
        assert_eq!(
            empty["context_window"]["used_percentage"],
            serde_json::Value::Null,
            "unknown before the first reply"
        );
        let usage = Usage {
            input: 500,
            output: 1_200,
            cache_read: 40_000,
            cache_write: 9_500,
            ..Usage::default()
        };
        meter.observe(None, &request(vec![]), &reply(usage, vec![]), 0, 9_000);
        let v =
            serde_json::to_value(StatusLine::from_meter("s", "claude-sonnet-4-6", &meter)).unwrap();
        // By hand: 50,000 of 200,000; 500×3 + 40,000×0.3 + 9,500×3.75 + 1,200×15 = 67,125 µUSD.
        let usd = v["cost"]["total_cost_usd"].as_f64().unwrap();
        assert!((usd - 0.067_125).abs() < 1e-12, "{usd}");
        let expected = serde_json::json!({
            "session_id": "s",
            "model": {"id": "claude-sonnet-4-6", "display_name": "Sonnet 4.6"},
            "context_window": {
                "total_input_tokens": 50_000, "total_output_tokens": 1_200, "context_window_size": 200_000,
                "used_percentage": 25.0, "remaining_percentage": 75.0,
                "current_usage": {
                    "input_tokens": 500, "output_tokens": 1_200,
                    "cache_creation_input_tokens": 9_500, "cache_read_input_tokens": 40_000,
                },
            },
            "exceeds_200k_tokens": false,
            "cost": {
                "total_cost_usd": usd, "total_duration_ms": 9_000, "total_api_duration_ms": 9_000,
            },
            "usage_tag": "<system_warning>Token usage: 50000/200000; 150000 remaining</system_warning>",
        });
        assert_eq!(v, expected);
        assert!(StatusLine::from_meter("s", "gpt-5", &meter).usage_tag.is_none());
        assert_eq!(display_name("gpt-5"), "gpt-5");
    }
}
