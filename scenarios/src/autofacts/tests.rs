use serde_json::{Value, json};

use super::*;
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

    /// Returns the literals of each fact, with the id of the text that showed them and the replies
    /// that need them.
    fn found(&self) -> Vec<(String, String, Vec<String>)> {
        let of = |f: Fact| (f.tokens.join(" ") + &f.words.join(" "), f.arises, f.needs);
        self.facts().into_iter().map(of).collect()
    }

    fn facts(&self) -> Vec<Fact> {
        let header = r#"{"type":"session","version":1,"id":"s"}"#;
        let text = format!("{header}\n{}", self.lines.join("\n"));
        let mut session = jsonl::read(text.as_bytes(), "s").unwrap().session;
        add(&mut session);
        session.facts
    }
}

fn fact(what: &str, origin: &str, needs: &[&str]) -> (String, String, Vec<String>) {
    let needs = needs.iter().map(|n| (*n).to_string()).collect();
    (what.to_string(), origin.to_string(), needs)
}

#[test]
fn six_replies_are_far_enough_and_five_are_not() {
    let near = Story::new("go").reads("parse_token").idles(4).reply("`parse_token` it is");
    assert_eq!(near.found(), []);
    let far = Story::new("go").reads("parse_token").idles(5).reply("`parse_token` it is");
    assert_eq!(far.found(), [fact("parse_token", "c1", &["a7"])]);
}

#[test]
fn the_last_showing_counts_and_not_the_first() {
    let story = Story::new("go").reads("parse_token").idles(3).reads("calls parse_token").idles(2);
    let story = story.reply("`parse_token`").idles(2).reply("`parse_token`").reply("`parse_token`");
    // The call c5 showed it. The agent's text in a8 does not count.
    assert_eq!(story.found(), [fact("parse_token", "c5", &["a11", "a12"])]);
}

#[test]
fn the_user_shows_things_too() {
    let story = Story::new("look at src/auth/login.ts").idles(5).call(
        "",
        "read",
        json!({"path": "src/auth/login.ts"}),
        "",
    );
    assert_eq!(story.found(), [fact("src/auth/login.ts", "u1", &["a6"])]);
}

#[test]
fn what_one_message_showed_is_one_need_of_a_reply() {
    let story = Story::new("go").reads("parse_token read_token").reads("other_token").idles(5);
    let story = story.reply("`read_token`, `parse_token` and `other_token`");
    let both = [fact("parse_token read_token", "c1", &["a8"]), fact("other_token", "c2", &["a8"])];
    assert_eq!(story.found(), both);
}

#[test]
fn what_follows_from_something_recent_is_no_need() {
    // Paths below the project's folder, a folder of a path, and another spelling of a name.
    let story =
        Story::new("go").reads("/w/app/src/session_store.rs in_the_store SessionStore").idles(4);
    let story = story.reads("src/session_store.rs").idles(1);
    let story = story.call("", "read", json!({"path": "/w/app/src/session_store.rs"}), "");
    let story = story.reply("`SessionStore`");
    assert_eq!(story.found(), []);
    let story = story.reply("`in_the_store`");
    assert_eq!(story.found(), [fact("in_the_store", "c1", &["a10"])]);
}

#[test]
fn what_any_program_may_say_is_needed_only_where_the_text_must_match() {
    let shown = "import { randomUUID } from 'crypto';\n  id = randomUUID();\n  retryCount: 0,";
    let edit = |old: &str, new: &str| json!({"old_string": old, "new_string": new});
    let made_up = Story::new("go").reads(shown).idles(5).call(
        "",
        "edit",
        edit("", "x = randomUUID(retryCount)"),
        "",
    );
    assert_eq!(made_up.found(), [fact("retryCount", "c1", &["a7"])]);
    let matched =
        Story::new("go").reads(shown).idles(5).call("", "edit", edit("id = randomUUID();", ""), "");
    assert_eq!(matched.found(), [fact("randomUUID", "c1", &["a7"])]);
}

#[test]
fn names_of_products_in_prose_are_no_needs_and_those_that_were_defined_are() {
    let story = Story::new("go").reads("uses TypeScript\nclass TokenStore {").idles(5);
    let story = story.reply("The TokenStore is plain TypeScript.");
    assert_eq!(story.found(), [fact("TokenStore", "c1", &["a7"])]);
}

#[test]
fn names_that_new_code_gives_itself_are_no_needs() {
    let shown = "  this.retryCount: exitCode, LiveView\n";
    let writes = |new: &str, old: &str| {
        let edit = json!({"new_string": new, "old_string": old});
        let story = Story::new("go").reads(shown).idles(5).call("", "edit", edit, "");
        story.found().iter().map(|f| f.0.clone()).collect::<String>()
    };
    for (new, old, needed) in [
        ("return exitCode;", "", "exitCode"),
        ("const exitCode = 1;\nreturn exitCode;", "", ""),
        ("const exitCode = 1;", "return exitCode;", "exitCode"),
        ("x = this.retryCount;", "", "this.retryCount"),
        ("this.retryCount = 1;", "", ""),
        ("if this.retryCount == 1 {}", "", "this.retryCount"),
        ("exitCode := run()\nreturn exitCode", "", ""),
        ("use(LiveView);", "", "LiveView"),
        ("  // as LiveView does", "", ""),
        ("  // as exitCode does", "", "exitCode"),
    ] {
        assert_eq!(writes(new, old), needed, "{new} instead of {old}");
    }
}

#[test]
fn a_path_below_a_package_is_known_from_its_own_folder() {
    let reads = |shown: &str| {
        let story = Story::new("see packages/tui/test/wrap.test.ts").idles(3).reads(shown).idles(2);
        let file = json!({"path": "packages/tui/test/wrap.test.ts"});
        story.call("", "read", file, "").found().len()
    };
    for (shown, needs) in [
        ("test/wrap.test.ts(9,5): error TS2353", 0),
        ("../tui/test/wrap.test.ts(9,5): error TS2353", 0),
        // The end of another path.
        ("packages/cli/test/wrap.test.ts(9,5): error TS2353", 1),
        ("wrap.test.ts failed", 1),
    ] {
        assert_eq!(reads(shown), needs, "{shown}");
    }
}

#[test]
fn values_of_a_tools_own_schema_are_no_needs() {
    let story = Story::new("go").reads("files_with_matches").idles(5);
    let modes = ["files_with_matches", "content"].repeat(3).into_iter();
    let grep = |story: Story, mode| story.call("", "grep", json!({"output_mode": mode}), "");
    let story = modes.fold(story, grep);
    assert_eq!(story.found(), []);
}

#[test]
fn an_argument_that_repeats_one_of_another_tool_was_filled_in_by_the_program() {
    let plan = format!("# Plan\nchange parse_token\n{}", "step after step\n".repeat(80));
    let story = Story::new("go").reads("fn parse_token() {}").idles(1);
    let story = story.call("", "write", json!({"file_path": "p", "content": plan.clone()}), "");
    let story = story.idles(5).call("", "show_plan", json!({"plan": plan}), "");
    assert_eq!(story.found(), []);
}

#[test]
fn what_a_compaction_left_out_is_still_needed() {
    let summary = json!({"type": "recorded_compaction", "summary": "kept_token"});
    let story = Story::new("go").reads("kept_token lost_token").line(summary);
    let story = story.idles(5).reply("`kept_token` and `lost_token`");
    assert_eq!(story.found(), [fact("kept_token lost_token", "c1", &["a7"])]);
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
fn an_edit_needs_what_only_the_agent_itself_wrote() {
    let write = json!({"file_path": "t", "content": "create_message(1)"});
    let edit = json!({"old_string": "create_message(1)", "new_string": ""});
    let story =
        Story::new("go").call("", "write", write, "ok").idles(5).call("", "edit", edit, "ok");
    assert_eq!(story.found(), [fact("create_message", "a1", &["a7"])]);
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
    assert_eq!(story.found(), [fact("Mend the login page", "a1", &["a7"])]);
    assert_eq!(facts[0].kind, FactKind::Todo);
}

#[test]
fn a_report_needs_that_a_command_was_run() {
    let run = json!({"cmd": "npm test -- --run src/login.test.ts"});
    let story = Story::new("go").call("", "shell", run, "ok").idles(5);
    let story = story.reply("Done. Verified with:\n- `npm test -- --run src/login.test.ts`");
    assert_eq!(story.found(), [fact("login npm src", "a1", &["a7"])]);
}

#[test]
fn a_task_is_taken_up_in_other_words() {
    let task = "- transcripts with malformed fences do not crash the renderer";
    let later = "Next a case for it: malformed fences must not crash rendering at all.";
    let story = Story::new("go").reads(task).idles(5).reply(later);
    let facts = story.facts();
    assert_eq!(story.found(), [fact("malform fenc crash render", "c1", &["a7"])]);
    assert_eq!((facts[0].kind, facts[0].tokens.len()), (FactKind::Constraint, 0));
    // Shown again in between.
    let again = Story::new("go").reads(task).idles(3).reads("malformed fences crash").idles(1);
    assert_eq!(again.reply(later).found(), []);
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
fn a_decision_is_taken_up_and_an_announcement_is_not() {
    let later = "The compaction threshold now is in both generated paths.";
    let after = |said: &str| Story::new("go").reply(said).idles(5).reply(later).found();
    let decided = after("I will write the compaction threshold into both generated paths.");
    assert_eq!(decided, [fact("compaction threshold generat path", "a1", &["a7"])]);
    assert_eq!(after("Now I write the compaction threshold into both generated paths."), []);
    // Commands and trailers of commits are written the same way each time.
    let command = "git add both generated paths && git commit with the compaction threshold";
    assert_eq!(after(command), []);
    assert_eq!(after("Compaction-Threshold-By: both generated paths <a@b>"), []);
}

#[test]
fn a_cleared_conversation_starts_anew() {
    let story = Story::new("go").reads("parse_token").line(json!({"type": "clear"}));
    let story = story.user("u2", "go on").idles(6).reply("`parse_token`");
    assert_eq!(story.found(), []);
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
fn a_result_in_another_window_than_its_call_is_no_trouble() {
    let story = Story::new("go").idles(9).call("", "task", json!({}), "");
    let result = json!({"type": "tool", "call_id": "c10", "output": "parse_token", "agent": "x"});
    let reply = json!({"type": "assistant", "id": "x1", "text": "`parse_token`", "agent": "x"});
    let story = story.line(result).line(reply);
    assert_eq!(story.found(), []);
}

#[test]
fn given_facts_stay() {
    let story = Story::new("go").reads("parse_token").idles(5).reply("`parse_token`");
    let story = story.line(json!({
        "type": "fact", "id": "f", "kind": "goal", "tokens": ["x"], "arises": "u1",
    }));
    assert_eq!(story.facts().len(), 1);
}
