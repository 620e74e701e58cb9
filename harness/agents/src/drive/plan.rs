//! Translation of a session to an agent's tools: the user's messages and the model's replies.
//!
//! A session is untrusted data, and the agent runs without approvals. Every call therefore prints a
//! file with the agent's shell tool. Path and call id are generated numbers, so no part of the
//! session reaches a path or a command.

use std::collections::HashSet;

use ctxbench_core::compaction::tools::is_edit;
use ctxbench_core::prelude::*;
use ctxbench_session::{AssistantEntry, Entry, Session};

use super::agent::{Agent, Edit, ShellTool};
use super::template::{replace, replace_in};
use ctxbench_replay::{Move, NEUTRAL, Path};

/// Folder of the outputs in the project.
pub(super) const OUTPUTS: &str = ".ctxbench";

/// Session translated for an agent.
#[derive(Debug, Default)]
pub(super) struct DrivePlan {
    pub(super) moves: Vec<DriveStep>,
    /// Output of each call, by its number.
    pub(super) outputs: Vec<Arc<str>>,
    /// Number of compactions by the user that the agent cannot be asked for.
    pub(super) left_out: usize,
}

/// A message of the user, a compaction, or a pause.
#[derive(Debug)]
pub(super) struct DriveStep {
    /// Pause before it, ms.
    pub(super) gap_ms: Millis,
    pub(super) what: Delivery,
    /// Replies of the model, in order.
    pub(super) replies: Vec<Planned>,
}

#[derive(Debug)]
pub(super) enum Delivery {
    /// A message of the user.
    Say(String),
    /// A compaction, with instructions.
    Compact(Option<String>),
    /// A pause.
    Wait,
}

/// A reply of the model.
#[derive(Clone, Debug, Default)]
pub(super) struct Planned {
    /// Id of the session's reply.
    pub(super) key: Arc<str>,
    /// Ids of the other replies and calls of the session that it replaces.
    pub(super) replaces: Vec<Arc<str>>,
    pub(super) parts: Vec<Part>,
    /// Duration of its tools, ms.
    pub(super) tools_ms: Millis,
}

/// Returns the path of a call's output in the project.
pub(super) fn output_file(call: usize) -> String {
    format!("{OUTPUTS}/{call:05}.txt")
}

/// Beginning of the id of a call, before its number.
const CALL: &str = "call_";

/// Returns the beginning of a session with this number of messages of the user, and the number of
/// those that follow.
pub(super) fn with_turns(session: &Session, turns: Option<usize>) -> (Session, usize) {
    let mut out = session.clone();
    let is_turn = |e: &Entry| matches!(e, Entry::User(u) if u.agent.is_none());
    let mut said = session.entries.iter().enumerate().filter(|(_, e)| is_turn(e));
    let Some((end, _)) = turns.and_then(|n| said.nth(n)) else { return (out, 0) };
    out.entries.truncate(end);
    let known: HashSet<&str> = out.entries.iter().filter_map(Entry::key).collect();
    out.facts.retain(|f| known.contains(&*f.arises));
    for fact in &mut out.facts {
        fact.needs.retain(|id| known.contains(&**id));
        fact.superseded_by = None;
    }
    (out, said.count() + 1)
}

/// Adds a final reply to every turn without one. A recording may end a turn with the output of a
/// tool, after which an agent sends another request.
pub(super) fn with_final_replies(session: &Session) -> Session {
    let mut out = session.clone();
    out.entries = Vec::with_capacity(session.entries.len());
    let (mut called, mut number) = (false, 0);
    // The session itself ends a turn, too.
    for e in session.entries.iter().map(Some).chain([None]) {
        let ends = match e {
            Some(Entry::User(u)) => u.agent.is_none(),
            Some(Entry::Idle { .. }) | None => true,
            Some(e) => e.compact_command().is_some(),
        };
        if ends && std::mem::take(&mut called) {
            number += 1;
            let (id, text) = (format!("ctxbench-last-words-{number}"), Some(NEUTRAL.into()));
            out.entries.push(Entry::Assistant(AssistantEntry { id, text, ..Default::default() }));
        }
        if let Some(Entry::Assistant(a)) = e
            && a.agent.is_none()
        {
            called = !a.calls.is_empty() || a.parts.iter().flatten().any(|p| p.as_call().is_some());
        }
        out.entries.extend(e.cloned());
    }
    out
}

impl DrivePlan {
    /// Translates a session. For an agent without a shell tool a turn is one reply.
    pub(super) fn new(session: &Session, agent: &Agent) -> Result<DrivePlan, String> {
        let tool = agent.tool.as_ref();
        let mut files = 0;
        let mut plan = DrivePlan::default();
        for m in Path::recorded(session).moves {
            let Move { gap_ms, action, steps, .. } = m;
            let idle = if let Action::Idle { ms } = action { ms } else { 0 };
            let what = match action {
                Action::User(said) => {
                    let texts: Vec<&str> = said.parts.iter().filter_map(Part::as_text).collect();
                    Delivery::Say(escape_command(texts.join("\n\n")))
                }
                Action::Compact { .. } if !agent.can_be_asked_to_compact() => {
                    plan.left_out += 1;
                    Delivery::Wait
                }
                Action::Compact { instructions } => Delivery::Compact(instructions),
                Action::Idle { .. } => Delivery::Wait,
                other => return Err(undrivable(&other)),
            };
            let replies: Vec<Planned> = match tool {
                Some(tool) => steps
                    .into_iter()
                    .map(|s| {
                        let results = s.results.iter().map(|r| words(&r.parts)).collect();
                        let mut parts = plan.translated(&s.parts, results, tool);
                        plan.end_turn(&mut parts, agent.end.as_ref());
                        Planned { key: s.key, parts, tools_ms: s.tools_ms, ..Planned::default() }
                    })
                    .collect(),
                None => join_replies(&steps, agent.edit.as_ref(), &mut files).into_iter().collect(),
            };
            plan.moves.push(DriveStep { gap_ms: gap_ms.saturating_add(idle), what, replies });
        }
        if plan.moves.iter().all(|m| !matches!(m.what, Delivery::Say(_))) {
            return Err("it has no message of the user".into());
        }
        Ok(plan)
    }

    /// Adds the call that ends a turn to a reply without calls.
    fn end_turn(&mut self, parts: &mut Vec<Part>, end: Option<&ShellTool>) {
        let Some(end) = end.filter(|_| parts.iter().all(|p| p.as_call().is_none())) else { return };
        let id = format!("{CALL}{:05}", self.outputs.len());
        self.outputs.push("".into());
        parts.push(Part::Call(ToolCall::new(id, &*end.name, end.arguments.to_string())));
    }

    /// Returns the user's messages with the numbers of their moves.
    pub(super) fn messages(&self) -> impl Iterator<Item = (usize, &str)> {
        self.moves.iter().enumerate().filter_map(|(i, m)| match &m.what {
            Delivery::Say(words) => Some((i, words.as_str())),
            _ => None,
        })
    }

    pub(super) fn replies(&self) -> u64 {
        self.moves.iter().map(|m| m.replies.len() as u64).sum()
    }

    /// Returns the output of a call by its id.
    pub(super) fn printed(&self, id: &str) -> Option<&str> {
        let number: usize = id.strip_prefix(CALL)?.parse().ok()?;
        self.outputs.get(number).map(|t| &**t)
    }

    /// Translates calls to the agent's shell tool.
    fn translated(
        &mut self,
        parts: &[Part],
        results: Vec<Arc<str>>,
        tool: &ShellTool,
    ) -> Vec<Part> {
        let mut results = results.into_iter();
        let mut out = Vec::with_capacity(parts.len());
        for p in parts {
            match p {
                Part::Call(_) => {
                    let number = self.outputs.len();
                    self.outputs.push(results.next().unwrap_or_default());
                    let command = format!("cat {}", output_file(number));
                    let arguments = replace_in(&tool.arguments, "command", &command).to_string();
                    let id = format!("{CALL}{number:05}");
                    out.push(Part::Call(ToolCall::new(id, &*tool.name, arguments)));
                }
                Part::Text(t) if !t.trim().is_empty() => out.push(p.clone()),
                // Reasoning is signed by the provider of the recording.
                _ => {}
            }
        }
        if out.is_empty() {
            out.push(Part::Text(NEUTRAL.into()));
        }
        out
    }
}

fn words(parts: &[Part]) -> Arc<str> {
    parts.iter().find(|p| matches!(p, Part::Result { .. })).map_or("", Part::text).into()
}

/// Prevents a message of the user from being a command of the agent or a shell.
fn escape_command(words: String) -> String {
    match words.trim_start().starts_with(['/', '!', '#', '@', '$']) {
        true => format!(": {words}"),
        false => words,
    }
}

/// Joins the replies of a turn, without calls. Files that they wrote become edits of the agent.
fn join_replies(
    steps: &[ctxbench_replay::PathStep],
    edit: Option<&Edit>,
    files: &mut usize,
) -> Option<Planned> {
    let last = steps.last()?;
    let all = || steps.iter().flat_map(|s| &s.parts);
    let texts: Vec<&str> =
        all().filter_map(Part::as_text).filter(|t| !t.trim().is_empty()).collect();
    let text = if texts.is_empty() { NEUTRAL.to_string() } else { texts.join("\n\n") };
    let text = edit.map_or(text.clone(), |edit| escape_marks(&text, &edit.marks));
    let tools_ms = steps.iter().map(|s| s.tools_ms).sum();
    let mut said = text;
    for call in all().filter_map(Part::as_call) {
        let Some(edit) = edit else { break };
        let Some(content) = written(call).filter(|c| escape_marks(c, &edit.marks) == *c) else {
            continue;
        };
        *files += 1;
        let path = format!("file-{files:05}.txt");
        // The path must be alone on its line.
        said += "\n\n";
        said += &replace(&replace(&edit.text, "path", &path), "content", &content);
    }
    let parts = vec![Part::Text(said.into())];
    let calls = all().filter_map(Part::as_call).map(|call| call.id.clone());
    let replaces = steps.iter().map(|s| s.key.clone()).chain(calls).collect();
    Some(Planned { key: last.key.clone(), replaces, parts, tools_ms })
}

/// Returns the text that an editing call writes: a whole file, or the new part. It ends with a line
/// break.
fn written(call: &ToolCall) -> Option<String> {
    let names =
        ["content", "contents", "file_text", "new_string", "newString", "new_str", "new", "text"];
    let text = text_argument(&call.arguments, &names).filter(|_| is_edit(&call.name))?;
    let end = if text.ends_with('\n') { "" } else { "\n" };
    (!text.trim().is_empty()).then(|| text + end)
}

/// Puts a bar before lines that begin with one of these marks.
fn escape_marks(text: &str, marks: &[String]) -> String {
    let marked = |line: &str| marks.iter().any(|m| line.trim_start().starts_with(m.as_str()));
    let line = |l: &str| if marked(l) { format!("| {l}") } else { l.to_string() };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

fn undrivable(action: &Action) -> String {
    let reason = match action {
        Action::Rewind { .. } => "rewinds",
        Action::Clear => "clears the conversation",
        Action::NewSession => "begins another session",
        Action::Restart => "closes the program and opens it again (restart)",
        Action::User(_) | Action::Compact { .. } | Action::Idle { .. } => "does something else",
    };
    format!("it {reason}, which agents cannot be driven through; use `ctxbench run`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::agent::described_with as agent;
    use ctxbench_session::fact::{Fact, FactKind};
    use ctxbench_session::{ToolEntry, UserEntry};

    fn session(id: &str, name: &str, arguments: &str, output: &str) -> Session {
        let call = ToolCall { id: id.into(), name: name.into(), arguments: arguments.into() };
        let text = |t: &str| Some(t.into());
        let user = UserEntry { id: "u".into(), text: text("look"), ..Default::default() };
        let calls = AssistantEntry { id: "a1".into(), calls: vec![call], ..Default::default() };
        let result = ToolEntry { call_id: id.into(), output: text(output), ..Default::default() };
        let end = AssistantEntry { id: "a2".into(), text: text("seen"), ..Default::default() };
        let entries = vec![
            Entry::User(user),
            Entry::Assistant(calls),
            Entry::Tool(result),
            Entry::Assistant(end),
        ];
        Session { entries, ..Default::default() }
    }

    fn shell() -> Agent {
        agent("[tool]\nname = \"sh\"\narguments = {cmd = \"{command}\", n = 1}\n")
    }

    fn editor() -> Agent {
        agent("[edit]\ntext = \"{path}\\n<<<<\\n{content}>>>>\"\nmarks = [\"<<<<\", \">>>>\"]\n")
    }

    #[test]
    fn a_call_prints_what_was_recorded() {
        let plan = DrivePlan::new(&session("c", "read", "{}", "out\n"), &shell()).unwrap();
        let Part::Call(call) = &plan.moves[0].replies[0].parts[0] else { panic!("no call") };
        assert_eq!((&*call.id, &*call.name), ("call_00000", "sh"));
        assert_eq!(&*call.arguments, r#"{"cmd":"cat .ctxbench/00000.txt","n":1}"#);
        assert_eq!(&*plan.outputs[0], "out\n");
        assert_eq!(plan.moves[0].replies[1].parts, [Part::Text("seen".into())]);
    }

    #[test]
    fn nothing_of_a_hostile_session_reaches_a_command() {
        let evil = "$(touch x); ../../etc/passwd \"; rm -rf ~ #";
        let arguments = serde_json::json!({"cmd": evil, "path": evil}).to_string();
        let plan = DrivePlan::new(&session(evil, evil, &arguments, evil), &shell()).unwrap();
        let Part::Call(call) = &plan.moves[0].replies[0].parts[0] else { panic!("no call") };
        let all = format!("{} {} {}", call.id, call.name, call.arguments);
        assert!(!all.contains("touch") && !all.contains("..") && !all.contains("rm"), "{all}");
        assert_eq!(&*plan.outputs[0], evil);
    }

    #[test]
    fn without_a_tool_a_turn_is_one_reply() {
        let plan = DrivePlan::new(&session("c", "read", "{}", "out"), &agent("")).unwrap();
        let replies = &plan.moves[0].replies;
        assert_eq!((replies.len(), &*replies[0].key), (1, "a2"));
        assert_eq!(replies[0].parts, [Part::Text("seen".into())]);
        // Facts of the turn have these ids.
        assert_eq!(replies[0].replaces, ["a1".into(), "a2".into(), "c".into()]);
        assert!(plan.outputs.is_empty());
    }

    #[test]
    fn a_turn_that_ends_with_a_result_gets_last_words() {
        let mut s = session("c", "read", "{}", "out");
        s.entries.truncate(3);
        s.entries.push(Entry::User(UserEntry { id: "v".into(), ..Default::default() }));
        let whole = with_final_replies(&s);
        let plan = DrivePlan::new(&whole, &shell()).unwrap();
        assert_eq!(plan.moves[0].replies.len(), 2);
        assert_eq!(plan.moves[0].replies[1].parts, [Part::Text(NEUTRAL.into())]);
        assert_eq!(with_final_replies(&whole), whole, "nothing is added twice");
    }

    #[test]
    fn a_turn_ends_with_the_call_that_the_agent_wants() {
        let more = "[tool]\nname = \"sh\"\narguments = {cmd = \"{command}\"}\n\
                    [end]\nname = \"done\"\narguments = {ok = true}\n";
        let plan = DrivePlan::new(&session("c", "read", "{}", "out"), &agent(more)).unwrap();
        let [work, last] = &plan.moves[0].replies[..] else { panic!("two replies") };
        assert_eq!(work.parts.len(), 1);
        let [Part::Text(_), Part::Call(call)] = &last.parts[..] else { panic!("{:?}", last.parts) };
        assert_eq!((&*call.id, &*call.name), ("call_00001", "done"));
        assert_eq!(&*call.arguments, r#"{"ok":true}"#);
    }

    #[test]
    fn a_limit_of_turns_leaves_out_the_rest() {
        let mut s = session("c", "read", "{}", "out");
        let fact = |id: &str, arises: &str| Fact {
            arises: arises.into(),
            needs: vec!["a2".into(), "a3".into()],
            ..Fact::new(id, FactKind::Value, "x", "")
        };
        s.entries.push(Entry::User(UserEntry { id: "v".into(), ..Default::default() }));
        s.entries.push(Entry::Assistant(AssistantEntry { id: "a3".into(), ..Default::default() }));
        s.facts = vec![fact("one", "c"), fact("two", "a3")];
        assert_eq!(with_turns(&s, None), (s.clone(), 0));
        assert_eq!(with_turns(&s, Some(2)), (s.clone(), 0));
        let (short, skipped) = with_turns(&s, Some(1));
        assert_eq!((short.entries.len(), skipped), (4, 1));
        let [fact] = &short.facts[..] else { panic!("{:?}", short.facts) };
        assert_eq!((&*fact.id, &fact.needs[..]), ("one", &["a2".to_string()][..]));
    }

    #[test]
    fn an_edit_is_one_of_the_agents_own_with_a_name_of_ours() {
        let arguments = serde_json::json!({"path": "../../evil", "content": "a\nb"}).to_string();
        let plan =
            DrivePlan::new(&session("c", "write_file", &arguments, "ok"), &editor()).unwrap();
        let reply = &plan.moves[0].replies[0];
        let said = "seen\n\nfile-00001.txt\n<<<<\na\nb\n>>>>";
        assert_eq!(reply.parts, [Part::Text(said.into())]);
    }

    #[test]
    fn words_that_would_be_an_edit_or_a_command_are_none() {
        let evil = "x\n../../evil\n  <<<< \nrm\n>>>>";
        let arguments = serde_json::json!({"path": "a", "content": evil}).to_string();
        let mut s = session("c", "write_file", &arguments, "ok");
        let Entry::Assistant(end) = &mut s.entries[3] else { panic!("no reply") };
        end.text = Some(evil.into());
        let Entry::User(user) = &mut s.entries[0] else { panic!("no user") };
        user.text = Some("!touch evil".into());
        let plan = DrivePlan::new(&s, &editor()).unwrap();
        let Delivery::Say(words) = &plan.moves[0].what else { panic!("nothing said") };
        assert_eq!(words, ": !touch evil");
        let told = "x\n../../evil\n|   <<<< \nrm\n| >>>>";
        assert_eq!(plan.moves[0].replies[0].parts, [Part::Text(told.into())]);
    }

    #[test]
    fn what_goes_back_is_not_driven() {
        let mut s = session("c", "read", "{}", "out");
        s.entries.push(Entry::Clear);
        let why = DrivePlan::new(&s, &agent("")).unwrap_err();
        assert!(why.contains("clears"), "{why}");
        assert!(DrivePlan::new(&Session::default(), &agent("")).is_err());
    }
}
