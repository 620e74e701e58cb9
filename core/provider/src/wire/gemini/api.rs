//! Google's API: errors and the list of models.

use ctxbench_core::model::Model;
use ctxbench_core::request::ErrorKind;
use serde_json::{Value, json};

use super::path::{self, MODELS};
use crate::wire::ApiFormat;

pub(super) struct Google;

impl ApiFormat for Google {
    fn name(&self) -> &'static str {
        "gemini"
    }
    fn matches_client(&self, path: &str, header: &dyn Fn(&str) -> bool) -> bool {
        header("x-goog-api-key") || path.starts_with("/v1beta/") || path::read(path).is_some()
    }
    fn address(&self) -> Option<&'static str> {
        Some("https://generativelanguage.googleapis.com")
    }
    /// Returns the variable that `@google/genai` and Gemini CLI read.
    fn base_urls(&self) -> &'static [(&'static str, &'static str)] {
        &[("GOOGLE_GEMINI_BASE_URL", "")]
    }

    fn error_code(&self, kind: ErrorKind) -> &'static str {
        match kind {
            ErrorKind::RateLimited => "RESOURCE_EXHAUSTED",
            ErrorKind::Server | ErrorKind::Stream => "INTERNAL",
            ErrorKind::Overflow | ErrorKind::Invalid | ErrorKind::SessionEnd => "INVALID_ARGUMENT",
        }
    }
    fn status_code(&self, status: u16) -> Option<&'static str> {
        match status {
            401 => Some("UNAUTHENTICATED"),
            403 => Some("PERMISSION_DENIED"),
            404 => Some("NOT_FOUND"),
            499 => Some("CANCELLED"),
            503 | 529 => Some("UNAVAILABLE"),
            504 => Some("DEADLINE_EXCEEDED"),
            _ => None,
        }
    }
    fn error_body(&self, status: u16, code: &str, message: &str) -> Value {
        json!({"error": {"code": status, "message": message, "status": code}})
    }
    fn code_of(&self, error: &Value) -> Option<String> {
        error["status"].as_str().map(str::to_string)
    }
    /// Clients read the delay from the error instead of a header.
    fn add_retry_delay(&self, body: &mut Value, seconds: u64) {
        body["error"]["details"] = json!([{
            "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": format!("{seconds}s"),
        }]);
    }
    fn too_large(&self, limit: usize) -> (u16, String) {
        (400, format!("Request payload size exceeds the limit: {limit} bytes."))
    }
    fn unknown_model(&self, name: &str) -> (&'static str, String) {
        let message = format!(
            "models/{name} is not found for API version v1beta, or is not supported for \
             generateContent."
        );
        ("NOT_FOUND", message)
    }
    /// The message has no ids, which are optional for calls.
    fn unpaired_message(&self, call: bool, _id: &str) -> String {
        if call {
            return "Please ensure that the number of function response parts is equal to the \
                    number of function call parts of the function call turn."
                .to_string();
        }
        "Please ensure that function response turn comes immediately after a function call turn."
            .to_string()
    }

    /// The SDKs list models under another version.
    fn models_paths(&self) -> &'static [&'static str] {
        &[MODELS, "/v1/models"]
    }
    fn model(&self, m: &Model, window: Option<u64>) -> Value {
        json!({
            "name": format!("models/{}", m.name), "displayName": m.name,
            "inputTokenLimit": window.or(m.input_limit).unwrap_or(m.window),
            "outputTokenLimit": m.max_output,
            "supportedGenerationMethods": ["generateContent", "countTokens", "createCachedContent"],
        })
    }
    fn model_list(&self, all: Vec<Value>) -> Value {
        json!({"models": all})
    }
}
