//! A Codex session on disk: writes the strategy's log as lines of a rollout, and reads a rollout as
//! a history.
//!
//! Only this module handles ghost snapshots (docs/sources/codex.md §1.4): the old versions commit
//! the working tree and keep the commit as an item of the history. Prompts do not contain it, so no
//! request depends on it. A compaction moves those items after the summary, where a resume must
//! find them.
//! 0.169 drops them.

use std::sync::Arc;

use ctxbench_core::block::{Block, BlockKind, Role};
use ctxbench_kit::rollout::{
    Compacted, Counters, ItemContent, Payload, Record, ResumedSession, Rollout, RolloutEvent,
    RolloutItem, TokenCount, TokenInfo,
};
use serde_json::Value;

use crate::codex::count::{Release, item_groups};
use crate::codex::cut::retained_user_messages;

/// Returns the lines of a session. The base instructions are in the first line of the file and are
/// not an item.
pub fn lines(log: &[Record<Arc<Block>>]) -> Vec<Payload> {
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(record) = log.get(at) {
        at += 1;
        match record {
            Record::TurnStarted => out.push(Payload::EventMsg(RolloutEvent::TaskStarted {
                model_context_window: Value::Null,
            })),
            Record::RolledBack { turns } => {
                out.push(Payload::EventMsg(RolloutEvent::ThreadRolledBack { num_turns: *turns }));
            }
            Record::Counted(count) => {
                let session = Counters { total_tokens: count.session, ..Counters::default() };
                let info = TokenInfo { total_token_usage: session, ..TokenInfo::default() };
                let count = TokenCount::estimate(&info, count.last);
                out.push(Payload::EventMsg(RolloutEvent::TokenCount(count)));
            }
            Record::Compacted { summary, replacement } => out.push(Payload::Compacted(Compacted {
                message: summary.text.to_string(),
                replacement_history: replacement.as_ref().map(|blocks| items(blocks)),
            })),
            Record::Item { item, .. } => {
                // Consecutive blocks of one message form one line.
                let mut blocks = vec![item.clone()];
                while let Some(Record::Item { item, .. }) = log.get(at) {
                    blocks.push(item.clone());
                    at += 1;
                }
                out.extend(items(&blocks).into_iter().map(Payload::ResponseItem));
            }
        }
    }
    out
}

/// Converts blocks to items of the Responses API, without the base.
pub fn items(blocks: &[Arc<Block>]) -> Vec<RolloutItem> {
    item_groups(blocks).filter(|g| g[0].kind != BlockKind::Base).map(item).collect()
}

fn item(group: &[Arc<Block>]) -> RolloutItem {
    let b = &group[0];
    let text = b.text.to_string();
    let (name, call_id) =
        b.call.as_ref().map(|c| (c.name.to_string(), c.id.to_string())).unwrap_or_default();
    match b.kind {
        BlockKind::Reasoning => RolloutItem::Reasoning {
            encrypted_content: b.opaque.as_ref().map(|o| o.to_string()),
            summary: Value::Null,
        },
        BlockKind::Call => RolloutItem::FunctionCall { name, arguments: text, call_id },
        BlockKind::Output => RolloutItem::FunctionCallOutput { call_id, output: text.into() },
        BlockKind::Compaction => RolloutItem::Compaction {
            encrypted_content: b.opaque.as_ref().map_or(text, |o| o.to_string()),
        },
        _ => {
            let role = match b.role {
                Role::Assistant => "assistant",
                Role::Developer => "developer",
                Role::System | Role::Instructions => "system",
                Role::User | Role::Tool => "user",
            };
            let mut out = RolloutItem::message(role, []);
            if let RolloutItem::Message { content, .. } = &mut out {
                *content = group.iter().flat_map(|b| parts(b)).collect();
            }
            out
        }
    }
}

fn parts(b: &Block) -> Vec<ItemContent> {
    if let Some(m) = &b.media {
        return vec![ItemContent::image(&m.url)];
    }
    let part = |text: &str| {
        let text = text.to_string();
        if b.role == Role::Assistant {
            ItemContent::OutputText { text }
        } else {
            ItemContent::InputText { text }
        }
    };
    b.parts().map(part).collect()
}

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

    /// Writes a rollout to a file and reads it again.
    fn stored(payloads: Vec<Payload>) -> Rollout {
        use ctxbench_kit::rollout::{SessionMeta, Writer};
        let home =
            std::env::temp_dir().join(format!("ctxbench-codex-rollout-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&home);
        let meta = SessionMeta { id: "s".into(), cli_version: "0.169.0".into() };
        let mut file = Writer::create(&home, meta, 0).unwrap();
        for p in payloads {
            file.append(p, 0).unwrap();
        }
        let read = Rollout::read(file.path()).unwrap();
        std::fs::remove_dir_all(&home).unwrap();
        read
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

    #[test]
    fn a_session_in_memory_and_its_file_go_on_alike() {
        use ctxbench_core::block::{CallRef, Draft, Media, MessageId};
        use ctxbench_kit::rollout::{TokenTotals, reconstruct};
        let block = |kind, role, message: u32, text: &str| {
            Draft::text(kind, role, text).build(MessageId(message), vec![])
        };
        let call = |kind, role, id: &str| {
            let call = Some(Arc::new(CallRef { id: id.into(), name: "exec".into() }));
            Draft { call, ..Draft::text(kind, role, "{}") }.build(MessageId(7), vec![])
        };
        let image = Some(Arc::new(Media {
            media_type: "image/png".into(),
            url: "data:x".into(),
            name: None,
        }));
        let image = Draft { media: image, ..Draft::text(BlockKind::Image, Role::User, "") }
            .build(MessageId(1), vec![]);
        let thought = Draft {
            opaque: Some("QUJD".into()),
            ..Draft::text(BlockKind::Reasoning, Role::Assistant, "")
        };
        let (base, context) = (
            block(BlockKind::Base, Role::Developer, 0, "B"),
            block(BlockKind::Context, Role::Developer, 0, "C"),
        );
        let (first, second) = (
            block(BlockKind::User, Role::User, 1, "U1"),
            block(BlockKind::User, Role::User, 9, "U2"),
        );
        let summary = block(BlockKind::Summary, Role::User, 8, "P\nS");
        let says = |item: &Arc<Block>, user| Record::Item { item: item.clone(), user };
        let replacement =
            vec![base.clone(), context.clone(), first.clone(), image.clone(), summary.clone()];
        let mut log = vec![
            says(&base, false),
            says(&context, false),
            Record::TurnStarted,
            says(&first, true),
            says(&image, true),
        ];
        log.push(Record::Counted(TokenTotals { last: 5_250, session: 5_250 }));
        log.extend(
            [
                thought.build(MessageId(6), vec![]),
                call(BlockKind::Call, Role::Assistant, "c"),
                call(BlockKind::Output, Role::Tool, "c"),
            ]
            .map(|b| says(&b, false)),
        );
        log.extend([
            Record::TurnStarted,
            Record::Compacted { summary, replacement: Some(replacement) },
            Record::Counted(TokenTotals { last: 6_030, session: 10_500 }),
        ]);
        log.push(says(&second, true));
        for expected in [vec!["C", "U1", "P\nS", "U2"], vec!["C", "U1"]] {
            let in_memory = reconstruct(&log, |before, _| before.to_vec());
            let from_file = resume(Release::V169, &stored(lines(&log)), &[], is_summary, 20_000);
            assert_eq!(from_file.items, items(&in_memory.items));
            assert_eq!(from_file.counted, in_memory.counted);
            assert_eq!(
                from_file.items.iter().filter_map(RolloutItem::text).collect::<Vec<_>>(),
                expected
            );
            log.push(Record::RolledBack { turns: 1 });
        }
    }
}
