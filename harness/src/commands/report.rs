//! `ctxbench report`: results in another format.

use std::path::PathBuf;

use crate::redact::Redactor;
use crate::run::looks;
use anyhow::{Context, bail};
use ctxbench_core::files;
use ctxbench_reports as reports;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Folder or results.json of a run
    results: PathBuf,
    /// Format (repeat): md, html, csv, json, svg, table, junit, bmf, github-benchmark,
    /// admin
    #[arg(long, value_name = "FORMAT", default_value = "md")]
    format: Vec<String>,
    /// Write files here; without it a format of one file goes to standard output
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Hold the rows to the goals of a TOML file, instead of those of the run, as for `run`
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::AnyPath)]
    goals: Option<String>,
    /// Keep keys, passwords, mail addresses and names of home folders, which are taken out otherwise
    #[arg(long)]
    no_redact: bool,
}

pub(crate) fn report(args: &Args) -> anyhow::Result<()> {
    let mut results = reports::read_results(&args.results)?;
    if !args.no_redact {
        let mut redactor = Redactor::default();
        results = redactor.results(&results).context("taking secrets out of the results")?;
        if let Some(note) = redactor.note() {
            tell!("{note}; --no-redact keeps them");
        }
    }
    if let Some(name) = &args.goals {
        results.goals = super::goals::named(name)?;
        super::goals::tell_unheld(&results);
    }
    let source = reports::results_file(&args.results);
    let formats =
        args.format.iter().map(|name| reports::format(name)).collect::<Result<Vec<_>, _>>()?;
    for format in formats {
        let files = (format.render)(&results, &looks())?;
        match (&args.output, files.as_slice()) {
            (None, [one]) => super::print(&one.text)?,
            (None, many) => {
                bail!("format {} has {} files; name a folder with -o", format.name, many.len())
            }
            (Some(dir), files) => {
                for f in files {
                    let path = dir.join(&f.file);
                    if let Some(parent) = path.parent() {
                        std::fs::create_dir_all(parent)
                            .with_context(|| format!("making {}", parent.display()))?;
                    }
                    files::check_output(&path, std::slice::from_ref(&source))?;
                    files::write(&path, &f.text)?;
                    tell!("wrote {}", path.display());
                }
            }
        }
    }
    Ok(())
}
