//! Description of an agent: how it is started, how it gets messages, and how its side requests are
//! recognised.
//!
//! The form is described in docs/drive.md. Nothing else knows an agent by its name.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ctxbench_core::model::{self, Model};
use ctxbench_provider::wire;
use ctxbench_scenarios::FaultOn;
use ctxbench_strategies::Spec;
use ctxbench_util::{files, nearest, toml_file};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;
use toml::Table;

use super::template::{Template, replace};

/// Default time in which an agent must print something or send a request. Programs started by Node
/// or Python take many seconds on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Placeholder of the user's message in the commands of `exec`.
pub(super) const TEXT: &str = "{text}";

/// Agents that come with the project.
const BUILT_IN: &[(&str, &str)] = &[
    ("codex", include_str!("agents/codex.toml")),
    ("codex-remote", include_str!("agents/codex-remote.toml")),
    ("opencode", include_str!("agents/opencode.toml")),
    ("pi", include_str!("agents/pi.toml")),
    ("aider", include_str!("agents/aider.toml")),
    ("gemini-cli", include_str!("agents/gemini-cli.toml")),
    ("qwen-code", include_str!("agents/qwen-code.toml")),
    ("kimi-code", include_str!("agents/kimi-code.toml")),
    ("mistral-vibe", include_str!("agents/mistral-vibe.toml")),
    ("claude-code", include_str!("agents/claude-code.toml")),
];

/// Why an agent cannot be used or driven.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct DriveError(pub String);

/// Protocol that delivers the user's messages to an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Deliver {
    /// Agent Client Protocol on standard input and output.
    Acp,
    /// Codex's app-server protocol.
    AppServer,
    /// JSON lines with commands, the protocol of pi.
    Rpc,
    /// Lines typed at a prompt.
    Lines,
    /// A process per turn.
    Exec,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agent {
    /// Short name, of letters, digits, `-` and `_`.
    pub name: String,
    pub title: String,
    /// Strategy of ctxbench that implements the agent.
    pub strategy: Option<String>,
    /// Name of the default model.
    pub model: String,
    /// Command that installs the agent.
    pub install: String,
    pub program: AgentProgram,
    /// Start command and protocol.
    pub start: Start,
    /// Environment variables in addition to those of every agent.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Files that are written before the start.
    #[serde(default)]
    pub file: Vec<SetupFile>,
    /// Shell tool. An agent without one gets one reply per turn.
    pub tool: Option<ShellTool>,
    /// Call with which the model ends a turn, for an agent that does not accept a reply without one.
    pub end: Option<ShellTool>,
    /// Form of an edit in a reply, for an agent without tools.
    pub edit: Option<Edit>,
    /// Options that set the address of the provider when a user runs the agent.
    pub record: Option<RecordSettings>,
    /// Rules for side requests. The first match decides.
    #[serde(default)]
    pub side: Vec<Side>,
    /// Field of a request's body, with dots between names, in which the agent gives the purpose of
    /// the request. Recorded cases contain it.
    pub label: Option<String>,
    /// Known deviations from its description.
    pub note: Option<String>,
    /// Further placeholders with their values.
    #[serde(default)]
    pub values: BTreeMap<String, String>,
    /// Folder of the description. `None` for a built-in agent.
    #[serde(skip)]
    pub here: Option<PathBuf>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentProgram {
    /// Names in PATH. The first that exists is used.
    pub names: Vec<String>,
    /// Arguments that print the version.
    pub version: Vec<String>,
    /// Version that the description was tested with.
    pub tried: Option<String>,
}

/// Start command of an agent, and the protocol for its messages.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    pub deliver: Deliver,
    pub command: Vec<String>,
    /// For `lines`: the prompt that the agent prints when it waits for a message.
    pub prompt: Option<String>,
    /// For `lines`: text before and after a message of several lines.
    pub several_lines: Option<[String; 2]>,
    /// For `exec`: the command line of every turn but the first.
    pub resume: Option<Vec<String>>,
    /// For `exec`: the text in the output of the first turn after which `{id}` for `resume` begins.
    pub id: Option<String>,
    /// Number of the user's messages that the agent takes; the rest of a session is left out.
    pub turns: Option<usize>,
    /// For `acp`: the method of authentication that the agent requires.
    pub authenticate: Option<String>,
    /// Message that requests a compaction, if the protocol has no method for it.
    pub compact: Option<String>,
}

/// File that is written before the start.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetupFile {
    /// Path in the scratch folder.
    pub path: String,
    pub text: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShellTool {
    pub name: String,
    /// Arguments: a JSON object, for the shell tool with `{command}` in a string.
    pub arguments: Value,
}

/// Form of an edit in a reply.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// Text of an edit, with `{path}` and `{content}`. A blank line precedes it. The path is
    /// generated, and the content ends with a line break.
    pub text: String,
    /// Prefixes of lines in an edit. A line of the session with such a prefix is put after a bar,
    /// and a file with such a line is not written.
    pub marks: Vec<String>,
}

/// Options that set the address of the provider, `{url}`, on top of the user's own settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordSettings {
    /// Environment variables.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Arguments before those of the user.
    #[serde(default)]
    pub arguments: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    Work,
    Summary,
    /// A name for the conversation.
    Title,
    /// A commit message.
    Commit,
    /// A suggestion for the next message of the user.
    Suggestion,
    /// A note for the memory.
    Memory,
    /// Any other side request.
    Other,
}

impl Purpose {
    /// Returns the name in tables and files.
    pub fn word(self) -> String {
        serde_json::json!(self).as_str().unwrap_or_default().to_string()
    }

    /// Returns the faults that hit such a request. `None` for side requests.
    pub(super) fn fault_on(self) -> Option<FaultOn> {
        match self {
            Purpose::Work => Some(FaultOn::Sample),
            Purpose::Summary => Some(FaultOn::Summary),
            _ => None,
        }
    }
}

/// Rule that recognises a side request. Every field that is given must match.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Side {
    pub purpose: Purpose,
    /// A header and a substring of its value.
    pub header: Option<[String; 2]>,
    /// A field of the body, with dots between names, and a substring of its value.
    pub body: Option<[String; 2]>,
    /// Substring of the system prompt.
    pub system: Option<String>,
    /// Substring of the last message.
    pub last: Option<String>,
    /// Required presence (true) or absence (false) of tools in the request.
    pub tools: Option<bool>,
}

pub fn built_in() -> Vec<Agent> {
    let agent =
        |(name, text): &(&str, &str)| read(name, text, None).expect("a test reads them all");
    BUILT_IN.iter().map(agent).collect()
}

/// Text of a description and, of a file, its folder.
type Description = (Cow<'static, str>, Option<PathBuf>);

/// Finds the description of a built-in agent, or reads the TOML file at a path in a folder.
fn description(name: &str, folder: &Path) -> Result<Description, String> {
    if let Some((_, toml)) = BUILT_IN.iter().find(|(n, _)| *n == name) {
        return Ok(((*toml).into(), None));
    }
    if !name.ends_with(".toml") {
        let names: Vec<&str> = BUILT_IN.iter().map(|(name, _)| *name).collect();
        let hint = nearest::hint(name, &names);
        return Err(format!(
            "unknown agent `{name}`; name your own agent by its file, such as ./{name}.toml; {hint}"
        ));
    }
    let path = folder.join(name);
    let text = files::read_text(&path).map_err(|why| format!("{}: {why}", path.display()))?;
    let path = std::path::absolute(path).unwrap_or_default();
    Ok((text.into(), path.parent().map(Path::to_path_buf)))
}

/// Returns a built-in agent, or reads a TOML file.
pub fn find(text: &str) -> Result<Agent, DriveError> {
    let (toml, here) = description(text, Path::new("")).map_err(DriveError)?;
    Ok(Agent { here: here.clone(), ..read(text, &toml, here.as_deref())? })
}

/// Parses and checks a description. `folder` is the folder of its file.
pub fn read(file: &str, toml: &str, folder: Option<&Path>) -> Result<Agent, DriveError> {
    let read = || {
        let own: Table = toml_file::read(file, toml).map_err(|e| e.to_string())?;
        // Without `extends` the file is parsed directly, so that errors have a line.
        let agent: Agent = match own.contains_key("extends") {
            false => toml_file::read(file, toml).map_err(|e| e.to_string())?,
            true => merged(file, own, folder, MAX_DEPTH)?.try_into().map_err(|e| {
                let why = toml_file::describe(&e, "");
                format!("{file} or a description it extends: {why}")
            })?,
        };
        agent.check().map_err(|why| format!("{file}: {why}"))?;
        Ok(agent)
    };
    read().map_err(DriveError)
}

/// Maximum depth of `extends`.
const MAX_DEPTH: usize = 8;

/// Returns the keys of a description on top of those of the description that it extends.
fn merged(
    file: &str,
    mut keys: Table,
    folder: Option<&Path>,
    depth: usize,
) -> Result<Table, String> {
    let Some(extends) = keys.remove("extends") else { return Ok(keys) };
    let wrong = |why: &str| format!("{file}: extends = {extends}: {why}");
    let name = extends.as_str().ok_or_else(|| wrong("must be a string"))?;
    if depth == 0 {
        return Err(wrong("the descriptions extend each other in a circle"));
    }
    let found = description(name, folder.unwrap_or(Path::new("")));
    let (text, folder) = found.map_err(|why| wrong(&why))?;
    let below = toml_file::read(name, &text).map_err(|e| e.to_string())?;
    Ok(over(merged(name, below, folder.as_deref(), depth - 1)?, keys))
}

/// Merges two tables. Other values of `above` replace those of `below`.
fn over(mut below: Table, above: Table) -> Table {
    for (name, value) in above {
        let value = match (below.remove(&name), value) {
            (Some(toml::Value::Table(b)), toml::Value::Table(a)) => toml::Value::Table(over(b, a)),
            (_, value) => value,
        };
        below.insert(name, value);
    }
    below
}

impl Agent {
    pub fn can_be_asked_to_compact(&self) -> bool {
        match self.start.deliver {
            Deliver::Rpc | Deliver::AppServer => true,
            Deliver::Acp | Deliver::Lines | Deliver::Exec => self.start.compact.is_some(),
        }
    }

    /// Returns the strategy that implements the agent, for a model.
    pub fn strategy_with(&self, model: &Model) -> Result<Option<Spec>, DriveError> {
        let Some(strategy) = &self.strategy else { return Ok(None) };
        let wrong = |e| DriveError(format!("strategy = {strategy:?}: {e}"));
        Spec::parse(&replace(strategy, "model", &model.name)).map(Some).map_err(wrong)
    }

    /// Returns a model by name, or the default model. The settings of an agent support one
    /// provider, so a model of another provider is an error.
    pub fn model_named(&self, name: Option<&str>) -> Result<&'static Model, DriveError> {
        let find = |name| model::find(name).map_err(|e| DriveError(e.to_string()));
        let own = find(&self.model)?;
        let model = name.map_or(Ok(own), find)?;
        let api = wire::for_model(own).api;
        let is_supported = |m: &&Model| wire::for_model(m).api == api;
        if is_supported(&model) {
            return Ok(model);
        }
        let all = model::catalogue().iter().filter(is_supported);
        Err(DriveError(format!(
            "{} uses the API of {}, and {} has another; supported models: {}",
            self.title,
            api.name,
            model.name,
            all.map(|m| &*m.name).collect::<Vec<_>>().join(", ")
        )))
    }

    /// Returns the values of placeholders that are known before a drive, among them those of the
    /// description.
    pub(super) fn template(&self, program: &Path, home: &Path) -> Template {
        let here = self.here.as_deref();
        let paths = [("program", Some(program)), ("home", Some(home)), ("here", here)];
        let paths =
            paths.into_iter().filter_map(|(name, p)| Some((name, p?.display().to_string())));
        Template(self.values.clone()).with(paths)
    }

    /// Returns the options that set the address of the provider: those of `record`, else the
    /// environment variables that contain only `{url}`. `None` if there are none.
    pub fn recorded(&self, url: &str) -> Option<RecordSettings> {
        let options = self.record.clone().or_else(|| {
            let only_url = |text: &String| {
                replace(text, "url", "") != *text && !replace(text, "url", "").contains('{')
            };
            let env: BTreeMap<_, _> =
                self.env.clone().into_iter().filter(|(_, v)| only_url(v)).collect();
            (!env.is_empty()).then(|| RecordSettings { env, ..RecordSettings::default() })
        })?;
        let filled = |text: String| replace(&text, "url", url);
        Some(RecordSettings {
            env: options.env.into_iter().map(|(k, v)| (k, filled(v))).collect(),
            arguments: options.arguments.into_iter().map(filled).collect(),
        })
    }

    pub fn locate(&self, named: Option<&Path>) -> Result<PathBuf, DriveError> {
        let AgentProgram { names, .. } = &self.program;
        let paths = std::env::var_os("PATH").unwrap_or_default();
        let candidates: Vec<PathBuf> = match named {
            Some(path) => vec![path.to_path_buf()],
            None => {
                let folders: Vec<PathBuf> = std::env::split_paths(&paths).collect();
                names
                    .iter()
                    .flat_map(|name| folders.iter().map(move |dir| dir.join(name)))
                    .collect()
            }
        };
        // Links are not followed: a program may depend on its own name.
        let found = candidates.into_iter().find(|p| p.is_file());
        found.and_then(|p| std::path::absolute(p).ok()).ok_or_else(|| {
            DriveError(match named {
                Some(path) => format!("--program {}={}: file not found", self.name, path.display()),
                None => format!(
                    "{} is not installed: `{}` is not in PATH; install it with `{}`, or use \
                     --program {}=PATH",
                    self.title,
                    names.join("` or `"),
                    self.install,
                    self.name
                ),
            })
        })
    }
}

/// Returns a valid agent with these lines at the end of its description.
#[cfg(test)]
pub(super) fn described_with(more: &str) -> Agent {
    let toml = format!("{}{more}", tests::MINIMAL);
    read("mine.toml", &toml, None).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_agents_are_valid() {
        for (name, toml) in BUILT_IN {
            let agent = read(name, toml, None).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(agent.name, *name);
        }
    }

    pub(super) const MINIMAL: &str = r#"
        name = "mine"
        title = "Mine"
        model = "gpt-5.5"
        install = "pip install mine"
        [program]
        names = ["mine"]
        version = ["--version"]
        [start]
        deliver = "acp"
        command = ["{program}", "acp"]
    "#;

    #[test]
    fn read_invalid_description_names_file_and_key() {
        assert!(read("a", MINIMAL, None).is_ok());
        for (from, to, message) in [
            ("\"acp\"\n", "\"smoke\"\n", "smoke"),
            ("name = \"mine\"", "name = \"../mine\"", "letters"),
            ("deliver = \"acp\"", "deliver = \"lines\"", "start.prompt"),
            ("deliver = \"acp\"", "deliver = \"exec\"", "start.resume"),
            ("\"acp\"]", "\"acp\"]\nresume = [\"{id}\"]", "start.id"),
            ("\"acp\"]", "\"acp\"]\nturns = 0", "start.turns"),
            ("[start]", "[end]\nname = \"done\"\narguments = {}\n[start]", "`end`"),
            ("[start]", "[[file]]\npath = \"../x\"\ntext = \"\"\n[start]", "in the scratch folder"),
            ("[start]", "[[side]]\npurpose = \"title\"\n[start]", "at least one condition"),
            ("[start]", "[tool]\nname = \"sh\"\narguments = {a = 1}\n[start]", "{command}"),
            ("title", "titel", "did you mean title?"),
            ("name = \"mine\"", "name = \"mine\"\nstrategy = \"codx\"", "codx"),
            ("\"gpt-5.5\"", "\"gpt-55\"", "did you mean gpt-5.5"),
            ("\"acp\"]", "\"{text}\"]", "after \"--\""),
            ("\"acp\"]", "\"{text}\", \"--\"]", "after \"--\""),
            ("\"acp\"]", "\"--message\", \"{text}\"]", "after \"--\""),
            ("\"acp\"]", "\"-m={text}\"]", "after \"--\""),
            ("\"acp\"]", "\"--\", \"agent {text}\"]", "after \"--\""),
            ("\"acp\"]", "\"acp\"]\nresume = [\"{text}\"]", "after \"--\""),
        ] {
            let text = MINIMAL.replacen(from, to, 1);
            assert_ne!(text, MINIMAL, "{from}");
            let error = read("mine.toml", &text, None).unwrap_err().to_string();
            assert!(error.starts_with("mine.toml:") && error.contains(message), "{to}: {error}");
        }
    }

    #[test]
    fn message_of_user_is_an_argument_where_it_cannot_be_an_option() {
        for command in ["\"--\", \"{text}\"", "\"--message={text}\""] {
            let text = MINIMAL.replacen("\"acp\"]", &format!("{command}]"), 1);
            assert!(read("a", &text, None).is_ok(), "{command}");
        }
    }

    #[test]
    fn description_extends_another_key_by_key() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        write(
            "base.toml",
            &format!("{MINIMAL}[env]\nA = \"1\"\nB = \"2\"\n[values]\nkind = \"plain\"\n"),
        );
        write("loop.toml", "extends = \"loop.toml\"");
        let of = |text: &str| read("f", text, Some(dir.path())).map_err(|e| e.to_string());
        let own = "extends = \"base.toml\"\nname = \"b\"\nenv.A = \"3\"\nvalues.kind = \"other\"";
        let got = of(own).unwrap();
        assert_eq!((&*got.name, &*got.title), ("b", "Mine"));
        assert_eq!((&*got.env["A"], &*got.env["B"], &*got.values["kind"]), ("3", "2", "other"));
        for (text, want) in [
            ("extends = \"loop.toml\"", "in a circle"),
            ("extends = \"no.toml\"", "no.toml"),
            ("extends = \"codx\"", "unknown agent `codx`"),
            ("extends = 3", "must be a string"),
            ("extends = \"base.toml\"\nnme = 1", "unknown key `nme`; did you mean name?"),
            ("a = ", "f:1: "),
        ] {
            let error = of(text).unwrap_err();
            assert!(error.contains(want), "{error}");
        }
    }

    #[test]
    fn recorded_uses_record_section_or_environment() {
        let of = |more: &str| described_with(more).recorded("http://h:1");
        assert_eq!(of(""), None);
        let env = of("[env]\nBASE = \"{url}/v1\"\nHOME = \"{scratch}\"\n").unwrap();
        assert_eq!(env.env, BTreeMap::from([("BASE".into(), "http://h:1/v1".into())]));
        let own = of("[record]\narguments = [\"-c\", \"url={url}\"]\n[env]\nBASE = \"{url}\"\n");
        let own = own.unwrap();
        assert_eq!((own.env.len(), own.arguments[1].as_str()), (0, "url=http://h:1"));
    }
}
