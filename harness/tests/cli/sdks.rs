//! Runs the unmodified official SDKs of Anthropic, OpenAI and Google against `ctxbench serve`: the
//! scripts of `tests/sdk`, each with its own server. `.ci/sdks` installs the SDKs into
//! `target/sdk`; `CTXBENCH_SDK_DIR` names another folder.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::common::{CommandFolder, Run, is_ignored, repository, sdk, signal};

/// A running `ctxbench serve`, or another command that prints its address.
pub(crate) struct Serving {
    pub(crate) child: Child,
    pub(crate) out: BufReader<ChildStdout>,
    pub(crate) url: String,
}

impl Serving {
    pub(crate) fn run(here: &CommandFolder, line: &str) -> Serving {
        Serving::start(here.run(line))
    }

    fn start(run: Run) -> Serving {
        let mut command = run.command();
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let url = line
            .trim()
            .strip_prefix("listening on ")
            .unwrap_or_else(|| panic!("the first line is {line:?}"))
            .to_string();
        assert!(url.starts_with("http://127.0.0.1:"), "{url}");
        Serving { child, out, url }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// 200 bodies of 30 MB would take six times the memory that there is.
#[cfg(target_os = "linux")]
#[test]
fn announced_bodies_take_no_memory_and_replies_no_date() {
    use std::io::{Read, Write};
    use std::net::TcpStream;
    let here = CommandFolder::new();
    let server = Serving::start(here.run("serve").after("ulimit -v 1000000;"));
    let host = server.url.trim_start_matches("http://");
    let send = |head: &str| {
        let mut connection = TcpStream::connect(host).unwrap();
        write!(connection, "{head}\r\nhost: {host}\r\nconnection: close\r\n\r\n").unwrap();
        connection
    };
    let head = "POST /v1/messages HTTP/1.1\r\ncontent-length: 30000000";
    let _announced: Vec<TcpStream> = (0..200).map(|_| send(head)).collect();
    let mut reply = String::new();
    send("GET /v1/models HTTP/1.1").read_to_string(&mut reply).unwrap();
    assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
    // A date cannot be written on a clock before 1970 or after 9999.
    assert!(!reply.to_lowercase().contains("\r\ndate:"), "{reply}");
}

/// Runs a script against an address.
pub(crate) fn runs(script: &str, checks: usize, dir: &Path, url: &str) {
    let program = if script.ends_with(".py") { sdk::python(dir) } else { PathBuf::from("node") };
    let mut command = Command::new(&program);
    command
        .arg(repository("tests/sdk").join(script))
        .arg(url)
        .arg(dir)
        .env("PYTHONDONTWRITEBYTECODE", "1");
    // Proxies and keys of the environment are ignored.
    let of_provider = |name: &str| {
        ["_PROXY", "ANTHROPIC_", "OPENAI_", "GOOGLE_"].iter().any(|p| name.contains(p))
    };
    for (name, _) in std::env::vars().filter(|(name, _)| of_provider(&name.to_uppercase())) {
        command.env_remove(name);
    }
    let out = command.output().unwrap_or_else(|e| panic!("{}: {e}", program.display()));
    let text =
        format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(
        out.status.success() && text.contains(&format!("{checks} passed, 0 failed")),
        "{script}:\n{text}"
    );
}

/// Scripts with the official clients, and how many checks each makes.
pub(crate) const CLIENTS: [(&str, usize); 6] = [
    ("anthropic_check.py", 17),
    ("anthropic_check.mjs", 14),
    ("openai_check.py", 16),
    ("openai_check.mjs", 13),
    ("gemini_check.py", 16),
    ("gemini_check.mjs", 11),
];

#[test]
#[ignore = "needs .ci/sdks"]
fn the_official_clients_work() {
    let dir = sdk::folder();
    for (script, checks) in CLIENTS {
        let here = CommandFolder::new();
        let server = Serving::run(&here, "serve --log log.jsonl");
        runs(script, checks, &dir, &server.url);
        let log = here.read("log.jsonl");
        let lines = log.lines().count();
        assert!(lines > checks && !log.contains("api_key"), "{script}: {lines} lines");
    }
}

#[cfg(unix)]
#[test]
fn serve_exits_with_0_on_a_signal() {
    for name in ["TERM", "INT"] {
        if is_ignored(&format!("SIG{name}")) {
            continue;
        }
        let here = CommandFolder::new();
        let mut server = Serving::run(&here, "serve --script login-bug");
        signal(name, &server.child);
        assert_eq!(server.child.wait().unwrap().code(), Some(0), "SIG{name}");
        let rest = std::io::read_to_string(&mut server.out).unwrap();
        assert_eq!(rest, "", "nothing but the address is printed");
    }
}

#[test]
fn port_in_use_is_refused() {
    let here = CommandFolder::new();
    let first = Serving::run(&here, "serve");
    let port = first.url.rsplit(':').next().unwrap();
    here.fails(&format!("serve --port {port}"), 2, &["cannot listen on", port]);
}
