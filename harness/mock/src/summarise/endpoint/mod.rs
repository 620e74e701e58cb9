//! Summaries by a real model at an OpenAI- or Anthropic-compatible address, recorded once and
//! replayed without a network.
//!
//! The key of a request is the hash of everything that determines its answer (model, messages,
//! output limit). The address, the wire and the order of the runs do not matter: the same cassette
//! gives the same bytes. The simulated provider bills the run. The counters of the real provider
//! are only stored in the cassette.

mod address;
mod cassette;
#[cfg(test)]
mod tests;
mod wire;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ctxbench_provider::Prompt;
use ctxbench_util::cut::cut;
use hyper::StatusCode;

use super::{SetUpError, Summary, SummaryJob, Unwritten};
use ctxbench_os::post::{AnswerLimits, post};
use ctxbench_os::redact::without_secrets;
use ctxbench_os::server_url::is_loopback;

pub use address::Address;
pub use cassette::Cassette;

/// Environment variable with the API key. No other source is read, and the key is only sent in a
/// header.
pub const KEY_VARIABLE: &str = "CTXBENCH_SUMMARIZER_KEY";

/// API key. Its debug form does not contain the key.
#[derive(Clone)]
pub struct Key(String);

impl Key {
    pub fn from_environment() -> Option<Key> {
        std::env::var(KEY_VARIABLE)
            .ok()
            .map(|k| k.trim().to_string())
            .filter(|k| !k.is_empty())
            .map(Key)
    }

    #[cfg(test)]
    pub(super) fn new(text: &str) -> Key {
        Key(text.to_string())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[key]")
    }
}

#[derive(Debug)]
pub struct Endpoint {
    address: Address,
    key: Option<Key>,
    cassette: Arc<Cassette>,
}

/// Endpoints with the same model and the same cassette give the same summaries.
impl PartialEq for Endpoint {
    fn eq(&self, o: &Self) -> bool {
        self.name() == o.name() && Arc::ptr_eq(&self.cassette, &o.cassette)
    }
}

impl Endpoint {
    /// Creates an endpoint. If the cassette is offline, all answers come from it.
    pub fn new(
        address: Address,
        key: Option<Key>,
        cassette: Arc<Cassette>,
    ) -> Result<Self, SetUpError> {
        if key.as_ref().is_some_and(|k| !k.0.bytes().all(|b| (0x21..=0x7e).contains(&b))) {
            return Err(SetUpError(format!(
                "the key in {KEY_VARIABLE} holds characters that cannot stand in a header; is \
                 there a line break in it?"
            )));
        }
        if key.is_some() && !cassette.offline && !address.server.is_private() {
            return Err(SetUpError(format!(
                "{KEY_VARIABLE} is set, and {} is reached over http from outside this machine; a \
                 key travels over https only",
                address.server.host()
            )));
        }
        Ok(Endpoint { address, key, cassette })
    }

    /// Returns the name for reports: the model without the address, which may change while the
    /// answers stay the same.
    pub fn name(&self) -> String {
        self.address.model.as_ref().map_or("endpoint".to_string(), |m| format!("endpoint:{m}"))
    }

    /// Returns the recorded answer, or a new one, which is recorded.
    pub(super) fn write(&self, job: &SummaryJob<'_>) -> Result<Summary, Unwritten> {
        self.answer(job.prompt).map_err(|why| Unwritten(format!("no summary for {why}")))
    }

    /// Returns the recorded answer to a prompt, or a new one, which is recorded. An error names the
    /// request.
    pub fn answer(&self, prompt: &Prompt) -> Result<Summary, String> {
        let question = wire::Question::new(prompt, self.address.model.as_deref());
        let hash = question.hash();
        let fail = |why| format!("request {hash}: {why}");
        let entry = self.cassette.answer(&hash, || self.ask(&question, &hash)).map_err(fail)?;
        Ok(Summary { stop: wire::stop(&entry.stop), text: entry.reply })
    }

    /// Returns whether the answer to a prompt is recorded.
    pub fn has_answer(&self, prompt: &Prompt) -> bool {
        self.cassette.has(&wire::Question::new(prompt, self.address.model.as_deref()).hash())
    }

    /// Returns whether the server is on this machine.
    pub fn is_local(&self) -> bool {
        is_loopback(self.address.server.host())
    }

    /// Sends the request over the network. Secrets are removed from everything that the server
    /// returns.
    fn ask(
        &self,
        question: &wire::Question,
        hash: &str,
    ) -> Result<cassette::RecordedAnswer, String> {
        let key = self.key.as_ref().map(|k| k.0.as_str());
        let clean = |text: &str| without_secrets(text, key);
        let headers = wire::headers(self.address.dialect, key);
        let body = question.body(self.address.dialect, self.address.server.host());
        let (status, answer) =
            post(&self.address.url, &headers, body, &LIMITS).map_err(|e| clean(&e))?;
        let text = String::from_utf8_lossy(&answer);
        if status != StatusCode::OK {
            let words = cut(&clean(&text), MAX_REFUSAL_CHARS);
            return Err(format!(
                "the endpoint answered {}: {}",
                status.as_u16(),
                words.split_whitespace().collect::<Vec<_>>().join(" ")
            ));
        }
        let said = wire::read(self.address.dialect, &text)?;
        Ok(cassette::RecordedAnswer {
            request: hash.to_string(),
            model: question.model.clone(),
            max_tokens: question.max_tokens,
            reply: clean(&said.text),
            stop: clean(&said.stop),
            usage: serde_json::from_str(&clean(&said.usage.to_string())).unwrap_or_default(),
        })
    }
}

/// A summary of a long conversation takes minutes. After this time, the server counts as
/// unreachable.
const LIMITS: AnswerLimits = AnswerLimits { timeout: Duration::from_secs(600), bytes: 16 << 20 };

/// Maximum length of a reported refusal, characters.
const MAX_REFUSAL_CHARS: usize = 300;
