//! Delivers the user's messages to an agent, over one of five protocols.

use serde_json::{Value, json};

use super::agent::{Deliver, Start, TEXT};
use super::child::{Child, Patience, Stopped};
use super::scratch::Scratch;
use super::template::Template;

/// Outcome of a turn. An error is the message that the user sees.
pub(super) type TurnOutcome = Result<(), String>;

/// A conversation with an agent.
pub(super) struct Channel<'a> {
    start: &'a Start,
    protocol: Protocol<'a>,
    /// Protocol messages about compactions, if the protocol has any.
    pub(super) compaction_notes: Vec<Value>,
}

enum Protocol<'a> {
    /// A process for each turn, which resumes the previous one.
    Exec { fill: Template, scratch: &'a Scratch, patience: Patience, is_resumed: bool },
    /// Lines typed at a prompt, as in a terminal.
    Lines { child: Child, prompt: &'a str },
    /// Agent Client Protocol, version 1 (<https://agentclientprotocol.com/protocol/overview>). The
    /// client offers neither files nor terminals, so the agent uses its own tools.
    Acp { rpc: JsonRpc, session: Value },
    /// Codex's app-server
    /// (<https://github.com/openai/codex/blob/main/codex-rs/app-server/README.md>).
    AppServer { rpc: JsonRpc, thread: Value },
    /// pi's `--mode rpc`: commands and events as JSON lines
    /// (<https://github.com/earendil-works/pi>, docs of the coding agent).
    Rpc { child: Child, calls: u64 },
}

impl<'a> Channel<'a> {
    pub(super) async fn open(
        start: &'a Start,
        fill: &'a Template,
        scratch: &'a Scratch,
        patience: Patience,
    ) -> Result<Channel<'a>, Stopped> {
        let project = scratch.project().display().to_string();
        let child = |patience| {
            let command: Vec<String> = start.command.iter().map(|a| fill.text(a)).collect();
            Child::start(&command, scratch, patience)
        };
        let protocol = match start.deliver {
            Deliver::Exec => {
                Protocol::Exec { fill: fill.clone(), scratch, patience, is_resumed: false }
            }
            Deliver::Rpc => Protocol::Rpc { child: child(patience)?, calls: 0 },
            Deliver::Lines => {
                let mut child = child(patience)?;
                let prompt = start.prompt.as_deref().unwrap_or_default();
                child.until(prompt).await?;
                Protocol::Lines { child, prompt }
            }
            Deliver::Acp => {
                let mut rpc = JsonRpc { child: child(patience)?, is_acp: true, calls: 0 };
                let files = json!({"readTextFile": false, "writeTextFile": false});
                let capabilities = json!({"fs": files, "terminal": false});
                let hello = json!({"protocolVersion": 1, "clientCapabilities": capabilities});
                rpc.request("initialize", hello).await?;
                if let Some(method) = &start.authenticate {
                    rpc.request("authenticate", json!({"methodId": method})).await?;
                }
                let new = json!({"cwd": project, "mcpServers": []});
                let session = rpc.request("session/new", new).await?["sessionId"].clone();
                Protocol::Acp { session: an_id("session/new", session)?, rpc }
            }
            Deliver::AppServer => {
                let mut rpc = JsonRpc { child: child(patience)?, is_acp: false, calls: 0 };
                let version = env!("CARGO_PKG_VERSION");
                let client = json!({"name": "ctxbench", "title": "ctxbench", "version": version});
                rpc.request("initialize", json!({"clientInfo": client})).await?;
                rpc.send(json!({"method": "initialized", "params": {}})).await?;
                let new = json!({
                    "cwd": project, "approvalPolicy": "never", "sandbox": "danger-full-access",
                });
                let thread = rpc.request("thread/start", new).await?["thread"]["id"].clone();
                Protocol::AppServer { thread: an_id("thread/start", thread)?, rpc }
            }
        };
        Ok(Channel { start, protocol, compaction_notes: vec![] })
    }

    /// Sends a message of the user and waits for the end of the turn.
    pub(super) async fn send_message(&mut self, words: &str) -> Result<TurnOutcome, Stopped> {
        let start = self.start;
        match &mut self.protocol {
            Protocol::Exec { fill, scratch, patience, is_resumed } => {
                let resumed = std::mem::replace(is_resumed, true);
                let command = start.resume.as_ref().filter(|_| resumed).unwrap_or(&start.command);
                // A description places the message where it is no option, and its value has no
                // placeholders.
                let all = fill.clone().with([("text", words.to_string())]);
                let filled: Vec<String> = command.iter().map(|a| all.text(a)).collect();
                let mut child = Child::start(&filled, scratch, patience.clone())?;
                if !command.iter().any(|a| a.contains(TEXT)) {
                    child.write(words.as_bytes()).await?;
                }
                child.close_input();
                let (code, id) = child.finish(start.id.as_deref().filter(|_| !resumed)).await?;
                // A compaction may ask for nothing, a whole drive may not.
                let is_silent = patience.director.lock().exchanges.is_empty();
                if code == 0 && !is_silent {
                    match (id, &start.id) {
                        (Some(id), _) => *fill = fill.clone().with([("id", id)]),
                        (None, Some(before)) if !resumed => {
                            let why = format!("it printed no id after {before:?} (`start.id`)");
                            return Err(child.stopped(why).await);
                        }
                        _ => {}
                    }
                    return Ok(Ok(()));
                }
                let without = if code == 0 { " without a request to its model" } else { "" };
                let why = format!("it ended with exit code {code}{without}");
                let Stopped(why) = child.stopped(why).await;
                Ok(Err(why))
            }
            Protocol::Lines { child, prompt } => {
                let text = match &start.several_lines {
                    Some([before, after]) if words.contains('\n') => {
                        // An end mark inside a message would turn the rest into commands.
                        let words = words.replace(after.as_str(), " ");
                        format!("{before}\n{words}\n{after}\n")
                    }
                    // Each line is a message.
                    _ => format!("{}\n", words.replace(['\r', '\n'], " ")),
                };
                child.write(text.as_bytes()).await?;
                child.until(prompt).await.map(Ok)
            }
            Protocol::Acp { rpc, session } => {
                let prompt = json!([{"type": "text", "text": words}]);
                let params = json!({"sessionId": session, "prompt": prompt});
                let ended = rpc.call("session/prompt", params).await?;
                Ok(ended.and_then(|result| match result["stopReason"].as_str() {
                    Some("end_turn") | None => Ok(()),
                    Some(other) => Err(format!("it stopped: {other}")),
                }))
            }
            Protocol::AppServer { rpc, thread } => {
                let input = json!([{"type": "text", "text": words}]);
                rpc.turn("turn/start", json!({"threadId": thread, "input": input})).await
            }
            Protocol::Rpc { .. } => {
                if let Err(why) = self.command(json!({"type": "prompt", "message": words})).await? {
                    return Ok(Err(why));
                }
                let mut failed = Ok(());
                loop {
                    let message = self.receive().await?;
                    if message["type"] == "agent_settled" {
                        return Ok(failed);
                    }
                    // The agent may retry; only the last result of a turn counts.
                    if message["type"] == "message_end" {
                        let error = message["message"]["errorMessage"].as_str();
                        failed = error.map_or(Ok(()), |why| Err(why.to_string()));
                    }
                }
            }
        }
    }

    /// Requests a compaction, with the command that a user would type if the protocol has no method.
    pub(super) async fn compact(
        &mut self,
        instructions: Option<&str>,
    ) -> Result<TurnOutcome, Stopped> {
        match &mut self.protocol {
            // The method has no parameter for instructions.
            Protocol::AppServer { rpc, thread } => {
                rpc.turn("thread/compact/start", json!({"threadId": thread})).await
            }
            Protocol::Rpc { .. } => {
                let mut command = json!({"type": "compact"});
                if let Some(more) = instructions {
                    command["customInstructions"] = more.into();
                }
                self.command(command).await
            }
            _ => {
                let command = self.start.compact.as_deref().unwrap_or_default();
                let more = instructions.map(|more| format!(" {more}")).unwrap_or_default();
                self.send_message(&format!("{command}{more}")).await
            }
        }
    }

    pub(super) async fn end(&mut self) {
        if let Some(child) = self.child() {
            child.end().await;
        }
    }

    fn child(&mut self) -> Option<&mut Child> {
        match &mut self.protocol {
            Protocol::Exec { .. } => None,
            Protocol::Lines { child, .. } | Protocol::Rpc { child, .. } => Some(child),
            Protocol::Acp { rpc, .. } | Protocol::AppServer { rpc, .. } => Some(&mut rpc.child),
        }
    }

    /// Sends a command of pi and waits for its response.
    async fn command(&mut self, mut command: Value) -> Result<TurnOutcome, Stopped> {
        let Protocol::Rpc { child, calls } = &mut self.protocol else { return Ok(Ok(())) };
        *calls += 1;
        let id = format!("c{calls}");
        command["id"] = id.as_str().into();
        child.send(&command).await?;
        loop {
            let message = self.receive().await?;
            if message["type"] == "response" && message["id"] == id.as_str() {
                let why = message["error"].as_str().unwrap_or("it did not say why");
                return Ok(if message["success"] == true { Ok(()) } else { Err(why.to_string()) });
            }
        }
    }

    /// Returns the next message of pi, and keeps the outcome of a compaction without its summary.
    async fn receive(&mut self) -> Result<Value, Stopped> {
        let Some(child) = self.child() else { return Ok(Value::Null) };
        let mut message = child.receive().await?;
        if message["type"] == "compaction_end" {
            if let Some(result) = message["result"].as_object_mut() {
                result.remove("summary");
            }
            self.compaction_notes.push(message.clone());
        }
        Ok(message)
    }
}

fn an_id(method: &str, id: Value) -> Result<Value, Stopped> {
    match id {
        Value::String(_) => Ok(id),
        _ => Err(Stopped(format!("`{method}` was answered without an id"))),
    }
}

/// JSON-RPC in lines. Calls methods of an agent and answers the methods that it calls.
struct JsonRpc {
    child: Child,
    /// True for ACP. Codex has no `jsonrpc` field.
    is_acp: bool,
    calls: u64,
}

impl JsonRpc {
    async fn send(&mut self, mut message: Value) -> Result<(), Stopped> {
        if self.is_acp {
            message["jsonrpc"] = "2.0".into();
        }
        self.child.send(&message).await
    }

    /// Calls a method and waits for a message in which `end` finds the outcome. The inner error is
    /// the agent's message.
    async fn call_until<T>(
        &mut self,
        method: &str,
        params: Value,
        end: impl Fn(&Value, bool) -> Option<Result<T, String>>,
    ) -> Result<Result<T, String>, Stopped> {
        self.calls += 1;
        let call = self.calls;
        self.send(json!({"id": call, "method": method, "params": params})).await?;
        loop {
            let message = self.child.receive().await?;
            let is_answer = message["id"] == call && message.get("method").is_none();
            if let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) {
                let mut answer = json!({"id": id});
                // Approvals of Codex are off, so its questions are declined.
                match answered(method, &message["params"]).filter(|_| self.is_acp) {
                    Some(result) => answer["result"] = result,
                    None => answer["error"] = json!({"code": -32601, "message": "no such method"}),
                }
                self.send(answer).await?;
            } else if is_answer && !message["error"].is_null() {
                return Ok(Err(error_text(&message["error"])));
            } else if let Some(outcome) = end(&message, is_answer) {
                return Ok(outcome);
            }
        }
    }

    async fn call(
        &mut self,
        method: &str,
        params: Value,
    ) -> Result<Result<Value, String>, Stopped> {
        let result = |m: &Value, is_answer: bool| is_answer.then(|| Ok(m["result"].clone()));
        self.call_until(method, params, result).await
    }

    /// Calls a method that must succeed.
    async fn request(&mut self, method: &str, params: Value) -> Result<Value, Stopped> {
        match self.call(method, params).await? {
            Ok(result) => Ok(result),
            Err(error) => Err(self.child.stopped(format!("it refuses `{method}`: {error}")).await),
        }
    }

    /// Starts a turn of Codex and waits for its end.
    async fn turn(&mut self, method: &str, params: Value) -> Result<TurnOutcome, Stopped> {
        let end = |m: &Value, _| {
            let error = &m["params"]["turn"]["error"];
            let outcome = || if error.is_null() { Ok(()) } else { Err(error_text(error)) };
            (m["method"] == "turn/completed").then(outcome)
        };
        self.call_until(method, params, end).await
    }
}

/// Returns the answer to a method that an agent calls over ACP. Permission requests are allowed;
/// other methods are not offered.
fn answered(method: &str, params: &Value) -> Option<Value> {
    if method != "session/request_permission" {
        return None;
    }
    let options = params["options"].as_array().map(Vec::as_slice).unwrap_or_default();
    let allows = |o: &&Value| o["kind"].as_str().is_some_and(|k| k.starts_with("allow"));
    let outcome = match options.iter().find(allows).or(options.first()) {
        Some(option) => json!({"outcome": "selected", "optionId": option["optionId"]}),
        None => json!({"outcome": "cancelled"}),
    };
    Some(json!({"outcome": outcome}))
}

/// Returns the message of an error object.
fn error_text(error: &Value) -> String {
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
        let answer = answered("session/request_permission", &json!({"options": options}));
        assert_eq!(answer.unwrap()["outcome"]["optionId"], "yes");
        assert!(answered("fs/read_text_file", &json!({"path": "/etc/passwd"})).is_none());
    }
}
