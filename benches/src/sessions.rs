//! Sessions of any length.

use ctxbench_core::content::ToolCall;
use ctxbench_scenarios::Scenario;
use ctxbench_session::fact::{Fact, FactKind};
use ctxbench_session::{AssistantEntry, Entry, Header, Session, ToolEntry, UserEntry};

use crate::Material;

/// Sizes of a turn's texts in bytes: question, text before the call, tool output, answer. A turn
/// has about 900 tokens.
const QUESTION: usize = 300;
const THOUGHT: usize = 200;
const OUTPUT: usize = 2_400;
const ANSWER: usize = 500;

/// Number of turns between the turn in which a fact arises and the turn that needs it.
const LATER: usize = 8;

/// Generates a session of `turns` turns, each with a question, a call with its result, and an
/// answer. The texts depend on the seed. A fact arises in each turn and is needed eight turns later,
/// so the number of facts grows with the length. Outputs alternate between source code and JSON.
pub fn session(turns: usize, seed: u64) -> Scenario {
    let system = Material::Prose.text(4_000, seed ^ 1 << 42);
    let mut entries = vec![Entry::System { text: system, agent: None }];
    let mut facts = Vec::new();
    for n in 0..turns {
        let own = seed.wrapping_mul(1_000_003).wrapping_add(n as u64);
        let output = if n.is_multiple_of(2) { Material::Code } else { Material::Json };
        let row = format!("ROW-{seed}-{n}");
        let text = format!("{} It is about {row}.", Material::Prose.text(QUESTION, own));
        let arguments = format!(r#"{{"path":"src/file_{n}_{seed}.ts","offset":1,"limit":400}}"#);
        let call = ToolCall::new(format!("c{n}"), "read_file", arguments);
        entries.extend([
            user(n, text),
            reply(format!("a{n}"), Material::Prose.text(THOUGHT, own ^ 1 << 40), vec![call]),
            result(n, output.text(OUTPUT, own)),
            reply(format!("b{n}"), Material::Prose.text(ANSWER, own ^ 1 << 41), vec![]),
        ]);
        facts.push(fact(n, row, n, format!("b{}", (n + LATER).min(turns - 1))));
    }
    scenario(format!("{turns}-turns"), entries, facts)
}

fn user(n: usize, text: String) -> Entry {
    Entry::User(UserEntry { id: format!("u{n}"), text: Some(text.into()), ..Default::default() })
}

fn reply(id: String, text: String, calls: Vec<ToolCall>) -> Entry {
    let text = Some(text.into());
    Entry::Assistant(AssistantEntry { id, text, calls, ..Default::default() })
}

fn result(n: usize, output: String) -> Entry {
    let (call_id, output) = (format!("c{n}"), Some(output.into()));
    Entry::Tool(ToolEntry { call_id, output, ..Default::default() })
}

fn fact(n: usize, value: String, user: usize, need: String) -> Fact {
    let fact = Fact::new(format!("row{n}"), FactKind::Value, value, format!("u{user}"));
    Fact { needs: vec![need], ..fact }
}

fn scenario(id: String, entries: Vec<Entry>, facts: Vec<Fact>) -> Scenario {
    let header = Header { version: 1, id: id.clone(), ..Default::default() };
    Scenario { id, scale: 1.0, session: Session { header, entries, facts }, ..Default::default() }
}

/// Something that a session has many times, with short texts around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeated {
    /// `/compact` after each turn.
    Compactions,
    /// Calls in one message.
    Calls,
    /// Rewinds of every second turn.
    Rewinds,
    /// Facts of one message.
    Facts,
}

impl Repeated {
    pub const ALL: [Repeated; 4] =
        [Repeated::Compactions, Repeated::Calls, Repeated::Rewinds, Repeated::Facts];

    /// Generates a session that has it this many times.
    pub fn session(self, times: usize) -> Scenario {
        let text = |n: usize| Material::Prose.text(60, n as u64);
        let turn = |n: usize| [user(n, text(n)), reply(format!("a{n}"), text(n), vec![])];
        let all = || 0..times;
        let mut facts = Vec::new();
        let entries = match self {
            Repeated::Compactions => {
                let compact = || Entry::Compact { instructions: None, at: None };
                all().flat_map(|n| turn(n).into_iter().chain([compact()])).collect()
            }
            Repeated::Calls => {
                let call =
                    |n| ToolCall::new(format!("c{n}"), "read_file", format!("{{\"n\":{n}}}"));
                let calls = reply("calls".into(), text(0), all().map(call).collect());
                let results = all().map(|n| result(n, text(n)));
                [user(0, text(0)), calls].into_iter().chain(results).chain(turn(1)).collect()
            }
            Repeated::Rewinds => {
                let rewind = |n| Entry::Rewind {
                    to: format!("a{n}"),
                    mode: Default::default(),
                    instructions: None,
                };
                let back = |n| turn(n).into_iter().chain(turn(times + n)).chain([rewind(n)]);
                all().flat_map(back).collect()
            }
            Repeated::Facts => {
                let values: Vec<String> = all().map(|n| format!("ROW-{n}-END")).collect();
                let said = values.join(" ");
                let values = values.into_iter().enumerate();
                facts.extend(values.map(|(n, value)| fact(n, value, 0, "a1".into())));
                [user(0, said), reply("a0".into(), text(0), vec![])]
                    .into_iter()
                    .chain(turn(1))
                    .collect()
            }
        };
        scenario(format!("{times}-{self:?}").to_lowercase(), entries, facts)
    }
}

#[cfg(test)]
mod tests {
    use ctxbench_scenarios::jsonl;

    use super::*;

    #[test]
    fn sessions_are_sound_and_differ_by_seed() {
        let s = session(3, 7);
        let read = jsonl::read(s.session.to_jsonl().unwrap().as_bytes(), "x").unwrap();
        assert_eq!(read.warnings, Vec::<String>::new());
        assert_eq!(read.session, s.session);
        assert_eq!(s.session, session(3, 7).session);
        assert_ne!(s.session.entries[1], session(3, 8).session.entries[1]);
        assert_eq!(s.session.facts.len(), 3);

        for s in Repeated::ALL.map(|repeated| repeated.session(3)) {
            let read = jsonl::read(s.session.to_jsonl().unwrap().as_bytes(), "x").unwrap();
            assert_eq!((read.warnings, read.session), (Vec::new(), s.session), "{}", s.id);
        }
    }
}
