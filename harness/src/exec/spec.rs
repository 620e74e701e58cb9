//! `NAME[@VERSION]=exec[{k=v,…}]:COMMAND`: a program as a strategy.

use ctxbench_core::settings::{
    DefaultValue, Kind, Setting, Settings, Value, split_pair, split_pairs,
};
use ctxbench_core::strategy::{Standing, Strategy};
use ctxbench_strategies::conform::Conformance;
use ctxbench_strategies::descriptor::{
    Descriptor, Factory, Look, Maker, Manual, Matrix, MemoryFiles, Need, Order, Reads, Rewind,
    Version,
};
use ctxbench_strategies::names::kept;
use ctxbench_strategies::persist::OURS;
use ctxbench_strategies::sweep;
use ctxbench_strategies::{Spec, SpecError, all};

use super::limits::Limits;
use super::strategy::Exec;

/// Version of a program whose user gives none.
const PLAIN: &str = "exec";

/// What makes strategies of a program.
struct Program {
    command: Vec<String>,
    limits: Limits,
    version: Version,
}

impl Maker for Program {
    fn versions(&self) -> Vec<Version> {
        let plain = Version { name: PLAIN, ..self.version };
        if self.version == plain { vec![plain] } else { vec![plain, self.version] }
    }

    fn needs(&self, _version: Version, _settings: &Settings) -> Option<Need> {
        None
    }

    fn build(&self, order: &Order<'_>) -> Box<dyn Strategy> {
        let settings = order.settings.all().map(|(k, v)| (k.to_string(), json(v))).collect();
        let (command, limits) = (self.command.clone(), self.limits.clone());
        Box::new(Exec::new(command, limits, settings, order.scale))
    }

    fn is_run_twice(&self) -> bool {
        self.limits.twice
    }

    fn is_program(&self) -> bool {
        true
    }
}

/// A setting as the program gets it.
fn json(value: &Value) -> serde_json::Value {
    match value {
        Value::Int(n) => (*n).into(),
        Value::Real(x) | Value::OfWindow(x) => (*x).into(),
        Value::Flag(b) => (*b).into(),
        // As a number or a flag if it reads as one.
        Value::Word(w) => match serde_json::from_str(w) {
            Ok(v @ (serde_json::Value::Number(_) | serde_json::Value::Bool(_))) => v,
            _ => w.as_str().into(),
        },
    }
}

/// Whether a strategy is given as a program.
pub fn is_exec(text: &str) -> bool {
    split(text).is_some()
}

/// The name with its version, and what stands behind `exec`.
fn split(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = text.split_once('=')?;
    let rest = rest.strip_prefix("exec").filter(|r| r.starts_with([':', '{']))?;
    (!name.contains([':', '+'])).then_some((name.trim(), rest))
}

/// Reads a program as a strategy; lists and ranges of values make several.
pub fn read(text: &str) -> Result<Vec<Spec>, SpecError> {
    let wrong = |why: &str| {
        let expected = "write NAME=exec:COMMAND or NAME=exec{setting=value,…}:COMMAND";
        SpecError::Program(format!("`{text}`: {why}; {expected}"))
    };
    let (name, rest) = split(text).ok_or_else(|| wrong("is no program"))?;
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
        return Err(wrong("a strategy of ctxbench has this name; take another"));
    }
    let command = words(command).ok_or_else(|| wrong("a quote is not closed"))?;
    if command.is_empty() {
        return Err(wrong("there is no command"));
    }
    let swept = if settings.trim().is_empty() {
        vec![name.to_string()]
    } else {
        sweep::expand(&format!("{name}:{settings}"), &|_| false)?
    };
    swept.iter().map(|row| one(row, name, version, &command)).collect()
}

/// One row: `name` or `name:k=v,…`.
fn one(
    row: &str,
    name: &str,
    version: Option<&str>,
    command: &[String],
) -> Result<Spec, SpecError> {
    let mut limits = Limits::default();
    let mut own = Vec::new();
    let settings = row.split_once(':').map_or("", |(_, s)| s);
    for pair in split_pairs(settings)?.into_iter().filter(|p| !p.is_empty()) {
        let (key, value) = split_pair(pair)?;
        if !limits.take(key, &value)? {
            own.push((key, value));
        }
    }
    let table: Vec<Setting> = own.iter().map(|(key, value)| setting(key, value)).collect();
    let table: &'static [Setting] = Box::leak(table.into());
    let version = Version {
        name: version.map_or(PLAIN, kept),
        program: PLAIN,
        about: "a program of yours",
        reads: Reads::All,
    };
    let mut given = Settings::defaults(table);
    for (key, value) in own {
        given.set(name, key, &value)?;
    }
    let line = command.join(" ");
    let maker = Box::leak(Box::new(Program { command: command.to_vec(), limits, version }));
    let descriptor = Descriptor {
        name: kept(name),
        summary: kept(&format!("a program: {line}")),
        factory: Factory { settings: table, maker },
        ..DESCRIPTOR
    };
    let descriptor = Box::leak(Box::new(descriptor));
    Ok(Spec { descriptor, version, settings: given })
}

/// An amount of tokens if it is written as one, else what it says.
fn setting(name: &str, value: &str) -> Setting {
    let digits = |s: &str| s.starts_with(|c: char| c.is_ascii_digit());
    let tokens = digits(value) && value.ends_with(['k', 'K', '%']);
    Setting {
        name: kept(name),
        kind: if tokens { Kind::Tokens } else { Kind::Text },
        default: DefaultValue::Word(""),
        help: "a setting of the program",
        source: "the program",
    }
}

/// A command in words, as a shell splits it; `None` = a quote is open.
fn words(command: &str) -> Option<Vec<String>> {
    let mut out = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = command.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('\\', None | Some('"')) => {
                let next = chars.next()?;
                let word = word.get_or_insert_default();
                // In quotes a backslash stands for itself before all but these.
                if quote.is_some() && !matches!(next, '"' | '\\') {
                    word.push('\\');
                }
                word.push(next);
            }
            ('\'' | '"', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (c, None) if c.is_whitespace() => out.extend(word.take()),
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    out.extend(word);
    quote.is_none().then_some(out)
}

/// What is the same for all programs.
const DESCRIPTOR: Descriptor = Descriptor {
    name: "",
    summary: "",
    sources: &["the program itself"],
    matrix: Matrix::UNTOLD,
    standing: Standing::Contender,
    manual: Manual::Instructed,
    rewind: Rewind::NONE,
    formats: OURS,
    conform: Conformance::NONE,
    look: Look::Hue(0),
    files: MemoryFiles::None("a program of yours is told what the session shows"),
    settings_file: None,
    knobs: &[],
    page: "docs/exec.md",
    // Each program has its own.
    factory: Factory { settings: &[], maker: &Nobody },
};

/// In the place of a program that is yet to be named.
struct Nobody;

impl Maker for Nobody {
    fn versions(&self) -> Vec<Version> {
        vec![]
    }

    fn needs(&self, _version: Version, _settings: &Settings) -> Option<Need> {
        None
    }

    fn build(&self, order: &Order<'_>) -> Box<dyn Strategy> {
        Box::new(Exec::new(vec![], Limits::default(), Default::default(), order.scale))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(text: &str) -> Vec<String> {
        read(text).unwrap().iter().map(Spec::label).collect()
    }

    #[test]
    fn a_program_is_a_row_and_a_sweep_of_it_several() {
        assert_eq!(labels("mine=exec:python3 mine.py"), ["mine"]);
        assert_eq!(labels("mine@2=exec:x"), ["mine@2"]);
        assert_eq!(
            labels("mine=exec{limit=[60k,50%],mode=a}:x y"),
            ["mine:limit=60000,mode=a", "mine:limit=50%,mode=a"]
        );
        assert_eq!(labels("mine=exec{exec.timeout=5s,keep=3}:x"), ["mine:keep=3"]);
    }

    #[test]
    fn settings_arrive_as_what_they_read_as() {
        let spec = read("mine=exec{a=90k,b=40%,c=7,d=0.5,e=true,f=word}:x").unwrap().remove(0);
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
    fn commands_are_split_as_a_shell_does() {
        let of = |t: &str| words(t).map(|w| w.join("|"));
        assert_eq!(
            of("python3  a.py 'b c' \"d \\\" e\" f\\ g"),
            Some("python3|a.py|b c|d \" e|f g".into())
        );
        assert_eq!(of("a '' b"), Some("a||b".into()));
        assert_eq!(of("a 'b"), None);
        assert_eq!(of("  "), Some(String::new()));
    }

    #[test]
    fn what_cannot_be_started_is_told() {
        for text in
            ["codex=exec:x", "a b=exec:x", "m=exec:", "m=exec{a=1:x", "m=exec:'x", "m=exec{a}:x"]
        {
            let e = read(text).unwrap_err().to_string();
            assert!(e.len() > 20, "{text}: {e}");
        }
        assert!(!is_exec("codex:auto_compact_limit=90k") && !is_exec("mine=execute:x"));
    }
}
