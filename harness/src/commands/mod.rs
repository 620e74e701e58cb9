//! The `ctxbench` command line, with one file per command.

/// Writes a line to standard error.
macro_rules! report {
    ($($line:tt)*) => { $crate::commands::write_stderr(&format!($($line)*)) };
}

mod advise;
mod compact;
mod completions;
mod config;
mod conform;
mod corpus;
mod drive;
mod explain;
mod folders;
mod gate;
mod import;
mod input;
mod list;
mod memory;
mod otel;
mod output;
mod private;
mod probe;
mod record;
mod report;
mod run;
mod serve;
mod specs;
mod summarizer;
mod survey;
mod validate;
pub(crate) mod values;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::choice::Choice;
use anyhow::{Context, bail};
use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use ctxbench_core::model::{self, OwnFile};
use ctxbench_os::loopback;
use ctxbench_reports as reports;
use ctxbench_scenarios::builtin::IDS;
use ctxbench_scenarios::formats::Source;
use ctxbench_scenarios::{LoadError, Scenario};
use ctxbench_strategies::descriptor::Product;
use ctxbench_util::files;

pub(crate) use output::{
    check_printed, print, print_data, print_either, print_json, print_with, write_stderr,
};

#[derive(Parser)]
#[command(
    name = "ctxbench",
    version,
    about = "Compare how coding agents compact their context, on the same sessions",
    help_template = "{about}\n\n{usage-heading} {usage}\n\n{before-help}Options:\n{options}{after-help}",
    after_help = EXIT_CODES,
    disable_help_subcommand = true,
    override_usage = "ctxbench [COMMAND] [OPTIONS]"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    global: Global,
}

const EXIT_CODES: &str = "\
`ctxbench COMMAND --help` explains a command. Without a command, `run` is meant.

Exit codes: 0 success, 1 a failed check or row, 2 wrong usage or input,
3 a bug in ctxbench, 130/143/129 ended by Ctrl-C, TERM or HUP";

/// Groups of commands in the help of `ctxbench`.
const GROUPS: [(&str, &[&str]); 4] = [
    ("Compare strategies", &["run", "list", "show", "report", "explain", "compare", "probe"]),
    ("Your own sessions", &["advise", "import", "compact", "memory"]),
    ("In CI", &["gate"]),
    ("Against real programs", &["drive", "record", "serve", "conform", "validate"]),
];

/// Options of every command.
#[derive(clap::Args)]
struct Global {
    /// TOML file with your own models, or changes to built-in ones (repeat); see docs/config.md
    #[arg(long, value_name = "FILE", global = true)]
    models: Vec<PathBuf>,
    /// Read options from FILE instead of the nearest ctxbench.toml; `none` reads no file
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
}

impl Global {
    /// Adds the models of `--models`. Call it before looking up any model.
    fn install(&self) -> anyhow::Result<()> {
        if self.models.is_empty() {
            return Ok(());
        }
        let read = |path: &PathBuf| {
            let text = files::read_text(path)
                .with_context(|| format!("--models: cannot read {}", path.display()))?;
            Ok(OwnFile { path: path.display().to_string(), text })
        };
        let files = self.models.iter().map(read).collect::<anyhow::Result<Vec<_>>>()?;
        Ok(model::install(&files)?)
    }
}

#[derive(Subcommand)]
enum Command {
    /// Compare strategies on sessions
    Run(Box<run::RunArgs>),
    /// Show what other settings would have changed in your last sessions
    Advise(advise::AdviseArgs),
    /// List strategies, scenarios, models, agents or recorded sessions
    List(Box<list::ListArgs>),
    /// Show a strategy's versions, settings, defaults and sources
    Show(list::ShowArgs),
    /// Convert recordings to sessions or to other formats
    Import(import::ImportArgs),
    /// Show the context before and after each compaction of a session
    Compact(compact::CompactArgs),
    /// Show the memory files that each product loads from a project
    Memory(memory::MemoryArgs),
    /// Check the strategies against recorded cases of the real programs
    Conform(conform::ConformArgs),
    /// Check our token and cache counts against a recording's counters
    Validate(validate::ValidateArgs),
    /// Drive an installed agent, and compare it with our strategy of it
    Drive(Box<drive::DriveArgs>),
    /// Serve a mock model on loopback for any client
    Serve(serve::ServeArgs),
    /// Record the traffic between an agent and its provider
    Record(record::RecordArgs),
    /// Show where a fact was lost, or what fills a session and costs next
    Explain(explain::ExplainArgs),
    /// Show the differences between two results
    Compare(gate::CompareArgs),
    /// Ask a real model about facts in the contexts of strategies
    Probe(probe::ProbeArgs),
    /// Fail when results are worse than a stored baseline
    Gate(gate::GateArgs),
    /// Write results in another format
    Report(report::ReportArgs),
    /// Print completions for a shell
    #[command(hide = true)]
    Completions(completions::CompletionsArgs),
    /// Write manual pages
    #[command(hide = true)]
    Man(completions::ManArgs),
}

/// End of the help of each command, after its name in brackets.
const HELP_ENDINGS: &str = include_str!("help.txt");

/// Returns the command line, with the groups of commands and the examples in its help.
fn root() -> clap::Command {
    let mut root = Cli::command();
    for (name, text) in HELP_ENDINGS.split('[').filter_map(|section| section.split_once("]\n")) {
        root = root
            .mut_subcommand(name, |command| command.after_help(format!("{}\n", text.trim_end())));
    }
    let mut groups = String::new();
    for (heading, names) in GROUPS {
        let _ = writeln!(groups, "{heading}:");
        for command in names.iter().filter_map(|name| root.find_subcommand(name)) {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(groups, "  {:<10} {about}", command.get_name());
        }
        groups.push('\n');
    }
    root.before_help(groups.trim_end().to_string())
}

/// Error of a check that failed on valid input; exit code 1.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct CheckFailed(pub(crate) String);

/// Runs the command line with additional strategies. Call it from your own `main`.
pub fn main(own: &[&'static dyn Product]) -> ExitCode {
    if let Err(e) = ctxbench_strategies::add(own) {
        return exit_code(Err(e.into()));
    }
    let mut root = root();
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    if arguments.get(1).is_some_and(|a| a == loopback::ENTER) {
        return loopback::enter(&arguments[2..]);
    }
    let mut file = None;
    if let Some(at) = find_command(&root, &mut arguments) {
        match config::configure(&root, &mut arguments, at) {
            Ok(configured) => file = configured,
            Err(e) => return exit_code(Err(e)),
        }
    }
    let odd = arguments.iter().find(|a| a.to_str().is_none()).map(|a| a.display().to_string());
    let parsed = root.try_get_matches_from_mut(arguments);
    let parsed = parsed.and_then(|m| Cli::from_arg_matches(&m).map_err(|e| e.format(&mut root)));
    let note = file.map(|file| format!("note: options from {}", file.display()));
    let cli = match parsed {
        Ok(cli) => cli,
        // `--help` or `--version`.
        Err(e) if !e.use_stderr() => return exit_code(check_printed(e.print())),
        Err(e) => {
            match odd.filter(|_| e.kind() == ErrorKind::InvalidUtf8) {
                Some(odd) => report!(
                    "error: {odd}: the name is not UTF-8; rename the file, or give its folder"
                ),
                None => drop(e.print()),
            }
            note.iter().for_each(|note| write_stderr(note));
            return ExitCode::from(2);
        }
    };
    note.iter().for_each(|note| write_stderr(note));
    match std::panic::catch_unwind(|| dispatch(cli)) {
        Ok(code) => code,
        // The panic hook has already printed the message.
        Err(_) => ExitCode::from(3),
    }
}

/// Returns the position of the command among the arguments, after the options that all commands
/// share. If the first argument is an option of `run` or a session, inserts `run`. Returns `None`
/// if clap answers by itself: `--help`, `--version`, or an unknown command.
fn find_command(root: &clap::Command, arguments: &mut Vec<OsString>) -> Option<usize> {
    let mut at = 1;
    while let Some(option) = arguments.get(at).and_then(|a| a.to_str()) {
        match option {
            "--models" | "--config" => at += 2,
            _ if option.starts_with("--models=") || option.starts_with("--config=") => at += 1,
            _ => break,
        }
    }
    let first = arguments.get(at).map(|a| a.to_string_lossy().into_owned()).unwrap_or_default();
    if root.find_subcommand(&first).is_some() {
        return Some(at);
    }
    let is_answered = ["-h", "--help", "-V", "--version"].contains(&first.as_str());
    let is_session = first.contains(['/', '.', '\\'])
        || first == "all"
        || IDS.contains(&first.as_str())
        || Path::new(&first).exists();
    if is_answered || !(first.is_empty() || first.starts_with('-') || is_session) {
        return None;
    }
    let at = at.min(arguments.len());
    arguments.insert(at, "run".into());
    Some(at)
}

fn dispatch(cli: Cli) -> ExitCode {
    if let Err(e) = cli.global.install() {
        return exit_code(Err(e));
    }
    let outcome = match cli.command {
        Command::Run(a) => run::run(*a),
        Command::Advise(a) => advise::advise(&a),
        Command::List(a) => list::list(&a),
        Command::Show(a) => list::run_show(&a),
        Command::Import(a) => import::import(&a),
        Command::Compact(a) => compact::compact(&a),
        Command::Memory(a) => memory::memory(&a),
        Command::Conform(a) => conform::conform(&a),
        Command::Validate(a) => validate::validate(&a),
        Command::Drive(a) => drive::drive(&a),
        Command::Serve(a) => serve::serve(a),
        Command::Record(a) => match record::record(&a) {
            Ok(code) => return code,
            Err(e) => Err(e),
        },
        Command::Explain(a) => explain::explain(&a),
        Command::Compare(a) => gate::compare(&a),
        Command::Probe(a) => probe::probe(&a),
        Command::Gate(a) => gate::gate(&a),
        Command::Report(a) => report::report(&a),
        Command::Completions(a) => completions::completions(&a, root()),
        Command::Man(a) => completions::man(&a, root()),
    };
    ctxbench_os::shutdown::wait_if_requested();
    let ended = ctxbench_os::shutdown::end_orphans();
    exit_code(outcome.and(ended.map_err(Into::into)))
}

fn exit_code(outcome: anyhow::Result<()>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) if e.is::<CheckFailed>() => {
            report!("{e}");
            ExitCode::from(1)
        }
        Err(e) => {
            report!("error: {}", error_chain(&e));
            ExitCode::from(2)
        }
    }
}

/// Returns the first of several errors, and prints the others.
fn first_error(errors: Vec<anyhow::Error>) -> anyhow::Result<()> {
    let mut errors = errors.into_iter();
    let Some(first) = errors.next() else { return Ok(()) };
    errors.for_each(|e| report!("error: {}", error_chain(&e)));
    Err(first)
}

/// Joins an error and its causes. Leaves out a cause that is already part of the text.
fn error_chain(e: &anyhow::Error) -> String {
    e.chain().map(ToString::to_string).fold(String::new(), |mut all, cause| {
        if !all.contains(&cause) {
            all += if all.is_empty() { "" } else { ": " };
            all += &cause;
        }
        all
    })
}

/// Improves the error for an argument that names a strategy or a model instead of a session.
fn meant(name: &str, e: LoadError) -> anyhow::Error {
    if e.is_other() && reports::is_listed(Path::new(name), "results.json") {
        return anyhow::anyhow!(
            "{name} has the results of a run, not sessions; read them with `ctxbench report \
             {name}`, or check them with `ctxbench gate {name} --baseline FILE`"
        );
    }
    if !matches!(e, LoadError::NoSuchName { .. }) {
        return e.into();
    }
    let option = if specs::parse_one(name).is_ok() {
        ("strategy", "--strategy")
    } else if model::find(name).is_ok() {
        ("model", "--model")
    } else {
        return e.into();
    };
    anyhow::anyhow!("{name:?} is a {}, not a session; use {} {name}", option.0, option.1)
}

/// Number of bytes that is enough to detect a format.
const HEAD_BYTES: u64 = 1 << 20;

/// Refuses outputs that cannot be written, are also inputs, or would overwrite each other.
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

/// Returns the first bytes of a file; none if it is not a readable file.
fn head(path: &Path, bytes: u64) -> Vec<u8> {
    let mut head = Vec::new();
    if std::fs::metadata(path).is_ok_and(|m| m.is_file()) {
        let _ = File::open(path).and_then(|file| file.take(bytes).read_to_end(&mut head));
    }
    head
}

/// Refuses an existing output that does not begin with `beginning`, because ctxbench did not write
/// it.
fn check_replaced(option: &str, path: &Path, beginning: &str) -> anyhow::Result<()> {
    let head = head(path, beginning.len() as u64);
    if !head.is_empty() && head != beginning.as_bytes() {
        bail!(
            "{option}: {} exists and is not a file that ctxbench wrote for {option}; name another \
             file, or remove it",
            path.display()
        );
    }
    Ok(())
}

/// Refuses to append to a session, a recording or a scenario.
pub(crate) fn check_not_session(option: &str, path: &Path) -> anyhow::Result<()> {
    if ctxbench_scenarios::sniff(&Source::of_bytes(&head(path, HEAD_BYTES), "")).is_some() {
        bail!("{option}: {} is a session; name another file", path.display());
    }
    Ok(())
}

/// Loads the session of an argument; `-` is standard input. Fails unless there is exactly one.
/// Reports files of a folder that are not sessions on standard error.
pub(crate) fn load_one(who: &str, name: &str) -> anyhow::Result<Scenario> {
    let mut loaded = corpus::load_all(&[name.to_string()], &Choice::default())?;
    match loaded.len() {
        1 => Ok(loaded.remove(0)),
        n => Err(several(who, name, n)),
    }
}

/// Returns the error for an input with several sessions where one is needed.
fn several(who: &str, name: &str, n: usize) -> anyhow::Error {
    anyhow::anyhow!(
        "{who} takes one session, but {name} has {n}; `ctxbench import {name} -o sessions/` writes \
         a file for each"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visible_commands_are_each_in_one_group() {
        let root = root();
        let mut visible: Vec<&str> =
            root.get_subcommands().filter(|c| !c.is_hide_set()).map(|c| c.get_name()).collect();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        visible.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(visible, grouped);
        assert!(visible.len() <= 17);
    }

    #[test]
    fn help_is_short() {
        let lines = root().render_help().to_string().lines().count();
        assert!(lines <= 60, "{lines}");
        let run = root().find_subcommand("run").unwrap().clone();
        let visible = |a: &&clap::Arg| !a.is_hide_set() && a.get_long().is_some();
        assert!(run.get_arguments().filter(visible).count() <= 28);
    }

    #[test]
    fn examples_of_every_command_parse() {
        for command in root().get_subcommands() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let mut examples =
                help.lines().filter_map(|l| l.strip_prefix("  ctxbench ")).peekable();
            assert!(examples.peek().is_some(), "`{}` has no example", command.get_name());
            for line in examples {
                let line = line.split(" > ").next().unwrap();
                let words = shlex::split(&format!("ctxbench {line}")).unwrap();
                let mut words = words.into_iter().map(OsString::from).collect();
                find_command(&root(), &mut words);
                let parsed = root().try_get_matches_from(words);
                assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
            }
        }
    }

    #[test]
    fn command_is_found_after_global_options_and_run_is_inserted() {
        let find = |line: &str| {
            let mut words = line.split(' ').map(OsString::from).collect();
            let at = find_command(&root(), &mut words);
            let words: Vec<_> = words.iter().map(|w| w.to_str().unwrap()).collect();
            (at, words.join(" "))
        };
        assert_eq!(find("ctxbench"), (Some(1), "ctxbench run".into()));
        assert_eq!(find("ctxbench --out x"), (Some(1), "ctxbench run --out x".into()));
        assert_eq!(find("ctxbench login-bug"), (Some(1), "ctxbench run login-bug".into()));
        assert_eq!(find("c --models m list models"), (Some(3), "c --models m list models".into()));
        assert_eq!(find("c --config=f --out x"), (Some(2), "c --config=f run --out x".into()));
        assert_eq!(find("c --help"), (None, "c --help".into()));
        assert_eq!(find("c rnu login-bug"), (None, "c rnu login-bug".into()));
    }
}
