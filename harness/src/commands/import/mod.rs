//! `ctxbench import`: recordings become sessions, and sessions files of other formats.

mod folder;
mod many;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use ctxbench_core::files;
use ctxbench_core::session::{Entry, Session};
use ctxbench_harness::choice::Choice;
use ctxbench_harness::redact::Redactor;
use ctxbench_scenarios::exports::{self, Export, Lost};
use ctxbench_scenarios::formats::{self, Format, Source};
use ctxbench_scenarios::{Kind, jsonl, sniff};
use folder::Folder;

use super::corpus::Choosing;
use super::input;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Recordings: files, also compressed, and folders and archives of them; - is standard input
    #[arg(required = true, value_name = "FILE|DIR")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    choosing: Choosing,
    /// Seed of --sample (default: 1)
    #[arg(long, value_name = "SEED")]
    seed: Option<u64>,
    #[arg(long, default_value = "auto")]
    #[arg(help = format!("Format of the recordings: auto, {}", formats::names().join(", ")))]
    format: String,
    #[arg(long, value_name = "FORMAT", default_value = "session")]
    #[arg(help = format!(
        "What to write: {}; formats of others take sessions as well as recordings",
        exports::names().join(", ")
    ))]
    to: String,
    /// Write here instead of standard output: a file, which then holds all sessions one after the
    /// other; or a folder (one that exists, or a name that ends in / or has no ending), in which
    /// each session is a file of its own
    #[arg(short, long, value_name = "FILE|DIR")]
    output: Option<PathBuf>,
    /// Take out keys, tokens, passwords, mail addresses and names of home folders
    #[arg(long)]
    redact: bool,
}

pub(crate) fn import(args: &Args) -> anyhow::Result<()> {
    let mut work = Work {
        export: exports::by_name(&args.to)?,
        format: match &*args.format {
            "auto" => None,
            name => Some(formats::by_name(name)?),
        },
        folder: args.output.as_deref().is_some_and(folder::is_one),
        choice: args.choosing.choice(args.seed),
        redactor: args.redact.then(Redactor::default),
        last: None,
        failed: 0,
        written: 0,
    };
    let Some(out) = &args.output else {
        work.all(&args.files, &mut |one| super::print(&one.text))?;
        return work.outcome();
    };
    if work.folder {
        let mut folder = Folder::new(out);
        work.all(&args.files, &mut |one| {
            let path = folder.write(&one.id, one.ending, &one.text)?;
            super::print(&format!("{}: {} messages of {}", path.display(), one.messages, one.from))
        })?;
        if work.written > 0 {
            let plural = if work.written == 1 { "" } else { "s" };
            tell!("{} session{plural} in {}", work.written, out.display());
        }
        return work.outcome();
    }
    files::check_output(out, &args.files)?;
    let mut ended = Ok(());
    let put = files::write_with(out, |file| {
        ended = work.all(&args.files, &mut |one| {
            files::check_output(out, &one.beside)?;
            Ok(file.write_all(one.text.as_bytes())?)
        });
        // Nothing must take the place of what is there unless it is what was asked for.
        let whole = ended.is_ok() && work.written > 0;
        whole.then_some(()).ok_or_else(|| std::io::Error::other("not imported"))
    });
    ended?;
    if work.written > 0 {
        put?;
    }
    work.outcome()
}

/// A session as it is to be written.
struct Written {
    id: String,
    text: String,
    ending: &'static str,
    messages: usize,
    /// The file it stood in, as people named it.
    from: String,
    /// Files beside that one that belong to it.
    beside: Vec<PathBuf>,
}

type Write<'a> = dyn FnMut(Written) -> anyhow::Result<()> + 'a;

struct Work {
    export: &'static Export,
    /// `None` = each recording says what it is.
    format: Option<&'static Format>,
    /// Each session becomes a file of its own.
    folder: bool,
    choice: Choice,
    redactor: Option<Redactor>,
    /// The newest failure, which is told when it is clear that it was not the only one.
    last: Option<anyhow::Error>,
    failed: usize,
    written: usize,
}

impl Work {
    /// Writes the sessions of all inputs, one at a time. What cannot be read is told and left out;
    /// what cannot be written ends the work.
    fn all(&mut self, inputs: &[PathBuf], write: &mut Write<'_>) -> anyhow::Result<()> {
        let choice = self.choice.clone();
        let one_by_one = choice == Choice { seed: choice.seed, ..Choice::default() }
            && !inputs.iter().any(|path| many::is_corpus(path));
        if !one_by_one {
            if self.format.is_some() {
                bail!("--format goes with files, all sessions of which are taken");
            }
            return self.chosen(inputs, &choice, write);
        }
        for path in inputs {
            let piped = match input::is_piped(path).then(input::piped).transpose() {
                Ok(piped) => piped,
                Err(e) => {
                    self.fail(e);
                    continue;
                }
            };
            let source = match &piped {
                Some(bytes) => Source::of_bytes(bytes, input::NAME),
                None => Source::at(path),
            };
            let shown = match piped {
                Some(_) => input::NAME.to_string(),
                None => path.display().to_string(),
            };
            match self.kind(&source, path, &shown) {
                Ok(Some(format)) => self.recording(format, &source, &shown, write)?,
                Ok(None) => self.sessions(&source, &shown, write)?,
                Err(e) => self.fail(e),
            }
        }
        Ok(())
    }

    /// The format that is asked for, or the one that knows the recording; `None` = it holds
    /// sessions as they are.
    fn kind(
        &self,
        source: &Source<'_>,
        path: &Path,
        shown: &str,
    ) -> anyhow::Result<Option<&'static Format>> {
        if self.format.is_some() {
            return Ok(self.format);
        }
        if source.name() != input::NAME {
            std::fs::metadata(path).with_context(|| format!("cannot read {shown}"))?;
        }
        if sniff(source) == Some(Kind::Session) && !named_only(source) {
            if self.export.name == "session" && !self.folder && self.redactor.is_none() {
                bail!("{shown}: already a session; `run` takes it as it is");
            }
            return Ok(None);
        }
        formats::detect(source).map(Some).with_context(|| {
            format!(
                "{shown}: not a recording that is known here; --format says what it is, and \
                 `ctxbench import --help` lists the formats"
            )
        })
    }

    fn recording(
        &mut self,
        format: &Format,
        source: &Source<'_>,
        shown: &str,
        write: &mut Write<'_>,
    ) -> anyhow::Result<()> {
        let Format { title, untold, .. } = format;
        tell!("note: {shown}: a recording of {title}, which cannot tell {untold}");
        let mut ended = Ok(());
        format.import(source, |imported| {
            match imported {
                Ok(imported) => {
                    let mut loaded = imported.loaded;
                    for w in &loaded.warnings {
                        tell!("note: {shown}: {w}");
                    }
                    self.without_found(&mut loaded.session);
                    ended = self.write(&loaded.session, shown, imported.beside, write);
                }
                Err(e) => self.fail(e.into()),
            }
            if ended.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        ended
    }

    /// Session files as they are.
    fn sessions(
        &mut self,
        source: &Source<'_>,
        shown: &str,
        write: &mut Write<'_>,
    ) -> anyhow::Result<()> {
        let from = match source.open() {
            Ok(from) => from,
            Err(e) => {
                self.fail(e.into());
                return Ok(());
            }
        };
        let mut ended = Ok(());
        jsonl::read_each(from, shown, &mut |loaded| {
            match loaded {
                Ok(loaded) => {
                    loaded.warnings.iter().for_each(|w| tell!("note: {shown}: {w}"));
                    ended = self.write(&loaded.session, shown, Vec::new(), write);
                }
                Err(e) => self.fail(e.into()),
            }
            if ended.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        ended
    }

    /// Facts are found in a recording, and so they are in what another format says of it.
    fn without_found(&self, session: &mut Session) {
        if self.export.name != "session" {
            session.facts.clear();
        }
    }

    fn write(
        &mut self,
        session: &Session,
        shown: &str,
        beside: Vec<PathBuf>,
        write: &mut Write<'_>,
    ) -> anyhow::Result<()> {
        let Export { title, ending, several, write: text, .. } = self.export;
        if self.written > 0 && !several && !self.folder {
            bail!(
                "{title} holds one session per file, and {shown} has more; give a folder: -o DIR/"
            );
        }
        let redacted = self.redactor.as_mut().map(|r| r.session(session)).transpose()?;
        let session = redacted.as_ref().unwrap_or(session);
        let mut lost = Lost::default();
        let text =
            text(session, &mut lost).with_context(|| format!("writing the session of {shown}"))?;
        if let Some(lost) = lost.told() {
            tell!("note: {shown}: {title} cannot say: {lost}");
        }
        write(Written {
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
            tell!("error: {}", super::told(&before));
        }
    }

    /// The one failure as it is, or how many there were.
    fn outcome(self) -> anyhow::Result<()> {
        let Work { last, failed, written, redactor, .. } = self;
        if let Some(note) = redactor.and_then(|r| r.note()) {
            tell!("{note}");
        }
        match last {
            None => Ok(()),
            Some(e) if failed == 1 && written == 0 => Err(e),
            Some(e) => {
                tell!("error: {}", super::told(&e));
                bail!("{failed} of {} could not be imported", failed + written)
            }
        }
    }
}

/// Nothing but its ending says that a file is a session.
fn named_only(source: &Source<'_>) -> bool {
    let head = source.head().map(|h| h.text).unwrap_or_default();
    sniff(&Source::of_bytes(head.as_bytes(), "")) != Some(Kind::Session)
}
