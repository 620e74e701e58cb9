//! `ctxbench validate`: handwritten recordings with known misses, and excerpts of real ones.

use crate::common;

use std::path::Path;

use common::{CommandFolder, Output};
use serde_json::{Value, json};

fn data(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tests/data/validate")
        .join(name)
        .display()
        .to_string()
}

fn parsed(out: &Output) -> Value {
    serde_json::from_str(&out.stdout).unwrap_or_else(|e| panic!("{e}: {}", out.stdout))
}

/// Returns the only file of a result.
fn file(line: &str) -> Value {
    parsed(&CommandFolder::new().run(&format!("validate --json {line}")).ok())["files"][0].clone()
}

/// Returns line, cause and predictability of every miss.
fn misses(file: &Value) -> Vec<(u64, String, bool)> {
    let one = |m: &Value| {
        (
            m["line"].as_u64().unwrap(),
            m["cause"].as_str().unwrap().to_string(),
            m["predicted"].as_bool().unwrap(),
        )
    };
    file["misses"].as_array().unwrap().iter().map(one).collect()
}

fn miss(line: u64, cause: &str, predicted: bool) -> (u64, String, bool) {
    (line, cause.into(), predicted)
}

#[test]
fn cache_misses_are_classified_by_cause() {
    let f = file(&data("claude-code-known-misses.jsonl"));
    // Thirteen replies, one of them over two lines. Not compared: the first reply of each
    // conversation, the one of the small model and the one after it.
    assert_eq!((&f["calls"], &f["compared"]), (&12.into(), &8.into()), "{f:#}");
    assert_eq!(f["route"], "direct");
    assert_eq!(
        misses(&f),
        [
            miss(7, "lifetime", true), // ten minutes idle: 0 read, as predicted
            miss(11, "edit", true),    // back to the reply of line 7, whose prompt was 17,000
            // 9,000 tokens of tools and system prompt: this size appears here for the first time
            miss(14, "compaction", false),
            miss(16, "unexplained", false),
            miss(18, "model", true), // models share nothing: 0 read
            // back to the large model: the prefix of line 16 is still cached
            miss(24, "model", true),
            // the second compaction keeps the 9,000 tokens that are known by now
            miss(27, "compaction", true),
        ]
    );
    // Right: lines 4, 7, 9, 11, 22, 27. Wrong: 14 (12,000 guessed), 16.
    assert_eq!((&f["exact"], &f["size_unknown"]), (&6.into(), &1.into()));
    // The bare law is right for lines 4, 9 and 22. It does not explain a missing prefix.
    assert_eq!(f["law"], 3);
    // Predicted reads: 15,000 + 0 + 17,000 + 17,000 + 12,000 + 13,000 + 6,000 + 9,000.
    assert_eq!((&f["read_predicted"], &f["read_actual"]), (&89_000.into(), &82_000.into()));
    // Counters of writes: 1,000 + 17,000 + 500 + 700 + 4,000 + 5,000 + 200 + 3,500; predicted 1,000
    // and 1,000 for lines 14 and 16.
    assert_eq!((&f["write_predicted"], &f["write_actual"]), (&24_900.into(), &31_900.into()));
    let unexplained = f["misses"].as_array().unwrap().iter().find(|m| m["line"] == 16).unwrap();
    assert!(unexplained["evidence"].as_str().unwrap().contains("line 14"), "{unexplained}");
}

#[test]
fn new_turn_is_served_up_to_the_dropped_thinking() {
    // Sonnet 4.5 drops the reasoning of earlier turns: a turn reads the text before the first
    // reasoning of the previous turn, or everything if that turn had none.
    let f = file(&data("claude-code-thinking.jsonl"));
    assert_eq!((&f["calls"], &f["compared"], &f["exact"]), (&6.into(), &5.into(), &5.into()));
    assert_eq!(misses(&f), [miss(8, "thinking", true), miss(15, "thinking", true)], "{f:#}");
    // The same calls by a model that keeps reasoning: both predictions are wrong, and so is the one
    // of line 10, because no prompt of such a model shrinks.
    let text = std::fs::read_to_string(data("claude-code-thinking.jsonl")).unwrap();
    let folder = CommandFolder::new();
    folder.write("kept.jsonl", text.replace("sonnet-4-5-20250929", "opus-4-6"));
    let f = parsed(&folder.run("validate --json kept.jsonl").ok())["files"][0].clone();
    let wrong: Vec<(u64, bool)> = misses(&f).iter().map(|m| (m.0, m.2)).collect();
    assert_eq!(wrong, [(8, false), (10, false), (15, false)]);
}

#[test]
fn lifetimes_come_from_the_recording_and_can_be_switched_off() {
    let path = data("claude-code-one-hour.jsonl");
    let f = file(&path);
    // Thirty minutes do not expire an entry with a lifetime of one hour; seventy do.
    assert_eq!((&f["compared"], &f["exact"]), (&2.into(), &2.into()));
    assert_eq!(misses(&f), [miss(6, "lifetime", true)]);
    let f = file(&format!("{path} --no-lifetimes"));
    assert_eq!((&f["exact"], misses(&f)), (&1.into(), vec![miss(6, "lifetime", false)]));
    // pi does not record the lifetime: six minutes exceed five minutes, but not an hour.
    let pi = data("pi.jsonl");
    assert_eq!(
        file(&pi)["exact"].as_u64().unwrap(),
        file(&format!("{pi} --ttl 1h"))["exact"].as_u64().unwrap() + 1
    );
}

#[test]
fn gateways_are_reported_separately_and_do_not_count() {
    let f = file(&data("claude-code-gateway.jsonl"));
    assert_eq!(
        (&f["route"], &f["compared"], &f["exact"]),
        (&"gateway".into(), &2.into(), &1.into())
    );
    assert_eq!(misses(&f), [miss(4, "gateway", false)]);
    let both =
        format!("{} {}", data("claude-code-gateway.jsonl"), data("claude-code-one-hour.jsonl"));
    let here = CommandFolder::new();
    let all = parsed(&here.run(&format!("validate --json --min 100 {both}")).ok());
    assert_eq!((&all["counted"]["exact"], &all["gateways"]["compared"]), (&2.into(), &2.into()));
    // Without IDs the pattern decides: three of five compared calls read nothing or an older prefix
    // seconds after the previous call.
    let f = file(&data("claude-code-no-ids.jsonl"));
    assert_eq!(
        (&f["route"], &f["compared"], &f["exact"]),
        (&"gateway".into(), &5.into(), &2.into()),
        "{f:#}"
    );
    assert_eq!(
        misses(&f),
        [miss(4, "gateway", false), miss(6, "gateway", false), miss(10, "gateway", false)]
    );
    here.run(&format!("validate --min 100 {}", data("claude-code-gateway.jsonl")))
        .fails_with(1)
        .stderr_contains(&["no calls to compare"]);
}

#[test]
fn codex_and_pi_have_their_own_counters() {
    let f = file(&data("codex.jsonl"));
    // Four calls (the repeated counter does not count): 2,000 give 15 steps of 128 = 1,920; then
    // nothing is read after 2 s, and nothing after 15 minutes.
    assert_eq!(
        (&f["calls"], &f["compared"], &f["exact"]),
        (&4.into(), &3.into(), &2.into()),
        "{f:#}"
    );
    // Each stands at the first line of its reply.
    assert_eq!(misses(&f), [miss(11, "unexplained", false), miss(14, "lifetime", true)]);
    assert_eq!(f["write_actual"], Value::Null);
    let f = file(&data("pi.jsonl"));
    assert_eq!((&f["calls"], &f["compared"]), (&6.into(), &5.into()), "{f:#}");
    assert_eq!(
        misses(&f),
        [
            miss(8, "settings", false),   // the thinking level changed
            miss(12, "uncounted", false), // 5,350 = 5,300 and what the aborted request wrote
            miss(14, "lifetime", true),
            miss(17, "compaction", true), // 1,200 of the system part are known from line 8
        ]
    );
}

#[test]
fn reply_with_a_provider_tool_is_one_call() {
    let reply = |id: &str, read: u64, write: u64| {
        json!({"role": "assistant", "content": [
            {"type": "server_tool_use", "id": id, "name": "web_search", "input": {}},
            {"type": "web_search_tool_result", "tool_use_id": id, "content": []},
            {"type": "text", "text": "port 9443"}],
            "usage": {"input_tokens": 5, "output_tokens": 60, "cache_read_input_tokens": read,
                "cache_creation_input_tokens": write}})
    };
    let user = json!({"role": "user", "content": "more"});
    let talk = json!({"model": "claude-sonnet-4-5", "messages": [user, reply("s1", 0, 3000), user,
        reply("s2", 3000, 200), user, reply("s3", 3200, 200)]});
    let here = CommandFolder::new();
    here.write("searched.json", talk.to_string());
    // Each call reads the tokens that the previous one read and wrote.
    here.run("validate searched.json --min 100")
        .ok()
        .prints(&["calls         3, compared 2, exactly right 2 = 100.0 %", "misses        none"]);
    let run = here.run("run searched.json --strategy none").ok();
    assert!(!run.stdout.contains("without counters"), "{}", run.stdout);
}

#[test]
fn min_share_decides_the_exit_code() {
    let here = CommandFolder::new();
    let path = data("claude-code-known-misses.jsonl");
    // 6 of 8 = 75 %.
    here.run(&format!("validate {path} --min 75")).ok();
    here.run(&format!("validate {path} --min 75.1"))
        .fails_with(1)
        .stderr_contains(&["6 of 8", "75.1"]);
    here.run(&format!("validate {path}")).ok().prints(&[
        "exactly right 6 = 75.0 %",
        "lifetime 1",
        "unexplained 1",
    ]);
}

#[test]
fn recording_that_was_cut_while_written_is_used_up_to_the_cut() {
    let here = CommandFolder::new();
    let good = std::fs::read_to_string(data("claude-code-one-hour.jsonl")).unwrap();
    let torn = &good.lines().nth(1).unwrap()[..40];
    here.write("cut.jsonl", format!("{good}{torn}"));
    here.run("validate cut.jsonl --min 100").ok().stderr_contains(&["breaks off"]);
}

#[test]
fn bad_file_in_a_folder_does_not_hide_others() {
    let here = CommandFolder::new();
    let good = std::fs::read_to_string(data("claude-code-one-hour.jsonl")).unwrap();
    here.write("all/deep/er/good.jsonl", &good);
    here.write("all/notes.jsonl", "hello\n");
    here.write("all/README.md", "not even looked at\n");
    here.run("validate all")
        .ok()
        .prints(&["good.jsonl (claude-code)"])
        .stderr_contains(&["skipped: all/notes.jsonl:1"]);
    here.run("validate all/notes.jsonl nowhere.jsonl all/deep/er/good.jsonl")
        .fails_with(2)
        .prints(&["good.jsonl (claude-code)"])
        .stderr_contains(&["all/notes.jsonl:1", "nowhere.jsonl"]);
    // An archive is read like a folder.
    let packed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/packed/tree.zip");
    here.write("tree.zip", std::fs::read(packed).unwrap());
    here.run("validate tree.zip")
        .ok()
        .prints(&[
            "tree.zip/claude-code/spotter-8463c716/subagents/agent-a7be2f0.jsonl (claude-code)",
        ])
        .stderr_contains(&["skipped: tree.zip/messages/openai-chat.jsonl"]);
    // This also applies to an archive in a folder.
    here.write("some/below/tree.zip", std::fs::read(here.path("tree.zip")).unwrap());
    here.run("validate some")
        .ok()
        .prints(&["some/below/tree.zip/claude-code/spotter-8463c716/subagents/agent-a7be2f0.jsonl"])
        .stderr_contains(&["skipped: some/below/tree.zip/messages/openai-chat.jsonl"]);
    here.write("empty/README.md", "");
    here.run("validate empty")
        .fails_with(2)
        .stderr_contains(&["no recording with counters among 0 files"]);
}

/// Excerpts of real sessions. A separate script counted the expected values: the bare law is true
/// for a call that reads the tokens that the previous call read and wrote, rounded down to steps of
/// 128 tokens with Codex.
#[test]
fn recorded_sessions_are_predicted() {
    let recorded = |name: &str| {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/recordings").join(name);
        file(&path.display().to_string())
    };
    let numbers = |f: &Value| {
        ["calls", "compared", "law", "exact", "near", "read_actual", "write_actual"]
            .map(|key| f[key].as_u64().unwrap_or_default())
    };
    // Wrong predictions: the first call after the compaction, which reveals the system part, and
    // the call after the gap in the excerpt.
    let claude = recorded("claude-code/spotter-8463c716.jsonl");
    assert_eq!(numbers(&claude), [6, 5, 3, 3, 3, 380_793, 37_432]);
    assert_eq!(misses(&claude), [miss(23, "compaction", false), miss(48, "unexplained", false)]);
    // Of 18,688, 18,816, 20,224, 20,352 and 20,736 tokens, 18,304 were read (three steps fewer),
    // then all, and three times nothing.
    let codex = recorded("codex/codemie-rollout-019e1625.jsonl");
    assert_eq!(numbers(&codex), [6, 5, 1, 1, 2, 37_120, 0]);
    assert_eq!(codex["route"], "direct");
    let pi = recorded("pi/pi-mono-large-session.jsonl");
    assert_eq!(numbers(&pi), [34, 33, 33, 33, 33, 1_544_542, 13_730]);
    assert_eq!(misses(&pi), []);
}
