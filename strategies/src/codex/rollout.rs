//! A Codex session on disk: reads a rollout as a history.
//!
//! Only this module handles ghost snapshots (docs/sources/codex.md §1.4): the old versions commit
//! the working tree and keep the commit as an item of the history. Prompts do not contain it, so no
//! request depends on it. A compaction moves those items after the summary, where a resume must
//! find them.
//! 0.169 drops them.

use ctxbench_kit::rollout::{ResumedSession, Rollout, RolloutItem};

use super::rules::Release;
use super::rules::retained_user_messages;

/// Reads the history from which a version continues after a resume. `context` is shown again after
/// a compaction without a replacement. `is_summary` distinguishes a summary from a user message.
pub fn resume(
    release: Release,
    rollout: &Rollout,
    context: &[RolloutItem],
    is_summary: impl Fn(&str) -> bool,
    budget: u64,
) -> ResumedSession<RolloutItem> {
    let mut out = rollout
        .resume(|before, summary| rebuilt(release, context, before, summary, &is_summary, budget));
    if release == Release::V169 {
        out.items.retain(RolloutItem::in_prompt);
    }
    out
}

/// Repeats a compaction of the old versions (docs/sources/codex.md §4): context, user messages
/// within the budget, summary, and the earlier ghost snapshots.
fn rebuilt(
    release: Release,
    context: &[RolloutItem],
    before: &[RolloutItem],
    summary: &RolloutItem,
    is_summary: &dyn Fn(&str) -> bool,
    budget: u64,
) -> Vec<RolloutItem> {
    let texts: Vec<String> = before
        .iter()
        .filter(|i| i.is_user())
        .filter_map(RolloutItem::text)
        .filter(|t| !is_summary(t))
        .collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let users = retained_user_messages(release, &texts, budget)
        .into_iter()
        .map(|(_, parts)| RolloutItem::message("user", parts));
    let ghosts = before.iter().filter(|i| !i.in_prompt()).cloned();
    context.iter().cloned().chain(users).chain([summary.clone()]).chain(ghosts).collect()
}

/// Returns the items of a history that a prompt shows.
pub fn prompt(items: &[RolloutItem]) -> Vec<RolloutItem> {
    items.iter().filter(|i| i.in_prompt()).cloned().collect()
}

#[cfg(test)]
mod tests {
    use ctxbench_kit::rollout::{Compacted, Payload};

    use super::*;

    fn is_summary(text: &str) -> bool {
        text.starts_with("P\n")
    }

    fn user(text: &str) -> RolloutItem {
        RolloutItem::message("user", [text.to_string()])
    }

    fn ghost(id: &str) -> RolloutItem {
        RolloutItem::GhostSnapshot { ghost_commit: id.into() }
    }

    fn rollout(payloads: Vec<Payload>) -> Rollout {
        use ctxbench_kit::rollout::RolloutLine;
        let line = |payload| RolloutLine { timestamp: String::new(), ordinal: None, payload };
        Rollout { lines: payloads.into_iter().map(line).collect(), unreadable: Vec::new() }
    }

    fn session() -> Rollout {
        let said = |i: RolloutItem| Payload::ResponseItem(i);
        let compacted =
            |m: &str| Payload::Compacted(Compacted { message: m.into(), ..Compacted::default() });
        let context =
            RolloutItem::message("user", ["<environment_context>old</environment_context>".into()]);
        rollout(vec![
            said(context),
            said(ghost("g1")),
            said(user("U1")),
            said(RolloutItem::message("assistant", ["r1".into()])),
            compacted("P\nS1"),
            said(ghost("g2")),
            said(user("U2")),
            compacted("P\nS2"),
            said(user("U3")),
        ])
    }

    #[test]
    fn an_old_rollout_is_compacted_again_and_keeps_its_ghosts() {
        let context = [RolloutItem::message(
            "user",
            ["<environment_context>new</environment_context>".into()],
        )];
        let resumed = resume(Release::V104, &session(), &context, is_summary, 20_000).items;
        let expected = [
            context[0].clone(),
            user("U1"),
            user("U2"),
            user("P\nS2"),
            ghost("g1"),
            ghost("g2"),
            user("U3"),
        ];
        assert_eq!(resumed, expected);
        let shown = [context[0].clone(), user("U1"), user("U2"), user("P\nS2"), user("U3")];
        assert_eq!(prompt(&resumed), shown);
    }

    #[test]
    fn ghosts_in_a_stored_replacement_stay_before_0_169() {
        let history = vec![user("U1"), user("P\nS"), ghost("g")];
        let compacted =
            Compacted { message: "P\nS".into(), replacement_history: Some(history.clone()) };
        let file = rollout(vec![Payload::Compacted(compacted), Payload::ResponseItem(user("U2"))]);
        let of = |release| resume(release, &file, &[], is_summary, 20_000).items;
        assert_eq!(of(Release::V063), [&history[..], &[user("U2")]].concat());
        assert_eq!(of(Release::V169), [&history[..2], &[user("U2")]].concat());
    }

    #[test]
    fn a_rebuilt_history_cuts_as_the_compaction_did() {
        // docs/sources/codex.md §1.4: 80,000 bytes use up 20,000 tokens, so the older message is
        // dropped.
        let big = "y".repeat(80_000);
        let said = |t: &str| Payload::ResponseItem(user(t));
        let file = rollout(vec![
            said("OLD"),
            said(&big),
            Payload::Compacted(Compacted { message: "P\nS".into(), ..Compacted::default() }),
        ]);
        assert_eq!(
            resume(Release::V063, &file, &[], is_summary, 20_000).items,
            [user(&big), user("P\nS")]
        );
    }
}
