//! Sessions of any length.

use std::sync::Arc;

use ctxbench_core::block::{Block, BlockKind, CallRef, Draft, MessageId, Role};
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

struct SampleTurn {
    question: String,
    thought: String,
    arguments: String,
    output: String,
    answer: String,
}

/// Generates the texts of one turn. Outputs alternate between source code and JSON.
fn turn(n: usize, seed: u64) -> SampleTurn {
    let own = seed.wrapping_mul(1_000_003).wrapping_add(n as u64);
    let output = if n.is_multiple_of(2) { Material::Code } else { Material::Json };
    SampleTurn {
        question: Material::Prose.text(QUESTION, own),
        thought: Material::Prose.text(THOUGHT, own ^ 1 << 40),
        arguments: format!(r#"{{"path":"src/file_{n}_{seed}.ts","offset":1,"limit":400}}"#),
        output: output.text(OUTPUT, own),
        answer: Material::Prose.text(ANSWER, own ^ 1 << 41),
    }
}

/// Number of turns between the turn in which a fact arises and the turn that needs it.
const LATER: usize = 8;

/// Generates a session of `turns` turns, each with a question, a call with its result, and an
/// answer. The texts depend on the seed. A fact arises in each turn and is needed eight turns later,
/// so the number of facts grows with the length.
pub fn session(turns: usize, seed: u64) -> Scenario {
    let reply = |id: String, text: String, calls: Vec<ToolCall>| {
        let text = Some(text.into());
        Entry::Assistant(AssistantEntry { id, text, calls, ..Default::default() })
    };
    let system = Material::Prose.text(4_000, seed ^ 1 << 42);
    let mut entries = vec![Entry::System { text: system, agent: None }];
    let mut facts = Vec::new();
    for n in 0..turns {
        let t = turn(n, seed);
        let row = format!("ROW-{seed}-{n}");
        let text = Some(format!("{} It is about {row}.", t.question).into());
        let call = ToolCall::new(format!("c{n}"), "read_file", t.arguments);
        let (call_id, output) = (format!("c{n}"), Some(t.output.into()));
        entries.extend([
            Entry::User(UserEntry { id: format!("u{n}"), text, ..Default::default() }),
            reply(format!("a{n}"), t.thought, vec![call]),
            Entry::Tool(ToolEntry { call_id, output, ..Default::default() }),
            reply(format!("b{n}"), t.answer, vec![]),
        ]);
        let needs = vec![format!("b{}", (n + LATER).min(turns - 1))];
        let fact = Fact::new(format!("row{n}"), FactKind::Value, row, format!("u{n}"));
        facts.push(Fact { needs, ..fact });
    }
    let id = format!("{turns}-turns");
    let header = Header { version: 1, id: id.clone(), ..Default::default() };
    Scenario { id, scale: 1.0, session: Session { header, entries, facts }, ..Default::default() }
}

/// Returns the blocks of the turns `from..to` of such a session, as in a context.
pub fn blocks(from: usize, to: usize, seed: u64) -> Vec<Arc<Block>> {
    let mut out = Vec::new();
    for n in from..to {
        let t = turn(n, seed);
        let call = Some(Arc::new(CallRef { id: format!("c{n}").into(), name: "read_file".into() }));
        let of_call = |draft: Draft| Draft { call: call.clone(), ..draft };
        let drafts = [
            (0, Draft::text(BlockKind::User, Role::User, t.question)),
            (1, Draft::text(BlockKind::Assistant, Role::Assistant, t.thought)),
            (1, of_call(Draft::text(BlockKind::Call, Role::Assistant, t.arguments))),
            (2, of_call(Draft::text(BlockKind::Output, Role::Tool, t.output))),
            (3, Draft::text(BlockKind::Assistant, Role::Assistant, t.answer)),
        ];
        let id = |i: usize| MessageId((4 * n + i) as u32);
        out.extend(drafts.map(|(message, draft)| draft.build(id(message), vec![])));
    }
    out
}

#[cfg(test)]
mod tests {
    use ctxbench_core::block::total_tokens;
    use ctxbench_core::model::Counting;
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

        let turns = blocks(0, 3, 7);
        assert_eq!(turns.len(), 15);
        let tokens: u64 = total_tokens(&Counting::O200K, &turns);
        assert!((2_000..4_500).contains(&tokens), "{tokens}");
    }
}
