//! Starts a process for each turn, which resumes the previous one.

use async_trait::async_trait;

use super::{Channel, TurnOutcome, typed};
use crate::drive::agent::Start;
use crate::drive::child::{Child, Patience, Stopped};
use crate::drive::scratch::Scratch;
use crate::drive::template::{Template, replace};

pub(super) struct Exec<'a> {
    start: &'a Start,
    fill: &'a Template,
    scratch: &'a Scratch,
    patience: Patience,
    turns: u64,
}

impl<'a> Exec<'a> {
    pub(super) fn new(
        start: &'a Start,
        fill: &'a Template,
        scratch: &'a Scratch,
        patience: Patience,
    ) -> Exec<'a> {
        Exec { start, fill, scratch, patience, turns: 0 }
    }

    async fn turn(&mut self, words: &str) -> Result<TurnOutcome, Stopped> {
        let resume = self.start.resume.as_ref().filter(|_| self.turns > 0);
        let command = resume.unwrap_or(&self.start.command);
        self.turns += 1;
        let filled = |a: &String| replace(&self.fill.text(a), "text", words);
        let command: Vec<String> = command.iter().map(filled).collect();
        let mut child = Child::start(&command, self.scratch, self.patience.clone())?;
        if !self.start.command.iter().any(|a| a.contains("{text}")) {
            child.write(words.as_bytes()).await?;
        }
        child.close_input();
        let code = child.finish().await?;
        if code == 0 {
            return Ok(TurnOutcome::Over);
        }
        let Stopped(why) = child.stopped(format!("it ended with exit code {code}")).await;
        Ok(TurnOutcome::Failed(why))
    }
}

#[async_trait]
impl Channel for Exec<'_> {
    async fn send_message(&mut self, words: &str) -> Result<TurnOutcome, Stopped> {
        self.turn(words).await
    }

    async fn compact(
        &mut self,
        instructions: Option<&str>,
    ) -> Result<Option<TurnOutcome>, Stopped> {
        match &self.start.compact {
            None => Ok(None),
            Some(command) => self.turn(&typed(command, instructions)).await.map(Some),
        }
    }

    async fn end(&mut self) {}
}
