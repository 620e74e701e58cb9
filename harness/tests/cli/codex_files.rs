//! `ctxbench resume` and `ctxbench prompts` on files in the shapes of the released Codex. What comes
//! back and what goes was reckoned by hand (docs/sources/codex.md §4).

use crate::common::Folder;

const HISTORY: &str = include_str!("../../../tests/data/rollouts/history.jsonl");

fn rollout(name: &str) -> String {
    format!("{}/../tests/data/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn a_person_sees_what_a_rollout_brings_back() {
    let here = Folder::new();
    let file = rollout("rollouts/released-0.169.jsonl");
    let said = here.run(&format!("resume {file} --items")).ok().stdout;
    for line in [
        "session     019f0000-0000-7000-8000-000000000001, Codex 0.169.0",
        "compacted   once; it goes on from line 19, which holds the new history",
        "taken back  6 lines of turns that the user gave up",
        "first turn  compacts nothing: 5050 tokens in use, and the limit is 244800, 90 % of the window",
    ] {
        assert!(said.lines().any(|l| l == line), "{line}\n{said}");
    }
    assert!(said.contains("1 developer, 1 context, 2 user, 1 summary, 2 assistant"), "{said}");
    assert!(!said.contains("Write the test"), "{said}");
    let old = here.run(&format!("resume {}", rollout("rollouts/released-0.104.jsonl"))).ok().stdout;
    assert!(old.contains("line 25 holds a summary alone"), "{old}");
    assert!(old.contains("2 snapshots of the working tree besides"), "{old}");
    assert!(old.contains("begins with a compaction: 245050 tokens"), "{old}");
}

#[test]
fn resume_says_what_it_takes_and_refuses_what_is_no_rollout() {
    let here = Folder::new();
    assert!(here.run("resume").fails_with(2).stderr.contains("resume takes a rollout"));
    here.write("notes.md", "# Notes\n");
    assert!(here.run("resume notes.md").fails_with(2).stderr.contains("notes.md"));
    here.write("empty.jsonl", "");
    assert!(here.run("resume empty.jsonl").fails_with(2).stderr.contains("rollout-"));
    let missing = here.run("resume nowhere/rollout-1.jsonl").fails_with(2).stderr;
    assert!(missing.contains("there is no such file; Codex keeps rollouts in"), "{missing}");
    assert!(!missing.contains("stored before"), "{missing}");
    here.write("sessions/a.txt", "");
    let folder = here.run("resume sessions").fails_with(2).stderr;
    assert!(folder.contains("sessions: is a folder; name one rollout-"), "{folder}");
    // What was not observed is said; the older rules hold between two that were.
    let text = std::fs::read_to_string(rollout("rollouts/released-0.104.jsonl")).unwrap();
    let of = |version: &str| {
        let old = format!(r#""cli_version":"{}""#, "0.104.0");
        assert!(text.contains(&old));
        here.write("v.jsonl", text.replace(&old, &format!(r#""cli_version":"{version}""#)));
        here.run("resume v.jsonl").ok().stdout.lines().next().unwrap().to_string()
    };
    let unseen = "which was not observed: opened by the rules of";
    for (version, told) in [
        ("0.150.2", format!(", Codex 0.150.2, {unseen} 0.104")),
        ("1.0.0", format!(", Codex 1.0.0, {unseen} 0.169")),
        ("", ", Codex of an unknown version, opened by the rules of 0.169".to_string()),
        ("0.104.9", ", Codex 0.104.9".to_string()),
    ] {
        assert!(of(version).ends_with(&told), "{version}: {}", of(version));
    }
    // A torn last line costs itself only.
    let torn = std::fs::read_to_string(rollout("rollouts/released-0.169.jsonl")).unwrap();
    here.write("torn.jsonl", &torn[..torn.len() - 20]);
    let said = here.run("resume torn.jsonl").ok().stdout;
    assert!(
        said.contains("line 45") && said.contains("was cut off while it was written"),
        "{said}"
    );
}

/// 511 bytes in lines of 182, 100, 121 and 108.
#[test]
fn a_prompt_past_the_limit_takes_the_oldest_away() {
    let here = Folder::new();
    here.write("history.jsonl", HISTORY);
    let shown =
        |max: u64| here.run(&format!("prompts history.jsonl --max-bytes {max}")).ok().stdout;
    // A prompt of one letter is a line of 81 bytes: 592 in all.
    assert!(shown(592).contains("up to 592 bytes nothing goes; beyond, the file keeps 473, 80 %"));
    // 472 bytes of 591 hold all lines but the oldest: 410.
    let said = "past 591 bytes: at least the oldest goes, down to 472 bytes";
    assert!(shown(591).contains(said), "{}", shown(591));
    // 408 of 510 hold the two newest and the next: 310; 240 of 300 one and the next: 189.
    assert!(shown(510).contains("at least the 2 oldest go,"), "{}", shown(510));
    assert!(shown(300).contains("at least the 3 oldest go,"), "{}", shown(300));
    let short = here.run("prompts history.jsonl --max-bytes 1k").ok().stdout;
    assert!(short.contains("up to 1000 bytes nothing goes"), "{short}");
    let wrong = here.run("prompts history.jsonl --max-bytes 1kb").fails_with(2).stderr;
    assert!(wrong.contains("a number of bytes, such as 64000 or 64k"), "{wrong}");
    assert_eq!(here.read("history.jsonl"), HISTORY, "looking changes nothing");

    // A line of 70 and more bytes: 581 and more are past 511, of which 408 stay.
    let add = |max: u64| {
        let run = here.run(&format!("prompts history.jsonl --max-bytes {max} --session s --json"));
        run.arg("--add").arg("Which harbour next?").ok().stdout
    };
    let after: serde_json::Value = serde_json::from_str(&add(511)).unwrap();
    assert_eq!((&after["entries"], &after["trimmed"]), (&4.into(), &1.into()));
    let text = here.read("history.jsonl");
    assert!(text.len() <= 408 && text.lines().last().unwrap().contains("Which harbour next?"));
    // The newest stays whatever the limit.
    let after: serde_json::Value = serde_json::from_str(&add(1)).unwrap();
    assert_eq!((&after["entries"], &after["trimmed"]), (&1.into(), &4.into()));
}

#[test]
fn a_place_is_looked_up_in_its_file_alone() {
    let here = Folder::new();
    here.write("history.jsonl", HISTORY);
    assert_eq!(here.run("prompts history.jsonl --at 1").ok().stdout.trim(), "Write the test, too.");
    for (option, other) in [("--add", "--session s"), ("--session", "--add text")] {
        let line = here.run(&format!("prompts history.jsonl {other}")).arg(option).arg(" ");
        let wrong = line.fails_with(2).stderr;
        assert!(wrong.contains(option) && wrong.contains("it is empty"), "{wrong}");
    }
    assert_eq!(here.read("history.jsonl"), HISTORY);
    let typed = r#"{"session_id":"s","ts":1793523600,"text":"a\u001b[2Jb\nc"}"#;
    here.write("steered.jsonl", format!("{typed}\n"));
    assert_eq!(here.run("prompts steered.jsonl --at 0").ok().stdout, "a [2Jb\nc\n");
    let all = here.run("prompts history.jsonl --json").ok().stdout;
    let all: serde_json::Value = serde_json::from_str(&all).unwrap();
    assert_eq!((&all["entries"], &all["bytes"]), (&4.into(), &511.into()));
    let log = all["log"].as_u64().unwrap();
    let at = |log: u64| format!("prompts history.jsonl --at 3 --log {log}");
    assert!(here.run(&at(log)).ok().stdout.contains("Which file was the cause in?"));
    assert!(here.run(&at(log + 1)).fails_with(2).stderr.contains("another file"));
    assert!(here.run("prompts history.jsonl --at 4").fails_with(2).stderr.contains("fewer lines"));
    assert!(here.run("prompts").fails_with(2).stderr.contains("prompts takes a history"));
    assert!(here.run("prompts nothing.jsonl").fails_with(2).stderr.contains("no such file"));
}
