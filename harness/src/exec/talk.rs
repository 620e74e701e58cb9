//! Questions to the program, and what it calls back before it answers.

use ctxbench_core::engine::{Engine, Event};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use super::protocol::{Answer, Call, Line, RpcError, clipped};
use super::strategy::Exec;

/// The program failed; it has been noted, and nothing more is asked of it.
#[derive(Debug)]
pub(super) struct Broken;

/// What is wrong with an answer.
pub(super) enum Fault {
    /// The program has said it itself.
    Told(String),
    /// Its last lines may say why.
    Found(String),
}

impl From<String> for Fault {
    fn from(why: String) -> Fault {
        Fault::Found(why)
    }
}

impl Exec {
    /// Asks the program and waits for its answer. What is wrong with it ends the row.
    pub(super) async fn ask<A: DeserializeOwned>(
        &mut self,
        s: &mut Engine,
        method: &'static str,
        params: impl Serialize,
    ) -> Result<A, Broken> {
        match self.answer(s, method, params).await {
            Ok(answer) => Ok(answer),
            Err(why) => Err(self.broken(s, method, why).await),
        }
    }

    /// Notes what was wrong with an answer and ends the program.
    pub(super) async fn broken(
        &mut self,
        s: &mut Engine,
        method: &'static str,
        fault: impl Into<Fault>,
    ) -> Broken {
        let process = self.process.take();
        let (why, words) = match (fault.into(), process) {
            (Fault::Found(why), Some(process)) => (why, process.last_words().await),
            (Fault::Found(why) | Fault::Told(why), _) => (why, String::new()),
        };
        let mut told = format!("the program failed at `{method}`: {why}");
        if !words.is_empty() {
            told = format!("{told}; its last words:\n{words}");
        }
        self.failed = Some(told.clone());
        s.note(Event::StrategyFailed(told));
        Broken
    }

    async fn answer<A: DeserializeOwned>(
        &mut self,
        s: &mut Engine,
        method: &'static str,
        params: impl Serialize,
    ) -> Result<A, Fault> {
        self.asked += 1;
        let id = self.asked;
        let mut next = Some(line(&Call { jsonrpc: "2.0", id, method, params })?);
        self.process()?.begin_answer();
        loop {
            let read = self.process()?.exchange(next.as_deref()).await?;
            let Line { id: of, method: called, params, result, error, .. } = parsed(&read)?;
            if let Some(called) = called {
                let outcome = self.called(s, &called, params.as_deref()).await;
                next = of.map(|of| line(&answer_to(of, outcome))).transpose()?;
                continue;
            }
            if of != Some(Value::from(id)) {
                let of = of.unwrap_or(Value::Null);
                return Err(format!("it answered call {of} and not {id}").into());
            }
            return match (result, error) {
                (_, Some(e)) => {
                    Err(Fault::Told(format!("it says: {} (code {})", e.message, e.code)))
                }
                (Some(result), None) => Ok(read_result(&result)?),
                (None, None) => {
                    Err(Fault::Found("the answer holds neither `result` nor `error`".into()))
                }
            };
        }
    }

    fn process(&mut self) -> Result<&mut super::process::Process, String> {
        self.process.as_mut().ok_or_else(|| "it is not running".into())
    }
}

fn read_result<A: DeserializeOwned>(result: &RawValue) -> Result<A, String> {
    let found = || clipped(result.get());
    serde_json::from_str(result.get())
        .map_err(|e| format!("its answer is not what was asked for: {e}, in {}", found()))
}

fn answer_to(id: Value, outcome: Result<Value, RpcError>) -> Answer {
    let (result, error) = match outcome {
        Ok(result) => (Some(result), None),
        Err(error) => (None, Some(error)),
    };
    Answer { jsonrpc: "2.0", id, result, error }
}

fn line(message: &impl Serialize) -> Result<Vec<u8>, String> {
    let mut line = serde_json::to_vec(message).map_err(|e| e.to_string())?;
    line.push(b'\n');
    Ok(line)
}

fn parsed(read: &[u8]) -> Result<Line, String> {
    let line: Result<Line, _> = serde_json::from_slice(read);
    let text = || clipped(&String::from_utf8_lossy(read));
    match line {
        Ok(line) if line.jsonrpc == "2.0" => Ok(line),
        Ok(line) => Err(format!("expected \"jsonrpc\": \"2.0\", not {:?}", line.jsonrpc)),
        Err(e) => Err(format!(
            "a line of its standard output is not JSON-RPC: {e}; the line: {} (what is for people \
             belongs on standard error)",
            text()
        )),
    }
}
