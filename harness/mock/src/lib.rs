//! Mock model server: one provider model with two transports, in process and over HTTP.

mod http;
mod pairs;
mod provider;
mod rules;
pub mod summarise;
#[cfg(test)]
mod tests;
mod threads;

use async_trait::async_trait;
use ctxbench_core::{Millis, ModelError, Part, Reply, Request, StopReason};

pub use http::{HttpTransport, ProviderResponder};
pub use provider::{Live, ProviderModel, ProviderOptions};

#[derive(Clone, Debug)]
pub enum PlannedReply {
    Say {
        parts: Vec<Part>,
        stop: StopReason,
        /// Least tokens of the output. More than the parts have is hidden thinking.
        output: u64,
    },
    Summarise,
    /// A refusal. The client interprets it by the provider's message.
    Refuse {
        status: u16,
        /// The provider's code; `None` = the usual one for the status.
        code: Option<String>,
        /// Message in the provider's style.
        message: String,
    },
}

impl PlannedReply {
    /// Plans a reply that stops for its calls, or else ends the turn.
    pub fn with_parts(parts: Vec<Part>) -> PlannedReply {
        PlannedReply::of_size(parts, 0)
    }

    /// Plans such a reply with at least these tokens of output.
    pub fn of_size(parts: Vec<Part>, output: u64) -> PlannedReply {
        let calls = parts.iter().any(|p| matches!(p, Part::Call(_)));
        let stop = if calls { StopReason::ToolUse } else { StopReason::EndTurn };
        PlannedReply::Say { parts, stop, output }
    }
}

#[async_trait]
pub trait Door: Send {
    /// Sends a request at a virtual time.
    async fn send(
        &mut self,
        request: &Request,
        plan: PlannedReply,
        now: Millis,
    ) -> Result<Reply, ModelError>;
    /// Asks the provider to count a request; `None` where it has no such endpoint.
    async fn count(&mut self, request: &Request) -> Option<u64>;
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Transport {
    /// HTTP on loopback, in the provider's wire format.
    #[default]
    Http,
    /// In process, with the same decoded request.
    Direct,
}
