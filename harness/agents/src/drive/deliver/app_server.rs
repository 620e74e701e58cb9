//! Codex's app-server: JSON-RPC in lines, without the version
//! (<https://github.com/openai/codex/blob/main/codex-rs/app-server/README.md>).

use async_trait::async_trait;
use serde_json::{Value, json};

use super::json_rpc::{JsonRpc, outcome, words};
use super::{Channel, TurnOutcome};
use crate::drive::child::{Child, Stopped};

pub(super) struct AppServer {
    rpc: JsonRpc,
    thread: Value,
}

impl AppServer {
    pub(super) async fn open(child: Child, project: &str) -> Result<AppServer, Stopped> {
        // Approvals are off, so its questions are declined.
        let mut rpc = JsonRpc::new(child, false, |_, _| Err("no user is present".into()));
        let version = env!("CARGO_PKG_VERSION");
        let client = json!({"name": "ctxbench", "title": "ctxbench", "version": version});
        rpc.request("initialize", json!({"clientInfo": client})).await?;
        rpc.send(json!({"method": "initialized", "params": {}})).await?;
        let new = json!({
            "cwd": project, "approvalPolicy": "never", "sandbox": "danger-full-access",
        });
        let thread = rpc.request("thread/start", new).await?["thread"]["id"].clone();
        if !thread.is_string() {
            return Err(Stopped("`thread/start` was answered without a thread".into()));
        }
        Ok(AppServer { rpc, thread })
    }

    /// Starts a turn and waits for its end.
    async fn turn(&mut self, method: &str, params: Value) -> Result<TurnOutcome, Stopped> {
        let id = self.rpc.begin(method, params).await?;
        loop {
            let message = self.rpc.next().await?;
            if let Some(Err(why)) = outcome(&message, id) {
                return Ok(Err(why));
            }
            if message["method"] == "turn/completed" {
                let error = &message["params"]["turn"]["error"];
                return Ok(if error.is_null() { Ok(()) } else { Err(words(error)) });
            }
        }
    }
}

#[async_trait]
impl Channel for AppServer {
    async fn send_message(&mut self, words: &str) -> Result<TurnOutcome, Stopped> {
        let input = json!([{"type": "text", "text": words}]);
        self.turn("turn/start", json!({"threadId": self.thread, "input": input})).await
    }

    /// The method has no parameter for instructions.
    async fn compact(
        &mut self,
        _instructions: Option<&str>,
    ) -> Result<Option<TurnOutcome>, Stopped> {
        self.turn("thread/compact/start", json!({"threadId": self.thread})).await.map(Some)
    }

    async fn end(&mut self) {
        self.rpc.child.end().await;
    }
}
