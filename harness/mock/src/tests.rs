//! Threads, server-side compaction and clearing at the provider, by hand calculation from the
//! facts.

use std::sync::Arc;

use ctxbench_core::block::{CallRef, MessageId};
use ctxbench_core::model::{Counting, find};
use ctxbench_core::request::{ClearInputs, ClearTrigger, ServerEdit, Thread, Tools};
use ctxbench_core::tokens::Size;
use ctxbench_core::{
    Block, BlockKind, Draft, Model, ModelError, Part, Reply, Request, Role, StopReason, Usage,
};
use ctxbench_os::post;
use wiremock::matchers::method;
use wiremock::{Mock, MockServer};

use super::{PlannedReply, ProviderModel, ProviderOptions, ProviderResponder};

/// At this scale the window of claude-sonnet-4-6 is 2,000 tokens and the smallest compaction
/// trigger 500.
const SCALE: f64 = 0.01;

fn options() -> ProviderOptions {
    let model = find("claude-sonnet-4-6").unwrap().scaled(SCALE);
    let model = Arc::new(Model { counting: Counting::O200K, ..model });
    ProviderOptions { scale: SCALE, ..ProviderOptions::new(model) }
}

fn provider() -> ProviderModel {
    ProviderModel::new(options())
}

fn block(message: u32, kind: BlockKind, role: Role, text: &str) -> Arc<Block> {
    let call = matches!(kind, BlockKind::Call | BlockKind::Output)
        .then(|| Arc::new(CallRef { id: "a".into(), name: "read".into() }));
    Draft { call, ..Draft::text(kind, role, text) }.build(MessageId(message), vec![])
}

fn request(blocks: Vec<Arc<Block>>) -> Request {
    let model = find("claude-sonnet-4-6").unwrap().clone();
    let model = Arc::new(Model { counting: Counting::O200K, ..model });
    let tools = Tools::new(&[serde_json::json!({"name": "read"})]);
    Request { tools, ..Request::new(model, blocks) }
}

fn planned_reply(parts: Vec<Part>) -> PlannedReply {
    PlannedReply::Say { parts, stop: StopReason::EndTurn, output: 0 }
}

fn text(t: &str) -> Part {
    Part::Text(t.into())
}

fn ask(p: &mut ProviderModel, r: &Request, plan: PlannedReply) -> Result<Reply, ModelError> {
    p.answer(p.wire().prompt_of(r), plan, 0)
}

#[test]
fn a_continued_thread_is_billed_as_the_whole_conversation() {
    let base = block(0, BlockKind::Base, Role::System, "base");
    let mut r = request(vec![base, block(1, BlockKind::User, Role::User, "look at it")]);
    let mut p = provider();
    r.thread = Some(Thread::Create);
    let first = ask(&mut p, &r, planned_reply(vec![text("done")])).unwrap();
    assert_eq!(first.id.as_deref(), Some("msg_0000"));
    r.blocks.extend([
        block(2, BlockKind::Assistant, Role::Assistant, "done"),
        block(3, BlockKind::User, Role::User, "and now?"),
    ]);
    r.thread = Some(Thread::Continue { after: "msg_0000".into(), held: 3 });
    let second = ask(&mut p, &r, planned_reply(vec![text("that")])).unwrap();
    assert_eq!(second.usage.prompt(), r.tokens());
    assert_eq!(second.id.as_deref(), Some("msg_0001"));
    // A client that never saw the reply sends the same request again. It costs the same, mostly
    // from the cache.
    let again = ask(&mut p, &r, planned_reply(vec![text("that")])).unwrap();
    assert_eq!((again.usage.prompt(), again.id.as_deref()), (r.tokens(), Some("msg_0002")));
    // A thread continues from its last reply only.
    *r.blocks.last_mut().unwrap() = block(3, BlockKind::User, Role::User, "and then?");
    let lost = ask(&mut p, &r, planned_reply(vec![])).unwrap_err();
    assert_eq!((lost.status, lost.code.as_deref()), (404, Some("thread_not_found")));
}

#[test]
fn a_thread_overflows_as_the_whole_conversation_does() {
    let mut r = request(vec![block(1, BlockKind::User, Role::User, &"word ".repeat(1_990))]);
    r.tools = None;
    r.thread = Some(Thread::Create);
    let mut p = provider();
    ask(&mut p, &r, planned_reply(vec![text("done")])).unwrap();
    r.blocks.extend([
        block(2, BlockKind::Assistant, Role::Assistant, "done"),
        block(3, BlockKind::User, Role::User, "more"),
    ]);
    r.thread = Some(Thread::Continue { after: "msg_0000".into(), held: 2 });
    assert!(ask(&mut p, &r, planned_reply(vec![])).unwrap_err().is_overflow());
}

#[test]
fn a_pause_holds_nothing_but_the_compaction_and_is_billed_as_an_iteration() {
    let mut r = request(vec![block(1, BlockKind::User, Role::User, &"word ".repeat(600))]);
    r.server_edits = vec![ServerEdit::Compact { trigger: 500, instructions: None, pause: true }];
    let reply = ask(&mut provider(), &r, planned_reply(vec![text("never said")])).unwrap();
    assert_eq!(
        (reply.stop, reply.parts.len(), reply.usage),
        (StopReason::Compaction, 1, Usage::default())
    );
    assert_eq!(reply.billed.prompt(), r.tokens());
    assert!(reply.billed.output > 0 && reply.compaction().is_some());
    r.server_edits = vec![ServerEdit::compact(500)];
    let reply = ask(&mut provider(), &r, planned_reply(vec![text("said")])).unwrap();
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
        ask(&mut p, &r, planned_reply(vec![])).unwrap_err().code.as_deref(),
        Some("compaction_block_misplaced")
    );
    r.blocks = vec![made, block(4, BlockKind::User, Role::User, "x")];
    assert!(ask(&mut p, &r, planned_reply(vec![])).is_ok());
}

#[test]
fn clearing_is_reported_and_the_count_knows_both_sizes() {
    let mut r = request(vec![
        block(1, BlockKind::User, Role::User, "go"),
        block(2, BlockKind::Reasoning, Role::Assistant, "hm hm"),
        block(2, BlockKind::Call, Role::Assistant, "{}"),
        block(3, BlockKind::Output, Role::User, &"word ".repeat(300)),
        block(4, BlockKind::Assistant, Role::Assistant, "well"),
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
    let applied = ask(&mut p, &r, planned_reply(vec![])).unwrap().applied;
    assert_eq!((applied.cleared_tool_uses, applied.cleared_thinking_turns), (1, 1));
    assert_eq!(applied.thinking_tokens, r.blocks[1].tokens(&r.model.counting));
    let (after, before) = p.count_prompt(&p.wire().prompt_of(&r));
    assert_eq!(
        (before, after),
        (Some(r.tokens()), r.tokens() - applied.cleared_tokens - applied.thinking_tokens)
    );
    // Measurements use the view that the provider showed.
    let view = ctxbench_core::context_editing::edited_view(&r, applied);
    assert_eq!(view.len(), 6);
    assert_eq!(
        ctxbench_core::block::total_tokens(&r.model.counting, &*view) + r.tools_tokens(),
        after
    );
}

/// A session of three turns that think, up to the prompts of its five requests: on a user message,
/// on a result of the same turn, on the second and the third message and on a result of that turn.
fn three_turns() -> Vec<Vec<Arc<Block>>> {
    let user = |id, text| block(id, BlockKind::User, Role::User, text);
    let thought =
        |id| block(id, BlockKind::Reasoning, Role::Assistant, &vec!["why"; 300].join(" "));
    let said = |id, text| block(id, BlockKind::Assistant, Role::Assistant, text);
    let call = |id| block(id, BlockKind::Call, Role::Assistant, "{}");
    let result = |id| block(id, BlockKind::Output, Role::Tool, &"line ".repeat(2_000));
    let base = block(0, BlockKind::Base, Role::System, &"rule ".repeat(5_000));
    let growth = [
        vec![base, user(1, "one")],
        vec![thought(2), call(2), result(3)],
        vec![thought(4), said(4, "done"), user(5, "two")],
        vec![said(6, "no need to think"), user(7, "three")],
        vec![thought(8), call(8), result(9)],
    ];
    growth
        .into_iter()
        .scan(vec![], |all: &mut Vec<_>, more| {
            all.extend(more);
            Some(all.clone())
        })
        .collect()
}

/// Usages of the five requests, each with a breakpoint at the end of the system part and of the
/// prompt, and the sizes reported in advance: by the request and by the counting endpoint.
fn billed(name: &str, edits: &[ServerEdit]) -> Vec<(Usage, u64, u64)> {
    let model = Arc::new(Model { counting: Counting::O200K, ..find(name).unwrap().clone() });
    let mut p =
        ProviderModel::new(ProviderOptions { model: model.clone(), scale: 1.0, ..options() });
    // One minute apart: entries of the previous request can be read and are still alive.
    let bill = |(minute, blocks): (usize, Vec<Arc<Block>>)| {
        let mut r = request(blocks);
        r.breakpoints = vec![0, r.blocks.len() - 1];
        (r.model, r.server_edits) = (model.clone(), edits.to_vec());
        let counted = p.count_prompt(&p.wire().prompt_of(&r)).0;
        let prompt = p.wire().prompt_of(&r);
        let reply =
            p.answer(prompt, planned_reply(vec![text("so")]), 60_000 * minute as u64).unwrap();
        (reply.usage, r.tokens(), counted)
    };
    three_turns().into_iter().enumerate().map(bill).collect()
}

#[test]
fn an_older_model_pays_for_no_thinking_of_earlier_turns_and_loses_its_cache_there() {
    let sizes: Vec<u64> = three_turns().iter().map(|b| request(b.clone()).tokens()).collect();
    // One thought: 300 tokens of text and the block's overhead. The first two disappear with the
    // second user message.
    let thought = 304;
    let newer = billed("claude-opus-4-6", &[]);
    let older = billed("claude-sonnet-4-5", &[]);
    let prompts = |all: &[(Usage, u64, u64)]| -> Vec<u64> {
        assert!(all.iter().all(|(u, told, counted)| [*told, *counted] == [u.prompt(); 2]));
        all.iter().map(|(u, ..)| u.prompt()).collect()
    };
    assert_eq!(prompts(&newer), sizes);
    let less = [0, 0, 2 * thought, 2 * thought, 2 * thought];
    let left: Vec<u64> = sizes.iter().zip(less).map(|(all, gone)| all - gone).collect();
    assert_eq!(prompts(&older), left);
    let reads = |all: &[(Usage, u64, u64)]| -> Vec<u64> {
        all.iter().map(|(u, ..)| u.cache_read).collect()
    };
    // A model that keeps all reads the prompt before, always.
    assert_eq!(reads(&newer), [0, sizes[0], sizes[1], sizes[2], sizes[3]]);
    // The second turn begins where the first began: the thought after its message is removed. The
    // third reads everything, since the second had no thought; so does its tool cycle.
    assert_eq!(reads(&older), [0, left[0], left[0], left[2], left[3]]);
}

#[test]
fn an_edit_about_thinking_stands_in_the_place_of_the_default() {
    let keep = |keep| [ServerEdit::ClearThinking { keep }];
    let prompts = |name, edits: &[ServerEdit]| -> Vec<(u64, u64)> {
        billed(name, edits).iter().map(|(u, _, counted)| (u.prompt(), *counted)).collect()
    };
    let of = |name| prompts(name, &[]);
    assert_eq!(prompts("claude-sonnet-4-5", &keep(None)), of("claude-opus-4-6"));
    for name in ["claude-opus-4-6", "claude-sonnet-4-5"] {
        assert_eq!(prompts(name, &keep(Some(1))), of("claude-sonnet-4-5"), "{name}");
    }
}

#[tokio::test]
async fn a_wiremock_server_answers_with_the_provider_model() {
    let responder = ProviderResponder::new(provider());
    let plan = |words| responder.plan(planned_reply(vec![text(words)]), 0);
    plan("first");
    plan("second");
    let server = MockServer::start().await;
    Mock::given(method("POST")).respond_with(responder.clone()).mount(&server).await;
    // The window has 2,000 tokens.
    let mut answers = Vec::new();
    for size in [100, 2_100, 100] {
        let question = serde_json::json!({
            "model": "claude-sonnet-4-6", "max_tokens": 10,
            "messages": [{"role": "user", "content": "word ".repeat(size)}],
        });
        let url = format!("{}/v1/messages", server.uri()).parse().unwrap();
        let body = question.to_string().into_bytes();
        let sent = post::send(&post::client(), &url, &[], body, usize::MAX).await;
        let (status, body) = sent.unwrap();
        answers.push((status.as_u16(), String::from_utf8(body.to_vec()).unwrap()));
    }
    assert_eq!([answers[0].0, answers[1].0, answers[2].0], [200, 400, 500], "{answers:?}");
    assert!(answers[0].1.contains("first"), "{answers:?}");
    assert!(answers[1].1.contains("prompt is too long"), "{answers:?}");
    assert!(answers[2].1.contains("unannounced"), "{answers:?}");
}
