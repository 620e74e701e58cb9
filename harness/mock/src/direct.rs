//! The door without a wire: the same decoded request, in process.

use async_trait::async_trait;
use ctxbench_core::Millis;
use ctxbench_core::request::{ModelError, Reply, Request};

use super::{Door, PlannedReply, ProviderModel};

/// Calls the provider model in process.
pub struct DirectTransport {
    provider: ProviderModel,
}

impl DirectTransport {
    pub fn new(provider: ProviderModel) -> Self {
        DirectTransport { provider }
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
        self.provider.answer_request(request, plan, now)
    }

    async fn count(&mut self, request: &Request) -> Option<u64> {
        self.provider.has_counting().then(|| self.provider.count_request(request))
    }
}
