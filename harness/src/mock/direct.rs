//! The door without a wire: the same decoded request, in process.

use async_trait::async_trait;
use ctxbench_core::request::{ModelError, Reply, Request};
use ctxbench_core::session::Millis;
use ctxbench_provider::Prompt;

use super::{Door, PlannedReply, ProviderModel};

/// Calls the provider model in process.
pub struct DirectDoor {
    provider: ProviderModel,
    counting: bool,
}

impl DirectDoor {
    /// A door to a provider; `counting` = the model has a counting endpoint.
    pub fn new(provider: ProviderModel, counting: bool) -> Self {
        DirectDoor { provider, counting }
    }
}

#[async_trait]
impl Door for DirectDoor {
    async fn send(
        &mut self,
        request: &Request,
        plan: PlannedReply,
        now: Millis,
    ) -> Result<Reply, ModelError> {
        let prompt = Prompt::of(self.provider.wire(), request);
        self.provider.answer(prompt, plan, now)
    }

    async fn count(&mut self, request: &Request) -> Option<u64> {
        // Counting is about the whole conversation, whatever the provider keeps of it.
        let whole = Request { thread: None, ..request.clone() };
        self.counting.then(|| self.provider.count(&Prompt::of(self.provider.wire(), &whole)).0)
    }
}
