//! Decoding the requests of conversations one after the other, each but for what it shares with one
//! before.
//!
//! A request repeats the conversation so far, so most of its bytes are those of an earlier one.
//! What stands beside the conversation and the messages that are the same bytes are taken from
//! there, and the body is decoded without them.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use ctxbench_core::request::{Tools, Ttl};
use serde::de::IgnoredAny;
use serde_json::Deserializer;

use super::{Wire, WireError};
use crate::prompt::{Item, Prompt};

/// How many requests are remembered: a conversation, its subagent and a summary take turns.
const REMEMBERED: usize = 3;

/// Reads requests like [`decode`](super::WireFormat::decode), which is a tested property.
#[derive(Debug)]
pub struct IncrementalDecoder {
    wire: Wire,
    /// The newest first.
    seen: VecDeque<Seen>,
}

/// A request and what it says.
#[derive(Debug)]
struct Seen {
    path: String,
    body: Vec<u8>,
    layout: Layout,
    head: Head,
    /// The messages but for the last that says anything: what stands behind the conversation may be
    /// about that one.
    messages: Vec<Message>,
    items: Vec<Item>,
}

/// What stands beside the conversation.
#[derive(Clone, Debug)]
struct Head {
    items: Vec<Item>,
    tools: Option<Arc<Tools>>,
    tools_cache: Option<Ttl>,
}

/// The end of a message.
#[derive(Clone, Copy, Debug)]
struct Message {
    /// Counted from where the conversation begins.
    byte: usize,
    /// Items of all messages up to here.
    items: usize,
}

impl IncrementalDecoder {
    /// A decoder that has seen nothing yet.
    pub fn new(wire: Wire) -> IncrementalDecoder {
        IncrementalDecoder { wire, seen: VecDeque::new() }
    }

    /// Reads the body that was posted to a path.
    pub fn decode(&mut self, path: &str, body: &[u8]) -> Result<Prompt, WireError> {
        for at in 0..self.seen.len() {
            if let Some(prompt) = self.seen[at].go_on(self.wire, path, body) {
                self.seen.make_contiguous()[..=at].rotate_right(1);
                return Ok(prompt);
            }
        }
        let prompt = self.wire.decode(path, body)?;
        if let Some(seen) = Seen::of(self.wire, path, body, &prompt) {
            self.seen.truncate(REMEMBERED - 1);
            self.seen.push_front(seen);
        }
        Ok(prompt)
    }
}

impl Seen {
    /// `None` where the body has no list of messages.
    fn of(wire: Wire, path: &str, body: &[u8], prompt: &Prompt) -> Option<Seen> {
        let layout = Layout::of(wire, body, None)?;
        let mut seen = Seen {
            path: path.to_owned(),
            body: body.to_vec(),
            head: Head::of(prompt),
            messages: Vec::new(),
            items: Vec::new(),
            layout,
        };
        seen.note(&prompt.items);
        Some(seen)
    }

    /// Becomes the request of this body and reads it; `None`, and nothing changes, where it has
    /// none of the messages or must be read as a whole.
    fn go_on(&mut self, wire: Wire, path: &str, body: &[u8]) -> Option<Prompt> {
        if self.path != path {
            return None;
        }
        let layout = Layout::of(wire, body, Some(self))?;
        let kept = *self.messages[..layout.kept].last()?;
        let known = wire.head_fields();
        let same_head = known.iter().all(|name| {
            let (old, new) = (self.layout.field(&self.body, name), layout.field(body, name));
            old == new
        });
        let short = layout.without_kept(body, if same_head { known } else { &[] });
        let mut prompt = wire.decode_rest(path, &short, &self.items[..kept.items]).ok()?;
        let first = prompt.items.iter().position(|i| i.message > 0)?;
        for item in prompt.items.iter_mut().filter(|i| i.message > 0) {
            item.message += layout.kept;
        }
        if !same_head {
            self.head = Head::of(&prompt);
        } else if first > 0 {
            return None;
        }
        (prompt.tools, prompt.tools_cache) = (self.head.tools.clone(), self.head.tools_cache);
        self.replace(body, layout, kept);
        self.note(&prompt.items[first..]);
        let before = self.head.items.iter().chain(&self.items[..kept.items]).cloned();
        prompt.items.splice(..first, before);
        Some(prompt)
    }

    /// Takes the body in the place of its own, of which messages are kept.
    fn replace(&mut self, body: &[u8], layout: Layout, kept: Message) {
        let begin = layout.list.start;
        if begin == self.layout.list.start {
            self.body.truncate(begin + layout.shared);
            let same = common(&self.body[..begin], &body[..begin]);
            self.body[same..begin].copy_from_slice(&body[same..begin]);
        } else {
            self.body.clear();
        }
        self.body.extend_from_slice(&body[self.body.len()..]);
        self.messages.truncate(layout.kept);
        self.items.truncate(kept.items);
        self.layout = layout;
    }

    /// Notes the messages behind those that are noted, by what they say. One that says nothing
    /// ends it: it may stand for something beside the conversation.
    fn note(&mut self, items: &[Item]) {
        let said = || items.iter().filter(|i| i.message > 0);
        let last = said().last().map_or(0, |i| i.message);
        let mut said = said().peekable();
        for &byte in &self.layout.ends {
            let number = self.messages.len() + 1;
            if number == last || said.peek().is_none_or(|i| i.message != number) {
                return;
            }
            while let Some(item) = said.next_if(|i| i.message == number) {
                // Counted once, and known to every copy.
                item.size();
                self.items.push(item.clone());
            }
            self.messages.push(Message { byte, items: self.items.len() });
        }
    }
}

impl Head {
    fn of(prompt: &Prompt) -> Head {
        Head {
            items: prompt.items.iter().take_while(|i| i.message == 0).cloned().collect(),
            tools: prompt.tools.clone(),
            tools_cache: prompt.tools_cache,
        }
    }
}

/// Where the pieces of a body stand.
#[derive(Debug)]
struct Layout {
    /// The names of the fields, with their quotes, and their values.
    fields: Vec<(Range<usize>, Range<usize>)>,
    /// The value that is the conversation.
    list: Range<usize>,
    /// How many bytes of it are the same as in the body before, and how many messages.
    shared: usize,
    kept: usize,
    /// Where the first of the other messages begins.
    rest: usize,
    /// Where they end, counted from the beginning of the list.
    ends: Vec<usize>,
}

impl Layout {
    /// `None` where the body is no object with a list of messages, has a field twice, or none of
    /// the messages is one of those before.
    fn of(wire: Wire, body: &[u8], before: Option<&Seen>) -> Option<Layout> {
        let mut scan = Scan { body, at: 0 };
        let mut all = Layout {
            fields: Vec::new(),
            list: 0..0,
            shared: 0,
            kept: 0,
            rest: 0,
            ends: Vec::new(),
        };
        scan.take(b'{')?;
        while scan.peek()? != b'}' {
            if !all.fields.is_empty() {
                scan.take(b',')?;
            }
            let key = scan.value()?;
            let name = std::str::from_utf8(&body[key.clone()]).ok()?;
            let name = name.strip_prefix('"')?.strip_suffix('"')?;
            if name.contains('\\') || all.field(body, name).is_some() {
                return None;
            }
            scan.take(b':')?;
            let old = before.and_then(|b| b.layout.field(&b.body, name));
            let value = if name == wire.conversation_field() {
                all.conversation(&mut scan, before)?
            } else {
                scan.value_like(old.unwrap_or_default())?
            };
            all.fields.push((key, value));
        }
        scan.take(b'}')?;
        (scan.peek().is_none() && all.list.end > 0).then_some(all)
    }

    fn conversation(&mut self, scan: &mut Scan<'_>, before: Option<&Seen>) -> Option<Range<usize>> {
        scan.peek()?;
        let begin = scan.at;
        scan.take(b'[')?;
        if let Some(b) = before {
            self.shared = common(&b.body[b.layout.list.clone()], &scan.body[begin..]);
            self.kept = b.messages.partition_point(|m| m.byte < self.shared);
            scan.at = begin + b.messages[..self.kept].last()?.byte;
        }
        let mut is_first = self.kept == 0;
        while scan.peek()? != b']' {
            if !is_first {
                scan.take(b',')?;
            }
            let message = scan.value()?;
            if self.ends.is_empty() {
                self.rest = message.start;
            }
            self.ends.push(message.end - begin);
            is_first = false;
        }
        scan.take(b']')?;
        self.list = begin..scan.at;
        Some(self.list.clone())
    }

    fn field<'b>(&self, body: &'b [u8], name: &str) -> Option<&'b [u8]> {
        let is = |key: &Range<usize>| body[key.start + 1..key.end - 1] == *name.as_bytes();
        let (_, value) = self.fields.iter().find(|(key, _)| is(key))?;
        Some(&body[value.clone()])
    }

    /// The body without the messages that are kept and without some fields.
    fn without_kept(&self, body: &[u8], without: &[&str]) -> Vec<u8> {
        let mut out = Vec::with_capacity(body.len() - self.rest + 256);
        for (key, value) in &self.fields {
            let name = &body[key.start + 1..key.end - 1];
            if without.iter().any(|w| w.as_bytes() == name) {
                continue;
            }
            out.push(if out.is_empty() { b'{' } else { b',' });
            out.extend_from_slice(&body[key.clone()]);
            out.push(b':');
            if *value == self.list {
                out.push(b'[');
                out.extend_from_slice(&body[self.rest..value.end]);
            } else {
                out.extend_from_slice(&body[value.clone()]);
            }
        }
        out.push(b'}');
        out
    }
}

/// A walk over JSON, value by value.
struct Scan<'b> {
    body: &'b [u8],
    at: usize,
}

impl Scan<'_> {
    /// The next byte that is no whitespace.
    fn peek(&mut self) -> Option<u8> {
        // JSON knows fewer kinds of whitespace than ASCII.
        let is_space = |b: &&u8| matches!(b, b' ' | b'\n' | b'\r' | b'\t');
        self.at += self.body[self.at..].iter().take_while(is_space).count();
        self.body.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    /// Where the next value stands.
    fn value(&mut self) -> Option<Range<usize>> {
        self.peek()?;
        let mut values = Deserializer::from_slice(&self.body[self.at..]).into_iter::<IgnoredAny>();
        values.next()?.ok()?;
        let begin = self.at;
        self.at += values.byte_offset();
        Some(begin..self.at)
    }

    /// The same for the value of a field that was probably the same before.
    fn value_like(&mut self, before: &[u8]) -> Option<Range<usize>> {
        self.peek()?;
        let begin = self.at;
        if !before.is_empty() && self.body[begin..].starts_with(before) {
            self.at += before.len();
            if matches!(self.peek(), Some(b',' | b'}')) {
                return Some(begin..begin + before.len());
            }
            self.at = begin;
        }
        self.value()
    }
}

/// How many bytes two texts have in common at their beginning.
fn common(a: &[u8], b: &[u8]) -> usize {
    const PAGE: usize = 4096;
    let pages = a.chunks_exact(PAGE).zip(b.chunks_exact(PAGE)).take_while(|(a, b)| a == b).count();
    let rest = a[pages * PAGE..].iter().zip(&b[pages * PAGE..]).take_while(|(a, b)| a == b);
    pages * PAGE + rest.count()
}

#[cfg(test)]
mod tests {
    use ctxbench_core::request::Request;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::wire::named;
    use crate::wire::properties::{any_wire, request};

    /// Reads bodies one after the other and each by itself; gives how many messages were known of
    /// each.
    fn read(wire: Wire, path: &str, bodies: &[Vec<u8>]) -> Vec<usize> {
        let mut decoder = IncrementalDecoder::new(wire);
        let mut known = Vec::new();
        for body in bodies {
            let (ours, whole) = (decoder.decode(path, body), wire.decode(path, body));
            match (ours, whole) {
                (Ok(ours), Ok(whole)) => assert_eq!(ours, whole),
                (Err(ours), Err(whole)) => assert_eq!(ours.to_string(), whole.to_string()),
                (ours, whole) => panic!("{ours:?} but {whole:?}"),
            }
            known.push(decoder.seen.front().map_or(0, |s| s.layout.kept));
        }
        known
    }

    /// A conversation that grows by a message, with what each wire says beside it.
    fn growing(wire: Wire, messages: &[Value], beside: Value) -> Vec<usize> {
        let body = |n: usize| {
            let mut body = json!({wire.conversation_field(): messages[..n]});
            body.as_object_mut().unwrap().extend(beside.as_object().unwrap().clone());
            body.to_string().into_bytes()
        };
        let bodies: Vec<_> = (1..=messages.len()).map(body).collect();
        read(wire, &wire.path("m"), &bodies)
    }

    #[test]
    fn what_stood_before_the_last_message_is_known() {
        let wire = named("openai-chat").unwrap();
        let said = |text: &str| json!({"role": "user", "content": text});
        let known = growing(wire, &["a", "b", "c", "d"].map(said), json!({"model": "m"}));
        assert_eq!(known, [0, 0, 1, 2]);
    }

    #[test]
    fn the_rest_of_a_request_may_change() {
        let wire = named("anthropic-messages").unwrap();
        let said: Vec<_> =
            (0..4).map(|n| json!({"role": "user", "content": n.to_string()})).collect();
        let body = |beside: Value| {
            let mut body = json!({"messages": said});
            body.as_object_mut().unwrap().extend(beside.as_object().unwrap().clone());
            // Names in this order, so some fields stand before the messages and some behind them.
            body.to_string().into_bytes()
        };
        let bodies = [
            json!({"model": "m", "max_tokens": 9, "tools": [{"name": "a"}], "system": "s"}),
            json!({"model": "n", "max_tokens": 10, "tools": [{"name": "a"}], "system": "s"}),
            json!({"model": "n", "max_tokens": 1, "tools": [{"name": "b"}], "system": "s"}),
            json!({"model": "n", "max_tokens": 1, "tools": [{"name": "b"}], "system": "other"}),
            json!({"model": "n", "tools": [{"name": "b", "cache_control": {"type": "ephemeral"}}]}),
            json!({"model": "n"}),
            json!({"model": "n", "system": [], "thread": {"type": "create"}}),
        ];
        let known = read(wire, "/v1/messages", &bodies.map(body));
        assert_eq!(known, [0, 3, 3, 3, 3, 3, 3]);
    }

    #[test]
    fn what_ends_a_request_belongs_to_its_last_message_only() {
        let wire = named("anthropic-messages").unwrap();
        let said =
            |text: &str| json!({"role": "user", "content": [{"type": "text", "text": text}]});
        let empty = json!({"role": "user", "content": []});
        let messages = [said("a"), said("b"), empty, said("c"), said("d")];
        for beside in [
            json!({"cache_control": {"type": "ephemeral"}}),
            json!({"compaction": {"type": "summarize"}}),
            json!({"system": "s", "compaction": {"type": "summarize"}}),
            json!({"system": [{"type": "text", "text": "s"}]}),
        ] {
            let mut all = beside;
            all.as_object_mut().unwrap().insert("model".into(), "m".into());
            growing(wire, &messages, all);
        }
    }

    #[test]
    fn results_find_calls_that_are_not_read_again() {
        let wire = named("gemini").unwrap();
        let turn = |role: &str, parts: Value| json!({"role": role, "parts": parts});
        let call = |name: &str| json!({"functionCall": {"name": name, "args": {}}});
        let result =
            |name: &str| json!({"functionResponse": {"name": name, "response": {"output": "x"}}});
        let known = growing(
            wire,
            &[
                turn("user", json!([{"text": "a"}])),
                turn("model", json!([call("read"), call("list"), call("read")])),
                turn("user", json!([result("read")])),
                turn("user", json!([result("read"), result("list"), result("none")])),
                turn("model", json!([call("read")])),
                turn("user", json!([result("read")])),
            ],
            json!({"systemInstruction": {"parts": [{"text": "s"}]}}),
        );
        assert_eq!(known, [0, 0, 1, 2, 3, 4]);
    }

    #[test]
    fn tools_among_the_messages_are_not_lost() {
        let wire = named("openai-responses").unwrap();
        let said = |text: &str| json!({"role": "user", "content": text});
        let tools = json!({"type": "additional_tools", "tools": [{"name": "t"}]});
        let messages = [said("a"), tools, said("b"), said("c"), said("d")];
        growing(wire, &messages, json!({"model": "m", "instructions": "i"}));
    }

    #[test]
    fn bodies_of_any_shape_read_as_they_do_alone() {
        let wire = named("anthropic-messages").unwrap();
        let texts = [
            r#"{"model":"m","messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}]}"#,
            r#"{"model":"m","messages":[{"role":"user","content":"a"} ,{"role":"user","content":"b"},{"role":"user","content":"c"}]}"#,
            r#"{"model":"m","messages":[{"role":"user","content":"a"} ]}"#,
            r#"{"model":"m","messages":[{"role":"user","content":"a"},]}"#,
            r#"{"model":"m","messages":[{"role":"user","content":"a"},{"role":"user","content":"b"},"#,
            r#"{"model":"m","messages":[{"role":"user","content":"a"},{"role":"nobody","content":"b"}]}"#,
            r#"{"model":"m","messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}],"messages":[]}"#,
            r#"{"model":"m","messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}],"system":"s"}"#,
            "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"a\"},\
             {\"role\":\"user\",\"content\":\"b\"}]\x0c}",
            r#"{"model":"m","messages":"a"}"#,
            r#"{"model":"m","messages":[]}"#,
            "",
        ];
        for first in texts {
            for second in texts {
                let bodies = [first, second, first].map(|t| t.as_bytes().to_vec());
                read(wire, "/v1/messages", &bodies);
            }
        }
        let cut = [texts[1].as_bytes(), &texts[1].as_bytes()[..80], b"\xff"].map(<[u8]>::to_vec);
        read(wire, "/v1/messages", &cut);
    }

    proptest! {
        #[test]
        fn read_as_each_by_itself(
            (wire, requests) in any_wire(|w| (request(w), request(w)).boxed()),
            keep_messages in any::<bool>(),
            cuts in prop::collection::vec((0..40_usize, any::<bool>()), 1..12),
        ) {
            let bodies: Vec<_> = [&requests.0, &requests.1]
                .iter()
                .flat_map(|r| cuts.iter().map(move |&(end, marked)| {
                    let blocks = r.blocks[..end.min(r.blocks.len())].to_vec();
                    let mut breakpoints = r.breakpoints.clone();
                    breakpoints.retain(|b| marked && *b < blocks.len());
                    let request = Request { blocks, breakpoints, keep_messages, ..(*r).clone() };
                    wire.encode(&request).body
                }))
                .collect();
            read(wire, &wire.path("m"), &bodies);
        }
    }
}
