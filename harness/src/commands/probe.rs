//! `ctxbench probe`: asks a real model about facts in the contexts of strategies.

use std::sync::Arc;
use std::thread;

use anyhow::{Context, bail};
use ctxbench_core::model::{self, Counting, Model};
use ctxbench_core::usage::Usage;
use ctxbench_mock::summarise::endpoint::{Address, Cassette, Endpoint, Key};
use ctxbench_os::block_on;
use ctxbench_provider::Prompt;
use ctxbench_replay::probe::{choose, is_present, is_right, prompt, questions};
use ctxbench_replay::{FullReplay, Options, models, replay_in_full};
use ctxbench_reports::probe::{Probe, ProbeAnswer, ProbeQuestion, ProbeRow};
use ctxbench_reports::record::{FactRecord, Recall, Status};
use ctxbench_scenarios::Scenario;
use ctxbench_strategies::Spec;

use super::specs::Chosen;
use super::summarizer::CassetteFile;
use super::values::{many, tokens};
use super::{CheckFailed, corpus, print, print_json};
use crate::choice::Choice;

/// Assumed output of an answer, tokens.
const OUTPUT: u64 = 100;

/// Number of questions that are asked at the same time.
const AT_ONCE: usize = 4;

#[derive(clap::Args)]
#[command(after_help = "\
Half of the questions, if possible, are about facts that a strategy lost. The key of the API is read
from CTXBENCH_SUMMARIZER_KEY.

Examples:
  ctxbench probe s.jsonl --strategy codex --strategy reference --base-url anthropic+https://api.anthropic.com --model claude-haiku-4-5 --cassette answers.jsonl
      Ask 20 questions about each of both contexts, for at most 1 USD
  ctxbench probe s.jsonl --strategy codex --base-url openai+http://localhost:8080/v1 --model qwen3 --cassette offline:answers.jsonl
      Print the same again, from recorded answers
")]
pub(crate) struct ProbeArgs {
    /// Sessions, recordings, scenario files or built-in scenarios
    #[arg(required = true, value_name = "SESSION")]
    sessions: Vec<String>,
    #[command(flatten)]
    chosen: Chosen,
    /// Address of the API: openai+URL or anthropic+URL
    #[arg(long, value_name = "URL")]
    base_url: String,
    /// Model to ask. If ctxbench has it in its list, the sessions are replayed as this model,
    /// otherwise as the recorded one
    #[arg(long)]
    model: String,
    /// File in which every answer is recorded once; with offline: no question is asked
    #[arg(long, value_name = "[offline:]FILE")]
    cassette: CassetteFile,
    /// Number of questions about the contexts of each strategy
    #[arg(long, value_name = "N", default_value_t = 20)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    questions: u64,
    /// Seed of the choice of questions
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Ask nothing if the estimate is higher, USD
    #[arg(long, value_name = "USD", default_value_t = 1.0)]
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

/// The finished rows of a session.
struct ReplayedSession {
    id: String,
    rows: Vec<(String, FullReplay)>,
}

/// A question about the context of a row.
struct Asked {
    strategy: String,
    question: usize,
    is_present: bool,
    prompt: Prompt,
}

pub(crate) fn probe(args: &ProbeArgs) -> anyhow::Result<()> {
    ctxbench_os::shutdown::exit_on_signals();
    let specs = args.chosen.specs()?;
    let address = Address::parse(&format!("{}#{}", args.base_url, args.model));
    let address = address.context("--base-url")?;
    let cassette = Arc::new(Cassette::open(&args.cassette.path, args.cassette.offline)?);
    let endpoint = Endpoint::new(address, Key::from_environment(), cassette)?;
    let summariser = args.summarizer.parse().map_err(|e| anyhow::anyhow!("--summarizer: {e}"))?;
    let options = Options { summariser, window: args.window, ..Options::default() };
    let listed = model::find(&args.model).ok();
    let mut notes = Vec::new();
    let mut sessions = Vec::new();
    for scenario in corpus::load_all(&args.sessions, &Choice::default())? {
        let model = listed.unwrap_or_else(|| models::own(&scenario.session));
        let rows = rows(&scenario, &specs, model, &options, &mut notes)?;
        sessions.push((scenario.session, ReplayedSession { id: scenario.id, rows }));
    }
    let all = sessions.iter().flat_map(|(session, ReplayedSession { id, rows })| {
        let rows: Vec<_> = rows.iter().map(|(_, full)| &full.replayed).collect();
        let mut all = questions(session, &rows);
        all.iter_mut().for_each(|(q, _)| q.session.clone_from(id));
        all
    });
    let chosen = choose(all.collect(), many(args.questions), args.seed);
    let sessions: Vec<ReplayedSession> = sessions.into_iter().map(|(_, rows)| rows).collect();
    if chosen.is_empty() {
        bail!(
            "no question: no need with one exact literal was reached by all strategies; expected a \
             session with facts (`ctxbench run SESSION` shows its recall)"
        );
    }
    let asked = asked(&sessions, &chosen);
    if !args.cassette.offline {
        check_cost(args, &endpoint, listed, &asked)?;
    }
    let answers = answers(&endpoint, &asked).map_err(|why| {
        CheckFailed(format!("no answer for {why}; answers until then are in the cassette"))
    })?;
    let found = Probe {
        model: args.model.clone(),
        rows: scored(&specs, &sessions, &chosen, asked, answers),
        questions: chosen,
        notes,
    };
    if args.json { print_json(&found) } else { print(&found.to_text()) }
}

/// Replays a session. A row that does not finish becomes a note.
fn rows(
    scenario: &Scenario,
    specs: &[Spec],
    model: &Model,
    options: &Options,
    notes: &mut Vec<String>,
) -> anyhow::Result<Vec<(String, FullReplay)>> {
    let mut rows = Vec::new();
    for spec in specs {
        let label = spec.label();
        let skip = |why: &str| format!("Left out: {label} in {}: {why}.", scenario.id);
        if let Some(why) = spec.unfit(model) {
            notes.push(skip(&why.to_string()));
            continue;
        }
        let full = block_on(replay_in_full(scenario, spec, model, options))?;
        let record = &full.replayed.record;
        if record.status == Status::Completed {
            rows.push((label, full));
        } else {
            notes.push(skip(record.error.as_deref().unwrap_or("did not finish")));
        }
    }
    Ok(rows)
}

/// Returns what to ask of every row of the session of each question.
fn asked(sessions: &[ReplayedSession], chosen: &[ProbeQuestion]) -> Vec<Asked> {
    let of = |(question, q): (usize, &ProbeQuestion)| -> Vec<Asked> {
        let key = (q.fact.clone(), q.need.clone());
        let rows = sessions.iter().filter(|s| s.id == q.session).flat_map(|s| &s.rows);
        let row = |(label, full): &(String, FullReplay)| {
            let is_present = is_present(&full.replayed, &q.fact, &q.need);
            let prompt = prompt(full.replayed.contexts.get(&key)?, &q.text);
            Some(Asked { strategy: label.clone(), question, is_present, prompt })
        };
        rows.filter_map(row).collect()
    };
    chosen.iter().enumerate().flat_map(of).collect()
}

/// Prints an estimate of what the questions without a recorded answer cost, and refuses a higher cost
/// than the limit.
fn check_cost(
    args: &ProbeArgs,
    endpoint: &Endpoint,
    listed: Option<&Model>,
    asked: &[Asked],
) -> anyhow::Result<()> {
    let new: Vec<_> = asked.iter().filter(|a| !endpoint.has_answer(&a.prompt)).collect();
    let counting = listed.map_or(Counting::O200K, |m| m.counting);
    let size = |a: &&Asked| a.prompt.items.iter().map(|i| i.tokens(&counting)).sum::<u64>();
    let sizes: Vec<u64> = new.iter().map(size).collect();
    let cost = |m: &Model| {
        let one = |input: &u64| {
            model::cost(m, &Usage { input: *input, output: OUTPUT, ..Usage::default() }).total()
        };
        sizes.iter().map(one).sum::<f64>()
    };
    let usd = listed.filter(|m| m.is_priced()).map(cost);
    let price = usd.map_or("its price is not known".into(), |usd| format!("about ${usd:.2}"));
    report!(
        "{} questions to {}, {} of them answered in the cassette; the others have {} tokens: {price}",
        asked.len(),
        args.model,
        asked.len() - new.len(),
        sizes.iter().sum::<u64>()
    );
    match usd {
        Some(usd) if usd > args.max_usd => bail!(
            "this is more than --max-usd {}; ask fewer --questions, name fewer strategies, or raise it",
            args.max_usd
        ),
        None if !new.is_empty() && !endpoint.is_local() => bail!(
            "--max-usd cannot be checked: {} has no price in the list of models; add it with \
             --models FILE (docs/config.md)",
            args.model
        ),
        _ => Ok(()),
    }
}

/// Asks the questions, some at a time, and returns the answers in their order.
fn answers(endpoint: &Endpoint, asked: &[Asked]) -> Result<Vec<String>, String> {
    let mut out = Vec::new();
    for some in asked.chunks(AT_ONCE) {
        let answers: Vec<_> = thread::scope(|scope| {
            let ask = |a| scope.spawn(move || endpoint.answer(a));
            let asking: Vec<_> = some.iter().map(|a| ask(&a.prompt)).collect();
            let failed = || Err("a thread that failed".to_string());
            asking.into_iter().map(|t| t.join().unwrap_or_else(|_| failed())).collect()
        });
        for answer in answers {
            out.push(answer?.text);
        }
    }
    Ok(out)
}

/// Returns a row per strategy with its answers.
fn scored(
    specs: &[Spec],
    sessions: &[ReplayedSession],
    chosen: &[ProbeQuestion],
    asked: Vec<Asked>,
    answers: Vec<String>,
) -> Vec<ProbeRow> {
    let empty = |spec: &Spec| {
        let strategy = spec.label();
        let own = sessions.iter().flat_map(|s| s.rows.iter().filter(|(l, _)| *l == strategy));
        let own = own.map(|(_, full)| {
            Recall::over(full.replayed.record.facts.iter().filter(|f| FactRecord::is_need(f)))
        });
        ProbeRow { recall: Recall::pooled(own), strategy, answers: Vec::new() }
    };
    let mut rows: Vec<ProbeRow> = specs.iter().map(empty).collect();
    for (Asked { strategy, question, is_present, .. }, text) in asked.into_iter().zip(answers) {
        let is_right = is_right(&chosen[question], &text);
        let row = rows.iter_mut().find(|row| row.strategy == strategy);
        let answer = ProbeAnswer { question, is_present, is_right, text };
        row.into_iter().for_each(|row| row.answers.push(answer.clone()));
    }
    rows.retain(|row| !row.answers.is_empty());
    rows
}
