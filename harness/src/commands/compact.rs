//! `ctxbench compact`: the context before and after the compactions of a session.

use std::fmt::Write;

use ctxbench_core::model;
use ctxbench_harness::inspect::{Layout, layouts};
use ctxbench_harness::models;
use ctxbench_harness::summarise::Summariser;
use ctxbench_strategies::Spec;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Session, recording, scenario file or built-in scenario
    session: String,
    /// Strategy with settings
    #[arg(long)]
    strategy: String,
    /// Model (default: the one that the session was recorded with, else that of `run`)
    #[arg(long)]
    model: Option<String>,
    /// Context window in tokens, instead of the model's
    #[arg(long, value_parser = super::run::tokens)]
    window: Option<u64>,
}

pub(crate) fn compact(args: &Args) -> anyhow::Result<()> {
    let spec = Spec::parse(&args.strategy)?;
    let scenario = super::load_one("compact", &args.session)?;
    let named = args.model.as_deref().map(model::find).transpose()?;
    let model = named.unwrap_or_else(|| models::own(&scenario.session));
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let found =
        runtime.block_on(layouts(&scenario, &spec, model, args.window, &Summariser::Extractive));
    let mut out = String::new();
    if found.is_empty() {
        let _ = writeln!(out, "{} compacts nothing in {}", spec.label(), scenario.id);
    }
    for l in &found {
        side_by_side(&mut out, l);
    }
    super::print(&out)
}

fn side_by_side(out: &mut String, l: &Layout) {
    let _ = writeln!(
        out,
        "{} ({}), before request {}: {} → {} tokens",
        l.mechanism, l.phase, l.before_request, l.before_tokens, l.after_tokens
    );
    let _ = writeln!(out, "{:<58} | {:<58}", "before", "after");
    for i in 0..l.before.len().max(l.after.len()) {
        let cell = |rows: &[String]| rows.get(i).cloned().unwrap_or_default();
        let _ = writeln!(out, "{:<58} | {:<58}", cell(&l.before), cell(&l.after));
    }
    out.push('\n');
}
