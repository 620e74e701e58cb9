//! Types lines at a prompt, as in a terminal.

use async_trait::async_trait;

use super::{Channel, TurnOutcome, typed};
use crate::drive::agent::Start;
use crate::drive::child::{Child, Patience, Stopped};
use crate::drive::scratch::Scratch;

pub(super) struct LineChannel {
    child: Child,
    sign: String,
    around: Option<[String; 2]>,
    compact: Option<String>,
}

impl LineChannel {
    pub(super) async fn open(
        start: &Start,
        command: &[String],
        scratch: &Scratch,
        patience: Patience,
    ) -> Result<LineChannel, Stopped> {
        let child = Child::start(command, scratch, patience)?;
        let mut lines = LineChannel {
            child,
            sign: start.prompt.clone().unwrap_or_default(),
            around: start.several_lines.clone(),
            compact: start.compact.clone(),
        };
        lines.child.until(&lines.sign).await?;
        Ok(lines)
    }

    async fn typed(&mut self, words: &str) -> Result<TurnOutcome, Stopped> {
        let text = match &self.around {
            Some([before, after]) if words.contains('\n') => {
                // An end mark inside a message would turn the rest into commands.
                let apart: Vec<&str> = words.split(after.as_str()).collect();
                let words = apart.join(" ");
                format!("{before}\n{words}\n{after}\n")
            }
            // Each line is a message.
            _ => format!("{}\n", words.replace(['\r', '\n'], " ")),
        };
        self.child.write(text.as_bytes()).await?;
        self.child.until(&self.sign).await?;
        Ok(TurnOutcome::Over)
    }
}

#[async_trait]
impl Channel for LineChannel {
    async fn send_message(&mut self, words: &str) -> Result<TurnOutcome, Stopped> {
        self.typed(words).await
    }

    async fn compact(
        &mut self,
        instructions: Option<&str>,
    ) -> Result<Option<TurnOutcome>, Stopped> {
        let Some(command) = self.compact.clone() else { return Ok(None) };
        self.typed(&typed(&command, instructions)).await.map(Some)
    }

    async fn end(&mut self) {
        self.child.end().await;
    }
}
