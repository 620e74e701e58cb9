//! Options from a file: `ctxbench.toml`, found upwards from the working folder.
//!
//! Every option of the command line may stand in it, in the table of its command; what all commands
//! take stands before the tables. The list of options is that of the command line itself: a key
//! becomes the argument that it stands for, before those of the user, and is parsed with them.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::builder::ValueHint;
use clap::error::{ContextKind, ContextValue};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use ctxbench_core::nearest;
use ctxbench_core::toml_file::{self, Lines, TomlError};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The file that is looked for.
const NAME: &str = "ctxbench.toml";

/// The command without a name.
const DEFAULT: &str = "run";

/// Which file, as every command takes it.
#[derive(clap::Args)]
pub(super) struct Which {
    /// File with options, instead of the nearest ctxbench.toml from the working folder upwards
    #[arg(long, value_name = "FILE", global = true, conflicts_with = "no_config")]
    config: Option<PathBuf>,
    /// Take no options from a file
    #[arg(long, global = true)]
    no_config: bool,
}

/// The arguments of the program with those of a file.
pub(super) struct Merged {
    /// All of them, the program's name first.
    pub(super) arguments: Vec<OsString>,
    taken: Vec<Taken>,
    file: String,
}

/// An option of the file that stands among the arguments.
struct Taken {
    /// Its long name.
    option: String,
    line: usize,
}

impl Merged {
    /// What to tell of it, if the file had any say.
    pub(super) fn note(&self) -> Option<String> {
        (!self.taken.is_empty()).then(|| format!("note: options from {}", self.file))
    }

    /// Where in the file the option stands that an error is about.
    pub(super) fn place(&self, e: &clap::Error) -> Option<String> {
        let named = |kind| match e.get(kind) {
            Some(ContextValue::String(s)) => vec![s.clone()],
            Some(ContextValue::Strings(all)) => all.clone(),
            _ => vec![],
        };
        let about: Vec<String> =
            [ContextKind::InvalidArg, ContextKind::PriorArg].into_iter().flat_map(named).collect();
        let option = |t: &&Taken| {
            let long = format!("--{}", t.option);
            about.iter().any(|a| a.split([' ', '=']).next() == Some(&*long))
        };
        self.taken.iter().find(option).map(|t| format!("{}:{}", self.file, t.line))
    }
}

/// Puts the options of the file before the user's, except those that the user gives, too.
pub(super) fn merged(root: &Command, given: Vec<OsString>) -> anyhow::Result<Merged> {
    let nothing = |arguments| Merged { arguments, taken: vec![], file: String::new() };
    // What is wrong with the arguments is told when they are parsed with those of the file.
    let Ok(matches) = root.clone().ignore_errors(true).try_get_matches_from(&given) else {
        return Ok(nothing(given));
    };
    let (command, mut own) = matches.subcommand().unwrap_or((DEFAULT, &matches));
    // What a command's own commands share may be given behind any of them.
    while let Some((_, inner)) = own.subcommand() {
        own = inner;
    }
    if own.get_flag("no_config") {
        return Ok(nothing(given));
    }
    let Some(path) = own.get_one::<PathBuf>("config").cloned().or_else(nearest_file) else {
        return Ok(nothing(given));
    };
    let file = path.display().to_string();
    let text =
        ctxbench_core::files::read_text(&path).with_context(|| format!("cannot read {file}"))?;
    let reader = Reader { root, file: &file, lines: Lines::new(&text), folder: folder(&path) };
    let mut options = reader.options(&text, command)?;
    let given_here = |id: &str| own.value_source(id) == Some(ValueSource::CommandLine);
    let excluded = excluded(root, &matches, &given_here);
    options.retain(|o| !given_here(&o.id) && !excluded.contains(&o.id));
    let at = if matches.subcommand().is_some() { 2 } else { 1 }.min(given.len());
    let mut arguments = given;
    let extra: Vec<OsString> = options.iter().flat_map(|o| o.arguments.clone()).collect();
    arguments.splice(at..at, extra);
    let taken = options.into_iter().filter(|o| !o.arguments.is_empty()).map(|o| o.taken).collect();
    Ok(Merged { arguments, taken, file })
}

/// Options that cannot stand beside those of the command line, by what either says of the other.
fn excluded(root: &Command, matches: &ArgMatches, given: &dyn Fn(&str) -> bool) -> Vec<String> {
    let mut root = root.clone();
    root.build();
    let (mut command, mut at) = (&root, matches);
    while let Some((name, inner)) = at.subcommand() {
        let Some(sub) = command.find_subcommand(name) else { break };
        (command, at) = (sub, inner);
    }
    let is_given = |a: &Arg| given(a.get_id().as_str());
    let mut out = Vec::new();
    for one in command.get_arguments() {
        for other in command.get_arg_conflicts_with(one) {
            out.extend(is_given(one).then(|| other.get_id().to_string()));
            out.extend(is_given(other).then(|| one.get_id().to_string()));
        }
    }
    out
}

/// The nearest file from the working folder upwards, by its way from there.
fn nearest_file() -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?;
    let up = here.ancestors().position(|folder| folder.join(NAME).is_file())?;
    let way = if up == 0 { Path::new(".").into() } else { PathBuf::from_iter(vec![".."; up]) };
    Some(way.join(NAME))
}

/// The folder of a file; empty where it is the working folder.
fn folder(file: &Path) -> PathBuf {
    let folder = file.parent().unwrap_or(Path::new(""));
    if folder == Path::new(".") { PathBuf::new() } else { folder.to_path_buf() }
}

/// An option as the file gives it.
struct Given {
    id: String,
    arguments: Vec<OsString>,
    taken: Taken,
}

struct Reader<'a> {
    root: &'a Command,
    file: &'a str,
    lines: Lines,
    folder: PathBuf,
}

impl Reader<'_> {
    fn wrong(&self, at: usize, what: String) -> TomlError {
        TomlError { file: self.file.into(), line: self.lines.line_at(at), what }
    }

    /// What the file says for a command. Everything else in it is looked at, too.
    fn options(&self, text: &str, command: &str) -> Result<Vec<Given>, TomlError> {
        let tree = DeTable::parse(text).map_err(|e| toml_file::error(self.file, text, &e))?;
        let everywhere: Vec<&Arg> = options(self.root).filter(|a| a.is_global_set()).collect();
        let mut given = Vec::new();
        for (key, value) in tree.get_ref() {
            let name = key.get_ref().replace('_', "-");
            if let Some(option) = everywhere.iter().find(|a| a.get_long() == Some(&name)) {
                given.push(self.given(option, key, value)?);
                continue;
            }
            let known = self.root.get_subcommands().find(|c| c.get_name() == name);
            let Some(known) = known else {
                return Err(self.unknown_table(key, &everywhere));
            };
            let DeValue::Table(table) = value.get_ref() else {
                let what =
                    format!("`{name}` is a command; expected a table of its options, [{name}]");
                return Err(self.wrong(key.span().start, what));
            };
            let of_command = self.table(known, table)?;
            if known.get_name() == command {
                // What a command is told by itself is told instead of what all are.
                given.retain(|g: &Given| of_command.iter().all(|o| o.id != g.id));
                given.extend(of_command);
            }
        }
        given.sort_by_key(|g| g.taken.line);
        Ok(given)
    }

    fn unknown_table(&self, key: &Spanned<Cow<'_, str>>, all: &[&Arg]) -> TomlError {
        let name = key.get_ref();
        let at = key.span().start;
        let of_run = self.root.get_subcommands().find(|c| c.get_name() == DEFAULT);
        let long = name.replace('_', "-");
        if of_run.is_some_and(|c| options(c).any(|a| a.get_long() == Some(&long))) {
            let what = format!(
                "`{name}` is an option of a command; put it under its table, such as [run]"
            );
            return self.wrong(at, what);
        }
        let commands = self.root.get_subcommands().map(Command::get_name);
        let known: Vec<&str> = all.iter().filter_map(|a| a.get_long()).chain(commands).collect();
        let hint = nearest::hint(name, &known);
        self.wrong(
            at,
            format!("there is no option of all commands and no command `{name}`; {hint}"),
        )
    }

    /// The options of a command as its table gives them.
    fn table(&self, command: &Command, table: &DeTable<'_>) -> Result<Vec<Given>, TomlError> {
        let mut given = Vec::new();
        for (key, value) in table {
            let name = key.get_ref().replace('_', "-");
            let all = || options(command).filter_map(Arg::get_long);
            let Some(option) = options(command).find(|a| a.get_long() == Some(&name)) else {
                let hint = nearest::hint(&name, &all().collect::<Vec<_>>());
                let what = format!("`{}` has no option `{name}`; {hint}", command.get_name());
                return Err(self.wrong(key.span().start, what));
            };
            given.push(self.given(option, key, value)?);
        }
        Ok(given)
    }

    /// The arguments that a key stands for; none where a switch is off.
    fn given(
        &self,
        option: &Arg,
        key: &Spanned<Cow<'_, str>>,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<Given, TomlError> {
        let long = option.get_long().unwrap_or_default();
        let at = value.span().start;
        let expected = |what: &str| self.wrong(at, format!("`{long}`: expected {what}"));
        let arguments = match (option.get_action(), value.get_ref()) {
            (ArgAction::SetTrue, DeValue::Boolean(true)) => vec![format!("--{long}").into()],
            (ArgAction::SetTrue, DeValue::Boolean(false)) => vec![],
            (ArgAction::SetTrue, _) => return Err(expected("true or false")),
            (ArgAction::Append, DeValue::Array(all)) => {
                let each = all.iter().map(|v| {
                    let word = word(v.get_ref());
                    word.ok_or_else(|| expected("a list of texts or numbers"))
                });
                let words = each.collect::<Result<Vec<_>, _>>()?;
                words.iter().map(|w| self.argument(option, w)).collect()
            }
            (_, DeValue::Array(_)) => return Err(expected("one value; it may not be repeated")),
            (_, one) => {
                let word = word(one).ok_or_else(|| expected("a text or a number"))?;
                vec![self.argument(option, &word)]
            }
        };
        let line = self.lines.line_at(key.span().start);
        let taken = Taken { option: long.to_string(), line };
        Ok(Given { id: option.get_id().to_string(), arguments, taken })
    }

    /// `--option=value`. Paths are those from the folder of the file.
    fn argument(&self, option: &Arg, value: &str) -> OsString {
        let long = option.get_long().unwrap_or_default();
        let mut argument = OsString::from(format!("--{long}="));
        argument.push(self.in_folder(option, value));
        argument
    }

    fn in_folder(&self, option: &Arg, value: &str) -> OsString {
        if self.folder.as_os_str().is_empty() {
            return value.into();
        }
        if option.get_value_parser().type_id() == std::any::TypeId::of::<PathBuf>() {
            return self.folder.join(value).into();
        }
        match option.get_value_hint() {
            // A file, or the name of something that is built in.
            ValueHint::AnyPath if self.folder.join(value).exists() => {
                self.folder.join(value).into()
            }
            ValueHint::Other => behind_a_word(&self.folder, value).unwrap_or_else(|| value.into()),
            _ => value.into(),
        }
    }
}

/// `scripted:FILE` and `prometheus=FILE` with the file from a folder.
fn behind_a_word(folder: &Path, value: &str) -> Option<OsString> {
    let word = ["scripted:", "prometheus="].into_iter().find(|word| value.starts_with(word))?;
    let mut whole = OsString::from(word);
    whole.push(folder.join(&value[word.len()..]));
    Some(whole)
}

/// The options of a command that may stand in a file.
fn options(command: &Command) -> impl Iterator<Item = &Arg> {
    let of_the_file = |a: &&Arg| {
        let answers = matches!(
            a.get_action(),
            ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version
        );
        !answers
            && a.get_long().is_some()
            && !["config", "no_config"].contains(&a.get_id().as_str())
    };
    command.get_arguments().filter(of_the_file)
}

/// A text or a number as it would stand on the command line.
fn word(value: &DeValue<'_>) -> Option<String> {
    Some(match value {
        DeValue::String(s) => s.to_string(),
        DeValue::Integer(i) => i64::from_str_radix(i.as_str(), i.radix()).ok()?.to_string(),
        DeValue::Float(f) => f.as_str().to_string(),
        _ => return None,
    })
}
