//! One file per command; the exit codes are a contract: 0 fine, 1 a check failed, 2 bad usage or input, 3 internal.

mod compact;
mod conform;
mod gate;
mod import;
mod list;
mod report;
mod run;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// What does a coding agent gain and lose when it forgets?
#[derive(Parser)]
#[command(name = "ctxbench", version, about, long_about = None, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    run: run::Args,
}

#[derive(Subcommand)]
enum Command {
    /// Compare strategies on sessions (the default)
    Run(run::Args),
    /// List strategies, scenarios or models
    List(list::Args),
    /// A strategy's version, sources and settings, and what it does when
    Show(list::ShowArgs),
    /// Turn a recording into a session
    Import(import::Args),
    /// The context before and after a compaction at the end of a session
    Compact(compact::Args),
    /// Recorded behaviour of the real programs against ours
    Conform(conform::Args),
    /// Differences between two results
    Compare(gate::CompareArgs),
    /// Fail when results are worse than a stored baseline
    Gate(gate::Args),
    /// Results in another format
    Report(report::Args),
}

/// A check failed: nothing is wrong with the input.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct CheckFailed(pub(crate) String);

pub(crate) fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(e) => {
            // --help and --version are fine; everything else is bad usage.
            let code = if e.use_stderr() { 2 } else { 0 };
            let _ = e.print();
            return ExitCode::from(code);
        }
    };
    let outcome = match cli.command {
        None => run::run(cli.run),
        Some(Command::Run(a)) => run::run(a),
        Some(Command::List(a)) => list::list(&a),
        Some(Command::Show(a)) => list::show(&a),
        Some(Command::Import(a)) => import::import(&a),
        Some(Command::Compact(a)) => compact::compact(&a),
        Some(Command::Conform(a)) => conform::conform(&a),
        Some(Command::Compare(a)) => gate::compare(&a),
        Some(Command::Gate(a)) => gate::gate(&a),
        Some(Command::Report(a)) => report::report(&a),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) if e.is::<CheckFailed>() => {
            eprintln!("{e}");
            ExitCode::from(1)
        }
        Err(e) => {
            eprintln!("error: {e:#}");
            ExitCode::from(2)
        }
    }
}

/// Prints to standard output; a closed pipe is no error.
pub(crate) fn print(text: &str) {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes());
    if !text.ends_with('\n') {
        let _ = out.write_all(b"\n");
    }
}
