//! `ctxbench sessions` and `ctxbench checkpoints` on a store that the example agent wrote.

use crate::common;
use crate::embedding::conversation;

use common::Folder;
use ctxbench_kit::store::{NewPart, NewSession, Store};
use serde_json::Value;

/// An agent's folder after five prompts, two of which wrote a file, and a compaction.
pub(crate) fn worked() -> Folder {
    let here = Folder::new();
    here.write("a.txt", "first");
    let call = |text: &str| format!(r#"call write {{"path":"a.txt","text":"{text}"}}"#);
    let long = format!("Remember this: {}", "the port is 8443; ".repeat(30));
    conversation(&here.path(""), vec![long, call("second"), call("third"), "more".into()]);
    here
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

fn text<'a>(v: &'a Value, key: &str) -> &'a str {
    v[key].as_str().unwrap_or_else(|| panic!("no {key} in {v}"))
}

fn end(id: &str) -> &str {
    &id[id.len() - 6..]
}

#[test]
fn a_person_sees_names_and_goes_back_and_nothing_is_lost() {
    let here = worked();
    let listed = lines(&here.run("sessions --json").ok().stdout);
    let [session] = &listed[..] else { panic!("{listed:?}") };
    let id = text(session, "id");
    assert_eq!(session["children"][0], Value::Null);
    assert_eq!(session["models"][0], "claude-sonnet-4-6");
    assert!(session["billed_tokens"].as_u64() > Some(1_000), "{session}");
    here.run("sessions list").ok().prints(&[id, "a conversation", "claude-sonnet-4-6"]);

    let shown = here.run(&format!("sessions show {}", end(id))).ok();
    shown.prints(&["Remember this: the port is 8443;", "compaction", "* prompt, with files"]);
    let whole = &lines(&here.run(&format!("sessions show {id} --json")).ok().stdout)[0];
    // Four prompts and answers, two calls with their results, and compactions.
    let log = whole["log"].as_array().unwrap();
    assert_eq!(session["messages"], log.len());
    assert_eq!(log.iter().filter(|m| m["role"] != "compaction").count(), 12);
    let said = format!("Remember this: {}", "the port is 8443; ".repeat(30));
    assert_eq!(text(&log[0], "text").trim(), said.trim(), "whole, where the text is cut");
    let all = log.len() as u64;
    let prompts = whole["checkpoints"].as_array().unwrap();
    assert_eq!(prompts.len(), 4, "one for each prompt");

    // The second prompt wrote "second": before the third the file said so.
    let third = text(&prompts[2], "id");
    here.run(&format!("checkpoints tag {third} --tag good --name works")).ok();
    here.run("checkpoints list --tag good").ok().prints(&[third, r#""works" #good, with files"#]);
    assert_eq!(
        here.run("checkpoints list --tag bad").ok().stdout,
        "no checkpoints with tag \"bad\"\n"
    );
    here.run("checkpoints compare works").ok().prints(&["a.txt", "+1 -1 lines"]);
    here.run(&format!("checkpoints add {id} --name end --tag good")).ok().prints(&["with files"]);

    let done = here.run(&format!("sessions rewind {id} --to works --restore both --json")).ok();
    let done = &lines(&done.stdout)[0];
    assert_eq!(here.read("a.txt"), "second");
    assert_eq!(done["files"][0]["outcome"], "restored");
    let branch = text(done, "branch");
    here.run("sessions").ok().prints(&[id, branch, "a conversation (given up)"]);
    let left = &lines(&here.run(&format!("sessions show {id} --json")).ok().stdout)[0];
    assert_eq!(left["children"][0], branch);
    let last = left["log"].as_array().unwrap().iter().rfind(|m| m["role"] != "compaction");
    assert!(text(last.unwrap(), "text").contains("returned: written"), "the second prompt's end");

    // They part there, and only the branch has what was given up.
    let parting =
        &lines(&here.run(&format!("sessions compare {id} {branch} --json")).ok().stdout)[0];
    let own = |i: usize| parting["sides"][i]["own"].as_array().unwrap().len() as u64;
    assert_eq!(parting["shared"], left["log"].as_array().unwrap().len());
    assert_eq!((own(0), own(1)), (0, all - parting["shared"].as_u64().unwrap()));
    here.run(&format!("sessions compare {id} {branch}")).ok().prints(&["in common", "third"]);

    // The files as they were come back, too.
    let undo = text(done, "undo");
    here.run(&format!("checkpoints restore {undo} --restore code"))
        .ok()
        .prints(&["restored  a.txt"]);
    assert_eq!(here.read("a.txt"), "third");
    // A fork of the branch at its second message.
    let log = left["log"].as_array().unwrap();
    let at = text(&log[1], "id");
    let fork = &lines(&here.run(&format!("sessions fork {id} --at {at} --json")).ok().stdout)[0];
    assert_eq!(text(fork, "forked_at"), at);
    let forked =
        &lines(&here.run(&format!("sessions show {} --json", text(fork, "id"))).ok().stdout)[0];
    assert_eq!((&forked["messages"], &forked["parent"]), (&2.into(), &id.into()));
}

/// A store with one message, closed.
fn small(here: &Folder) -> (String, String) {
    let mut store = Store::open(here.path("s.db")).unwrap();
    let id = store.create_session(&NewSession::default()).unwrap();
    let part = [NewPart::text("hello")];
    let (m, _) = store.append_message(id, ctxbench_core::block::Role::User, &part).unwrap();
    (id.to_string(), m.to_string())
}

#[test]
fn what_cannot_be_is_one_line_that_says_what_to_do() {
    let here = Folder::new();
    let fails = |line: &str, words: &[&str]| {
        let out = here.run(line).fails_with(2);
        out.says(words);
        assert_eq!(out.stderr.trim_end().lines().count(), 1, "{}", out.stderr);
    };
    fails("sessions", &["there is no store .agent/sessions.db", "--store FILE"]);
    let (id, message) = small(&here);
    fails(
        "sessions show 0000 --store s.db",
        &["has no session \"0000\"", "sessions list --store s.db"],
    );
    let other = if id.ends_with('Z') { 'Y' } else { 'Z' };
    fails(&format!("sessions show {other} --store s.db"), &["has no session"]);
    fails(&format!("sessions show {} --store s.db", &id[25..]), &["too short"]);
    fails(&format!("sessions fork {id} --at NONE --store s.db"), &["no message \"NONE\""]);
    fails(
        &format!("sessions rewind {id} --to NONE --restore both --store s.db"),
        &["no message and no checkpoint \"NONE\""],
    );
    fails("checkpoints show none --store s.db", &["no checkpoint \"none\"", "checkpoints list"]);
    fails(
        &format!("sessions rewind {id} --to {message} --restore code --store s.db"),
        &["no checkpoint with files follows", "restore the conversation alone"],
    );
    // A checkpoint of a session without a folder is of its conversation.
    here.run(&format!("checkpoints add {id} --name n --store s.db"))
        .ok()
        .prints(&["conversation only"]);
    fails("checkpoints restore n --restore code --store s.db", &["holds no files"]);
    fails(
        &format!("checkpoints add {id} --name n --store s.db"),
        &["is called \"n\" already", "choose another name"],
    );
    here.run("checkpoints tag n --name n --tag same --store s.db").ok();
    // A fork has a checkpoint of that name, too, and its own id.
    here.run(&format!("sessions fork {id} --store s.db")).ok();
    fails(
        "checkpoints show n --store s.db",
        &["several checkpoints are called \"n\"", "give an id"],
    );
    here.run(&format!("sessions rewind {id} --to {message} --restore conversation --store s.db"))
        .ok()
        .prints(&["nothing came later"]);

    let whole = std::fs::read(here.path("s.db")).unwrap();
    let patched = |name: &str, at: usize, bytes: &[u8]| {
        let mut file = whole.clone();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        here.write(name, file);
    };
    // Offsets of https://www.sqlite.org/fileformat.html#the_database_header.
    patched("newer.db", 60, &99u32.to_be_bytes());
    fails("sessions --store newer.db", &["newer.db has format 99", "use the newer program"]);
    patched("other.db", 68, b"abcd");
    fails("sessions --store other.db", &["other.db is a database of another program"]);
    patched("hole.db", 4096, &[0xff; 4096]);
    fails(
        "sessions --store hole.db",
        &["hole.db", "the file is damaged, restore it from a backup"],
    );
    here.write("half.db", &whole[..whole.len() / 2 + 100]);
    fails(
        "sessions --store half.db",
        &["half.db", "the file is damaged, restore it from a backup"],
    );
    here.write("text.db", "not a database at all");
    fails("sessions --store text.db", &["is not an SQLite database", "give another path"]);
    here.write("empty.db", "");
    fails("sessions --store empty.db", &["empty.db is empty"]);
    fails("sessions show", &["missing <ID>: ctxbench sessions show", "<ID>"]);
    fails("sessions rewind 1", &["missing --to <MESSAGE|CHECKPOINT> and --restore <RESTORE>"]);
    fails("checkpoints add 1", &["missing --name <NAME>"]);
}

#[test]
fn options_of_the_file_reach_the_commands_below() {
    let here = Folder::new();
    let (id, _) = small(&here);
    here.write("ctxbench.toml", "[sessions]\nstore = \"s.db\"\njson = true\n");
    let listed = lines(&here.run("sessions list").ok().stdout);
    assert_eq!(text(&listed[0], "id"), id);
    // The command line has the last word, wherever it stands.
    here.run("sessions list --store none.db").fails_with(2).says(&["no store none.db"]);
    here.run("sessions list --no-config").fails_with(2).says(&["no store .agent/sessions.db"]);
}
