//! Calls and results that a provider refuses because their partner is missing
//! (docs/sources/failure-modes.md §6, failure 7).

use ctxbench_core::block::Role;
use ctxbench_core::model::Model;
use ctxbench_core::request::ModelError;
use ctxbench_provider::wire::{ResultsDue, Wire};
use ctxbench_provider::{Content, Item, Prompt};

/// Refuses a conversation with a call or a result that has no partner, at the time when the wire
/// wants results. Messages before the last compaction block are not checked where the provider
/// ignores them. A request for a compaction has its own codes.
pub(super) fn check(wire: Wire, model: &Model, prompt: &Prompt) -> Result<(), ModelError> {
    if prompt.asks_for_compaction() {
        return Ok(());
    }
    let due = wire.rules.results_due;
    let talk: Vec<&Item> = prompt.items.iter().filter(|i| i.message > 0).collect();
    let from = if model.capabilities.context_editing {
        talk.iter().rposition(|i| matches!(*i.content, Content::Compaction { .. })).unwrap_or(0)
    } else {
        0
    };
    let mut open: Vec<(&str, usize)> = Vec::new();
    for item in &talk[from..] {
        if due == ResultsDue::NextMessage
            && let Some((id, _)) = open.iter().find(|(_, at)| item.message > at + 1)
        {
            return refused(wire, true, id);
        }
        match &*item.content {
            Content::Call { id, .. } => open.push((id, item.message)),
            Content::Output { id, .. } => match open.iter().position(|(o, _)| **o == **id) {
                Some(at) => drop(open.remove(at)),
                None => return refused(wire, false, id),
            },
            // Chat wants the results at once, too: a user message between them is refused.
            _ if due == ResultsDue::BeforeUser && item.role == Role::User && !open.is_empty() => {
                return refused(wire, true, open[0].0);
            }
            _ => {}
        }
    }
    if let Some((id, _)) = open.first() {
        return refused(wire, true, id);
    }
    (wire.rules.refuses)(prompt).map_or(Ok(()), |message| Err(ModelError::invalid(message)))
}

fn refused(wire: Wire, call: bool, id: &str) -> Result<(), ModelError> {
    Err(ModelError::invalid((wire.api.unpaired_message)(call, id)))
}

#[cfg(test)]
mod tests {
    use super::*;

    use ctxbench_core::model::{Capabilities, catalogue};
    use ctxbench_provider::wire::{self, ALL};

    fn refuses(wire: &Wire, talk: &[(usize, Content)]) -> bool {
        let role = |c: &Content| match c {
            Content::Text(_) => Role::User,
            Content::Output { .. } => Role::Tool,
            _ => Role::Assistant,
        };
        let items = talk.iter().map(|(m, c)| Item::new(role(c), c.clone(), *m, None)).collect();
        let prompt = Prompt::new("m", items);
        // A wire that no model speaks yet has the rules that need no capability.
        let speaks = |m: &&Model| wire::for_model(m) == *wire;
        let model = catalogue().iter().find(speaks).cloned().unwrap_or_else(|| Model {
            capabilities: Capabilities::default(),
            ..catalogue()[0].clone()
        });
        check(wire, &model, &prompt).is_err()
    }

    #[test]
    fn a_call_or_a_result_that_stands_alone_is_refused_on_every_wire() {
        let call = || Content::Call { id: "a".into(), name: "t".into(), arguments: "{}".into() };
        let result =
            || Content::Output { id: "a".into(), text: "r".into(), is_error: false, image: None };
        let said = || Content::Text("u".into());
        let block = || Content::Compaction { text: "S".into(), opaque: None };
        for wire in ALL {
            assert!(!refuses(wire, &[(1, said()), (2, call()), (3, result())]), "{wire:?}");
            assert!(refuses(wire, &[(1, said()), (2, call())]), "{wire:?}");
            assert!(refuses(wire, &[(1, said()), (2, result())]), "{wire:?}");
            assert!(refuses(wire, &[(1, said()), (2, result()), (3, call())]), "{wire:?}");
            assert!(refuses(wire, &[(1, said()), (2, call()), (3, said())]), "{wire:?}");
        }
        const WIRES: [&str; 4] =
            ["anthropic-messages", "openai-responses", "openai-chat", "gemini"];
        let refused =
            |talk: &[(usize, Content)]| WIRES.map(|name| refuses(&wire::find(name).unwrap(), talk));
        let late = [(1, call()), (2, said()), (3, result())];
        assert_eq!(
            refused(&late),
            [true, false, true, true],
            "Responses accepts a result anywhere after its call"
        );
        let cut = [(1, call()), (2, block()), (3, said())];
        assert_eq!(
            refused(&cut),
            [false, true, true, true],
            "only Anthropic ignores messages before a compaction"
        );
    }
}
