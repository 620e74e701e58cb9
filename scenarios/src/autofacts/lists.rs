//! Needs of the state of the work: the tasks of a list that the agent rewrites, and commands that
//! it reports on later. Only the agent's own calls count as showing them.

use std::collections::{BTreeSet, HashMap};

use ctxbench_session::{FactKind, gist};
use serde_json::Value;

use super::events::{FactReply, leaves};
use super::{GAP, Need};

/// Names of members with the text of a task.
const TEXTS: &[&str] = &["content", "description", "step", "subject", "task", "text", "title"];

/// Length of a command that a report would name, bytes, and its minimum number of blanks.
const COMMAND: std::ops::Range<usize> = 12..300;
const BLANKS: usize = 2;

/// Texts of one agent, each with the id and the number of the last reply that wrote it.
#[derive(Default)]
pub(super) struct ListWindow {
    tasks: HashMap<String, (String, usize)>,
    commands: HashMap<String, (String, usize)>,
}

impl ListWindow {
    pub(super) fn reply(&mut self, at: usize, reply: &FactReply<'_>) -> Vec<Need> {
        let mut needs: Vec<Need> = Vec::new();
        let tasks: Vec<&str> = reply.calls.iter().flat_map(|call| tasks(&call.arguments)).collect();
        for task in &tasks {
            if let Some((origin, last)) = self.tasks.get(*task).filter(|t| at - t.1 >= GAP) {
                let need = Need::literal(task, origin, reply.id, at - last);
                Need { kind: FactKind::Todo, ..need }.add_to(&mut needs);
            }
        }
        self.tasks.extend(tasks.into_iter().map(|t| (t.to_string(), (reply.id.to_string(), at))));
        for said in reply.texts.iter().flat_map(|t| named(t)) {
            if let Some((origin, last)) = self.commands.get(said).filter(|c| at - c.1 >= GAP) {
                let words = gist::stems(said).collect::<BTreeSet<_>>().into_iter().collect();
                needs.push(Need::words(FactKind::Todo, words, origin, reply.id, at - last));
            }
        }
        let values = reply.calls.iter().flat_map(|call| leaves(&call.arguments));
        for (_, command) in values.filter(|(_, value)| is_command(value)) {
            self.commands.insert(command.trim().to_string(), (reply.id.to_string(), at));
        }
        needs.retain(|n| !n.tokens.is_empty() || !n.words.is_empty());
        needs
    }
}

fn is_command(value: &str) -> bool {
    COMMAND.contains(&value.len()) && value.matches(' ').count() >= BLANKS && !value.contains('\n')
}

/// Returns the lines and the inline code of a text, where a report may name a command.
fn named(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().map(|l| l.trim().trim_start_matches(['-', '*', '$', ' ']));
    let code = text.lines().flat_map(|l| l.split('`').skip(1).step_by(2));
    lines.map(|l| l.trim_matches('`')).chain(code)
}

/// Returns the texts of the tasks in a call's arguments. A task is an item of a list with a
/// `status`.
pub(super) fn tasks(arguments: &Value) -> Vec<&str> {
    let mut out = Vec::new();
    collect(arguments, &mut out);
    out
}

fn collect<'a>(value: &'a Value, out: &mut Vec<&'a str>) {
    let is_task = |v: &Value| v["status"].is_string();
    match value {
        Value::Array(list) if !list.is_empty() && list.iter().all(is_task) => {
            out.extend(list.iter().filter_map(text_of));
        }
        Value::Array(list) => list.iter().for_each(|v| collect(v, out)),
        Value::Object(members) => members.values().for_each(|v| collect(v, out)),
        _ => {}
    }
}

fn text_of(task: &Value) -> Option<&str> {
    let members = || task.as_object().into_iter().flatten().filter(|(k, _)| *k != "status");
    let longest = |is_named: bool| {
        let members = members().filter(|(k, _)| !is_named || TEXTS.contains(&k.as_str()));
        members.filter_map(|(_, v)| v.as_str()).max_by_key(|t| t.len())
    };
    longest(true).or_else(|| longest(false))
}
