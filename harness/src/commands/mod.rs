//! One file per command; the exit codes are a contract: 0 fine, 1 a check failed, 2 bad usage or
//! input, 3 internal.

/// Writes a line to standard error.
macro_rules! tell {
    ($($line:tt)*) => { $crate::commands::say(&format!($($line)*)) };
}

mod advise;
mod arguments;
mod compact;
mod completions;
mod config;
mod conform;
mod corpus;
mod drive;
mod examples;
mod explain;
mod gate;
mod import;
mod input;
mod list;
mod memory;
mod merge;
mod number;
mod otel;
mod private;
mod record;
mod report;
mod run;
mod serve;
mod specs;
mod summarizer;
mod survey;
mod validate;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::choice::Choice;
use anyhow::{Context, bail};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use ctxbench_core::files;
use ctxbench_core::model::{self, OwnFile};
use ctxbench_core::nearest::nearest;
use ctxbench_reports::{ReportError, printable};
use ctxbench_scenarios::builtin::IDS;
use ctxbench_scenarios::formats::Source;
use ctxbench_scenarios::{LoadError, Scenario};
use ctxbench_strategies::descriptor::Descriptor;

#[derive(Parser)]
#[command(
    name = "ctxbench",
    version,
    about = "What does a coding agent gain and lose when it forgets? Compares context compaction \
        on the same sessions.",
    long_about = None,
    after_help = "Exit codes: 0 fine, 1 a check failed, 2 bad usage or input, 3 a fault of \
        ctxbench itself; told to end by a signal: 130 Ctrl-C, 143 TERM, 129 HUP.",
    args_conflicts_with_subcommands = true
)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    global: Global,
    #[command(flatten)]
    run: run::Args,
}

/// What every command takes.
#[derive(clap::Args)]
struct Global {
    /// TOML file with models of your own, or other prices, windows and cache rules for listed ones
    /// (repeat); see docs/formats.md
    #[arg(long, value_name = "FILE", global = true)]
    models: Vec<PathBuf>,
    #[command(flatten)]
    options: config::Which,
}

impl Global {
    /// Before anything else looks up a model.
    fn install(&self) -> anyhow::Result<()> {
        if self.models.is_empty() {
            return Ok(());
        }
        let read = |path: &PathBuf| {
            let text = ctxbench_core::files::read_text(path)
                .with_context(|| format!("--models: cannot read {}", path.display()))?;
            Ok(OwnFile { path: path.display().to_string(), text })
        };
        let files = self.models.iter().map(read).collect::<anyhow::Result<Vec<_>>>()?;
        Ok(model::install(&files)?)
    }
}

#[derive(Subcommand)]
enum Command {
    /// Compare strategies on sessions (the default)
    Run(Box<run::Args>),
    /// What your product's own settings would have changed on your last sessions
    Advise(advise::Args),
    /// List strategies, scenarios, models, or the sessions of files and folders
    List(Box<list::Args>),
    /// A strategy's version, sources and settings, and what it does when
    Show(list::ShowArgs),
    /// Turn a recording into a session
    Import(import::Args),
    /// The context before and after each compaction of a session
    Compact(compact::Args),
    /// The memory files that each product would load from a project, with their tokens
    Memory(memory::Args),
    /// Recorded behaviour of the real programs against ours
    Conform(conform::Args),
    /// Our cache model and token counts against the provider's counters in a recording
    Validate(validate::Args),
    /// Drive a real, installed agent through sessions and measure what it asks its model
    Drive(Box<drive::Args>),
    /// The mock model server on loopback, for any client
    Serve(serve::Args),
    /// A session with a real model, as it goes over the wire: requests, replies and counters
    Record(record::Args),
    /// Where a fact was lost, with the text before and after
    Explain(explain::Args),
    /// Differences between two results
    Compare(gate::CompareArgs),
    /// Fail when results are worse than a stored baseline
    Gate(gate::Args),
    /// Results in another format
    Report(report::Args),
    /// The parts of a run as one: the same files that one run would have written
    Merge(merge::Args),
    /// Completions for a shell, on standard output
    Completions(completions::Args),
    /// Manual pages
    Man(completions::ManArgs),
}

/// The command line as it is parsed and described.
fn root() -> clap::Command {
    arguments::taking_negatives(examples::added(Cli::command()))
}

/// A check failed: nothing is wrong with the input.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct CheckFailed(pub(crate) String);

/// The whole command line, with strategies of another crate beside ours: a `main` calls it and
/// returns what it gives.
pub fn main(own: &'static [Descriptor]) -> ExitCode {
    if let Err(e) = ctxbench_strategies::add(own) {
        return exit_code(Err(e.into()));
    }
    let mut root = root();
    let given = arguments::command_first(&root, std::env::args_os().collect());
    let merged = match config::merged(&root, given) {
        Ok(merged) => merged,
        Err(e) => return exit_code(Err(e)),
    };
    let parsed = root.try_get_matches_from_mut(&merged.arguments);
    let parsed = parsed.and_then(|m| Cli::from_arg_matches(&m).map_err(|e| e.format(&mut root)));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(e) => {
            // --help and --version are fine; everything else is bad usage.
            if !e.use_stderr() {
                return exit_code(printed_whole(e.print()));
            }
            let place = merged.place(&e).map(|place| format!("{place}: ")).unwrap_or_default();
            tell!("error: {place}{}", arguments::told(&e, &root, &merged.arguments));
            return ExitCode::from(2);
        }
    };
    if let Some(note) = merged.note() {
        tell!("{note}");
    }
    match std::panic::catch_unwind(|| dispatch(cli)) {
        Ok(code) => code,
        // The panic has printed itself.
        Err(_) => ExitCode::from(3),
    }
}

fn dispatch(cli: Cli) -> ExitCode {
    if let Err(e) = cli.global.install() {
        return exit_code(Err(e));
    }
    let outcome = match cli.command {
        None => meant_run(&cli.run.inputs).and_then(|()| run::run(cli.run)),
        Some(Command::Run(a)) => run::run(*a),
        Some(Command::Advise(a)) => advise::advise(&a),
        Some(Command::List(a)) => list::list(&a),
        Some(Command::Show(a)) => list::show(&a),
        Some(Command::Import(a)) => import::import(&a),
        Some(Command::Compact(a)) => compact::compact(&a),
        Some(Command::Memory(a)) => memory::memory(&a),
        Some(Command::Conform(a)) => conform::conform(&a),
        Some(Command::Validate(a)) => validate::validate(&a),
        Some(Command::Drive(a)) => drive::drive(&a),
        Some(Command::Serve(a)) => serve::serve(a),
        Some(Command::Record(a)) => match record::record(&a) {
            Ok(code) => return code,
            Err(e) => Err(e),
        },
        Some(Command::Explain(a)) => explain::explain(&a),
        Some(Command::Compare(a)) => gate::compare(&a),
        Some(Command::Gate(a)) => gate::gate(&a),
        Some(Command::Report(a)) => report::report(&a),
        Some(Command::Merge(a)) => merge::merge(&a),
        Some(Command::Completions(a)) => completions::completions(&a, root()),
        Some(Command::Man(a)) => completions::man(&a, root()),
    };
    exit_code(outcome)
}

/// Refuses what was meant as a command and would be taken for a session of `run`.
fn meant_run(inputs: &[String]) -> anyhow::Result<()> {
    let root = Cli::command();
    let commands: Vec<&str> = root.get_subcommands().map(clap::Command::get_name).collect();
    let unread = |name: &str| !Path::new(name).exists();
    if let Some(name) = inputs.iter().find(|i| commands.contains(&i.as_str()) && unread(i)) {
        bail!("`{name}` is a command, and commands stand first: ctxbench {name} …");
    }
    let Some(first) = inputs.first().filter(|i| unread(i) && !i.contains(['/', '.'])) else {
        return Ok(());
    };
    let known: Vec<&str> = commands.iter().chain(IDS).copied().collect();
    match nearest(first, &known).first() {
        Some(near) if near != first && commands.contains(near) => {
            bail!("there is no command `{first}`; did you mean {near}?")
        }
        _ => Ok(()),
    }
}

fn exit_code(outcome: anyhow::Result<()>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) if e.is::<CheckFailed>() => {
            tell!("{e}");
            ExitCode::from(1)
        }
        Err(e) => {
            tell!("error: {}", told(&e));
            ExitCode::from(2)
        }
    }
}

/// An error and its causes, each once: many of our messages already hold their cause.
fn told(e: &anyhow::Error) -> String {
    e.chain().map(ToString::to_string).fold(String::new(), |mut all, cause| {
        if !all.contains(&cause) {
            all += if all.is_empty() { "" } else { ": " };
            all += &cause;
        }
        all
    })
}

/// The sessions that an argument names; - is standard input. What a folder holds besides is told on
/// standard error.
pub(crate) fn load(name: &str) -> anyhow::Result<Vec<Scenario>> {
    corpus::load_all(&[name.to_string()], &Choice::default())
}

/// What was named as a session, and is something else that we know.
fn meant(name: &str, e: LoadError) -> anyhow::Error {
    if !matches!(e, LoadError::NoSuchName { .. }) {
        return e.into();
    }
    let option = if specs::one(name).is_ok() {
        ("strategy", "--strategy")
    } else if model::find(name).is_ok() {
        ("model", "--model")
    } else {
        return e.into();
    };
    anyhow::anyhow!("{name:?} is a {} and no session; give it as {} {name}", option.0, option.1)
}

/// Enough of a file to see what it is, bytes.
const HEAD_BYTES: u64 = 1 << 20;

/// Refuses outputs, with their options, that cannot be written, are among the inputs or would
/// overwrite each other.
fn check_outputs(outputs: &[(&str, &Path)], inputs: &[PathBuf]) -> anyhow::Result<()> {
    for (i, (option, path)) in outputs.iter().enumerate() {
        files::check_output(path, inputs).with_context(|| option.to_string())?;
        if let Some((other, _)) = outputs[..i].iter().find(|(_, p)| files::same_place(p, path)) {
            bail!(
                "{other} and {option} both name {}, and one would overwrite the other; name two \
                 files",
                path.display()
            );
        }
    }
    Ok(())
}

/// Refuses an output that is a session, a recording or a scenario.
pub(crate) fn not_a_session(option: &str, path: &Path) -> anyhow::Result<()> {
    let mut head = Vec::new();
    let regular = std::fs::metadata(path).is_ok_and(|m| m.is_file());
    let mut read = || File::open(path)?.take(HEAD_BYTES).read_to_end(&mut head);
    if regular
        && { read }().is_ok()
        && ctxbench_scenarios::sniff(&Source::of_bytes(&head, "")).is_some()
    {
        bail!("{option}: {} holds a session; name another file", path.display());
    }
    Ok(())
}

/// The one session that something takes.
pub(crate) fn load_one(who: &str, name: &str) -> anyhow::Result<Scenario> {
    let mut loaded = load(name)?;
    match loaded.len() {
        1 => Ok(loaded.remove(0)),
        n => bail!("{who} takes one session, and {n} are in {name}"),
    }
}

/// Prints to standard output. Whoever closed the pipe wants no more, which is no error; anything
/// else that keeps the text from its reader is.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    let end = if text.ends_with('\n') { "" } else { "\n" };
    let printed = out
        .write_all(text.as_bytes())
        .and_then(|()| out.write_all(end.as_bytes()))
        .and_then(|()| out.flush());
    printed_whole(printed)
}

/// Names and texts of sessions are a stranger's: none of them steers the terminal. Whoever closed
/// standard error has no use for the line, and the exit code says how it went; `eprintln!` would
/// panic.
pub(crate) fn say(line: &str) {
    use std::io::Write;
    let harmless = line.split('\n').map(printable).collect::<Vec<_>>().join("\n");
    let _ = writeln!(std::io::stderr(), "{harmless}");
}

/// Prints what is made while it is written, and ends its line itself.
pub(crate) fn print_with(
    write: impl FnOnce(&mut dyn std::io::Write) -> Result<(), ReportError>,
) -> anyhow::Result<()> {
    match write(&mut std::io::BufWriter::new(std::io::stdout().lock())) {
        Err(ReportError::Io(e)) => printed_whole(Err(e)),
        other => Ok(other?),
    }
}

pub(crate) fn printed_whole(printed: std::io::Result<()>) -> anyhow::Result<()> {
    match printed {
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => other.context("standard output is not whole; is there space where it goes?"),
    }
}
