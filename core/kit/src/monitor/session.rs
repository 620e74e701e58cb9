//! Tokens, dollars and time of a session, counted request by request.

use ctxbench_core::model;
use ctxbench_core::prelude::*;

/// The origin of a request (docs/sources/opentelemetry.md §5, `query_source`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestSource {
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
    /// Time until the reply was complete, ms.
    pub took_ms: Millis,
    /// Billed tokens.
    pub usage: Usage,
    /// Cost in USD; 0 for a model without a price.
    pub cost_usd: f64,
}

/// Counts tokens, dollars and time of a session.
#[derive(Clone, Debug, Default)]
pub struct SessionMeter {
    /// Context window, tokens.
    pub window: u64,
    /// All answered requests in order.
    pub calls: Vec<CallSample>,
    /// Usage of the last normal reply of the main conversation; `None` before the first.
    pub last_call: Option<Usage>,
    /// The agent's working time in ms: its requests, and the tool time between a reply with calls and
    /// the next request. Subagents work during a tool call.
    pub active_ms: Millis,
    /// Virtual time since the start, ms.
    pub end_ms: Millis,
    /// End of the last reply with tool calls of the main conversation, ms.
    tools_since: Option<Millis>,
}

impl SessionMeter {
    pub fn new(window: u64) -> Self {
        SessionMeter { window, ..SessionMeter::default() }
    }

    /// Records a request of a subagent, or of the main conversation if `agent` is `None`, sent `at` ms
    /// after the start of the session and answered after `took` ms. A subagent's cost counts, but it
    /// has a separate window. A failed request is not billed.
    pub fn observe(
        &mut self,
        agent: Option<&str>,
        request: &Request,
        result: &Result<Reply, ModelError>,
        at: Millis,
        took: Millis,
    ) {
        let end = at.saturating_add(took);
        self.end_ms = self.end_ms.max(end);
        let source = match (request.purpose, agent) {
            (Purpose::Sample, None) => RequestSource::Main,
            (Purpose::Sample, Some(_)) => RequestSource::Subagent,
            _ => RequestSource::Auxiliary,
        };
        if source == RequestSource::Main {
            let since = self.tools_since.take();
            self.active_ms += took + since.map_or(0, |since| at.saturating_sub(since));
        }
        let Ok(reply) = result else { return };
        self.calls.push(CallSample {
            model: request.model.name.clone(),
            source,
            took_ms: took,
            usage: reply.billed,
            cost_usd: model::cost_of_reply(&request.model, reply).total(),
        });
        if source == RequestSource::Main {
            self.last_call = Some(reply.usage);
            self.tools_since = reply.has_calls().then_some(end);
        }
    }

    /// Returns the cost of all requests, USD.
    pub fn cost_usd(&self) -> f64 {
        self.calls.iter().map(|c| c.cost_usd).sum()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use ctxbench_core::block::{Block, BlockKind, Draft, MessageId, Role};
    use ctxbench_core::breakpoints::default_breakpoints;
    use ctxbench_core::content::{Part, ToolCall};

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
        let main_request = request(vec![]);
        let model = main_request.model.named("claude-haiku-4-5");
        let side = Request { purpose: Purpose::Summary, model, ..main_request };
        let small = Usage { input: 50_000, output: 1_000, ..Usage::default() };
        m.observe(None, &side, &reply(small, vec![]), 30_000, 4_000);
        // Sonnet 4.6 (docs/sources/anthropic-api.md §2.6): 1,000×3 + 100,000×0.3 + 10,000×3.75 +
        // 2,000×15 = 100,500 µUSD. Haiku 4.5: 50,000×1 + 1,000×5 = 55,000 µUSD.
        let costs: Vec<f64> = m.calls.iter().map(|c| (c.cost_usd * 1e6).round()).collect();
        assert_eq!(costs, [100_500.0, 55_000.0]);
        assert!((m.cost_usd() - 0.1555).abs() < 1e-12, "{}", m.cost_usd());
        // A side request does not count towards the window or the working time.
        assert_eq!((m.last_call, m.end_ms, m.active_ms), (Some(main), 34_000, 20_000));
        let refused = Err(ModelError::invalid("too fast"));
        m.observe(None, &request(vec![]), &refused, 40_000, 2_000);
        assert_eq!((m.calls.len(), m.end_ms), (2, 42_000), "a failed request costs nothing");
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
        assert_eq!(m.last_call, Some(usage(50_000)));
        m.observe(None, &request(vec![]), &reply(usage(1), vec![]), 7_000, 1_000);
        // The main conversation waited from 1 s to 7 s. Model time in between counts once.
        assert_eq!(m.active_ms, 8_000);
        let sources: Vec<&str> = m.calls.iter().map(|c| c.source.name()).collect();
        assert_eq!(sources, ["main", "subagent", "subagent", "main"]);
    }
}
