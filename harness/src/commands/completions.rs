//! `ctxbench completions` and `ctxbench man`: made of the command line itself.

use std::path::PathBuf;

use anyhow::Context;
use clap::Command;
use clap_complete::Shell;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Whose completions to print
    #[arg(value_name = "bash|elvish|fish|powershell|zsh")]
    shell: Shell,
}

#[derive(clap::Args)]
pub(crate) struct ManArgs {
    /// Folder for a page per command; without it the page of ctxbench is printed
    folder: Option<PathBuf>,
}

pub(crate) fn completions(args: &Args, mut root: Command) -> anyhow::Result<()> {
    let mut out = Vec::new();
    clap_complete::generate(args.shell, &mut root, "ctxbench", &mut out);
    super::print(&String::from_utf8_lossy(&out))
}

pub(crate) fn man(args: &ManArgs, root: Command) -> anyhow::Result<()> {
    let Some(folder) = &args.folder else {
        let mut out = Vec::new();
        clap_mangen::Man::new(root).render(&mut out)?;
        return super::print(&String::from_utf8_lossy(&out));
    };
    let written = std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(root.disable_help_subcommand(true), folder));
    written.with_context(|| format!("manual pages cannot be written to {}", folder.display()))?;
    tell!("wrote a manual page per command into {}/", folder.display());
    Ok(())
}
