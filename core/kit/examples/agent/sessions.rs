//! Commands for stored sessions and checkpoints.

use std::error::Error;
use std::fmt::Write;
use std::path::Path;

use ctxbench_kit::rewind::{Restore, Rewinder, Target};
use ctxbench_kit::store::{Id, Position};

type Output = Result<String, Box<dyn Error>>;

/// Opens the store of a folder.
pub fn open(folder: &Path) -> Result<Rewinder, Box<dyn Error>> {
    let path = folder.join(".agent/sessions.db");
    if !path.exists() {
        let path = path.display();
        return Err(format!("{path} does not exist; name the project with --folder").into());
    }
    Ok(Rewinder::open(&path, folder)?)
}

/// Lists the sessions, each with its checkpoints.
pub fn list(kept: &Rewinder) -> Output {
    let mut out = String::new();
    for s in kept.store.sessions()? {
        let n = kept.store.log(s.id)?.len();
        writeln!(out, "{}  {n:>4} messages  {}", s.id, s.details.title)?;
        for c in kept.store.checkpoints(s.id)? {
            let name = c.name.as_deref().unwrap_or("prompt");
            let (side, message) = match c.position {
                Position::Before(id) => ("before", id),
                Position::After(id) => ("after", id),
            };
            writeln!(out, "  {}  {name}, {side} {message}", c.id)?;
        }
    }
    Ok(out)
}

/// Shows id, role and first line of each message of a session.
pub fn show(kept: &Rewinder, session: Id) -> Output {
    let mut out = String::new();
    for m in kept.store.log(session)? {
        let mut texts = m.parts.iter().map(|p| p.content.text());
        let line = texts.find(|t| !t.is_empty()).and_then(|t| t.lines().next()).unwrap_or_default();
        let role = if m.is_boundary { "Compaction".to_string() } else { format!("{:?}", m.role) };
        writeln!(out, "{}  {role:<10}  {line:.72}", m.id)?;
    }
    Ok(out)
}

/// Rewinds a session to a message or a checkpoint.
pub fn rewind(kept: &mut Rewinder, session: Id, to: Id, restore: Restore) -> Output {
    let checkpoint = kept.store.checkpoints(session)?.into_iter().find(|c| c.id == to);
    let target = checkpoint.map_or(Target::Message(to), Target::Checkpoint);
    let done = kept.rewind(session, &target, restore)?;
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
