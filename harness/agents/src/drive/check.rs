//! Checks descriptions of agents.

use std::path::{Component, Path};

use ctxbench_core::model;

use super::agent::{Agent, Deliver, Edit, SetupFile, Side, TEXT};

impl Agent {
    /// Checks rules that the types do not express.
    pub(super) fn check(&self) -> Result<(), String> {
        let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let plain = |file: &SetupFile| {
            let mut parts = Path::new(&file.path).components();
            !file.path.is_empty() && parts.all(|c| matches!(c, Component::Normal(_)))
        };
        let conditional = |s: &Side| {
            let texts = [&s.system, &s.last].iter().any(|t| t.is_some());
            texts || s.header.is_some() || s.body.is_some() || s.tools.is_some()
        };
        let has_places = |e: &Edit| {
            e.text.contains("{content}") && format!("\n{}", e.text).contains("\n{path}\n")
        };
        let has_marks =
            |e: &Edit| !e.marks.is_empty() && e.marks.iter().all(|m| !m.trim().is_empty());
        let (start, edit) = (&self.start, self.edit.as_ref());
        let rules = [
            (
                !self.name.is_empty() && self.name.chars().all(letter),
                "`name`: letters, digits, `-` and `_` only",
            ),
            (
                start.deliver != Deliver::Lines || start.prompt.is_some(),
                "start.deliver = \"lines\" needs `start.prompt`: the prompt that the agent prints \
                 when it waits for a message",
            ),
            (
                start.deliver != Deliver::Exec || start.resume.is_some() || start.turns == Some(1),
                "start.deliver = \"exec\" needs `start.resume`: the command line of every turn but \
                 the first, which continues the conversation; or `start.turns = 1`",
            ),
            (
                start.id.as_ref().is_some_and(|id| !id.is_empty())
                    == start.resume.iter().flatten().any(|a| a.contains("{id}")),
                "`{id}` in `start.resume` needs `start.id`: the text after which the program prints \
                 the id, such as \"session id: \"",
            ),
            (start.turns != Some(0), "`start.turns` is the number of messages, at least 1"),
            (
                self.end.is_none() || self.tool.is_some(),
                "`end` is a call of an agent with a `[tool]`",
            ),
            (
                self.tool.as_ref().is_none_or(|t| t.arguments.to_string().contains("{command}")),
                "`tool.arguments` must contain `{command}` in a string",
            ),
            (
                edit.is_none_or(|e| self.tool.is_none() && has_places(e) && has_marks(e)),
                "`edit` is for agents without `tool`; its `text` must contain `{content}`, and \
                 `{path}` alone on its line, and its `marks` the prefixes of the lines of an edit",
            ),
            (
                self.file.iter().all(plain),
                "`path` of a file must be a relative path in the scratch folder",
            ),
            (self.side.iter().all(conditional), "every [[side]] needs at least one condition"),
            (
                is_safe(&start.command) && start.resume.as_deref().is_none_or(is_safe),
                "`{text}` is the user's message, which must not become an option of the program: \
                 write it as an argument after \"--\", as \"--NAME={text}\", or leave it out, and \
                 the message goes to standard input",
            ),
        ];
        if let Some((_, why)) = rules.iter().find(|(holds, _)| !holds) {
            return Err(why.to_string());
        }
        let model = model::find(&self.model).map_err(|e| format!("`model`: {e}"))?;
        self.strategy_with(model).map(drop).map_err(|e| e.to_string())
    }
}

/// Returns whether a program cannot read the user's message as an option: `{text}` is a whole
/// argument after `--`, or the value in `--NAME={text}`.
fn is_safe(command: &[String]) -> bool {
    let is_option = |name: &str| {
        let letter = |c: char| c.is_ascii_alphanumeric() || c == '-';
        name.strip_prefix("--").is_some_and(|n| !n.is_empty() && n.chars().all(letter))
    };
    command.iter().enumerate().all(|(i, argument)| match argument.split_once(TEXT) {
        None => true,
        Some(("", "")) => command[..i].iter().any(|a| a == "--"),
        Some((before, after)) => {
            after.is_empty() && before.strip_suffix('=').is_some_and(is_option)
        }
    })
}
