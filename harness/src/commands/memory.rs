//! `ctxbench memory`: the memory files that each product loads for a project.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use ctxbench_core::model;
use ctxbench_core::strategy::Standing;
use ctxbench_kit::memory::ProjectFolders;
use ctxbench_replay::memory::{ProductMemory, load_counted, product_text, side_by_side};
use ctxbench_strategies::Spec;

#[derive(clap::Args)]
pub(crate) struct MemoryArgs {
    /// Project folder in which the agent starts
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Show only this product, such as claude-code or claude-code@described-001 (default: all, side
    /// by side)
    #[arg(long, value_name = "S")]
    product: Option<String>,
    /// File that the agent has read or edited, relative to DIR (repeat): also load the rules and
    /// subfolder files that apply to it
    #[arg(long, value_name = "PATH")]
    file: Vec<PathBuf>,
    /// Count tokens like this model (default: o200k)
    #[arg(long, value_name = "M")]
    model: Option<String>,
    #[command(flatten)]
    folders: FolderArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Folders of memory files outside the project.
#[derive(clap::Args)]
pub(crate) struct FolderArgs {
    /// Home folder with the user's memory files (default: yours)
    #[arg(long, hide = true, value_name = "DIR")]
    home: Option<PathBuf>,
    /// System settings folder with the organisation's memory files (default: /etc)
    #[arg(long, hide = true, value_name = "DIR")]
    etc: Option<PathBuf>,
}

impl FolderArgs {
    /// Returns whether an option was given.
    pub(super) fn is_set(&self) -> bool {
        self.home.is_some() || self.etc.is_some()
    }

    /// Returns the folders to search for a project.
    pub(super) fn project_folders(&self, dir: &Path) -> anyhow::Result<ProjectFolders> {
        let directory = folder(dir)?;
        let home = match self.home.clone().or_else(std::env::home_dir) {
            Some(home) => folder(&home).context("--home")?,
            None => bail!("no home folder found; pass one with --home DIR"),
        };
        let etc = self.etc.clone().unwrap_or_else(|| "/etc".into());
        Ok(ProjectFolders::new(&etc, &home, &directory))
    }
}

/// Returns the absolute path of a readable folder.
fn folder(dir: &Path) -> anyhow::Result<PathBuf> {
    let full = dir.canonicalize().with_context(|| format!("{}: no such folder", dir.display()))?;
    if !full.is_dir() {
        bail!("{}: not a folder; pass a project folder", dir.display());
    }
    std::fs::read_dir(&full)
        .with_context(|| format!("{}: could not read the folder", dir.display()))?;
    Ok(full)
}

pub(crate) fn memory(args: &MemoryArgs) -> anyhow::Result<()> {
    let Some(dir) = &args.dir else {
        bail!("memory needs a project folder, such as: ctxbench memory .");
    };
    let folders = args.folders.project_folders(dir)?;
    let model = args.model.as_deref().map(model::find).transpose()?;
    let specs = match &args.product {
        Some(name) => vec![Spec::parse(name)?],
        None => Spec::defaults(),
    };
    let all: Vec<ProductMemory> = specs
        .iter()
        .filter(|s| args.product.is_some() || s.descriptor.standing == Standing::Contender)
        .map(|s| load_counted(s, &folders, &args.file, model.map(|m| m.counting)))
        .collect();
    let by = model.map_or("counted by o200k".into(), |m| {
        format!("counted like {}, {} · o200k", m.name, m.counting.per_token)
    });
    if args.json {
        let all = serde_json::json!({ "directory": dir, "counted": by, "products": all });
        return super::print_json(&all);
    }
    super::print(&match &all[..] {
        [c] if args.product.is_some() => product_text(c, &by),
        all => side_by_side(all, &by),
    })
}
