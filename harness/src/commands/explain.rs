//! `ctxbench explain`: shows how a fact was lost, with the text before and after the loss, and answers
//! questions about a session.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use ctxbench_core::model;
use ctxbench_core::strategy::Standing;
use ctxbench_mock::Transport;
use ctxbench_os::block_on;
use ctxbench_replay::contents::contents;
use ctxbench_replay::next::next_costs;
use ctxbench_replay::point::{CutPoint, up_to};
use ctxbench_replay::rules::rule_survival;
use ctxbench_replay::run::Plan;
use ctxbench_replay::{Options, models};
use ctxbench_reports as reports;
use ctxbench_reports::record::{Results, RunRecord};
use ctxbench_reports::{ReportError, ResultsFile, Rows};
use ctxbench_scenarios::Scenario;
use ctxbench_strategies::Spec;

use super::corpus::{load_each, load_usable};
use super::report::write_files;
use super::{print_either, specs};
use crate::choice::Choice;

#[derive(clap::Args)]
#[command(override_usage = "ctxbench explain RESULTS {FACT|--lost}\n       \
                      ctxbench explain SESSION {--lost|--contents|--next|--rules}")]
pub(crate) struct ExplainArgs {
    /// Folder or results.json of a run; for --lost, --contents, --next and --rules a session
    #[arg(value_name = "RESULTS|SESSION")]
    results: PathBuf,
    /// Id of the fact, as in facts.csv
    #[arg(required_unless_present_any = ["lost", "contents", "next", "rules"])]
    fact: Option<String>,
    /// List every need with a lost fact, with the text before and after: of the rows of a run, or of a
    /// session as recorded (with --strategy: of that strategy on it)
    #[arg(long, conflicts_with = "fact")]
    lost: bool,
    #[command(flatten)]
    question: Question,
    /// End the session at this point: turn:N, step:N (a reply with its results) or a share of the
    /// tokens such as 60%
    #[arg(long, value_name = "POINT", requires = "Question")]
    at: Option<CutPoint>,
    /// Folder for contents.csv
    #[arg(short, long, value_name = "DIR", requires = "contents")]
    out: Option<PathBuf>,
    /// Only in this scenario
    #[arg(long, value_name = "ID", conflicts_with = "Question")]
    scenario: Option<String>,
    /// Only with this strategy: its name, or its label with settings
    #[arg(long, value_name = "S")]
    strategy: Option<String>,
    /// Only with this model
    #[arg(long, value_name = "M", conflicts_with_all = ["contents", "next"])]
    model: Option<String>,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// Returns `strategy` itself if the results have this label or name. Otherwise parses it as for
/// `run` and returns its label.
fn label(strategy: &str, results: &Results) -> String {
    let own = |r: &RunRecord| r.strategy.label == strategy || r.strategy.name == strategy;
    match super::specs::parse_one(strategy) {
        Ok(spec) if !results.runs.iter().any(own) => spec.label(),
        _ => strategy.to_string(),
    }
}

/// Reads the results. If a scenario is given, rows of other scenarios are read without details.
fn of_scenario(path: &Path, scenario: Option<&str>) -> Result<Results, ReportError> {
    let file = ResultsFile::open(path)?;
    let mut results = file.head.without_rows();
    file.sessions(&mut |session| {
        let whole = |r: &RunRecord| scenario.is_none_or(|id| r.scenario.id == id);
        let held = |r: &RunRecord| if whole(r) { r.clone() } else { r.clone().digested() };
        results.runs.extend(session.iter().map(held));
        Ok(())
    })?;
    Ok(results)
}

pub(crate) fn explain(args: &ExplainArgs) -> anyhow::Result<()> {
    if args.question.is_asked() {
        return answer(args);
    }
    let results = match of_scenario(&args.results, args.scenario.as_deref()) {
        Err(e) if args.lost => replayed(args, e)?,
        other => other?,
    };
    let strategy = args.strategy.as_deref().map(|s| label(s, &results));
    let filter = reports::Filter {
        scenario: args.scenario.as_deref(),
        strategy: strategy.as_deref(),
        model: args.model.as_deref(),
    };
    let Some(fact) = &args.fact else {
        let lost = reports::lost(&results, filter)?;
        return match args.json {
            true => super::print_data(&reports::lost_to_json(&lost)),
            false => super::print(&reports::lost_to_text(&lost)),
        };
    };
    let found = reports::explain(&results, fact, filter)?;
    match args.json {
        true => super::print_data(&found.to_json()),
        false => super::print(&found.to_text()),
    }
}

#[derive(clap::Args)]
#[group(multiple = false)]
struct Question {
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
    fn is_asked(&self) -> bool {
        self.contents || self.next || self.rules
    }
}

/// Answers the question about a session.
fn answer(args: &ExplainArgs) -> anyhow::Result<()> {
    ctxbench_os::shutdown::exit_on_signals();
    let mut scenario = load(&args.results.display().to_string())?;
    let id = scenario.id.clone();
    let at = || format!("--at, {id}");
    if args.question.next {
        let specs = strategies(args)?;
        let costs = block_on(next_costs(&scenario, &specs, &Options::default(), args.at))?;
        let costs = costs.with_context(at)?;
        return print_either(args.json, &costs, || costs.to_text());
    }
    if let Some(point) = args.at {
        scenario.session = up_to(&scenario.session, point).with_context(at)?;
    }
    if args.question.contents {
        let Some(found) = contents(&scenario) else {
            bail!("{}: no reply of the main conversation; expected a session with one", id);
        };
        print_either(args.json, &found, || found.to_text())?;
        let Some(dir) = &args.out else { return Ok(()) };
        return write_files(dir, std::slice::from_ref(&args.results), |files| found.write(files));
    }
    let specs = strategies(args)?;
    let named = args.model.as_deref().map(model::find).transpose()?;
    let model = named.unwrap_or_else(|| models::own(&scenario.session));
    let found = block_on(rule_survival(&scenario, &specs, model, &Options::default()))?;
    print_either(args.json, &found, || found.to_text())
}

/// Replays a session with the strategy of `--strategy`; without one, takes it as recorded. `not_results`
/// says why the path has no results of a run.
fn replayed(args: &ExplainArgs, not_results: ReportError) -> anyhow::Result<Results> {
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
        Err(all) => Err(super::several("explain", name, all.len())),
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
