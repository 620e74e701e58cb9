//! One provider for several conversations of an account: its prompt cache serves whatever they have
//! in common.

use std::sync::Arc;

use async_trait::async_trait;
use ctxbench_core::Millis;
use ctxbench_core::request::{ModelError, Reply, Request};
use tokio::sync::Mutex;

use super::{Door, PlannedReply};

/// A door that several conversations go through, one request at a time.
#[derive(Clone)]
pub struct SharedDoor(Arc<Mutex<Box<dyn Door>>>);

impl SharedDoor {
    /// Shares a door.
    pub fn new(door: Box<dyn Door>) -> Self {
        SharedDoor(Arc::new(Mutex::new(door)))
    }
}

#[async_trait]
impl Door for SharedDoor {
    async fn send(
        &mut self,
        request: &Request,
        plan: PlannedReply,
        now: Millis,
    ) -> Result<Reply, ModelError> {
        self.0.lock().await.send(request, plan, now).await
    }

    async fn count(&mut self, request: &Request) -> Option<u64> {
        self.0.lock().await.count(request).await
    }
}
