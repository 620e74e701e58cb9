//! Standard input as a file that is read.

use std::io::Read;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::OnceLock;

use anyhow::{Context, bail};
use ctxbench_scenarios::formats::{self, Source};
use ctxbench_scenarios::{InputError, Kind, Scenario, autofacts, jsonl, sniff};

/// As messages call it, and sessions without another id.
pub(super) const NAME: &str = "stdin";

/// Whether an argument means standard input.
pub(super) fn is_piped(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// What came through the pipe, which can be read once.
pub(super) fn piped() -> anyhow::Result<Vec<u8>> {
    static READ: OnceLock<()> = OnceLock::new();
    if READ.set(()).is_err() {
        bail!("- stands for standard input, which can be read only once; give it once");
    }
    let mut bytes = Vec::new();
    std::io::stdin().lock().read_to_end(&mut bytes).context("reading standard input")?;
    if bytes.is_empty() {
        bail!("nothing came through standard input; expected a session or a recording");
    }
    Ok(bytes)
}

/// The sessions that came through the pipe.
pub(super) fn sessions() -> anyhow::Result<Vec<Scenario>> {
    let bytes = piped()?;
    let source = Source::of_bytes(&bytes, NAME);
    let mut out = Vec::new();
    match sniff(&source) {
        Some(Kind::Session) => {
            let mut failed: Option<InputError> = None;
            jsonl::read_each(source.open()?, NAME, &mut |loaded| {
                match loaded {
                    Ok(mut loaded) => {
                        autofacts::add(&mut loaded.session);
                        out.push(Scenario::of_session(loaded));
                    }
                    Err(e) => failed = failed.take().or(Some(e)),
                }
                ControlFlow::Continue(())
            });
            match failed {
                Some(e) if out.is_empty() => return Err(e.into()),
                Some(e) => tell!("note: {NAME}: skipped: {e}"),
                None => {}
            }
        }
        Some(Kind::Recording(name)) => {
            let mut failed = None;
            formats::by_name(name)?.import(&source, |imported| {
                match imported {
                    Ok(imported) => out.push(Scenario::of_session(imported.loaded)),
                    Err(e) => {
                        if let Some(before) = failed.replace(e) {
                            tell!("note: {NAME}: skipped: {before}");
                        }
                    }
                }
                ControlFlow::Continue(())
            });
            match failed {
                Some(e) if out.is_empty() => return Err(e.into()),
                Some(e) => tell!("note: {NAME}: skipped: {e}"),
                None => {}
            }
        }
        _ => bail!(
            "{NAME}: not a known format; expected a session or a recording in one of the formats \
             that `ctxbench import --help` lists"
        ),
    }
    if let Some(empty) = out.iter().find(|s| !s.session.entries.iter().any(|e| e.is_message())) {
        bail!("{NAME}: no messages in session {:?}", empty.id);
    }
    Ok(out)
}
