//! Calls to the program, and its calls back before it answers.

use ctxbench_core::prelude::*;
use ctxbench_util::serde_error;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::process::Process;
use super::protocol::{ProgramLine, RpcCall, clipped};
use super::state::Exec;

/// The program failed and is not called again. The error has been recorded.
#[derive(Debug)]
pub(super) struct Broken;

impl Exec {
    /// Calls the program and waits for the answer. An error ends the row.
    pub(super) async fn ask<A: DeserializeOwned>(
        &mut self,
        s: &mut Engine,
        method: &'static str,
        params: impl Serialize,
    ) -> Result<A, Broken> {
        let answer = self.answer(s, method, params).await;
        self.checked(s, method, answer).await
    }

    /// Returns the value of a result. An error at a call is recorded and ends the program.
    pub(super) async fn checked<T>(
        &mut self,
        s: &mut Engine,
        method: &'static str,
        result: Result<T, String>,
    ) -> Result<T, Broken> {
        let why = match result {
            Ok(value) => return Ok(value),
            Err(why) => why,
        };
        let stderr = match self.process.take() {
            Some(process) => process.stderr_tail().await,
            None => String::new(),
        };
        let mut error = format!("the program failed at `{method}`: {why}");
        // A program that answers with its exception may also log it, with the name of its module.
        let is_said = stderr.lines().last().is_none_or(|last| {
            let said = last.split_once(": ").map_or(last, |(_, said)| said);
            why.contains(said.trim())
        });
        if !is_said {
            error = format!("{error}; standard error:\n{stderr}");
        }
        self.failed = Some(error.clone());
        s.note(Event::StrategyFailed(error));
        Err(Broken)
    }

    async fn answer<A: DeserializeOwned>(
        &mut self,
        s: &mut Engine,
        method: &'static str,
        params: impl Serialize,
    ) -> Result<A, String> {
        self.asked += 1;
        let id = self.asked;
        let mut next = Some(line(&RpcCall { jsonrpc: "2.0", id, method, params })?);
        self.process()?.begin_answer();
        loop {
            let read = self.process()?.exchange(next.as_deref()).await?;
            let ProgramLine { id: of, method: called, params, result, error, .. } = parsed(&read)?;
            if let Some(called) = called {
                let outcome = self.called(s, &called, params.as_deref()).await;
                let answer = |id: Value| match outcome {
                    Ok(result) => line(&json!({"jsonrpc": "2.0", "id": id, "result": result})),
                    Err(error) => line(&json!({"jsonrpc": "2.0", "id": id, "error": error})),
                };
                next = of.map(answer).transpose()?;
                continue;
            }
            if of != Some(Value::from(id)) {
                let of = of.unwrap_or(Value::Null);
                return Err(format!("it answered call {of} instead of {id}"));
            }
            return match (result, error) {
                (_, Some(e)) => Err(format!("{} (code {})", e.message, e.code)),
                (Some(result), None) => serde_json::from_str(result.get())
                    .map_err(|e| serde_error::in_json(result.get(), &e)),
                (None, None) => Err("the answer has neither `result` nor `error`".into()),
            };
        }
    }

    fn process(&mut self) -> Result<&mut Process, String> {
        self.process.as_mut().ok_or_else(|| "it is not running".into())
    }
}

fn line(message: &impl Serialize) -> Result<Vec<u8>, String> {
    serde_json::to_vec(message)
        .map(|line| [line, b"\n".to_vec()].concat())
        .map_err(|e| e.to_string())
}

fn parsed(read: &[u8]) -> Result<ProgramLine, String> {
    match serde_json::from_slice::<ProgramLine>(read) {
        Ok(line) if line.jsonrpc == "2.0" => Ok(line),
        Ok(line) => Err(format!("expected \"jsonrpc\": \"2.0\", not {:?}", line.jsonrpc)),
        Err(e) => Err(format!(
            "a line of its standard output is not JSON-RPC: {e}; the line: {} (log to standard \
             error)",
            clipped(&String::from_utf8_lossy(read))
        )),
    }
}
