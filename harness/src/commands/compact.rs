//! `ctxbench compact`: shows the context before and after compactions.

use std::fmt::Write;

use anyhow::Context;
use ctxbench_core::model;
use ctxbench_os::block_on;
use ctxbench_replay::inspect::{
    CompactionLayout, ContextBlock, StrategyCompactions, compactions, tools_tokens,
};
use ctxbench_replay::point::CutPoint;
use ctxbench_replay::{Options, models};
use ctxbench_session::calibration::Calibrate;
use ctxbench_strategies::Spec;
use ctxbench_util::plural::pluralize;
use serde::Serialize;

use super::specs::Chosen;
use super::summarizer::OneSummarizer;

#[derive(clap::Args)]
pub(crate) struct CompactArgs {
    /// Session, recording, scenario file or built-in scenario. Of a recording without --strategy, only
    /// its own product is shown
    session: String,
    #[command(flatten)]
    chosen: Chosen,
    /// End the session at this point and ask for a compaction: turn:N, step:N (a reply with its
    /// results) or a share of the tokens such as 60% (default: show the strategy's own compactions)
    #[arg(long, value_name = "POINT")]
    at: Option<CutPoint>,
    /// Instructions for the compaction
    #[arg(long, value_name = "TEXT", requires = "at")]
    instructions: Option<String>,
    /// Print JSON with all texts
    #[arg(long)]
    json: bool,
    /// Model (default: as for `run`)
    #[arg(long)]
    model: Option<String>,
    /// Context window in tokens (default: the program's for the model)
    #[arg(long, value_parser = super::values::tokens)]
    window: Option<u64>,
    /// Token counting: off, family or recording, as for `run`
    #[arg(long, value_name = "HOW", value_parser = super::values::calibrate)]
    #[arg(default_value = Calibrate::default().word())]
    calibrate: Calibrate,
    #[command(flatten)]
    summarizer: OneSummarizer,
}

/// Output as JSON and as text.
#[derive(Serialize)]
struct Output {
    session: String,
    title: String,
    model: String,
    /// Tokens of the tool definitions. They are part of every prompt, in addition to the blocks.
    tools_tokens: u64,
    /// Point of the requested compaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
    strategies: Vec<StrategyCompactions>,
}

pub(crate) fn compact(args: &CompactArgs) -> anyhow::Result<()> {
    ctxbench_os::shutdown::exit_on_signals();
    let scenario = super::load_one("compact", &args.session)?;
    let mut specs = args.chosen.specs()?;
    // A recording is asked for its own product.
    let source = scenario.session.header.source.as_ref();
    if let Some(source) = source.filter(|_| args.chosen.strategy.is_empty()) {
        let is_own = |s: &Spec| s.descriptor.name == source.format;
        if specs.iter().any(is_own) {
            specs.retain(is_own);
        }
    }
    let named = args.model.as_deref().map(model::find).transpose()?;
    let model = named.unwrap_or_else(|| models::own(&scenario.session));
    let options = Options {
        summariser: args.summarizer.summariser()?,
        window: args.window,
        calibrate: args.calibrate,
        ..Options::default()
    };
    let asked = args.at.map(|point| (point, args.instructions.as_deref()));
    let found = |spec| {
        let found = block_on(compactions(&scenario, spec, model, &options, asked))?;
        found.with_context(|| format!("--at, {}", scenario.id))
    };
    let strategies = specs.iter().map(found).collect::<anyhow::Result<_>>()?;
    let shown = Output {
        session: scenario.id.clone(),
        title: scenario.title.clone(),
        model: model.name.to_string(),
        tools_tokens: tools_tokens(&scenario, model, &options),
        at: args.at.map(|p| p.to_string()),
        instructions: args.instructions.clone(),
        strategies,
    };
    super::print_either(args.json, &shown, || page(&shown))
}

/// Returns the heading of the page.
fn heading(shown: &Output) -> String {
    let mut out = format!("{}: {} ({})", shown.session, shown.title, shown.model);
    if let Some(at) = &shown.at {
        out += &format!(", a compaction asked for at {at}");
    }
    if let Some(words) = &shown.instructions {
        out += &format!(": “{words}”");
    }
    out
}

/// Describes a compaction in a sentence.
fn sentence(l: &CompactionLayout) -> String {
    use ctxbench_replay::spaced_name;
    let mut out = format!(
        "{} ({}), before request {}: {} → {} tokens",
        l.mechanism,
        spaced_name(&l.phase),
        l.before_request,
        l.before_tokens,
        l.after_tokens
    );
    if let Some(m) = &l.measured {
        out += &format!(
            "; summary {} tokens, ${:.4}, {:.1} s; {} lost, {} of them in the summary",
            m.summary_tokens,
            m.cost_usd,
            m.blocked_ms as f64 / 1000.0,
            pluralize(m.facts_lost as usize, "fact"),
            m.facts_carried
        );
    }
    out
}

/// Width of a side, characters: both fit into 80 columns.
const SIDE: usize = 38;

/// Returns the page, one strategy after the other.
fn page(shown: &Output) -> String {
    let tools = format!("tool definitions: {} tokens more", shown.tools_tokens);
    let mut out = format!("{}\n{tools} in every prompt, before and after\n\n", heading(shown));
    for row in &shown.strategies {
        let own = match row.before_it {
            None | Some(0) => String::new(),
            Some(n) => format!(" (compacted {n}× by itself before)"),
        };
        let why = row.why.as_deref().map(|w| format!(": {w}")).unwrap_or_default();
        let _ = writeln!(out, "{}{own}{why}", row.strategy);
        for l in &row.compactions {
            side_by_side(&mut out, l);
        }
        out.push('\n');
    }
    out
}

fn side_by_side(out: &mut String, l: &CompactionLayout) {
    let _ = writeln!(out, "{}", sentence(l));
    let _ = writeln!(out, "{:<SIDE$} | {:<SIDE$}", "before", "after");
    for i in 0..l.before.len().max(l.after.len()) {
        let cell = |all: &[ContextBlock]| all.get(i).map(line).unwrap_or_default();
        let row = format!("{:<SIDE$} | {}", cell(&l.before), cell(&l.after));
        let _ = writeln!(out, "{}", row.trim_end());
    }
}

/// Returns kind, form and tokens of a block, and the beginning of its text.
fn line(p: &ContextBlock) -> String {
    let start = p.text.chars().take(SIDE).map(|c| if c.is_control() { ' ' } else { c });
    let text = format!("{} {} {}", p.name(), p.tokens, start.collect::<String>());
    text.chars().take(SIDE).collect()
}
