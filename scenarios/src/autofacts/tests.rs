use serde_json::{Value, json};

use super::*;
use crate::formats::reading_tests::readings::readings;
use crate::jsonl;

/// A session of one agent: the user's message `asks`, followed by replies.
struct Story {
    lines: Vec<String>,
    replies: usize,
}

impl Story {
    fn new(asks: &str) -> Story {
        Story { lines: Vec::new(), replies: 0 }.user("u1", asks)
    }

    fn line(mut self, line: Value) -> Story {
        self.lines.push(line.to_string());
        self
    }

    fn user(self, id: &str, text: &str) -> Story {
        self.line(json!({"type": "user", "id": id, "text": text}))
    }

    /// Adds a reply `aN` with a call `cN` and its result.
    fn call(mut self, text: &str, tool: &str, arguments: Value, output: &str) -> Story {
        self.replies += 1;
        let (reply, id) = (format!("a{}", self.replies), format!("c{}", self.replies));
        let call = json!({"id": id, "name": tool, "arguments": arguments.to_string()});
        let reply = json!({"type": "assistant", "id": reply, "text": text, "calls": [call]});
        self.line(reply).line(json!({"type": "tool", "call_id": id, "output": output}))
    }

    fn reads(self, output: &str) -> Story {
        self.call("", "read", json!({"path": "x"}), output)
    }

    fn reply(self, text: &str) -> Story {
        self.call(text, "wait", json!({}), "")
    }

    fn idles(self, n: usize) -> Story {
        (0..n).fold(self, |story, _| story.reply(""))
    }

    fn found(&self) -> Vec<String> {
        let told = |f: Fact| {
            let literals = f.tokens.join(" ") + &f.words.join(" ");
            format!("{literals} @ {}: {}", f.arises, f.needs.join(" "))
        };
        self.facts().into_iter().map(told).collect()
    }

    fn facts(&self) -> Vec<Fact> {
        let header = r#"{"type":"session","version":1,"id":"s"}"#;
        let text = format!("{header}\n{}", self.lines.join("\n"));
        let mut session = jsonl::read(text.as_bytes(), "s").unwrap().session;
        add(&mut session);
        session.facts
    }
}

/// Reads a story: steps, a line each, in which `⏎` is a line break. Other lines are of the session.
fn story(steps: &[&str]) -> Story {
    let empty = Story { lines: Vec::new(), replies: 0 };
    steps.iter().fold(empty, |story, step| {
        let (kind, what) = step.split_once(": ").unwrap_or((step, ""));
        let text = what.replace('⏎', "\n");
        match kind.split_once(' ') {
            Some(("user", id)) => story.user(id, &text),
            Some(("call", tool)) => {
                let (arguments, output) = what.split_once(" →").unwrap();
                story.call("", tool, serde_json::from_str(arguments).unwrap(), output.trim())
            }
            _ if kind == "reads" => story.reads(&text),
            _ if kind == "says" => story.reply(&text),
            _ if kind == "idles" => story.idles(what.parse().unwrap()),
            _ => story.line(serde_json::from_str(step).unwrap()),
        }
    })
}

/// Stories with the facts that are found: the literals of each, the id of the text that showed them, and
/// the replies that need them.
#[test]
fn facts_of_stories_are_found() {
    for case in readings(include_str!("../../../tests/data/found-facts.txt")) {
        let story = story(&case.files[0].1);
        assert_eq!(story.found(), case.sessions[0], "{}", case.heading);
    }
}

#[test]
fn an_argument_that_repeats_one_of_another_tool_was_filled_in_by_the_program() {
    let plan = format!("# Plan\nchange parse_token\n{}", "step after step\n".repeat(80));
    let story = Story::new("go").reads("fn parse_token() {}").idles(1);
    let story = story.call("", "write", json!({"file_path": "p", "content": plan.clone()}), "");
    let story = story.idles(5).call("", "show_plan", json!({"plan": plan}), "");
    assert!(story.found().is_empty());
}

#[test]
fn unchanged_content_that_is_fetched_again_is_needed() {
    let lines = |edited: usize| -> String {
        let line =
            |n| format!("{n:>5}→    let value_{} = 1;\n", n + if n < edited { 100 } else { 0 });
        (1..=10).map(line).collect()
    };
    let read = |story: Story, edited: usize| {
        story.call("", "read", json!({"path": "/w/src/auth.rs"}), &lines(edited))
    };
    let again = read(read(Story::new("go"), 0), 0);
    let facts = again.facts();
    assert_eq!((facts[0].kind, facts[0].tokens.len()), (FactKind::Content, 10));
    assert_eq!((&*facts[0].arises, &facts[0].needs[..]), ("c1", &["a2".to_string()][..]));
    assert_eq!(facts[0].tokens[0], "let value_1 = 1;");
    // Two of ten lines are others: eight are needed. Three are too many.
    assert_eq!(read(read(Story::new("go"), 0), 3).facts()[0].tokens.len(), 8);
    assert_eq!(read(read(Story::new("go"), 0), 4).facts(), []);
    // Another call that names the file is between.
    let search = json!({"pattern": "let", "path": "/w/src/auth.rs"});
    let between = read(read(Story::new("go"), 0).call("", "grep", search, "3 matches"), 0);
    assert_eq!(between.facts()[0].needs, ["a3"]);
    let write = json!({"path": "/w/src/auth.rs", "old_string": "a", "new_string": "b"});
    assert_eq!(read(Story::new("go"), 0).call("", "edit", write, &lines(0)).facts(), []);
}

#[test]
fn notices_of_the_program_are_no_content_of_a_file() {
    let notice =
        |n: usize| format!("\n<system-reminder>\nConsider hint {n} of this.\n</system-reminder>\n");
    let lines: String = (1..=5).map(|n| format!("let value_{n} = {n};\n")).collect();
    let read = |story: Story, output: &str| {
        story.call("", "read", json!({"path": "/w/src/auth.rs"}), output)
    };
    let with = |n: usize| lines.clone() + &notice(n).repeat(3);
    let facts = read(read(Story::new("go"), &with(1)), &with(1)).facts();
    assert_eq!(facts[0].tokens, lines.lines().collect::<Vec<_>>());
    let notices: String = (1..=6).map(notice).collect();
    assert_eq!(read(read(Story::new("go"), &notices), &notices).facts(), [], "no line of a file");
    // A text about such notices, and one that does not end.
    for (quoted, more) in [
        ("say <system-reminder> and\n</system-reminder>\n", 2),
        ("<system-reminder>\nwithout an end\n", 1),
    ] {
        let output = lines.clone() + quoted;
        let facts = read(read(Story::new("go"), &output), &output).facts();
        assert_eq!(facts[0].tokens.len(), 5 + more, "{quoted}");
    }
}

#[test]
fn a_command_that_reads_needs_its_content_and_one_that_runs_does_not() {
    let lines: String = (1..=10).map(|n| format!("let value_{n} = {n};\n")).collect();
    let twice = |arguments: serde_json::Value| {
        let run = |story: Story| story.call("", "bash", arguments.clone(), &lines);
        run(run(Story::new("go"))).facts().len()
    };
    for reads in [
        "sed -n 1,9p src/auth.rs",
        "cd src && cat auth.rs | head -20",
        "git --no-pager show src/auth.rs",
        "grep -in \"a|b\" src/auth.rs 2>/dev/null",
        "awk '$1 > 5' src/auth.rs",
    ] {
        assert_eq!(twice(json!({"command": reads, "description": "Read"})), 1, "{reads}");
        assert_eq!(twice(json!({"command": ["bash", "-lc", reads]})), 1, "{reads}");
    }
    for runs in [
        "npx vitest src/auth.rs",
        "cd src/auth.rs && npm test",
        "git commit src/auth.rs",
        "sed -i s/a/b/ src/auth.rs",
        "cat x > src/auth.rs 2>/dev/null",
        "cat x >src/auth.rs",
    ] {
        assert_eq!(twice(json!({"command": runs, "description": "See src/auth.rs"})), 0, "{runs}");
    }
}

#[test]
fn the_agents_own_list_of_tasks_is_needed_when_it_is_written_again() {
    let tasks = |state: &str| {
        json!({"todos": [
            {"content": "Mend the login page", "activeForm": "Mending it", "status": state},
        ]})
    };
    let story = Story::new("go").call("", "todo", tasks("pending"), "").idles(5).call(
        "",
        "todo",
        tasks("completed"),
        "",
    );
    let facts = story.facts();
    assert_eq!(story.found(), ["Mend the login page @ a1: a7"]);
    assert_eq!(facts[0].kind, FactKind::Todo);
}

#[test]
fn a_task_is_taken_up_in_other_words() {
    let task = "- transcripts with malformed fences do not crash the renderer";
    let later = "Next a case for it: malformed fences must not crash rendering at all.";
    let story = Story::new("go").reads(task).idles(5).reply(later);
    let facts = story.facts();
    assert_eq!(story.found(), ["malform fenc crash render @ c1: a7"]);
    assert_eq!((facts[0].kind, facts[0].tokens.len()), (FactKind::Constraint, 0));
    // Shown again in between.
    let again = Story::new("go").reads(task).idles(3).reads("malformed fences crash").idles(1);
    assert!(again.reply(later).found().is_empty());
}

#[test]
fn code_in_a_message_is_no_rule() {
    let code = "const body = await request.body().catch(undefined)";
    let edit = json!({"content": format!("  {code}")});
    let after = |said: &str| {
        let story = Story::new("go").user("u2", said).idles(6);
        story.call("", "write", edit.clone(), "").found().len()
    };
    assert_eq!(after(&format!("The handler:\n```ts\n{code}\n```\nMend it.")), 0);
    assert_eq!(after("Always request a body and catch an undefined one"), 1);
}

#[test]
fn of_many_needs_the_farthest_are_kept() {
    let word = |i: usize| format!("word_number_{i}");
    let shows = |story: Story, i| {
        let story = story.user(&format!("m{i}"), &word(i));
        if i == 9 { story.idles(1) } else { story }
    };
    let story = (0..MAX_FACTS + 10).fold(Story::new("go"), shows);
    let story = story.idles(6).reply(&(0..MAX_FACTS + 10).map(word).collect::<Vec<_>>().join(" "));
    // The first ten were last shown one reply earlier than the others, so the last ten of the
    // others are dropped.
    let facts = story.facts();
    assert_eq!(facts.len(), MAX_FACTS);
    assert_eq!(facts[9].tokens, [word(9)]);
    assert_eq!(facts[MAX_FACTS - 1].tokens, [word(MAX_FACTS - 1)]);
}

#[test]
fn given_facts_stay() {
    let story = Story::new("go").reads("parse_token").idles(5).reply("`parse_token`");
    let story = story.line(json!({
        "type": "fact", "id": "f", "kind": "goal", "tokens": ["x"], "arises": "u1",
    }));
    assert_eq!(story.facts().len(), 1);
}
