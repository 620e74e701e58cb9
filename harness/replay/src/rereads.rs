//! Models the re-reads of lost facts. A fact is read again once per loss, in its latest version,
//! and is charged in the form to which the product truncates it.

use ctxbench_core::prelude::*;
use rapidhash::{RapidHashMap as HashMap, RapidHashSet as HashSet};

use super::path::Path;

/// A call that fetches a lost fact again.
#[derive(Clone, Debug)]
pub(super) struct Reread {
    pub(super) call: ToolCall,
    pub(super) result: Incoming,
}

/// Name and arguments of a call, as the model wrote them. Equal calls request the same data.
type CallShape = (Arc<str>, Arc<str>);

#[derive(Default)]
pub(super) struct Rereads {
    /// Recorded calls by id, with their results.
    calls: HashMap<Arc<str>, (CallShape, Incoming)>,
    /// Ids of the results of each recorded reply, by id of the reply.
    steps: HashMap<Arc<str>, Vec<Arc<str>>>,
    /// Id of the last result of each call.
    latest: HashMap<CallShape, Arc<str>>,
    /// Calls that were repeated after one of their facts was last visible.
    made: HashSet<CallShape>,
    /// Re-read with a result that the next request will show: its id and the tool's output.
    coming: Option<(Arc<str>, Arc<str>)>,
    count: u64,
}

impl Rereads {
    pub(super) fn new(path: &Path) -> Self {
        let mut out = Rereads::default();
        for step in path.moves.iter().flat_map(|m| &m.steps) {
            let results = step.results.iter().rev().map(|r| (&r.key, r));
            let results: HashMap<&Arc<str>, &Incoming> = results.collect();
            for call in step.parts.iter().filter_map(Part::as_call) {
                if let Some(result) = results.get(&call.id) {
                    let shape = (call.name.clone(), call.arguments.clone());
                    out.calls.insert(call.id.clone(), (shape, (*result).clone()));
                }
            }
            let results = step.results.iter().map(|r| r.key.clone()).collect();
            out.steps.insert(step.key.clone(), results);
        }
        out
    }

    /// Records that the tools of a recorded reply ran, and returns the ids of their results.
    pub(super) fn ran(&mut self, step: &str) -> Vec<Arc<str>> {
        let results = self.steps.get(step).cloned().unwrap_or_default();
        for id in &results {
            if let Some((call, _)) = self.calls.get(id) {
                self.latest.insert(call.clone(), id.clone());
            }
        }
        results
    }

    /// Records that the result of a call is in the context. If it leaves the context later, that is
    /// another loss.
    pub(super) fn mark_visible(&mut self, call: &str) {
        if self.made.is_empty() {
            return;
        }
        if let Some((call, _)) = self.calls.get(call) {
            self.made.remove(call);
        }
    }

    /// Returns the call to repeat, with its last result. `None` if the call was already repeated
    /// for this loss, was never made, or if its result never contained the lost fact (`carries`).
    pub(super) fn again(&mut self, call: &str, carries: impl Fn(&str) -> bool) -> Option<Reread> {
        let (call, own) = self.calls.get(call)?;
        if !own.parts.first().is_some_and(|p| carries(p.text())) {
            return None;
        }
        let (_, latest) = self.calls.get(self.latest.get(call)?)?;
        let mut result = latest.clone();
        if !self.made.insert(call.clone()) {
            return None;
        }
        self.count += 1;
        let id: Arc<str> = format!("reread_{}", self.count).into();
        result.key = id.clone();
        if let Some(Part::Result { id: of, .. }) = result.parts.first_mut() {
            *of = id.clone();
        }
        let call = ToolCall { id, name: call.0.clone(), arguments: call.1.clone() };
        Some(Reread { call, result })
    }

    /// Records a requested re-read. Its cost appears in the next request.
    pub(super) fn record_result(&mut self, result: &Incoming) {
        let output = result.parts.first().map_or("", Part::text);
        self.coming = Some((result.key.clone(), output.into()));
    }

    /// Returns the number of tokens that a normal request shows of the re-read before it. A product
    /// without tool messages shows the whole result as a part of another text.
    pub(super) fn tokens_shown(&mut self, blocks: &[Arc<Block>]) -> Option<u64> {
        let (id, output) = self.coming.take()?;
        let own = |b: &&Arc<Block>| b.kind != BlockKind::Call && b.call_id() == Some(&id);
        match blocks.iter().rfind(own) {
            Some(b) => Some(o200k(&b.text)),
            None if blocks.iter().any(|b| b.text.contains(&*output)) => Some(o200k(&output)),
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::Path;
    use ctxbench_core::block::{CallRef, Draft, MessageId, Role};

    /// Two reads of the same file, with different content the second time.
    const LINES: &str = r#"{"type":"session","version":1,"id":"s"}
{"type":"user","id":"u1","text":"look"}
{"type":"assistant","id":"a1","calls":[{"id":"c1","name":"read","arguments":"{\"path\":\"a\"}"}]}
{"type":"tool","call_id":"c1","output":"first"}
{"type":"assistant","id":"a2","calls":[{"id":"c2","name":"read","arguments":"{\"path\":\"a\"}"}]}
{"type":"tool","call_id":"c2","output":"second"}
"#;

    fn rereads() -> Rereads {
        let session = ctxbench_scenarios::jsonl::read(LINES.as_bytes(), "s").unwrap().session;
        Rereads::new(&Path::recorded(&session))
    }

    fn returned(again: Option<Reread>) -> Option<String> {
        again.map(|a| a.result.parts[0].text().to_string())
    }

    #[test]
    fn the_latest_version_comes_back() {
        let mut r = rereads();
        assert_eq!(returned(r.again("c1", |_| true)), None, "it was not read yet");
        r.ran("a1");
        assert_eq!(returned(r.again("c1", |_| true)).as_deref(), Some("first"));
        r.ran("a2");
        r.mark_visible("c1");
        assert_eq!(returned(r.again("c1", |_| true)).as_deref(), Some("second"));
    }

    #[test]
    fn what_never_was_in_the_result_is_not_fetched_there() {
        let mut r = rereads();
        r.ran("a1");
        r.ran("a2");
        assert!(r.again("c1", |words| words == "second").is_none(), "the first result lacks it");
        let again = r.again("c1", |words| words == "first");
        assert_eq!(returned(again).as_deref(), Some("second"), "it has been overwritten since");
    }

    #[test]
    fn once_per_loss() {
        let mut r = rereads();
        r.ran("a1");
        assert!(r.again("c1", |_| true).is_some());
        assert!(r.again("c1", |_| true).is_none(), "a second call for the same loss");
        r.ran("a2");
        assert!(r.again("c2", |_| true).is_none(), "repeated call for another fact");
        r.mark_visible("c2");
        assert!(r.again("c1", |_| true).is_some(), "it came back and was lost again");
    }

    #[test]
    fn what_the_product_cut_is_not_charged() {
        let mut r = rereads();
        r.ran("a1");
        let again = r.again("c1", |_| true).unwrap();
        let whole = Incoming::result(&again.call, false, "one two three four five six");
        let call = Some(Arc::new(CallRef { id: whole.key.clone(), name: "read".into() }));
        let cut = Draft { call, ..Draft::text(BlockKind::Output, Role::Tool, "one two") }
            .build(MessageId(9), vec![]);
        r.record_result(&whole);
        assert_eq!(r.tokens_shown(std::slice::from_ref(&cut)), Some(o200k("one two")));
        assert_eq!(r.tokens_shown(&[cut]), None, "it is charged once");
        r.record_result(&whole);
        let text = "read:\none two three four five six";
        let within = Draft::text(BlockKind::User, Role::User, text).build(MessageId(10), vec![]);
        let all = o200k("one two three four five six");
        assert_eq!(r.tokens_shown(&[within]), Some(all), "within another text");
        r.record_result(&whole);
        assert_eq!(r.tokens_shown(&[]), None, "what nobody sent costs nothing");
    }
}
