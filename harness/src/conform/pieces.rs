//! What a case gives a strategy: model, settings, fixed pieces, and fillers in the place of prompt
//! texts.

use std::sync::Arc;

use ctxbench_core::block::{Block, BlockKind, Draft, MessageId, Role};
use ctxbench_core::engine::Fixed;
use ctxbench_core::model::{self, Model, Provider, Wire};
use ctxbench_core::request::Tools;
use ctxbench_core::strategy::Strategy;
use ctxbench_core::wording::Wording;
use ctxbench_strategies::Spec;
use serde_json::Value;

use super::case::{Case, CaseError};
use super::shape::MOST_COUNT;
use super::text::{expand, filler, filler_with_escapes};

/// How requests of a case are written down.
pub(super) struct View {
    pub(super) wire: Wire,
    /// Items carry the index of their provider message.
    pub(super) messages: bool,
    /// Text before the body of a summary.
    pub(super) summary_prefix: String,
    /// Parts of the summary prompt around transcript and prior summary: intro, first, prior_open,
    /// prior_close, template.
    pub(super) prompt: Option<[String; 5]>,
}

pub(super) struct SetUp {
    pub(super) model: Arc<Model>,
    pub(super) fixed: Fixed,
    pub(super) strategy: Box<dyn Strategy>,
    pub(super) view: View,
}

/// Size of the constant words around a message that OpenCode 1.3 repeats; the cases name it in
/// prose only.
const WRAPPER_BYTES: usize = 133;

pub(super) fn set_up(case: &Case) -> Result<SetUp, CaseError> {
    let mut model = model::catalogue()
        .first()
        .cloned()
        .ok_or_else(|| CaseError::Unknown { what: "model", name: String::new() })?;
    let mut wording = Wording::default();
    let mut view = View {
        wire: Wire::OpenaiResponses,
        messages: false,
        summary_prefix: String::new(),
        prompt: None,
    };
    let mut settings: Vec<(String, String)> = Vec::new();
    let mut given = |k: &str, v: Option<String>| {
        if let Some(v) = v {
            settings.push((k.to_string(), v));
        }
    };
    let number = |v: &Value| v.as_u64().map(|n| n.to_string());
    let spec_name = match case.agent.as_str() {
        "codex" => {
            model.window = case.number("context_window").unwrap_or(0);
            model.name = "recorded".into();
            wording.set(
                "codex.summary_prompt",
                filler("prompt", case.constant("summary_prompt_bytes")),
            );
            view.summary_prefix = filler("prefix", case.constant("summary_prefix_bytes"));
            wording.set("codex.summary_prefix", view.summary_prefix.clone());
            view.summary_prefix.push('\n');
            // Outputs of a case are given as they entered the history, after the program's own
            // cutting.
            given("tool_output_tokens", Some("0".into()));
            if let Some(p) = case.settings.get("compact_prompt").filter(|p| !p.is_null()) {
                wording.set("codex.summary_prompt", expand(p)?);
            }
            given("remote", case.settings.get("remote").map(Value::to_string));
            given(
                "auto_compact_limit",
                case.settings.get("auto_compact_token_limit").and_then(number),
            );
            given("stream_retries", case.settings.get("stream_max_retries").and_then(number));
            given(
                "post_turn_percent",
                case.settings.get("post_turn_threshold_percent").and_then(number),
            );
            given(
                "limit_scope",
                case.settings.get("limit_scope").and_then(Value::as_str).map(str::to_string),
            );
            let base = case.fixed.iter().find(|f| f["kind"] == "base");
            given(
                "base_estimate_bytes",
                base.and_then(|b| b.get("estimate_bytes")).and_then(number),
            );
            format!("codex@{}", case.version.strip_suffix(".0").unwrap_or(&case.version))
        }
        "opencode" => {
            let m = case.settings.get("model").cloned().unwrap_or_default();
            model.window = m["context"].as_u64().unwrap_or(0);
            model.max_output = m["output"].as_u64().unwrap_or(0);
            model.input_limit = m.get("input").and_then(Value::as_u64);
            model.name = "mock-model".into();
            view.messages = true;
            let anthropic = case.settings.get("wire").and_then(Value::as_str) == Some("anthropic");
            model.provider = if anthropic { Provider::Anthropic } else { Provider::Openai };
            view.wire = if anthropic { Wire::AnthropicMessages } else { Wire::OpenaiChat };
            let first = case.constant("summary_prompt_first");
            let prior = case.constant("summary_prompt_with_prior");
            let parts = [
                filler("intro", 20),
                filler("first", first.saturating_sub(40)),
                filler("prior_open", 20),
                filler("prior_close", prior.saturating_sub(60)),
                filler("template", 20),
            ];
            for (name, text) in
                ["intro", "first", "prior_open", "prior_close", "template"].iter().zip(&parts)
            {
                wording.set(&format!("opencode.{name}"), text.clone());
            }
            view.prompt = Some(parts);
            let constant_text = |name: &str| {
                let c = case.constants.get(name);
                c.and_then(|c| c.get("placeholder"))
                    .and_then(Value::as_str)
                    .map(str::to_string)
                    .unwrap_or_else(|| filler(name, case.constant(name)))
            };
            wording.set("opencode.marker", constant_text("marker"));
            wording.set("opencode.continue", constant_text("continue"));
            wording.set("opencode.continue_overflow", constant_text("continue_after_overflow"));
            // 1.3: the recorded wrapper around a replayed message, and the prompt behind the
            // conversation.
            wording.set("opencode.wrapper_open", filler("wrapper", WRAPPER_BYTES));
            wording.set("opencode.old_prompt", filler("prompt", 1));
            if let Some(m) = case.settings.get("compaction_model") {
                given("model", m["name"].as_str().map(str::to_string));
                given("model_context", m.get("context").and_then(number));
                given("model_output", m.get("output").and_then(number));
                given("model_input", m.get("input").and_then(number));
            }
            for (k, v) in case
                .settings
                .get("compaction")
                .and_then(Value::as_object)
                .into_iter()
                .flatten()
                .filter(|(_, v)| !v.is_null())
            {
                given(k, Some(v.to_string()));
            }
            format!("opencode@{}", case.version.rsplit_once('.').map_or("", |(v, _)| v))
        }
        "anthropic-sdk" => {
            view.messages = true;
            view.wire = Wire::AnthropicMessages;
            model.name = case.settings.get("model").and_then(Value::as_str).unwrap_or("").into();
            wording.set(
                "anthropic-sdk.summary_prompt",
                filler("prompt", case.constant("summary_prompt_bytes")),
            );
            let control = case.settings.get("compaction_control").cloned().unwrap_or_default();
            let threshold =
                control.get("context_token_threshold").or(control.get("contextTokenThreshold"));
            // Without the control, or with it switched off, nothing is compacted.
            let old = !case.version.starts_with("python-2");
            let never = (old && control["enabled"] != true).then(|| MOST_COUNT.to_string());
            given("threshold", never.or_else(|| threshold.and_then(number)));
            given("model", control.get("model").and_then(Value::as_str).map(str::to_string));
            given("max_tokens", case.settings.get("max_tokens").and_then(number));
            given("max_iterations", case.settings.get("max_iterations").and_then(number));
            // Of a recorded caller the events tell when it asks.
            given("compact_at", Some("0".into()));
            given(
                "threads",
                case.settings.get("thread").and_then(Value::as_bool).map(|t| t.to_string()),
            );
            if let Some(p) = control
                .get("summary_prompt")
                .or(control.get("summaryPrompt"))
                .filter(|p| !p.is_null())
            {
                wording.set("anthropic-sdk.summary_prompt", expand(p)?);
            }
            match case.version.split_once('-') {
                Some(("typescript", _)) => {
                    given("language", Some("typescript".into()));
                    "anthropic-sdk".to_string()
                }
                Some((_, v)) => {
                    format!("anthropic-sdk@{}", v.rsplit_once('.').map_or("", |(v, _)| v))
                }
                None => {
                    return Err(CaseError::Unknown { what: "version", name: case.version.clone() });
                }
            }
        }
        other => return Err(CaseError::Unknown { what: "agent", name: other.to_string() }),
    };
    let list: Vec<String> = settings.iter().map(|(k, v)| format!("{k}={v}")).collect();
    let spec = Spec::parse(&format!("{spec_name}:{}", list.join(","))).map_err(|e| {
        CaseError::Format { what: "settings that the strategy knows".into(), found: e.to_string() }
    })?;
    let strategy = spec.build_with(1.0, &wording);
    let mut fixed = fixed(case)?;
    if case.agent == "anthropic-sdk" {
        let own =
            ["model", "max_tokens", "max_iterations", "compaction_control", "betas", "thread"];
        fixed.params = case
            .settings
            .iter()
            .filter(|(k, _)| !own.contains(&k.as_str()))
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        fixed.server_edits = ctxbench_provider::edits_among(&fixed.params);
    }
    Ok(SetUp { model: Arc::new(model), fixed, strategy, view })
}

fn fixed(case: &Case) -> Result<Fixed, CaseError> {
    let mut out = Fixed::default();
    for f in &case.fixed {
        let kind = f["kind"].as_str().unwrap_or("");
        match kind {
            // Made by the program for its summary requests.
            "base" if f["for"] == "summary" => out.summary_base.push(piece(f, BlockKind::Base)?),
            "base" => out.base.push(piece(f, BlockKind::Base)?),
            "context" => out.context.push(piece(f, BlockKind::Context)?),
            "tools" => {
                let count = f["count"].as_u64().unwrap_or(0) as usize;
                let one = serde_json::json!({"name": "tool", "description": "", "input_schema": {"type": "object"}});
                out.tools = Tools::new(&vec![one; count]);
            }
            other => {
                return Err(CaseError::Unknown { what: "fixed piece", name: other.to_string() });
            }
        }
    }
    Ok(out)
}

fn piece(f: &Value, kind: BlockKind) -> Result<Arc<Block>, CaseError> {
    let role = role_of(f["role"].as_str().unwrap_or(""))?;
    let tag = f["kind"].as_str().unwrap_or("");
    let mut draft = match f.get("text") {
        Some(t) => Draft::text(kind, role, expand(t)?),
        None => {
            let sizes: Vec<usize> = match &f["bytes"] {
                Value::Array(list) => {
                    list.iter().filter_map(Value::as_u64).map(|n| n as usize).collect()
                }
                v => vec![v.as_u64().unwrap_or(0) as usize],
            };
            let total: usize = sizes.iter().sum();
            // The JSON form of a recorded piece is longer than its text by its escapes; a filler of
            // line breaks has as many.
            let envelope =
                r#"{"type":"message","role":"","content":[{"type":"input_text","text":""}]}"#.len()
                    + f["role"].as_str().unwrap_or("").len();
            let escapes = f
                .get("json_bytes")
                .and_then(Value::as_u64)
                .map_or(0, |j| (j as usize).saturating_sub(envelope + total));
            let mut d = Draft::text(kind, role, filler_with_escapes(tag, total, escapes));
            let mut at = 0;
            for s in &sizes[..sizes.len() - 1] {
                at += s;
                d.splits.push(at);
            }
            d
        }
    };
    draft.form = ctxbench_core::block::Form::Verbatim;
    Ok(draft.build(MessageId(u32::MAX), vec![]))
}

pub(super) fn role_of(name: &str) -> Result<Role, CaseError> {
    Ok(match name {
        "instructions" => Role::Instructions,
        "system" => Role::System,
        "developer" => Role::Developer,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" => Role::Tool,
        other => return Err(CaseError::Unknown { what: "role", name: other.to_string() }),
    })
}
