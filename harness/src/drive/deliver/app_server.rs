//! Codex's app-server: JSON-RPC in lines, without the version
//! (<https://github.com/openai/codex/blob/main/codex-rs/app-server/README.md>).

use async_trait::async_trait;
use serde_json::{Value, json};

use super::acp::words;
use super::{Channel, TurnOutcome};
use crate::drive::child::{Child, Patience, Stopped};
use crate::drive::scratch::Scratch;

pub(super) struct AppServer {
    child: Child,
    thread: Value,
    calls: u64,
}

impl AppServer {
    pub(super) async fn open(
        command: &[String],
        scratch: &Scratch,
        patience: Patience,
    ) -> Result<AppServer, Stopped> {
        let child = Child::start(command, scratch, patience)?;
        let mut server = AppServer { child, thread: Value::Null, calls: 0 };
        let version = env!("CARGO_PKG_VERSION");
        let client = json!({"name": "ctxbench", "title": "ctxbench", "version": version});
        server.request("initialize", json!({"clientInfo": client})).await?;
        server.child.send(&json!({"method": "initialized", "params": {}})).await?;
        let project = scratch.project().display().to_string();
        let new = json!({
            "cwd": project, "approvalPolicy": "never", "sandbox": "danger-full-access",
        });
        server.thread = server.request("thread/start", new).await?["thread"]["id"].clone();
        if !server.thread.is_string() {
            return Err(Stopped("`thread/start` was answered without a thread".into()));
        }
        Ok(server)
    }

    async fn call(&mut self, method: &str, params: Value) -> Result<u64, Stopped> {
        self.calls += 1;
        let call = json!({"id": self.calls, "method": method, "params": params});
        self.child.send(&call).await?;
        Ok(self.calls)
    }

    /// Calls a method that must succeed.
    async fn request(&mut self, method: &str, params: Value) -> Result<Value, Stopped> {
        let id = self.call(method, params).await?;
        loop {
            let message = self.next().await?;
            if message["id"] == id && message.get("method").is_none() {
                return match message.get("error") {
                    None => Ok(message["result"].clone()),
                    Some(e) => {
                        let why = format!("it refuses `{method}`: {}", words(e));
                        Err(self.child.stopped(why).await)
                    }
                };
            }
        }
    }

    /// Returns the next message that is not a question. Questions are declined, since approvals are
    /// off.
    async fn next(&mut self) -> Result<Value, Stopped> {
        loop {
            let message = self.child.receive().await?;
            if message.get("method").is_some() && message.get("id").is_some() {
                let error = json!({"code": -32601, "message": "no user is present"});
                self.child.send(&json!({"id": message["id"], "error": error})).await?;
                continue;
            }
            return Ok(message);
        }
    }

    /// Starts a turn and waits for its end.
    async fn turn(&mut self, method: &str, params: Value) -> Result<TurnOutcome, Stopped> {
        let id = self.call(method, params).await?;
        loop {
            let message = self.next().await?;
            if message["id"] == id
                && let Some(error) = message.get("error")
            {
                return Ok(TurnOutcome::Failed(words(error)));
            }
            if message["method"] == "turn/completed" {
                let error = &message["params"]["turn"]["error"];
                return Ok(match error.is_null() {
                    true => TurnOutcome::Over,
                    false => TurnOutcome::Failed(words(error)),
                });
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
        self.child.end().await;
    }
}
