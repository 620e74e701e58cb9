//! Calls of the program while it answers: completions, token counts, and log messages.

use std::sync::Arc;

use ctxbench_core::block::{Block, BlockKind, Draft, MessageId, Role};
use ctxbench_core::content::Part;
use ctxbench_core::engine::Engine;
use ctxbench_core::host::Event;
use ctxbench_core::model;
use ctxbench_core::request::{ModelError, Phase, Reply, Request};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::protocol::{Collect, Complete, CountTokens, LogMessage, ModelChoice, RpcError, usage};
use super::quotes;
use super::strategy::Exec;

impl Exec {
    pub(super) async fn called(
        &mut self,
        s: &mut Engine,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<Value, RpcError> {
        match method {
            "complete" => {
                let asked = read(params)?;
                self.complete(s, asked).await
            }
            "collect" => {
                let asked = read(params)?;
                self.collect(s, asked).await
            }
            "count_tokens" => {
                self.count(s, &read::<Option<CountTokens>>(params)?.unwrap_or_default())
            }
            "log" => {
                s.note(Event::ProgramLog(read::<LogMessage>(params)?.message));
                Ok(json!({}))
            }
            other => Err(RpcError::no_method(other)),
        }
    }

    async fn complete(&mut self, s: &mut Engine, asked: Complete) -> Result<Value, RpcError> {
        let phase = if asked.background { Phase::Background } else { self.phase };
        let request = self.side_request(s, &asked, phase)?;
        if asked.background {
            let task = s.spawn(&request).await;
            self.tasks.push((task, request));
            return Ok(json!({"task": self.tasks.len() - 1}));
        }
        reply_to_json(s.send(&request).await)
    }

    fn side_request(
        &self,
        s: &Engine,
        asked: &Complete,
        phase: Phase,
    ) -> Result<Request, RpcError> {
        let side = self.side_blocks(&asked.messages).map_err(RpcError::params)?;
        if side.is_empty() {
            return Err(RpcError::params("`messages` is empty"));
        }
        let head = &s.context.blocks()[..self.head];
        let mut blocks: Vec<Arc<Block>> = match &asked.system {
            None | Some(Value::Null | Value::Bool(false)) => vec![],
            Some(Value::Bool(true)) => head.to_vec(),
            Some(Value::String(text)) => {
                let base = Draft::synthetic(BlockKind::Base, Role::System, text.as_str());
                vec![base.build(MessageId(u32::MAX), vec![])]
            }
            Some(_) => return Err(RpcError::params("`system` must be a text, true or absent")),
        };
        let known = self.state.blocks().collect::<Vec<_>>();
        blocks.extend(side.into_iter().map(|b| quotes::with_quotes(b, &known)));
        let mut request = s.summary_request(phase, blocks, asked.tools);
        request.max_tokens = asked.max_tokens;
        if asked.model == ModelChoice::Summary
            && let Ok(small) = model::find(&s.model.weak)
        {
            request.model = Arc::new(small.clone());
        }
        Ok(request)
    }

    async fn collect(&mut self, s: &mut Engine, asked: Collect) -> Result<Value, RpcError> {
        let known = usize::try_from(asked.task).ok().and_then(|i| self.tasks.get(i)).cloned();
        let Some((task, request)) = known else {
            return Err(RpcError::params(format!("unknown task {}", asked.task)));
        };
        match s.collect(task, &request, asked.wait).await {
            None => Ok(json!({"pending": true})),
            Some(result) => reply_to_json(result),
        }
    }

    fn count(&self, s: &Engine, params: &CountTokens) -> Result<Value, RpcError> {
        let tokens = match &params.messages {
            None => {
                let head = s.context.blocks()[..self.head].iter().cloned();
                let blocks: Vec<Arc<Block>> = head.chain(self.state.blocks()).collect();
                s.prompt_tokens(&blocks)
            }
            Some(list) => {
                let side = self.side_blocks(list).map_err(RpcError::params)?;
                let head = s.context.blocks()[..self.head].iter().cloned();
                s.prompt_tokens(&head.chain(side).collect::<Vec<_>>())
            }
        };
        Ok(json!({"tokens": tokens}))
    }
}

fn read<'a, T: serde::Deserialize<'a>>(params: Option<&'a RawValue>) -> Result<T, RpcError> {
    let text = params.map_or("null", RawValue::get);
    serde_json::from_str(text).map_err(|e| RpcError::params(e.to_string()))
}

fn reply_to_json(result: Result<Reply, ModelError>) -> Result<Value, RpcError> {
    let reply = result.map_err(|e| RpcError::model(&e))?;
    let block = |p: &Part| match p {
        Part::Text(text) => Some(json!({"type": "text", "text": text})),
        _ => None,
    };
    let content: Vec<Value> = reply.parts.iter().filter_map(block).collect();
    Ok(json!({"content": content, "usage": usage(&reply.usage), "stop_reason": reply.stop}))
}
