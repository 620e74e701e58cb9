//! `ctxbench import`: a recording becomes a session.

use std::path::PathBuf;

use anyhow::{Context, bail};
use ctxbench_core::files;
use ctxbench_scenarios::{Kind, formats, sniff};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Recordings
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[arg(long, default_value = "auto")]
    #[arg(help = format!("Format of the recordings: auto, {}", formats::names().join(", ")))]
    format: String,
    /// Write here instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn import(args: &Args) -> anyhow::Result<()> {
    if args.files.len() > 1 && args.output.is_some() {
        bail!("-o takes one recording at a time; run import once per file");
    }
    for path in &args.files {
        if let Some(out) = &args.output {
            files::check_output(out, std::slice::from_ref(path))?;
        }
        let bytes = std::fs::read(path).with_context(|| format!("reading {}", path.display()))?;
        let text = String::from_utf8_lossy(&bytes);
        let known = || formats::names().join(", ");
        let format = match args.format.as_str() {
            "auto" if sniff(&bytes, "") == Some(Kind::Session) => {
                bail!("{}: already a session; `run` takes it as it is", path.display())
            }
            "auto" => formats::detect(&text).with_context(|| {
                format!(
                    "{}: not a recording that is known here ({}); give --format",
                    path.display(),
                    known()
                )
            })?,
            name => formats::by_name(name)
                .with_context(|| format!("there is no importer `{name}`; known are {}", known()))?,
        };
        let (loaded, beside) = ctxbench_scenarios::recording(format, path, &bytes)?;
        if let Some(out) = &args.output {
            files::check_output(out, &beside)?;
        }
        for w in &loaded.warnings {
            tell!("note: {}: {w}", path.display());
        }
        let jsonl = loaded
            .session
            .to_jsonl()
            .with_context(|| format!("writing the session of {}", path.display()))?;
        match &args.output {
            Some(out) => files::write(out, jsonl)?,
            None => super::print(&jsonl)?,
        }
    }
    Ok(())
}
