use std::collections::BTreeSet;

use super::*;
use crate::recorded::as_recorded;

/// Sonnet 4.6: 3, 3.75 (5 minutes), 0.30 and 15 USD per million tokens. Its counting of visible text:
/// 1.10 · o200k + 34 per block.
const MODEL: &str = "claude-sonnet-4-6";

fn scenario(lines: &[String]) -> Scenario {
    let head = format!(r#"{{"type":"session","version":1,"id":"s","model":"{MODEL}"}}"#);
    let text = [&[head], lines].concat().join("\n");
    ctxbench_scenarios::parse(text.as_bytes(), "s.jsonl").unwrap()
}

fn reply(id: &str, content: &str, [input, read, write, output]: [u64; 4]) -> String {
    format!(
        r#"{{"type":"assistant","id":"{id}",{content},"usage":{{"input":{input},"cache_read":{read},"cache_write":{write},"output":{output}}}}}"#
    )
}

fn row<'a>(c: &'a Contents, kind: ContentKind, name: &str) -> &'a ContentRow {
    let rows = if kind == ContentKind::File { &c.files } else { &c.rows };
    rows.iter().find(|r| r.kind == kind && r.name == name).unwrap_or_else(|| panic!("{rows:#?}"))
}

fn close(usd: f64, millionths: f64) {
    assert!((usd * 1e6 - millionths).abs() < 1e-6, "{usd} is not {millionths} / 1,000,000");
}

/// A question, a read, an answer with 50 tokens that the recording lacks, a compaction, and an answer.
fn session() -> (Scenario, u64) {
    let arguments = r#"{"file_path":"/w/a.rs"}"#;
    let call = Counting::CLAUDE.for_visible_text().block(Size::call("Read", arguments));
    let calls = format!(
        r#""calls":[{{"id":"c1","name":"Read","arguments":{}}}]"#,
        serde_json::to_string(arguments).unwrap()
    );
    // 100 tokens of o200k: 110 + 34.
    let output = recording::text_of(100);
    let lines = [
        r#"{"type":"user","id":"u1","text":"go"}"#.to_string(),
        reply("a1", &calls, [3, 0, 1_000, 10]),
        format!(r#"{{"type":"tool","call_id":"c1","output":"{output}"}}"#),
        // 1,003 + the call + 144 + 50 unseen.
        reply("a2", r#""text":"go""#, [0, 1_000, 3 + call + 144 + 50, 20]),
        r#"{"type":"recorded_compaction","summary":"go","usage":{"input":1000,"output":5}}"#.into(),
        reply("a3", r#""text":"go""#, [0, 900, 103, 1]),
    ];
    (scenario(&lines), call)
}

#[test]
fn a_prompt_is_divided_among_its_parts_by_place() {
    let (scenario, call) = session();
    let c = contents(&scenario).unwrap();
    assert_eq!((c.peak_request, c.requests, c.peak_tokens), (2, 3, 1_197 + call));
    // 1,003 less 1 + 34 of the user's; a compaction leaves it.
    let system = row(&c, ContentKind::SystemPrompt, BY_SIZE);
    assert_eq!((system.peak_tokens, system.parts), (968, 1));
    close(system.first_usd, 968.0 * 3.75);
    close(system.cached_usd, (968.0 + 900.0) * 0.30);
    close(system.again_usd, 68.0 * 3.75);
    // Its last three tokens are uncached input first, and then written.
    let user = row(&c, ContentKind::UserMessages, "");
    assert_eq!(user.peak_tokens, 35);
    close(user.first_usd, 32.0 * 3.75 + 3.0 * 3.0);
    close(user.cached_usd, 32.0 * 0.30);
    close(user.again_usd, 3.0 * 3.75);
    let read = row(&c, ContentKind::Tool, "Read");
    assert_eq!((read.peak_tokens, read.parts), (call + 144, 2));
    close(read.first_usd, (call + 144) as f64 * 3.75);
    // The output has no word of five letters, so no reply repeats one, and one line.
    assert_eq!((read.unused_tokens, read.repeated_tokens), (144, 0));
    let file = row(&c, ContentKind::File, "/w/a.rs");
    assert_eq!((file.peak_tokens, file.usd()), (read.peak_tokens, read.usd()));
    // 50 before the compaction; 1,003 less 968 and the summary of 35 after it leaves nothing.
    assert_eq!(row(&c, ContentKind::NotInTheFile, "").peak_tokens, 50);
    close(row(&c, ContentKind::Summary, "").first_usd, 35.0 * 3.75);
}

#[test]
fn sums_are_those_of_the_counters() {
    let (scenario, _) = session();
    let c = contents(&scenario).unwrap();
    assert_eq!(c.rows.iter().map(|r| r.peak_tokens).sum::<u64>(), c.peak_tokens);
    close(c.output_usd, 31.0 * 15.0);
    close(c.other_usd, 1_000.0 * 3.0 + 5.0 * 15.0);
    let recorded = as_recorded(&scenario, model::find(MODEL).unwrap()).unwrap();
    close(c.input_usd + c.output_usd + c.other_usd, recorded.summary.cost_usd * 1e6);
    assert!(c.notes.is_empty(), "{:?}", c.notes);
}

#[test]
fn a_prompt_that_the_provider_counted_lower_is_scaled() {
    let lines = [
        format!(r#"{{"type":"user","id":"u1","text":"{}"}}"#, recording::text_of(1_000)),
        format!(r#"{{"type":"user","id":"u2","text":"<hint>{}"}}"#, recording::text_of(3_000)),
        reply("a1", r#""text":"go""#, [2_000, 0, 0, 1]),
    ];
    let c = contents(&scenario(&lines)).unwrap();
    let kinds = [ContentKind::ProgramNotices, ContentKind::UserMessages]
        .map(|kind| row(&c, kind, "").peak_tokens);
    // 3,337 and 1,134 of 4,471 or so.
    assert_eq!(kinds.iter().sum::<u64>(), 2_000);
    assert!((1_490..1_496).contains(&kinds[0]), "{kinds:?}");
    let [note] = &c.notes[..] else { panic!("{:?}", c.notes) };
    assert!(note.contains("in 1 prompt, at least 45 % of it"), "{note}");
}

#[test]
fn subagents_servers_and_skills_have_rows_and_every_call_its_dollars() {
    let calls = r#""calls":[{"id":"c1","name":"Task","arguments":"{\"subagent_type\":\"Explore\"}"},{"id":"c2","name":"mcp__github__list","arguments":"{}"},{"id":"c3","name":"Skill","arguments":"{\"skill\":\"pdf\"}"}]"#;
    let own = reply("b1", r#""agent":"x","text":"go""#, [100, 0, 0, 2]);
    let lines = [
        r#"{"type":"user","id":"u1","text":"go"}"#.to_string(),
        reply("a1", calls, [1_000, 0, 0, 10]),
        r#"{"type":"user","id":"v1","agent":"x","text":"go"}"#.into(),
        own,
        r#"{"type":"tool","call_id":"c1","output":"found something"}"#.into(),
        r#"{"type":"tool","call_id":"c2","output":"issues everywhere"}"#.into(),
        r#"{"type":"tool","call_id":"c3","output":"how to read"}"#.into(),
        reply("a2", r#""text":"found issues""#, [2_000, 0, 0, 10]),
        r#"{"type":"recorded_call","usage":{"input":10,"output":1}}"#.into(),
    ];
    let scenario = scenario(&lines);
    let c = contents(&scenario).unwrap();
    close(row(&c, ContentKind::Subagent, "x, its own requests").usd(), 100.0 * 3.0);
    let unused = |kind, name: &str| row(&c, kind, name).unused_tokens;
    assert_eq!(unused(ContentKind::Subagent, "Explore"), 0);
    assert_eq!(unused(ContentKind::McpServer, "github"), 0);
    // Three tokens: 3 + 34.
    assert_eq!(unused(ContentKind::Skill, "pdf"), 37);
    close(c.other_usd, 10.0 * 3.0 + 15.0);
    let recorded = as_recorded(&scenario, model::find(MODEL).unwrap()).unwrap();
    close(c.input_usd + c.output_usd + c.other_usd, recorded.summary.cost_usd * 1e6);
}

#[test]
fn without_counters_a_cache_is_simulated() {
    let text = recording::text_of(2_000);
    let lines = [
        format!(r#"{{"type":"user","id":"u1","text":"{text}"}}"#),
        r#"{"type":"assistant","id":"a1","text":"go","at":0}"#.to_string(),
        r#"{"type":"user","id":"u2","text":"go"}"#.into(),
        r#"{"type":"assistant","id":"a2","text":"go","at":1000}"#.into(),
        r#"{"type":"user","id":"u3","text":"go"}"#.into(),
        r#"{"type":"assistant","id":"a3","text":"go","at":900000}"#.into(),
    ];
    let c = contents(&scenario(&lines)).unwrap();
    assert!(!c.counted);
    // 2,000 · 1.17 + 34, and 35 each; written, read, and after 15 minutes written again.
    let user = row(&c, ContentKind::UserMessages, "");
    assert_eq!((c.peak_tokens, user.peak_tokens), (2_374 + 4 * 35, 2_374 + 2 * 35));
    close(user.first_usd, (2_374.0 + 35.0 + 35.0) * 3.75);
    close(user.cached_usd, 2_374.0 * 0.30);
    close(user.again_usd, (2_374.0 + 35.0) * 3.75);
    let known: BTreeSet<ContentKind> = c.rows.iter().map(|r| r.kind).collect();
    assert_eq!(known, BTreeSet::from([ContentKind::UserMessages, ContentKind::Replies]));
}
