//! `ctxbench explain`: shows how a fact was lost, with the text before and after the loss, and answers
//! questions about a session.

mod session;

use std::path::{Path, PathBuf};

use ctxbench_replay::point::CutPoint;
use ctxbench_reports as reports;
use ctxbench_reports::record::{Results, RunRecord};
use ctxbench_reports::{ReportError, ResultsFile, Rows};

use session::Question;

#[derive(clap::Args)]
#[command(
    override_usage = "ctxbench explain RESULTS {FACT|--lost}\n       \
                      ctxbench explain SESSION {--lost|--contents|--next|--rules}",
    after_help = "\
Examples:
  ctxbench explain out port-5433
      Show where this fact was lost
  ctxbench explain out --strategy codex --lost
      List everything that Codex lost
  ctxbench explain s.jsonl --lost
      List everything that the compactions of a session lost
  ctxbench explain s.jsonl --contents --out contents
      Show what fills the context of a session; also write contents.csv
  ctxbench explain s.jsonl --next --at turn:12
      Show what the message after the twelfth would have cost
"
)]
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
        return session::answer(args);
    }
    let results = match of_scenario(&args.results, args.scenario.as_deref()) {
        Err(e) if args.lost => session::replayed(args, e)?,
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
