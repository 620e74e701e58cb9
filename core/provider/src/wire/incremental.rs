//! Incremental decoding of the requests of a conversation.
//!
//! A request repeats most bytes of an earlier one. Fields outside the conversation and messages with
//! the same bytes at the same position are reused, and only the rest of the body is decoded, even if an
//! old result in the middle has changed.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use ctxbench_core::request::Tools;
use ctxbench_core::usage::Ttl;
use serde::de::IgnoredAny;
use serde_json::Deserializer;

use super::format::{Wire, WireError};
use crate::prompt::{Item, Prompt};

/// Number of cached requests: a conversation, its subagent and a summary may alternate.
const MAX_SEEN: usize = 3;

/// Decodes requests with the same result as [`decode`](super::WireFormat::decode).
#[derive(Debug)]
pub struct IncrementalDecoder {
    wire: Wire,
    /// Decoded requests, newest first.
    seen: VecDeque<DecodedRequest>,
}

/// A decoded request.
#[derive(Debug)]
struct DecodedRequest {
    path: String,
    body: Vec<u8>,
    layout: BodyLayout,
    head: RequestHead,
    /// Items of each message. Empty for the last message with items, since fields after the conversation
    /// may refer to it, and for messages without items, which may affect fields outside.
    items: Vec<Vec<Item>>,
}

/// The fields outside the conversation.
#[derive(Clone, Debug)]
struct RequestHead {
    items: Vec<Item>,
    tools: Option<Arc<Tools>>,
    tools_cache: Option<Ttl>,
}

impl IncrementalDecoder {
    pub fn new(wire: Wire) -> IncrementalDecoder {
        IncrementalDecoder { wire, seen: VecDeque::new() }
    }

    /// Decodes the body of a request to a path.
    pub fn decode(&mut self, path: &str, body: &[u8]) -> Result<Prompt, WireError> {
        for at in 0..self.seen.len() {
            if let Some(prompt) = self.seen[at].update(self.wire, path, body) {
                self.seen.make_contiguous()[..=at].rotate_right(1);
                return Ok(prompt);
            }
        }
        let prompt = self.wire.decode(path, body)?;
        if let Some(seen) = DecodedRequest::new(self.wire, path, body, &prompt) {
            self.seen.truncate(MAX_SEEN - 1);
            self.seen.push_front(seen);
        }
        Ok(prompt)
    }
}

impl DecodedRequest {
    /// Returns `None` if the body has no list of messages.
    fn new(wire: Wire, path: &str, body: &[u8], prompt: &Prompt) -> Option<DecodedRequest> {
        let layout = BodyLayout::parse(wire, body, None)?;
        let mut seen = DecodedRequest {
            path: path.to_owned(),
            body: body.to_vec(),
            head: RequestHead::new(prompt),
            items: Vec::new(),
            layout,
        };
        seen.store(&prompt.items);
        Some(seen)
    }

    /// Replaces the request by that of a body and decodes it. Returns `None` without a change if the body
    /// does not begin with the same message or must be decoded as a whole.
    fn update(&mut self, wire: Wire, path: &str, body: &[u8]) -> Option<Prompt> {
        if self.path != path {
            return None;
        }
        let layout = BodyLayout::parse(wire, body, Some(self))?;
        let known = wire.head_fields;
        let same_head = known.iter().all(|name| {
            let (old, new) = (self.layout.field(&self.body, name), layout.field(body, name));
            old == new
        });
        let short = layout.with_new(body, if same_head { known } else { &[] });
        let first_new = *layout.new.first()?;
        let mut prompt = (wire.decode_rest)(path, &short, &self.items[..first_new]).ok()?;
        let first = prompt.items.iter().position(|i| i.message > 0)?;
        // Fields at the end refer to the last item.
        let last = prompt.items.iter().map(|i| i.message).max()?;
        if last != layout.new.len() || same_head && (first > 0 || prompt.tools.is_some()) {
            return None;
        }
        for item in prompt.items.iter_mut().filter(|i| i.message > 0) {
            item.message = layout.new[item.message - 1] + 1;
        }
        if !same_head {
            self.head = RequestHead::new(&prompt);
        }
        (prompt.tools, prompt.tools_cache) = (self.head.tools.clone(), self.head.tools_cache);
        self.replace(body, layout, first_new);
        self.store(&prompt.items[first..]);
        prompt.items = self.all_items(&prompt.items[first..]);
        Some(prompt)
    }

    /// Replaces the body. The messages before `first` are equal.
    fn replace(&mut self, body: &[u8], layout: BodyLayout, first: usize) {
        let (begin, from) = (layout.list.start, layout.messages[first].start);
        let before = self.layout.messages.get(..first);
        if begin == self.layout.list.start && before == layout.messages.get(..first) {
            self.body.truncate(from);
            self.body[..begin].copy_from_slice(&body[..begin]);
        } else {
            self.body.clear();
        }
        self.body.extend_from_slice(&body[self.body.len()..]);
        self.layout = layout;
    }

    /// Stores the items of the new messages.
    fn store(&mut self, items: &[Item]) {
        self.items.resize_with(self.layout.messages.len(), Vec::new);
        self.layout.new.iter().for_each(|&n| self.items[n].clear());
        let last = items.iter().map(|i| i.message).max().unwrap_or(0);
        for item in items.iter().filter(|i| (1..last).contains(&i.message)) {
            // Computes the size once for all copies.
            item.size();
            if let Some(items) = self.items.get_mut(item.message - 1) {
                items.push(item.clone());
            }
        }
    }

    /// Returns the bytes of a message with stored items.
    fn message(&self, n: usize) -> Option<&[u8]> {
        let is_known = self.items.get(n).is_some_and(|items| !items.is_empty());
        is_known.then(|| &self.body[self.layout.messages[n].clone()])
    }

    /// Returns all items of the request; `items` are those of the new messages and the fields after.
    fn all_items(&self, items: &[Item]) -> Vec<Item> {
        let all =
            self.head.items.len() + items.len() + self.items.iter().map(Vec::len).sum::<usize>();
        let mut whole = Vec::with_capacity(all);
        whole.extend_from_slice(&self.head.items);
        let (mut rest, mut next) = (items, 0);
        for &n in &self.layout.new {
            whole.extend(self.items[next..n].iter().flatten().cloned());
            let count = rest.iter().take_while(|i| i.message == n + 1).count();
            let (message, after) = rest.split_at(count);
            whole.extend_from_slice(message);
            (rest, next) = (after, n + 1);
        }
        whole.extend_from_slice(rest);
        whole
    }
}

impl RequestHead {
    fn new(prompt: &Prompt) -> RequestHead {
        RequestHead {
            items: prompt.items.iter().take_while(|i| i.message == 0).cloned().collect(),
            tools: prompt.tools.clone(),
            tools_cache: prompt.tools_cache,
        }
    }
}

/// The positions of fields and messages in a body.
#[derive(Debug)]
struct BodyLayout {
    /// Names of the fields, with quotes, and values.
    fields: Vec<(Range<usize>, Range<usize>)>,
    /// Position of the conversation.
    list: Range<usize>,
    messages: Vec<Range<usize>>,
    /// Messages that differ from the earlier body, always including the last.
    new: Vec<usize>,
}

impl BodyLayout {
    /// Returns `None` if the body is not an object with a list of messages, has a duplicate field, or
    /// begins with another message than `before`.
    fn parse(wire: Wire, body: &[u8], before: Option<&DecodedRequest>) -> Option<BodyLayout> {
        let mut scan = Scan { body, at: 0 };
        let mut all =
            BodyLayout { fields: Vec::new(), list: 0..0, messages: Vec::new(), new: Vec::new() };
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
            let value = if name == wire.rules.conversation_field {
                all.conversation(&mut scan, wire, before)?
            } else {
                scan.value_like(old.unwrap_or_default())?.0
            };
            all.fields.push((key, value));
        }
        scan.take(b'}')?;
        (scan.peek().is_none() && all.list.end > 0).then_some(all)
    }

    fn conversation(
        &mut self,
        scan: &mut Scan<'_>,
        wire: Wire,
        before: Option<&DecodedRequest>,
    ) -> Option<Range<usize>> {
        scan.peek()?;
        let begin = scan.at;
        scan.take(b'[')?;
        while scan.peek()? != b']' {
            if !self.messages.is_empty() {
                scan.take(b',')?;
            }
            let n = self.messages.len();
            let is_reusable = self.new.is_empty() || wire.rules.has_independent_messages;
            let old = before.filter(|_| is_reusable).and_then(|b| b.message(n)).unwrap_or_default();
            let (message, same) = scan.value_like(old)?;
            if !same || scan.peek()? == b']' {
                self.new.push(n);
            }
            if before.is_some() && self.new.first() == Some(&0) {
                return None;
            }
            self.messages.push(message);
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

    /// Returns the body with the new messages only and without some fields.
    fn with_new(&self, body: &[u8], without: &[&str]) -> Vec<u8> {
        let bytes = |n: &usize| self.messages[*n].len() + 1;
        let mut out = Vec::with_capacity(self.new.iter().map(bytes).sum::<usize>() + 1024);
        for (key, value) in &self.fields {
            let name = &body[key.start + 1..key.end - 1];
            if without.iter().any(|w| w.as_bytes() == name) {
                continue;
            }
            out.push(if out.is_empty() { b'{' } else { b',' });
            out.extend_from_slice(&body[key.clone()]);
            out.push(b':');
            if *value == self.list {
                for (i, n) in self.new.iter().enumerate() {
                    out.push(if i == 0 { b'[' } else { b',' });
                    out.extend_from_slice(&body[self.messages[*n].clone()]);
                }
                out.push(b']');
            } else {
                out.extend_from_slice(&body[value.clone()]);
            }
        }
        out.push(b'}');
        out
    }
}

/// A JSON scanner.
struct Scan<'b> {
    body: &'b [u8],
    at: usize,
}

impl Scan<'_> {
    /// Returns the next byte after white space.
    fn peek(&mut self) -> Option<u8> {
        // JSON has fewer kinds of white space than ASCII.
        let is_space = |b: &&u8| matches!(b, b' ' | b'\n' | b'\r' | b'\t');
        self.at += self.body[self.at..].iter().take_while(is_space).count();
        self.body.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    /// Returns the range of the next value.
    fn value(&mut self) -> Option<Range<usize>> {
        self.peek()?;
        let mut values = Deserializer::from_slice(&self.body[self.at..]).into_iter::<IgnoredAny>();
        values.next()?.ok()?;
        let begin = self.at;
        self.at += values.byte_offset();
        Some(begin..self.at)
    }

    /// Returns the range of the next value, and whether it equals `before`.
    fn value_like(&mut self, before: &[u8]) -> Option<(Range<usize>, bool)> {
        self.peek()?;
        let begin = self.at;
        if !before.is_empty() && self.body[begin..].starts_with(before) {
            self.at += before.len();
            if matches!(self.peek(), Some(b',' | b'}' | b']')) {
                return Some((begin..begin + before.len(), true));
            }
            self.at = begin;
        }
        Some((self.value()?, false))
    }
}

#[cfg(test)]
mod tests {
    use ctxbench_core::block::BlockForm;
    use ctxbench_core::request::Request;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::wire::find;
    use crate::wire::properties::{any_wire, request};

    /// Decodes bodies incrementally and individually. Returns the number of reused messages of each.
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
            let known_of = |l: &BodyLayout| l.messages.len() - l.new.len();
            known.push(decoder.seen.front().map_or(0, |s| known_of(&s.layout)));
        }
        known
    }

    /// Decodes a conversation that grows by one message per request. `beside` contains the other
    /// fields of the body. Returns how many messages each request shared with the previous one.
    fn growing(wire: Wire, messages: &[Value], beside: Value) -> Vec<usize> {
        let body = |n: usize| {
            let mut body = json!({wire.rules.conversation_field: messages[..n]});
            body.as_object_mut().unwrap().extend(beside.as_object().unwrap().clone());
            body.to_string().into_bytes()
        };
        let bodies: Vec<_> = (1..=messages.len()).map(body).collect();
        read(wire, &(wire.path)("m"), &bodies)
    }

    #[test]
    fn what_stood_before_the_last_message_is_known() {
        let wire = find("openai-chat").unwrap();
        let said = |text: &str| json!({"role": "user", "content": text});
        let known = growing(wire, &["a", "b", "c", "d"].map(said), json!({"model": "m"}));
        assert_eq!(known, [0, 0, 1, 2]);
    }

    #[test]
    fn what_changes_in_the_middle_is_read_alone() {
        let said = |text: &str| json!({"role": "user", "content": text});
        let body = |texts: &[&str]| {
            let said: Vec<_> = texts.iter().map(|t| said(t)).collect();
            // A field on each side of the conversation.
            let body = json!({"a": 1, "messages": said, "model": "m"});
            body.to_string().into_bytes()
        };
        let bodies = [
            body(&["a", "b", "c", "d", "e"]),
            body(&["a", "longer", "c", "d", "e", "f"]),
            body(&["a", "longer", "", "d", "short", "f", "g"]),
            // One message is removed, so that later ones have another position.
            body(&["a", "", "d", "short", "f", "g"]),
            body(&["a", "", "d", "short"]),
            body(&["other", "", "d", "short"]),
        ];
        // `e` was the last, and so is the last of each.
        let known = read(find("openai-chat").unwrap(), "/v1/chat/completions", &bodies);
        assert_eq!(known, [0, 3, 3, 1, 3, 0]);
    }

    #[test]
    fn the_rest_of_a_request_may_change() {
        let wire = find("anthropic-messages").unwrap();
        let said: Vec<_> =
            (0..4).map(|n| json!({"role": "user", "content": n.to_string()})).collect();
        let body = |beside: Value| {
            let mut body = json!({"messages": said});
            body.as_object_mut().unwrap().extend(beside.as_object().unwrap().clone());
            // Names in this order, with fields before and after the messages.
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
        let wire = find("anthropic-messages").unwrap();
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
        let wire = find("gemini").unwrap();
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
        let wire = find("openai-responses").unwrap();
        let said = |text: &str| json!({"role": "user", "content": text});
        let tools = json!({"type": "additional_tools", "tools": [{"name": "t"}]});
        let messages = [said("a"), tools, said("b"), said("c"), said("d")];
        growing(wire, &messages, json!({"model": "m", "instructions": "i"}));
        // They may come when something is known already.
        let [a, tools, b, c, d] = messages;
        growing(wire, &[a, b, c, tools, d], json!({"model": "m", "instructions": "i"}));
    }

    #[test]
    fn bodies_of_any_shape_read_as_they_do_alone() {
        let wire = find("anthropic-messages").unwrap();
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
            cuts in prop::collection::vec((0..40_usize, any::<bool>(), 0..20_usize), 1..12),
        ) {
            let bodies: Vec<_> = [&requests.0, &requests.1]
                .iter()
                .flat_map(|r| cuts.iter().map(move |&(end, marked, cleared)| {
                    let mut blocks = r.blocks[..end.min(r.blocks.len())].to_vec();
                    if let Some(b) = blocks.get_mut(cleared) {
                        *b = b.with_text(BlockForm::Cleared, "cleared");
                    }
                    let mut breakpoints = r.breakpoints.clone();
                    breakpoints.retain(|b| marked && *b < blocks.len());
                    let request = Request { blocks, breakpoints, keep_messages, ..(*r).clone() };
                    wire.encode(&request).body
                }))
                .collect();
            read(wire, &(wire.path)("m"), &bodies);
        }
    }
}
