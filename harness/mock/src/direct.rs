//! The door without a wire: the same decoded request, in process.

use std::collections::VecDeque;

use async_trait::async_trait;
use ctxbench_core::Millis;
use ctxbench_core::request::{ModelError, Reply, Request};
use ctxbench_provider::Outline;

use super::{Door, PlannedReply, ProviderModel};

/// Number of conversations that are followed at a time.
const OUTLINES: usize = 2;

/// Calls the provider model in process. A prompt is decoded only where its outline does not decide.
pub struct DirectTransport {
    /// Those of the conversations that asked last, the newest first: a subagent and its caller take
    /// turns.
    outlines: VecDeque<Outline>,
    provider: ProviderModel,
}

impl DirectTransport {
    pub fn new(provider: ProviderModel) -> Self {
        let outlines = (0..OUTLINES).map(|_| Outline::new(provider.wire())).collect();
        DirectTransport { outlines, provider }
    }

    /// Makes the newest outline that of this request.
    fn follow(&mut self, request: &Request) {
        let oldest = self.outlines.len() - 1;
        let at = self.outlines.iter().position(|o| o.begins_like(request)).unwrap_or(oldest);
        if let Some(mut outline) = self.outlines.remove(at) {
            outline.follow(request);
            self.outlines.push_front(outline);
        }
    }
}

#[async_trait]
impl Door for DirectTransport {
    async fn send(
        &mut self,
        request: &Request,
        plan: PlannedReply,
        now: Millis,
    ) -> Result<Reply, ModelError> {
        let plan = if matches!(plan, PlannedReply::Say { .. }) && request.thread.is_none() {
            self.follow(request);
            match self.provider.answer_outline(request, &self.outlines[0], plan, now) {
                Ok(answer) => return answer,
                Err(plan) => plan,
            }
        } else {
            plan
        };
        let prompt = self.provider.wire().prompt_of(request);
        self.provider.answer(prompt, plan, now)
    }

    async fn count(&mut self, request: &Request) -> Option<u64> {
        if !self.provider.has_counting() {
            return None;
        }
        if request.thread.is_none() {
            self.follow(request);
            if let Some(tokens) = self.provider.count_outline(request, &self.outlines[0]) {
                return Some(tokens);
            }
        }
        // Counting is about the whole conversation, whatever the provider keeps of it.
        let whole = Request { thread: None, ..request.clone() };
        Some(self.provider.count(&self.provider.wire().prompt_of(&whole)).0)
    }
}
