//! `ctxbench import`: recordings become sessions.

mod many;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use ctxbench_core::files;
use ctxbench_scenarios::formats::{self, Format, Source};
use ctxbench_scenarios::{Kind, sniff};

use super::corpus::Choosing;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Recordings: files, also compressed, and folders and archives of them
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
    /// Write here instead of standard output: a file, which then holds all sessions one after the
    /// other
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn import(args: &Args) -> anyhow::Result<()> {
    if let Some(out) = &args.output {
        files::check_output(out, &args.files)?;
    }
    let choice = args.choosing.choice(args.seed);
    let is_choice = choice != Choosing::default().choice(args.seed);
    let many = is_choice || args.files.iter().any(|path| many::is_corpus(path));
    if many && args.format != "auto" {
        bail!("--format goes with files, all sessions of which are taken");
    }
    let recordings = match many {
        true => Vec::new(),
        false => args
            .files
            .iter()
            .map(|path| Ok((path.as_path(), format_of(path, args)?)))
            .collect::<anyhow::Result<Vec<_>>>()?,
    };
    let mut written = 0;
    let mut write_to = |out: Option<&Path>, write: &mut dyn FnMut(&str) -> anyhow::Result<()>| {
        if many {
            return many::write(&args.files, &choice, out, write);
        }
        write_all(&recordings, out, &mut written, write)
    };
    let Some(out) = &args.output else {
        return write_to(None, &mut |text| super::print(text));
    };
    let mut ended = Ok(());
    let put = files::write_with(out, |file| {
        ended = write_to(Some(out), &mut |text| Ok(file.write_all(text.as_bytes())?));
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

/// Writes the sessions of all recordings, one at a time. A damaged one is told and left out, unless
/// nothing is left.
fn write_all(
    recordings: &[(&Path, &'static Format)],
    out: Option<&Path>,
    written: &mut usize,
    write: &mut dyn FnMut(&str) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut failed: Option<anyhow::Error> = None;
    for (path, format) in recordings {
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
            let jsonl = imported.loaded.session.to_jsonl();
            ended = (|| {
                if let Some(out) = out {
                    files::check_output(out, &imported.beside)?;
                }
                write(&jsonl.with_context(|| format!("writing the session of {shown}"))?)
            })();
            *written += 1;
            if ended.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        ended?;
    }
    match failed {
        Some(e) if *written == 0 => Err(e),
        Some(e) => {
            tell!("error: {e:#}");
            Ok(())
        }
        None => Ok(()),
    }
}
