//! Calls of the program while it answers: completions, token counts, and log messages.

use ctxbench_core::model;
use ctxbench_core::prelude::*;
use ctxbench_core::request::Tools;
use ctxbench_provider::wire;
use ctxbench_util::serde_error;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::protocol::{
    Collect, Complete, CountTokens, LogMessage, ModelChoice, OwnTool, RpcError, ToolChoice, usage,
};
use super::state::Exec;
use crate::quotes;

impl Exec {
    pub(super) async fn called(
        &mut self,
        s: &mut Engine,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<Value, RpcError> {
        match method {
            "complete" => self.complete(s, read(params)?).await,
            "collect" => self.collect(s, read(params)?).await,
            "count_tokens" => {
                self.count(s, read::<Option<CountTokens>>(params)?.and_then(|c| c.messages))
            }
            "log" => {
                s.note(Event::ProgramLog(read::<LogMessage>(params)?.message));
                Ok(json!({}))
            }
            other => Err(RpcError {
                code: -32601,
                message: format!(
                    "unknown method `{other}`; known are complete, collect, count_tokens, log"
                ),
                data: None,
            }),
        }
    }

    async fn complete(&mut self, s: &mut Engine, asked: Complete) -> Result<Value, RpcError> {
        let side = self.side_blocks(&asked.messages).map_err(RpcError::params)?;
        if side.is_empty() {
            return Err(RpcError::params("`messages` is empty"));
        }
        let mut blocks: Vec<Arc<Block>> = match &asked.system {
            None | Some(Value::Null | Value::Bool(false)) => vec![],
            Some(Value::Bool(true)) => s.context.blocks()[..self.head].to_vec(),
            Some(Value::String(text)) => {
                let base = Draft::synthetic(BlockKind::Base, Role::System, text.as_str());
                vec![base.build(MessageId(u32::MAX), vec![])]
            }
            Some(_) => return Err(RpcError::params("`system` must be a text, true or absent")),
        };
        let known = self.state.blocks().collect::<Vec<_>>();
        blocks.extend(side.into_iter().map(|b| quotes::with_quotes(b, &known)));
        let phase = if asked.background { Phase::Background } else { self.phase };
        let tools = matches!(asked.tools, Some(ToolChoice::Session(true)));
        let mut request = s.summary_request(phase, blocks, tools);
        let mut called = None;
        if let Some(ToolChoice::Own(tools)) = asked.tools {
            let wire = wire::for_model(&s.model);
            request.tools = Tools::new(
                &wire.tool_definitions(&tools.iter().map(|t| json!(t)).collect::<Vec<_>>()),
            );
            called = tools.into_iter().next();
            called.iter().try_for_each(|tool| tool.arguments("").map(drop))?;
        }
        request.max_tokens = asked.max_tokens;
        if asked.model == ModelChoice::Summary
            && let Ok(small) = model::find(&s.model.weak)
        {
            request.model = Arc::new(small.clone());
        }
        if asked.background {
            let task = s.spawn(&request).await;
            self.tasks.push((task, request, called));
            return Ok(json!({"task": self.tasks.len() - 1}));
        }
        reply_to_json(s.send(&request).await, called.as_ref())
    }

    async fn collect(&mut self, s: &mut Engine, asked: Collect) -> Result<Value, RpcError> {
        let known = usize::try_from(asked.task).ok().and_then(|i| self.tasks.get(i)).cloned();
        let Some((task, request, called)) = known else {
            return Err(RpcError::params(format!("unknown task {}", asked.task)));
        };
        match s.collect(task, &request, asked.wait).await {
            None => Ok(json!({"pending": true})),
            Some(result) => reply_to_json(result, called.as_ref()),
        }
    }

    fn count(&self, s: &Engine, asked: Option<Vec<Box<RawValue>>>) -> Result<Value, RpcError> {
        let shown = match asked {
            None => self.state.blocks().collect(),
            Some(list) => self.side_blocks(&list).map_err(RpcError::params)?,
        };
        let head = s.context.blocks()[..self.head].iter().cloned();
        Ok(json!({"tokens": s.prompt_tokens(&head.chain(shown).collect::<Vec<_>>())}))
    }
}

fn read<'a, T: serde::Deserialize<'a>>(params: Option<&'a RawValue>) -> Result<T, RpcError> {
    let text = params.map_or("null", RawValue::get);
    serde_json::from_str(text).map_err(|e| RpcError::params(serde_error::in_json(text, &e)))
}

/// Returns the result of `complete`. With a tool of the program, the text is a call of it.
fn reply_to_json(
    result: Result<Reply, ModelError>,
    called: Option<&OwnTool>,
) -> Result<Value, RpcError> {
    let reply = result.map_err(|e| RpcError::model(&e))?;
    let texts = reply.parts.iter().filter_map(Part::as_text);
    let part = |text: &str| match called {
        None => Ok(json!({"type": "text", "text": text})),
        Some(tool) => tool.arguments(text).map(
            |input| json!({"type": "tool_use", "id": "call_1", "name": tool.name, "input": input}),
        ),
    };
    let content = texts.map(part).collect::<Result<Vec<Value>, RpcError>>()?;
    let stop = called.map_or(reply.stop, |_| StopReason::ToolUse);
    Ok(json!({"content": content, "usage": usage(&reply.usage), "stop_reason": stop}))
}
