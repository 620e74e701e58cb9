//! Starts a process for each turn, which resumes the previous one.

use async_trait::async_trait;

use super::{Channel, TurnOutcome};
use crate::drive::agent::Start;
use crate::drive::child::{Child, Patience, Stopped};
use crate::drive::scratch::Scratch;
use crate::drive::template::{Template, replace};

pub(super) struct Exec<'a> {
    pub(super) start: &'a Start,
    pub(super) fill: &'a Template,
    pub(super) scratch: &'a Scratch,
    pub(super) patience: Patience,
    pub(super) is_resumed: bool,
}

#[async_trait]
impl Channel for Exec<'_> {
    async fn send_message(&mut self, words: &str) -> Result<TurnOutcome, Stopped> {
        let resumed = std::mem::replace(&mut self.is_resumed, true);
        let resume = self.start.resume.as_ref().filter(|_| resumed);
        let command = resume.unwrap_or(&self.start.command);
        let filled = |a: &String| replace(&self.fill.text(a), "text", words);
        let command: Vec<String> = command.iter().map(filled).collect();
        let mut child = Child::start(&command, self.scratch, self.patience.clone())?;
        if !self.start.command.iter().any(|a| a.contains("{text}")) {
            child.write(words.as_bytes()).await?;
        }
        child.close_input();
        let code = child.finish().await?;
        if code == 0 {
            return Ok(Ok(()));
        }
        let Stopped(why) = child.stopped(format!("it ended with exit code {code}")).await;
        Ok(Err(why))
    }

    async fn end(&mut self) {}
}
