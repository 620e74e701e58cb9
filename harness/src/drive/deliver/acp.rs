//! Agent Client Protocol, version 1 (<https://agentclientprotocol.com/protocol/overview>): JSON-RPC
//! 2.0 in lines. The client offers neither files nor terminals, so the agent uses its own tools.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::{Channel, TurnOutcome, typed};
use crate::drive::child::{Child, Patience, Stopped};
use crate::drive::scratch::Scratch;

pub(super) struct Acp {
    child: Child,
    session: Value,
    compact: Option<String>,
    calls: u64,
}

impl Acp {
    pub(super) async fn open(
        command: &[String],
        compact: Option<&str>,
        scratch: &Scratch,
        patience: Patience,
    ) -> Result<Acp, Stopped> {
        let child = Child::start(command, scratch, patience)?;
        let compact = compact.map(str::to_string);
        let mut acp = Acp { child, session: Value::Null, compact, calls: 0 };
        let capabilities =
            json!({"fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false});
        let hello = json!({"protocolVersion": 1, "clientCapabilities": capabilities});
        acp.request("initialize", hello).await?;
        let project = scratch.project().display().to_string();
        let new = json!({"cwd": project, "mcpServers": []});
        acp.session = acp.request("session/new", new).await?["sessionId"].clone();
        if !acp.session.is_string() {
            return Err(Stopped("`session/new` was answered without a `sessionId`".into()));
        }
        Ok(acp)
    }

    /// Calls a method that must succeed.
    async fn request(&mut self, method: &str, params: Value) -> Result<Value, Stopped> {
        match self.call(method, params).await? {
            Ok(result) => Ok(result),
            Err(error) => Err(self.child.stopped(format!("it refuses `{method}`: {error}")).await),
        }
    }

    /// Calls a method; an error of the agent is the inner one.
    async fn call(
        &mut self,
        method: &str,
        params: Value,
    ) -> Result<Result<Value, String>, Stopped> {
        self.calls += 1;
        let id = Value::from(self.calls);
        let call = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.child.send(&call).await?;
        loop {
            let message = self.child.receive().await?;
            let theirs = message.get("method").and_then(Value::as_str);
            match (theirs, message.get("id")) {
                (Some(method), Some(id)) => {
                    let answer = answered(method, id, &message["params"]);
                    self.child.send(&answer).await?;
                }
                (None, Some(of)) if *of == id => {
                    return Ok(match message.get("error").filter(|e| !e.is_null()) {
                        Some(error) => Err(words(error)),
                        None => Ok(message["result"].clone()),
                    });
                }
                _ => {}
            }
        }
    }

    async fn prompt(&mut self, words: &str) -> Result<TurnOutcome, Stopped> {
        let prompt = json!([{"type": "text", "text": words}]);
        let params = json!({"sessionId": self.session, "prompt": prompt});
        Ok(match self.call("session/prompt", params).await? {
            Err(why) => TurnOutcome::Failed(why),
            Ok(result) => match result["stopReason"].as_str() {
                Some("end_turn") | None => TurnOutcome::Over,
                Some(other) => TurnOutcome::Failed(format!("it stopped: {other}")),
            },
        })
    }
}

#[async_trait]
impl Channel for Acp {
    async fn send_message(&mut self, words: &str) -> Result<TurnOutcome, Stopped> {
        self.prompt(words).await
    }

    async fn compact(
        &mut self,
        instructions: Option<&str>,
    ) -> Result<Option<TurnOutcome>, Stopped> {
        let Some(command) = self.compact.clone() else { return Ok(None) };
        self.prompt(&typed(&command, instructions)).await.map(Some)
    }

    async fn end(&mut self) {
        self.child.end().await;
    }
}

/// Permission requests are allowed; other methods are not offered.
fn answered(method: &str, id: &Value, params: &Value) -> Value {
    if method != "session/request_permission" {
        let error = json!({"code": -32601, "message": format!("no method {method}")});
        return json!({"jsonrpc": "2.0", "id": id, "error": error});
    }
    let options = params["options"].as_array().map(Vec::as_slice).unwrap_or_default();
    let allows = |o: &&Value| o["kind"].as_str().is_some_and(|k| k.starts_with("allow"));
    let chosen = options.iter().find(allows).or(options.first());
    let outcome = match chosen {
        Some(option) => json!({"outcome": "selected", "optionId": option["optionId"]}),
        None => json!({"outcome": "cancelled"}),
    };
    json!({"jsonrpc": "2.0", "id": id, "result": {"outcome": outcome}})
}

/// Returns the message of an error object.
pub(super) fn words(error: &Value) -> String {
    let message = error["message"].as_str().unwrap_or("an error without a message");
    match error.get("data").filter(|d| !d.is_null()) {
        Some(data) => format!("{message} {data}"),
        None => message.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_are_given_and_nothing_else_is() {
        let options = json!([
            {"optionId": "no", "kind": "reject_once"},
            {"optionId": "yes", "kind": "allow_once"},
        ]);
        let answer =
            answered("session/request_permission", &json!(3), &json!({"options": options}));
        assert_eq!(answer["result"]["outcome"]["optionId"], "yes");
        let answer = answered("fs/read_text_file", &json!("a"), &json!({"path": "/etc/passwd"}));
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32601), &json!("a")));
    }
}
