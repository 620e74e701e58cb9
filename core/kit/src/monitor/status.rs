//! Status lines: JSON with the fields of Claude Code's status line, so that scripts written for it
//! work with a replay.
//!
//! Field names: docs/sources/token-budgeting.md §5.6 and docs/sources/chat-history.md §5.6
//! (`context_window`, `cost.total_cost_usd`, `exceeds_200k_tokens`), and Claude Code's documentation
//! of the status line (`model`, the other fields of `cost`).

use serde_json::{Value, json};

use super::session::{CallSample, SessionMeter};
use super::tags::usage_tag;
use ctxbench_core::model;

/// Prompt size in tokens that status lines warn about (docs/sources/token-budgeting.md §5.6:
/// `exceeds_200k_tokens`, a threshold that does not depend on the window).
const LARGE_PROMPT: u64 = 200_000;

/// Returns the status line of a session from the state of its meter. `model` is the model of the
/// conversation. Percentages and the last usage are null before the first reply; the tag that the
/// provider adds is absent for models without one.
pub fn status_line(session: &str, model: &str, meter: &SessionMeter) -> Value {
    let (used, window) = (meter.last_call.map_or(0, |u| u.prompt()), meter.window);
    let share = if window == 0 { 0.0 } else { 100.0 * used as f64 / window as f64 };
    let percentage = meter.last_call.map(|_| share);
    let usage = meter.last_call.map(|u| {
        json!({
            "input_tokens": u.input,
            "output_tokens": u.output,
            "cache_creation_input_tokens": u.cache_write + u.cache_write_1h,
            "cache_read_input_tokens": u.cache_read,
        })
    });
    let sum = |of: fn(&CallSample) -> u64| meter.calls.iter().map(of).sum::<u64>();
    let mut line = json!({
        "session_id": session,
        "model": {"id": model, "display_name": display_name(model)},
        "context_window": {
            "total_input_tokens": sum(|c| c.usage.prompt()),
            "total_output_tokens": sum(|c| c.usage.output),
            "context_window_size": window,
            "used_percentage": percentage,
            "remaining_percentage": percentage.map(|p| (100.0 - p).max(0.0)),
            "current_usage": usage,
        },
        "exceeds_200k_tokens": used > LARGE_PROMPT,
        "cost": {
            "total_cost_usd": meter.cost_usd(),
            "total_duration_ms": meter.end_ms,
            "total_api_duration_ms": sum(|c| c.took_ms),
        },
    });
    if model::find(model).is_ok_and(|m| m.capabilities.awareness) {
        line["usage_tag"] = usage_tag(used, window).into();
    }
    line
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
    use ctxbench_core::usage::Usage;

    #[test]
    fn status_line_has_fields_of_claude_code() {
        let mut meter = SessionMeter::new(200_000);
        let empty = status_line("s", "claude-sonnet-4-6", &meter);
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
        let v = status_line("s", "claude-sonnet-4-6", &meter);
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
        assert!(status_line("s", "gpt-5", &meter)["usage_tag"].is_null());
        assert_eq!(display_name("gpt-5"), "gpt-5");
    }
}
