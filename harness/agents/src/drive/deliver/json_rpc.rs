//! JSON-RPC in lines, the basis of two protocols.

use serde_json::{Value, json};

use crate::drive::child::{Child, Stopped};

/// Returns the result for a method that the agent calls, with its parameters. The error is a message
/// for the agent.
type Answer = fn(&str, &Value) -> Result<Value, String>;

/// Calls methods of an agent and answers the methods that it calls.
pub(super) struct JsonRpc {
    pub(super) child: Child,
    /// False if messages have no `jsonrpc` field.
    has_version: bool,
    answer: Answer,
    calls: u64,
}

impl JsonRpc {
    pub(super) fn new(child: Child, has_version: bool, answer: Answer) -> JsonRpc {
        JsonRpc { child, has_version, answer, calls: 0 }
    }

    /// Sends a message.
    pub(super) async fn send(&mut self, mut message: Value) -> Result<(), Stopped> {
        if self.has_version {
            message["jsonrpc"] = "2.0".into();
        }
        self.child.send(&message).await
    }

    /// Calls a method and returns the id of the call.
    pub(super) async fn begin(&mut self, method: &str, params: Value) -> Result<u64, Stopped> {
        self.calls += 1;
        self.send(json!({"id": self.calls, "method": method, "params": params})).await?;
        Ok(self.calls)
    }

    /// Returns the next message that is not a call, after answering calls.
    pub(super) async fn next(&mut self) -> Result<Value, Stopped> {
        loop {
            let message = self.child.receive().await?;
            let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) else {
                return Ok(message);
            };
            let mut answer = json!({"id": id});
            match (self.answer)(method, &message["params"]) {
                Ok(result) => answer["result"] = result,
                Err(why) => answer["error"] = json!({"code": -32601, "message": why}),
            }
            self.send(answer).await?;
        }
    }

    /// Calls a method and returns its result; the inner error is the agent's message.
    pub(super) async fn call(
        &mut self,
        method: &str,
        params: Value,
    ) -> Result<Result<Value, String>, Stopped> {
        let id = self.begin(method, params).await?;
        loop {
            let message = self.next().await?;
            if let Some(outcome) = outcome(&message, id) {
                return Ok(outcome);
            }
        }
    }

    /// Calls a method that must succeed.
    pub(super) async fn request(&mut self, method: &str, params: Value) -> Result<Value, Stopped> {
        match self.call(method, params).await? {
            Ok(result) => Ok(result),
            Err(error) => Err(self.child.stopped(format!("it refuses `{method}`: {error}")).await),
        }
    }
}

/// Returns the outcome of a call if a message answers it.
pub(super) fn outcome(message: &Value, id: u64) -> Option<Result<Value, String>> {
    if message["id"] != id || message.get("method").is_some() {
        return None;
    }
    Some(match message.get("error").filter(|e| !e.is_null()) {
        Some(error) => Err(words(error)),
        None => Ok(message["result"].clone()),
    })
}

/// Returns the message of an error object.
pub(super) fn words(error: &Value) -> String {
    let message = error["message"].as_str().unwrap_or("an error without a message");
    match error.get("data").filter(|d| !d.is_null()) {
        Some(data) => format!("{message} {data}"),
        None => message.to_string(),
    }
}
