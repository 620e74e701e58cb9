//! Calls and results that a provider refuses because their partner is missing
//! (docs/sources/failure-modes.md §6, failure 7).

use ctxbench_core::{BlockKind, Model, ModelError, Role};
use ctxbench_provider::wire::{ResultsDue, Wire};
use ctxbench_provider::{Item, Prompt};

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
        talk.iter().rposition(|i| i.kind == BlockKind::Compaction).unwrap_or(0)
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
        match (item.kind, item.call_id()) {
            (BlockKind::Call, Some(id)) => open.push((id, item.message)),
            (BlockKind::Output, Some(id)) => match open.iter().position(|(o, _)| *o == id) {
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

    use crate::rules::tests::prompt;
    use ctxbench_core::model::catalogue;
    use ctxbench_provider::wire;

    /// Wires in the order of the expected refusals.
    const WIRES: [&str; 4] = ["anthropic-messages", "openai-responses", "openai-chat", "gemini"];

    /// Returns whether a wire refuses a conversation by letters.
    fn refuses(wire: &str, talk: &str) -> bool {
        let model = catalogue().iter().find(|m| *m.wire == *wire).unwrap();
        check(wire::find(wire).unwrap(), model, &prompt(talk, vec![])).is_err()
    }

    #[test]
    fn a_call_or_a_result_that_stands_alone_is_refused_on_every_wire() {
        assert!(wire::ALL.iter().all(|wire| WIRES.contains(&wire.name)));
        for (talk, refused) in [
            ("ucr", [false; 4]),
            ("uc", [true; 4]),
            ("ur", [true; 4]),
            ("urc", [true; 4]),
            ("ucu", [true; 4]),
            // Responses accepts a result anywhere after its call.
            ("cur", [true, false, true, true]),
            // Only Anthropic ignores messages before a compaction.
            ("cSu", [false, true, true, true]),
        ] {
            assert_eq!(WIRES.map(|wire| refuses(wire, talk)), refused, "{talk}");
        }
    }
}
