//! The lines of a Claude Code transcript that are a subagent's: sidechain lines, and in later versions progress lines that repeat its
//! messages. A subagent's last reply is not repeated: it stands as the result of its call.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::{Line, flag, str_of};

/// The lines of one subagent.
pub(super) struct Sidechain {
    /// Its id.
    pub(super) id: String,
    /// Its lines in their order.
    pub(super) lines: Vec<Line>,
    /// The call whose progress they are, where progress lines repeat them.
    pub(super) call: Option<String>,
}

/// Takes the subagents' lines out of a transcript: each subagent in the order in which they begin. A file that holds
/// nothing else is the transcript of one subagent, and everything stays.
pub(super) fn split(lines: &mut Vec<Line>) -> Vec<Sidechain> {
    let main = |l: &Line| matches!(str_of(&l.object, "type"), Some("user" | "assistant")) && !flag(&l.object, "isSidechain");
    if !lines.iter().any(main) {
        return Vec::new();
    }
    let mut out: Vec<Sidechain> = Vec::new();
    let mut roots: HashMap<String, String> = HashMap::new();
    let mut repeated: Vec<Sidechain> = Vec::new();
    let mut rest = Vec::new();
    for line in std::mem::take(lines) {
        if flag(&line.object, "isSidechain") {
            add(&mut out, sidechain(&line.object, &mut roots), None, line);
        } else if let Some((agent, repeats)) = progress(&line) {
            add(&mut repeated, agent, str_of(&line.object, "parentToolUseID"), repeats);
        } else {
            rest.push(line);
        }
    }
    *lines = rest;
    let own: Vec<String> = out.iter().map(|a| a.id.clone()).collect();
    out.extend(repeated.into_iter().filter(|a| !own.contains(&a.id)));
    out.sort_by_key(|a| a.lines.first().map(|l| l.number));
    out
}

fn add(to: &mut Vec<Sidechain>, id: String, call: Option<&str>, line: Line) {
    match to.iter_mut().find(|a| a.id == id) {
        Some(a) => a.lines.push(line),
        None => to.push(Sidechain { id, lines: vec![line], call: call.map(str::to_string) }),
    }
}

/// The subagent of a sidechain line: its id, or, where there is none, the line that its chain begins with.
fn sidechain(object: &Map<String, Value>, roots: &mut HashMap<String, String>) -> String {
    let uuid = str_of(object, "uuid").unwrap_or_default();
    let root = str_of(object, "parentUuid").and_then(|p| roots.get(p).cloned()).unwrap_or_else(|| format!("side-{uuid}"));
    roots.insert(uuid.to_string(), root.clone());
    str_of(object, "agentId").map_or(root, str::to_string)
}

/// The message that a progress line repeats, as a line of its subagent.
fn progress(line: &Line) -> Option<(String, Line)> {
    let data = line.object.get("data")?.as_object()?;
    if str_of(data, "type") != Some("agent_progress") {
        return None;
    }
    let agent = str_of(data, "agentId")?;
    let mut object = data.get("message")?.as_object()?.clone();
    object.insert("isSidechain".into(), true.into());
    Some((agent.to_string(), Line { number: line.number, object }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agents(text: &str) -> (Vec<usize>, Vec<(String, Vec<usize>)>) {
        let mut lines = super::super::objects(text, "t", &mut Vec::new());
        let found = split(&mut lines);
        let numbers = |lines: &[Line]| lines.iter().map(|l| l.number).collect();
        (numbers(&lines), found.iter().map(|a| (a.id.clone(), numbers(&a.lines))).collect())
    }

    #[test]
    fn sidechains_by_id_and_by_root() {
        let (main, found) = agents(
            r#"{"type":"user","uuid":"1"}
{"type":"user","uuid":"2","parentUuid":null,"isSidechain":true}
{"type":"user","uuid":"3","parentUuid":null,"isSidechain":true}
{"type":"assistant","uuid":"4","parentUuid":"2","isSidechain":true}
{"type":"user","uuid":"5","parentUuid":"3","isSidechain":true,"agentId":"x"}"#,
        );
        assert_eq!(main, [1]);
        assert_eq!(found, [("side-2".to_string(), vec![2, 4]), ("side-3".into(), vec![3]), ("x".into(), vec![5])]);
    }

    #[test]
    fn progress_lines_repeat_what_no_sidechain_holds() {
        let (main, found) = agents(
            r#"{"type":"user","uuid":"1"}
{"type":"progress","data":{"type":"agent_progress","agentId":"x","message":{"type":"user","uuid":"p"}}}
{"type":"progress","data":{"type":"agent_progress","agentId":"y","message":{"type":"user","uuid":"q"}}}
{"type":"progress","data":{"type":"hook_progress"}}
{"type":"user","uuid":"2","isSidechain":true,"agentId":"y"}"#,
        );
        assert_eq!(main, [1, 4]);
        assert_eq!(found, [("x".to_string(), vec![2]), ("y".into(), vec![5])]);
    }
}
