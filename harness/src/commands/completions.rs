//! `ctxbench completions` and `ctxbench man`: made of the command line itself.

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Command;
use clap_complete::Shell;
use ctxbench_core::nearest;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Whose completions to print
    #[arg(value_name = "bash|elvish|fish|powershell|zsh")]
    shell: Shell,
}

#[derive(clap::Args)]
pub(crate) struct ManArgs {
    /// Command whose page is printed; without it that of ctxbench
    #[arg(conflicts_with = "output")]
    command: Option<String>,
    /// Write a page per command into this folder instead
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

pub(crate) fn completions(args: &Args, mut root: Command) -> anyhow::Result<()> {
    let mut out = Vec::new();
    clap_complete::generate(args.shell, &mut root, "ctxbench", &mut out);
    super::print(&String::from_utf8_lossy(&out))
}

pub(crate) fn man(args: &ManArgs, root: Command) -> anyhow::Result<()> {
    let Some(folder) = &args.output else {
        let mut out = Vec::new();
        clap_mangen::Man::new(page(args.command.as_deref(), root)?).render(&mut out)?;
        return super::print(&String::from_utf8_lossy(&out));
    };
    let written = std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(root.disable_help_subcommand(true), folder));
    written.with_context(|| format!("manual pages cannot be written to {}", folder.display()))?;
    tell!("wrote a manual page per command into {}/", folder.display());
    Ok(())
}

fn page(name: Option<&str>, mut root: Command) -> anyhow::Result<Command> {
    let Some(name) = name else { return Ok(root) };
    // Gives commands the names of their pages.
    root.build();
    if let Some(command) = root.find_subcommand(name) {
        return Ok(command.clone());
    }
    let known: Vec<&str> = root.get_subcommands().map(Command::get_name).collect();
    let otherwise = "`ctxbench help` lists them, and -o DIR writes the pages of all";
    bail!("there is no command `{name}`; {}", nearest::hint_or(name, &known, otherwise))
}
