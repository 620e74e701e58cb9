//! Classification of failures as in pi (docs/sources/pi.md §5, §6), which reads the provider's
//! messages.

use ctxbench_core::request::{ErrorKind, ModelError};

/// Provider messages that mean that the prompt is too large. If an entry has two parts, both must
/// appear in this order.
const TOO_LARGE: &[(&str, &str)] = &[
    ("prompt is too long", ""),
    ("prompt too long", ""),
    ("prompt exceeds max length", ""),
    ("request_too_large", ""),
    ("input is too long for requested model", ""),
    ("exceeds the context window", ""),
    ("exceeds", "maximum context length"),
    ("context window exceeded", ""),
    ("input token count", "exceeds the maximum"),
    ("maximum prompt length is ", ""),
    ("reduce the length of the messages", ""),
    ("maximum context length is ", " tokens"),
    ("maximum allowed input length of ", ""),
    ("is longer than the model", "context length"),
    ("exceeds the limit of ", ""),
    ("exceeds the available context size", ""),
    ("greater than the context length", ""),
    ("context window exceeds limit", ""),
    ("exceeded model token limit", ""),
    ("too large for model with ", "maximum context length"),
    ("but the configured context size is ", ""),
    ("model_context_window_exceeded", ""),
    ("range of input length should be", ""),
    ("context_length_exceeded", ""),
    ("context length exceeded", ""),
    ("too many tokens", ""),
    ("token limit exceeded", ""),
];

/// Texts that rule out a prompt that is too large, even if the message also matches `TOO_LARGE`.
const NOT_TOO_LARGE: &[&str] = &["rate limit", "too many requests"];

/// Texts of failures that a retry cannot resolve.
const LASTING: &[&str] = &[
    "insufficient_quota",
    "quota exceeded",
    "out of budget",
    "billing",
    "usage limit reached",
    "available balance",
];

/// Texts of failures that a retry may resolve.
const PASSING: &[&str] = &[
    "overloaded",
    "currently experiencing high demand",
    "model is at capacity",
    "rate limit",
    "rate_limit",
    "too many requests",
    "unavailable",
    "server error",
    "server_error",
    "internal error",
    "provider returned error",
    "network error",
    "connection error",
    "connection refused",
    "connection lost",
    "fetch failed",
    "socket hang up",
    "timed out",
    "timeout",
    "terminated",
    "ended without",
    "stream ended before",
    "stream disconnected before completion",
];

/// HTTP statuses of failures that a retry may resolve.
const PASSING_STATUS: &[u16] = &[429, 500, 502, 503, 504, 520, 524];

/// Returns true if the prompt was too large for the provider.
pub(super) fn is_overflow(e: &ModelError) -> bool {
    let text = e.message.to_lowercase();
    if NOT_TOO_LARGE.iter().any(|w| text.contains(w)) {
        return false;
    }
    let says = |(first, then): &(&str, &str)| {
        text.split_once(first).is_some_and(|(_, rest)| rest.contains(then))
    };
    e.status == 413 || e.is_overflow() || TOO_LARGE.iter().any(says)
}

/// Returns true if a retry of the same request may succeed.
pub(super) fn is_retryable(e: &ModelError) -> bool {
    let text = e.message.to_lowercase();
    if is_overflow(e) || LASTING.iter().any(|w| text.contains(w)) {
        return false;
    }
    e.kind == ErrorKind::Stream
        || PASSING_STATUS.contains(&e.status)
        || PASSING.iter().any(|w| text.contains(w))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(status: u16, message: &str) -> ModelError {
        ModelError { kind: ErrorKind::Invalid, status, code: None, message: message.into() }
    }

    #[test]
    fn refusals_for_length_are_known_by_their_words() {
        for (status, text) in [
            (400, "This model's maximum context length is 20000 tokens. However, …"),
            (400, "prompt is too long: 213462 tokens > 200000 maximum"),
            (400, "The input token count (1196265) exceeds the maximum number of tokens"),
            (413, "anything"),
            (400, "Requested token count exceeds the model's maximum context length of 9 tokens"),
        ] {
            assert!(is_overflow(&error(status, text)), "{text}");
            assert!(!is_retryable(&error(status, text)), "{text}");
        }
        assert!(!is_overflow(&error(429, "Too many tokens, rate limit reached")));
        assert!(!is_overflow(&error(400, "bad request")));
    }

    #[test]
    fn some_failures_pass() {
        assert!(is_retryable(&error(500, "mock internal error")));
        assert!(is_retryable(&error(529, "Overloaded")));
        assert!(is_retryable(&error(0, "fetch failed")));
        assert!(!is_retryable(&error(429, "insufficient_quota")));
        assert!(!is_retryable(&error(400, "bad request")));
        assert!(!is_retryable(&error(501, "not implemented")));
    }
}
