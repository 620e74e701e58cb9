//! Types lines at a prompt, as in a terminal.

use async_trait::async_trait;

use super::{Channel, TurnOutcome};
use crate::drive::agent::Start;
use crate::drive::child::{Child, Stopped};

pub(super) struct LineChannel {
    child: Child,
    sign: String,
    around: Option<[String; 2]>,
}

impl LineChannel {
    pub(super) async fn open(mut child: Child, start: &Start) -> Result<LineChannel, Stopped> {
        let sign = start.prompt.clone().unwrap_or_default();
        child.until(&sign).await?;
        Ok(LineChannel { child, sign, around: start.several_lines.clone() })
    }
}

#[async_trait]
impl Channel for LineChannel {
    async fn send_message(&mut self, words: &str) -> Result<TurnOutcome, Stopped> {
        let text = match &self.around {
            Some([before, after]) if words.contains('\n') => {
                // An end mark inside a message would turn the rest into commands.
                let words = words.replace(after.as_str(), " ");
                format!("{before}\n{words}\n{after}\n")
            }
            // Each line is a message.
            _ => format!("{}\n", words.replace(['\r', '\n'], " ")),
        };
        self.child.write(text.as_bytes()).await?;
        self.child.until(&self.sign).await?;
        Ok(Ok(()))
    }

    async fn end(&mut self) {
        self.child.end().await;
    }
}
