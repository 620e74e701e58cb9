//! Trace lines: the content of each request, item by item. A line leaves out the first items if the
//! line before has the same ones, so that a trace grows with the session.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use ctxbench_core::model::Counting;
use ctxbench_core::prelude::*;
use ctxbench_core::request::Thread;
use ctxbench_core::usage::Ttl;
use ctxbench_reports::record::RequestRecord;
use serde::Serialize;
use serde_json::{Map, Value};
use serde_with::skip_serializing_none;

use ctxbench_util::hash::sha256;

#[skip_serializing_none]
#[derive(Serialize)]
struct TraceLine<'a> {
    #[serde(flatten)]
    record: &'a RequestRecord,
    scenario: &'a str,
    strategy: &'a str,
    /// Number of first items that are those of the line before.
    #[serde(skip_serializing_if = "is_default")]
    same: usize,
    items: Vec<TraceItem<'a>>,
    tools_tokens: u64,
    #[serde(skip_serializing_if = "is_default")]
    ttl: Ttl,
    max_tokens: Option<u64>,
    /// Number of items that are not sent, because the provider stores them.
    held: Option<usize>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    params: &'a Map<String, Value>,
    /// Messages of an external strategy since the previous line.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    said: Vec<String>,
}

/// An item of a request in a line of a trace or a log.
#[skip_serializing_none]
#[derive(Serialize)]
pub struct TraceItem<'a> {
    pub kind: BlockKind,
    pub role: Role,
    pub bytes: usize,
    pub tokens: u64,
    pub sha256: Arc<str>,
    pub id: Option<Cow<'a, str>>,
    pub name: Option<Cow<'a, str>>,
    pub form: Option<&'static str>,
    #[serde(skip_serializing_if = "is_default")]
    pub cache: bool,
    pub text: Option<Cow<'a, str>>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Length below which a text is repeated with every item, as in recorded cases. A longer text
/// appears only with the first occurrence of its item, so that the trace still contains all texts.
const SHORT: usize = 200;

/// Block, and whether a cache breakpoint follows it.
type MarkedBlock = (Arc<Block>, bool);

/// Writes trace lines. Each content is hashed only once.
pub(super) struct Tracer {
    scenario: String,
    strategy: String,
    hashes: HashMap<u64, Arc<str>>,
    /// Messages of the strategy since the line before.
    pub(super) said: Vec<String>,
    /// Model and items of the line before, with whether each is marked.
    before: (String, Vec<MarkedBlock>),
}

impl Tracer {
    pub(super) fn new(scenario: &str, strategy: &str) -> Self {
        let (scenario, strategy) = (scenario.to_string(), strategy.to_string());
        Tracer {
            scenario,
            strategy,
            hashes: HashMap::new(),
            said: vec![],
            before: Default::default(),
        }
    }

    pub(super) fn line(&mut self, request: &Request, record: &RequestRecord) -> String {
        let Tracer { scenario, strategy, hashes, said, before: (model, before) } = self;
        let counting = &request.model.counting;
        let marked = |at| request.breakpoints.contains(&at);
        let all = request.blocks.iter().enumerate().map(|(at, b)| (b.clone(), marked(at)));
        let all: Vec<MarkedBlock> = all.collect();
        let is_same = |((a, marked), (b, now)): &(&MarkedBlock, &MarkedBlock)| {
            marked == now && (Arc::ptr_eq(a, b) || looks_alike(a, b))
        };
        let is_counted_alike = *model == *request.model.name;
        let before = before.iter().filter(|_| is_counted_alike);
        let same = before.zip(&all).take_while(is_same).count();
        let items = all[same..].iter().map(|(b, marked)| item(hashes, counting, b, *marked));
        let items = items.collect();
        let line = TraceLine {
            scenario,
            strategy,
            record,
            same,
            items,
            tools_tokens: request.tools_tokens(),
            ttl: request.ttl,
            max_tokens: request.max_tokens,
            held: match &request.thread {
                None => None,
                Some(Thread::Create) => Some(0),
                Some(Thread::Continue { held, .. }) => Some(*held),
            },
            params: &request.params,
            said: std::mem::take(said),
        };
        let line = serde_json::to_string(&line).expect("plain data always serialises");
        self.before = (request.model.name.to_string(), all);
        line
    }
}

/// Returns whether the items of two blocks are equal.
fn looks_alike(a: &Block, b: &Block) -> bool {
    let of = |b: &Block| (b.hash, b.kind, b.role, b.as_list, b.bytes());
    of(a) == of(b) && a.call == b.call
}

fn item<'a>(
    hashes: &mut HashMap<u64, Arc<str>>,
    by: &Counting,
    b: &'a Block,
    cache: bool,
) -> TraceItem<'a> {
    let (hash, first) = match hashes.entry(b.hash) {
        Entry::Occupied(known) => (known.get().clone(), false),
        Entry::Vacant(new) => (new.insert(sha256(&*b.text).into()).clone(), true),
    };
    let called = b.call.as_ref().filter(|_| b.kind == BlockKind::Call);
    TraceItem {
        kind: b.kind,
        role: b.role,
        bytes: b.bytes(),
        tokens: b.tokens(by),
        sha256: hash,
        id: b.call_id().map(Cow::from),
        name: called.map(|c| Cow::from(&*c.name)),
        form: b.as_list.then_some("blocks"),
        cache,
        text: (first || b.bytes() < SHORT).then(|| Cow::from(&*b.text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctxbench_core::block::{Draft, MessageId};
    use ctxbench_core::model;

    fn block(text: &str) -> Arc<Block> {
        Draft::text(BlockKind::User, Role::User, text).build(MessageId(0), vec![])
    }

    #[test]
    fn a_line_leaves_out_the_first_items_of_the_line_before() {
        let mut tracer = Tracer::new("s", "none");
        let mut line = |texts: &[&str], marks: &[usize], of: &str| {
            let model = Arc::new(model::find(of).unwrap().clone());
            let blocks = texts.iter().map(|text| block(text)).collect();
            let request = Request { breakpoints: marks.to_vec(), ..Request::new(model, blocks) };
            let line = tracer.line(&request, &RequestRecord::default());
            let line: Value = serde_json::from_str(&line).unwrap();
            let items = line["items"].as_array().unwrap().iter();
            let texts: Vec<String> = items.map(|i| i["text"].as_str().unwrap().into()).collect();
            (line["same"].as_u64().unwrap_or_default(), texts.join(" "))
        };
        let told = |same: u64, texts: &str| (same, texts.to_string());
        assert_eq!(line(&["a", "b"], &[], "gpt-5.1"), told(0, "a b"));
        assert_eq!(line(&["a", "b", "c"], &[], "gpt-5.1"), told(2, "c"));
        assert_eq!(line(&["a", "x", "c"], &[], "gpt-5.1"), told(1, "x c"));
        assert_eq!(line(&["a", "x", "c"], &[1], "gpt-5.1"), told(1, "x c"));
        assert_eq!(line(&["a", "x", "c"], &[1], "claude-sonnet-4-6"), told(0, "a x c"));
    }
}
