//! Tests of the edits in requests and of the client's part of context management.

use ctxbench_core::block::BlockKind::{
    Assistant, Base, Call, Compaction, CompactionTrigger, Context, Output, SummaryPrompt, User,
};
use ctxbench_core::prelude::*;

use crate::testing::{Answer, Played, Script, calls, kinds, play, text_answer, used, user};

const MODEL: &str = "claude-sonnet-4-6";

fn edits_of(model: &'static str, settings: &str) -> Vec<ServerEdit> {
    let script = Script::new(vec![user("u", "x")], vec![text_answer("y")]);
    play(&format!("claude-code-api:{settings}"), script.on(model)).requests[0].server_edits.clone()
}

fn compaction(text: &str, then: Vec<Part>) -> Answer {
    let mut parts = vec![Part::Compaction(Some(text.into()))];
    let calls = then.iter().any(|p| matches!(p, Part::Call(_)));
    let stop = if then.is_empty() {
        StopReason::Compaction
    } else if calls {
        StopReason::ToolUse
    } else {
        StopReason::EndTurn
    };
    parts.extend(then);
    Ok(Reply { parts, stop, ..Reply::default() })
}

/// Builds one turn on a model whose provider compacts.
fn go(replies: Vec<Answer>) -> Script {
    Script::new(vec![user("u1", "go")], replies).on(MODEL)
}

fn read(id: &str) -> Answer {
    calls("", id, "read", "{}")
}

fn call(id: &str) -> Part {
    Part::Call(ToolCall { id: id.into(), name: "read".into(), arguments: "{}".into() })
}

#[test]
fn edits_are_the_documented_defaults_or_those_of_the_settings() {
    let clear = ServerEdit::clear(ClearTrigger::InputTokens(100_000), 3, 0);
    let compact = ServerEdit::compact(150_000);
    assert_eq!(edits_of(MODEL, ""), [clear.clone(), compact.clone()]);
    // Edits that a provider lacks are not requested.
    assert_eq!(edits_of("claude-sonnet-4-5", ""), [clear]);
    assert_eq!(edits_of("gpt-5", ""), []);
    assert_eq!(edits_of(MODEL, "clear=false"), [compact]);
    let edits = edits_of(
        MODEL,
        "thinking=turns,thinking_keep=2,clear_trigger_uses=9,clear_keep=1,clear_at_least=5k,clear_exclude=a+b,clear_inputs=c,pause=true,\
         instructions=short,compact_trigger=60k",
    );
    let clear = ServerEdit::ClearToolUses {
        trigger: ClearTrigger::ToolUses(9),
        keep: 1,
        clear_at_least: 5_000,
        exclude: vec!["a".into(), "b".into()],
        inputs: ClearInputs::Of(vec!["c".into()]),
    };
    let compact =
        ServerEdit::Compact { trigger: 60_000, instructions: Some("short".into()), pause: true };
    assert_eq!(edits, [ServerEdit::ClearThinking { keep: Some(2) }, clear, compact]);
    assert_eq!(
        edits_of(MODEL, "clear=false,compact=off,thinking=all"),
        [ServerEdit::ClearThinking { keep: None }]
    );
}

#[test]
fn what_a_compaction_replaced_is_dropped_and_memory_files_stay() {
    let script = go(vec![read("a"), compaction("so far", vec![call("b")]), text_answer("done")])
        .then([user("u2", "next")], [text_answer("fine")])
        .memory(vec!["rules"]);
    let p = play("claude-code-api", script);
    assert_eq!(kinds(&p.requests[0]), [Base, Context, User]);
    assert_eq!(p.requests[0].blocks[1].role, Role::System);
    assert_eq!(kinds(&p.requests[2]), [Base, Context, Compaction, Call, Output]);
    assert_eq!(kinds(&p.requests[3]), [Base, Context, Compaction, Call, Output, Assistant, User]);
    assert_eq!(p.compactions(), ["compact_20260112"]);
    // The summary replaces the user's question.
    let asked = p.requests[0].blocks[2].message;
    assert!(p.requests[2].blocks[2].origin.iter().any(|o| o.message == asked));
}

#[test]
fn a_compaction_begins_with_what_the_provider_shows() {
    let mut compacts = compaction("so far", vec![call("c")]);
    // With the same request, the provider cleared the first result.
    compacts.as_mut().unwrap().applied.cleared_tool_uses = 1;
    let script = go(vec![read("a"), read("b"), compacts, text_answer("done")])
        .outputs(["of a", "of b", "of c"].map(String::from).into());
    let p = play("claude-code-api", script);
    let shown = |blocks: &[Arc<Block>]| {
        let line = |b: &Arc<Block>| (b.kind, b.form == BlockForm::Cleared);
        blocks.iter().skip(1).map(line).collect::<Vec<_>>()
    };
    let compacted = p.events(|e| match e {
        Event::Compaction { mechanism: "compact_20260112", before, after, new, .. } => {
            Some((shown(before), shown(after), *new))
        }
        _ => None,
    });
    let before = [User, Assistant, Call, Output, Assistant, Call, Output, Call, Output];
    let before = before.iter().enumerate().map(|(i, kind)| (*kind, i == 3)).collect();
    let after = [(Compaction, false), (Call, false), (Output, false)];
    // The reply's call and its result are new, with and without the compaction.
    assert_eq!(compacted, [(before, after.to_vec(), 2)]);
}

fn paused(keep: usize) -> Played {
    let (look, more) = (calls("look", "a", "read", "{}"), calls("more", "b", "read", "{}"));
    let script = go(vec![look, more, compaction("so far", vec![]), text_answer("done")]);
    play(&format!("claude-code-api:pause=true,keep_last={keep}"), script)
}

#[test]
fn after_a_pause_the_newest_messages_stand_behind_the_summary() {
    assert_eq!(kinds(&paused(0).requests[3]), [Base, Compaction]);
    // A call and its result count as one message, so a result never comes first.
    assert_eq!(kinds(&paused(1).requests[3]), [Base, Compaction, Assistant, Call, Output]);
    let all = paused(9);
    assert_eq!(
        kinds(&all.requests[3]),
        [Base, Compaction, User, Assistant, Call, Output, Assistant, Call, Output]
    );
    assert!(all.failures().is_empty());
}

#[test]
fn a_summary_that_never_helps_ends_the_turn() {
    let p = play("claude-code-api:pause=true", go(vec![compaction("so far", vec![]); 9]));
    assert_eq!((p.requests.len(), p.failures().len()), (4, 1));
}

#[test]
fn on_demand_the_block_takes_the_place_of_everything() {
    let compact_so = Action::Compact { instructions: Some("keep names".into()) };
    let script = go(vec![used(read("a"), 1_000, 0), used(text_answer("done"), 10, 0)])
        .then([compact_so, user("u2", "next")], [used(text_answer("fine"), 10, 0)])
        .summaries(vec![compaction("so far", vec![]), compaction("again", vec![])]);
    let p = play("claude-code-api:compact=on_demand,compact_trigger=1000", script);
    let asked = p.summaries();
    assert_eq!(kinds(asked[0]), [Base, User, Assistant, Call, Output, CompactionTrigger]);
    assert!(asked[0].server_edits.is_empty(), "not combinable with context_management");
    assert_eq!(kinds(p.samples()[1]), [Base, Compaction]);
    assert_eq!(&*asked[1].blocks.last().unwrap().text, "keep names");
    assert_eq!(kinds(p.samples()[2]), [Base, Compaction, User]);
    assert_eq!(p.compactions(), ["on_demand", "on_demand"]);
}

#[test]
fn with_memory_a_note_is_written_before_results_go() {
    let script = go(vec![read("a"), read("b"), text_answer("done")])
        .outputs(vec!["long ".repeat(50), "out".into()])
        .summaries(vec![text_answer("port 8443")]);
    let p = play("claude-code-api:memory=true,clear_trigger_uses=2,clear_keep=1", script);
    let note = p.summaries();
    assert_eq!((note.len(), note[0].blocks.last().unwrap().kind), (1, SummaryPrompt));
    let last = p.samples()[2];
    assert_eq!(
        kinds(last),
        [Base, User, Assistant, Call, Output, Assistant, Call, Output, Call, Output]
    );
    assert!(
        last.blocks[8].text.contains("port 8443") && last.blocks[8].text.contains("/memories/")
    );
    assert!(last.tools.as_ref().unwrap().json.get().contains("memory_20250818"));
    let ServerEdit::ClearToolUses { exclude, .. } = &last.server_edits[0] else {
        panic!("no clearing")
    };
    assert_eq!(exclude, &["memory"]);
}

#[test]
fn a_note_covers_all_that_it_has_seen() {
    let replies = vec![read("a"), read("b"), read("c"), read("d"), text_answer("done")];
    let script = go(replies).outputs(vec!["long ".repeat(50); 4]);
    let p = play("claude-code-api:memory=true,clear_trigger_uses=2,clear_keep=1", script);
    // One result is cleared with two in view, so the first note covers both. The third is the first
    // result that is cleared without a note.
    let order: Vec<Purpose> = p.requests.iter().map(|r| r.purpose).collect();
    use Purpose::{Sample, Summary};
    assert_eq!(order, [Sample, Sample, Summary, Sample, Sample, Summary, Sample]);
}
