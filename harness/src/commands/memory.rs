//! `ctxbench memory`: what each product reads of a project before the first message.

use std::path::{Component, Path, PathBuf};

use crate::memory::{Counted, counted, one, side_by_side};
use anyhow::{Context, bail};
use ctxbench_core::model;
use ctxbench_core::strategy::Standing;
use ctxbench_kit::memory::{Site, Visit};
use ctxbench_strategies::Spec;

const EXAMPLES: &str = "\
Examples:
  ctxbench memory .
";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Folder of a project, in which an agent would be started
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Only this product, such as claude-code or claude-code@described-001 (default: all, side by
    /// side)
    #[arg(long, value_name = "S")]
    product: Option<String>,
    /// A file that the agent has read or edited, from DIR (repeat): rules and files of folders that
    /// hold for it are shown
    #[arg(long, value_name = "PATH")]
    file: Vec<PathBuf>,
    /// Count as this model does (default: o200k)
    #[arg(long, value_name = "M")]
    model: Option<String>,
    #[command(flatten)]
    places: Places,
    /// As if imports from outside of the project had been agreed to
    #[arg(long)]
    approve: bool,
    /// JSON instead of text
    #[arg(long)]
    json: bool,
}

/// Where memory files stand that are not of the project.
#[derive(clap::Args)]
pub(crate) struct Places {
    /// Home folder, for memory files of a person (default: yours)
    #[arg(long, value_name = "DIR")]
    home: Option<PathBuf>,
    /// Folder of the machine's settings, for memory files of an organisation (default: /etc)
    #[arg(long, value_name = "DIR")]
    etc: Option<PathBuf>,
}

impl Places {
    /// Whether one of them is named.
    pub(super) fn given(&self) -> bool {
        self.home.is_some() || self.etc.is_some()
    }

    /// The folders for a project.
    pub(super) fn site(&self, dir: &Path) -> anyhow::Result<Site> {
        let directory = folder(dir)?;
        let home = match self.home.clone().or_else(std::env::home_dir) {
            Some(home) => folder(&home).context("--home")?,
            None => bail!("there is no home folder here; name one with --home DIR"),
        };
        let etc = self.etc.clone().unwrap_or_else(|| "/etc".into());
        Ok(Site::new(&etc, &home, &directory))
    }
}

/// A folder under its full name.
fn folder(dir: &Path) -> anyhow::Result<PathBuf> {
    let full = dir
        .canonicalize()
        .with_context(|| format!("{}: there is no such folder to read", dir.display()))?;
    if !full.is_dir() {
        bail!("{}: is no folder; name the folder of a project", dir.display());
    }
    std::fs::read_dir(&full)
        .with_context(|| format!("{}: the folder cannot be read", dir.display()))?;
    Ok(full)
}

/// The way to a file from a folder, without steps up and down again; whole where it lies elsewhere.
fn below(folder: &Path, file: &Path) -> PathBuf {
    let mut whole = PathBuf::new();
    for part in folder.join(file).components() {
        match part {
            Component::ParentDir => drop(whole.pop()),
            Component::CurDir => {}
            part => whole.push(part),
        }
    }
    whole.strip_prefix(folder).map(Path::to_path_buf).unwrap_or(whole)
}

pub(crate) fn memory(args: &Args) -> anyhow::Result<()> {
    let Some(dir) = &args.dir else {
        bail!("memory takes the folder of a project, such as: ctxbench memory .");
    };
    let site = args.places.site(dir)?;
    let model = args.model.as_deref().map(model::find).transpose()?;
    let specs = match &args.product {
        Some(name) => vec![Spec::parse(name)?],
        None => Spec::defaults(),
    };
    let touched: Vec<PathBuf> = args.file.iter().map(|f| below(&site.directory, f)).collect();
    let visit = Visit { site: &site, touched: &touched, approve: args.approve };
    let all: Vec<Counted> = specs
        .iter()
        .filter(|s| args.product.is_some() || s.descriptor.standing == Standing::Contender)
        .map(|s| counted(s, &visit, model.map(|m| m.counting)))
        .collect();
    let by = model.map_or("counted by o200k".into(), |m| {
        format!("counted as by {}, {} · o200k", m.name, m.counting.per_token)
    });
    if args.json {
        let all = serde_json::json!({ "directory": dir, "counted": by, "products": all });
        return super::print_data(&serde_json::to_string_pretty(&all)?);
    }
    super::print(&match &all[..] {
        [c] if args.product.is_some() => one(c, &by),
        all => side_by_side(all, &by),
    })
}
