//! Rules that every request must follow, checked on the blocks that the model would see.

use ctxbench_core::context::{Orphans, orphans};
use ctxbench_core::prelude::*;
use ctxbench_provider::wire::Wire;
use ctxbench_reports::record::Rule;

/// The beginning of the last request, in which every call has its result. The next request usually
/// begins in the same way.
#[derive(Default)]
pub(super) struct PairedPrefix(Vec<Arc<Block>>);

impl PairedPrefix {
    /// Finds calls and results without a partner after this prefix, and extends it.
    fn orphans_after(&mut self, blocks: &[Arc<Block>]) -> Orphans {
        let is_kept = self.0.len() <= blocks.len()
            && self.0.iter().zip(blocks).all(|(before, now)| Arc::ptr_eq(before, now));
        if !is_kept {
            self.0.clear();
        }
        let rest = &blocks[self.0.len()..];
        let lost = orphans(rest);
        if lost.results.is_empty() {
            let (mut open, mut paired) = (0_i64, 0);
            for (end, b) in (1..).zip(rest) {
                open += match b.kind {
                    BlockKind::Call if b.call.is_some() => 1,
                    BlockKind::Output if b.call.is_some() => -1,
                    _ => 0,
                };
                paired = if open == 0 { end } else { paired };
            }
            self.0.extend_from_slice(&rest[..paired]);
        }
        lost
    }
}

/// Returns the rules that a request on this wire breaks, with details.
pub(super) fn broken(
    wire: Wire,
    blocks: &[Arc<Block>],
    newest_user: Option<MessageId>,
    reasoning_in: impl Fn(MessageId) -> bool,
    before: &mut PairedPrefix,
) -> Vec<(Rule, String)> {
    let lost = before.orphans_after(blocks);
    let mut out = Vec::new();
    if let Some(id) = lost.results.first() {
        out.push((
            Rule::OrphanedResult,
            format!("the result of call `{id}` is shown without its call"),
        ));
    }
    if let Some(id) = lost.calls.first() {
        out.push((Rule::OrphanedCall, format!("call `{id}` is shown without its result")));
    }
    if let Some(user) = newest_user {
        let stands =
            |b: &Arc<Block>| b.message == user || b.origin.iter().any(|o| o.message == user);
        // Usually one of the last blocks matches.
        if !blocks.iter().rev().any(stands) {
            out.push((
                Rule::RequestDropped,
                format!("nothing shown stands for message {}", user.0),
            ));
        }
    }
    // A tool cycle is open while the request ends with results. The reasoning before the calls must
    // then still be present.
    let open: Vec<&Arc<Block>> = blocks
        .iter()
        .rev()
        .take_while(|b| matches!(b.kind, BlockKind::Output | BlockKind::Call))
        .collect();
    if let Some(call) = open.iter().find(|b| b.kind == BlockKind::Call) {
        let kept = |b: &Arc<Block>| b.kind == BlockKind::Reasoning && b.message == call.message;
        if reasoning_in(call.message) && !blocks.iter().rev().any(kept) {
            out.push((
                Rule::ReasoningRemoved,
                format!("message {} called tools after reasoning", call.message.0),
            ));
        }
    }
    // Some providers refuse prompts that begin with a message of the model.
    out.extend(wire.rules.begins_with_user.then(|| begins_with_model(blocks)).flatten());
    out
}

fn begins_with_model(blocks: &[Arc<Block>]) -> Option<(Rule, String)> {
    let stands_before = |r| matches!(r, Role::System | Role::Developer | Role::Instructions);
    let first = blocks.iter().find(|b| !stands_before(b.role))?;
    let model = first.role == Role::Assistant && first.kind != BlockKind::Compaction;
    let what = || format!("the conversation begins with a message of the model ({:?})", first.kind);
    model.then(|| (Rule::Roles, what()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctxbench_core::block::{CallRef, Draft};
    use ctxbench_provider::wire;

    fn block(kind: BlockKind, role: Role, message: u32, call: Option<&str>) -> Arc<Block> {
        let mut d = Draft::text(kind, role, "x");
        d.call = call.map(|id| Arc::new(CallRef { id: id.into(), name: "t".into() }));
        d.build(MessageId(message), vec![])
    }

    fn rules(blocks: &[Arc<Block>], user: Option<u32>) -> Vec<Rule> {
        rules_of("anthropic-messages", blocks, user)
    }

    fn rules_of(wire: &str, blocks: &[Arc<Block>], user: Option<u32>) -> Vec<Rule> {
        let wire = wire::find(wire).unwrap();
        let reasoned = |m| m == MessageId(1);
        let broken = broken(wire, blocks, user.map(MessageId), reasoned, &mut Default::default());
        broken.into_iter().map(|(r, _)| r).collect()
    }

    #[test]
    fn each_rule_fires() {
        let user = block(BlockKind::User, Role::User, 0, None);
        let call = block(BlockKind::Call, Role::Assistant, 1, Some("c"));
        let out = block(BlockKind::Output, Role::Tool, 2, Some("c"));
        let think = block(BlockKind::Reasoning, Role::Assistant, 1, None);
        assert!(rules(&[user.clone(), think, call.clone(), out.clone()], Some(0)).is_empty());
        assert_eq!(
            rules(&[user.clone(), call.clone(), out.clone()], Some(0)),
            [Rule::ReasoningRemoved]
        );
        assert_eq!(rules(&[user.clone(), out.clone()], Some(0)), [Rule::OrphanedResult]);
        assert_eq!(
            rules(
                &[user.clone(), call.clone(), block(BlockKind::User, Role::User, 3, None)],
                Some(3)
            ),
            [Rule::OrphanedCall]
        );
        assert_eq!(
            rules(&[block(BlockKind::Assistant, Role::Assistant, 4, None)], None),
            [Rule::Roles]
        );
        assert_eq!(rules(&[user], Some(9)), [Rule::RequestDropped]);
    }

    #[test]
    fn a_request_after_another_is_judged_like_one_alone() {
        let call = |id| block(BlockKind::Call, Role::Assistant, 1, Some(id));
        let out = |id| block(BlockKind::Output, Role::Tool, 2, Some(id));
        let user = block(BlockKind::User, Role::User, 0, None);
        let first = [user.clone(), call("a"), call("b"), out("a"), out("b"), call("c")];
        let with = |own: &[Arc<Block>]| [&first[..], own].concat();
        for next in [
            with(&[out("c"), user.clone()]),
            with(std::slice::from_ref(&user)),
            with(&[out("c"), out("a")]),
            with(&[out("c"), call("a"), user.clone()]),
            first[..4].to_vec(),
            [&first[..2], &first[3..4], std::slice::from_ref(&user)].concat(),
            [&first[..4], std::slice::from_ref(&user)].concat(),
            vec![out("b"), user],
        ] {
            let mut before = PairedPrefix::default();
            before.orphans_after(&first);
            assert_eq!(before.0.len(), 5, "the last call is open");
            assert_eq!(before.orphans_after(&next), orphans(&next));
        }
    }

    #[test]
    fn some_providers_take_what_begins_with_the_model() {
        let said = [block(BlockKind::Assistant, Role::Assistant, 4, None)];
        let refused = |wire| rules_of(wire, &said, None) == [Rule::Roles];
        assert!(refused("anthropic-messages") && refused("gemini"));
        assert!(!refused("openai-responses") && !refused("openai-chat"));
    }
}
