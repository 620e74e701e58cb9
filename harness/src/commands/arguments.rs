//! The command line as people type it: options of all commands may stand before the command, and
//! what is wrong is said in one line.

use std::ffi::{OsStr, OsString};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, Command};

/// The arguments with the command in front, and the options of all commands that stood before it
/// behind it.
pub(super) fn command_first(root: &Command, mut given: Vec<OsString>) -> Vec<OsString> {
    let mut at = 1;
    while let Some(option) = given.get(at).and_then(|a| global(root, a)) {
        let has_value = given[at].as_encoded_bytes().contains(&b'=');
        at += if has_value || !takes_value(option) { 1 } else { 2 };
    }
    let is_command = |a: &OsString| root.get_subcommands().any(|c| *a == *c.get_name());
    if at > 1 && given.get(at).is_some_and(is_command) {
        given[1..=at].rotate_right(1);
    }
    given
}

/// The option of all commands that an argument is.
fn global<'a>(root: &'a Command, argument: &OsStr) -> Option<&'a Arg> {
    let name = argument.to_str()?.strip_prefix("--")?.split('=').next()?;
    root.get_arguments().find(|a| a.is_global_set() && a.get_long() == Some(name))
}

/// The same with options that take `-1` for their value, so that what they take is told and not that
/// there is no option `-1`.
pub(super) fn taking_negatives(command: Command) -> Command {
    let option = |a: Arg| match a.get_long() {
        Some(_) if takes_value(&a) => a.allow_negative_numbers(true),
        _ => a,
    };
    command.mut_args(option).mut_subcommands(taking_negatives)
}

fn takes_value(option: &Arg) -> bool {
    matches!(option.get_action(), ArgAction::Set | ArgAction::Append)
}

/// What clap has to say of wrong arguments, on one line, and where more is told.
pub(super) fn told(e: &clap::Error, root: &Command, given: &[OsString]) -> String {
    if let Some(missing) = missing(e) {
        return missing;
    }
    let text = e.to_string();
    let what = text.split_once("Usage:").map_or(&*text, |(what, _)| what);
    let what = what.strip_prefix("error:").unwrap_or(what);
    let lines = what.lines().map(str::trim).filter(|l| !l.is_empty());
    let noise = ["For more information", "tip: to pass "];
    let lines = lines.filter(|l| !noise.iter().any(|n| l.starts_with(n)));
    let mut out = String::new();
    for line in lines {
        let line = line.replace("invalid digit found in string", "a whole number is expected");
        let (join, line) = match line.strip_prefix("tip: ") {
            Some(tip) => ("; ", tip),
            None => (" ", &*line),
        };
        out += if out.is_empty() { "" } else { join };
        out += line;
    }
    format!("{out}; see `{} --help`", command_of(root, given))
}

/// The command that arguments name, with those that it is below.
fn command_of(root: &Command, given: &[OsString]) -> String {
    let (mut command, mut path) = (root, root.get_name().to_string());
    for word in given.iter().skip(1) {
        let Some(below) = command.find_subcommand(word) else { break };
        path = format!("{path} {}", below.get_name());
        command = below;
    }
    path
}

/// What a command takes where an argument is missing that it needs.
fn missing(e: &clap::Error) -> Option<String> {
    match (e.get(ContextKind::InvalidArg), e.get(ContextKind::Usage)) {
        (Some(ContextValue::Strings(all)), Some(ContextValue::StyledStr(usage)))
            if e.kind() == ErrorKind::MissingRequiredArgument =>
        {
            let usage = usage.to_string();
            let usage = usage.trim().trim_start_matches("Usage: ").trim();
            Some(format!("missing {}: {usage}", all.join(" and ")))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> Command {
        let own = Arg::new("own").long("own").global(true);
        let plain = Arg::new("plain").long("plain").global(true).action(ArgAction::SetTrue);
        let mode = Arg::new("mode").long("mode").value_parser(["fast", "slow"]);
        let input = Arg::new("input").required(true).value_name("FILE");
        let run = Command::new("run").arg(mode).arg(input);
        Command::new("ctxbench").arg(own).arg(plain).subcommand(run)
    }

    #[test]
    fn options_of_all_commands_may_stand_before_the_command() {
        let first = |line: &str| {
            let given = line.split(' ').map(OsString::from).collect();
            let all = command_first(&root(), given);
            all.iter().map(|a| a.to_str().unwrap()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(first("c --own x --plain run --mode fast"), "c run --own x --plain --mode fast");
        assert_eq!(first("c --own=run run f"), "c run --own=run f");
        for same in ["c run --plain f", "c --own run", "c --mode fast run", "c f run", "c"] {
            assert_eq!(first(same), same);
        }
    }

    #[test]
    fn what_is_wrong_is_one_line() {
        let of = |line: &str| {
            let given: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            told(&root().try_get_matches_from(&given).unwrap_err(), &root(), &given)
        };
        assert_eq!(
            of("ctxbench run f --mde fast"),
            "unexpected argument '--mde' found; a similar argument exists: '--mode'; see \
             `ctxbench run --help`"
        );
        assert_eq!(
            of("ctxbench run f --mode quick"),
            "invalid value 'quick' for '--mode <mode>' [possible values: fast, slow]; see \
             `ctxbench run --help`"
        );
        assert_eq!(of("ctxbench run"), "missing <FILE>: ctxbench run <FILE>");
    }
}
