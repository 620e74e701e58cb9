//! Errors in each provider's shape, and how an overflow is told from other refusals.

use serde::Deserialize;

use super::models::Wire;
use crate::request::{ErrorKind, ModelError};

/// Code under which the mock says that a scripted session is over; no provider uses it.
const ENDED: &str = "ctxbench_session_ended";
const GONE: u16 = 410;

/// Codes that mean: the prompt is too large.
const OVERFLOW_CODES: [&str; 4] = ["context_length_exceeded", "prompt_too_long", "request_too_large", "model_context_window_exceeded"];

/// Words that mean the same, lower case: Anthropic, Anthropic before 4.5, Bedrock, OpenAI now and earlier, Gemini.
const OVERFLOW_WORDS: [&str; 6] = [
    "prompt is too long",
    "exceed context limit",
    "input is too long for requested model",
    "exceeds the context window",
    "maximum context length",
    "exceeds the maximum number of tokens allowed",
];

fn is_overflow(code: Option<&str>, message: &str) -> bool {
    let message = message.to_lowercase();
    code.is_some_and(|c| OVERFLOW_CODES.contains(&c)) || OVERFLOW_WORDS.iter().any(|w| message.contains(w))
}

/// The refusal of a prompt that is larger than the window.
pub(crate) fn overflow(wire: Wire, prompt: u64, window: u64) -> ModelError {
    let (code, message) = match wire {
        Wire::AnthropicMessages => ("invalid_request_error", format!("prompt is too long: {prompt} tokens > {window} maximum")),
        Wire::OpenaiResponses => (
            "context_length_exceeded",
            "Your input exceeds the context window of this model. Please adjust your input and try again.".to_string(),
        ),
        Wire::OpenaiChat => (
            "context_length_exceeded",
            format!("This model's maximum context length is {window} tokens; the messages have {prompt} tokens."),
        ),
    };
    ModelError { kind: ErrorKind::Overflow, status: 400, code: Some(code.into()), message }
}

/// A refusal as a client understands it once it has gone over the wire.
pub(crate) fn refusal(wire: Wire, status: u16, code: Option<String>, message: String) -> ModelError {
    let kind = match status {
        429 => ErrorKind::RateLimited,
        500.. => ErrorKind::Server,
        _ => ErrorKind::Invalid,
    };
    let (status, body) = encode(wire, &ModelError { kind, status, code, message });
    decode(wire, status, &body)
}

/// Status and code of a kind where the error itself names none.
fn standard(wire: Wire, kind: ErrorKind) -> (u16, &'static str) {
    let anthropic = wire == Wire::AnthropicMessages;
    match kind {
        ErrorKind::Overflow if anthropic => (400, "invalid_request_error"),
        ErrorKind::Overflow => (400, "context_length_exceeded"),
        ErrorKind::Invalid => (400, "invalid_request_error"),
        ErrorKind::RateLimited if anthropic => (429, "rate_limit_error"),
        ErrorKind::RateLimited => (429, "rate_limit_exceeded"),
        ErrorKind::Server | ErrorKind::Stream if anthropic => (500, "api_error"),
        ErrorKind::Server | ErrorKind::Stream => (500, "server_error"),
        ErrorKind::Ended => (GONE, ENDED),
    }
}

/// Writes an error answer.
pub(crate) fn encode(wire: Wire, e: &ModelError) -> (u16, Vec<u8>) {
    let (status, code) = standard(wire, e.kind);
    let status = if e.status >= 400 && e.kind != ErrorKind::Ended { e.status } else { status };
    let code = e.code.as_deref().filter(|_| e.kind != ErrorKind::Ended).unwrap_or(code);
    let kind = if status == 429 || status >= 500 { code } else { "invalid_request_error" };
    let body = match wire {
        // Refusals of compactions and threads have a code of their own beside the type (facts/aider-and-anthropic-sdk.md §3).
        Wire::AnthropicMessages if DETAILED.iter().any(|d| code.starts_with(d)) => {
            let error = serde_json::json!({"type": "invalid_request_error", "message": e.message, "details": {"error_code": code}});
            serde_json::json!({"type": "error", "error": error})
        }
        Wire::AnthropicMessages => serde_json::json!({"type": "error", "error": {"type": code, "message": e.message}}),
        _ => serde_json::json!({"error": {"message": e.message, "type": kind, "param": null, "code": code}}),
    };
    (status, body.to_string().into_bytes())
}

#[derive(Deserialize)]
struct Body {
    error: Detail,
}

/// What the detailed codes of Anthropic begin with.
const DETAILED: [&str; 2] = ["compaction_", "thread_"];

#[derive(Deserialize)]
struct Extra {
    error_code: Option<String>,
}

#[derive(Deserialize)]
struct Detail {
    details: Option<Extra>,
    #[serde(rename = "type")]
    kind: Option<String>,
    code: Option<String>,
    #[serde(default)]
    message: String,
}

/// Reads an error answer; a body of another shape becomes the message.
pub(crate) fn decode(wire: Wire, status: u16, bytes: &[u8]) -> ModelError {
    let detail = serde_json::from_slice::<Body>(bytes).map(|b| b.error);
    let (code, message) = match detail {
        Ok(d) => {
            (if wire == Wire::AnthropicMessages { d.details.and_then(|x| x.error_code).or(d.kind) } else { d.code.or(d.kind) }, d.message)
        }
        Err(_) => (None, String::from_utf8_lossy(bytes).into_owned()),
    };
    if code.as_deref() == Some(ENDED) {
        return ModelError { message, ..ModelError::ended() };
    }
    let kind = match status {
        // Anthropic's 32 MB limit: nothing but a smaller prompt helps.
        413 => ErrorKind::Overflow,
        429 => ErrorKind::RateLimited,
        400..=499 if is_overflow(code.as_deref(), &message) => ErrorKind::Overflow,
        400..=499 => ErrorKind::Invalid,
        _ => ErrorKind::Server,
    };
    ModelError { kind, status, code, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIRES: [Wire; 3] = [Wire::AnthropicMessages, Wire::OpenaiResponses, Wire::OpenaiChat];

    #[test]
    fn an_overflow_survives_every_wire() {
        for wire in WIRES {
            let e = overflow(wire, 208_310, 200_000);
            let (status, body) = encode(wire, &e);
            assert_eq!(decode(wire, status, &body), e);
        }
    }

    #[test]
    fn other_errors_survive_every_wire() {
        for wire in WIRES {
            for kind in [ErrorKind::RateLimited, ErrorKind::Invalid, ErrorKind::Server, ErrorKind::Ended] {
                let (status, code) = standard(wire, kind);
                let e = match kind {
                    ErrorKind::Ended => ModelError::ended(),
                    _ => ModelError { kind, status, code: Some(code.into()), message: "no \"luck\"".into() },
                };
                let (status, body) = encode(wire, &e);
                assert_eq!(decode(wire, status, &body), e);
            }
        }
    }

    #[test]
    fn a_refusal_is_an_overflow_only_if_its_words_say_so() {
        for wire in WIRES {
            let said = |m: &str| refusal(wire, 400, None, m.into()).kind;
            assert_eq!(said("prompt is too long: 3 tokens > 2 maximum"), ErrorKind::Overflow);
            assert_eq!(said("the request is bigger than this model takes"), ErrorKind::Invalid);
            assert_eq!(refusal(wire, 529, None, "busy".into()).kind, ErrorKind::Server);
            assert_eq!(refusal(wire, 429, None, "slow down".into()).kind, ErrorKind::RateLimited);
        }
    }

    #[test]
    fn recorded_overflow_texts_are_recognised() {
        let anthropic = |m: &str| format!(r#"{{"type":"error","error":{{"type":"invalid_request_error","message":"{m}"}}}}"#);
        let seen = [
            anthropic("prompt is too long: 208310 tokens > 200000 maximum"),
            anthropic("input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000, decrease one"),
            r#"{"message":"Input is too long for requested model."}"#.to_string(),
            r#"{"error":{"type":"invalid_request_error","code":"context_length_exceeded","message":"x","param":"input"}}"#.to_string(),
        ];
        for body in seen {
            for wire in WIRES {
                let ok = decode(wire, 400, body.as_bytes()).is_overflow();
                assert!(ok || (wire == Wire::AnthropicMessages && body.contains("param")), "{body}");
            }
        }
        assert!(decode(Wire::AnthropicMessages, 413, b"too large").is_overflow());
        assert_eq!(decode(Wire::OpenaiChat, 400, b"tools: unknown field").kind, ErrorKind::Invalid);
        assert_eq!(decode(Wire::AnthropicMessages, 529, b"").kind, ErrorKind::Server);
    }
}
