//! The door without a wire: the same decoded request, in process.

use async_trait::async_trait;
use ctxbench_core::Millis;
use ctxbench_core::request::{ModelError, Reply, Request};

use super::{Door, PlannedReply, ProviderModel};

#[async_trait]
impl Door for ProviderModel {
    async fn send(
        &mut self,
        request: &Request,
        plan: PlannedReply,
        now: Millis,
    ) -> Result<Reply, ModelError> {
        self.answer_request(request, plan, now)
    }

    async fn count(&mut self, request: &Request) -> Option<u64> {
        self.has_counting().then(|| self.count_request(request))
    }
}
