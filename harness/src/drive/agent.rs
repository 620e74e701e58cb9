//! An agent as data: how it is started, spoken to and told apart from its own side requests.
//!
//! The form is described in docs/drive.md. Nothing else knows an agent by its name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ctxbench_core::model::{self, Model, UnknownModel};
use ctxbench_core::{files, nearest};
use ctxbench_provider::wire::{self, Api};
use ctxbench_strategies::Spec;
use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

use super::extended;
use super::fill::{Fill, PLACES, put};

/// How long an agent may neither print nor ask anything, unless it is told otherwise: what is
/// started by Node or Python takes many seconds on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The agents that come with the project.
const BUILT_IN: &[(&str, &str)] = &[
    ("codex", include_str!("agents/codex.toml")),
    ("codex-remote", include_str!("agents/codex-remote.toml")),
    ("opencode", include_str!("agents/opencode.toml")),
    ("pi", include_str!("agents/pi.toml")),
    ("aider", include_str!("agents/aider.toml")),
    ("gemini-cli", include_str!("agents/gemini-cli.toml")),
    ("qwen-code", include_str!("agents/qwen-code.toml")),
    ("claude-code", include_str!("agents/claude-code.toml")),
];

/// Why an agent cannot be used.
#[derive(Debug, Error)]
pub enum AgentError {
    /// Neither a name that is known nor a file.
    #[error(
        "there is no agent `{0}`, and one of your own is named by its file, as in ./{0}.toml; \
         {known}",
        known = known(.0)
    )]
    Unknown(String),
    /// The file cannot be read.
    #[error("{}: {why}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        why: std::io::Error,
    },
    /// The file says something that is not understood: where and what.
    #[error("{0}")]
    Wrong(String),
    /// What was named as the program is not there.
    #[error("--program {name}={}: there is no such file", path.display())]
    NotThere {
        /// The agent.
        name: String,
        /// What was named.
        path: PathBuf,
    },
    /// There is no such model.
    #[error(transparent)]
    UnknownModel(#[from] UnknownModel),
    /// The model is of a provider that the agent does not speak to.
    #[error(
        "{title} is set up for the API of {speaks}, and {model} has another; models that it can be \
         run with: {models}"
    )]
    Model {
        /// The agent.
        title: String,
        /// The provider that it speaks to.
        speaks: &'static str,
        /// What was asked for.
        model: String,
        /// Models of that provider.
        models: String,
    },
    /// The program is not there.
    #[error(
        "{title} is not installed: there is no `{tried}` in PATH; get it with `{install}`, or name \
         it: --program {name}=PATH"
    )]
    Missing {
        /// The agent.
        title: String,
        /// Its short name.
        name: String,
        /// What was looked for.
        tried: String,
        /// How to get it.
        install: String,
    },
}

/// How the user's words reach an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Deliver {
    /// Agent Client Protocol on standard input and output.
    Acp,
    /// Codex's app-server protocol.
    AppServer,
    /// JSON lines with commands, as pi speaks them.
    Rpc,
    /// Words typed behind a prompt sign.
    Lines,
    /// A process per turn.
    Exec,
}

/// An agent.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agent {
    /// Short name, of letters, digits, `-` and `_`.
    pub name: String,
    /// For people.
    pub title: String,
    /// Our implementation of it.
    pub strategy: Option<String>,
    /// Model that it is run with unless another is asked for.
    pub model: String,
    /// What tells people how to get it.
    pub install: String,
    /// Where it is found.
    pub program: Program,
    /// How it is started and spoken to.
    pub start: Start,
    /// Its environment beside what every agent gets.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Files that it finds.
    #[serde(default)]
    pub file: Vec<Written>,
    /// Its shell tool; without one a turn is one reply.
    pub tool: Option<Tool>,
    /// How a reply of an agent without tools makes a file.
    pub edit: Option<Edit>,
    /// How it is told an address when a person uses it, with their own settings.
    pub record: Option<Recorded>,
    /// How its side requests are known, the first that fits.
    #[serde(default)]
    pub side: Vec<Side>,
    /// The field of a request's body, its names joined by dots, in which the agent says what the
    /// request is for; kept for the cases that are recorded of it.
    pub label: Option<String>,
    /// What it does not do as its files say, for whoever reads the table.
    pub note: Option<String>,
    /// The folder of its file; none = it comes with the project.
    #[serde(skip)]
    pub here: Option<PathBuf>,
}

/// Where a program is found.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Names in PATH, the first that is there.
    pub names: Vec<String>,
    /// Arguments with which it prints its version.
    pub version: Vec<String>,
    /// The version that the file was written for.
    pub tried: Option<String>,
}

/// How an agent is started.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// How words reach it.
    pub deliver: Deliver,
    /// Command line.
    pub command: Vec<String>,
    /// For `lines`: what it prints last when it waits for words.
    pub prompt: Option<String>,
    /// For `lines`: what stands before and behind words of several lines.
    pub several_lines: Option<[String; 2]>,
    /// For `exec`: the command line of every turn but the first.
    pub resume: Option<Vec<String>>,
    /// Words that ask for a compaction, where the protocol has no method for it.
    pub compact: Option<String>,
}

/// A file that an agent finds.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Written {
    /// Below the scratch folder.
    pub path: String,
    /// What it holds.
    pub text: String,
}

/// An agent's shell tool.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// Its arguments, a JSON object with `{command}` in a text.
    pub arguments: Value,
}

/// How a reply makes a file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// The text, with `{path}` and `{content}` in it, which stands behind an empty line. The path is
    /// generated; the content ends with a line break.
    pub text: String,
    /// Whatever begins a line in such a text: words of the session that do are put behind a bar, and
    /// a file that holds such a line is not made.
    pub marks: Vec<String>,
}

/// How an agent is told where its provider is, `{url}` in its texts, with the settings that a person
/// has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// Environment.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Arguments in front of those that the person gives.
    #[serde(default)]
    pub arguments: Vec<String>,
}

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// The agent's own work.
    Work,
    /// A summary for a compaction.
    Summary,
    /// A name for the conversation.
    Title,
    /// Words for a commit.
    Commit,
    /// What the user might say next.
    Suggestion,
    /// Something to be remembered.
    Memory,
    /// Anything else beside the work.
    Other,
}

impl Purpose {
    /// The word in tables and files.
    pub fn word(self) -> &'static str {
        match self {
            Purpose::Work => "work",
            Purpose::Summary => "summary",
            Purpose::Title => "title",
            Purpose::Commit => "commit",
            Purpose::Suggestion => "suggestion",
            Purpose::Memory => "memory",
            Purpose::Other => "other",
        }
    }
}

/// How a side request is known: everything that is named must hold.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Side {
    /// What it is for.
    pub purpose: Purpose,
    /// A header and a piece of its value.
    pub header: Option<[String; 2]>,
    /// A field of the body, its names joined by dots, and a piece of what it holds.
    pub body: Option<[String; 2]>,
    /// A piece of the system prompt.
    pub system: Option<String>,
    /// A piece of the last message.
    pub last: Option<String>,
    /// Whether it offers tools.
    pub tools: Option<bool>,
}

/// The nearest of the agents that come with the project, or all of them.
pub(super) fn known(given: &str) -> String {
    let names: Vec<&str> = BUILT_IN.iter().map(|(name, _)| *name).collect();
    nearest::hint(given, &names)
}

/// All agents that come with the project.
pub fn built_in() -> Vec<Agent> {
    let agent =
        |(name, text): &(&str, &str)| read(name, text, None).expect("a test reads them all");
    BUILT_IN.iter().map(agent).collect()
}

/// The agent of a name, or of a TOML file.
pub fn find(text: &str) -> Result<Agent, AgentError> {
    if let Some(toml) = described(text) {
        return read(text, toml, None);
    }
    if !text.ends_with(".toml") {
        return Err(AgentError::Unknown(text.to_string()));
    }
    let path = PathBuf::from(text);
    let toml = files::read_text(&path)
        .map_err(|why| AgentError::Unreadable { path: path.clone(), why })?;
    let folder = std::path::absolute(&path).ok().and_then(|p| p.parent().map(Path::to_path_buf));
    let here = folder.unwrap_or_default();
    Ok(Agent { here: Some(here.clone()), ..read(text, &toml, Some(&here))? })
}

/// The description of an agent that comes with the project.
fn described(name: &str) -> Option<&'static str> {
    BUILT_IN.iter().find(|(n, _)| *n == name).map(|(_, toml)| *toml)
}

/// Reads and checks a description; the folder is its own.
pub fn read(file: &str, toml: &str, folder: Option<&Path>) -> Result<Agent, AgentError> {
    let agent: Agent = extended::read(file, toml, folder, &described).map_err(AgentError::Wrong)?;
    agent.check().map_err(|why| AgentError::Wrong(format!("{file}: {why}")))?;
    Ok(agent)
}

impl Agent {
    /// Whether there is a way to ask it for a compaction.
    pub fn can_be_asked_to_compact(&self) -> bool {
        match self.start.deliver {
            Deliver::Rpc | Deliver::AppServer => true,
            Deliver::Acp | Deliver::Lines | Deliver::Exec => self.start.compact.is_some(),
        }
    }

    fn check(&self) -> Result<(), String> {
        let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if self.name.is_empty() || !self.name.chars().all(letter) {
            return Err(format!("name = {:?}: letters, digits, `-` and `_` only", self.name));
        }
        if self.program.names.is_empty() || self.start.command.is_empty() {
            return Err("`program.names` and `start.command` must name something".into());
        }
        match self.start.deliver {
            Deliver::Lines if self.start.prompt.is_none() => {
                return Err(
                    "start.deliver = \"lines\" needs `start.prompt`: what the agent prints \
                            last when it waits for words"
                        .into(),
                );
            }
            Deliver::Exec if self.start.resume.is_none() => {
                return Err("start.deliver = \"exec\" needs `start.resume`: the command line of \
                            every turn but the first, with which the agent goes on where it was"
                    .into());
            }
            _ => {}
        }
        let model = model::find(&self.model).map_err(|e| format!("`model`: {e}"))?;
        self.strategy_with(model).map_err(|e| e.to_string())?;
        if let Some(tool) = &self.tool
            && !tool.arguments.to_string().contains("{command}")
        {
            return Err("`tool.arguments` must hold `{command}` in a text".into());
        }
        if let Some(edit) = &self.edit {
            if self.tool.is_some() {
                return Err("`edit` is for agents without `tool`".into());
            }
            if !edit.text.contains("{path}") || !edit.text.contains("{content}") {
                return Err("`edit.text` must hold `{path}` and `{content}`".into());
            }
            if !edit.text.starts_with("{path}\n") && !edit.text.contains("\n{path}\n") {
                return Err("`edit.text`: `{path}` must be a line of its own".into());
            }
            if edit.marks.is_empty() || edit.marks.iter().any(|m| m.trim().is_empty()) {
                return Err("`edit.marks` must name what begins the lines of an edit".into());
            }
        }
        for w in &self.file {
            let path = Path::new(&w.path);
            let plain = |c| matches!(c, std::path::Component::Normal(_));
            if !path.components().all(plain) || w.path.is_empty() {
                return Err(format!("file path {:?}: must lie below the scratch folder", w.path));
            }
        }
        for side in &self.side {
            let Side { header, body, system, last, tools, .. } = side;
            if header.is_none()
                && body.is_none()
                && system.is_none()
                && last.is_none()
                && tools.is_none()
            {
                let word = side.purpose.word();
                return Err(format!("[[side]] purpose = {word:?}: says nothing to know it by"));
            }
        }
        let texts = self.texts();
        let unknown = texts.iter().find_map(|t| Fill::unknown(t).map(|u| (u, t)));
        match unknown {
            None => Ok(()),
            Some((name, _)) => {
                Err(format!("{{{name}}} is not known here; known are {}", PLACES.join(", ")))
            }
        }
    }

    /// Our implementation of it, run with a model.
    pub fn strategy_with(&self, model: &Model) -> Result<Option<Spec>, AgentError> {
        let Some(strategy) = &self.strategy else { return Ok(None) };
        let wrong = |e| AgentError::Wrong(format!("strategy = {strategy:?}: {e}"));
        Spec::parse(&put(strategy, "model", &model.name)).map(Some).map_err(wrong)
    }

    /// The model of a name, or its own. Of another provider than its own model is none that it can
    /// be run with: its settings are written for that provider.
    pub fn model_named(&self, name: Option<&str>) -> Result<&'static Model, AgentError> {
        let api = |m: &Model| -> Api { wire::for_model(m).api() };
        let own = model::find(&self.model)?;
        let model = name.map_or(Ok(own), model::find)?;
        let speaks = api(own);
        if *api(model) == *speaks {
            return Ok(model);
        }
        let all = model::catalogue().iter().filter(|m| *api(m) == *speaks);
        Err(AgentError::Model {
            title: self.title.clone(),
            speaks: speaks.name(),
            model: model.name.to_string(),
            models: all.map(|m| &*m.name).collect::<Vec<_>>().join(", "),
        })
    }

    /// How it is told an address: as its description says, or by what of its environment needs
    /// nothing else. `None` = the description does not say.
    pub fn recorded(&self, url: &str) -> Option<Recorded> {
        let told = self.record.clone().or_else(|| {
            let only_url = |text: &String| {
                put(text, "url", "") != *text && !put(text, "url", "").contains('{')
            };
            let env: BTreeMap<_, _> =
                self.env.clone().into_iter().filter(|(_, v)| only_url(v)).collect();
            (!env.is_empty()).then(|| Recorded { env, ..Recorded::default() })
        })?;
        let filled = |text: String| put(&text, "url", url);
        Some(Recorded {
            env: told.env.into_iter().map(|(k, v)| (k, filled(v))).collect(),
            arguments: told.arguments.into_iter().map(filled).collect(),
        })
    }

    /// Texts in which places are filled and in which nobody writes braces of his own.
    fn texts(&self) -> Vec<&str> {
        let start = self.start.command.iter().chain(self.start.resume.iter().flatten());
        start.chain(self.env.values()).map(String::as_str).collect()
    }

    /// Where the program is.
    pub fn locate(&self, named: Option<&Path>) -> Result<PathBuf, AgentError> {
        let missing = |tried: String| AgentError::Missing {
            title: self.title.clone(),
            name: self.name.clone(),
            tried,
            install: self.install.clone(),
        };
        if let Some(path) = named {
            // Not where links lead: a program may go by the name that it is called by.
            let absolute = std::path::absolute(path).ok().filter(|p| p.is_file());
            return absolute.ok_or_else(|| AgentError::NotThere {
                name: self.name.clone(),
                path: path.to_path_buf(),
            });
        }
        let paths = std::env::var_os("PATH").unwrap_or_default();
        let candidates = || std::env::split_paths(&paths);
        let found = self
            .program
            .names
            .iter()
            .find_map(|name| candidates().map(|dir| dir.join(name)).find(|p| p.is_file()));
        let found = found.and_then(|p| std::path::absolute(p).ok());
        found.ok_or_else(|| missing(self.program.names.join("` or `")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_agents_of_the_project_are_read() {
        for (name, toml) in BUILT_IN {
            let agent = read(name, toml, None).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(agent.name, *name);
        }
    }

    const LEAST: &str = r#"
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
    fn what_is_wrong_is_told_with_its_place() {
        assert!(read("a", LEAST, None).is_ok());
        for (from, to, told) in [
            ("\"acp\"\n", "\"smoke\"\n", "smoke"),
            ("{program}", "{progam}", "{progam}"),
            ("name = \"mine\"", "name = \"../mine\"", "letters"),
            ("deliver = \"acp\"", "deliver = \"lines\"", "start.prompt"),
            ("deliver = \"acp\"", "deliver = \"exec\"", "start.resume"),
            ("[start]", "[[file]]\npath = \"../x\"\ntext = \"\"\n[start]", "below the scratch"),
            ("[start]", "[[side]]\npurpose = \"title\"\n[start]", "nothing to know it by"),
            ("[start]", "[tool]\nname = \"sh\"\narguments = {a = 1}\n[start]", "{command}"),
            ("title", "titel", "did you mean title?"),
            ("name = \"mine\"", "name = \"mine\"\nstrategy = \"codx\"", "codx"),
            ("\"gpt-5.5\"", "\"gpt-55\"", "did you mean gpt-5.5"),
        ] {
            let text = LEAST.replacen(from, to, 1);
            assert_ne!(text, LEAST, "{from}");
            let error = read("mine.toml", &text, None).unwrap_err().to_string();
            assert!(error.starts_with("mine.toml:") && error.contains(told), "{to}: {error}");
        }
    }

    #[test]
    fn an_agent_is_told_an_address_as_its_description_says() {
        let of =
            |more: &str| read("a", &format!("{LEAST}{more}"), None).unwrap().recorded("http://h:1");
        assert_eq!(of(""), None);
        let env = of("[env]\nBASE = \"{url}/v1\"\nHOME = \"{scratch}\"\n").unwrap();
        assert_eq!(env.env, BTreeMap::from([("BASE".into(), "http://h:1/v1".into())]));
        let own = of("[record]\narguments = [\"-c\", \"url={url}\"]\n[env]\nBASE = \"{url}\"\n");
        let own = own.unwrap();
        assert_eq!((own.env.len(), own.arguments[1].as_str()), (0, "url=http://h:1"));
    }
}
