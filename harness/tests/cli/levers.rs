//! Levers beside compaction by hand calculation.

use ctxbench_core::tokens::o200k;
use ctxbench_reports::record::{RunRecord, Status};
use ctxbench_scenarios::Scenario;

use crate::common::replayed::run;

fn session(lines: &str) -> Scenario {
    let head = r#"{"type":"session","version":1,"id":"l","title":"l"}"#;
    Scenario::of_session(
        ctxbench_scenarios::jsonl::read(format!("{head}\n{lines}\n").as_bytes(), "l.jsonl")
            .unwrap(),
    )
}

/// What the prompts' tools are, as they are sent.
const TOOLS: &str = r#"[{"name":"read"},{"name":"mcp__a__b","description":"one two three four five six seven eight nine ten one two three four five six seven eight nine ten one two three four five six seven eight nine ten one two three four five six seven eight nine ten one two three four five six seven eight nine ten one two three four five six seven eight nine ten one two three four five six seven eight nine ten one two three four five six seven eight nine ten one two three four five six seven eight nine ten one two three four five six seven eight nine ten"}]"#;

/// A thought of eight tokens, a subagent, and a tool of a server. Every text has as many tokens as
/// words.
fn thoughtful() -> Scenario {
    session(&format!(
        r#"{{"type":"system","text":"one two three four five six"}}
{{"type":"tools","definitions":{TOOLS}}}
{{"type":"user","id":"u1","text":"one two three"}}
{{"type":"assistant","id":"a1","reasoning":"one two three four five six seven eight","text":"one","calls":[{{"id":"c1","name":"task","arguments":"{{}}"}}]}}
{{"type":"user","id":"x0","text":"one two","agent":"x"}}
{{"type":"assistant","id":"x1","text":"port open now","agent":"x"}}
{{"type":"tool","call_id":"c1","output":"port open now"}}
{{"type":"assistant","id":"a2","calls":[{{"id":"c2","name":"mcp__a__b","arguments":"{{}}"}}]}}
{{"type":"tool","call_id":"c2","output":"one"}}
{{"type":"assistant","id":"a3","text":"one"}}"#
    ))
}

/// Agent, model, input and output of every request.
fn requests(r: &RunRecord) -> Vec<(Option<&str>, &str, u64, u64)> {
    assert_eq!(r.status, Status::Completed, "{:?}", r.error);
    let of = |q| {
        let q: &ctxbench_reports::record::RequestRecord = q;
        (q.agent.as_deref(), &*q.model, q.input_tokens, q.output_tokens)
    };
    r.requests.iter().map(of).collect()
}

const SONNET: &str = "claude-sonnet-4-6";
const HAIKU: &str = "claude-haiku-4-5";

/// Tokens of the call of the server's tool: its name, `{}`, and four.
fn call() -> u64 {
    o200k("mcp__a__b") + 5
}

#[test]
fn a_budget_of_thinking_by_hand() {
    // Every block has 4 tokens besides its text. Main: tools + 10 + 7 → thought 12, text 5, call 6;
    // + result 7 → call; + result 5 → 5. Subagent, under the session's prompt: tools + 10 + 6 → 7.
    let tools = o200k(TOOLS);
    let plain = run(&thoughtful(), "reference");
    assert_eq!(
        requests(&plain),
        [
            (None, SONNET, tools + 17, 23),
            (None, SONNET, tools + 47, call()),
            (None, SONNET, tools + 52 + call(), 5),
            (Some("x"), SONNET, tools + 16, 7),
        ]
    );
    // Three of eight tokens are left of the thought, in the reply and in both prompts after it.
    let cut = run(&thoughtful(), "reference+thinking=3");
    assert_eq!(
        requests(&cut),
        [
            (None, SONNET, tools + 17, 18),
            (None, SONNET, tools + 42, call()),
            (None, SONNET, tools + 47 + call(), 5),
            (Some("x"), SONNET, tools + 16, 7),
        ]
    );
    // Nothing is cached below 1,024 tokens: 10 in at 3 USD a million, 5 out at 15.
    let saved = plain.summary.cost_usd - cut.summary.cost_usd;
    assert!((saved - (10.0 * 3.0 + 5.0 * 15.0) / 1e6).abs() < 1e-12, "{saved}");
    assert_eq!(cut.strategy.label, "reference+thinking=3");
    assert_eq!(cut.strategy.without_levers.as_deref(), Some("reference"));
    assert_eq!(plain.strategy.without_levers, None);
}

#[test]
fn a_smaller_model_for_subagents_by_hand() {
    let tools = o200k(TOOLS);
    let plain = run(&thoughtful(), "reference");
    let small = run(&thoughtful(), "reference+subagents=claude-haiku-4-5");
    assert_eq!(requests(&small)[..3], requests(&plain)[..3]);
    assert_eq!(requests(&small)[3], (Some("x"), HAIKU, tools + 16, 7));
    // 1 USD a million in and 5 out, where it was 3 and 15.
    let x = ((tools + 16) as f64 + 7.0 * 5.0) / 1e6;
    let saved = plain.summary.cost_usd - small.summary.cost_usd;
    assert!((saved - 2.0 * x).abs() < 1e-12, "{saved} against {x}");
}

#[test]
fn deferred_tools_by_hand() {
    let plain = run(&thoughtful(), "reference");
    let deferred = run(&thoughtful(), "reference+tools=deferred");
    let rows = requests(&deferred);
    // What stands in every prompt now: the tool that is left, the one that looks up, and a name.
    let standing = rows[0].2 - 17;
    assert!(standing < o200k(TOOLS), "{standing}");
    // One request more, before the first call: it asks for one definition and gets it.
    let asks = o200k(r#"{"query":"select:mcp__a__b"}"#) + o200k("ToolSearch") + 4;
    let definition = &TOOLS[TOOLS.find(r#"{"name":"mcp"#).unwrap()..TOOLS.len() - 1];
    let sorted: serde_json::Value = serde_json::from_str(definition).unwrap();
    let gets = o200k(&sorted.to_string()) + 4;
    assert_eq!(
        rows,
        [
            (None, SONNET, standing + 17, 23),
            (None, SONNET, standing + 47, asks),
            (None, SONNET, standing + 47 + asks + gets, call()),
            (None, SONNET, standing + 52 + asks + gets + call(), 5),
            (Some("x"), SONNET, standing + 16, 7),
        ]
    );
    assert_eq!((deferred.summary.steps_total, plain.summary.steps_total), (4, 3));
}

#[test]
fn a_team_of_six_by_hand() {
    let plain = session(
        r#"{"type":"system","text":"one two three four five six"}
{"type":"user","id":"u1","text":"one two three"}
{"type":"assistant","id":"a1","text":"one two three"}
{"type":"user","id":"u2","text":"one two"}
{"type":"assistant","id":"a2","text":"one"}"#,
    );
    // 17 → 7, 30 → 5.
    let alone = run(&plain, "reference");
    assert_eq!((alone.summary.input_tokens, alone.summary.output_tokens), (47, 12));
    let team = run(&plain, "reference+team=6");
    // Each member is told who it is and does the same; the lead starts six of them, reads `one`
    // from each, and does it, too.
    let told = o200k("You are member-1 of a team.") + 4;
    let starts = 6 * (o200k(r#"{"prompt":"part 1 of the task"}"#) + o200k("Agent") + 4);
    let (lead, reports) = (starts + 30, 6 * 5);
    assert_eq!(lead, starts + reports);
    let mut expected = vec![
        (None, SONNET, 17, starts),
        (None, SONNET, 17 + lead, 7),
        (None, SONNET, 30 + lead, 5),
    ];
    let members: Vec<String> = (1..=6).map(|n| format!("member-{n}")).collect();
    for m in &members {
        expected.push((Some(m.as_str()), SONNET, 17 + told, 7));
        expected.push((Some(m.as_str()), SONNET, 30 + told, 5));
    }
    assert_eq!(requests(&team), expected);
    // Seven sessions of 59 tokens, and what it takes to talk.
    let tokens = team.summary.input_tokens + team.summary.output_tokens;
    assert_eq!(tokens, 7 * 59 + 6 * 2 * told + 17 + starts + 2 * lead);
    // Half of the steps are the first one: 24 tokens instead of 59.
    let half = run(&plain, "reference+team=6x50%");
    let of_one: u64 =
        requests(&half).iter().filter(|q| q.0 == Some("member-1")).map(|q| q.2 + q.3).sum();
    assert_eq!(of_one, 24 + told);
}

#[test]
fn the_same_lever_twice_is_said_by_its_name() {
    let here = crate::common::Folder::new();
    let line = "run login-bug --strategy codex --lever thinking=8k --lever thinking=8000";
    let wrong = here.run(line).fails_with(2).stderr;
    assert!(wrong.contains("--lever thinking=8000 is given twice; leave one out"), "{wrong}");
}
