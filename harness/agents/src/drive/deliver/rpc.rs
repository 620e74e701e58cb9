//! pi's `--mode rpc`: commands and events as JSON lines
//! (<https://github.com/earendil-works/pi>, docs of the coding agent).

use async_trait::async_trait;
use serde_json::{Value, json};

use super::{Channel, TurnOutcome};
use crate::drive::child::{Child, Stopped};

pub(super) struct Rpc {
    child: Child,
    calls: u64,
    /// Outcomes of its compactions.
    told: Vec<Value>,
}

impl Rpc {
    pub(super) fn new(child: Child) -> Rpc {
        Rpc { child, calls: 0, told: Vec::new() }
    }

    /// Returns the next message, and keeps the outcome of a compaction without its summary.
    async fn receive(&mut self) -> Result<Value, Stopped> {
        let mut message = self.child.receive().await?;
        if message["type"] == "compaction_end" {
            if let Some(result) = message["result"].as_object_mut() {
                result.remove("summary");
            }
            self.told.push(message.clone());
        }
        Ok(message)
    }

    /// Sends a command and waits for its response.
    async fn command(&mut self, mut command: Value) -> Result<TurnOutcome, Stopped> {
        self.calls += 1;
        let id = format!("c{}", self.calls);
        command["id"] = id.as_str().into();
        self.child.send(&command).await?;
        loop {
            let message = self.receive().await?;
            if message["type"] == "response" && message["id"] == id.as_str() {
                let why = message["error"].as_str().unwrap_or("it did not say why");
                return Ok(if message["success"] == true { Ok(()) } else { Err(why.to_string()) });
            }
        }
    }
}

#[async_trait]
impl Channel for Rpc {
    async fn send_message(&mut self, words: &str) -> Result<TurnOutcome, Stopped> {
        if let Err(why) = self.command(json!({"type": "prompt", "message": words})).await? {
            return Ok(Err(why));
        }
        let mut failed = Ok(());
        loop {
            let message = self.receive().await?;
            match message["type"].as_str() {
                // The agent may retry; only the last result of a turn counts.
                Some("message_end") => {
                    let error = message["message"]["errorMessage"].as_str();
                    failed = error.map_or(Ok(()), |why| Err(why.to_string()));
                }
                Some("agent_settled") => {
                    return Ok(failed);
                }
                _ => {}
            }
        }
    }

    async fn compact(
        &mut self,
        instructions: Option<&str>,
    ) -> Result<Option<TurnOutcome>, Stopped> {
        let mut command = json!({"type": "compact"});
        if let Some(more) = instructions {
            command["customInstructions"] = more.into();
        }
        self.command(command).await.map(Some)
    }

    async fn end(&mut self) {
        self.child.end().await;
    }

    fn compaction_notes(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.told)
    }
}
