//! The login bug as described (docs/sources/login-bug.md §1): 26 messages of about 15,400 tokens,
//! 81 % of them in five tool results.

use crate::common::CommandFolder;
use ctxbench_scenarios::builtin;
use ctxbench_session::Entry;
use serde_json::Value;

/// Kinds and documented sizes of the messages, in tokens. A message that spans several rows of the
/// document's table has their sum.
const DOCUMENTED: &str = include_str!("../data/login-bug-sizes.csv");
/// System prompt with more than forty tools.
const DOCUMENTED_SYSTEM: u64 = 800;
const DOCUMENTED_TOTAL: u64 = 15_400;

/// Runs `compact` at the documented moment: after the ninth reply and its result, the 26th message.
fn compact_at_moment(here: &CommandFolder, more: &str) -> Value {
    let line = format!("compact login-bug --at step:9 --calibrate off --json {more}");
    here.run(&line).ok().json()
}

fn tokens(piece: &Value) -> u64 {
    piece["tokens"].as_u64().unwrap()
}

#[test]
fn session_has_the_documented_messages_and_sizes() {
    let here = CommandFolder::new();
    let shown = compact_at_moment(&here, "--strategy codex");
    let made = &shown["strategies"][0]["compactions"][0];
    let before = made["before"].as_array().unwrap();
    // Tokens of o200k. The document says "about" and rounds to one or two digits, so a message may
    // differ by 5 %, or by seven tokens if that is more. System prompt and tools are one number
    // there and separate here.
    let near = |is: u64, told: u64| is.abs_diff(told) <= (told / 20).max(7);
    let mut reader = csv::Reader::from_reader(DOCUMENTED.as_bytes());
    let documented: Vec<(String, u64)> = reader.deserialize().map(|r| r.unwrap()).collect();
    assert_eq!((documented.len(), before.len()), (25, 26));
    let session = builtin::by_id("login-bug").unwrap().session;
    let is_long =
        |e: &Entry| matches!(e, Entry::Tools { definitions, .. } if definitions.len() > 40);
    assert!(session.entries.iter().any(is_long), "more than forty tools");
    let system = tokens(&before[0]) + shown["tools_tokens"].as_u64().unwrap();
    assert!(near(system, DOCUMENTED_SYSTEM), "system prompt and tools: {system}");
    for (i, (piece, (kind, told))) in before[1..].iter().zip(&documented).enumerate() {
        assert_eq!(piece["kind"], **kind, "message {}", i + 2);
        assert!(near(tokens(piece), *told), "message {}: {piece}", i + 2);
    }
    // The documented sizes add up to 15,420, rounded to 15,400 in the document.
    let sum: u64 = documented.iter().map(|(_, n)| n).sum();
    assert_eq!(DOCUMENTED_SYSTEM + sum, DOCUMENTED_TOTAL + 20);
    let all = system + before[1..].iter().map(tokens).sum::<u64>();
    let off = all.abs_diff(DOCUMENTED_TOTAL);
    assert!(off * 100 < DOCUMENTED_TOTAL, "{all}: more than one in a hundred off");
    let blocks = before.iter().map(tokens).sum::<u64>();
    assert_eq!(made["before_tokens"].as_u64(), Some(blocks));
    // According to the document, messages 5, 8, 13, 21 and 26 are 81 % of the total.
    let bulk: u64 = before.iter().map(tokens).filter(|n| *n > 1_000).sum();
    assert_eq!((100.0 * bulk as f64 / all as f64).round(), 81.0);
}

#[test]
fn described_compactions_match_the_document() {
    let here = CommandFolder::new();
    let names =
        ["codex", "claude-code", "opencode"].map(|n| format!("--strategy {n}@described-002"));
    let shown = compact_at_moment(&here, &names.join(" "));
    let after = |i: usize| shown["strategies"][i]["compactions"][0]["after"].as_array().unwrap();
    let kinds =
        |i: usize| -> Vec<&str> { after(i).iter().map(|p| p["kind"].as_str().unwrap()).collect() };
    // Codex: the system prompt, both messages of the user verbatim, and the note, so four blocks
    // remain.
    assert_eq!(kinds(0), ["base", "user", "user", "summary"]);
    // OpenCode: a summary, followed by the last message of the user.
    assert_eq!(kinds(2), ["base", "summary", "replayed_user"]);
    let again = after(2).last().unwrap()["text"].as_str().unwrap();
    assert!(again.contains("backward compatibility"), "{again}");
    // Claude Code cleared results before on its own, so its context is smaller than the
    // conversation.
    let claude = &shown["strategies"][1];
    assert!(claude["before_it"].as_u64() > Some(0), "{}", claude["before_it"]);
    let before = claude["compactions"][0]["before"].as_array().unwrap();
    let cleared: Vec<&Value> = before.iter().filter(|p| p["form"] == "cleared").collect();
    assert!(!cleared.is_empty());
    assert!(cleared.iter().all(|p| p["kind"] == "output"), "calls stay");
    assert_eq!(before.iter().filter(|p| p["kind"] == "call").count(), 8);
}
