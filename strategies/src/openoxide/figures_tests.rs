//! Tests of the blueprint's figures: each figure must affect a request. At scale 0.01
//! claude-sonnet-4-5 has a window of 2,000 tokens. Its provider clears but does not summarise, so
//! the blueprint's own tiers apply. The gate is (2,000 − 320) · 0.95 = 1,596, and the budget of
//! finished turns is min(2,000 · 0.0625, 82) = 82.

use ctxbench_core::prelude::*;

use super::tests::{play_with, turns, words};
use crate::testing::{Played, Script, calls, text_answer, user};

fn play(settings: &str, script: Script) -> Played {
    play_with(&format!("openoxide:{settings}"), script)
}

fn fixed(text: String) -> Vec<&'static str> {
    vec![Box::leak(text.into_boxed_str())]
}

/// Returns the number of shown lines of a long map.
fn map_lines(settings: &str) -> usize {
    let script = turns(&["x"], &["y"]).repo_map(fixed("src/file.rs: fn a\n".repeat(100)));
    let p = play(settings, script);
    let map = p.requests[0].blocks.iter().filter(|b| b.kind == BlockKind::RepoMap);
    map.inspect(|b| assert!(b.text.ends_with('\n'))).map(|b| b.text.lines().count()).sum()
}

#[test]
fn blueprint_budget_partitioning_repo_map() {
    // 1,591 tokens are left after the system prompt of 5. A line has 18 bytes; n tokens are 4n + 3
    // bytes.
    assert_eq!(map_lines(""), 18, "an eighth is 198, the upper bound 82 tokens");
    assert_eq!(map_lines("repo_map_max=4k"), 9, "40 tokens");
    assert_eq!(map_lines("repo_map_fraction=0.02"), 7, "31 tokens");
    assert_eq!(map_lines("repo_map_fraction=0.002"), 2, "3 tokens, raised to 10");
    assert_eq!(map_lines("repo_map_fraction=0.002,repo_map_min=2k"), 4, "raised to 20");
}

/// Returns true if a single message `words(n)` passes the gate.
fn passes(settings: &str, n: usize) -> bool {
    let script = turns(&[&words(n)], &["y"]);
    !play(settings, script).samples().is_empty()
}

#[test]
fn blueprint_allocation_order_output_reserve_then_margin() {
    // 32,000 first, then 5 % of the rest: 1,596. With the margin first it would be 1,900 − 320 =
    // 1,580. The message is n + 1 tokens and 4 more, the system prompt 5.
    assert!(passes("", 1_585) && !passes("", 1_600));
    assert!(!passes("output_reserve=40k", 1_585), "(2,000 − 400) · 0.95 = 1,520");
    assert!(!passes("safety_margin=0.1", 1_585), "1,680 · 0.9 = 1,512");
    assert!(passes("output_reserve=10k", 1_600));
}

/// Builds a finished turn with the message `words(n)`, and one more message.
fn history(n: usize) -> Script {
    turns(&[&words(n), "next"], &["done", "fine"])
}

fn summaries(settings: &str, script: Script) -> usize {
    play(settings, script).summaries().len()
}

#[test]
fn blueprint_budget_partitioning_chat_history() {
    // 40 words are 50 tokens, and the reply is 1 token.
    assert_eq!([summaries("", history(62)), summaries("", history(66))], [0, 1]);
    assert_eq!([summaries("", history(40)), summaries("chat_history_max=4k", history(40))], [0, 1]);
    assert_eq!(summaries("chat_history_fraction=0.02", history(40)), 1);
}

#[test]
fn blueprint_allocation_order_history_gets_what_files_leave() {
    // 1,232 words are 1,540 tokens by bytes / 4: 1,596 − 5 − 1,540 leave 51 for a history of 58
    // with a cap of 82.
    let mut script = history(46);
    script.files = fixed(words(1_232));
    assert_eq!([summaries("", history(46)), summaries("", script)], [0, 1]);
}

#[test]
fn blueprint_compaction_strategy_tier_2_weak_model() {
    let asked = |settings: &str| {
        let mut script = turns(&["go", "next"], &["done", "fine"]);
        script.replies.insert(0, calls("", "a", "read", "{}"));
        let p = play(settings, script.outputs(vec!["z".repeat(600)]));
        let r = p.summaries()[0];
        (r.model.name.to_string(), r.blocks[1].text.matches('z').count())
    };
    // 2,000 bytes of a result at scale 0.01, or 4,000 with the setting.
    assert_eq!(asked(""), ("claude-haiku-4-5".into(), 20));
    assert_eq!(asked("transcript_output=4k").1, 40);
    assert_eq!(asked("weak_model=gpt-5-mini").0, "gpt-5-mini");
}

/// Builds a turn with `n` reads of 200 tokens, and then three turns without reads.
fn reads(n: usize) -> Script {
    let mut script = turns(&["go"; 4], &["done"; 4]).outputs(vec!["x".repeat(800); n]);
    script.replies.splice(0..0, (0..n).map(|i| calls("", &i.to_string(), "read", "{}")));
    script
}

fn cleared(r: &Request) -> usize {
    r.blocks.iter().filter(|b| b.text.starts_with("[tool result cleared")).count()
}

#[test]
fn blueprint_compaction_algorithm_phase_1() {
    // 400 tokens are kept, and at least 200 must be freed; two user turns are not cleared.
    let after = |settings: &str, n: usize, sample: usize| {
        let p = play(&format!("phases=two,{settings}"), reads(n));
        cleared(p.samples()[n + sample])
    };
    assert_eq!([after("", 5, 2), after("", 5, 3)], [0, 3]);
    assert_eq!(after("", 3, 3), 1, "20,000 must go: exactly that is enough");
    assert_eq!([after("prune_minimum=21k", 3, 3), after("prune_protect=20k", 5, 3)], [0, 4]);
    assert_eq!([after("keep_turns=1", 5, 2), after("keep_turns=3", 5, 3)], [3, 0]);
}

/// Returns the indexes of the reads that are cleared when the last of five turns starts. The second
/// prompt mentions a path that the first read returned.
fn cleared_results(settings: &str) -> Vec<usize> {
    let mut script = reads(5);
    script.outputs[0] = format!("see config/pool.toml {}", "x".repeat(779));
    script.actions[1] = user("1", "what does config/pool.toml say?");
    let p = play(&format!("phases=two,{settings}"), script);
    let blocks = &p.samples()[8].blocks;
    let outputs = blocks.iter().filter(|b| b.kind == BlockKind::Output);
    let cleared = outputs.map(|b| b.text.starts_with("[tool result cleared"));
    cleared.enumerate().filter(|(_, gone)| *gone).map(|(i, _)| i).collect()
}

#[test]
fn what_is_referred_to_stays_where_importance_decides() {
    // 400 tokens are kept, which are two reads of 200.
    assert_eq!(cleared_results("prune_order=age"), [0, 1, 2]);
    assert_eq!(cleared_results(""), [0, 1, 2], "age is the default");
    assert_eq!(cleared_results("prune_order=importance"), [1, 2, 3], "the first is named later");
}

#[test]
fn blueprint_compaction_algorithm_phase_2() {
    // 1,100 words are 1,375 tokens by bytes / 4: within 2,000 − 200, beyond 2,000 − 1,000.
    assert_eq!(summaries("phases=two", history(1_100)), 0);
    assert_eq!(summaries("phases=two,compaction_buffer=100k", history(1_100)), 1);
}

#[test]
fn blueprint_provider_aware_tool_clearing() {
    let edit = |settings: &str| {
        let spec = format!("openoxide@provider-side:{settings}");
        let script = turns(&["x"], &["y"]);
        match play_with(&spec, script).requests[0].server_edits[0] {
            ServerEdit::ClearToolUses { trigger, keep, clear_at_least, .. } => {
                (trigger, keep, clear_at_least)
            }
            ref other => panic!("{other:?}"),
        }
    };
    assert_eq!(edit(""), (ClearTrigger::InputTokens(1_000), 3, 0));
    assert_eq!(edit("clear_at_least=30000"), (ClearTrigger::InputTokens(1_000), 3, 300));
    assert_eq!(edit("clear_trigger=50k,clear_keep=5"), (ClearTrigger::InputTokens(500), 5, 0));
}

#[test]
fn blueprint_context_awareness_once_and_after_tool_calls() {
    let told = |model, settings: &str| -> Vec<Vec<String>> {
        let script =
            Script::new(vec![user("1", "x")], vec![calls("", "a", "read", "{}"), text_answer("y")]);
        let p: Played = play(settings, script.on(model));
        let notes = |r: &Request| -> Vec<String> {
            let ours = r.blocks.iter().filter(|b| b.text.starts_with("[context:"));
            ours.inspect(|b| assert_eq!(b.role, Role::System)).map(|b| b.text.to_string()).collect()
        };
        p.requests.iter().map(notes).collect()
    };
    let notes = told("gpt-5", "awareness=true");
    assert_eq!(notes[0], ["[context: 4000 tokens in all]"]);
    assert_eq!((notes[1].len(), notes[1][1].contains("of 4000 tokens used")), (2, true));
    assert!(told("gpt-5", "").concat().is_empty());
    // The provider of Sonnet 4.5 reports the budget itself.
    assert!(told("claude-sonnet-4-5", "awareness=true").concat().is_empty());
}

#[test]
fn blueprint_hierarchical_memory_index_of_200_lines() {
    let shown = |settings: &str, path: &str| {
        let script =
            turns(&["x"], &["y"]).memory(fixed(format!("# {path}\n\n{}", "- a\n".repeat(250))));
        let p = play(settings, script);
        p.requests[0].blocks.iter().map(|b| b.text.matches("- a").count()).sum::<usize>()
    };
    let index = "/home/u/.openoxide/projects/p/memory/MEMORY.md";
    assert_eq!(
        [shown("", index), shown("memory_index_lines=50", index), shown("", "OPENOXIDE.md")],
        [200, 50, 250]
    );
}
