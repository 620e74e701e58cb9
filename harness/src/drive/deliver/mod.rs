//! Delivers the user's messages to an agent, one file per protocol.

mod acp;
mod app_server;
mod exec;
mod lines;
mod rpc;

use async_trait::async_trait;
use serde_json::Value;

use super::agent::{Agent, Deliver};
use super::child::{Patience, Stopped};
use super::scratch::Scratch;
use super::template::Template;

/// Outcome of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TurnOutcome {
    /// The agent waits for the user.
    Over,
    /// It failed with this message for the user.
    Failed(String),
}

#[async_trait]
pub(super) trait Channel {
    /// Sends a message of the user and waits for the end of the turn.
    async fn send_message(&mut self, words: &str) -> Result<TurnOutcome, Stopped>;
    /// Requests a compaction. `None` if the agent cannot be asked for one.
    async fn compact(&mut self, instructions: Option<&str>)
    -> Result<Option<TurnOutcome>, Stopped>;
    /// Ends the conversation.
    async fn end(&mut self);
    /// Returns the protocol messages about compactions, if the protocol has any.
    fn compaction_notes(&mut self) -> Vec<Value> {
        Vec::new()
    }
}

/// Starts the agent.
pub(super) async fn open<'a>(
    agent: &'a Agent,
    fill: &'a Template,
    scratch: &'a Scratch,
    patience: Patience,
) -> Result<Box<dyn Channel + 'a>, Stopped> {
    let command: Vec<String> = agent.start.command.iter().map(|a| fill.text(a)).collect();
    let compact = agent.start.compact.as_deref();
    Ok(match agent.start.deliver {
        Deliver::Acp => Box::new(acp::Acp::open(&command, compact, scratch, patience).await?),
        Deliver::AppServer => {
            Box::new(app_server::AppServer::open(&command, scratch, patience).await?)
        }
        Deliver::Rpc => Box::new(rpc::Rpc::open(&command, scratch, patience)?),
        Deliver::Lines => {
            Box::new(lines::LineChannel::open(&agent.start, &command, scratch, patience).await?)
        }
        Deliver::Exec => Box::new(exec::Exec::new(&agent.start, fill, scratch, patience)),
    })
}

/// Returns the text that a user would type for a compaction.
fn typed(command: &str, instructions: Option<&str>) -> String {
    match instructions {
        None => command.to_string(),
        Some(more) => format!("{command} {more}"),
    }
}
