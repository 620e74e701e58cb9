//! What a description can say of an agent: how its summaries look, how a turn ends, how it resumes.

use serde_json::{Value, json};

use crate::common::CommandFolder;
use crate::fake_agent::{SMALL, describe, drive, row};

#[test]
#[ignore = "needs python3"]
fn drive_summary_of_any_form_is_written_and_recognized() {
    let of = |how: &str| {
        let here = CommandFolder::new();
        let agent = describe(&here, how, "acp", "");
        drive(&here, &format!("login-bug {agent}"), 0);
        row(&here, &format!("fake-{how}-acp"))
    };
    let good = of("good");
    for how in ["one-message", "untags"] {
        let row = of(how);
        assert_eq!(row["status"], "completed", "{how}: {row}");
        let of_summary = |r: &Value| {
            let all = r["requests"].as_array().unwrap().iter();
            let one = all.filter(|q| q["purpose"] == "summary").map(|q| q["output_tokens"].clone());
            one.collect::<Vec<_>>()
        };
        let (got, want) = (of_summary(&row), of_summary(&good));
        assert_eq!(got.len(), want.len(), "{how}");
        let written = |n: &Value| n.as_u64().is_some_and(|n| n > 250);
        assert!(!got.is_empty() && got.iter().all(written), "{how}: {got:?}, {want:?}");
        let kinds = |r: &Value| {
            let all = r["compactions"].as_array().unwrap().iter();
            all.map(|c| c["kind"].clone()).collect::<Vec<_>>()
        };
        assert_eq!(kinds(&row), kinds(&good), "{how}");
        assert!(!row["note"].to_string().contains("unknown text"), "{how}: {row}");
    }
}

#[test]
#[ignore = "needs python3"]
fn drive_summary_request_without_readable_conversation_is_an_error() {
    let here = CommandFolder::new();
    let agent = describe(&here, "scrambles", "acp", "");
    drive(&here, &format!("login-bug {agent}"), 1);
    let error = row(&here, "fake-scrambles-acp")["error"].as_str().unwrap().to_string();
    let told = ["no part of the conversation is recognised", "shorten this"];
    assert!(told.iter().all(|t| error.contains(t)), "{error}");
}

/// Describes an agent and changes its description.
fn described_otherwise(
    here: &CommandFolder,
    how: &str,
    deliver: &str,
    changes: &[(&str, &str)],
) -> String {
    let agent = describe(here, how, deliver, "");
    let file = agent.replace("--agent ", "");
    let changed = |text: String, (from, to): &(&str, &str)| {
        assert!(text.contains(from), "{from}: {text}");
        text.replace(from, to)
    };
    here.write(&file, changes.iter().fold(here.read(&file), changed));
    agent
}

#[test]
#[ignore = "needs python3"]
fn drive_turn_ends_with_the_described_call() {
    let here = CommandFolder::with("small.jsonl", SMALL);
    let end = "[end]\nname = \"done\"\narguments = {}\n\n[tool]";
    let agent = described_otherwise(&here, "ends-by-call", "acp", &[("[tool]", end)]);
    drive(&here, &format!("small.jsonl {agent}"), 0);
    let row = row(&here, "fake-ends-by-call-acp");
    assert_eq!((&row["status"], &row["summary"]["requests"]), (&json!("completed"), &json!(3)));
}

#[test]
#[ignore = "needs python3"]
fn drive_resumes_with_the_id_that_the_first_turn_printed() {
    let here = CommandFolder::with("small.jsonl", SMALL);
    let resume = "fake-good-exec.left\",\"--resume\",\"{id}\"]";
    let agent = described_otherwise(&here, "good", "exec", &[]);
    let file = agent.replace("--agent ", "");
    let text = here.read(&file);
    let (first, rest) = text.split_once("resume = ").unwrap();
    let (line, rest) = rest.split_once('\n').unwrap();
    let line = line.replace("fake-good-exec.left\"]", resume);
    let told = |id: &str| here.write(&file, format!("{first}id = {id:?}\nresume = {line}\n{rest}"));
    told("session id: ");
    drive(&here, &format!("small.jsonl {agent}"), 0);
    let argv = here.read("fake-good-exec.left/argv");
    assert_eq!(argv.lines().collect::<Vec<_>>(), ["[]", "[\"--resume\", \"fake-7\"]"]);
    told("thread: ");
    drive(&here, &format!("small.jsonl {agent}"), 1);
    let error = row(&here, "fake-good-exec")["error"].clone();
    assert!(error.to_string().contains("printed no id after"), "{error}");
}

#[test]
#[ignore = "needs python3"]
fn drive_agent_that_takes_one_message_gets_one() {
    let here = CommandFolder::with("small.jsonl", SMALL);
    let agent = described_otherwise(&here, "good", "exec", &[("[start]", "[start]\nturns = 1")]);
    drive(&here, &format!("small.jsonl {agent}"), 0);
    let row = row(&here, "fake-good-exec");
    assert_eq!((&row["status"], &row["summary"]["requests"]), (&json!("completed"), &json!(2)));
    let note = row["note"].as_str().unwrap_or_default();
    assert!(note.contains("1 message of the user left out"), "{note}");
}

#[test]
#[ignore = "needs python3"]
fn drive_tool_that_is_not_offered_stops_at_once() {
    let here = CommandFolder::with("small.jsonl", SMALL);
    let tool = ("name = \"exec_command\"", "name = \"bash\"");
    let agent = described_otherwise(&here, "good", "acp", &[tool]);
    drive(&here, &format!("small.jsonl {agent}"), 1);
    let error = row(&here, "fake-good-acp")["error"].as_str().unwrap().to_string();
    let told = ["calls the tool `bash`", "offered: exec_command"];
    assert!(told.iter().all(|t| error.contains(t)), "{error}");
}
