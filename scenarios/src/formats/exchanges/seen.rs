//! Exchanges of a file, decoded by their wires. Each content is stored once.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use ctxbench_core::block::{Draft, Role};
use ctxbench_core::request::{Reply, Tools};
use ctxbench_provider::{Item, Prompt, wire};
use ctxbench_util::plural::pluralize;

use super::decode::{self, Unknown};
use super::line::{Bodies, Exchange, ExchangeEnd, Header, Line, VERSION};
use crate::formats::prelude::*;

/// Occurrence of a content in an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Placed {
    pub(super) hash: u64,
    /// Index of the message on the wire.
    pub(super) message: usize,
}

/// Exchange as the sorting of conversations sees it.
#[derive(Debug)]
pub(super) struct ExchangeView {
    pub(super) line: usize,
    pub(super) number: u64,
    pub(super) at_ms: u64,
    pub(super) end_ms: u64,
    pub(super) wire: &'static str,
    pub(super) model: String,
    /// Hashes of the contents before the conversation.
    pub(super) standing: Vec<u64>,
    /// Hash of the tools; 0 = none.
    pub(super) tools: u64,
    pub(super) items: Vec<Placed>,
    /// The reply, or the reason why there is none.
    pub(super) reply: Result<Reply, String>,
    pub(super) billing: Box<Billing>,
    /// What the answer tells of requests that the provider made inside it.
    pub(super) answer: Map<String, Value>,
}

/// Contents of a file.
#[derive(Default)]
pub(super) struct Exchanges {
    pub(super) header: Header,
    pub(super) all: Vec<ExchangeView>,
    pub(super) contents: HashMap<u64, Arc<Draft>>,
    pub(super) tools: HashMap<u64, Arc<Tools>>,
    pub(super) hosts: BTreeSet<String>,
}

impl Exchanges {
    pub(super) fn content(&self, hash: u64) -> &Draft {
        &self.contents[&hash]
    }

    pub(super) fn is_said(&self, hash: u64) -> bool {
        self.content(hash).role == Role::Assistant
    }
}

fn is_standing(item: &Item) -> bool {
    matches!(item.role, Role::System | Role::Instructions | Role::Developer)
}

/// Reads a file. Notes on unreadable lines are added to `out`.
pub(super) fn read(source: &Source<'_>, out: &mut Recording) -> Result<Exchanges, InputError> {
    let mut found = Exchanges::default();
    let (mut unknown, mut passed) = (Unknown::new(), 0);
    let mut bodies = Bodies::default();
    let file = source.name();
    lines::each_object(source, out, |out, RecordedLine { number, object }: RecordedLine| {
        match serde_json::from_value(object.into()) {
            Ok(Line::CtxbenchRecording(header)) if header.version > VERSION => {
                let what = format!("version {} of the recording", header.version);
                let (expected, fix) =
                    (format!("version {VERSION} or less"), "take a newer ctxbench");
                return Err(InputError::new(number, what, expected, fix).at(file));
            }
            Ok(Line::CtxbenchRecording(header)) => found.header = header,
            Ok(Line::Exchange(exchange)) => {
                found.hosts.insert(exchange.host.clone());
                let seen = found.exchange(number, &exchange, &mut bodies, &mut unknown);
                match seen {
                    // The provider refused it, and it contains no messages.
                    Ok(ExchangeView { items, reply: Err(why), .. }) if items.is_empty() => {
                        let what = format!("a request without messages ({why})");
                        out.warnings.push(format!("{file}:{number}: {what}; left out"));
                    }
                    Ok(seen) => found.all.push(seen),
                    Err(why) => {
                        out.leave_out(file, number, why);
                        out.steps.extend(found.paid(number, &exchange, &mut unknown));
                    }
                }
            }
            Ok(Line::Passed(call)) if !call.known => passed += 1,
            Ok(Line::Passed(_)) => {}
            Err(e) => {
                out.leave_out(file, number, format!("not a line of a recording ({e})"));
            }
        }
        Ok(())
    })?;
    found.all.sort_by_key(|e| e.number);
    out.left_out.extend(unknown.into_iter().map(|(kind, n)| {
        format!("{file}: {n} × content of the kind {kind:?}, which is not modelled; left out")
    }));
    if passed > 0 {
        let calls = pluralize(passed, "call");
        out.left_out.push(format!("{file}: {calls} of paths that are not known here; left out"));
    }
    Ok(found)
}

impl Exchanges {
    /// Returns the call of an exchange whose request cannot be read.
    fn paid(
        &self,
        line: usize,
        exchange: &Exchange,
        unknown: &mut Unknown,
    ) -> Option<RecordingStep> {
        let wire = wire::find(&exchange.wire)?;
        let (reply, answer) = decode::reply(wire, exchange.reply.as_deref()?, unknown)?;
        let billing = messages::terms(object_in(&answer, "usage"), &answer);
        let counters = Counters { billing, ..decode::counters(&reply.usage)? };
        let started = time::millis(&self.header.started);
        let stamp = started.map(|ms| time::of_millis(ms.saturating_add_unsigned(exchange.end_ms)));
        let (name, model) = (format!("exchange {}", exchange.number), string(&answer, "model"));
        let reply = RecordingReply::new(name, Vec::new());
        let reply = RecordingReply { model, counters: Ok(counters), ..reply };
        Some(RecordingStep::of_call(line, stamp.flatten(), reply))
    }

    fn exchange(
        &mut self,
        line: usize,
        exchange: &Exchange,
        bodies: &mut Bodies,
        unknown: &mut Unknown,
    ) -> Result<ExchangeView, String> {
        let body = exchange.body.as_ref().ok_or("a request with a body that is not text")?;
        let body = bodies.unpack(exchange.number, body)?;
        let name = &exchange.wire;
        let wire = wire::find(name).ok_or_else(|| format!("the wire {name:?} is not known"))?;
        let prompt = decode::prompt(wire, &exchange.path, &body, unknown)
            .ok_or_else(|| format!("a body that is not a request of {name}"))?;
        let answer = exchange.reply.as_deref().unwrap_or_default();
        let reply = match (exchange.status, exchange.ended) {
            (200..=299, _) => decode::reply(wire, answer, unknown)
                .ok_or_else(|| broken(exchange.ended).to_string()),
            (0, _) => Err("no answer arrived".to_string()),
            (status, _) => Err(format!("HTTP {status}")),
        };
        let (reply, mut answer) = match reply {
            Ok((reply, answer)) => (Ok(reply), answer),
            Err(why) => (Err(why), Map::new()),
        };
        let billing = messages::terms(object_in(&answer, "usage"), &answer);
        answer.retain(|key, _| key == "usage" || key == "content");
        if let Some(content) = answer.get_mut("content").and_then(Value::as_array_mut) {
            content.retain(|block| block["type"] == "compaction");
        }
        let Prompt { model, tools, items, .. } = prompt;
        let begin = items.iter().position(|i| !is_standing(i)).unwrap_or(items.len());
        let mut placed: Vec<Placed> = Vec::with_capacity(items.len());
        for item in items {
            placed.push(Placed { hash: item.hash, message: item.message });
            self.contents.entry(item.hash).or_insert(item.content);
        }
        let standing = placed.drain(..begin).map(|p| p.hash).collect();
        let tools = tools.filter(|t| t.json.get().len() > 2).map_or(0, |tools| {
            let hash = tools.hash().max(1);
            self.tools.entry(hash).or_insert(tools);
            hash
        });
        Ok(ExchangeView {
            line,
            number: exchange.number,
            at_ms: exchange.at_ms,
            end_ms: exchange.end_ms,
            wire: wire.name,
            model: model.to_string(),
            standing,
            tools,
            items: placed,
            reply,
            billing,
            answer,
        })
    }
}

fn broken(ended: ExchangeEnd) -> &'static str {
    match ended {
        ExchangeEnd::Whole => "the answer is not a whole reply",
        ExchangeEnd::Cut => "the answer broke off",
        ExchangeEnd::Left => "the program did not wait for the end of the answer",
        ExchangeEnd::Unreached => "no answer arrived",
    }
}
