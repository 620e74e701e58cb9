//! Request settings for the server and not for the model: streaming, thinking, usage in the stream.

use ctxbench_core::request::ModelError;
use ctxbench_provider::Prompt;
use ctxbench_provider::wire::Wire;
use serde_json::Value;

/// Refuses requests that the provider refuses before it looks at the conversation. `most` = the
/// model's largest reply, tokens.
pub(super) fn check(wire: Wire, prompt: &Prompt, most: u64) -> Result<(), ModelError> {
    if !prompt.items.iter().any(|i| i.message > 0) {
        let field = wire.rules.conversation_field;
        return Err(ModelError::invalid(format!("{field}: at least one message is required")));
    }
    match prompt.max_tokens {
        None if wire.rules.requires_max_tokens => {
            Err(ModelError::invalid("max_tokens: Field required"))
        }
        Some(0) => Err(ModelError::invalid("max_tokens: must be at least 1")),
        Some(n) if n > most => Err(ModelError::invalid(format!(
            "max_tokens: {n} > {most}, the most output tokens of {}",
            prompt.model
        ))),
        _ => Ok(()),
    }
}

pub(super) fn tools(wire: Wire, prompt: &Prompt) -> Vec<String> {
    let all: Vec<Value> = prompt
        .tools
        .as_ref()
        .and_then(|t| serde_json::from_str(t.json.get()).ok())
        .unwrap_or_default();
    all.iter().filter_map(|t| (wire.rules.tool_name)(t)).map(str::to_string).collect()
}

#[cfg(test)]
mod tests {
    use ctxbench_provider::wire::find;

    #[test]
    fn what_a_body_says_beside_its_prompt() {
        let of = |wire: &str, body: &str| (find(wire).unwrap().reply_options)("", body.as_bytes());
        let a = of(
            "anthropic-messages",
            r#"{"stream":true,"thinking":{"type":"enabled","budget_tokens":1024}}"#,
        )
        .unwrap();
        assert_eq!((a.stream, a.thinking), (true, true));
        let a = of("anthropic-messages", r#"{"thinking":{"type":"disabled"}}"#).unwrap();
        assert_eq!((a.stream, a.thinking), (false, false));
        assert!(of("openai-responses", r#"{"reasoning":{"effort":"low"}}"#).unwrap().thinking);
        assert!(of("openai-responses", r#"{"previous_response_id":"r"}"#).is_err());
        assert!(of("openai-chat", r#"{"stream_options":{"include_usage":true}}"#).unwrap().usage);
        assert!(of("openai-chat", r#"{"n":2}"#).is_err());
    }
}
