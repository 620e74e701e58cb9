//! What an argument means: a whole id, its last characters, or the name of a checkpoint.

use std::path::Path;

use anyhow::bail;
use ctxbench_kit::rewind::Target;
use ctxbench_kit::store::{Checkpoint, Store, Ulid};

/// Fewer characters of an id are too easily hit by chance.
const LEAST: usize = 4;

/// A session.
pub(super) fn session(store: &Store, path: &Path, given: &str) -> anyhow::Result<Ulid> {
    let ids: Vec<Ulid> = store.sessions()?.into_iter().map(|(id, _)| id).collect();
    if let Some(id) = one("session", given, &ids)? {
        return Ok(id);
    }
    let shown = path.display();
    bail!("{shown} has no session {given:?}; `ctxbench sessions list --store {shown}` lists them")
}

/// A message that can be gone back to or forked at.
pub(super) fn message(store: &Store, session: Ulid, given: &str) -> anyhow::Result<Ulid> {
    if let Some(id) = one("message", given, &messages(store, session)?)? {
        return Ok(id);
    }
    bail!("session {session} has no message {given:?}; `ctxbench sessions show` lists them")
}

/// A message, or a checkpoint by id or name.
pub(super) fn target(store: &Store, session: Ulid, given: &str) -> anyhow::Result<Target> {
    if let Some(id) = one("message", given, &messages(store, session)?)? {
        return Ok(Target::Message(id));
    }
    match among(store.checkpoints(session)?, given)? {
        Some(found) => Ok(Target::Checkpoint(found)),
        None => bail!(
            "session {session} has no message and no checkpoint {given:?}; `ctxbench sessions \
             show` lists both"
        ),
    }
}

/// A checkpoint of any session, with the session that shows it.
pub(super) fn checkpoint(
    store: &Store,
    path: &Path,
    given: &str,
) -> anyhow::Result<(Ulid, Checkpoint)> {
    let mut all = Vec::new();
    for (id, _) in store.sessions()? {
        // What a fork has from its ancestors stands in them.
        all.extend(store.checkpoints(id)?.into_iter().filter(|c| c.session == id));
    }
    match among(all, given)? {
        Some(found) => Ok((found.session, found)),
        None => {
            let shown = path.display();
            bail!(
                "{shown} has no checkpoint {given:?}; `ctxbench checkpoints list --store {shown}` \
                 lists them"
            )
        }
    }
}

fn among(all: Vec<Checkpoint>, given: &str) -> anyhow::Result<Option<Checkpoint>> {
    let named: Vec<Ulid> =
        all.iter().filter(|c| c.what.name.as_deref() == Some(given)).map(|c| c.id).collect();
    let id = match named[..] {
        [id] => Some(id),
        [] => one("checkpoint", given, &all.iter().map(|c| c.id).collect::<Vec<_>>())?,
        _ => bail!("several checkpoints are called {given:?}: {}; give an id", listed(&named)),
    };
    Ok(id.and_then(|id| all.into_iter().find(|c| c.id == id)))
}

/// Those of the log and those that a compaction repeats.
fn messages(store: &Store, session: Ulid) -> anyhow::Result<Vec<Ulid>> {
    let mut ids: Vec<Ulid> = store.log(session)?.iter().map(|m| m.id).collect();
    ids.extend(store.load_context(session)?.iter().map(|m| m.id));
    ids.sort();
    ids.dedup();
    Ok(ids)
}

/// The only id that is or ends with what was given.
fn one(kind: &str, given: &str, ids: &[Ulid]) -> anyhow::Result<Option<Ulid>> {
    let end = given.to_ascii_uppercase();
    let found: Vec<Ulid> =
        ids.iter().filter(|id| id.to_string().ends_with(&end)).copied().collect();
    match found[..] {
        [] => Ok(None),
        _ if end.len() < LEAST => {
            bail!("{given:?} is too short for a {kind}; give an id, or its last {LEAST} characters")
        }
        [id] => Ok(Some(id)),
        _ => bail!(
            "{} {kind}s end with {given:?}: {}; give more of the id",
            found.len(),
            listed(&found)
        ),
    }
}

fn listed(ids: &[Ulid]) -> String {
    ids.iter().map(Ulid::to_string).collect::<Vec<_>>().join(", ")
}
