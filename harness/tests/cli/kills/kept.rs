//! What people have and no command can make again, their files and their history of prompts: killed
//! at any moment, a command that changes them loses nothing.

use std::collections::BTreeMap;
use std::process::Child;

use ctxbench_core::block::Role;
use ctxbench_core::rng::SplitMix64;
use ctxbench_kit::checkpoint::{EditCheckpoints, Keep, Snapshots};
use ctxbench_kit::rewind::manifest;
use ctxbench_kit::store::{NewCheckpoint, NewPart, NewSession, Position, Store};
use serde_json::{Value, json};

use super::{fill, is_leftover, kill, kills, start, whole};
use crate::common::Folder;

/// Enough that a kill hits the middle of them.
const FILES: usize = 24;

/// What the files say after one of the two prompts.
fn written(prompt: &str) -> BTreeMap<String, String> {
    (0..FILES).map(|n| (format!("file-{n}"), format!("{prompt} {n}"))).collect()
}

/// The files of the folder that are not the agent's.
fn files(here: &Folder) -> BTreeMap<String, String> {
    let all = here.files("").into_iter().filter(|(name, _)| !name.starts_with(".agent"));
    all.map(|(name, bytes)| (name, String::from_utf8(bytes).unwrap())).collect()
}

/// A folder after two prompts, each of which wrote all files, and the checkpoint before the second.
fn worked() -> (Folder, String) {
    let here = Folder::new();
    let beside = here.path(".agent");
    let mut files = EditCheckpoints::open(&here.path(""), &beside, Keep::default()).unwrap();
    let mut store = Store::open(beside.join("sessions.db")).unwrap();
    let directory = here.path("").canonicalize().unwrap().display().to_string();
    let session = store.create_session(&NewSession { directory, ..NewSession::default() }).unwrap();
    let mut second = String::new();
    for prompt in ["first", "second"] {
        let number = files.begin(prompt, 0).unwrap();
        for (name, text) in written(prompt) {
            files.before_edit(&name).unwrap();
            here.write(&name, text);
        }
        let said = [(Role::User, prompt), (Role::Assistant, "done")]
            .map(|(role, text)| (role, vec![NewPart::text(text)]));
        let ids = store.append_messages(session, &said).unwrap();
        let new = NewCheckpoint::new(Position::Before(ids[0]), manifest(Some(number)));
        second = store.add_checkpoint(session, &new).unwrap().to_string();
    }
    (here, second)
}

fn lines(here: &Folder, line: &str) -> Vec<Value> {
    let out = here.run(line).ok().stdout;
    out.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

/// The checkpoints called so that a person is shown, oldest first.
fn before_going_back(here: &Folder) -> Vec<String> {
    let mut all = lines(here, "checkpoints --json");
    all.retain(|c| c["name"] == "before rewind");
    all.iter().map(|c| c["id"].as_str().unwrap().to_string()).collect()
}

/// Everything in a folder, which is in it again when this has been done: a session knows its folder
/// by its path.
fn and_back<T>(here: &Folder, look: impl FnOnce() -> T) -> T {
    let now = here.files("");
    let out = look();
    fill(here, &now);
    out
}

/// Waits until one of the files is another than it was, or the command has ended.
fn wait_for_change(child: &mut Child, here: &Folder, n: u64) {
    let text = || std::fs::read(here.path(&format!("file-{n}"))).ok();
    let before = text();
    while text() == before && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
}

/// What a person can do after a kill: a checkpoint that is shown has the files of before, whether
/// the same command is given again or not.
fn what_was_there_can_be_reached(here: &Folder, line: &str) {
    if files(here) == written("second") {
        return;
    }
    let has_them = |id: &String| {
        and_back(here, || {
            here.run(&format!("checkpoints restore {id} --restore code")).ok();
            files(here) == written("second")
        })
    };
    let all = before_going_back(here);
    let first = all.first().expect("a checkpoint is named");
    assert!(has_them(first), "the first of {all:?} has other files");
    let newest = lines(here, "sessions --json").pop().unwrap();
    let show = format!("sessions show {} --json", newest["id"].as_str().unwrap());
    let shown = lines(here, &show)[0]["checkpoints"].to_string();
    assert!(shown.contains(first), "{first} is not among {shown}");
    if !has_gone_back(here) {
        and_back(here, || {
            here.run(line).ok();
            assert_eq!(files(here), written("first"));
            let all = before_going_back(here);
            assert!(has_them(&all[0]), "the first of {all:?} has other files");
        });
    }
}

/// Whether the conversation has: what it gave up is a second session, with ids of its own.
fn has_gone_back(here: &Folder) -> bool {
    lines(here, "sessions --json").len() > 1
}

#[test]
fn a_restoration_that_is_killed_loses_no_file_and_can_be_made_again() {
    for what in ["code", "both"] {
        let (here, second) = worked();
        let before = here.files("");
        let line = format!("checkpoints restore {second} --restore {what}");
        let longest = whole(start(&here, &line));
        assert_eq!((files(&here), has_gone_back(&here)), (written("first"), what == "both"));
        let mut random = SplitMix64::new(17);
        let (mut killed, mut middle, mut later) = (0, 0, 0);
        while killed < kills() || middle == 0 && killed < 40 * kills() {
            fill(&here, &before);
            for _ in 0..=random.below(2) {
                if has_gone_back(&here) {
                    break;
                }
                let mut child = start(&here, &line);
                let after = match random.below(2) {
                    0 => random.below(longest),
                    _ => {
                        wait_for_change(&mut child, &here, random.below(FILES as u64));
                        random.below(8)
                    }
                };
                let died = kill(child, None, after);
                killed += u64::from(died);
                let mut now = files(&here);
                now.retain(|name, _| !is_leftover(name));
                let (new, old) = (written("first"), written("second"));
                assert!(now.keys().eq(old.keys()), "a file is lost: {now:?}");
                let either =
                    |(name, text): (&String, &String)| *text == new[name] || *text == old[name];
                assert!(now.iter().all(either), "{now:?}");
                middle += u64::from(died && now != new && now != old);
                later += u64::from(died && now == new);
                what_was_there_can_be_reached(&here, &line);
            }
            if !has_gone_back(&here) {
                here.run(&line).ok();
            }
            assert_eq!(files(&here), written("first"));
            let half = |name: &String| is_leftover(name) || name.contains(".tmp-");
            let left: Vec<String> = here.files("").into_keys().filter(half).collect();
            assert_eq!(left, Vec::<String>::new());
        }
        println!(
            "{killed} kills of a restoration of {what}, {middle} in the middle, {later} later"
        );
        assert!(middle > 0, "the middle of the files cannot be hit");
    }
}

#[test]
fn a_history_of_prompts_that_is_trimmed_and_killed_is_the_former_one_or_the_new_one() {
    let here = Folder::new();
    let line = |n: usize| {
        let text = format!("prompt {n} {}", "and so on ".repeat(10));
        format!("{}\n", json!({"session_id": "s", "ts": 1_778_488_037 + n, "text": text}))
    };
    let before: String = (0..20_000).map(line).collect();
    let limit = before.len();
    let run = || {
        let line = format!("prompts history.jsonl --max-bytes {limit} --session s --add newest");
        start(&here, &line)
    };
    // Owner and text of the newest line; its time is that of the machine. Of the others as many as
    // fit into 80 % of the limit.
    let is_new = |now: &str| {
        let newest = now.split_inclusive('\n').next_back().unwrap();
        let others = &now[..now.len() - newest.len()];
        let dropped = before.len() - others.len();
        let next = before[..dropped].split_inclusive('\n').next_back().unwrap_or_default();
        let most = limit * 80 / 100;
        newest.starts_with(r#"{"session_id":"s","ts":"#)
            && newest.ends_with(",\"text\":\"newest\"}\n")
            && before.ends_with(others)
            && now.len() <= most
            && now.len() + next.len() > most
    };
    here.write("history.jsonl", &before);
    let longest = whole(run());
    assert!(is_new(&here.read("history.jsonl")));
    let mut random = SplitMix64::new(29);
    let (mut killed, mut trimmed, mut rounds) = (0, 0, 0);
    while killed < 4 * kills() {
        here.write("history.jsonl", &before);
        let dir = here.path("");
        let died = match random.below(3) {
            0 => kill(run(), None, random.below(longest)),
            1 => kill(run(), Some((&dir, ".ctxbench-")), random.below(longest / 8 + 1)),
            _ => kill(run(), Some((&dir, ".ctxbench-")), 0),
        };
        let now = here.read("history.jsonl");
        assert!(now == before || is_new(&now), "{} of {} bytes", now.len(), before.len());
        killed += u64::from(died);
        trimmed += u64::from(died && now != before);
        rounds += 1;
        assert!(rounds < 40 + 80 * kills(), "it cannot be hit");
        if now == before {
            assert!(run().wait().unwrap().success());
            assert!(is_new(&here.read("history.jsonl")));
            let names: Vec<String> = here.files("").into_keys().collect();
            assert_eq!(names, ["history.jsonl"]);
        }
    }
    println!("{killed} kills of a history that is trimmed, {trimmed} after that");
}
