//! `ctxbench run`: replays sessions with strategies, then prints a table and writes files.

mod listed;
pub(super) mod outputs;
mod rows;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::choice::Choice;
use crate::commands::output::escape;
use anyhow::{Context, bail};
use clap::ValueHint;
use ctxbench_core::model::{self, DEFAULT_MODEL, Model};
use ctxbench_kit::monitor::SpendLimit;
use ctxbench_mock::Transport;
use ctxbench_mock::summarise::Summariser;
use ctxbench_os::shutdown;
use ctxbench_replay::billing::{self, SessionCalls};
use ctxbench_replay::keys::{self, Keys};
use ctxbench_replay::memory::Prefixes;
use ctxbench_replay::run::{Plan, all_cores, head};
use ctxbench_replay::watch::Watch;
use ctxbench_replay::watch::otel::Collector;
use ctxbench_replay::{Options, versions};
use ctxbench_reports as reports;
use ctxbench_reports::record::{Results, RunRecord, Status};
use ctxbench_reports::{Artifact, RowCache, StoredResults, TableOptions};
use ctxbench_scenarios as scenarios;
use ctxbench_session::calibration::Calibrate;
use ctxbench_session::{Entry, Header};
use ctxbench_strategies::Spec;
use ctxbench_util::files;
use ctxbench_util::plural::pluralize;

use super::corpus::Progress;
use super::memory::FolderArgs;
use super::otel::MetricsExport;
use super::private;
use super::specs::Chosen;
use super::summarizer::CassetteFile;
use super::values::{Seeds, calibrate, count, many, tokens, used};
use listed::SessionSummary;
use rows::RunRows;

#[derive(clap::Args)]
pub(crate) struct RunArgs {
    /// Sessions: session JSONL, scenario TOML, recordings of agents, any of these compressed (.gz,
    /// .zst, .zip), folders of them, names of built-in scenarios, or `all` built-in scenarios
    #[arg(value_name = "SESSION|SCENARIO|DIR")]
    pub(super) inputs: Vec<String>,
    #[command(flatten)]
    choice: Choice,
    #[command(flatten)]
    chosen: Chosen,
    /// Add a row for each strategy in which a program changes every tool result before it enters
    /// the conversation: NAME=exec:COMMAND (repeat; docs/token-savers.md)
    #[arg(long, value_name = "NAME=exec:COMMAND")]
    filter: Vec<String>,
    #[arg(long, value_name = "M")]
    #[arg(help = format!(
        "Model (repeat; default: the one a session was recorded with, else {DEFAULT_MODEL})"
    ))]
    model: Vec<String>,
    /// Token counting: off (o200k for every model), family (like the model's family), recording
    /// (family, corrected by a recording's counters)
    #[arg(long, value_name = "HOW", value_parser = calibrate, default_value = Calibrate::default().word())]
    calibrate: Calibrate,
    /// Context window in tokens, such as 200000 or 200k (default: the
    /// program's for the model)
    #[arg(long, value_name = "N", value_parser = tokens)]
    window: Option<u64>,
    /// Model of all summaries, of the same provider (default: the strategy's choice)
    #[arg(long, value_name = "M")]
    summary_model: Option<String>,
    /// Summarizer (repeat to compare): extractive, ideal, lossy, scripted (the recording's
    /// summaries), or a server such as openai+http://localhost:8080/v1#MODEL or anthropic+URL (with
    /// --cassette)
    #[arg(long, value_name = "KIND", default_value = "extractive")]
    summarizer: Vec<String>,
    /// File that records the answers of a summarizer's server; offline:FILE never asks the server,
    /// and a missing answer is an error of its row
    #[arg(long, value_name = "[offline:]FILE")]
    cassette: Option<CassetteFile>,
    /// Transport of requests to the mock server
    #[arg(long, value_enum, default_value_t)]
    transport: Transport,
    /// Random seed, or a range such as 0..9, for the lossy summarizer and --sample (which uses the
    /// first); with several seeds the table shows mean and range
    #[arg(long, value_name = "N|N..M", default_value = "1")]
    seeds: Seeds,
    /// Project folder with memory files, which each product adds to its prompts
    #[arg(long, value_name = "DIR")]
    memory: Option<PathBuf>,
    #[command(flatten)]
    folders: FolderArgs,
    /// Do not model how the agent reads lost content again
    #[arg(long)]
    no_rereads: bool,
    /// Share of what is present in a prompt that a model uses, in percent, printed with recall
    /// (docs/recall.md)
    #[arg(long, value_name = "LOW..HIGH", default_value = "29..92", value_parser = used)]
    used: String,
    /// Write one JSON line per request to this file
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Stop a run before a request that exceeds this limit: 2.50 (per session), 20/day, 400/month
    /// (repeat)
    #[arg(long, value_name = "USD[/PERIOD]")]
    spend_limit: Vec<SpendLimit>,
    /// Send the metrics of the run to an OpenTelemetry collector, such as http://localhost:4318
    #[arg(long, value_name = "URL")]
    otel: Option<Collector>,
    /// Folder for result files
    #[arg(short, long, value_name = "DIR", default_value = "ctxbench-out")]
    out: PathBuf,
    /// Number of threads (default: all cores)
    #[arg(long, value_name = "N", value_parser = count)]
    jobs: Option<u64>,
    /// Compute only part I of N of the sessions, I from 1, or as a sum from 0 such as 0+1/3. The
    /// rows go into --cache; the same command without --shard writes the results
    #[arg(long, value_name = "I/N", requires = "cache")]
    shard: Option<String>,
    /// Folder for finished rows (default: .rows in --out). A row is reused if the session, strategy,
    /// settings, model and ctxbench itself are the same; rows of programs and of real models are not
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    cache: Option<PathBuf>,
    /// Print all tables: every session, costs by model, differences, notes
    #[arg(long, conflicts_with_all = ["quiet", "json"])]
    details: bool,
    /// Print only the path of the results and what failed
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,
    /// Print results as JSON instead of a table
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: RunArgs) -> anyhow::Result<()> {
    super::output::set_quiet(args.quiet);
    if args.shard.is_none() {
        reports::mark_unfinished(&args.out)?;
    }
    // Hashing the binary takes a moment, so it runs while the sessions are listed.
    let program = std::thread::spawn(keys::program);
    let (plan, listed) = plan(&args)?;
    private::keep(plan.scenarios.iter().flat_map(|s| &s.files));
    reports::check_out(&args.out)?;
    outputs::check(&args, &plan.scenarios)?;
    if let Some(dir) = args.cache.as_ref().filter(|dir| files::same_place(dir, &args.out)) {
        bail!("--cache and --out both name {}; name two folders", dir.display());
    }
    for (_, (s, l)) in
        plan.scenarios.iter().zip(&listed).enumerate().filter(|(at, _)| plan.is_here(*at))
    {
        for w in s.warnings.iter().chain(&l.remarks) {
            report!("note: {}: {w}", s.id);
        }
    }
    let begin = std::time::Instant::now();
    let head = head(&plan);
    let cache_dir = args.cache.clone().unwrap_or_else(|| reports::default_cache(&args.out));
    let cache = RowCache::open(&cache_dir)?;
    shutdown::exit_on_signals();
    shutdown::set_message(Some(escape(&format!(
        "Interrupted. Finished rows are kept in {}; run the same command again to continue.",
        cache_dir.display()
    ))));
    let shown = Progress::new("rows", plan.pairs());
    let export = MetricsExport::new(args.otel.as_ref());
    let program = program.join().unwrap_or_default();
    let mut rows = RunRows {
        keys: Keys::new(
            &program,
            &plan.options,
            &[args.chosen.programs(), args.filter.clone()].concat(),
        ),
        plan,
        listed: &listed,
        cache,
        reuses_rows: args.otel.is_none(),
        export: &export,
        shown: &shown,
        reused: Default::default(),
        errors: Default::default(),
        write_error: Default::default(),
    };
    rows.plan.run_each(&rows, |give| {
        let todo = |at| rows.todo(at);
        let recorded = |at, scenario: &scenarios::Scenario| rows.store_recorded(at, scenario);
        let lacks = |at| rows.lacks_recorded(at);
        listed::feed(&rows.plan, &args.inputs, &listed, todo, (&lacks, &recorded), give);
    });
    shutdown::end_orphans()?;
    // Reports need the memory and use only the rows.
    rows.plan.scenarios.iter_mut().for_each(listed::drop_content);
    let plan = &rows.plan;
    shown.clear();
    let reused = rows.reused.load(Ordering::Relaxed);
    if reused > 0 {
        report!("note: reused {} from {}", pluralize(reused, "row"), cache_dir.display());
    }
    let write_error = rows.write_error.lock().ok().and_then(|mut e| e.take());
    let not_cached = write_error.is_some();
    if let Some(e) = write_error {
        report!("note: a finished row could not be kept for later runs: {e}");
    }
    if let Some((part, parts)) = plan.shard {
        report!(
            "Part {part} of {parts}: {} in {}. The same command without --shard writes the results.",
            pluralize(rows.plan.pairs(), "row"),
            cache_dir.display()
        );
        let errors = rows.errors.into_inner().unwrap_or_default();
        let exported = export.finish();
        if let Some(first) = errors.first() {
            let n = pluralize(errors.len(), "row");
            let why = format!("{n} of this part ended with an error; the first, {first}");
            return Err(super::CheckFailed(why).into());
        }
        return Ok(exported?);
    }
    let stored = StoredResults::new(&head, &rows)?;
    let all = &stored.figures;
    for s in &plan.scenarios {
        let of_run = all.runs.iter().map(|r| &r.scenario);
        let more = of_run.filter(|r| r.id == s.id && r.warnings.len() > s.warnings.len());
        let more = more.take(1).flat_map(|r| &r.warnings[s.warnings.len()..]);
        more.for_each(|w| report!("note: {}: {w}", s.id));
    }
    // If an additional file cannot be written, the results must still be written and shown.
    let mut failures = Vec::new();
    let timings = outputs::timings(&rows, begin.elapsed())?;
    let private = listed.iter().enumerate().any(|(at, l)| plan.is_here(at) && l.is_private);
    let more = [Artifact { file: "timings.json".into(), text: timings }];
    let message = args.trace.as_deref().map(|trace| outputs::unwritten(&args.out, trace));
    let written = outputs::write(&args.out, &stored, &more, private, message);
    let in_results = written.is_ok();
    failures.extend(written.err().map(|e| match not_cached {
        true => e,
        false => e.context(format!(
            "finished rows are kept in {}; run the same command again to continue",
            cache_dir.display()
        )),
    }));
    if let Some(path) = &args.trace {
        let written = files::write_with(path, |out| rows.write_trace(out));
        failures.extend(written.err().map(|e| match in_results {
            true => anyhow::anyhow!("--trace: {e}; the results are in {}", args.out.display()),
            false => anyhow::Error::from(e).context("--trace"),
        }));
    }
    shutdown::set_message(None);
    let written = failures.is_empty();
    let printed = match () {
        () if args.json => super::print_with(|out| reports::write_json(&stored, out)),
        () if args.quiet => super::print(&quiet_text(all, &args.out)),
        () => print_table(all, args.details, Some(begin.elapsed())),
    };
    failures.extend(printed.err());
    if written && !args.json && !args.quiet {
        report!("{}", where_to_look(&args.out, args.details));
    }
    let failed = failed_rows(&stored.figures.runs);
    let exported = export.finish();
    super::first_error(failures)?;
    exported?;
    failed.map_or(Ok(()), |why| Err(super::CheckFailed(why).into()))
}

/// Returns the path of the results, and a line per failure.
fn quiet_text(all: &Results, out: &Path) -> String {
    let failures = reports::failures(all).into_iter().map(|f| format!("! {f}\n"));
    format!("{}\n", out.display()) + &failures.collect::<String>()
}

/// Names the page, and the command that prints everything.
pub(super) fn where_to_look(out: &Path, has_details: bool) -> String {
    let out = out.display();
    let details =
        if has_details { "" } else { &format!("\nDetails: ctxbench report {out} --details") };
    format!("Report: {out}/index.html{details}")
}

/// Prints the table. Its width in characters is `COLUMNS`, or else that of the terminal.
pub(super) fn print_table(
    all: &Results,
    details: bool,
    elapsed: Option<Duration>,
) -> anyhow::Result<()> {
    let color = std::io::stdout().is_terminal()
        && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
    let given = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok());
    let terminal =
        || terminal_size::terminal_size_of(std::io::stdout()).map(|(w, _)| usize::from(w.0));
    let options = TableOptions { width: given.or_else(terminal), color, details, elapsed };
    super::print_data(&reports::table(all, &options))
}

/// Returns an error message if any row ended with an error.
pub(super) fn failed_rows(rows: &[RunRecord]) -> Option<String> {
    let failed: Vec<&RunRecord> = rows.iter().filter(|r| r.status == Status::Error).collect();
    let first = failed.first()?;
    let row = format!("{} × {}", first.scenario.id, first.strategy.label);
    let all = rows.iter().filter(|r| r.status != Status::NotApplicable).count();
    Some(match failed.len() {
        1 => format!("1 of {} ended with an error: {row}", pluralize(all, "row")),
        n => format!("{n} of {} ended with an error; the first is {row}", pluralize(all, "row")),
    })
}

/// Returns notes on the reliability of a session's figures.
fn remarks(s: &scenarios::Scenario) -> Vec<String> {
    let mut out = Vec::new();
    if !s.session.entries.iter().any(|e| matches!(e, Entry::Assistant(_))) {
        out.push("it has no reply of a model; only one neutral reply is replayed".to_string());
    }
    let Header { source, prefix_tokens, .. } = &s.session.header;
    if source.as_ref().is_some_and(|source| source.continues) {
        out.push(format!(
            "it continues a conversation that its file lacks, and {} tokens of its first request \
             are hidden: it is not compared with other sessions",
            prefix_tokens.unwrap_or_default()
        ));
    }
    out.extend(ctxbench_replay::remarks(&s.session));
    out
}

/// Checks that the models named in settings belong to the same provider as the run's model.
fn own_models(spec: &Spec, model: &Model) -> anyhow::Result<()> {
    for (setting, name) in spec.settings.models() {
        let found =
            model::find(name).map_err(|e| anyhow::anyhow!("{}: {setting}: {e}", spec.label()))?;
        if found.provider != model.provider {
            bail!(
                "{}: {name} is not of the provider of {}; a session speaks to one provider",
                spec.label(),
                model.name
            );
        }
    }
    Ok(())
}

fn plan(args: &RunArgs) -> anyhow::Result<(Plan, Vec<SessionSummary>)> {
    let mut specs = args.chosen.specs()?;
    let swept = args.chosen.swept(&specs);
    super::specs::add_filtered(&mut specs, &args.filter)?;
    if let Some(label) = twice(specs.iter().map(Spec::label)) {
        bail!("strategy `{label}` is given twice; give it different settings or leave one out");
    }
    if let Some(name) = twice(args.model.iter()) {
        bail!("model `{name}` is given twice; leave one out");
    }
    let named = args.model.iter().map(|m| model::find(m)).collect::<Result<Vec<_>, _>>()?;
    let summary_model = args.summary_model.as_deref().map(model::find).transpose()?;
    let choice = Choice { seed: args.seeds.first, ..args.choice.clone() };
    let shard = args.shard.as_deref().map(shard).transpose()?;
    let (mut sessions, listed): (Vec<_>, Vec<_>) =
        listed::list(&args.inputs, &choice, &named, shard, listed::KEPT_BYTES)?.into_iter().unzip();
    let calls: Vec<SessionCalls> = listed.iter().map(|l| l.calls.clone()).collect();
    billing::bill_once(&mut sessions, &calls);
    let notes = billing::notes(&sessions).into_iter().chain(versions::notes(&sessions));
    notes.for_each(|note| report!("note: {note}"));
    if let Some(id) = twice(sessions.iter().map(|s| &s.id)) {
        bail!("two sessions are called `{id}`; give one another id, or run them apart");
    }
    let summarisers = super::summarizer::summarisers(&args.summarizer, args.cassette.as_ref())?;
    let memory = match &args.memory {
        Some(dir) => {
            let folders = args.folders.project_folders(dir).context("--memory")?;
            Prefixes::read(&dir.display().to_string(), &folders, &specs)
        }
        None if args.folders.is_set() => bail!("--home and --etc go with --memory"),
        None => Prefixes::default(),
    };
    memory.notes().iter().for_each(|note| report!("note: {note}"));
    // Options that need the spend meter.
    let is_watched = !args.spend_limit.is_empty() || args.otel.is_some();
    let plan = Plan {
        scenarios: sessions,
        specs,
        models: named,
        options: Options {
            transport: args.transport,
            summariser: Summariser::default(),
            seed: args.seeds.first,
            rereads: !args.no_rereads,
            used: args.used.clone(),
            trace: args.trace.is_some(),
            calibrate: args.calibrate,
            window: args.window,
            summary_model,
            watch: is_watched.then(|| Watch { spend: args.spend_limit.clone() }),
            memory: memory.into(),
            shown: None,
        },
        summarisers,
        seeds: args.seeds.count,
        jobs: args.jobs.map_or_else(all_cores, many),
        as_recorded: false,
        shard,
    };
    if swept {
        let (rows, runs) =
            (pluralize(plan.specs.len(), "strategy"), pluralize(plan.pairs(), "run"));
        report!("note: {rows}, {runs}");
    }
    for model in plan.all_models() {
        plan.specs.iter().try_for_each(|spec| own_models(spec, model))?;
        if let Some(s) = summary_model.filter(|s| s.provider != model.provider) {
            bail!(
                "--summary-model {} is not of the provider of {}; a session speaks to one provider",
                s.name,
                model.name
            );
        }
    }
    Ok((plan, listed))
}

/// Returns the first name, in sorted order, that appears more than once.
pub(super) fn twice<T: Ord>(names: impl Iterator<Item = T>) -> Option<T> {
    let mut names: Vec<T> = names.collect();
    names.sort_unstable();
    let at = names.windows(2).position(|w| w[0] == w[1])?;
    Some(names.swap_remove(at))
}

fn shard(text: &str) -> anyhow::Result<(usize, usize)> {
    // A sum such as `0+1`, for schedulers that count from 0.
    let part = |i: &str| {
        let all = i.split('+').map(|n| n.parse().ok()).collect::<Option<Vec<usize>>>()?;
        all.into_iter().try_fold(0, usize::checked_add)
    };
    let parts = text.split_once('/').and_then(|(i, n)| Some((part(i)?, n.parse().ok()?)));
    match parts {
        Some((i, n)) if (1..=n).contains(&i) => Ok((i, n)),
        _ => bail!(
            "--shard takes I/N with I from 1 to N, such as 1/3 or, where an engine counts from 0, \
             0+1/3, not `{text}`"
        ),
    }
}
