//! A look inside: the context before and after each compaction of a session, a line per block.

use std::sync::Arc;

use ctxbench_core::block::{Block, Form};
use ctxbench_core::context_editing::prompt_tokens;
use ctxbench_core::engine::Event;
use ctxbench_core::model::{Counting, Model};
use ctxbench_scenarios::Scenario;
use ctxbench_strategies::Spec;

use crate::replay::{Options, replay_in_full};
use crate::summarise::Summariser;

/// The context before and after one compaction.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Product's name of the mechanism.
    pub mechanism: String,
    /// When.
    pub phase: String,
    /// Number of the next request.
    pub before_request: u64,
    /// Tokens before.
    pub before_tokens: u64,
    /// Tokens after.
    pub after_tokens: u64,
    /// A line per block before.
    pub before: Vec<String>,
    /// A line per block after.
    pub after: Vec<String>,
}

/// Every compaction of a session under a strategy.
pub async fn layouts(
    scenario: &Scenario,
    spec: &Spec,
    model: &Model,
    window: Option<u64>,
    summariser: &Summariser,
) -> Vec<Layout> {
    let options = Options { summariser: summariser.clone(), window, ..Options::default() };
    let events = replay_in_full(scenario, spec, model, &options).await.events;
    let by = &model.counting;
    events
        .iter()
        .filter_map(|e| match &e.event {
            Event::Compaction { mechanism, phase, before, after, .. } => Some(Layout {
                mechanism: (*mechanism).to_string(),
                phase: words(phase),
                before_request: e.before_request,
                before_tokens: prompt_tokens(model, &[], before),
                after_tokens: prompt_tokens(model, &[], after),
                before: before.iter().map(|b| line(by, b)).collect(),
                after: after.iter().map(|b| line(by, b)).collect(),
            }),
            _ => None,
        })
        .collect()
}

/// Kind, form and tokens of a block, and how it begins.
fn line(by: &Counting, b: &Arc<Block>) -> String {
    let form = match b.form {
        Form::Verbatim => "",
        Form::Cleared => " cleared",
        Form::Truncated => " cut",
        Form::Synthetic => " made",
    };
    let start: String =
        b.text.chars().take(60).map(|c| if c.is_control() { ' ' } else { c }).collect();
    let text = format!("{}{form} {} {}", words(&b.kind), b.tokens(by), start);
    text.chars().take(58).collect()
}

/// A name as it stands in files, with spaces.
fn words(name: &impl serde::Serialize) -> String {
    serde_json::to_value(name)
        .ok()
        .and_then(|v| v.as_str().map(|s| s.replace('_', " ")))
        .unwrap_or_default()
}
