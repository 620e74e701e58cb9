//! Speakers, which decide the replies of the model.

use axum::http::HeaderMap;
use ctxbench_core::prelude::*;
use ctxbench_core::request::Tools;
use ctxbench_provider::{Prompt, Wire};
use serde_json::value::RawValue;

/// A request for a reply.
#[derive(Debug)]
pub struct Arrived {
    pub id: u64,
    pub wire: Wire,
    pub path: String,
    pub headers: HeaderMap,
    /// The body as it came; empty where it could not be read.
    pub body: Vec<u8>,
    /// Prompt for the model; `None` = the body was not understood.
    pub prompt: Option<Prompt>,
    /// Whether the request allows thinking.
    pub thinking: bool,
    /// It came to the address at which nothing but a compaction is asked for.
    pub compact: bool,
}

impl Arrived {
    /// Returns whether it asks the provider for a compaction.
    pub fn wants_compaction(&self) -> bool {
        self.compact || self.prompt.as_ref().is_some_and(Prompt::asks_for_compaction)
    }
}

pub enum ModelAnswer {
    Parts(Vec<Part>),
    /// A summary of this prompt: that of the request, perhaps with its quotes marked.
    Summary(Prompt),
}

/// Decides the replies of the model. Requests come one at a time.
pub trait Speaker: Send {
    /// Returns the answer to a request with this prompt; an error is sent to the client.
    fn answer(&mut self, request: &Arrived, prompt: &Prompt) -> Result<ModelAnswer, ModelError>;

    /// Confirms that the last answer was delivered: the provider neither refused the request nor
    /// stopped after a compaction.
    fn mark_delivered(&mut self) {}

    /// A request for a reply is over. Others may have been answered since it was.
    fn saw(&mut self, _seen: RequestOutcome) {}
}

#[derive(Debug)]
pub struct RequestOutcome {
    pub request: Arrived,
    pub http: u16,
    /// Whether a deliberate fault refused it or broke it off; the speaker was not asked, or its
    /// answer was lost.
    pub on_purpose: bool,
    /// Reply, or why there is none.
    pub outcome: Result<Reply, ModelError>,
}

/// Tool definitions without the white space between them, in which a provider sees nothing; `None`
/// for an empty list.
pub(super) fn compact(tools: Arc<Tools>) -> Option<Arc<Tools>> {
    let text = tools.json.get();
    let (mut quoted, mut escaped, mut out) = (false, false, String::new());
    let mut from = 0;
    for (i, b) in text.bytes().enumerate() {
        match (quoted, escaped, b) {
            (true, true, _) => escaped = false,
            (true, false, b'\\') => escaped = true,
            (_, _, b'"') => quoted = !quoted,
            (false, _, b' ' | b'\n' | b'\r' | b'\t') => {
                out.push_str(&text[from..i]);
                from = i + 1;
            }
            _ => {}
        }
    }
    let tools = if from == 0 {
        tools
    } else {
        out.push_str(&text[from..]);
        Tools::from_json(RawValue::from_string(out).ok()?)
    };
    (tools.json.get() != "[]").then_some(tools)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_between_tools_is_nothing() {
        let of = |t: &str| {
            let raw = RawValue::from_string(t.to_string()).unwrap();
            compact(Tools::from_json(raw)).map(|r| r.json.get().to_string())
        };
        assert_eq!(of("[]"), None);
        assert_eq!(of("[ \n]"), None);
        let plain = r#"[{"name":"a b","description":"say \" \\"},1]"#;
        assert_eq!(of(plain).as_deref(), Some(plain));
        let wide = "[ {\n \"name\": \"a b\",\t\"description\":\"say \\\" \\\\\" } , 1 ]";
        assert_eq!(of(wide).as_deref(), Some(plain));
    }
}
