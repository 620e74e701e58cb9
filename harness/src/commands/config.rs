//! Options from `ctxbench.toml`.
//!
//! A table name is a command, and a key is a long option. Each key becomes `--key=value` and is
//! inserted before the user's own arguments. A file found by the search may only set options that
//! run no program, contact no server and write no file. A file named with `--config` may set all
//! options.

use std::any::TypeId;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::builder::ValueHint;
use clap::{Arg, ArgAction, Command};
use ctxbench_util::toml_file::{self, Lines, TomlError};
use ctxbench_util::{files, nearest};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use ctxbench_agents::exec;

const FILE_NAME: &str = "ctxbench.toml";

/// Options that a file found by the search may set.
const HARMLESS: &str = "\
    calibrate jobs json last limit max min min-tokens model models no-rereads product \
    sample seeds since spend-limit strategy summarizer summary-model transport used window";

/// Inserts the options of the configuration file after the command, which is `given[at]`. Options
/// given by the user take precedence over those of the file. Returns the file, if any of its options
/// was inserted.
pub(super) fn configure(
    root: &Command,
    given: &mut Vec<OsString>,
    at: usize,
) -> anyhow::Result<Option<PathBuf>> {
    let named = value_of(given, "--config").map(PathBuf::from);
    let is_trusted = named.is_some();
    let Some(path) = named.or_else(find_file).filter(|path| path.as_os_str() != "none") else {
        return Ok(None);
    };
    if !is_trusted {
        check_owner(&path)?;
    }
    let text =
        files::read_text(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let file = path.display().to_string();
    let reader = ConfigReader {
        root,
        file: &file,
        lines: Lines::new(&text),
        folder: folder(&path),
        is_trusted,
    };
    let command = given[at].to_string_lossy().into_owned();
    let options = reader.options(&text, &command, given)?;
    let file = (!options.is_empty()).then_some(path);
    given.splice(at + 1..at + 1, options);
    Ok(file)
}

/// Returns the user's arguments before `--`. Later ones belong to another program.
fn own(given: &[OsString]) -> impl Iterator<Item = &OsStr> {
    given.iter().map(OsString::as_os_str).take_while(|a| *a != "--")
}

/// Returns the last value of a long option.
fn value_of(given: &[OsString], option: &str) -> Option<OsString> {
    let mut value = None;
    let mut arguments = own(given);
    while let Some(argument) = arguments.next() {
        if argument == option {
            value = arguments.next().map(OsStr::to_os_string);
        } else if let Some(text) = argument.to_str().and_then(|a| a.strip_prefix(option)) {
            value = text.strip_prefix('=').map(OsString::from).or(value);
        }
    }
    value
}

/// Returns whether the user gave an option.
fn is_given(given: &[OsString], option: &Arg) -> bool {
    let long = format!("--{}", option.get_long().unwrap_or_default());
    let short = option.get_short().map(|c| format!("-{c}"));
    own(given).filter_map(OsStr::to_str).any(|a| {
        a.strip_prefix(&long).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
            || short.as_ref().is_some_and(|short| a.starts_with(short.as_str()))
    })
}

/// Finds the nearest file in the working folder or above it, up to the root of the repository or
/// the home folder. Outside both, searches only the working folder.
fn find_file() -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?;
    let home = std::env::home_dir().and_then(|home| home.canonicalize().ok());
    let ends = [files::repository_root(&here), home.as_deref()];
    let end = here.ancestors().position(|folder| ends.contains(&Some(folder))).unwrap_or(0);
    let up = here.ancestors().take(end + 1).position(|folder| folder.join(FILE_NAME).is_file())?;
    let folder = if up == 0 { Path::new(".").into() } else { PathBuf::from_iter(vec![".."; up]) };
    Some(folder.join(FILE_NAME))
}

/// Refuses a file found by the search if another user owns it or may change it.
#[cfg(unix)]
fn check_owner(path: &Path) -> anyhow::Result<()> {
    check_owner_is(path, rustix::process::geteuid().as_raw())
}

#[cfg(unix)]
fn check_owner_is(path: &Path, user: u32) -> anyhow::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let found =
        std::fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?;
    let file = path.display();
    let advice =
        format!("if you trust it, name it with --config {file}; --config none runs without a file");
    if found.uid() != user && found.uid() != 0 {
        bail!("{file} belongs to another user (uid {}, yours is {user}); {advice}", found.uid());
    }
    if found.mode() & 0o022 != 0 {
        let mode = found.mode() & 0o777;
        bail!(
            "{file} can be changed by other users (mode {mode:03o}); run `chmod go-w {file}`, or, {advice}"
        );
    }
    Ok(())
}

/// Accepts every file: ownership is only checked on Unix. Such a file may still only set harmless
/// options.
#[cfg(not(unix))]
fn check_owner(_: &Path) -> anyhow::Result<()> {
    Ok(())
}

/// Returns the folder of a file; empty for the working folder.
fn folder(file: &Path) -> PathBuf {
    let folder = file.parent().unwrap_or(Path::new(""));
    if folder == Path::new(".") { PathBuf::new() } else { folder.to_path_buf() }
}

struct ConfigReader<'a> {
    root: &'a Command,
    file: &'a str,
    lines: Lines,
    /// Base folder of the relative paths in the file.
    folder: PathBuf,
    /// Whether the file may set all options, and not only those in [`HARMLESS`].
    is_trusted: bool,
}

type Key<'a> = Spanned<std::borrow::Cow<'a, str>>;

impl ConfigReader<'_> {
    fn wrong(&self, at: usize, what: String) -> TomlError {
        TomlError { file: self.file.into(), line: self.lines.line_at(at), what }
    }

    /// Returns the arguments for `command`. Also checks the rest of the file.
    fn options(
        &self,
        text: &str,
        command: &str,
        given: &[OsString],
    ) -> Result<Vec<OsString>, TomlError> {
        let tree = DeTable::parse(text).map_err(|e| toml_file::error(self.file, text, &e))?;
        let mut out = Vec::new();
        for (key, value) in tree.get_ref() {
            let name = key.get_ref().as_ref();
            match (self.root.find_subcommand(name), value.get_ref()) {
                (Some(named), DeValue::Table(table)) => {
                    for (key, value) in table {
                        let (option, arguments) = self.option(named, key, value)?;
                        if named.get_name() == command && !is_given(given, option) {
                            out.extend(arguments);
                        }
                    }
                }
                (Some(_), _) => {
                    let what = format!("`{name}` is a command; expected a table, [{name}]");
                    return Err(self.wrong(key.span().start, what));
                }
                (None, _) => {
                    let (option, arguments) = self.option(self.root, key, value)?;
                    if !is_given(given, option) {
                        out.extend(arguments);
                    }
                }
            }
        }
        Ok(out)
    }

    /// Returns the option of a key and the arguments that set it. A flag set to `false` has no
    /// arguments.
    fn option<'c>(
        &self,
        command: &'c Command,
        key: &Key<'_>,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<(&'c Arg, Vec<OsString>), TomlError> {
        let name = key.get_ref().replace('_', "-");
        let is_option = |a: &&Arg| {
            let value =
                matches!(a.get_action(), ArgAction::Set | ArgAction::Append | ArgAction::SetTrue);
            value && a.get_long().is_some_and(|long| long != "config")
        };
        let options = || command.get_arguments().filter(is_option);
        let Some(option) = options().find(|a| a.get_long() == Some(&name)) else {
            let known: Vec<&str> = options().filter_map(Arg::get_long).collect();
            let hint = nearest::hint(&name, &known);
            let what = match command.get_name() {
                "ctxbench" => format!(
                    "there is no command and no global option `{name}`; options of a command go \
                     into its table, such as [run]"
                ),
                command => format!("`{command}` has no option `{name}`; {hint}"),
            };
            return Err(self.wrong(key.span().start, what));
        };
        let at = value.span().start;
        let expected = |what: &str| self.wrong(at, format!("`{name}`: expected {what}"));
        let values = match (option.get_action(), value.get_ref()) {
            (ArgAction::SetTrue, DeValue::Boolean(on)) => {
                let flag = OsString::from(format!("--{name}"));
                self.check_harmless(&name, "", key)?;
                return Ok((option, on.then_some(flag).into_iter().collect()));
            }
            (ArgAction::SetTrue, _) => return Err(expected("true or false")),
            (ArgAction::Append, DeValue::Array(all)) => {
                let values: Option<Vec<String>> = all.iter().map(|v| scalar(v.get_ref())).collect();
                values.ok_or_else(|| expected("a list of texts or numbers"))?
            }
            (_, one) => vec![scalar(one).ok_or_else(|| expected("a text or a number"))?],
        };
        let mut arguments = Vec::new();
        for value in values {
            self.check_harmless(&name, &value, key)?;
            let mut argument = OsString::from(format!("--{name}="));
            argument.push(self.in_folder(option, &value));
            arguments.push(argument);
        }
        Ok((option, arguments))
    }

    fn check_harmless(&self, option: &str, value: &str, key: &Key<'_>) -> Result<(), TomlError> {
        let is_harmless = HARMLESS.split(' ').any(|harmless| harmless == option)
            && match option {
                "strategy" => !exec::is_exec(value),
                "summarizer" => !value.contains("://"),
                _ => true,
            };
        if self.is_trusted || is_harmless {
            return Ok(());
        }
        let value = if value.is_empty() { String::new() } else { format!(" = {value:?}") };
        let what = format!(
            "`{option}{value}` may run a program, contact a server or write a file, so a file that \
             was found cannot set it; if you trust the file, run with --config {}",
            self.file
        );
        Err(self.wrong(key.span().start, what))
    }

    /// Returns a value in which paths are relative to the folder of the file.
    fn in_folder(&self, option: &Arg, value: &str) -> OsString {
        let is_path = option.get_value_parser().type_id() == TypeId::of::<PathBuf>()
            || option.get_value_hint() == ValueHint::AnyPath && self.folder.join(value).exists();
        if is_path { self.folder.join(value).into() } else { value.into() }
    }
}

/// Returns a string or a number as it is written on the command line.
fn scalar(value: &DeValue<'_>) -> Option<String> {
    Some(match value {
        DeValue::String(s) => s.to_string(),
        DeValue::Integer(i) => i64::from_str_radix(i.as_str(), i.radix()).ok()?.to_string(),
        DeValue::Float(f) => f.as_str().to_string(),
        _ => return None,
    })
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    #[test]
    fn file_of_another_user_is_refused() {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE_NAME);
        std::fs::write(&path, "").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let owner = std::fs::metadata(&path).unwrap().uid();
        assert!(check_owner_is(&path, owner).is_ok());
        // Every user trusts a file that is owned by root.
        if owner != 0 {
            let error = check_owner_is(&path, owner + 1).unwrap_err().to_string();
            assert!(error.contains(&format!("belongs to another user (uid {owner}")), "{error}");
        }
    }
}
