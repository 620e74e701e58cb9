//! `ctxbench checkpoints`.

use std::collections::BTreeSet;
use std::fmt::Write;

use anyhow::bail;
use ctxbench_kit::checkpoint::{Difference, FileState};
use ctxbench_kit::rewind::{Rewinder, Target, files_of, manifest};
use ctxbench_kit::store::{Checkpoint, NewCheckpoint, Place, Ulid};
use ctxbench_reports::printable;
use serde_json::{Value, json};

use super::{What, Which, find, now, told, words};

#[derive(clap::Args)]
#[command(
    after_help = "A CHECKPOINT is its name, its whole id, or as many of its last characters as \
    name only one (at least 4)."
)]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
    #[command(subcommand)]
    what: Option<Do>,
}

#[derive(clap::Subcommand)]
enum Do {
    /// Checkpoints of all sessions or of one (the default)
    List {
        /// Session
        session: Option<String>,
        /// Only those with this tag
        #[arg(long, value_name = "TAG")]
        tag: Option<String>,
    },
    /// A checkpoint, and the files that going back to it would change
    Show {
        /// Checkpoint
        id: String,
    },
    /// Make one of a session as it is now, or of an earlier message without its files
    Add {
        /// Session
        session: String,
        /// What to call it
        #[arg(long)]
        name: String,
        /// A word to find it by (repeat)
        #[arg(long, value_name = "TAG")]
        tag: Vec<String>,
        /// Message behind which it stands, for the conversation only [default: the newest]
        #[arg(long, value_name = "MESSAGE")]
        at: Option<String>,
    },
    /// Name or tag one, such as one that was made for a prompt
    Tag {
        /// Checkpoint
        id: String,
        /// What to call it from now on
        #[arg(long, required_unless_present = "tag")]
        name: Option<String>,
        /// A further word to find it by (repeat)
        #[arg(long, value_name = "TAG")]
        tag: Vec<String>,
    },
    /// Go back to one; what is given up lives on as a session of its own
    Restore {
        /// Checkpoint
        id: String,
        /// What goes back
        #[arg(long, value_enum)]
        restore: What,
    },
    /// Files that differ between two, or between one and now
    Compare {
        /// Checkpoint
        a: String,
        /// Another one [default: the files as they are now]
        b: Option<String>,
    },
}

impl Do {
    fn only_reads(&self) -> bool {
        matches!(self, Do::List { .. } | Do::Show { .. } | Do::Compare { .. })
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let which = &args.which;
    let what = args.what.as_ref().unwrap_or(&Do::List { session: None, tag: None });
    let mut kept = which.open(what.only_reads())?;
    let checkpoint = |kept: &Rewinder, id: &str| find::checkpoint(kept.store(), which.path(), id);
    match what {
        Do::List { session, tag } => list(which, &kept, session.as_deref(), tag.as_deref()),
        Do::Show { id } => {
            let (session, c) = checkpoint(&kept, id)?;
            show(which, &kept, session, &c)
        }
        Do::Add { session, name, tag, at } => {
            let session = find::session(kept.store(), which.path(), session)?;
            let (name, tags) = (word("--name", name)?, tags(tag)?);
            free(&kept, session, name, None)?;
            let id = match at {
                None => kept.mark(session, Some(name), &tags, now())?,
                Some(at) => {
                    let place = Place::Behind(find::message(kept.store(), session, at)?);
                    let name = Some(name.to_string());
                    let new = NewCheckpoint { place, name, tags, manifest: manifest(None) };
                    kept.store_mut().add_checkpoint(session, &new)?
                }
            };
            one(which, &kept, session, id)
        }
        Do::Tag { id, name, tag } => {
            let (session, c) = checkpoint(&kept, id)?;
            let name = name.as_deref().map(|n| word("--name", n)).transpose()?;
            name.map(|name| free(&kept, session, name, Some(c.id))).transpose()?;
            kept.store_mut().label_checkpoint(c.id, name, &tags(tag)?)?;
            one(which, &kept, session, c.id)
        }
        Do::Restore { id, restore } => {
            let (session, c) = checkpoint(&kept, id)?;
            let done = kept.rewind(session, &Target::Checkpoint(c), (*restore).into(), now())?;
            told(which, &done)
        }
        Do::Compare { a, b } => {
            let (session, a) = checkpoint(&kept, a)?;
            let b = b.as_deref().map(|b| checkpoint(&kept, b)).transpose()?.map(|(_, b)| b);
            let all = kept.differences(session, &a, b.as_ref())?;
            let json = json!({
                "from": words::checkpoint_json(&a),
                "to": b.as_ref().map(words::checkpoint_json),
                "files": all.iter().map(file_json).collect::<Vec<_>>(),
            });
            which.print(&files(&all), &json)
        }
    }
}

/// What a person can tell from others and give as one argument.
fn word<'a>(option: &str, given: &'a str) -> anyhow::Result<&'a str> {
    match given.trim().is_empty() || given.chars().any(char::is_control) {
        true => bail!("{option} {given:?}: expected one line of text"),
        false => Ok(given),
    }
}

/// Refuses a name that another checkpoint of the session has: nobody could go back to either by it.
/// A session that was given up keeps the names of what it has, so only the same session counts.
fn free(kept: &Rewinder, session: Ulid, name: &str, but: Option<Ulid>) -> anyhow::Result<()> {
    let all = kept.store().checkpoints(session)?;
    let taken = |c: &&Checkpoint| c.what.name.as_deref() == Some(name) && Some(c.id) != but;
    match all.iter().find(taken) {
        Some(c) => bail!(
            "checkpoint {} of session {session} is called {name:?} already; choose another name, \
             or give that one another: ctxbench checkpoints tag {} --name …",
            c.id,
            c.id
        ),
        None => Ok(()),
    }
}

fn tags(given: &[String]) -> anyhow::Result<BTreeSet<String>> {
    given.iter().map(|t| word("--tag", t).map(str::to_string)).collect()
}

fn row(c: &Checkpoint) -> (String, Value) {
    let line = format!(
        "{}  {}  {}  {}  {}",
        c.id,
        words::time(c.at),
        c.session,
        words::place(c.what.place),
        words::checkpoint(c)
    );
    (line, words::checkpoint_json(c))
}

fn list(
    which: &Which,
    kept: &Rewinder,
    session: Option<&str>,
    tag: Option<&str>,
) -> anyhow::Result<()> {
    let store = kept.store();
    let mut all = Vec::new();
    match session {
        Some(given) => all = store.checkpoints(find::session(store, which.path(), given)?)?,
        None => {
            for (id, _) in store.sessions()? {
                all.extend(store.checkpoints(id)?.into_iter().filter(|c| c.session == id));
            }
        }
    }
    all.retain(|c| tag.is_none_or(|t| c.what.tags.contains(t)));
    let head =
        format!("{:<26}  {:<19}  {:<26}  {:<33}  what", "id", "made (UTC)", "session", "stands");
    let of = tag.map(|t| format!(" with tag {t:?}")).unwrap_or_default();
    which.print_rows(&head, &format!("no checkpoints{of}"), all.iter().map(row).collect())
}

fn one(which: &Which, kept: &Rewinder, session: Ulid, id: Ulid) -> anyhow::Result<()> {
    let all = kept.store().checkpoints(session)?;
    let Some(c) = all.iter().find(|c| c.id == id) else {
        bail!("checkpoint {id} is no longer there")
    };
    let (line, json) = row(c);
    which.print(&line, &json)
}

fn show(which: &Which, kept: &Rewinder, session: Ulid, c: &Checkpoint) -> anyhow::Result<()> {
    let (line, mut json) = row(c);
    let mut out = line + "\n";
    let log = kept.store().log(session)?;
    if let Some(m) = log.iter().find(|m| m.id == c.what.place.message()) {
        let _ = writeln!(out, "{}", words::message(m));
        json["at_message"] = words::message_json(m);
    }
    if files_of(c).is_some() {
        let all = kept.differences(session, c, None)?;
        out += &files(&all);
        json["changed_since"] = all.iter().map(file_json).collect();
    }
    which.print(&out, &json)
}

/// A file per line: from, to, lines.
fn files(all: &[Difference]) -> String {
    let state = |s: &FileState| match s {
        FileState::Absent => "absent".to_string(),
        FileState::Regular { sha256, mode } => format!("{} {mode:o}", &sha256.as_str()[..8]),
    };
    let line = |d: &Difference| {
        let lines = match d.lines {
            Some(n) => format!("+{} -{} lines", n.added, n.removed),
            None => "no text".to_string(),
        };
        format!("{:<16} {} -> {}  {lines}", printable(&d.path), state(&d.from), state(&d.to))
    };
    match all {
        [] => "no tracked file differs".to_string(),
        all => all.iter().map(line).collect::<Vec<_>>().join("\n"),
    }
}

fn file_json(d: &Difference) -> Value {
    json!({
        "path": d.path,
        "from": d.from,
        "to": d.to,
        "lines_added": d.lines.map(|n| n.added),
        "lines_removed": d.lines.map(|n| n.removed),
    })
}
