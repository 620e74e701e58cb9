//! What a request says to the server and not to the model: whether to stream, to think, to tell usage.

use ctxbench_core::provider::{Prompt, Wire};
use ctxbench_core::request::ModelError;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::errors::invalid;

/// Read from a body beside its prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    /// The reply comes as events.
    pub(super) stream: bool,
    /// The reply may begin with thinking.
    pub(super) thinking: bool,
    /// A stream of Chat ends with the usage.
    pub(super) usage: bool,
}

#[derive(Deserialize)]
struct Body {
    stream: Option<bool>,
    thinking: Option<Typed>,
    reasoning: Option<IgnoredAny>,
    stream_options: Option<StreamOptions>,
    previous_response_id: Option<IgnoredAny>,
    conversation: Option<IgnoredAny>,
    background: Option<bool>,
    n: Option<u64>,
}

#[derive(Deserialize)]
struct Typed {
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
}

/// Reads a body that is known to be JSON of the wire.
pub(super) fn asked(wire: Wire, bytes: &[u8]) -> Result<Asked, ModelError> {
    let body: Body = serde_json::from_slice(bytes).map_err(|e| invalid(e.to_string()))?;
    if wire == Wire::OpenaiResponses && (body.previous_response_id.is_some() || body.conversation.is_some()) {
        return Err(invalid("this server keeps no responses: send the whole `input` instead of `previous_response_id` or `conversation`"));
    }
    if body.background == Some(true) || body.n.is_some_and(|n| n != 1) {
        return Err(invalid("this server answers at once and with one choice: leave `background` and `n` out"));
    }
    Ok(Asked {
        stream: body.stream.unwrap_or(false),
        thinking: match wire {
            Wire::AnthropicMessages => body.thinking.is_some_and(|t| t.kind != "disabled"),
            Wire::OpenaiResponses => body.reasoning.is_some(),
            Wire::OpenaiChat => false,
        },
        usage: body.stream_options.and_then(|o| o.include_usage).unwrap_or(false),
    })
}

/// Refuses what the provider would before it looks at the conversation. `most` = the model's largest reply, tokens.
pub(super) fn check(wire: Wire, prompt: &Prompt, most: u64) -> Result<(), ModelError> {
    if !prompt.items.iter().any(|i| i.message > 0) {
        let field = if wire == Wire::OpenaiResponses { "input" } else { "messages" };
        return Err(invalid(format!("{field}: at least one message is required")));
    }
    match prompt.max_tokens {
        None if wire == Wire::AnthropicMessages => Err(invalid("max_tokens: Field required")),
        Some(0) => Err(invalid("max_tokens: must be at least 1")),
        Some(n) if n > most => Err(invalid(format!("max_tokens: {n} > {most}, the most output tokens of {}", prompt.model))),
        _ => Ok(()),
    }
}

/// The names of the tools that a prompt offers.
pub(super) fn tools(prompt: &Prompt) -> Vec<String> {
    let all: Vec<Value> = prompt.tools.as_ref().and_then(|t| serde_json::from_str(t.get()).ok()).unwrap_or_default();
    let name = |t: &Value| t.get("name").or_else(|| t.get("function")?.get("name")).and_then(Value::as_str).map(str::to_string);
    all.iter().filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_body_says_beside_its_prompt() {
        let of = |wire, body: &str| asked(wire, body.as_bytes());
        let a = of(Wire::AnthropicMessages, r#"{"stream":true,"thinking":{"type":"enabled","budget_tokens":1024}}"#).unwrap();
        assert_eq!((a.stream, a.thinking), (true, true));
        let a = of(Wire::AnthropicMessages, r#"{"thinking":{"type":"disabled"}}"#).unwrap();
        assert_eq!((a.stream, a.thinking), (false, false));
        assert!(of(Wire::OpenaiResponses, r#"{"reasoning":{"effort":"low"}}"#).unwrap().thinking);
        assert!(of(Wire::OpenaiResponses, r#"{"previous_response_id":"r"}"#).is_err());
        assert!(of(Wire::OpenaiChat, r#"{"stream_options":{"include_usage":true}}"#).unwrap().usage);
        assert!(of(Wire::OpenaiChat, r#"{"n":2}"#).is_err());
    }
}
