//! `ctxbench completions` and `ctxbench man`, generated from the command line.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Command;
use clap_complete::Shell;
use ctxbench_util::files;

#[derive(clap::Args)]
pub(crate) struct CompletionsArgs {
    /// Shell
    #[arg(value_name = "bash|elvish|fish|powershell|zsh")]
    shell: Shell,
}

#[derive(clap::Args)]
pub(crate) struct ManArgs {
    /// Write a page per command into this folder
    #[arg(short, long, value_name = "DIR")]
    out: PathBuf,
}

pub(crate) fn completions(args: &CompletionsArgs, mut root: Command) -> anyhow::Result<()> {
    let mut out = Vec::new();
    clap_complete::generate(args.shell, &mut root, "ctxbench", &mut out);
    super::print_data(&String::from_utf8_lossy(&out))
}

pub(crate) fn man(args: &ManArgs, root: Command) -> anyhow::Result<()> {
    let folder = &args.out;
    let refused = || format!("manual pages cannot be written to {}", folder.display());
    std::fs::create_dir_all(folder).with_context(refused)?;
    let mut root = root.disable_help_subcommand(true);
    root.build();
    write_pages(&root, folder)?;
    report!("wrote a manual page per command into {}/", folder.display());
    Ok(())
}

/// Writes the manual pages of a command and its subcommands.
fn write_pages(command: &Command, folder: &Path) -> anyhow::Result<()> {
    for below in command.get_subcommands().filter(|c| !c.is_hide_set()) {
        write_pages(below, folder)?;
    }
    let (man, mut text) = (clap_mangen::Man::new(command.clone()), Vec::new());
    man.render(&mut text)?;
    Ok(files::write(&folder.join(man.get_filename()), text)?)
}
