//! Lines of a Claude Code transcript that belong to a subagent, the sidechain lines.
//!
//! Files of side questions and of requests for summaries begin with the lines of the session, and
//! copies of such files with each other's. A line that appears twice is taken once.

use std::collections::HashSet;

use super::line::{Line, TranscriptLine};
use crate::formats::prelude::*;
use rapidhash::RapidHashMap as HashMap;

pub(super) struct Conversations {
    /// Lines with the name of their subagent; without one in the main conversation.
    pub(super) lines: Vec<Line>,
    /// The file is the transcript of one subagent.
    pub(super) of_subagent: bool,
    /// Subagents that continue the main conversation.
    pub(super) asides: HashSet<String>,
}

impl Conversations {
    pub(super) fn windows(&self) -> Vec<Vec<&Line>> {
        let mut windows: HashMap<Option<&str>, Vec<&Line>> = HashMap::default();
        for line in &self.lines {
            let agent = line.object.agent_id.as_deref().filter(|_| !self.of_subagent);
            windows.entry(agent).or_default().push(line);
        }
        windows.into_values().collect()
    }
}

pub(super) fn split(mut lines: Vec<Line>) -> Conversations {
    let is_main = |l: &Line| l.object.is_message() && !l.object.is_sidechain;
    let of_subagent = !lines.iter().any(is_main);
    let mut standing = StandingLines::default();
    lines.retain(|line| !is_main(line) || !standing.add_main(&line.object));
    let mut asides = HashSet::new();
    let mut roots: HashMap<String, String> = HashMap::default();
    let mut out = Vec::new();
    for mut line in lines {
        if !line.object.is_sidechain {
            line.object.agent_id = None;
            out.push(line);
            continue;
        }
        let agent = sidechain(&line.object, &mut roots);
        match standing.owner(&line.object, &agent) {
            Some(None) => drop(asides.insert(agent)),
            Some(Some(_)) => {}
            None => {
                line.object.agent_id = Some(agent);
                out.push(line);
            }
        }
    }
    Conversations { lines: out, of_subagent, asides }
}

/// Hashes of what identifies the messages so far, each with its conversation.
#[derive(Default)]
struct StandingLines(HashMap<u64, Option<String>>);

impl StandingLines {
    /// Adds a message of the main conversation. Returns whether it is there already.
    fn add_main(&mut self, line: &TranscriptLine) -> bool {
        let (uuid, names) = (line.uuid.as_ref().map(hash_of), line.fingerprints());
        let copies = names.iter().flat_map(|[copies, _]| copies);
        let mut copies = copies.chain(uuid.as_ref().filter(|_| names.is_none()));
        let is_copy = copies.any(|name| self.0.contains_key(name));
        let own = names.into_iter().flat_map(|[_, own]| own);
        self.0.extend(uuid.into_iter().chain(own).map(|name| (name, None)));
        is_copy
    }

    /// Returns the other conversation that has a message of a subagent already, or adds the message.
    fn owner(&mut self, line: &TranscriptLine, agent: &str) -> Option<Option<String>> {
        let (uuid, names) = (line.uuid.as_ref().map(hash_of), line.fingerprints());
        let mut copies = names.iter().flat_map(|[copies, _]| copies).chain(&uuid);
        let known = copies.find_map(|name| self.0.get(name).cloned());
        if let Some(owner) = known.filter(|owner| owner.as_deref() != Some(agent)) {
            return Some(owner);
        }
        // Subagents may be told the same at the same time.
        let reply = names.filter(|_| line.kind() == "assistant");
        let own = reply.into_iter().flat_map(|[_, own]| own);
        self.0.extend(uuid.into_iter().chain(own).map(|name| (name, Some(agent.to_string()))));
        None
    }
}

/// Returns the subagent of a sidechain line: its id, or the first line of its chain if it has no
/// id.
fn sidechain(line: &TranscriptLine, roots: &mut HashMap<String, String>) -> String {
    let uuid = line.uuid.as_deref().unwrap_or_default();
    let root = line.parent_uuid.as_ref().and_then(|p| roots.get(p).cloned());
    let root = root.unwrap_or_else(|| format!("side-{uuid}"));
    roots.insert(uuid.to_string(), root.clone());
    line.agent_id.clone().unwrap_or(root)
}

#[cfg(test)]
mod tests {
    use super::super::super::lines::of_text;
    use super::*;

    fn agents(text: &str) -> (Vec<usize>, Vec<(String, Vec<usize>)>) {
        let found = split(of_text(text));
        let (mut main, mut agents) = (Vec::new(), Vec::<(String, Vec<usize>)>::new());
        for s in &found.lines {
            let Some(id) = &s.object.agent_id else {
                main.push(s.number);
                continue;
            };
            match agents.iter_mut().find(|(agent, _)| agent == id) {
                Some((_, lines)) => lines.push(s.number),
                None => agents.push((id.clone(), vec![s.number])),
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
