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
    fn errors_survive_every_wire() {
        for wire in WIRES {
            let api = wire.api;
            let of = |kind| {
                let (code, message) = (Some((api.error_code)(kind).into()), "no \"luck\"".into());
                ModelError { kind, status: standard_status(kind), code, message }
            };
            let overflow = (wire.overflow)(208_310, 200_000);
            assert!(overflow.is_overflow(), "{wire:?}");
            let others = [ErrorKind::RateLimited, ErrorKind::Invalid, ErrorKind::Server].map(of);
            for e in others.into_iter().chain([overflow, ModelError::ended()]) {
                let (status, body) = api.encode_error(&e);
                assert_eq!(api.decode_error(status, &body), e);
            }
        }
    }

    #[test]
    fn a_refusal_is_an_overflow_only_if_its_words_say_so() {
        use ErrorKind::{Invalid, Overflow, RateLimited, Server};
        for api in apis() {
            for (status, message, kind) in [
                (400, "prompt is too long: 208310 tokens > 200000 maximum", Overflow),
                (
                    400,
                    "input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000, \
                     decrease one",
                    Overflow,
                ),
                (400, "the request is bigger than this model takes", Invalid),
                (400, "tools: unknown field", Invalid),
                (413, "too large", Overflow),
                (429, "slow down", RateLimited),
                (529, "busy", Server),
            ] {
                assert_eq!(
                    api.refusal(status, None, message.into()).kind,
                    kind,
                    "{api:?} {message}"
                );
                assert_eq!(api.decode_error(status, message.as_bytes()).kind, kind, "{message}");
            }
            let bedrock = br#"{"message":"Input is too long for requested model."}"#;
            assert!(api.decode_error(400, bedrock).is_overflow(), "{api:?}");
        }
        let by_code = br#"{"error":{"type":"invalid_request_error","code":"context_length_exceeded","message":"x","param":"input"}}"#;
        assert!(find("openai-chat").unwrap().api.decode_error(400, by_code).is_overflow());
    }
}
