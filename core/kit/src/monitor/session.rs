//! The meter of a session: counts tokens, dollars and time of every request.

use std::collections::BTreeMap;
use std::sync::Arc;

use ctxbench_core::ledger::Ledger;
use ctxbench_core::request::{ModelError, Purpose, Reply, Request};
use ctxbench_core::usage::Usage;
use ctxbench_core::{Millis, model};

use super::BudgetSnapshot;

/// The origin of a request (docs/sources/opentelemetry.md §5, `query_source`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RequestSource {
    /// The main conversation.
    Main,
    Subagent,
    /// Summaries and requests that keep the cache warm.
    Auxiliary,
}

impl RequestSource {
    /// Returns the name used in metrics.
    pub fn name(self) -> &'static str {
        match self {
            RequestSource::Main => "main",
            RequestSource::Subagent => "subagent",
            RequestSource::Auxiliary => "auxiliary",
        }
    }
}

/// Usage of an answered request.
#[derive(Clone, Debug, PartialEq)]
pub struct CallSample {
    pub model: Arc<str>,
    pub source: RequestSource,
    /// Time of sending, ms since the start of the session.
    pub at_ms: Millis,
    /// Time until the reply was complete, ms.
    pub took_ms: Millis,
    /// Billed tokens.
    pub usage: Usage,
    /// Cost in USD; 0 for a model without a price.
    pub cost_usd: f64,
}

/// State of a conversation: the main one or a subagent's.
#[derive(Default)]
struct ConversationMeter {
    last_call: Option<Usage>,
    /// End of the last reply with tool calls, ms. The time after it is tool time.
    tools_since: Option<Millis>,
}

/// Counts tokens, dollars and time of a session.
pub struct SessionMeter {
    window: u64,
    ledger: Ledger,
    calls: Vec<CallSample>,
    main: ConversationMeter,
    agents: BTreeMap<String, ConversationMeter>,
    api_ms: Millis,
    active_ms: Millis,
    end_ms: Millis,
}

/// Prompt size in tokens that status lines warn about (docs/sources/token-budgeting.md §5.6:
/// `exceeds_200k_tokens`, a fixed threshold).
const LARGE_PROMPT: u64 = 200_000;

impl SessionMeter {
    /// Creates a meter for a session with a window of `window` tokens.
    pub fn new(window: u64) -> Self {
        SessionMeter {
            window,
            ledger: Ledger::default(),
            calls: Vec::new(),
            main: ConversationMeter::default(),
            agents: BTreeMap::new(),
            api_ms: 0,
            active_ms: 0,
            end_ms: 0,
        }
    }

    /// Records a request of a subagent, or of the main conversation if `agent` is `None`, sent `at` ms
    /// after the start of the session and answered after `took` ms. A subagent's cost counts, but it
    /// has a separate window, and its time is part of the tool call that waits for it. A failed
    /// request is not billed.
    pub fn observe(
        &mut self,
        agent: Option<&str>,
        request: &Request,
        result: &Result<Reply, ModelError>,
        at: Millis,
        took: Millis,
    ) {
        let sample = request.purpose == Purpose::Sample;
        if sample {
            let since = self.conversation(agent).tools_since.take();
            if agent.is_none() {
                self.active_ms += took + since.map_or(0, |since| at.saturating_sub(since));
            }
        }
        self.end_ms = self.end_ms.max(at.saturating_add(took));
        let Ok(reply) = result else { return };
        self.api_ms += took;
        self.ledger.add(request, reply);
        let cost_usd = model::cost_of_reply(&request.model, reply).total();
        let source = match (sample, agent) {
            (false, _) => RequestSource::Auxiliary,
            (true, None) => RequestSource::Main,
            (true, Some(_)) => RequestSource::Subagent,
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
            let conversation = self.conversation(agent);
            conversation.last_call = Some(reply.usage);
            conversation.tools_since = reply.has_calls().then_some(at.saturating_add(took));
        }
    }

    fn conversation(&mut self, agent: Option<&str>) -> &mut ConversationMeter {
        match agent {
            None => &mut self.main,
            Some(name) => self.agents.entry(name.to_string()).or_default(),
        }
    }

    /// Returns the current budget.
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

    /// Returns all answered requests in order.
    pub fn calls(&self) -> &[CallSample] {
        &self.calls
    }

    /// Returns the total time of all requests in ms, including background requests.
    pub fn api_ms(&self) -> Millis {
        self.api_ms
    }

    /// Returns the agent's working time in ms: its requests, and the tool time between a reply with
    /// calls and the next request.
    pub fn active_ms(&self) -> Millis {
        self.active_ms
    }

    /// Returns true if the last prompt had more than 200,000 tokens, independent of the window.
    pub fn exceeds_200k(&self) -> bool {
        self.main.last_call.is_some_and(|u| u.prompt() > LARGE_PROMPT)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use ctxbench_core::block::{Block, BlockKind, Draft, MessageId, Role};
    use ctxbench_core::breakpoints::default_breakpoints;
    use ctxbench_core::content::{Part, ToolCall};
    use ctxbench_core::request::ErrorKind;

    pub(crate) fn block(kind: BlockKind, text: &str) -> Arc<Block> {
        Draft::text(kind, Role::User, text.to_string()).build(MessageId(0), vec![])
    }

    pub(crate) fn request(blocks: Vec<Arc<Block>>) -> Request {
        let model = Arc::new(model::find("claude-sonnet-4-6").unwrap().clone());
        let breakpoints = default_breakpoints(&blocks);
        Request { breakpoints, ..Request::new(model, blocks) }
    }

    pub(crate) fn reply(usage: Usage, parts: Vec<Part>) -> Result<Reply, ModelError> {
        Ok(Reply { parts, usage, billed: usage, ..Reply::default() })
    }

    #[test]
    fn observe_adds_up_cost_per_model() {
        let mut m = SessionMeter::new(200_000);
        let main = Usage {
            input: 1_000,
            output: 2_000,
            cache_read: 100_000,
            cache_write: 10_000,
            ..Usage::default()
        };
        m.observe(None, &request(vec![]), &reply(main, vec![]), 5_000, 20_000);
        let after = m.snapshot();
        let main_request = request(vec![]);
        let model = main_request.model.named("claude-haiku-4-5");
        let side = Request { purpose: Purpose::Summary, model, ..main_request };
        let small = Usage { input: 50_000, output: 1_000, ..Usage::default() };
        m.observe(None, &side, &reply(small, vec![]), 30_000, 4_000);
        let last = m.snapshot();
        // Sonnet 4.6 (docs/sources/anthropic-api.md §2.6): 1,000×3 + 100,000×0.3 + 10,000×3.75 +
        // 2,000×15 = 100,500 µUSD.
        assert!((after.cost_usd - 0.1005).abs() < 1e-12, "{}", after.cost_usd);
        // Haiku 4.5: 50,000×1 + 1,000×5 = 55,000 µUSD.
        assert!((last.cost_usd - 0.1555).abs() < 1e-12, "{}", last.cost_usd);
        let costs: Vec<(&str, f64)> =
            m.ledger.models().map(|(n, t)| (n, (t.cost.total() * 1e6).round())).collect();
        assert_eq!(costs, [("claude-haiku-4-5", 55_000.0), ("claude-sonnet-4-6", 100_500.0)]);
        // A side request does not count towards the window: 111,000 of 200,000.
        assert_eq!((last.used, last.remaining, last.percentage), (111_000, 89_000, 55.5));
        assert_eq!(
            (last.total_input, last.total_output, last.duration_ms),
            (161_000, 3_000, 34_000)
        );
        assert_eq!((m.api_ms(), m.end_ms, m.active_ms()), (24_000, 34_000, 20_000));
    }

    #[test]
    fn observe_subagent_counts_cost_but_not_window_or_active_time() {
        let mut m = SessionMeter::new(200_000);
        let usage = |input| Usage { input, ..Usage::default() };
        let call = Part::Call(ToolCall::new("1", "task", "{}"));
        m.observe(None, &request(vec![]), &reply(usage(50_000), vec![call]), 0, 1_000);
        for at in [1_000, 4_000] {
            let result = reply(usage(80_000), vec![]);
            m.observe(Some("a"), &request(vec![]), &result, at, 2_000);
        }
        let last = m.snapshot();
        assert_eq!((last.used, last.total_input), (50_000, 210_000));
        m.observe(None, &request(vec![]), &reply(usage(1), vec![]), 7_000, 1_000);
        // The main conversation waited from 1 s to 7 s. Model time in between counts once.
        assert_eq!((m.active_ms(), m.api_ms()), (8_000, 6_000));
        assert_eq!(
            m.calls().iter().map(|c| c.source.name()).collect::<Vec<_>>(),
            ["main", "subagent", "subagent", "main"]
        );
    }

    #[test]
    fn observe_failed_request_costs_nothing() {
        let mut m = SessionMeter::new(1_000);
        let refused = Err(ModelError {
            kind: ErrorKind::RateLimited,
            status: 429,
            code: None,
            message: String::new(),
        });
        m.observe(None, &request(vec![]), &refused, 0, 2_000);
        assert_eq!((m.snapshot().cost_usd, m.api_ms(), m.end_ms), (0.0, 0, 2_000));
    }
}
