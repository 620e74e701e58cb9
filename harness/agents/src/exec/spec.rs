//! Parses `NAME[@VERSION]=exec[{k=v,…}]:COMMAND`, a program as a strategy.

use std::path::Path;

use ctxbench_core::settings::{Setting, SettingKind, Settings, Value, split_pair, split_pairs};
use ctxbench_core::strategy::Strategy;
use ctxbench_strategies::descriptor::{
    About, BuildRequest, Descriptor, MemoryFiles, Product, Version,
};
use ctxbench_strategies::names::intern;
use ctxbench_strategies::{Spec, SpecError, all, sweep};
use ctxbench_util::files;

use super::process::ExecLimits;
use super::state::Exec;

/// Version of a program for which the user gives none.
const NO_VERSION: &str = "exec";

struct ExecProgram {
    command: Vec<String>,
    limits: ExecLimits,
    about: About,
}

impl Product for ExecProgram {
    fn about(&self) -> About {
        self.about.clone()
    }

    fn build(&self, order: &BuildRequest<'_>) -> Box<dyn Strategy> {
        let settings = order.settings.all().map(|(k, v)| (k.to_string(), json(v))).collect();
        let (command, limits) = (self.command.clone(), self.limits.clone());
        Box::new(Exec { command, limits, settings, scale: order.scale, ..Exec::default() })
    }

    fn is_run_twice(&self) -> bool {
        self.limits.twice
    }

    fn command(&self) -> Option<String> {
        let twice = if self.limits.twice { "{exec.twice=true}" } else { "" };
        Some(format!("exec{twice}:{}{}", self.command.join(" "), folder_in_repository()))
    }
}

/// Names the working folder below the root of its repository, because a relative command is another
/// program in another folder; empty at the root, and outside of a repository.
fn folder_in_repository() -> String {
    let here = std::env::current_dir().unwrap_or_default();
    let below = files::repository_root(&here)
        .and_then(|root| here.strip_prefix(root).ok())
        .unwrap_or(Path::new(""));
    match below.as_os_str().is_empty() {
        true => String::new(),
        false => format!(" (in {})", below.display()),
    }
}

fn json(value: &Value) -> serde_json::Value {
    match value {
        Value::Int(n) => (*n).into(),
        Value::Real(x) | Value::OfWindow(x) => (*x).into(),
        Value::Flag(b) => (*b).into(),
        // Numbers and flags are sent as such.
        Value::Word(w) => match serde_json::from_str(w) {
            Ok(v @ (serde_json::Value::Number(_) | serde_json::Value::Bool(_))) => v,
            _ => w.clone().into(),
        },
    }
}

pub fn is_exec(text: &str) -> bool {
    split(text).is_some() || text.starts_with("exec:") || text.starts_with("exec{")
}

/// Splits into the name with its version and the text after `exec`.
fn split(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = text.split_once('=')?;
    let rest = rest.strip_prefix("exec").filter(|r| r.is_empty() || r.starts_with([':', '{']))?;
    (!name.contains([':', '+'])).then_some((name.trim(), rest))
}

/// Parses a program as a strategy. Lists and ranges of values give several.
pub fn parse(text: &str) -> Result<Vec<Spec>, SpecError> {
    let wrong = |why: &str| {
        let expected = "write NAME=exec:COMMAND or NAME=exec{setting=value,…}:COMMAND";
        SpecError::Program(format!("`{text}`: {why}; {expected}"))
    };
    let (name, rest) = split(text).ok_or_else(|| wrong("the name is missing"))?;
    let (settings, command) = match rest.strip_prefix('{') {
        Some(inner) => inner.split_once("}:").ok_or_else(|| wrong("`}:` is missing"))?,
        None => ("", rest.strip_prefix(':').unwrap_or(rest)),
    };
    let (name, version) = name.split_once('@').map_or((name, None), |(n, v)| (n, Some(v)));
    let good = |n: &str| {
        let letter = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
        !n.is_empty() && n.len() <= 64 && n.chars().all(letter)
    };
    if !good(name) || !version.is_none_or(good) {
        return Err(wrong("names and versions are of letters, digits, `-`, `_` and `.`"));
    }
    if all().any(|d| d.name == name) {
        return Err(wrong("ctxbench has a strategy with this name; choose another"));
    }
    let command = shlex::split(command).ok_or_else(|| wrong("a quote is not closed"))?;
    if command.is_empty() {
        return Err(wrong("the command is missing"));
    }
    let swept = if settings.trim().is_empty() {
        vec![name.to_string()]
    } else {
        sweep::expand(&format!("{name}:{settings}"), &|_| false)?
    };
    swept.iter().map(|row| parse_one(row, name, version, &command)).collect()
}

/// One row: `name` or `name:k=v,…`.
fn parse_one(
    row: &str,
    name: &str,
    version: Option<&str>,
    command: &[String],
) -> Result<Spec, SpecError> {
    let mut limits = ExecLimits::default();
    let mut own = Vec::new();
    let settings = row.split_once(':').map_or("", |(_, s)| s);
    for pair in split_pairs(settings)?.into_iter().filter(|p| !p.is_empty()) {
        let (key, value) = split_pair(pair)?;
        if !limits.take(key, &value)? {
            own.push((key, value));
        }
    }
    let plain = Version::new(NO_VERSION, "your program");
    let mut versions = vec![plain];
    let named = version.map(|v| Version { name: intern(v), program: Some(NO_VERSION), ..plain });
    versions.extend(named);
    let version = versions[versions.len() - 1];
    let about = About {
        name: intern(name),
        summary: intern(&format!("a program: {}", command.join(" "))),
        files: MemoryFiles::None("a program gets the files that the session shows"),
        page: "docs/exec.md",
        settings: own.iter().map(|(key, value)| setting(key, value)).collect(),
        versions,
        ..About::default()
    };
    let product = Box::leak(Box::new(ExecProgram { command: command.to_vec(), limits, about }));
    let descriptor = Box::leak(Box::new(Descriptor::new(product)));
    let mut settings = Settings::defaults(&descriptor.settings);
    for (key, value) in own {
        settings.set(name, key, &value)?;
    }
    Ok(Spec { descriptor, version, settings })
}

/// Returns the definition of a setting: tokens for `90k` and `40%`, else text.
fn setting(name: &str, value: &str) -> Setting {
    let digits = |s: &str| s.starts_with(|c: char| c.is_ascii_digit());
    let tokens = digits(value) && value.ends_with(['k', 'K', '%']);
    Setting {
        name: intern(name),
        kind: if tokens { SettingKind::Tokens } else { SettingKind::Text },
        default: Value::Word("".into()),
        help: "a setting of the program",
        source: "the program",
        versions: Vec::new(),
        keys: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(text: &str) -> Vec<String> {
        parse(text).unwrap().iter().map(Spec::label).collect()
    }

    #[test]
    fn parse_sweep_gives_a_row_per_value() {
        assert_eq!(labels("mine=exec:python3 mine.py"), ["mine"]);
        assert_eq!(labels("mine@2=exec:x"), ["mine@2"]);
        assert_eq!(
            labels("mine=exec{limit=[60k,50%],mode=a}:x y"),
            ["mine:limit=60000,mode=a", "mine:limit=50%,mode=a"]
        );
        assert_eq!(labels("mine=exec{exec.timeout=5s,keep=3}:x"), ["mine:keep=3"]);
    }

    #[test]
    fn settings_are_converted_by_their_form() {
        let spec = parse("mine=exec{a=90k,b=40%,c=7,d=0.5,e=true,f=word}:x").unwrap().remove(0);
        let of = |name: &str| {
            let applied = spec.applied(0.5, 10_000);
            json(applied.all().find(|(k, _)| *k == name).unwrap().1)
        };
        // The window is scaled already.
        assert_eq!((of("a"), of("b")), (45_000.into(), 4_000.into()));
        assert_eq!((of("c"), of("d")), (7.into(), 0.5.into()));
        assert_eq!((of("e"), of("f")), (true.into(), "word".into()));
    }

    #[test]
    fn strategies_that_are_no_programs() {
        assert!(!is_exec("codex:auto_compact_limit=90k") && !is_exec("mine=execute:x"));
    }
}
