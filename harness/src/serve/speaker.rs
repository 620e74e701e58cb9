//! Who decides what the model says.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::http::HeaderMap;
use ctxbench_core::content::Part;
use ctxbench_core::request::{ModelError, Reply, Tools};
use ctxbench_core::session::Millis;
use ctxbench_provider::Prompt;
use ctxbench_provider::wire::Wire;
use serde_json::value::RawValue;

use super::asked;

/// A request that has arrived and was understood.
pub struct Arrived<'a> {
    /// Which request it is: as in what is [`Seen`] of it.
    pub id: u64,
    /// Whose format it has.
    pub wire: Wire,
    /// Where it was posted.
    pub path: &'a str,
    /// Its headers.
    pub headers: &'a HeaderMap,
    /// Its body as it came.
    pub body: &'a [u8],
    /// What the model is shown.
    pub prompt: &'a Prompt,
    /// Whether the request allows thinking.
    pub thinking: bool,
}

impl Arrived<'_> {
    /// The names of the tools that it offers.
    pub fn tools(&self) -> Vec<String> {
        asked::tools(self.wire, self.prompt)
    }

    /// Whether it asks the provider itself for a compaction.
    pub fn wants_compaction(&self) -> bool {
        self.prompt.asks_for_compaction()
    }
}

/// What the model says.
pub enum Said {
    /// These contents.
    Parts(Vec<Part>),
    /// A summary of what the request shows.
    Summary,
}

/// Decides what the model says. Requests come one at a time.
pub trait Speaker: Send {
    /// The answer to a request; an error is told to the client.
    fn say(&mut self, arrived: &Arrived<'_>) -> Result<Said, ModelError>;

    /// What was said last has been given: the provider neither refused the request nor stopped
    /// after a compaction.
    fn given(&mut self) {}

    /// Whether it wants to see what came of each request.
    fn looks(&self) -> bool {
        false
    }

    /// A request for a reply is over. Others may have been answered since it was.
    fn saw(&mut self, _seen: Seen) {}
}

/// A request for a reply with what came of it.
#[derive(Debug, Default)]
pub struct Seen {
    /// Which request it was.
    pub id: u64,
    /// Clock of the server, ms.
    pub at_ms: Millis,
    /// Whose format it has; `None` = nobody's.
    pub wire: Option<Wire>,
    /// Where it was posted.
    pub path: String,
    /// Headers that may be kept: see `crate::redact::headers`.
    pub headers: BTreeMap<String, String>,
    /// The body as it came; empty where it could not be read.
    pub body: Vec<u8>,
    /// What the model was shown; `None` = the body was not understood.
    pub prompt: Option<Prompt>,
    /// HTTP status.
    pub http: u16,
    /// It was refused or broken off by a fault of the server; the speaker was not asked, or what it
    /// said was lost.
    pub on_purpose: bool,
    /// What was said, or why nothing was.
    pub outcome: Option<Result<Reply, ModelError>>,
    /// It came to the address at which nothing but a compaction is asked for.
    pub compact: bool,
}

impl Seen {
    /// Whether it asked the provider itself for a compaction: as in what had [`Arrived`].
    pub fn wants_compaction(&self) -> bool {
        self.compact || self.prompt.as_ref().is_some_and(Prompt::asks_for_compaction)
    }
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
        Tools::of(RawValue::from_string(out).ok()?)
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
            compact(Tools::of(raw)).map(|r| r.json.get().to_string())
        };
        assert_eq!(of("[]"), None);
        assert_eq!(of("[ \n]"), None);
        let plain = r#"[{"name":"a b","description":"say \" \\"},1]"#;
        assert_eq!(of(plain).as_deref(), Some(plain));
        let wide = "[ {\n \"name\": \"a b\",\t\"description\":\"say \\\" \\\\\" } , 1 ]";
        assert_eq!(of(wide).as_deref(), Some(plain));
    }
}
