//! `ctxbench import`: a recording becomes a session.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use ctxbench_scenarios::import;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Recordings
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Format of the recordings: auto, claude-code, codex, pi
    #[arg(long, default_value = "auto")]
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
        if args.output.as_ref().is_some_and(|out| same_file(out, path)) {
            bail!("-o names the recording {} itself; choose another file", path.display());
        }
        let text = std::fs::read(path).with_context(|| format!("reading {}", path.display()))?;
        let text = String::from_utf8_lossy(&text);
        let known = || import::ALL.iter().map(|i| i.name()).collect::<Vec<_>>().join(", ");
        let importer = match args.format.as_str() {
            "auto" => import::detect(&text)
                .with_context(|| format!("{}: not a recording that is known here ({}); give --format", path.display(), known()))?,
            name => import::by_name(name).with_context(|| format!("there is no importer `{name}`; known are {}", known()))?,
        };
        let name = path.file_name().map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into_owned());
        let loaded = import::import(importer, &text, &name)?;
        for w in &loaded.warnings {
            eprintln!("note: {}: {w}", path.display());
        }
        let jsonl = loaded.session.to_jsonl();
        match &args.output {
            Some(out) => std::fs::write(out, jsonl).with_context(|| format!("writing {}", out.display()))?,
            None => super::print(&jsonl),
        }
    }
    Ok(())
}

fn same_file(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}
