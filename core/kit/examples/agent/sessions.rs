//! Commands for stored sessions and checkpoints.

use std::error::Error;
use std::fmt::Write;
use std::path::Path;

use clap::Subcommand;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use ctxbench_kit::rewind::{Restore, Rewinder, Rewound, Target};
use ctxbench_kit::store::{Checkpoint, Id, LoadedMessage, Position};

type Output = Result<String, Box<dyn Error>>;

#[derive(Subcommand)]
pub enum Sessions {
    /// List the sessions of the folder
    List,
    /// Show the messages of a session
    Show {
        #[arg(value_parser = parse_id)]
        id: Id,
    },
    /// Create a session that continues after a message
    Fork {
        #[arg(value_parser = parse_id)]
        id: Id,
        #[arg(value_parser = parse_id)]
        message: Id,
    },
    /// Show where two sessions diverge
    Compare {
        #[arg(value_parser = parse_id)]
        first: Id,
        #[arg(value_parser = parse_id)]
        second: Id,
    },
    /// Rewind to a message; discarded messages stay in a fork
    Rewind {
        #[arg(value_parser = parse_id)]
        id: Id,
        #[arg(value_parser = parse_id)]
        message: Id,
        #[arg(value_parser = restore_parser())]
        restore: Restore,
    },
}

#[derive(Subcommand)]
pub enum Checkpoints {
    /// List the checkpoints of a session
    List {
        #[arg(value_parser = parse_id)]
        session: Id,
    },
    /// Show the files that changed since a checkpoint
    Show {
        #[arg(value_parser = parse_id)]
        session: Id,
        #[arg(value_parser = parse_id)]
        id: Id,
    },
    /// Restore a checkpoint of a session
    Restore {
        #[arg(value_parser = parse_id)]
        session: Id,
        #[arg(value_parser = parse_id)]
        id: Id,
        #[arg(value_parser = restore_parser())]
        restore: Restore,
    },
}

/// Parses the part of a session to restore.
fn restore_parser() -> impl TypedValueParser<Value = Restore> {
    PossibleValuesParser::new(["code", "conversation", "both"]).map(|part| match part.as_str() {
        "code" => Restore::Code,
        "conversation" => Restore::Conversation,
        _ => Restore::Both,
    })
}

impl Sessions {
    pub fn run(&self, folder: &Path) -> Output {
        let mut kept = open(folder)?;
        let mut out = String::new();
        match self {
            Sessions::List => {
                for s in kept.store.sessions()? {
                    let n = kept.store.log(s.id)?.len();
                    writeln!(out, "{}  {n:>4} messages  {}", s.id, s.details.title)?;
                }
            }
            Sessions::Show { id } => {
                kept.store.log(*id)?.iter().for_each(|m| out += &line(m));
            }
            Sessions::Fork { id, message } => {
                let title = format!("{} (fork)", kept.store.session(*id)?.title);
                writeln!(out, "{}", kept.store.fork(*id, *message, &title)?)?;
            }
            Sessions::Compare { first, second } => {
                let divergence = kept.store.compare(*first, *second)?;
                writeln!(out, "{} messages in common", divergence.shared.len())?;
                for (id, rest) in [(first, divergence.first), (second, divergence.second)] {
                    writeln!(out, "\n{id}")?;
                    rest.iter().for_each(|m| out += &line(m));
                }
            }
            Sessions::Rewind { id, message, restore } => {
                let target = Target::Message(*message);
                let done = kept.rewind(*id, &target, *restore)?;
                out += &summary(&done)?;
            }
        }
        Ok(out)
    }
}

impl Checkpoints {
    pub fn run(&self, folder: &Path) -> Output {
        let mut kept = open(folder)?;
        match self {
            Checkpoints::List { session } => {
                let mut out = String::new();
                for c in kept.store.checkpoints(*session)? {
                    let name = c.name.as_deref().unwrap_or("prompt");
                    let side = match c.position {
                        Position::Before(_) => "before",
                        Position::After(_) => "after",
                    };
                    writeln!(out, "{}  {name}  {side} {}", c.id, c.position.message())?;
                }
                Ok(out)
            }
            Checkpoints::Show { session, id } => {
                let checkpoint = find(&kept, *session, *id)?;
                let changed = kept.differences(&checkpoint, None)?;
                Ok(changed.into_iter().map(|path| format!("{path}\n")).collect())
            }
            Checkpoints::Restore { session, id, restore } => {
                let target = Target::Checkpoint(find(&kept, *session, *id)?);
                summary(&kept.rewind(*session, &target, *restore)?)
            }
        }
    }
}

fn find(kept: &Rewinder, session: Id, id: Id) -> Result<Checkpoint, Box<dyn Error>> {
    let all = kept.store.checkpoints(session)?;
    let found = all.into_iter().find(|c| c.id == id);
    Ok(found.ok_or_else(|| format!("session {session} has no checkpoint {id}; list them first"))?)
}

/// Opens the store of a folder.
fn open(folder: &Path) -> Result<Rewinder, Box<dyn Error>> {
    let path = folder.join(".agent/sessions.db");
    if !path.exists() {
        let path = path.display();
        return Err(format!("{path} does not exist; name the project with --folder").into());
    }
    Ok(Rewinder::open(&path, folder)?)
}

/// Formats the ID, role and first line of a message.
fn line(m: &LoadedMessage) -> String {
    let mut texts = m.parts.iter().map(|p| p.content.text());
    let first = texts.find(|t| !t.is_empty()).and_then(|t| t.lines().next()).unwrap_or_default();
    let role = if m.is_boundary { "Compaction".to_string() } else { format!("{:?}", m.role) };
    format!("{}  {role:<10}  {:.72}\n", m.id, first)
}

fn summary(done: &Rewound) -> Output {
    let mut out = String::new();
    if let Some(branch) = done.branch {
        writeln!(out, "{} messages discarded, kept in session {branch}", done.messages)?;
    }
    for (path, outcome) in done.files.iter().flat_map(|files| &files.files) {
        writeln!(out, "  {path}: {outcome:?}")?;
    }
    if let Some(undo) = done.undo {
        writeln!(out, "the replaced files are checkpoint {undo}")?;
    }
    Ok(out)
}

fn parse_id(text: &str) -> Result<Id, String> {
    text.parse().map_err(|e| format!("{e}; an ID has 26 letters and digits"))
}
