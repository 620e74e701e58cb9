//! Questions about a session: its contents, its next message, its rules, and the facts it lost.

use anyhow::{Context, anyhow, bail};
use ctxbench_core::model;
use ctxbench_core::strategy::Standing;
use ctxbench_mock::Transport;
use ctxbench_os::block_on;
use ctxbench_replay::contents::contents;
use ctxbench_replay::next::next_costs;
use ctxbench_replay::point::up_to;
use ctxbench_replay::rules::rule_survival;
use ctxbench_replay::run::Plan;
use ctxbench_replay::{Options, models};
use ctxbench_reports::ReportError;
use ctxbench_reports::record::Results;
use ctxbench_scenarios::Scenario;
use ctxbench_strategies::Spec;

use super::ExplainArgs;
use crate::choice::Choice;
use crate::commands::corpus::{load_each, load_usable};
use crate::commands::report::write_files;
use crate::commands::{print, print_json, specs};

#[derive(clap::Args)]
#[group(multiple = false)]
pub(super) struct Question {
    /// Show the contents of a session's largest prompt, and their cost
    #[arg(long)]
    contents: bool,
    /// Show the cost of a session's next message: continued, compacted, or in a new session
    #[arg(long)]
    next: bool,
    /// Show which rules of a session stay in the context, as recorded and with each strategy
    #[arg(long)]
    rules: bool,
}

impl Question {
    pub(super) fn is_asked(&self) -> bool {
        self.contents || self.next || self.rules
    }
}

/// Answers the question about a session.
pub(super) fn answer(args: &ExplainArgs) -> anyhow::Result<()> {
    ctxbench_os::shutdown::exit_on_signals();
    let mut scenario = load(&args.results.display().to_string())?;
    let id = scenario.id.clone();
    let at = || format!("--at, {id}");
    if args.question.next {
        let specs = strategies(args)?;
        let costs = block_on(next_costs(&scenario, &specs, &Options::default(), args.at))?;
        let costs = costs.with_context(at)?;
        return match args.json {
            true => print_json(&costs),
            false => print(&costs.to_text()),
        };
    }
    if let Some(point) = args.at {
        scenario.session = up_to(&scenario.session, point).with_context(at)?;
    }
    if args.question.contents {
        let Some(found) = contents(&scenario) else {
            bail!("{}: no reply of the main conversation; expected a session with one", id);
        };
        match args.json {
            true => print_json(&found)?,
            false => print(&found.to_text())?,
        }
        let Some(dir) = &args.out else { return Ok(()) };
        return write_files(dir, std::slice::from_ref(&args.results), |files| found.write(files));
    }
    let specs = strategies(args)?;
    let named = args.model.as_deref().map(model::find).transpose()?;
    let model = named.unwrap_or_else(|| models::own(&scenario.session));
    let found = block_on(rule_survival(&scenario, &specs, model, &Options::default()))?;
    match args.json {
        true => print_json(&found),
        false => print(&found.to_text()),
    }
}

/// Replays a session with the strategy of `--strategy`; without one, takes it as recorded. `not_results`
/// says why the path has no results of a run.
pub(super) fn replayed(args: &ExplainArgs, not_results: ReportError) -> anyhow::Result<Results> {
    let name = args.results.display().to_string();
    let all = load_usable(std::slice::from_ref(&name), &Choice::default(), &mut |_| true);
    let scenarios = all.map_err(|e| anyhow!("{not_results}\n  or, as a session: {e:#}"))?;
    let options = Options { transport: Transport::Direct, ..Options::default() };
    let plan = match &args.strategy {
        Some(text) => Plan { scenarios, options, specs: specs::rows(text)?, ..Plan::default() },
        None => Plan { scenarios, ..Plan::default() },
    };
    let runs = if plan.specs.is_empty() { plan.recorded() } else { plan.run(&|_| ()) };
    if runs.is_empty() {
        bail!("{name}: no recording with the provider's counters; add --strategy, such as codex");
    }
    Ok(Results { runs, ..Results::default() })
}

/// Loads a session without the search for facts.
fn load(name: &str) -> anyhow::Result<Scenario> {
    let choice = Choice::default();
    let mut keep = |_, session, ()| (session, ());
    let all = load_each(&[name.to_string()], &choice, &mut |_| true, &|_| (), &mut keep)?;
    match <[_; 1]>::try_from(all) {
        Ok([(mut scenario, ())]) => {
            // Built-in scenarios have facts, which no question here needs.
            scenario.session.facts.clear();
            Ok(scenario)
        }
        Err(all) => Err(super::super::several("explain", name, all.len())),
    }
}

/// Returns the strategy of `--strategy`, or those of all products.
fn strategies(args: &ExplainArgs) -> anyhow::Result<Vec<Spec>> {
    if let Some(text) = &args.strategy {
        return Ok(specs::rows(text)?);
    }
    let is_product = |s: &Spec| s.descriptor.standing == Standing::Contender;
    Ok(Spec::defaults().into_iter().filter(is_product).collect())
}
