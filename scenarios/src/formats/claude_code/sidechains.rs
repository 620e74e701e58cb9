//! Lines of a Claude Code transcript that belong to a subagent, the sidechain lines.
//!
//! Files of side questions and of requests for summaries begin with the lines of the session, and
//! copies of such files with each other's. A line that stands twice is taken once.

use std::collections::{HashMap, HashSet};

use crate::formats::prelude::*;

pub(super) struct Conversations {
    pub(super) lines: Vec<Spoken>,
    /// The file is the transcript of one subagent.
    pub(super) of_subagent: bool,
    /// Subagents that continue the main conversation.
    pub(super) asides: HashSet<String>,
}

pub(super) struct Spoken {
    pub(super) agent: Option<String>,
    pub(super) line: RecordedLine,
}

impl Conversations {
    pub(super) fn windows(&self) -> Vec<Vec<&RecordedLine>> {
        let mut windows: HashMap<Option<&str>, Vec<&RecordedLine>> = HashMap::new();
        for spoken in &self.lines {
            let agent = spoken.agent.as_deref().filter(|_| !self.of_subagent);
            windows.entry(agent).or_default().push(&spoken.line);
        }
        windows.into_values().collect()
    }
}

pub(super) fn split(mut lines: Vec<RecordedLine>) -> Conversations {
    let is_main = |l: &RecordedLine| {
        matches!(str_of(&l.object, "type"), Some("user" | "assistant"))
            && !flag(&l.object, "isSidechain")
    };
    let of_subagent = !lines.iter().any(is_main);
    let mut standing = StandingLines::default();
    lines.retain(|line| !is_main(line) || !standing.add_main(line));
    let mut asides = HashSet::new();
    let mut roots: HashMap<String, String> = HashMap::new();
    let mut out = Vec::new();
    for line in lines {
        if !flag(&line.object, "isSidechain") {
            out.push(Spoken { agent: None, line });
            continue;
        }
        let agent = sidechain(&line.object, &mut roots);
        match standing.owner(&line, &agent) {
            Some(None) => drop(asides.insert(agent)),
            Some(Some(_)) => {}
            None => out.push(Spoken { agent: Some(agent), line }),
        }
    }
    Conversations { lines: out, of_subagent, asides }
}

/// Messages so far, by what identifies them, each with its conversation.
#[derive(Default)]
struct StandingLines(HashMap<String, Option<String>>);

impl StandingLines {
    /// Adds a message of the main conversation. Returns whether it stands there already.
    fn add_main(&mut self, line: &RecordedLine) -> bool {
        let (uuid, names) = (string(&line.object, "uuid"), fingerprints(line));
        let copies = names.iter().flat_map(|[copies, _]| copies);
        let copies = copies.chain(uuid.as_ref().filter(|_| names.is_none()));
        let is_copy = copies.into_iter().any(|name| self.0.contains_key(name));
        let own = names.into_iter().flat_map(|[_, own]| own);
        self.0.extend(uuid.into_iter().chain(own).map(|name| (name, None)));
        is_copy
    }

    /// Returns the other conversation that has a message of a subagent already, or adds the message.
    fn owner(&mut self, line: &RecordedLine, agent: &str) -> Option<Option<String>> {
        let (uuid, names) = (string(&line.object, "uuid"), fingerprints(line));
        let mut copies = names.iter().flat_map(|[copies, _]| copies).chain(&uuid);
        let known = copies.find_map(|name| self.0.get(name).cloned());
        if let Some(owner) = known.filter(|owner| owner.as_deref() != Some(agent)) {
            return Some(owner);
        }
        // Subagents may be told the same at the same time.
        let reply = names.filter(|_| str_of(&line.object, "type") == Some("assistant"));
        let own = reply.into_iter().flat_map(|[_, own]| own);
        self.0.extend(uuid.into_iter().chain(own).map(|name| (name, Some(agent.to_string()))));
        None
    }
}

/// Returns what identifies a message apart from its id, its content with its reply or its time: names
/// that copies of it have, and its own names. Copies may lack the request of a reply.
fn fingerprints(line: &RecordedLine) -> Option<[[String; 2]; 2]> {
    let o = &line.object;
    let message = object_of(o, "message")?;
    let (id, content) = (str_of(message, "id").unwrap_or_default(), content_of(message));
    let time = str_of(o, "timestamp");
    let bare = format!("{id} {} {content:x}", time.unwrap_or_default());
    let named = format!("{bare} with a request");
    match str_of(o, "requestId").filter(|_| !id.is_empty()) {
        Some(request) => {
            let whole = format!("{id} {request} {content:x}");
            Some([[whole.clone(), bare], [whole, named]])
        }
        None => time.map(|_| [[bare.clone(), named], [bare.clone(), bare]]),
    }
}

/// Returns the subagent of a sidechain line: its id, or the first line of its chain if it has no
/// id.
fn sidechain(object: &Map<String, Value>, roots: &mut HashMap<String, String>) -> String {
    let uuid = str_of(object, "uuid").unwrap_or_default();
    let root = str_of(object, "parentUuid")
        .and_then(|p| roots.get(p).cloned())
        .unwrap_or_else(|| format!("side-{uuid}"));
    roots.insert(uuid.to_string(), root.clone());
    str_of(object, "agentId").map_or(root, str::to_string)
}

#[cfg(test)]
mod tests {
    use super::super::super::lines::of_text;
    use super::*;

    fn agents(text: &str) -> (Vec<usize>, Vec<(String, Vec<usize>)>) {
        let found = split(of_text(text));
        let (mut main, mut agents) = (Vec::new(), Vec::<(String, Vec<usize>)>::new());
        for s in &found.lines {
            let Some(id) = &s.agent else {
                main.push(s.line.number);
                continue;
            };
            match agents.iter_mut().find(|(agent, _)| agent == id) {
                Some((_, lines)) => lines.push(s.line.number),
                None => agents.push((id.clone(), vec![s.line.number])),
            }
        }
        (main, agents)
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
        assert_eq!(
            found,
            [("side-2".to_string(), vec![2, 4]), ("side-3".into(), vec![3]), ("x".into(), vec![5])]
        );
    }
}
