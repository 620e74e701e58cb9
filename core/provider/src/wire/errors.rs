//! Errors in each provider's format, and detection of overflows.

use ctxbench_core::request::{ErrorKind, ModelError};
use serde_json::Value;

use super::format::ApiFormat;

/// The mock's code for the end of a scripted session; no provider uses it.
const ENDED: &str = "ctxbench_session_ended";
const HTTP_GONE: u16 = 410;

/// Codes for a prompt that is too large.
const OVERFLOW_CODES: [&str; 4] = [
    "context_length_exceeded",
    "prompt_too_long",
    "request_too_large",
    "model_context_window_exceeded",
];

/// Lower-case messages for a prompt that is too large: Anthropic, Anthropic before 4.5, Bedrock, OpenAI
/// now and earlier, Gemini for tokens and for bytes.
const OVERFLOW_MESSAGES: [&str; 7] = [
    "prompt is too long",
    "exceed context limit",
    "input is too long for requested model",
    "exceeds the context window",
    "maximum context length",
    "exceeds the maximum number of tokens allowed",
    "request payload size exceeds the limit",
];

fn is_overflow(code: Option<&str>, message: &str) -> bool {
    let message = message.to_lowercase();
    code.is_some_and(|c| OVERFLOW_CODES.contains(&c))
        || OVERFLOW_MESSAGES.iter().any(|w| message.contains(w))
}

/// Returns the default status of a kind.
fn standard_status(kind: ErrorKind) -> u16 {
    match kind {
        ErrorKind::Overflow | ErrorKind::Invalid => 400,
        ErrorKind::RateLimited => 429,
        ErrorKind::Server | ErrorKind::Stream => 500,
        ErrorKind::SessionEnd => HTTP_GONE,
    }
}

impl ApiFormat {
    /// Builds a refusal with the provider's message, as a client decodes it from the wire.
    pub fn refusal(&self, status: u16, code: Option<String>, message: String) -> ModelError {
        let kind = match status {
            429 => ErrorKind::RateLimited,
            500.. => ErrorKind::Server,
            _ => ErrorKind::Invalid,
        };
        let (status, body) = self.encode_error(&ModelError { kind, status, code, message });
        self.decode_error(status, &body)
    }

    /// Encodes an error as HTTP status and body.
    pub fn encode_error(&self, e: &ModelError) -> (u16, Vec<u8>) {
        self.encode_refusal(e, None)
    }

    /// Encodes an error like `encode_error`, with the seconds until a
    /// retry.
    pub fn encode_refusal(&self, e: &ModelError, retry_after: Option<u64>) -> (u16, Vec<u8>) {
        let ended = e.kind == ErrorKind::SessionEnd;
        let status = if e.status >= 400 && !ended { e.status } else { standard_status(e.kind) };
        let code =
            if ended { ENDED } else { e.code.as_deref().unwrap_or((self.error_code)(e.kind)) };
        let mut body = (self.error_body)(status, code, &e.message);
        if let Some(seconds) = retry_after {
            (self.add_retry_delay)(&mut body, seconds);
        }
        (status, body.to_string().into_bytes())
    }

    /// Decodes an error response. A body of another format becomes the message.
    pub fn decode_error(&self, status: u16, bytes: &[u8]) -> ModelError {
        let body = serde_json::from_slice::<Value>(bytes).unwrap_or_default();
        let (code, message) = match &body["error"] {
            error @ Value::Object(_) => (
                (self.code_of)(error).map(str::to_string),
                error["message"].as_str().unwrap_or_default().to_string(),
            ),
            _ => (None, String::from_utf8_lossy(bytes).into_owned()),
        };
        if code.as_deref() == Some(ENDED) {
            return ModelError { message, ..ModelError::ended() };
        }
        let kind = match status {
            // Anthropic's 32 MB limit: requires a smaller prompt.
            413 => ErrorKind::Overflow,
            429 => ErrorKind::RateLimited,
            400..=499 if is_overflow(code.as_deref(), &message) => ErrorKind::Overflow,
            400..=499 => ErrorKind::Invalid,
            _ => ErrorKind::Server,
        };
        ModelError { kind, status, code, message }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{ALL as WIRES, apis, find};

    #[test]
    fn an_overflow_survives_every_wire() {
        for wire in WIRES {
            let e = (wire.overflow)(208_310, 200_000);
            assert!(e.is_overflow(), "{wire:?}");
            let (status, body) = wire.api.encode_error(&e);
            assert_eq!(wire.api.decode_error(status, &body), e);
        }
    }

    #[test]
    fn other_errors_survive_every_wire() {
        for api in apis() {
            for kind in [
                ErrorKind::RateLimited,
                ErrorKind::Invalid,
                ErrorKind::Server,
                ErrorKind::SessionEnd,
            ] {
                let (status, code) = (standard_status(kind), (api.error_code)(kind));
                let e = match kind {
                    ErrorKind::SessionEnd => ModelError::ended(),
                    _ => ModelError {
                        kind,
                        status,
                        code: Some(code.into()),
                        message: "no \"luck\"".into(),
                    },
                };
                let (status, body) = api.encode_error(&e);
                assert_eq!(api.decode_error(status, &body), e);
            }
        }
    }

    #[test]
    fn a_refusal_is_an_overflow_only_if_its_words_say_so() {
        for api in apis() {
            let said = |m: &str| api.refusal(400, None, m.into()).kind;
            assert_eq!(said("prompt is too long: 3 tokens > 2 maximum"), ErrorKind::Overflow);
            assert_eq!(said("the request is bigger than this model takes"), ErrorKind::Invalid);
            assert_eq!(api.refusal(529, None, "busy".into()).kind, ErrorKind::Server);
            assert_eq!(api.refusal(429, None, "slow down".into()).kind, ErrorKind::RateLimited);
        }
    }

    #[test]
    fn recorded_overflow_texts_are_recognised() {
        let anthropic = |m: &str| {
            format!(
                r#"{{"type":"error","error":{{"type":"invalid_request_error","message":"{m}"}}}}"#
            )
        };
        let seen = [
            anthropic("prompt is too long: 208310 tokens > 200000 maximum"),
            anthropic(
                "input length and `max_tokens` exceed context limit: 178959 + 64000 > \
                200000, decrease one",
            ),
            r#"{"message":"Input is too long for requested model."}"#.to_string(),
        ];
        for body in seen {
            for api in apis() {
                assert!(api.decode_error(400, body.as_bytes()).is_overflow(), "{api:?}: {body}");
            }
        }
        let (anthropic, openai) =
            (find("anthropic-messages").unwrap().api, find("openai-chat").unwrap().api);
        let by_code = r#"{"error":{"type":"invalid_request_error","code":"context_length_exceeded","message":"x","param":"input"}}"#;
        assert!(openai.decode_error(400, by_code.as_bytes()).is_overflow());
        assert!(anthropic.decode_error(413, b"too large").is_overflow());
        assert_eq!(openai.decode_error(400, b"tools: unknown field").kind, ErrorKind::Invalid);
        assert_eq!(anthropic.decode_error(529, b"").kind, ErrorKind::Server);
    }
}
