//! `ctxbench drive`: runs real agents on sessions and compares them with the strategies here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::ValueHint;
use ctxbench_agents::drive::agent::{self, Agent};
use ctxbench_agents::drive::record::RecordError;
use ctxbench_agents::drive::{self, DriveFault, DriveOptions, DriveOutcome, Driven, Proxy, Repeat};
use ctxbench_conform::shorten;
use ctxbench_core::model::Model;
use ctxbench_mock::summarise::Summariser;
use ctxbench_os::{loopback, shutdown};
use ctxbench_replay::run::{Plan, results};
use ctxbench_reports::record::{Results, RunRecord};
use ctxbench_reports::{self as reports, Artifact, agreement};
use ctxbench_scenarios::Scenario;
use ctxbench_session::calibration::Calibrate;
use ctxbench_util::plural::pluralize;
use serde_json::{Value, json};

use super::corpus::load_all;
use super::private;
use super::run::{failed_rows, outputs, print_table, twice, where_to_look};
use super::summarizer::OneSummarizer;
use super::values::tokens;
use crate::commands::output::escape;

#[derive(clap::Args)]
pub(crate) struct DriveArgs {
    /// Sessions, recordings, built-in scenarios, or folders of these, as for `run`
    #[arg(value_name = "SESSION|SCENARIO|DIR", required = true)]
    inputs: Vec<String>,
    /// Agent (repeat): a name of `ctxbench list agents`, or a TOML file such as ./my-agent.toml
    #[arg(long, value_name = "NAME|FILE", required = true)]
    agent: Vec<String>,
    /// Context window in tokens reported to the agent (default: the
    /// program's for the model)
    #[arg(long, value_name = "N", value_parser = tokens)]
    window: Option<u64>,
    /// Largest reply in tokens reported to the agent (default: the model's, or an eighth of
    /// --window)
    #[arg(long, value_name = "N", value_parser = tokens)]
    max_output: Option<u64>,
    /// Model (default: from the agent's description)
    #[arg(long, value_name = "M")]
    model: Option<String>,
    /// Path of an agent's program that is not in PATH (repeat)
    #[arg(long, value_name = "NAME=PATH", value_parser = program)]
    program: Vec<(String, PathBuf)>,
    #[command(flatten)]
    summarizer: OneSummarizer,
    /// Fault of the provider (repeat): N:FAULT for the N-th request, as for `serve`, or
    /// summary:N:STATUS, summary:N:empty, work:N:STATUS for the N-th request of a kind
    #[arg(long, value_name = "N:FAULT")]
    fault: Vec<String>,
    /// Also drive each agent with this program between it and its model (repeat): NAME=exec:COMMAND,
    /// where {port} is the port to listen on, and {upstream} the model's URL (docs/token-savers.md)
    #[arg(long, value_name = "NAME=exec:COMMAND", conflicts_with = "record")]
    proxy: Vec<Proxy>,
    /// Drive each agent N times; rows are those of the first run, and the spread is printed
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=100))]
    repeat: u64,
    /// Maximum seconds without output or a request of the agent
    #[arg(long, value_name = "S", default_value_t = agent::PATIENCE.as_secs(), value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout: u64,
    /// Keep the scratch folders and print their paths
    #[arg(long)]
    keep: bool,
    /// Write conformance cases into this folder, and replay them with the strategies here
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    record: Option<PathBuf>,
    /// Folder for result files
    #[arg(short, long, value_name = "DIR", default_value = "ctxbench-out")]
    out: PathBuf,
    /// Print results as JSON instead of tables
    #[arg(long)]
    json: bool,
}

/// An installed agent and the settings of its runs.
type Ready = (Agent, DriveOptions);

pub(crate) fn drive(args: &DriveArgs) -> anyhow::Result<()> {
    reports::mark_unfinished(&args.out)?;
    let ready = ready(args)?;
    let sessions = load_all(&args.inputs, &Default::default())?;
    if let Some(id) = twice(sessions.iter().map(|s| &s.id)) {
        bail!("two sessions are called `{id}`; give one another id, or drive them apart");
    }
    let is_private = private::keep(sessions.iter().flat_map(|s| &s.files));
    shutdown::exit_on_signals();
    let mut cases = args.record.as_deref().map(Cases::in_folder).transpose()?;
    shutdown::set_message(Some(escape(&interrupt_message(args.record.as_deref()))));
    let mut outcomes = Vec::new();
    for session in &sessions {
        for ready in &ready {
            let mut first = drive_one(session, ready, &mut cases);
            for _ in 1..args.repeat {
                first.repeats.push(Repeat::from(&drive_one(session, ready, &mut None).real));
            }
            outcomes.push(first);
        }
    }
    agreement::tell_apart(&mut outcomes.iter_mut().flat_map(|o| &mut o.ours).collect::<Vec<_>>());
    let rows = outcomes.iter().flat_map(|o| std::iter::once(&o.real).chain(&o.ours));
    let all = assembled(&ready, rows.cloned().collect());
    let stored = reports::StoredResults::new(&all, &all.runs)?;
    outputs::write(&args.out, &stored, &[drive_json(&outcomes)?], is_private, None)?;
    if args.json {
        super::print_data(&reports::results_text(&all)?)?;
    } else {
        print_table(&all, true, None)?;
        let mut repeated = outcomes.iter().filter(|o| !o.repeats.is_empty());
        repeated.try_for_each(|o| super::print(&spread(o)))?;
        report!("{}", where_to_look(&args.out, true));
    }
    let failed = outcomes.iter().flat_map(|o| &o.repeats).filter(|r| !r.completed).count();
    let failed =
        (failed > 0).then(|| format!("{} failed", pluralize(failed as u64, "further run")));
    let real: Vec<RunRecord> = outcomes.into_iter().map(|o| o.real).collect();
    match failed_rows(&real).or(failed).or_else(|| cases.and_then(Cases::differ)) {
        None => Ok(()),
        Some(why) => Err(super::CheckFailed(why).into()),
    }
}

/// Returns the message for a signal that arrives before the results are written.
fn interrupt_message(record: Option<&Path>) -> String {
    let kept = record.map_or("nothing was kept".into(), |folder| {
        format!("cases of finished agents are in {}", folder.display())
    });
    format!("Interrupted. Results are written when every agent has finished; {kept}.")
}

/// Drives one agent through one session. A failure becomes the result of its row.
fn drive_one(
    session: &Scenario,
    (agent, options): &Ready,
    cases: &mut Option<Cases>,
) -> DriveOutcome {
    let proxy = options.proxy.as_ref().map(|p| format!(" through {}", p.name));
    let runs = format!("{}{} runs {}", agent.title, proxy.unwrap_or_default(), session.id);
    match loopback::check() {
        Ok(()) => report!("note: {runs}, without a network"),
        Err(why) => report!(
            "note: {runs} and can reach the network, since this system does not allow \
             namespaces ({why})"
        ),
    }
    match drive::drive(session, agent, options) {
        Ok(driven) => {
            if let Some(folder) = &driven.kept {
                report!("note: its scratch folder is {}", folder.display());
            }
            if let Err(why) = &driven.version {
                report!("note: {}: {why}; its row says `unknown`", agent.title);
            }
            if let Some(cases) = cases {
                cases.take(session, &driven);
            }
            drive::measured(session, &driven)
        }
        Err(e) => {
            let real = drive::failed(session, agent, options.model, e.to_string());
            DriveOutcome { real, ..DriveOutcome::default() }
        }
    }
}

/// Returns the selected agents with their settings. Fails before the first run if an agent is not
/// installed.
fn ready(args: &DriveArgs) -> anyhow::Result<Vec<Ready>> {
    let agents = args.agent.iter().map(|a| agent::find(a)).collect::<Result<Vec<_>, _>>()?;
    if let Some(name) = twice(args.proxy.iter().map(|p| &p.name)) {
        bail!("--proxy {name}: two proxies have this name; rename one");
    }
    if let Some(name) = twice(agents.iter().map(|a| &a.name)) {
        bail!("two agents are called `{name}`; leave one out, or drive them apart");
    }
    let programs: BTreeMap<&str, &Path> =
        args.program.iter().map(|(name, path)| (&**name, &**path)).collect();
    if let Some(other) = programs.keys().find(|n| agents.iter().all(|a| a.name != ***n)) {
        bail!("--program {other}=…: no --agent is called `{other}`");
    }
    let summariser = args.summarizer.summariser()?;
    let faults = args.fault.iter().map(|f| f.parse()).collect::<Result<Vec<DriveFault>, _>>();
    let faults = faults.context("--fault")?;
    let options = |a: &Agent| -> anyhow::Result<DriveOptions> {
        let model = a.model_named(args.model.as_deref())?;
        let program = programs.get(&*a.name).map(|p| p.to_path_buf());
        a.locate(program.as_deref())?;
        Ok(DriveOptions {
            model,
            window: args.window,
            max_output: args.max_output,
            summariser: summariser.clone(),
            faults: faults.clone(),
            keep: args.keep,
            timeout: Duration::from_secs(args.timeout),
            program,
            proxy: None,
        })
    };
    let mut ready: Vec<Ready> = Vec::new();
    for agent in agents {
        let options = options(&agent)?;
        let through = |proxy: &Proxy| {
            let name = format!("{}+{}", agent.name, proxy.name);
            let options = DriveOptions { proxy: Some(proxy.clone()), ..options.clone() };
            (Agent { name, ..agent.clone() }, options)
        };
        let proxied: Vec<Ready> = args.proxy.iter().map(through).collect();
        ready.push((agent, options));
        ready.extend(proxied);
    }
    Ok(ready)
}

/// Combines the results of all rows.
fn assembled(ready: &[Ready], records: Vec<RunRecord>) -> Results {
    let mut models: Vec<&'static Model> = ready.iter().map(|(_, options)| options.model).collect();
    models.dedup_by_key(|m| &m.name);
    let summariser = ready.first().map_or_else(Summariser::default, |(_, o)| o.summariser.clone());
    let plan = Plan {
        models,
        summarisers: vec![summariser],
        options: ctxbench_replay::Options {
            rereads: false,
            calibrate: Calibrate::Family,
            window: ready.first().and_then(|(_, o)| o.window),
            ..ctxbench_replay::Options::default()
        },
        ..Plan::default()
    };
    results(&plan, records)
}

fn program(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, path)) if !name.is_empty() && !path.is_empty() => {
            Ok((name.to_string(), PathBuf::from(path)))
        }
        _ => Err("NAME=PATH, such as codex=/opt/codex/bin/codex".into()),
    }
}

/// Returns `drive.json`, the figures that only a drive has.
fn drive_json(outcomes: &[DriveOutcome]) -> anyhow::Result<Artifact> {
    let all: Vec<Value> = outcomes.iter().map(data).collect();
    let text = serde_json::to_string_pretty(&all)? + "\n";
    Ok(Artifact { file: "drive.json".into(), text })
}

/// Describes how far the runs of an agent differ.
fn spread(o: &DriveOutcome) -> String {
    let all: Vec<Repeat> =
        std::iter::once(Repeat::from(&o.real)).chain(o.repeats.iter().copied()).collect();
    let range = |of: fn(&Repeat) -> f64, decimals: usize| {
        let least = all.iter().map(of).fold(f64::INFINITY, f64::min);
        let most = all.iter().map(of).fold(0.0, f64::max);
        format!("{least:.decimals$} to {most:.decimals$}")
    };
    let completed = all.iter().filter(|r| r.completed).count();
    format!(
        "{}: {} runs, {completed} completed: ${}, {} input tokens, {} requests; the row is the first",
        o.real.strategy.label,
        all.len(),
        range(|r| r.usd, 4),
        range(|r| r.input_tokens as f64, 0),
        range(|r| r.requests as f64, 0)
    )
}

fn data(o: &DriveOutcome) -> Value {
    json!({
        "session": o.real.scenario.id,
        "program": o.real.strategy.program,
        "row": o.real.strategy.label,
        "model": o.real.model,
        "window": o.real.window,
        "status": o.real.status.word(),
        "error": o.real.error,
        "ours": o.ours.as_ref().map(|r| &r.strategy.label),
        "beside": o.agreement(),
        "refused": o.refused,
        "failed_moves": o.failed,
        "faults_that_never_struck": o.unused_faults,
        "side_requests": o.asides,
        "further_runs": o.repeats,
    })
}

/// Cases written to a folder.
struct Cases {
    folder: PathBuf,
    /// Number of cases that were recorded, also in vain.
    all: usize,
    /// Number of cases that differ or could not be written.
    wrong: usize,
}

impl Cases {
    fn in_folder(folder: &Path) -> anyhow::Result<Cases> {
        let name = || format!("--record {}: cannot be made a folder", folder.display());
        std::fs::create_dir_all(folder).with_context(name)?;
        Ok(Cases { folder: folder.to_path_buf(), all: 0, wrong: 0 })
    }

    /// Writes the case of a session and prints the outcome.
    fn take(&mut self, session: &Scenario, driven: &Driven) {
        let written = match driven.record(&session.id, &self.folder) {
            Ok(written) => written,
            Err(e) => {
                let failed = usize::from(!matches!(e, RecordError::Impossible(_)));
                self.all += failed;
                self.wrong += failed;
                report!("note: --record: {e}");
                return;
            }
        };
        self.all += 1;
        let (path, verdict) = (written.path.display(), &written.verdict);
        let (matched, expected) = (verdict.matched, verdict.expected);
        report!("note: {path}: {matched} of {expected} requests are ours, {} bytes", written.bytes);
        if let Some(d) = &verdict.difference {
            self.wrong += 1;
            let item = d.item.map_or(String::new(), |i| format!(", item {i}"));
            let (theirs, ours) = shorten(&d.expected, &d.got);
            report!("  request {}{item}: {}\n  - {theirs}\n  + {ours}", d.request, d.what);
        }
    }

    /// Returns an error message, or `None` if all cases agree.
    fn differ(self) -> Option<String> {
        let Cases { folder, all, wrong } = self;
        let told = || {
            format!(
                "{wrong} of {all} recorded cases differ from our implementation: `ctxbench conform \
                 {}` shows where",
                folder.display()
            )
        };
        (wrong > 0).then(told)
    }
}
