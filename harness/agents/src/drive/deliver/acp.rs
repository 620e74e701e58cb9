//! Agent Client Protocol, version 1 (<https://agentclientprotocol.com/protocol/overview>): JSON-RPC
//! 2.0 in lines. The client offers neither files nor terminals, so the agent uses its own tools.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::json_rpc::JsonRpc;
use super::{Channel, TurnOutcome};
use crate::drive::child::{Child, Stopped};

pub(super) struct Acp {
    rpc: JsonRpc,
    session: Value,
}

impl Acp {
    pub(super) async fn open(child: Child, project: &str) -> Result<Acp, Stopped> {
        let mut rpc = JsonRpc::new(child, true, answered);
        let capabilities =
            json!({"fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false});
        let hello = json!({"protocolVersion": 1, "clientCapabilities": capabilities});
        rpc.request("initialize", hello).await?;
        let new = json!({"cwd": project, "mcpServers": []});
        let session = rpc.request("session/new", new).await?["sessionId"].clone();
        if !session.is_string() {
            return Err(Stopped("`session/new` was answered without a `sessionId`".into()));
        }
        Ok(Acp { rpc, session })
    }
}

#[async_trait]
impl Channel for Acp {
    async fn send_message(&mut self, words: &str) -> Result<TurnOutcome, Stopped> {
        let prompt = json!([{"type": "text", "text": words}]);
        let params = json!({"sessionId": self.session, "prompt": prompt});
        let ended = self.rpc.call("session/prompt", params).await?;
        Ok(ended.and_then(|result| match result["stopReason"].as_str() {
            Some("end_turn") | None => Ok(()),
            Some(other) => Err(format!("it stopped: {other}")),
        }))
    }

    async fn end(&mut self) {
        self.rpc.child.end().await;
    }
}

/// Permission requests are allowed; other methods are not offered.
fn answered(method: &str, params: &Value) -> Result<Value, String> {
    if method != "session/request_permission" {
        return Err(format!("no method {method}"));
    }
    let options = params["options"].as_array().map(Vec::as_slice).unwrap_or_default();
    let allows = |o: &&Value| o["kind"].as_str().is_some_and(|k| k.starts_with("allow"));
    let outcome = match options.iter().find(allows).or(options.first()) {
        Some(option) => json!({"outcome": "selected", "optionId": option["optionId"]}),
        None => json!({"outcome": "cancelled"}),
    };
    Ok(json!({"outcome": outcome}))
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
        let answer = answered("session/request_permission", &json!({"options": options}));
        assert_eq!(answer.unwrap()["outcome"]["optionId"], "yes");
        assert!(answered("fs/read_text_file", &json!({"path": "/etc/passwd"})).is_err());
    }
}
