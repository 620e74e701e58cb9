//! The meter of one session: fed each request with its answer, it knows tokens and dollars per
//! model, lines changed, and time.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use super::edits::{Change, CountedEdit, changed_lines, edit_of};
use ctxbench_core::block::BlockKind;
use ctxbench_core::budget::BudgetSnapshot;
use ctxbench_core::content::{Part, ToolCall};
use ctxbench_core::ledger::{Ledger, ModelTotal};
use ctxbench_core::model;
use ctxbench_core::request::{ModelError, Purpose, Reply, Request, Usage};
use ctxbench_core::session::Millis;

/// On whose behalf a request was made (docs/sources/opentelemetry.md §5, `query_source`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// The agent's own work.
    Main,
    /// That of a subagent.
    Subagent,
    /// Summaries, and keeping the cache warm.
    Auxiliary,
}

impl Source {
    /// The word in metrics.
    pub fn word(self) -> &'static str {
        match self {
            Source::Main => "main",
            Source::Subagent => "subagent",
            Source::Auxiliary => "auxiliary",
        }
    }
}

/// One answered request.
#[derive(Clone, Debug, PartialEq)]
pub struct CallSample {
    /// Model asked.
    pub model: Arc<str>,
    /// On whose behalf.
    pub source: Source,
    /// When it was sent, ms since the start of the session.
    pub at_ms: Millis,
    /// Until the reply was complete, ms.
    pub took_ms: Millis,
    /// Tokens billed.
    pub usage: Usage,
    /// USD; 0 for a model without a price.
    pub cost_usd: f64,
}

/// Calls of one edit tool on files of one language.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EditCount {
    /// The tool.
    pub tool: String,
    /// Extension of the file, or `unknown`.
    pub language: String,
    /// The tool did it; `false` = it answered with an error.
    pub done: bool,
}

struct Pending {
    id: Arc<str>,
    tool: String,
    edit: CountedEdit,
}

/// What is known of one conversation: the main one, or that of a subagent.
#[derive(Default)]
struct Conversation {
    last_call: Option<Usage>,
    /// Edits that were asked for and whose results no request has shown yet.
    pending: Vec<Pending>,
    /// Calls that were counted: a reply that its product dropped comes once more, with the same
    /// ones.
    asked: HashSet<Arc<str>>,
    /// End of the last reply that asked for tools, ms: what follows is their time.
    tools_since: Option<Millis>,
}

/// Tokens, dollars, lines and time of one session.
pub struct SessionMeter {
    window: u64,
    ledger: Ledger,
    calls: Vec<CallSample>,
    main: Conversation,
    agents: BTreeMap<String, Conversation>,
    changed: Change,
    edits: BTreeMap<EditCount, u64>,
    commits: u64,
    pull_requests: u64,
    /// Files whose whole content is known, because it was written here.
    files: HashMap<String, String>,
    api_ms: Millis,
    active_ms: Millis,
    end_ms: Millis,
}

/// Prompt size that status lines warn of, tokens (docs/sources/token-budgeting.md §5.6:
/// `exceeds_200k_tokens`, a fixed threshold).
const LARGE_PROMPT: u64 = 200_000;

impl SessionMeter {
    /// A meter for a session in a window of so many tokens.
    pub fn new(window: u64) -> Self {
        SessionMeter {
            window,
            ledger: Ledger::default(),
            calls: Vec::new(),
            main: Conversation::default(),
            agents: BTreeMap::new(),
            changed: Change::default(),
            edits: BTreeMap::new(),
            commits: 0,
            pull_requests: 0,
            files: HashMap::new(),
            api_ms: 0,
            active_ms: 0,
            end_ms: 0,
        }
    }

    /// A request of the main conversation was answered `took` ms after it was sent at `at` (ms
    /// since the start of the session). Returns the budget after it; `None` when it was refused,
    /// because then nothing was billed.
    pub fn observe(
        &mut self,
        request: &Request,
        result: &Result<Reply, ModelError>,
        at: Millis,
        took: Millis,
    ) -> Option<BudgetSnapshot> {
        self.observe_of(None, request, result, at, took)
    }

    /// The same for a request of a subagent, by its name: what it pays and changes counts, but it
    /// fills a window of its own, and its time is that of the tool call which waits for it.
    pub fn observe_of(
        &mut self,
        agent: Option<&str>,
        request: &Request,
        result: &Result<Reply, ModelError>,
        at: Millis,
        took: Millis,
    ) -> Option<BudgetSnapshot> {
        let sample = request.purpose == Purpose::Sample;
        if sample {
            self.settle(agent, request);
            let since = self.conversation(agent).tools_since.take();
            if agent.is_none() {
                self.active_ms += took + since.map_or(0, |since| at.saturating_sub(since));
            }
        }
        self.end_ms = self.end_ms.max(at.saturating_add(took));
        let reply = result.as_ref().ok()?;
        self.api_ms += took;
        self.ledger.add(request, reply);
        let cost_usd = model::cost_of_reply(&request.model, reply).total();
        let source = match (sample, agent) {
            (false, _) => Source::Auxiliary,
            (true, None) => Source::Main,
            (true, Some(_)) => Source::Subagent,
        };
        self.calls.push(CallSample {
            model: request.model.name.clone(),
            source,
            at_ms: at,
            took_ms: took,
            usage: reply.billed,
            cost_usd,
        });
        if sample {
            self.take_calls(agent, reply);
            let conversation = self.conversation(agent);
            conversation.last_call = Some(reply.usage);
            conversation.tools_since = reply.has_calls().then_some(at.saturating_add(took));
        }
        Some(self.snapshot())
    }

    fn conversation(&mut self, agent: Option<&str>) -> &mut Conversation {
        match agent {
            None => &mut self.main,
            Some(name) => self.agents.entry(name.to_string()).or_default(),
        }
    }

    /// The session is over: edits whose results no request ever showed, because it ended or they
    /// were compacted away, count as done.
    pub fn close(&mut self) {
        let all = std::iter::once(&mut self.main).chain(self.agents.values_mut());
        let left: Vec<Pending> = all.flat_map(|c| std::mem::take(&mut c.pending)).collect();
        for p in left {
            self.apply(p, true);
        }
    }

    /// Notes the edits that a reply asks for. Of its shell commands, commits and pull requests are
    /// counted.
    fn take_calls(&mut self, agent: Option<&str>, reply: &Reply) {
        for part in &reply.parts {
            let Part::Call(ToolCall { id, name, arguments }) = part else { continue };
            if !self.conversation(agent).asked.insert(id.clone()) {
                continue;
            }
            if let Some(edit) = edit_of(name, arguments) {
                self.conversation(agent).pending.push(Pending {
                    id: id.clone(),
                    tool: name.to_string(),
                    edit,
                });
            } else {
                // Shell commands: counted as asked for, since an exit code is not part of every
                // product's results.
                self.commits += u64::from(arguments.contains("git commit"));
                self.pull_requests += u64::from(arguments.contains("gh pr create"));
            }
        }
    }

    /// Counts what calls did whose results the request shows, by what these say; the others go on
    /// waiting.
    fn settle(&mut self, agent: Option<&str>, request: &Request) {
        for p in std::mem::take(&mut self.conversation(agent).pending) {
            let result = request
                .blocks
                .iter()
                .rev()
                .find(|b| b.kind == BlockKind::Output && b.call_id() == Some(&*p.id));
            match result.map(|b| b.is_error) {
                Some(failed) => self.apply(p, !failed),
                None => self.conversation(agent).pending.push(p),
            }
        }
    }

    fn apply(&mut self, p: Pending, done: bool) {
        let path = match &p.edit {
            CountedEdit::Replace { path, .. } | CountedEdit::Write { path, .. } => path.as_deref(),
            CountedEdit::Patch(_) => None,
        };
        let language = path
            .and_then(|p| std::path::Path::new(p).extension()?.to_str())
            .unwrap_or("unknown")
            .to_string();
        *self.edits.entry(EditCount { tool: p.tool, language, done }).or_default() += 1;
        if !done {
            return;
        }
        match p.edit {
            CountedEdit::Patch(c) => self.changed.add(c),
            CountedEdit::Replace { path, pairs } => {
                for (old, new) in &pairs {
                    self.changed.add(changed_lines(old, new));
                    if let Some(text) = path
                        .as_ref()
                        .and_then(|p| self.files.get_mut(p))
                        .filter(|_| !old.is_empty())
                    {
                        *text = text.replacen(old.as_str(), new, 1);
                    }
                }
            }
            CountedEdit::Write { path, text } => {
                let before =
                    path.as_ref().and_then(|p| self.files.get(p)).map_or("", String::as_str);
                self.changed.add(changed_lines(before, &text));
                if let Some(p) = path {
                    self.files.insert(p, text);
                }
            }
        }
    }

    /// The budget now.
    pub fn snapshot(&self) -> BudgetSnapshot {
        let (input, output) = self
            .ledger
            .models()
            .fold((0, 0), |(i, o), (_, t)| (i + t.usage.prompt(), o + t.usage.output));
        BudgetSnapshot {
            cost_usd: self.ledger.cost_usd(),
            duration_ms: self.end_ms,
            total_input: input,
            total_output: output,
            ..BudgetSnapshot::of_window(self.window, self.main.last_call)
        }
    }

    /// Tokens and dollars per model.
    pub fn models(&self) -> impl Iterator<Item = (&str, &ModelTotal)> {
        self.ledger.models()
    }

    /// Every answered request in order.
    pub fn calls(&self) -> &[CallSample] {
        &self.calls
    }

    /// Lines added and removed by edit tools that did their work.
    pub fn changed(&self) -> Change {
        self.changed
    }

    /// Calls of edit tools by tool, language and outcome.
    pub fn edits(&self) -> impl Iterator<Item = (&EditCount, u64)> {
        self.edits.iter().map(|(k, n)| (k, *n))
    }

    /// Calls that ask for a commit.
    pub fn commits(&self) -> u64 {
        self.commits
    }

    /// Calls that ask for a pull request.
    pub fn pull_requests(&self) -> u64 {
        self.pull_requests
    }

    /// Time that requests of every purpose took, ms; those beside the conversation count as well.
    pub fn api_ms(&self) -> Millis {
        self.api_ms
    }

    /// Time in which the agent worked, ms: its requests, and between a reply with calls and the
    /// next request the tools.
    pub fn active_ms(&self) -> Millis {
        self.active_ms
    }

    /// From the start of the session to the end of the last reply, ms.
    pub fn wall_ms(&self) -> Millis {
        self.end_ms
    }

    /// The prompt of the last reply was larger than 200,000 tokens, whatever the window.
    pub fn exceeds_200k(&self) -> bool {
        self.main.last_call.is_some_and(|u| u.prompt() > LARGE_PROMPT)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use ctxbench_core::block::{Block, CallRef, Draft, MessageId, Role};
    use ctxbench_core::request::ErrorKind;
    use ctxbench_core::strategy::{DEFAULT_TTL, default_breakpoints};

    pub(crate) fn block(kind: BlockKind, text: &str) -> Arc<Block> {
        Draft::text(kind, Role::User, text.to_string()).build(MessageId(0), vec![])
    }

    pub(crate) fn request(blocks: Vec<Arc<Block>>) -> Request {
        Request {
            purpose: Purpose::Sample,
            phase: None,
            model: Arc::new(model::find("claude-sonnet-4-6").unwrap().clone()),
            max_tokens: None,
            tools: None,
            breakpoints: default_breakpoints(&blocks),
            blocks,
            ttl: DEFAULT_TTL,
            server_edits: vec![],
            keep_messages: false,
            params: Default::default(),
            thread: None,
        }
    }

    pub(crate) fn reply(usage: Usage, parts: Vec<Part>) -> Result<Reply, ModelError> {
        Ok(Reply { parts, usage, billed: usage, ..Reply::default() })
    }

    fn call(id: &str, name: &str, arguments: &str) -> Part {
        Part::Call(ToolCall { id: id.into(), name: name.into(), arguments: arguments.into() })
    }

    fn result(id: &str, is_error: bool) -> Arc<Block> {
        let call = Arc::new(CallRef { id: id.into(), name: "edit".into() });
        Draft { call: Some(call), is_error, ..Draft::text(BlockKind::Output, Role::Tool, "x") }
            .build(MessageId(0), vec![])
    }

    #[test]
    fn dollars_per_model_by_hand() {
        let mut m = SessionMeter::new(200_000);
        let main = Usage {
            input: 1_000,
            output: 2_000,
            cache_read: 100_000,
            cache_write: 10_000,
            ..Usage::default()
        };
        let after = m.observe(&request(vec![]), &reply(main, vec![]), 5_000, 20_000).unwrap();
        let main_request = request(vec![]);
        let model = main_request.model.named("claude-haiku-4-5");
        let side = Request { purpose: Purpose::Summary, model, ..main_request };
        let small = Usage { input: 50_000, output: 1_000, ..Usage::default() };
        let last = m.observe(&side, &reply(small, vec![]), 30_000, 4_000).unwrap();
        // Sonnet 4.6 (docs/sources/anthropic-api.md §2.6): 1,000×3 + 100,000×0.3 + 10,000×3.75 +
        // 2,000×15 = 100,500 µUSD.
        assert!((after.cost_usd - 0.1005).abs() < 1e-12, "{}", after.cost_usd);
        // Haiku 4.5: 50,000×1 + 1,000×5 = 55,000 µUSD.
        assert!((last.cost_usd - 0.1555).abs() < 1e-12, "{}", last.cost_usd);
        let costs: Vec<(&str, f64)> =
            m.models().map(|(n, t)| (n, (t.cost.total() * 1e6).round())).collect();
        assert_eq!(costs, [("claude-haiku-4-5", 55_000.0), ("claude-sonnet-4-6", 100_500.0)]);
        // The window is that of the conversation: a side request does not fill it. 111,000 of
        // 200,000.
        assert_eq!((last.used, last.remaining, last.percentage), (111_000, 89_000, 55.5));
        assert_eq!(
            (last.total_input, last.total_output, last.duration_ms),
            (161_000, 3_000, 34_000)
        );
        assert_eq!((m.api_ms(), m.wall_ms(), m.active_ms()), (24_000, 34_000, 20_000));
    }

    #[test]
    fn lines_count_when_the_tool_has_done_its_work() {
        let mut m = SessionMeter::new(1_000);
        let edit = |id: &str, old: &str, new: &str| {
            call(
                id,
                "edit_file",
                &serde_json::json!({"path": "src/a.rs", "old": old, "new": new}).to_string(),
            )
        };
        let write = |id: &str, text: &str| {
            call(
                id,
                "write_file",
                &serde_json::json!({"path": "b.md", "content": text}).to_string(),
            )
        };
        let asked = vec![edit("1", "a\nb", "a\nc\nd"), edit("2", "x", "y"), write("3", "1\n2\n3")];
        m.observe(&request(vec![]), &reply(Usage::default(), asked), 0, 1_000);
        assert_eq!(m.changed(), Change::default(), "nothing has run yet");
        let shown = vec![result("1", false), result("2", true), result("3", false)];
        let again =
            vec![write("4", "1\n2\nthree"), call("5", "bash", r#"{"command":"git commit -m x"}"#)];
        m.observe(&request(shown), &reply(Usage::default(), again), 6_000, 1_000);
        // +2 -1 by the first, nothing by the second, which failed, +3 by the third.
        assert_eq!(m.changed(), Change { added: 5, removed: 1 });
        m.close();
        assert_eq!(
            m.changed(),
            Change { added: 6, removed: 2 },
            "one of three known lines was written anew"
        );
        assert_eq!((m.commits(), m.pull_requests()), (1, 0));
        let failed: Vec<u64> = m.edits().filter(|(e, _)| !e.done).map(|(_, n)| n).collect();
        assert_eq!(failed, [1]);
        // 1 s, 5 s of tools, 1 s.
        assert_eq!(m.active_ms(), 7_000);
    }

    #[test]
    fn a_subagent_pays_and_edits_but_fills_its_own_window() {
        let mut m = SessionMeter::new(200_000);
        let edit = |id: &str| {
            vec![call(
                id,
                "edit_file",
                &serde_json::json!({"path": "a.rs", "old": "x", "new": "y"}).to_string(),
            )]
        };
        let usage = |input| Usage { input, ..Usage::default() };
        m.observe(&request(vec![]), &reply(usage(50_000), edit("1")), 0, 1_000);
        m.observe_of(Some("a"), &request(vec![]), &reply(usage(150_000), edit("2")), 1_000, 2_000);
        let last = m
            .observe_of(
                Some("a"),
                &request(vec![result("2", true)]),
                &reply(usage(10_000), vec![]),
                4_000,
                2_000,
            )
            .unwrap();
        assert_eq!((last.used, last.total_input), (50_000, 210_000));
        assert_eq!(
            m.changed(),
            Change::default(),
            "that of the subagent failed, that of the caller is still running"
        );
        m.observe(&request(vec![result("1", false)]), &reply(usage(1), vec![]), 7_000, 1_000);
        assert_eq!(m.changed(), Change { added: 1, removed: 1 });
        // The caller waited from 1 s to 7 s; what was asked of models in that time is not counted
        // twice.
        assert_eq!((m.active_ms(), m.api_ms()), (8_000, 6_000));
        assert_eq!(
            m.calls().iter().map(|c| c.source.word()).collect::<Vec<_>>(),
            ["main", "subagent", "subagent", "main"]
        );
    }

    #[test]
    fn a_reply_that_was_dropped_and_comes_again_counts_once() {
        let mut m = SessionMeter::new(1_000);
        let asked = || {
            let edit = call(
                "1",
                "edit_file",
                &serde_json::json!({"path": "a", "old": "x", "new": "y"}).to_string(),
            );
            reply(
                Usage::default(),
                vec![edit, call("2", "bash", r#"{"command":"git commit -m x"}"#)],
            )
        };
        m.observe(&request(vec![]), &asked(), 0, 1_000);
        m.observe(&request(vec![]), &asked(), 2_000, 1_000);
        assert_eq!(m.changed(), Change::default(), "no result was there yet");
        m.observe(
            &request(vec![result("1", false)]),
            &reply(Usage::default(), vec![]),
            4_000,
            1_000,
        );
        m.close();
        assert_eq!((m.changed(), m.commits()), (Change { added: 1, removed: 1 }, 1));
    }

    #[test]
    fn a_refused_request_costs_nothing() {
        let mut m = SessionMeter::new(1_000);
        let refused = Err(ModelError {
            kind: ErrorKind::RateLimited,
            status: 429,
            code: None,
            message: String::new(),
        });
        assert!(m.observe(&request(vec![]), &refused, 0, 2_000).is_none());
        assert_eq!((m.snapshot().cost_usd, m.api_ms(), m.wall_ms()), (0.0, 0, 2_000));
    }
}
