//! `ctxbench import`: recordings become sessions.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use ctxbench_core::files;
use ctxbench_harness::redact::Redactor;
use ctxbench_scenarios::formats::{self, Format, Imported, Source};
use ctxbench_scenarios::{Kind, sniff};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Recordings: files, or folders that hold one
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[arg(long, default_value = "auto")]
    #[arg(help = format!("Format of the recordings: auto, {}", formats::names().join(", ")))]
    format: String,
    /// Write here instead of standard output: a file, which then holds all sessions one after the
    /// other
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Take out keys, tokens, passwords, mail addresses and names of home folders
    #[arg(long)]
    redact: bool,
}

pub(crate) fn import(args: &Args) -> anyhow::Result<()> {
    if let Some(out) = &args.output {
        files::check_output(out, &args.files)?;
    }
    let recordings = args.files.iter().map(|path| Ok((path.as_path(), format_of(path, args)?)));
    let recordings = recordings.collect::<anyhow::Result<Vec<_>>>()?;
    let mut redactor = args.redact.then(Redactor::default);
    let imported = import_to(args, &recordings, redactor.as_mut());
    if let Some(note) = redactor.and_then(|r| r.note()) {
        tell!("{note}");
    }
    imported
}

fn import_to(
    args: &Args,
    recordings: &[(&Path, &'static Format)],
    redactor: Option<&mut Redactor>,
) -> anyhow::Result<()> {
    let mut work = Work { recordings, out: args.output.as_deref(), redactor, written: 0 };
    let Some(out) = &args.output else {
        return work.write_all(&mut |text| super::print(text));
    };
    let mut ended = Ok(());
    let put = files::write_with(out, |file| {
        ended = work.write_all(&mut |text| Ok(file.write_all(text.as_bytes())?));
        // Half of what was asked for must not take the place of what is there.
        ended.as_ref().map_err(|_| std::io::Error::other("not imported")).copied()
    });
    ended?;
    Ok(put?)
}

/// The format that is asked for, or the one that knows the recording.
fn format_of(path: &Path, args: &Args) -> anyhow::Result<&'static Format> {
    let source = Source::at(path);
    let known = || formats::names().join(", ");
    match args.format.as_str() {
        "auto" => {
            std::fs::metadata(path).with_context(|| format!("reading {}", path.display()))?;
            if sniff(&source) == Some(Kind::Session) && !named_only(&source) {
                bail!("{}: already a session; `run` takes it as it is", path.display());
            }
            formats::detect(&source).with_context(|| {
                format!(
                    "{}: not a recording that is known here ({}); give --format",
                    path.display(),
                    known()
                )
            })
        }
        name => Ok(formats::by_name(name)?),
    }
}

/// Nothing but its ending says that a file is a session.
fn named_only(source: &Source<'_>) -> bool {
    let head = source.head().map(|h| h.text).unwrap_or_default();
    sniff(&Source::of_bytes(head.as_bytes(), "")) != Some(Kind::Session)
}

/// What is to be imported, and how far that is.
struct Work<'a> {
    recordings: &'a [(&'a Path, &'static Format)],
    out: Option<&'a Path>,
    redactor: Option<&'a mut Redactor>,
    /// Sessions that were written.
    written: usize,
}

impl Work<'_> {
    /// Writes the sessions of all recordings, one at a time. A damaged one is told and left out,
    /// unless nothing is left.
    fn write_all(
        &mut self,
        write: &mut dyn FnMut(&str) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let mut failed: Option<anyhow::Error> = None;
        for (path, format) in self.recordings {
            let shown = path.display();
            tell!(
                "note: {shown}: a recording of {}, which cannot tell {}",
                format.title,
                format.untold
            );
            let mut ended = Ok(());
            format.import(&Source::at(path), |imported| {
                let imported = match imported {
                    Ok(imported) => imported,
                    Err(e) => {
                        if let Some(before) = failed.replace(e.into()) {
                            tell!("error: {before:#}");
                        }
                        return ControlFlow::Continue(());
                    }
                };
                for w in &imported.loaded.warnings {
                    tell!("note: {shown}: {w}");
                }
                ended = self.text(&imported).and_then(|text| write(&text));
                self.written += 1;
                if ended.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
            ended?;
        }
        match failed {
            Some(e) if self.written == 0 => Err(e),
            Some(e) => {
                tell!("error: {e:#}");
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn text(&mut self, imported: &Imported) -> anyhow::Result<String> {
        if let Some(out) = self.out {
            files::check_output(out, &imported.beside)?;
        }
        let session = &imported.loaded.session;
        let text = match self.redactor.as_mut() {
            Some(redactor) => redactor.session(session)?.to_jsonl(),
            None => session.to_jsonl(),
        };
        text.with_context(|| format!("writing the session {}", session.header.id))
    }
}
