//! The door without a wire: the prompt that the request's bytes would decode to, in process.

use async_trait::async_trait;
use ctxbench_core::request::{ModelError, Reply, Request};
use ctxbench_core::session::Millis;
use ctxbench_provider::Prompt;

use super::{Door, PlannedReply, ProviderModel};

/// Calls the provider model in process.
pub struct DirectTransport(ProviderModel);

impl DirectTransport {
    /// A door to a provider.
    pub fn new(provider: ProviderModel) -> Self {
        DirectTransport(provider)
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
        let prompt = Prompt::from_block(self.0.wire(), request);
        self.0.answer(prompt, plan, now)
    }

    async fn count(&mut self, request: &Request) -> Option<u64> {
        if !self.0.has_counting() {
            return None;
        }
        // Counting is about the whole conversation, whatever the provider keeps of it.
        let whole = Request { thread: None, ..request.clone() };
        Some(self.0.count(&Prompt::from_block(self.0.wire(), &whole)).0)
    }
}
