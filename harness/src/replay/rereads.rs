//! Fetching again what was lost: once per loss, the latest version, charged as the product cut it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use ctxbench_core::block::{Block, BlockKind};
use ctxbench_core::engine::ToolOutcome;
use ctxbench_core::request::ReplyPart;
use ctxbench_core::tokens::o200k;

use super::path::Path;

/// A call that the agent would make to see again what it lost.
#[derive(Clone, Debug)]
pub(super) struct Again {
    pub(super) id: Arc<str>,
    pub(super) name: Arc<str>,
    pub(super) arguments: Arc<str>,
    pub(super) outcome: ToolOutcome,
}

/// A call as the model wrote it; two equal ones ask for the same thing.
type Call = (Arc<str>, Arc<str>);

pub(super) struct Rereads {
    /// Recorded calls by their id.
    calls: HashMap<Arc<str>, Call>,
    /// Ids of the calls of every recorded reply, with what they returned.
    steps: HashMap<Arc<str>, Vec<ToolOutcome>>,
    /// What a call returned last.
    latest: HashMap<Call, ToolOutcome>,
    /// Calls made again since a fact of theirs was last seen.
    made: HashSet<Call>,
    /// A re-read whose result the next request will show: its id and what the tool returned.
    coming: Option<(Arc<str>, Arc<str>)>,
    count: u64,
    /// Tokens of re-read results as requests showed them.
    pub(super) tokens: u64,
}

impl Rereads {
    pub(super) fn new(path: &Path) -> Self {
        let mut calls = HashMap::new();
        let mut steps = HashMap::new();
        for step in path.moves.iter().flat_map(|m| &m.steps) {
            for p in &step.parts {
                if let ReplyPart::Call { id, name, arguments } = p {
                    calls.insert(id.clone(), (name.clone(), arguments.clone()));
                }
            }
            steps.insert(step.key.clone(), step.outcomes.clone());
        }
        Rereads { calls, steps, latest: HashMap::new(), made: HashSet::new(), coming: None, count: 0, tokens: 0 }
    }

    /// The tools of a recorded reply have run.
    pub(super) fn ran(&mut self, step: &str) {
        for o in self.steps.get(step).into_iter().flatten() {
            if let Some(call) = self.calls.get(&o.id) {
                self.latest.insert(call.clone(), o.clone());
            }
        }
    }

    /// Ids of the results that followed a recorded reply.
    pub(super) fn results(&self, step: &str) -> impl Iterator<Item = Arc<str>> + '_ {
        self.steps.get(step).into_iter().flatten().map(|o| o.id.clone())
    }

    /// The result of this call is in the context: should it leave, that is another loss.
    pub(super) fn seen(&mut self, call: &str) {
        if let Some(call) = self.calls.get(call) {
            self.made.remove(call);
        }
    }

    /// The same call again, with what it returned last; `None` when it was made for this loss already, or never before.
    pub(super) fn again(&mut self, call: &str) -> Option<Again> {
        let call = self.calls.get(call)?;
        let outcome = self.latest.get(call)?;
        if !self.made.insert(call.clone()) {
            return None;
        }
        self.count += 1;
        let id: Arc<str> = format!("reread_{}", self.count).into();
        let outcome = ToolOutcome { id: id.clone(), ..outcome.clone() };
        Some(Again { id, name: call.0.clone(), arguments: call.1.clone(), outcome })
    }

    /// A re-read was asked for; what it costs shows in the next request.
    pub(super) fn asked(&mut self, outcome: &ToolOutcome) {
        self.coming = Some((outcome.id.clone(), outcome.output.clone().unwrap_or_default()));
    }

    /// A normal request: charges what it shows of the re-read before it. A product without tool messages shows the whole result
    /// within another text.
    pub(super) fn shown(&mut self, blocks: &[Arc<Block>]) {
        let Some((id, output)) = self.coming.take() else { return };
        let own = |b: &&Arc<Block>| b.kind != BlockKind::Call && b.call_id() == Some(&id);
        self.tokens += match blocks.iter().rfind(own) {
            Some(b) => o200k(&b.text),
            None if blocks.iter().any(|b| b.text.contains(&*output)) => o200k(&output),
            None => 0,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::path::{Defaults, Path};
    use ctxbench_core::block::{CallRef, Draft, MessageId, Role};

    /// The same file read twice, with another content the second time.
    const LINES: &str = r#"{"type":"session","version":1,"id":"s"}
{"type":"user","id":"u1","text":"look"}
{"type":"assistant","id":"a1","calls":[{"id":"c1","name":"read","arguments":"{\"path\":\"a\"}"}]}
{"type":"tool","call_id":"c1","output":"first"}
{"type":"assistant","id":"a2","calls":[{"id":"c2","name":"read","arguments":"{\"path\":\"a\"}"}]}
{"type":"tool","call_id":"c2","output":"second"}
"#;

    fn rereads() -> Rereads {
        let session = ctxbench_scenarios::jsonl::read(LINES.as_bytes(), "s").unwrap().session;
        Rereads::new(&Path::of(&session, &Defaults::STATED))
    }

    fn returned(again: Option<Again>) -> Option<String> {
        again.and_then(|a| a.outcome.output).map(|o| o.to_string())
    }

    #[test]
    fn the_latest_version_comes_back() {
        let mut r = rereads();
        assert_eq!(returned(r.again("c1")), None, "it was not read yet");
        r.ran("a1");
        assert_eq!(returned(r.again("c1")).as_deref(), Some("first"));
        r.ran("a2");
        r.seen("c1");
        assert_eq!(returned(r.again("c1")).as_deref(), Some("second"));
    }

    #[test]
    fn once_per_loss() {
        let mut r = rereads();
        r.ran("a1");
        assert!(r.again("c1").is_some());
        assert!(r.again("c1").is_none(), "a second call for the same loss");
        r.ran("a2");
        assert!(r.again("c2").is_none(), "the same call by another fact");
        r.seen("c2");
        assert!(r.again("c1").is_some(), "it came back and was lost anew");
    }

    #[test]
    fn what_the_product_cut_is_not_charged() {
        let mut r = rereads();
        r.ran("a1");
        let again = r.again("c1").unwrap();
        let whole = ToolOutcome { output: Some("one two three four five six".into()), ..again.outcome };
        let call = Some(Arc::new(CallRef { id: whole.id.to_string(), name: "read".into() }));
        let cut = Draft { call, ..Draft::text(BlockKind::Output, Role::Tool, "one two") }.build(MessageId(9), vec![]);
        r.asked(&whole);
        r.shown(std::slice::from_ref(&cut));
        assert_eq!(r.tokens, o200k("one two"));
        r.shown(&[cut]);
        assert_eq!(r.tokens, o200k("one two"), "it is charged once");
        r.asked(&whole);
        r.shown(&[Draft::text(BlockKind::User, Role::User, "read:\none two three four five six").build(MessageId(10), vec![])]);
        assert_eq!(r.tokens, o200k("one two") + o200k("one two three four five six"), "within another text");
        r.asked(&whole);
        r.shown(&[]);
        assert_eq!(r.tokens, o200k("one two") + o200k("one two three four five six"), "what nobody sent costs nothing");
    }
}
