//! Lines of the file, shared by the recorder and the reader.
//!
//! A request repeats most of the previous one. A body is therefore stored as the new text between
//! the beginning and the end that it shares with an earlier body. Unpacking restores the exact
//! bytes.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

pub const VERSION: u32 = 1;

/// Line of a recording file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Line {
    /// First line of the file.
    CtxbenchRecording(Header),
    Exchange(Box<Exchange>),
    Passed(Passed),
}

/// Header, the first line of the file.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Header {
    pub version: u32,
    /// Start in RFC 3339. The times of the other lines count from here.
    pub started: String,
    /// File name of the program that was recorded, without its arguments.
    pub program: Option<String>,
    /// Whether secrets were removed, so that the recorded bodies differ from those that were sent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redacted: bool,
}

/// End of an exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExchangeEnd {
    /// The answer was complete, whatever its content.
    #[default]
    Whole,
    /// The provider or the connection broke off.
    Cut,
    /// The program closed the connection.
    Left,
    /// The provider sent no answer.
    Unreached,
}

/// Request for a reply with its outcome.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Exchange {
    pub number: u64,
    /// Arrival time of the request, ms.
    pub at_ms: u64,
    pub wire: String,
    /// Path of the request as the provider receives it.
    pub path: String,
    /// Names of the query parameters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub query: Vec<String>,
    /// Host that the request was forwarded to.
    #[serde(default)]
    pub host: String,
    /// Headers of the request; values that may be secret are `[redacted]`.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Body of the request; `None` = not text.
    pub body: Option<RequestBody>,
    /// HTTP status. 0 = no answer arrived.
    pub status: u16,
    #[serde(default)]
    pub reply_headers: BTreeMap<String, String>,
    /// Answer as received: a JSON document or events. `None` = not text.
    pub reply: Option<String>,
    /// Arrival time of the first bytes of the answer, ms.
    pub first_ms: Option<u64>,
    pub end_ms: u64,
    pub ended: ExchangeEnd,
    pub error: Option<String>,
}

/// A request that does not ask for a reply.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Passed {
    pub at_ms: u64,
    pub method: String,
    pub path: String,
    pub status: u16,
    /// Whether the request has a known purpose, such as counting tokens or listing models.
    pub known: bool,
}

/// Body of a request, stored relative to an earlier one.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestBody {
    /// Length of the whole body, bytes.
    pub bytes: usize,
    /// Number of the exchange that shares the beginning and end of its body.
    pub like: Option<u64>,
    /// Length of the shared beginning, bytes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub head: usize,
    /// Length of the shared end, bytes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tail: usize,
    /// Text between the shared beginning and end.
    pub text: String,
}

fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// Number of earlier bodies that a body may refer to.
const MAX_REFERENCES: usize = 16;

/// Maximum length of a chain of references. The next body is stored whole, so that a damaged line
/// affects only a limited number of others.
const MAX_CHAIN: u32 = 64;

/// Newest bodies. The writer and the reader keep the same ones.
#[derive(Debug, Default)]
pub struct Bodies(VecDeque<EarlierBody>);

#[derive(Debug)]
struct EarlierBody {
    number: u64,
    text: Arc<str>,
    chain: u32,
}

impl Bodies {
    pub fn pack(&mut self, number: u64, text: &str) -> RequestBody {
        let usable = self.0.iter().filter(|h| h.chain < MAX_CHAIN);
        let shared = usable.map(|held| (shared(&held.text, text), held));
        let best = shared.max_by_key(|((head, tail), held)| (head + tail, held.number));
        let whole =
            RequestBody { bytes: text.len(), text: text.to_string(), ..RequestBody::default() };
        // A reference also has a cost.
        let (body, chain) = match best.filter(|((head, tail), _)| head + tail > 100) {
            Some(((head, tail), held)) => {
                let text = text[head..text.len() - tail].to_string();
                (RequestBody { like: Some(held.number), head, tail, text, ..whole }, held.chain + 1)
            }
            None => (whole, 0),
        };
        self.hold(number, text.into(), chain);
        body
    }

    /// Restores a body. The error describes the problem of the line.
    pub fn unpack(&mut self, number: u64, body: &RequestBody) -> Result<Arc<str>, String> {
        let (text, chain): (Arc<str>, u32) = match body.like {
            None => (Arc::from(body.text.as_str()), 0),
            Some(like) => {
                let held = self.0.iter().rev().find(|h| h.number == like).ok_or_else(|| {
                    format!("its body is like that of exchange {like}, which cannot be read")
                })?;
                let from = held.text.len().checked_sub(body.tail).unwrap_or(usize::MAX);
                let parts = (held.text.get(..body.head), held.text.get(from..));
                let (Some(head), Some(tail)) = parts else {
                    return Err(format!("its body shares more with exchange {like} than is there"));
                };
                (Arc::from([head, &body.text, tail].concat()), held.chain + 1)
            }
        };
        if text.len() != body.bytes {
            let (found, told) = (text.len(), body.bytes);
            return Err(format!("its body has {found} bytes, and {told} were sent"));
        }
        self.hold(number, text.clone(), chain);
        Ok(text)
    }

    fn hold(&mut self, number: u64, text: Arc<str>, chain: u32) {
        if self.0.len() == MAX_REFERENCES {
            self.0.pop_front();
        }
        self.0.push_back(EarlierBody { number, text, chain });
    }
}

/// Returns the number of bytes that two texts share at their beginnings and, after these, at their
/// ends.
fn shared(a: &str, b: &str) -> (usize, usize) {
    let head = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    let head = a.floor_char_boundary(head).min(b.floor_char_boundary(head));
    let rest = a.as_bytes()[head..].iter().rev().zip(b.as_bytes()[head..].iter().rev());
    let mut tail = rest.take_while(|(a, b)| a == b).count();
    while !a.is_char_boundary(a.len() - tail) || !b.is_char_boundary(b.len() - tail) {
        tail -= 1;
    }
    (head, tail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_body_is_what_is_new_in_it() {
        let mut written = Bodies::default();
        let items = |n: usize| {
            let all: Vec<String> = (0..n).map(|i| format!("\"message number {i}\"")).collect();
            format!("{{\"system\":\"é{}\",\"m\":[{}],\"x\":1}}", "s".repeat(200), all.join(","))
        };
        assert_eq!(written.pack(1, &items(3)).like, None);
        let second = written.pack(2, &items(4));
        assert_eq!((second.like, second.text.as_str()), (Some(1), ",\"message number 3\""));
        let small = written.pack(3, "{}");
        assert_eq!((small.like, small.text.as_str()), (None, "{}"));
    }

    #[test]
    fn a_chain_of_bodies_ends() {
        let (mut written, mut read) = (Bodies::default(), Bodies::default());
        let texts: Vec<String> = (1..200).map(|n| "word ".repeat(100 + n)).collect();
        let mut whole = 0;
        for (number, text) in (1..).zip(&texts) {
            let body = written.pack(number, text);
            whole += usize::from(body.like.is_none());
            assert_eq!(&*read.unpack(number, &body).unwrap(), text);
        }
        assert_eq!(whole, 3, "1, and when the newest 16 are at their end: 81, 161");
    }

    #[test]
    fn what_does_not_fit_is_told() {
        let of = |like, head, tail, bytes| {
            let mut read = Bodies::default();
            read.unpack(
                1,
                &RequestBody { bytes: 5, text: "aäbc".into(), ..RequestBody::default() },
            )
            .unwrap();
            let text = "x".to_string();
            read.unpack(2, &RequestBody { bytes, like, head, tail, text }).unwrap_err()
        };
        assert!(of(Some(7), 1, 1, 3).contains("exchange 7"), "an unknown one");
        assert!(of(Some(1), 2, 0, 3).contains("more with"), "within a character");
        assert!(of(Some(1), 1, 99, 3).contains("more with"), "longer than it is");
        assert!(of(Some(1), 1, 1, 4).contains("3 bytes, and 4"), "another length");
    }

    proptest! {
        #[test]
        fn what_was_sent_is_what_is_read(
            bases in prop::collection::vec("[aäß€ b]{0,300}", 1..4),
            edits in prop::collection::vec((0..4_usize, any::<prop::sample::Index>(), "[äb€]{0,9}"), 0..40),
        ) {
            let (mut written, mut read) = (Bodies::default(), Bodies::default());
            let mut texts = bases;
            for (number, (of, at, new)) in (1..).zip(edits) {
                let which = of % texts.len();
                let text = &mut texts[which];
                let at = text.floor_char_boundary(at.index(text.len() + 1));
                text.insert_str(at, &new);
                let body = written.pack(number, text);
                prop_assert_eq!(&*read.unpack(number, &body).unwrap(), text.as_str());
            }
        }
    }
}
