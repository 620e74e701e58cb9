//! Every command that writes files, killed at seeded moments: what stands under a name of the
//! command is what was there before or what a whole run puts there, files of other people stay, and
//! the next run clears up and ends as if nothing had happened.
//!
//! `CTXBENCH_KILLS=100 cargo test --test cli -- kills:: --nocapture` kills each
//! command so often. Formats of sessions are killed in `crash.rs`, a run that goes on in `scale.rs`.
#![cfg(unix)]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use ctxbench_core::rng::SplitMix64;
use serde_json::{Value, json};

use crate::common::Folder;
use crate::{fake_agent, sdks};

#[path = "kills/kept.rs"]
mod kept;

/// The files of a folder, and its folders with a `/` behind their names.
type Files = BTreeMap<String, Vec<u8>>;

/// A command and the folder that it is given.
struct Writer {
    line: &'static str,
    /// Fills the folder: what is read, what stands where the command writes, and files of people.
    prepare: fn(&Folder),
    /// A folder in which something with such a name appears shortly before the command ends.
    sign: (&'static str, &'static str),
}

/// Each writes into its place for the second time, with other content.
const WRITERS: [Writer; 8] = [
    Writer {
        line: "run login-bug login-bug-tight --strategy codex --strategy none --transport direct \
               --jobs 2 --out out --trace t.jsonl --status s.jsonl",
        prepare: |here| {
            let other = "run login-bug --strategy aider --transport direct --out out";
            here.run(&format!("{other} --trace t.jsonl --status s.jsonl")).ok();
            here.write("out/notes.txt", "mine");
            here.write("out/plots/mine/sketch.svg", "mine");
        },
        sign: ("", ".out.new-"),
    },
    Writer {
        line: "run login-bug login-bug-tight --strategy codex --strategy none --transport direct \
               --out out --cache cache",
        prepare: |here| {
            let other = "run login-bug-tight --strategy aider --transport direct";
            here.run(&format!("{other} --out out --cache cache")).ok();
        },
        sign: ("", ".out.new-"),
    },
    // A cache that is new, too.
    Writer {
        line: "run login-bug --strategy codex --transport direct --out out --cache cache",
        prepare: |here| here.write("notes.txt", "mine"),
        sign: ("", "cache"),
    },
    Writer {
        line: "merge part-1 part-2 --out out",
        prepare: |here| {
            let line = "run login-bug login-bug-tight --strategy none --transport direct";
            here.run(&format!("{line} --shard 1/2 --out part-1")).ok();
            here.run(&format!("{line} --shard 2/2 --out part-2")).ok();
            here.run("merge part-1 --partial --out out").ok();
            here.write("out/notes.txt", "mine");
        },
        sign: ("", ".out.new-"),
    },
    Writer {
        line: "report results --format csv -o report",
        prepare: |here| {
            here.run("run login-bug --strategy none --transport direct --out results").ok();
            here.run("report results --format csv -o report").ok();
            here.write("report/notes.txt", "mine");
            here.run("run login-bug-tight --strategy none --transport direct --out results").ok();
        },
        sign: ("report", ".ctxbench-"),
    },
    Writer {
        line: "import second.jsonl -o session.jsonl --force",
        prepare: |here| {
            recording(here, "first.jsonl", "claude-code");
            recording(here, "second.jsonl", "codex");
            here.run("import first.jsonl -o session.jsonl").ok();
        },
        sign: ("", ".ctxbench-"),
    },
    Writer {
        line: "import recordings -o sessions/",
        prepare: |here| {
            recording(here, "recordings/first.jsonl", "claude-code");
            here.run("import recordings -o sessions/").ok();
            here.write("sessions/notes.txt", "mine");
            recording(here, "recordings/second.jsonl", "codex");
        },
        sign: ("sessions", ".ctxbench-"),
    },
    Writer {
        line: "gate out --baseline baseline.json --store",
        prepare: |here| {
            let line = "run login-bug --transport direct --out out";
            here.run(&format!("{line} --strategy none")).ok();
            here.run("gate out --baseline baseline.json --store").ok();
            here.run(&format!("{line} --strategy none --strategy codex")).ok();
        },
        sign: ("", ".ctxbench-"),
    },
];

/// A recording of a program.
fn recording(here: &Folder, name: &str, program: &str) {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/recordings").join(program);
    let all = std::fs::read_dir(data).unwrap().map(|e| e.unwrap().path());
    let first = all.filter(|p| p.extension().is_some_and(|e| e == "jsonl")).min().unwrap();
    here.write(name, std::fs::read(first).unwrap());
}

fn kills() -> u64 {
    let given = std::env::var("CTXBENCH_KILLS").ok();
    given.map_or(4, |n| n.parse().expect("CTXBENCH_KILLS is a number"))
}

/// A folder with these files.
fn folder_of(files: &Files) -> Folder {
    let here = Folder::new();
    fill(&here, files);
    here
}

/// Puts these files into a folder and nothing else.
fn fill(here: &Folder, files: &Files) {
    for entry in std::fs::read_dir(here.path("")).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => std::fs::remove_dir_all(path).unwrap(),
            false => std::fs::remove_file(path).unwrap(),
        }
    }
    for (name, bytes) in files {
        match name.strip_suffix('/') {
            Some(dir) => std::fs::create_dir_all(here.path(dir)).unwrap(),
            None => here.write(name, bytes),
        }
    }
}

fn start(here: &Folder, line: &str) -> Child {
    let mut command = here.run(line).command();
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Waits a little: a turn is some microseconds.
fn turns(n: u64) {
    (0..n * 1_000).for_each(|i| {
        std::hint::black_box(i);
    });
}

/// How many turns a command takes that nobody disturbs.
fn whole(mut child: Child) -> u64 {
    for n in 1.. {
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "{status}");
            return n;
        }
        turns(1);
    }
    unreachable!("it ends")
}

/// Waits until something whose name begins so is in a folder, or the command has ended.
fn wait_for(child: &mut Child, (dir, begin): (&Path, &str)) {
    let seen = || {
        let all = std::fs::read_dir(dir).into_iter().flatten().flatten();
        all.into_iter().any(|e| e.file_name().to_string_lossy().starts_with(begin))
    };
    while !seen() && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
}

/// Kills a command after so many turns, from its beginning or, where there is one, from the moment
/// on in which a sign appears. Whether it had not ended before.
fn kill(mut child: Child, sign: Option<(&Path, &str)>, after: u64) -> bool {
    if let Some(sign) = sign {
        wait_for(&mut child, sign);
    }
    turns(after);
    child.kill().unwrap();
    child.wait().unwrap().code().is_none()
}

/// Whether a name is one that only leftovers have.
fn is_leftover(name: &str) -> bool {
    let of_swap = |part: &str| {
        let number = part.rsplit_once('-').is_some_and(|(_, n)| n.parse::<u32>().is_ok());
        number && (part.starts_with(".out.new-") || part.starts_with(".out.old-"))
    };
    name.split('/').any(|part| {
        let unfinished = part.starts_with(".ctxbench-") && part.ends_with(".tmp");
        unfinished || part == "out.partial" || of_swap(part)
    })
}

/// What two runs write differently: times of the machine, alone or in a row of a cache.
fn is_timed(name: &str) -> bool {
    name.ends_with("/timings.json") || name.ends_with(".run.json")
}

/// Whether such a file ends where it should: JSON, and behind that of a row its checksum.
fn is_whole(name: &str, bytes: &[u8]) -> bool {
    let is_json = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).is_ok();
    if !name.ends_with(".run.json") {
        return is_json(bytes);
    }
    let json = bytes.split(|b| *b == b'\n').next().unwrap();
    let mut crc = flate2::Crc::new();
    crc.update(json);
    is_json(json) && bytes[json.len()..] == *format!("\n{:08x}\n", crc.sum()).as_bytes()
}

/// What a kill may leave: every file as it was or as it will be, results all of one kind.
fn nothing_is_half(now: &Files, before: &Files, after: &Files) {
    for (name, bytes) in now.iter().filter(|(name, _)| !is_leftover(name)) {
        let old = before.get(name).is_some_and(|b| b == bytes);
        let new = after.get(name).is_some_and(|b| b == bytes);
        let timed = || after.contains_key(name) && is_whole(name, bytes);
        assert!(old || new || is_timed(name) && timed(), "{name} is half or nobody's");
    }
    for (name, bytes) in before {
        // Former results on their way out stand beside their place.
        let moved = |other: &String| {
            let below = other.strip_prefix(".out.old-").and_then(|o| o.split_once('/'));
            below.is_some_and(|(_, below)| name.strip_prefix("out/") == Some(below))
        };
        let replaced = || after.get(name).is_none_or(|b| b != bytes) || name.ends_with('/');
        let kept = now.contains_key(name) || now.iter().any(|(n, b)| moved(n) && b == bytes);
        let given_up = || replaced() && now.contains_key("out/.ctxbench");
        assert!(kept || given_up(), "{name} is lost");
    }
    for former in now.keys().filter(|n| n.starts_with(".out.old-") && n.ends_with('/')) {
        let whole = former.trim_end_matches('/').contains('/') || {
            now.contains_key(&format!("{former}.ctxbench"))
        };
        assert!(whole, "nobody can tell any more what {former} is");
    }
    let of_results = |files: &Files| -> BTreeSet<String> {
        let all = files.keys().filter(|n| n.starts_with("out/") && !is_leftover(n));
        let all = all.filter(|n| !n.contains("mine"));
        all.filter(|n| !n.ends_with("notes.txt") && !n.ends_with("/mine")).cloned().collect()
    };
    let is = of_results(now);
    let one = is.is_empty() || is == of_results(before) || is == of_results(after);
    assert!(one, "results are mixed: {is:?}");
}

fn nothing_is_left(now: &Files, after: &Files) {
    let names = |files: &Files| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(now), names(after));
    for (name, bytes) in now.iter().filter(|(name, _)| !is_timed(name)) {
        assert!(*bytes == after[name], "{name} is another than without kills");
    }
}

#[test]
#[ignore = "nightly: slow"]
fn killed_at_any_moment_a_command_leaves_old_or_new_and_the_next_run_clears_up() {
    for writer in &WRITERS {
        let Writer { line, prepare, sign } = writer;
        let first = Folder::new();
        prepare(&first);
        let before = first.files("");
        let longest = whole(start(&first, line));
        let after = first.files("");
        let mut random = SplitMix64::new(line.bytes().map(u64::from).sum());
        let (mut killed, mut ended) = (0, 0);
        while killed < kills() {
            let here = folder_of(&before);
            // Some right after each other, before anything ends.
            for _ in 0..=random.below(2) {
                let child = start(&here, line);
                let dir = here.path(sign.0);
                let died = match random.below(2) {
                    0 => kill(child, None, random.below(longest)),
                    _ => kill(child, Some((&dir, sign.1)), random.below(longest / 8 + 1)),
                };
                if died {
                    killed += 1
                } else {
                    ended += 1
                }
                nothing_is_half(&here.files(""), &before, &after);
            }
            here.run(line).ok();
            nothing_is_left(&here.files(""), &after);
            assert!(ended < 40 + 20 * kills(), "{line}: it cannot be hit");
        }
        println!("{killed} kills, {ended} ended before theirs: {line}");
    }
}

/// Answers every request on every connection with one reply, for as long as the test runs.
fn provider() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let reply = json!({
        "id": "m", "type": "message", "role": "assistant", "model": "claude-sonnet-4-6",
        "content": [{"type": "text", "text": "ok"}], "stop_reason": "end_turn",
        "usage": {"input_tokens": 7, "output_tokens": 2}
    })
    .to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let reply = reply.clone();
            std::thread::spawn(move || {
                let mut stream = BufReader::new(stream.unwrap());
                while read_body(&mut stream).is_some() {
                    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
                    let text = format!("{head}content-length: {}\r\n\r\n{reply}", reply.len());
                    if stream.get_mut().write_all(text.as_bytes()).is_err() {
                        break;
                    }
                }
            });
        }
    });
    url
}

/// The body of a message with its length in its head; `None` = the other side has ended.
fn read_body(from: &mut BufReader<TcpStream>) -> Option<String> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if from.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let (name, value) = line.trim_end().split_once(':').unwrap_or_default();
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().unwrap();
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body).ok()?;
    Some(String::from_utf8(body).unwrap())
}

#[test]
fn a_recorder_that_is_killed_leaves_every_exchange_that_was_over_before_the_last() {
    let upstream = provider();
    let mut random = SplitMix64::new(11);
    let (mut killed, mut found) = (0, 0);
    while killed < kills() {
        let here = Folder::new();
        let line = format!("record --out r.jsonl --upstream {upstream}");
        let mut recorder = sdks::Serving::run(&here, &line);
        let stream = TcpStream::connect(recorder.url.trim_start_matches("http://")).unwrap();
        let mut stream = BufReader::new(stream);
        let asked = 1 + random.below(12);
        let mut answered = 0;
        for n in 0..=asked {
            let messages = json!([{"role": "user", "content": format!("question {n}")}]);
            let body = json!({"model": "claude-sonnet-4-6", "max_tokens": 9, "messages": messages});
            let body = body.to_string();
            let head = "POST /v1/messages HTTP/1.1\r\nhost: localhost\r\n\
                anthropic-version: 2023-06-01\r\ncontent-type: application/json\r\n";
            let text = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
            stream.get_mut().write_all(text.as_bytes()).unwrap();
            // The last one is under way, however far.
            if n == asked {
                turns(random.below(500));
                break;
            }
            answered += u64::from(read_body(&mut stream).is_some());
        }
        recorder.child.kill().unwrap();
        recorder.child.wait().unwrap();
        killed += 1;
        assert_eq!(answered, asked);
        let text = here.read("r.jsonl");
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let lines = whole.lines().map(|l| serde_json::from_str::<Value>(l).expect("a whole line"));
        let exchanges = lines.filter(|l| l["type"] == "exchange").count() as u64;
        assert!(exchanges >= answered - 1, "{exchanges} of {answered}");
        found += exchanges;
        if exchanges > 0 {
            here.run("import r.jsonl -o s.jsonl").ok();
            assert!(here.read("s.jsonl").contains("question 0"));
        }
        // Nobody writes over it.
        here.run(&format!("record --out r.jsonl --upstream {upstream} -- true")).fails_with(2);
        assert_eq!(here.read("r.jsonl"), text);
    }
    println!("{killed} kills of record, {found} exchanges kept");
    assert!(found > 0);
}

#[test]
#[ignore = "needs python3"]
fn a_drive_that_is_killed_leaves_no_half_case_and_the_next_one_clears_up() {
    let first = Folder::new();
    let prepare = |here: &Folder| {
        here.write("cases/notes.txt", "mine");
        std::fs::create_dir_all(here.path("tmp")).unwrap();
        let agent = fake_agent::describe(here, "wraps", "acp", "strategy = \"codex\"");
        format!("drive login-bug {agent} --record cases --out out")
    };
    let start = |here: &Folder, line: &str| {
        let run = here.run(line).env("TMPDIR", &here.path("tmp").display().to_string());
        let mut command = run.command();
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let line = prepare(&first);
    let longest = whole(start(&first, &line));
    let case = "cases/codex/0.169.0/login-bug-fake-wraps-acp.json";
    assert!(first.path(case).exists());
    let mut random = SplitMix64::new(13);
    let (mut killed, mut cases) = (0, 0);
    while killed < kills() {
        let here = Folder::new();
        let line = prepare(&here);
        for _ in 0..=random.below(2) {
            let cases_made = here.path("cases/codex/0.169.0");
            let child = start(&here, &line);
            let died = match random.below(2) {
                0 => kill(child, None, random.below(longest)),
                _ => kill(child, Some((&cases_made, "")), random.below(longest / 8 + 1)),
            };
            killed += u64::from(died);
            if here.path(case).exists() {
                here.json(case);
                cases += 1;
            }
            assert_eq!(here.read("cases/notes.txt"), "mine");
            if here.path("out").exists() {
                here.json("out/results.json");
            }
        }
        assert!(start(&here, &line).wait().unwrap().success());
        fake_agent::nothing_stays(&here);
        let names: BTreeSet<String> = here.files("").into_keys().collect();
        let left: Vec<&String> = names.iter().filter(|n| is_leftover(n)).collect();
        assert_eq!(left, Vec::<&String>::new());
        here.json(case);
        here.run("conform cases").ok();
    }
    println!("{killed} kills of drive, a case after {cases} of them");
}

#[test]
fn a_merge_that_is_told_to_end_leaves_former_results_or_new_ones_and_says_which() {
    let merge = WRITERS.iter().find(|w| w.line.starts_with("merge")).unwrap();
    let first = Folder::new();
    (merge.prepare)(&first);
    let before = first.files("");
    let longest = whole(start(&first, merge.line));
    let after = first.files("");
    let mut random = SplitMix64::new(23);
    let (mut round, mut told, mut finished) = (0, 0, 0);
    // It may be faster than we are.
    while round < 2 * kills() || told == 0 && round < 200 {
        let here = folder_of(&before);
        let mut run = here.run(merge.line).command();
        let mut run = run.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        // While it writes, and while its results take the place of the former ones.
        let (sign, after_it) = match round % 2 {
            0 => (".out.new-", random.below(longest / 8 + 1)),
            _ => (".out.old-", 0),
        };
        wait_for(&mut run, (&here.path(""), sign));
        turns(after_it);
        let _ = Command::new("kill").args(["-TERM", &run.id().to_string()]).status();
        let out = run.wait_with_output().unwrap();
        let words = String::from_utf8(out.stderr).unwrap();
        assert!(matches!(out.status.code(), Some(0 | 143)), "{}: {words}", out.status);
        let broken_off = words.contains("broken off before out was written");
        nothing_is_left(&here.files(""), if broken_off { &before } else { &after });
        told += u64::from(broken_off);
        finished += u64::from(!broken_off);
        round += 1;
    }
    assert!(told > 0 && finished > 0, "{told} told, {finished} finished");
    println!("a merge told to end: {told} broken off, {finished} finished");
}
