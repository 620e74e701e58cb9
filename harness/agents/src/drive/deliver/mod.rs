//! Delivers the user's messages to an agent, one file per protocol.

mod acp;
mod app_server;
mod exec;
mod json_rpc;
mod lines;
mod rpc;

use async_trait::async_trait;
use serde_json::Value;

use super::agent::{Deliver, Start};
use super::child::{Child, Patience, Stopped};
use super::scratch::Scratch;
use super::template::Template;

/// Outcome of a turn. An error is the message that the user sees.
pub(super) type TurnOutcome = Result<(), String>;

#[async_trait]
pub(super) trait Channel: Send {
    /// Sends a message of the user and waits for the end of the turn.
    async fn send_message(&mut self, words: &str) -> Result<TurnOutcome, Stopped>;
    /// Requests a compaction. `None` if the protocol has no method for it.
    async fn compact(
        &mut self,
        _instructions: Option<&str>,
    ) -> Result<Option<TurnOutcome>, Stopped> {
        Ok(None)
    }
    /// Ends the conversation.
    async fn end(&mut self);
    /// Returns the protocol messages about compactions, if the protocol has any.
    fn compaction_notes(&mut self) -> Vec<Value> {
        Vec::new()
    }
}

/// Starts the agent.
pub(super) async fn open<'a>(
    start: &'a Start,
    fill: &'a Template,
    scratch: &'a Scratch,
    patience: Patience,
) -> Result<Box<dyn Channel + 'a>, Stopped> {
    if start.deliver == Deliver::Exec {
        return Ok(Box::new(exec::Exec { start, fill, scratch, patience, is_resumed: false }));
    }
    let command: Vec<String> = start.command.iter().map(|a| fill.text(a)).collect();
    let child = Child::start(&command, scratch, patience)?;
    let project = scratch.project().display().to_string();
    Ok(match start.deliver {
        Deliver::Acp => Box::new(acp::Acp::open(child, &project).await?),
        Deliver::AppServer => Box::new(app_server::AppServer::open(child, &project).await?),
        Deliver::Lines => Box::new(lines::LineChannel::open(child, start).await?),
        Deliver::Rpc | Deliver::Exec => Box::new(rpc::Rpc::new(child)),
    })
}

/// Requests a compaction, with the command that a user would type if the protocol has no method.
pub(super) async fn compact(
    channel: &mut dyn Channel,
    start: &Start,
    instructions: Option<&str>,
) -> Result<TurnOutcome, Stopped> {
    if let Some(turn) = channel.compact(instructions).await? {
        return Ok(turn);
    }
    let command = start.compact.as_deref().unwrap_or_default();
    let more = instructions.map(|more| format!(" {more}")).unwrap_or_default();
    channel.send_message(&format!("{command}{more}")).await
}
