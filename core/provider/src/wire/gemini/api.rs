//! Google's API: errors and the list of models.

use ctxbench_core::request::ErrorKind;
use serde_json::json;

use super::path::{self, MODELS};
use crate::wire::format::ApiFormat;

pub(in crate::wire) static GOOGLE: ApiFormat = ApiFormat {
    name: "gemini",
    address: "https://generativelanguage.googleapis.com",
    // `@google/genai` and Gemini CLI read this variable.
    base_urls: &[("GOOGLE_GEMINI_BASE_URL", "")],
    request_id_header: "x-request-id",
    // The SDKs list models under another version.
    models_paths: &[MODELS, "/v1/models"],
    matches_client: |path, header| {
        header("x-goog-api-key") || path.starts_with("/v1beta/") || path::read(path).is_some()
    },

    error_code: |kind| match kind {
        ErrorKind::RateLimited => "RESOURCE_EXHAUSTED",
        ErrorKind::Server | ErrorKind::Stream => "INTERNAL",
        ErrorKind::Overflow | ErrorKind::Invalid | ErrorKind::SessionEnd => "INVALID_ARGUMENT",
    },
    status_codes: &[
        (401, "UNAUTHENTICATED"),
        (403, "PERMISSION_DENIED"),
        (404, "NOT_FOUND"),
        (499, "CANCELLED"),
        (503, "UNAVAILABLE"),
        (504, "DEADLINE_EXCEEDED"),
        (529, "UNAVAILABLE"),
    ],
    error_body: |status, code, message| json!({"error": {"code": status, "message": message, "status": code}}),
    // Clients read the delay from the error instead of a header.
    add_retry_delay: |body, seconds| {
        body["error"]["details"] = json!([{
            "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": format!("{seconds}s"),
        }]);
    },
    too_large: |limit| (400, format!("Request payload size exceeds the limit: {limit} bytes.")),
    code_of: |error| error["status"].as_str(),
    unknown_model: |name| {
        let message = format!(
            "models/{name} is not found for API version v1beta, or is not supported for \
             generateContent."
        );
        ("NOT_FOUND", message)
    },
    // The message has no ids, which are optional for calls.
    unpaired_message: |call, _id| {
        let message = if call {
            "Please ensure that the number of function response parts is equal to the number of \
             function call parts of the function call turn."
        } else {
            "Please ensure that function response turn comes immediately after a function call turn."
        };
        message.to_string()
    },

    model: |m, window| {
        json!({
            "name": format!("models/{}", m.name), "displayName": m.name,
            "inputTokenLimit": window.or(m.input_limit).unwrap_or(m.window),
            "outputTokenLimit": m.max_output,
            "supportedGenerationMethods": ["generateContent", "countTokens"],
        })
    },
    model_list: |all| json!({"models": all}),
};
