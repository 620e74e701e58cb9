//! `ctxbench probe`: asks a real model about facts in the contexts of strategies.

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use ctxbench_core::model::{self, Counting, Model};
use ctxbench_core::prelude::*;
use ctxbench_mock::summarise::endpoint::{Address, Cassette, Endpoint, Key};
use ctxbench_os::block_on;
use ctxbench_provider::Prompt;
use ctxbench_replay::probe::{RowContext, candidates, choose, is_right, prompt};
use ctxbench_replay::{Options, Replayed, models, replay_in_full};
use ctxbench_reports::probe::{Probe, ProbeAnswer, ProbeRow};
use ctxbench_reports::record::{FactRecord, Recall, Status};
use ctxbench_scenarios::Scenario;
use ctxbench_strategies::Spec;

use super::specs::Chosen;
use super::summarizer::CassetteFile;
use super::values::{count, many, tokens, usd};
use super::{CheckFailed, corpus, print_either};
use crate::choice::Choice;

/// Assumed output of an answer, tokens.
const OUTPUT: u64 = 100;

#[derive(clap::Args)]
pub(crate) struct ProbeArgs {
    /// Sessions, recordings, scenario files or built-in scenarios
    #[arg(required = true, value_name = "SESSION")]
    sessions: Vec<String>,
    #[command(flatten)]
    chosen: Chosen,
    /// Address of the API: openai+URL or anthropic+URL
    #[arg(long, value_name = "URL")]
    base_url: String,
    /// Model to ask; sessions are replayed as this model if it is listed, or else as recorded
    #[arg(long)]
    model: String,
    /// File in which every answer is recorded once; with offline: no question is asked
    #[arg(long, value_name = "[offline:]FILE")]
    cassette: CassetteFile,
    /// Number of questions about the contexts of each strategy
    #[arg(long, value_name = "N", default_value_t = 20)]
    #[arg(value_parser = count)]
    questions: u64,
    /// Seed of the choice of questions
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Ask nothing if the estimate is higher, USD
    #[arg(long, value_name = "USD", default_value_t = 1.0, value_parser = usd)]
    max_usd: f64,
    /// Context window in tokens (default: the program's for the model)
    #[arg(long, value_parser = tokens)]
    window: Option<u64>,
    /// Summarizer of the strategies: extractive, ideal, lossy or scripted
    #[arg(long, value_name = "KIND", default_value = "extractive")]
    summarizer: String,
    /// Print JSON with all questions and answers
    #[arg(long)]
    json: bool,
}

pub(crate) fn probe(args: &ProbeArgs) -> anyhow::Result<()> {
    ctxbench_os::shutdown::exit_on_signals();
    let specs = args.chosen.specs()?;
    let address = Address::parse(&format!("{}#{}", args.base_url, args.model));
    let cassette = Arc::new(Cassette::open(&args.cassette.path, args.cassette.offline)?);
    let endpoint =
        Endpoint::new(address.context("--base-url")?, Key::from_environment(), cassette)?;
    let summariser = args.summarizer.parse().map_err(|e| anyhow::anyhow!("--summarizer: {e}"))?;
    let options = Options { summariser, window: args.window, ..Options::default() };
    let listed = model::find(&args.model).ok();
    let (mut notes, mut all) = (Vec::new(), Vec::new());
    let mut recalls: BTreeMap<String, Vec<Recall>> = BTreeMap::new();
    for scenario in corpus::load_all(&args.sessions, &Choice::default())? {
        let model = listed.unwrap_or_else(|| models::own(&scenario.session));
        let rows = rows(&scenario, &specs, model, &options, &mut notes)?;
        for (label, row) in &rows {
            let needs = row.record.facts.iter().filter(|f| FactRecord::is_need(f));
            recalls.entry(label.clone()).or_default().push(Recall::over(needs));
        }
        all.extend(candidates(&scenario.id, &scenario.session, &rows));
    }
    let chosen = choose(all, many(args.questions), args.seed);
    if chosen.is_empty() {
        bail!(
            "no question: no need with one exact literal was reached by all strategies; expected a \
             session with facts (`ctxbench run SESSION` shows its recall){}",
            notes.iter().map(|note| format!("\n{note}")).collect::<String>()
        );
    }
    let pairs: Vec<(usize, &RowContext)> = chosen
        .iter()
        .enumerate()
        .flat_map(|(i, c)| c.contexts.iter().map(move |row| (i, row)))
        .collect();
    let text = |i: usize| &chosen[i].question.text;
    let prompts: Vec<_> = pairs.iter().map(|(i, row)| prompt(&row.blocks, text(*i))).collect();
    if !args.cassette.offline {
        check_cost(args, &endpoint, listed, &prompts)?;
    }
    let answer = |prompt| endpoint.answer(prompt).map(|reply| reply.text);
    let answers = prompts.iter().map(answer).collect::<Result<Vec<_>, _>>().map_err(|why| {
        CheckFailed(format!("no answer for {why}; answers until then are in the cassette"))
    })?;
    let row = |spec: &Spec| {
        let strategy = spec.label();
        let own = pairs.iter().zip(&answers).filter(|((_, row), _)| row.strategy == strategy);
        let answer = |(&(question, row), text): (&(usize, &RowContext), &String)| ProbeAnswer {
            question,
            is_present: row.is_present,
            is_right: is_right(&chosen[question].question, text),
            text: text.clone(),
        };
        let answers: Vec<_> = own.map(answer).collect();
        let recall = Recall::pooled(recalls.remove(&strategy)?.into_iter());
        (!answers.is_empty()).then_some(ProbeRow { strategy, recall, answers })
    };
    let rows = specs.iter().filter_map(row).collect();
    let questions = chosen.iter().map(|c| c.question.clone()).collect();
    let found = Probe { model: args.model.clone(), questions, rows, notes };
    print_either(args.json, &found, || found.to_text())
}

/// Replays a session. A row that does not finish becomes a note.
fn rows(
    scenario: &Scenario,
    specs: &[Spec],
    model: &Model,
    options: &Options,
    notes: &mut Vec<String>,
) -> anyhow::Result<Vec<(String, Replayed)>> {
    let mut rows = Vec::new();
    for spec in specs {
        let mut leave_out = |why: &str| {
            notes.push(format!("Left out: {} in {}: {why}.", spec.label(), scenario.id));
        };
        if let Some(why) = spec.unfit(model) {
            leave_out(why);
            continue;
        }
        let row = block_on(replay_in_full(scenario, spec, model, options))?.replayed;
        if row.record.status == Status::Completed {
            rows.push((spec.label(), row));
        } else {
            leave_out(row.record.error.as_deref().unwrap_or("did not finish"));
        }
    }
    Ok(rows)
}

/// Prints an estimate of the cost of the questions without a recorded answer, and refuses a higher one
/// than the limit.
fn check_cost(
    args: &ProbeArgs,
    endpoint: &Endpoint,
    listed: Option<&Model>,
    prompts: &[Prompt],
) -> anyhow::Result<()> {
    let new = || prompts.iter().filter(|p| !endpoint.has_answer(p));
    let counting = listed.map_or(Counting::O200K, |m| m.counting);
    let size = |p: &Prompt| p.items.iter().map(|i| i.tokens(&counting)).sum();
    let (mut tokens, mut usd) = (0, listed.filter(|m| m.is_priced()).map(|_| 0.0));
    for input in new().map(size) {
        tokens += input;
        let usage = Usage { input, output: OUTPUT, ..Usage::default() };
        usd = usd.zip(listed).map(|(usd, m)| usd + model::cost(m, &usage).total());
    }
    let price = usd.map_or("its price is not known".into(), |usd| format!("about ${usd:.2}"));
    let (all, recorded) = (prompts.len(), prompts.len() - new().count());
    report!(
        "{all} questions to {}, {recorded} of them answered in the cassette; the others have \
         {tokens} tokens: {price}",
        args.model
    );
    match usd {
        Some(usd) if usd > args.max_usd => bail!(
            "this is more than --max-usd {}; ask fewer --questions, name fewer strategies, or raise it",
            args.max_usd
        ),
        None if recorded < all && !endpoint.is_local() => bail!(
            "--max-usd cannot be checked: {} has no price in the list of models; add it with \
             --models FILE (docs/config.md)",
            args.model
        ),
        _ => Ok(()),
    }
}
