//! Importing what many files hold: folders, archives, and a choice among their sessions.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use ctxbench_core::files;
use ctxbench_harness::choice::{Choice, Chooser, many};
use ctxbench_scenarios::Scenario;
use ctxbench_scenarios::formats::{self, Source};

use crate::commands::corpus::{Met, Skipped, at, below, walk};

/// Whether a path holds recordings and is none itself.
pub(super) fn is_corpus(path: &Path) -> bool {
    let source = Source::at(path);
    let folder = || path.is_dir() || source.head().is_ok_and(|head| head.members.is_some());
    formats::detect(&source).is_none() && folder()
}

/// Writes the chosen sessions of all paths, one at a time. What cannot be read is told and left out,
/// unless nothing is left.
pub(super) fn write(
    paths: &[PathBuf],
    choice: &Choice,
    out: Option<&Path>,
    write: &mut dyn FnMut(&str) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let inputs: Vec<String> = paths.iter().map(|p| p.display().to_string()).collect();
    let mut chooser = Chooser::new(choice);
    let (mut skipped, mut damaged) = (Skipped::default(), Skipped::default());
    let mut written = Written { formats: BTreeSet::new(), sessions: 0, out, write };
    let mut ended = Ok(());
    walk(&inputs, &mut None, &mut |shown, input, place, met| {
        let put = match met {
            // A session file and a scenario are no recordings, but their sessions are sessions.
            Met::Session(scenario) => {
                let ticket = chooser.admit(&scenario.session, &below(input, place));
                let one = ticket.and_then(|t| chooser.take(t, (place.to_path_buf(), scenario)));
                one.map_or(Ok(()), |(place, one)| shown.aside(|| written.put(&place, &one)))
            }
            Met::Damaged(e) => {
                shown.aside(|| tell!("error: {}; left out", at(place, &e)));
                damaged.add(place, e);
                Ok(())
            }
            Met::Other(e) => {
                skipped.add(place, e);
                Ok(())
            }
        };
        ended = put;
        if ended.is_ok() && !chooser.is_full() {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    })?;
    ended?;
    let (sample, left_out) = chooser.end();
    sample.iter().try_for_each(|(place, one)| written.put(place, one))?;
    left_out.iter().for_each(|line| tell!("note: {line}"));
    if skipped.count > 0 {
        tell!("note: no session in {}", many(skipped.count, "file"));
        skipped.tell("");
    }
    match (written.sessions, damaged.first.into_iter().chain(skipped.first).next()) {
        (0, Some((_, e))) => Err(e.into()),
        (0, None) => bail!("no session is left to import"),
        _ => Ok(()),
    }
}

struct Written<'a> {
    /// Of which it was told what they cannot tell.
    formats: BTreeSet<String>,
    sessions: usize,
    out: Option<&'a Path>,
    write: &'a mut dyn FnMut(&str) -> anyhow::Result<()>,
}

impl Written<'_> {
    fn put(&mut self, place: &Path, scenario: &Scenario) -> anyhow::Result<()> {
        let shown = place.display();
        let session = &scenario.session;
        let source = session.header.source.as_ref().map(|s| s.format.clone());
        if let Some(format) = source.and_then(|name| formats::by_name(&name).ok())
            && self.formats.insert(format.name.to_string())
        {
            tell!("note: recordings of {} cannot tell {}", format.title, format.untold);
        }
        scenario.warnings.iter().for_each(|w| tell!("note: {shown}: {w}"));
        if let Some(out) = self.out {
            files::check_output(out, &scenario.files)?;
        }
        let jsonl = session.to_jsonl();
        (self.write)(&jsonl.with_context(|| format!("writing the session of {shown}"))?)?;
        self.sessions += 1;
        Ok(())
    }
}
