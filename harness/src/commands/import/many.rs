//! Import of folders and archives, with a selection among their sessions.

use std::ops::ControlFlow;
use std::path::Path;

use crate::choice::Chooser;
use anyhow::{anyhow, bail};
use ctxbench_scenarios::Scenario;
use ctxbench_scenarios::formats;

use super::{Work, Write};
use crate::commands::corpus::{Skipped, WalkItem, at, below, walk};

impl Work {
    /// Writes the selected sessions of all inputs, one at a time. Reports and skips unreadable
    /// files. Fails if no session is left.
    pub(super) fn chosen(
        &mut self,
        inputs: &[String],
        write: &mut Write<'_>,
    ) -> anyhow::Result<()> {
        let mut chooser = Chooser::new(&self.choice);
        let mut skipped = Skipped::default();
        let mut ended = Ok(());
        walk(inputs, &mut None, &mut |shown, input, place, met| {
            match met {
                // Session files and scenarios count as sessions too.
                WalkItem::Session(scenario) => {
                    let ticket = chooser.admit(&scenario.session, &below(input, place));
                    let one = ticket.and_then(|t| chooser.take(t, (place.to_path_buf(), scenario)));
                    if let Some((place, one)) = one {
                        ended = shown.aside(|| self.one_of_many(&place, *one, write));
                    }
                }
                WalkItem::Unreadable(e) => {
                    shown.aside(|| self.fail(anyhow!("{}", at(place, &e))));
                }
                WalkItem::NotASession(e) => skipped.add(place, e),
            }
            if ended.is_ok() && !chooser.is_full() {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })?;
        ended?;
        let (sample, left_out) = chooser.end();
        for (place, one) in sample {
            self.one_of_many(&place, *one, write)?;
        }
        left_out.iter().for_each(|line| report!("note: {line}"));
        skipped.report_all();
        if self.written > 0 || self.failed > 0 {
            return Ok(());
        }
        match skipped.first.into_iter().next() {
            Some((_, e)) => Err(e.into()),
            None => bail!("no session is left to import"),
        }
    }

    fn one_of_many(
        &mut self,
        place: &Path,
        mut scenario: Scenario,
        write: &mut Write<'_>,
    ) -> anyhow::Result<()> {
        let shown = place.display().to_string();
        scenario.find_facts();
        let source = scenario.session.header.source.as_ref().map(|s| s.format.clone());
        if let Some(format) = source.and_then(|name| formats::by_name(&name)) {
            self.tell_untold(format);
        }
        scenario.warnings.iter().for_each(|w| report!("note: {shown}: {w}"));
        let Scenario { session, facts_found, files, .. } = &mut scenario;
        self.write(session, *facts_found, &shown, std::mem::take(files), write)
    }
}
