//! Threads, server-side compaction and clearing at the provider, by hand calculation from the
//! facts.

use std::sync::Arc;

use ctxbench_core::block::{Block, BlockKind, CallRef, Draft, MessageId, Role};
use ctxbench_core::content::Part;
use ctxbench_core::model::{Counting, Model, find};
use ctxbench_core::request::{
    ClearInputs, ClearTrigger, ModelError, Purpose, Reply, Request, ServerEdit, StopReason, Thread,
    Tools, Ttl, Usage,
};
use ctxbench_core::tokens::Size;
use ctxbench_provider::Prompt;

use super::{PlannedReply, ProviderModel, ProviderOptions};
use crate::summarise::Summariser;

/// At this scale the window of claude-sonnet-4-6 is 2,000 tokens and the smallest compaction
/// trigger 500.
const SCALE: f64 = 0.01;

fn provider() -> ProviderModel {
    ProviderModel::new(ProviderOptions {
        model: Arc::new(Model {
            counting: Counting::O200K,
            ..find("claude-sonnet-4-6").unwrap().scaled(SCALE)
        }),
        unlimited: false,
        summariser: Summariser::Extractive,
        facts: Arc::from(vec![]),
        seed: 1,
        scale: SCALE,
        desk: Default::default(),
    })
}

fn block(message: u32, kind: BlockKind, role: Role, text: &str) -> Arc<Block> {
    let call = matches!(kind, BlockKind::Call | BlockKind::Output)
        .then(|| Arc::new(CallRef { id: "a".into(), name: "read".into() }));
    Draft { call, ..Draft::text(kind, role, text) }.build(MessageId(message), vec![])
}

fn request(blocks: Vec<Arc<Block>>) -> Request {
    Request {
        purpose: Purpose::Sample,
        phase: None,
        model: Arc::new(Model {
            counting: Counting::O200K,
            ..find("claude-sonnet-4-6").unwrap().clone()
        }),
        max_tokens: None,
        tools: Tools::new(&[serde_json::json!({"name": "read"})]),
        breakpoints: vec![],
        blocks,
        ttl: Ttl::FiveMinutes,
        server_edits: vec![],
        keep_messages: false,
        params: Default::default(),
        thread: None,
    }
}

fn say(parts: Vec<Part>) -> PlannedReply {
    PlannedReply::Say { parts, stop: StopReason::EndTurn }
}

fn text(t: &str) -> Part {
    Part::Text(t.into())
}

fn ask(p: &mut ProviderModel, r: &Request, plan: PlannedReply) -> Result<Reply, ModelError> {
    p.answer(Prompt::of(p.wire(), r), plan, 0)
}

#[test]
fn a_continued_thread_is_billed_as_the_whole_conversation() {
    let base = block(0, BlockKind::Base, Role::System, "base");
    let mut r = request(vec![base, block(1, BlockKind::User, Role::User, "look at it")]);
    let mut p = provider();
    r.thread = Some(Thread::Create);
    let first = ask(&mut p, &r, say(vec![text("done")])).unwrap();
    assert_eq!(first.id.as_deref(), Some("msg_0000"));
    r.blocks.extend([
        block(2, BlockKind::Assistant, Role::Assistant, "done"),
        block(3, BlockKind::User, Role::User, "and now?"),
    ]);
    r.thread = Some(Thread::Continue { after: "msg_0000".into(), held: 3 });
    let second = ask(&mut p, &r, say(vec![text("that")])).unwrap();
    assert_eq!(second.usage.prompt(), r.tokens());
    assert_eq!(second.id.as_deref(), Some("msg_0001"));
    // Who never saw the reply sends the same again; it costs what it cost, most of it from the
    // cache by now.
    let again = ask(&mut p, &r, say(vec![text("that")])).unwrap();
    assert_eq!((again.usage.prompt(), again.id.as_deref()), (r.tokens(), Some("msg_0002")));
    // But a thread goes on from its last reply only.
    *r.blocks.last_mut().unwrap() = block(3, BlockKind::User, Role::User, "and then?");
    let lost = ask(&mut p, &r, say(vec![])).unwrap_err();
    assert_eq!((lost.status, lost.code.as_deref()), (404, Some("thread_not_found")));
}

#[test]
fn a_thread_overflows_as_the_whole_conversation_does() {
    let mut r = request(vec![block(1, BlockKind::User, Role::User, &"word ".repeat(1_990))]);
    r.tools = None;
    r.thread = Some(Thread::Create);
    let mut p = provider();
    ask(&mut p, &r, say(vec![text("done")])).unwrap();
    r.blocks.extend([
        block(2, BlockKind::Assistant, Role::Assistant, "done"),
        block(3, BlockKind::User, Role::User, "more"),
    ]);
    r.thread = Some(Thread::Continue { after: "msg_0000".into(), held: 2 });
    assert!(ask(&mut p, &r, say(vec![])).unwrap_err().is_overflow());
}

#[test]
fn a_pause_holds_nothing_but_the_compaction_and_is_billed_as_an_iteration() {
    let mut r = request(vec![block(1, BlockKind::User, Role::User, &"word ".repeat(600))]);
    r.server_edits = vec![ServerEdit::Compact { trigger: 500, instructions: None, pause: true }];
    let reply = ask(&mut provider(), &r, say(vec![text("never said")])).unwrap();
    assert_eq!(
        (reply.stop, reply.parts.len(), reply.usage),
        (StopReason::Compaction, 1, Usage::default())
    );
    assert_eq!(reply.billed.prompt(), r.tokens());
    assert!(reply.billed.output > 0 && reply.compaction().is_some());
    r.server_edits = vec![ServerEdit::Compact { trigger: 500, instructions: None, pause: false }];
    let reply = ask(&mut provider(), &r, say(vec![text("said")])).unwrap();
    // The answer was made from tools and summary; the sum of both iterations is billed.
    assert_eq!((reply.stop, reply.parts.len()), (StopReason::EndTurn, 2));
    let summary = r.model.counting.block(Size::text(reply.compaction().unwrap()));
    assert_eq!(reply.usage.prompt(), r.tools_tokens() + summary);
    assert_eq!(reply.billed.prompt(), reply.usage.prompt() + r.tokens());
    assert_eq!(reply.billed.output, reply.usage.output + summary);
}

#[test]
fn on_demand_the_top_level_is_zero_and_the_block_is_known_again() {
    let mut r = request(vec![
        block(1, BlockKind::User, Role::User, "look at it"),
        block(2, BlockKind::CompactionTrigger, Role::User, ""),
    ]);
    let mut p = provider();
    let reply = ask(&mut p, &r, PlannedReply::Summarise).unwrap();
    assert_eq!(
        (reply.stop, reply.usage, reply.billed.prompt()),
        (StopReason::Compaction, Usage::default(), r.tokens())
    );
    let made = block(3, BlockKind::Compaction, Role::Assistant, reply.compaction().unwrap());
    r.blocks = vec![block(4, BlockKind::User, Role::User, "x"), made.clone()];
    assert_eq!(
        ask(&mut p, &r, say(vec![])).unwrap_err().code.as_deref(),
        Some("compaction_block_misplaced")
    );
    r.blocks = vec![made, block(4, BlockKind::User, Role::User, "x")];
    assert!(ask(&mut p, &r, say(vec![])).is_ok());
}

#[test]
fn clearing_is_reported_and_the_count_knows_both_sizes() {
    let mut r = request(vec![
        block(1, BlockKind::User, Role::User, "go"),
        block(2, BlockKind::Reasoning, Role::Assistant, "hm hm"),
        block(2, BlockKind::Call, Role::Assistant, "{}"),
        block(3, BlockKind::Output, Role::User, &"word ".repeat(300)),
        block(4, BlockKind::User, Role::User, "on"),
        block(5, BlockKind::Reasoning, Role::Assistant, "so so"),
    ]);
    r.server_edits = vec![
        ServerEdit::ClearThinking { keep: Some(1) },
        ServerEdit::ClearToolUses {
            trigger: ClearTrigger::InputTokens(100),
            keep: 0,
            clear_at_least: 0,
            exclude: vec![],
            inputs: ClearInputs::None,
        },
    ];
    let mut p = provider();
    let applied = ask(&mut p, &r, say(vec![])).unwrap().applied;
    assert_eq!((applied.cleared_tool_uses, applied.cleared_thinking_turns), (1, 1));
    assert_eq!(applied.thinking_tokens, r.blocks[1].tokens(&r.model.counting));
    let (after, before) = p.count(&Prompt::of(p.wire(), &r));
    assert_eq!(
        (before, after),
        (Some(r.tokens()), r.tokens() - applied.cleared_tokens - applied.thinking_tokens)
    );
    // What measurements look at is what the provider showed.
    let view = ctxbench_core::context_editing::edited_view(&r, applied);
    assert_eq!(view.len(), 5);
    assert_eq!(
        ctxbench_core::block::total_tokens(&r.model.counting, &view) + r.tools_tokens(),
        after
    );
}
