//! `ctxbench import`: converts recordings to sessions, and sessions to other formats.

mod folder;

use std::path::{Path, PathBuf};

use crate::choice::Choice;
use anyhow::{Context, anyhow, bail};
use clap::builder::{StringValueParser, TypedValueParser as _};
use ctxbench_os::redact::Redactor;
use ctxbench_scenarios::exports::{self, Export, ExportLosses};
use ctxbench_scenarios::formats::{self, Format, Source};
use ctxbench_scenarios::{InputKind, Scenario, sniff};
use ctxbench_session::{Entry, Session};
use ctxbench_util::{files, plural};
use folder::ImportFolder;

use super::corpus::{at, choose};
use super::{input, private};

#[derive(clap::Args)]
pub(crate) struct ImportArgs {
    #[arg(required = true, value_name = "FILE|DIR")]
    #[arg(help = format!(
        "Recordings: files (also compressed), folders and archives; - reads standard input. \
         Formats: {}",
        formats::names().join(", ")
    ))]
    #[arg(value_parser = StringValueParser::new().map(PathBuf::from))]
    files: Vec<PathBuf>,
    #[command(flatten)]
    choice: Choice,
    /// Random seed for --sample (default: 1)
    #[arg(long, value_name = "SEED", default_value_t = 1, hide_default_value = true)]
    seed: u64,
    #[arg(long, value_name = "FORMAT", default_value = "session")]
    #[arg(help = format!(
        "Output format: {}",
        exports::names().join(", ")
    ))]
    to: String,
    /// Output instead of standard output: a file for all sessions, or a folder with a file per
    /// session (an existing folder, or a name without extension or ending in /)
    #[arg(short, long, value_name = "FILE|DIR")]
    out: Option<PathBuf>,
    /// Replace the file of -o if it exists
    #[arg(long)]
    force: bool,
    /// Remove keys, tokens, passwords, mail addresses and names of home folders
    #[arg(long)]
    redact: bool,
}

pub(crate) fn import(args: &ImportArgs) -> anyhow::Result<()> {
    let mut work = Work {
        export: exports::by_name(&args.to)?,
        folder: args.out.as_deref().is_some_and(folder::is_one),
        choice: Choice { seed: args.seed, ..args.choice.clone() },
        redactor: args.redact.then(Redactor::default),
        told: Vec::new(),
        last: None,
        failed: 0,
        written: 0,
    };
    let Some(out) = args.out.as_ref().filter(|out| out.as_os_str() != "-") else {
        work.all(&args.files, &mut |one| super::print_data(&one.text))?;
        return work.outcome();
    };
    private::keep(args.files.iter().filter(|f| !input::is_pipe(f)));
    if work.folder {
        let mut folder = ImportFolder::new(out);
        work.all(&args.files, &mut |one| {
            let path = folder.write(&one.id, one.ending, &one.text)?;
            let messages = plural::pluralize(one.messages, "message");
            super::print(&format!("{}: {messages} of {}", path.display(), one.from))
        })?;
        if work.written > 0 {
            report!("{} in {}", plural::pluralize(work.written, "session"), out.display());
        }
        return work.outcome();
    }
    files::check_output(out, &args.files)?;
    if !args.force && std::fs::metadata(out).is_ok_and(|m| m.is_file() && m.len() > 0) {
        bail!("-o: {} exists; use --force to replace it, or name another file", out.display());
    }
    let (mut ended, mut unwritten, mut given_up) = (Ok(()), None, false);
    let put = files::write_with(out, |file| {
        ended = work.all(&args.files, &mut |one| {
            files::check_output(out, &one.beside)?;
            file.write_all(one.text.as_bytes()).or_else(|e| {
                unwritten = Some(e);
                bail!("not written")
            })
        });
        if let Some(e) = unwritten.take() {
            return Err(e);
        }
        // Keep an existing file if the import failed.
        given_up = ended.is_err() || work.written == 0;
        if given_up { Err(std::io::Error::other("not imported")) } else { Ok(()) }
    });
    // The error of `put` names the file.
    if !given_up {
        put?;
    }
    ended?;
    work.outcome()
}

/// A session that is ready to be written.
struct ImportedSession {
    id: String,
    text: String,
    ending: &'static str,
    messages: usize,
    /// Source file, as given by the user.
    from: String,
    /// Other files of the source, such as those of subagents.
    beside: Vec<PathBuf>,
}

type Write<'a> = dyn FnMut(ImportedSession) -> anyhow::Result<()> + 'a;

struct Work {
    export: &'static Export,
    /// Whether each session is written to its own file.
    folder: bool,
    choice: Choice,
    redactor: Option<Redactor>,
    /// Formats with limits that were already printed.
    told: Vec<&'static str>,
    /// The latest failure, which is not printed yet.
    last: Option<anyhow::Error>,
    failed: usize,
    written: usize,
}

impl Work {
    /// Writes the sessions of all inputs, one at a time. Reports and skips unreadable inputs. Stops
    /// if a session cannot be written.
    fn all(&mut self, inputs: &[PathBuf], write: &mut Write<'_>) -> anyhow::Result<()> {
        let mut good = Vec::new();
        for path in inputs {
            match self.refused(path) {
                Some(why) => self.fail(why),
                None => good.push(path.display().to_string()),
            }
        }
        if good.is_empty() { Ok(()) } else { self.chosen(&good, write) }
    }

    /// Writes the selected sessions of all inputs, one at a time. Reports and skips unreadable
    /// files. Fails if no session is left.
    fn chosen(&mut self, inputs: &[String], write: &mut Write<'_>) -> anyhow::Result<()> {
        let choice = self.choice.clone();
        let placed = |place: &Path, scenario| (place.to_path_buf(), scenario);
        let chosen = choose(inputs, &choice, &placed, &mut |shown, one| {
            shown.aside(|| match one {
                Ok((place, scenario)) => self.scenario(&place, scenario, write),
                Err((place, e)) => {
                    self.fail(anyhow!("{}", at(place, &e)));
                    Ok(())
                }
            })
        });
        let (skipped, left_out) = chosen??;
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

    fn scenario(
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

    /// Returns an error for a session, which would be written as it is.
    fn refused(&self, path: &Path) -> Option<anyhow::Error> {
        let as_it_is = self.export.name == "session" && !self.folder && self.redactor.is_none();
        if !as_it_is || input::is_pipe(path) || path.is_dir() {
            return None;
        }
        // The reader reports unreadable files. The text decides, and not the extension.
        let head = Source::at(path).head().ok()?;
        let kind = sniff(&Source::of_bytes(head.text.as_bytes(), ""));
        let why = "already a session; `run` takes it as it is";
        (kind == Some(InputKind::Session)).then(|| anyhow!("{}: {why}", path.display()))
    }

    /// Prints the limits of a format the first time that it is used.
    fn tell_untold(&mut self, format: &'static Format) {
        if !self.told.contains(&format.name) {
            self.told.push(format.name);
            report!("note: recordings of {} lack {}", format.title, format.untold);
        }
    }

    fn write(
        &mut self,
        session: &mut Session,
        facts_found: bool,
        shown: &str,
        beside: Vec<PathBuf>,
        write: &mut Write<'_>,
    ) -> anyhow::Result<()> {
        // Found facts are only written in the session format.
        if facts_found && self.export.name != "session" {
            session.facts.clear();
        }
        let Export { title, ending, several, write: text, .. } = self.export;
        if self.written > 0 && !several && !self.folder {
            bail!(
                "{title} holds one session per file, and {shown} is another one; give a folder: \
                 -o DIR/"
            );
        }
        let redacted = self.redactor.as_mut().map(|r| r.session(session)).transpose()?;
        let session = redacted.as_ref().unwrap_or(session);
        let mut lost = ExportLosses::default();
        let text =
            text(session, &mut lost).with_context(|| format!("writing the session of {shown}"))?;
        if let Some(lost) = lost.summary() {
            report!("note: {shown}: {title} cannot say: {lost}");
        }
        write(ImportedSession {
            id: session.header.id.clone(),
            text,
            ending,
            messages: session.entries.iter().filter(|e| Entry::is_message(e)).count(),
            from: shown.to_string(),
            beside,
        })?;
        self.written += 1;
        Ok(())
    }

    fn fail(&mut self, e: anyhow::Error) {
        self.failed += 1;
        if let Some(before) = self.last.replace(e) {
            report!("error: {}", super::error_chain(&before));
        }
    }

    /// Returns the failure if it is the only outcome. Otherwise prints it and returns an error with
    /// the number of failures, if there are any.
    fn outcome(self) -> anyhow::Result<()> {
        let Work { last, failed, written, redactor, .. } = self;
        if let Some(note) = redactor.and_then(|r| r.note()) {
            report!("{note}");
        }
        match last {
            None => Ok(()),
            Some(e) if failed == 1 && written == 0 => Err(e),
            Some(e) => {
                report!("error: {}", super::error_chain(&e));
                bail!("{failed} of {} could not be imported", failed + written)
            }
        }
    }
}
