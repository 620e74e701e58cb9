//! `--summarizer` on the command line.

use crate::common::CommandFolder;

const RUN: &str = "run login-bug-tight --transport direct --strategy codex --strategy \
    sliding-window --strategy reference";

#[test]
fn unreachable_server_is_an_error_of_its_row() {
    let here = CommandFolder::new();
    here.run(&format!("{RUN} --cassette c.jsonl --summarizer openai+http://127.0.0.1:1/v1#m"))
        .fails_with(1);
    for (strategy, status, summariser) in
        [("codex", "error", "endpoint:m"), ("sliding-window", "completed", "n/a")]
    {
        let row = here.row("ctxbench-out", strategy);
        assert_eq!((&*row["status"], &*row["summariser"]), (status, summariser), "{strategy}");
    }
    assert!(here.read("ctxbench-out/results.json").contains("codex: no summary for request "));
}

#[test]
fn a_key_stays_in_its_variable() {
    let here = CommandFolder::new();
    let key = "the-secret-key-0815";
    let with = |arguments: &str| {
        here.run(&format!("{RUN} --cassette c.jsonl {arguments}"))
            .env("CTXBENCH_SUMMARIZER_KEY", key)
    };
    let refused = with("--summarizer openai+http://example.org/v1").fails_with(2);
    refused.stderr_contains(&["a key travels over https only"]).lacks(&[key]);
    let run = with("--summarizer openai+http://127.0.0.1:1/v1 --trace t.jsonl").fails_with(1);
    run.lacks(&[key]);
    for (name, bytes) in here.files("") {
        assert!(!String::from_utf8_lossy(&bytes).contains(key), "{name} contains the key");
    }
}

#[test]
fn summary_requests_include_a_transcript() {
    let here = CommandFolder::new();
    here.run("run login-bug login-bug-tight --transport direct --trace t.jsonl").ok();
    let trace = here.read("t.jsonl");
    for line in trace.lines().filter(|l| l.contains("\"kind\":\"summary\"")) {
        // Without its quotes, the transcript would be empty for the summariser.
        assert!(!line.contains("Nothing has been said so far"), "{line}");
    }
    for strategy in ["aider", "opencode", "openoxide"] {
        let own = format!("\"strategy\":\"{strategy}\"");
        let asks = |l: &str| l.contains(&own) && l.contains("\"purpose\":\"summary\"");
        assert!(trace.lines().any(asks), "{strategy} renders a transcript");
    }
}

#[test]
fn several_summarizers_have_a_row_each() {
    let here = CommandFolder::new();
    let three = "--summarizer extractive --summarizer ideal --summarizer lossy";
    here.run(&format!("{RUN} {three}")).ok();
    let rows = here.csv("ctxbench-out/summary.csv");
    let of: Vec<(&str, &str)> =
        rows.iter().map(|r| (r["strategy"].as_str(), r["summariser"].as_str())).collect();
    let want = [
        ("codex", "extractive"),
        ("codex", "ideal"),
        ("codex", "lossy"),
        ("reference", "n/a"),
        ("sliding-window", "n/a"),
    ];
    assert_eq!(of, want);
    // A baseline with several summarizers passes.
    here.run("gate ctxbench-out --baseline b.json --store").ok();
    here.run("gate ctxbench-out --baseline b.json").ok();
    here.run("compare ctxbench-out ctxbench-out").ok().prints(&["0 rows differ, 5 are unchanged"]);
}
