//! The context before and after the compactions of a session, block by block.

use ctxbench_core::context_editing::prompt_tokens;
use ctxbench_core::model::{Counting, Model};
use ctxbench_core::prelude::*;
use ctxbench_core::request::Tools;
use ctxbench_provider::wire;
use ctxbench_reports::record::{CompactionRecord, RunRecord, Status};
use ctxbench_scenarios::Scenario;
use ctxbench_session::Entry;
use ctxbench_strategies::Spec;
use ctxbench_strategies::descriptor::ManualCompaction;
use serde::Serialize;
use serde_with::skip_serializing_none;

use crate::exchange::block_name;
use crate::options::Options;
use crate::point::{CutPoint, NoSuchPoint, up_to};
use crate::recording;
use crate::replay::replay_in_full;

/// The context before and after one compaction.
#[derive(Clone, Debug, Serialize)]
pub struct CompactionLayout {
    /// Name that the product gives to the mechanism.
    pub mechanism: String,
    pub phase: Phase,
    /// Index of the request that follows the compaction.
    pub before_request: u64,
    pub before_tokens: u64,
    pub after_tokens: u64,
    /// Cost, waiting time and effect on facts. `None` = not measured, because the compaction was
    /// not part of the main conversation.
    pub measured: Option<Measured>,
    pub before: Vec<ContextBlock>,
    pub after: Vec<ContextBlock>,
}

/// Measurements of one compaction.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    pub summary_tokens: u64,
    /// Cost of the compaction's own requests, USD.
    pub cost_usd: f64,
    /// Time in ms that the user waited for the compaction, modelled.
    pub blocked_ms: u64,
    /// Number of facts that were verbatim in the context before and are in no block after.
    pub facts_lost: u64,
    /// Number of lost facts that the summary mentions.
    pub facts_carried: u64,
}

impl From<&CompactionRecord> for Measured {
    fn from(c: &CompactionRecord) -> Self {
        Measured {
            summary_tokens: c.summary_tokens,
            // A replay has all values; only a recording may lack some.
            cost_usd: c.cost_usd.unwrap_or_default(),
            blocked_ms: c.blocked_ms.unwrap_or_default(),
            facts_lost: c.facts_lost_verbatim.unwrap_or_default(),
            facts_carried: c.facts_carried.unwrap_or_default(),
        }
    }
}

#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ContextBlock {
    pub kind: BlockKind,
    pub role: Role,
    /// Relation of the block to the original message.
    pub form: BlockForm,
    /// Name of the tool, for a call or a result.
    pub tool: Option<String>,
    /// Number of tokens, by the provider's counting.
    pub tokens: u64,
    /// Text of the block; empty for an image or an opaque payload.
    pub text: String,
}

impl ContextBlock {
    fn new(by: &Counting, b: &Block) -> ContextBlock {
        ContextBlock {
            kind: b.kind,
            role: b.role,
            form: b.form,
            tool: b.call.as_ref().map(|c| c.name.to_string()),
            tokens: b.tokens(by),
            text: recording::readable(&b.text).to_string(),
        }
    }

    /// Returns the kind of the block, followed by its form unless it is verbatim, such as `output
    /// cleared`.
    pub fn name(&self) -> String {
        block_name(self.kind, self.form)
    }
}

#[skip_serializing_none]
#[derive(Clone, Debug, Serialize)]
pub struct StrategyCompactions {
    pub strategy: String,
    /// Reason why there are none, or a note on those of a request.
    pub why: Option<String>,
    /// Number of the strategy's own compactions before the requested one.
    pub before_it: Option<u64>,
    /// The strategy's own compactions, or those that the request caused. If a strategy has no such
    /// command, the compactions that it made by itself until then.
    pub compactions: Vec<CompactionLayout>,
}

/// Returns the compactions of a session under a strategy. With `asked`, the session runs up to a
/// point, where the user asks for a compaction with these instructions.
pub async fn compactions(
    scenario: &Scenario,
    spec: &Spec,
    model: &Model,
    options: &Options,
    asked: Option<(CutPoint, Option<&str>)>,
) -> Result<StrategyCompactions, NoSuchPoint> {
    let found = |why: Option<String>, before_it: Option<u64>, compactions| StrategyCompactions {
        strategy: spec.label(),
        why,
        before_it,
        compactions,
    };
    if let Some(why) = spec.unfit(model) {
        return Ok(found(Some(why.to_string()), None, vec![]));
    }
    let Some((point, instructions)) = asked else {
        let (own, record) = run(scenario, spec, model, options).await;
        let nothing = || own.is_empty().then(|| "it compacts nothing here".to_string());
        let why = record.error.filter(|_| record.status == Status::Error).or_else(nothing);
        return Ok(found(why, None, own));
    };
    let mut until = scenario.clone();
    until.session = up_to(&scenario.session, point)?;
    let (own, record) = run(&until, spec, model, options).await;
    let before_it = Some(own.len() as u64);
    if record.status != Status::Completed {
        let why = record.error.unwrap_or_else(|| "it did not get there".into());
        return Ok(found(Some(format!("it did not get there: {why}")), before_it, vec![]));
    }
    if !spec.descriptor.manual.exists() {
        let why = match own.len() {
            0 => "it cannot be asked for a compaction, and made none by itself",
            _ => "it cannot be asked for a compaction; made by itself",
        };
        return Ok(found(Some(why.into()), before_it, own));
    }
    let unheard = instructions.is_some() && spec.descriptor.manual == ManualCompaction::Plain;
    let instructions = instructions.map(str::to_string);
    until.session.entries.push(Entry::Compact { instructions, at: None });
    let (mut all, record) = run(&until, spec, model, options).await;
    // Both runs are the same up to the command.
    let caused = all.split_off(own.len().min(all.len()));
    let why = match record.error.or(record.note) {
        _ if !caused.is_empty() => unheard
            .then(|| "its command takes no instructions; this is what it does without".to_string()),
        Some(why) => Some(format!("nothing was compacted: {why}")),
        None => Some("it found nothing to compact".into()),
    };
    Ok(found(why, before_it, caused))
}

async fn run(
    scenario: &Scenario,
    spec: &Spec,
    model: &Model,
    options: &Options,
) -> (Vec<CompactionLayout>, RunRecord) {
    let full = replay_in_full(scenario, spec, model, options).await;
    let by = crate::recording::counting(&scenario.session, model, options.calibrate)
        .scaled(scenario.scale);
    let model = Model { counting: by, ..model.clone() };
    let record = full.replayed.record;
    let mut measured = record.compactions.iter();
    let mut out = Vec::new();
    for e in &full.events {
        if let Event::Compaction { mechanism, phase, before, after, .. } = &e.event {
            let pieces =
                |all: &[Arc<Block>]| all.iter().map(|b| ContextBlock::new(&by, b)).collect();
            out.push(CompactionLayout {
                mechanism: (*mechanism).to_string(),
                phase: *phase,
                before_request: e.before_request,
                before_tokens: prompt_tokens(&model, &[], before),
                after_tokens: prompt_tokens(&model, &[], after),
                measured: measured.next().map(Measured::from),
                before: pieces(before),
                after: pieces(after),
            });
        }
    }
    (out, record)
}

/// Returns the tokens of the tool definitions, which every prompt of the main conversation contains
/// in addition to its blocks.
pub fn tools_tokens(scenario: &Scenario, model: &Model, options: &Options) -> u64 {
    let by = crate::recording::counting(&scenario.session, model, options.calibrate)
        .scaled(scenario.scale);
    let mut all = scenario.session.entries.iter().rev();
    let main = all.find_map(|e| match e {
        Entry::Tools { definitions, agent: None, .. } => Some(definitions),
        _ => None,
    });
    let tools = main.and_then(|d| Tools::new(&wire::for_model(model).tool_definitions(d)));
    tools.map_or(0, |t| t.tokens(&by))
}
