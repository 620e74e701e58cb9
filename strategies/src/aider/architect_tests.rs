//! Tests of architect mode: the content of each prompt and the result that is added to the history
//! (docs/sources/aider.md §1.6).

use ctxbench_core::prelude::*;

use crate::testing::{Played, Script, calls, outline, play, text_answer, user};

const PATH: &str = r#"{"path":"a.rs"}"#;

/// A turn that reads, edits and closes, followed by a question that is only answered.
fn script() -> Script {
    Script::new(
        vec![user("m1", "do it"), user("m2", "why?")],
        vec![
            calls("look", "c1", "read_file", PATH),
            calls("plan", "c2", "edit_file", PATH),
            text_answer("closing"),
            text_answer("because"),
        ],
    )
    .outputs(vec!["content".into(), "written, see line 7".into()])
    .files(vec!["file"])
    .memory(vec!["memory"])
    .repo_map(vec!["map"])
}

fn edits(p: &Played) -> Vec<&Request> {
    p.with_purpose(Purpose::Edit)
}

#[test]
fn the_editor_sees_files_and_the_proposal_alone() {
    let p = play("aider:architect=true,editor_model=claude-haiku-4-5", script());
    let edit = edits(&p)[0];
    assert_eq!(
        outline(edit),
        [
            "Base:base",
            "Context:memory",
            "Assistant:Ok.",
            "File:file",
            "Assistant:Ok.",
            "User:plan\nedit_file {\"path\":\"",
        ]
    );
    // The editor's rules follow the proposal. The architect has no rules.
    let asks = |r: &Request| r.blocks.last().unwrap().text.contains("Show every change");
    assert!(asks(edit) && !p.samples().into_iter().any(asks));
    assert_eq!(&*edit.model.name, "claude-haiku-4-5");
    assert!(edit.tools.is_none() && edit.breakpoints.is_empty());
}

#[test]
fn nothing_of_the_edit_comes_back() {
    let p = play("aider:architect=true,auto_accept=false", script());
    assert_eq!(edits(&p).len(), 1, "the user lets nothing but the edit pass");
    let last = p.samples()[3];
    assert_eq!(
        outline(last)[5..],
        [
            "User:do it",
            "Assistant:look",
            "Assistant:read_file {\"path\":\"a.rs\"",
            "User:read_file:\ncontent",
            "Assistant:plan",
            "Assistant:edit_file {\"path\":\"a.rs\"",
            "User:The editor has made thos",
            "Assistant:closing",
            "User:The editor has made thos",
            "Assistant:Ok.",
            "File:file",
            "Assistant:Ok.",
            "User:why?",
        ]
    );
    assert!(p.requests.iter().all(|r| r.blocks.iter().all(|b| !b.text.contains("line 7"))));
}

#[test]
fn accepted_unseen_an_answer_goes_to_the_editor_too() {
    let p = play("aider:architect=true", script());
    let shown: Vec<_> = edits(&p).iter().map(|r| r.blocks.last().unwrap().text.clone()).collect();
    // Neither the reply that asks for a file nor the reply that closes a turn with an edit.
    assert_eq!(shown.len(), 2);
    assert!(shown[0].starts_with("plan\n") && shown[1].starts_with("because\n\nShow every"));
    // Every turn becomes history, so the context ends after the files.
    let blocks = p.engine.context.blocks();
    assert_eq!(blocks.last().unwrap().text.as_ref(), "Ok.");
    assert_eq!(&*blocks[blocks.len() - 2].text, "file");
    assert_eq!(&*blocks[blocks.len() - 4].text, "The editor has made those changes.");
}

#[test]
fn the_programs_table_names_the_editor() {
    let editor = |model, spec: &str| {
        let p = play(spec, script().on(model));
        edits(&p)[0].model.name.to_string()
    };
    assert_eq!(editor("claude-opus-4-6", "aider:architect=true"), "claude-sonnet-4-5");
    assert_eq!(editor("o3", "aider:architect=true"), "gpt-4.1");
    assert_eq!(editor("claude-sonnet-4-5", "aider:architect=true"), "claude-sonnet-4-5");
    let set = "aider:architect=true,editor_model=claude-haiku-4-5";
    assert_eq!(editor("claude-opus-4-6", set), "claude-haiku-4-5");
}

#[test]
fn no_ping_follows_an_edit_until_the_program_is_started_again() {
    let pings = |architect: bool, actions: Vec<Action>| {
        let spec = format!(
            "aider:cache_prompts=true,keepalive_pings=1,auto_accept=false,architect={architect}"
        );
        let replies = vec![
            calls("plan", "c1", "edit_file", PATH),
            text_answer("closing"),
            text_answer("yes"),
        ];
        let p = play(&spec, Script::new(actions, replies));
        p.with_purpose(Purpose::Ping).len()
    };
    let idle = || Action::Idle { ms: 600_000 };
    let once = || vec![user("m1", "do it"), idle()];
    let again = || vec![user("m1", "do it"), idle(), Action::Restart, user("m2", "go on"), idle()];
    assert_eq!((pings(false, once()), pings(true, once())), (1, 0));
    assert_eq!((pings(false, again()), pings(true, again())), (2, 1));
}

#[test]
fn a_prompt_too_large_for_the_editor_is_a_question() {
    // At this scale, gpt-4.1 takes a thousand tokens instead of a million, and Haiku two hundred.
    let long = || {
        Script::new(
            vec![user("m1", "do it")],
            vec![calls(&"word ".repeat(300), "c1", "edit_file", PATH), text_answer("closing")],
        )
    };
    let asked = |editor: &str, oversize: &str| {
        let spec = format!("aider:architect=true,editor_model={editor},oversize={oversize}");
        let p = play(&spec, long().on("gpt-4.1").scaled(0.001));
        (p.interventions(), edits(&p).len())
    };
    assert_eq!(asked("gpt-4.1", "decline"), (0, 1));
    assert_eq!(asked("claude-haiku-4-5", "proceed"), (1, 1));
    assert_eq!(asked("claude-haiku-4-5", "decline"), (1, 0));
}
