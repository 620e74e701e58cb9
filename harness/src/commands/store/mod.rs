//! `ctxbench sessions` and `ctxbench checkpoints`: what an agent that embeds the engine keeps in
//! its store, for the person at the keyboard.

mod checkpoints;
mod find;
mod sessions;
pub(super) mod words;

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use ctxbench_core::counted::many;
use ctxbench_kit::rewind::{Restore, Rewinder, Rewound};
use ctxbench_kit::store::{At, Store};
use ctxbench_reports::printable;
use serde_json::{Value, json};

use super::CheckFailed;

pub(crate) use checkpoints::{Args as CheckpointsArgs, run as checkpoints};
pub(crate) use sessions::{Args as SessionsArgs, run as sessions};

/// Where an agent built like the example keeps its store, from its folder.
const USUAL: &str = ".agent/sessions.db";

/// What both commands take.
#[derive(clap::Args)]
struct Which {
    /// The store, an SQLite file; the files of its checkpoints lie beside it
    #[arg(long, value_name = "FILE", default_value = USUAL, global = true)]
    store: PathBuf,
    /// JSON instead of text; a list is one object per line
    #[arg(long, global = true)]
    json: bool,
}

impl Which {
    /// Opens what is there. No file is made, and a command that only reads changes none.
    fn open(&self, reads: bool) -> anyhow::Result<Rewinder> {
        let path = &self.store;
        let shown = path.display();
        match std::fs::metadata(path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => bail!(
                "there is no store {shown}; name one with --store FILE, or run this in the folder \
                 of an agent that keeps its sessions in {USUAL}"
            ),
            Ok(m) if m.is_file() && m.len() == 0 => {
                bail!("{shown} is empty and no store; name another with --store FILE")
            }
            _ => {}
        }
        // First for reading, in any case: a database of another program stays as it is.
        let read = Store::open_read_only(path).context("--store")?;
        let store = if reads { read } else { Store::open(path).context("--store")? };
        Ok(Rewinder::new(store, path))
    }

    fn path(&self) -> &Path {
        &self.store
    }

    /// Prints the one or the other.
    fn print(&self, text: &str, json: &Value) -> anyhow::Result<()> {
        super::print(&if self.json { json.to_string() } else { text.to_string() })
    }

    /// A row per line, under a head.
    fn print_rows(&self, head: &str, none: &str, rows: Vec<(String, Value)>) -> anyhow::Result<()> {
        if self.json {
            let lines: Vec<String> = rows.iter().map(|(_, json)| json.to_string()).collect();
            return if lines.is_empty() { Ok(()) } else { super::print(&lines.join("\n")) };
        }
        let mut lines = vec![if rows.is_empty() { none.to_string() } else { head.to_string() }];
        lines.extend(rows.into_iter().map(|(line, _)| line));
        super::print(&lines.join("\n"))
    }
}

/// What goes back.
#[derive(Clone, Copy, clap::ValueEnum)]
enum What {
    /// The files of the session's folder that its edit tools changed
    Code,
    /// What was said
    Conversation,
    Both,
}

impl From<What> for Restore {
    fn from(what: What) -> Restore {
        match what {
            What::Code => Restore::Code,
            What::Conversation => Restore::Conversation,
            What::Both => Restore::Both,
        }
    }
}

/// Tells what going back did; files that it could not bring back are a failed check.
fn told(which: &Which, done: &Rewound) -> anyhow::Result<()> {
    use ctxbench_kit::checkpoint::FileOutcome;
    let mut lines = Vec::new();
    if done.branch.is_none() && done.files.is_none() {
        lines.push("nothing came later; nothing was changed".to_string());
    }
    if let Some(branch) = done.branch {
        lines.push(format!(
            "{} taken back; they live on in session {branch}",
            many(done.messages, "message")
        ));
    }
    let mut failed = 0;
    let mut files = Vec::new();
    for (path, outcome) in done.files.iter().flat_map(|f| &f.files) {
        let (word, why) = match outcome {
            FileOutcome::Restored => ("restored", None),
            FileOutcome::Unchanged => ("unchanged", None),
            FileOutcome::Refused(why) => ("refused", Some(why)),
            FileOutcome::Failed(why) => ("failed", Some(why)),
        };
        failed += usize::from(why.is_some());
        let reason = why.map(|w| format!(": {w}")).unwrap_or_default();
        lines.push(format!("{word:<9} {}{reason}", printable(path)));
        files.push(json!({"path": path, "outcome": word, "why": why}));
    }
    if let Some(undo) = done.undo {
        lines.push(format!(
            "the files as they were: ctxbench checkpoints restore {undo} --restore code{}",
            match which.path() == Path::new(USUAL) {
                true => String::new(),
                false => format!(" --store {}", which.path().display()),
            }
        ));
    }
    let json = json!({
        "branch": done.branch.map(|b| b.to_string()),
        "messages": done.messages,
        "files": done.files.as_ref().map(|_| files),
        "undo": done.undo.map(|u| u.to_string()),
    });
    which.print(&lines.join("\n"), &json)?;
    if failed > 0 {
        return Err(CheckFailed(format!("{} not restored", many(failed, "file"))).into());
    }
    Ok(())
}

/// Now, ms since 1970.
fn now() -> At {
    let since = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    At::try_from(since.as_millis()).unwrap_or(At::MAX)
}
